//! An XPath as a tree.

use super::lexer::{Lexer, Token};

/// Which nodes a step looks at, from each node that it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    Itself,
    Child,
    Attribute,
    Parent,
    Ancestor { itself: bool },
    Descendant { itself: bool },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    Boolean,
    Ceiling,
    Concat,
    Contains,
    Count,
    False,
    Floor,
    Last,
    Not,
    Number,
    Position,
    Round,
    StringLength,
    Substring,
    Sum,
    True,
}

/// By name, with the least and most arguments.
const FUNCTIONS: [(&str, Function, usize, usize); 16] = [
    ("boolean", Function::Boolean, 1, 1),
    ("ceiling", Function::Ceiling, 1, 1),
    ("concat", Function::Concat, 2, 255),
    ("contains", Function::Contains, 2, 2),
    ("count", Function::Count, 1, 1),
    ("false", Function::False, 0, 0),
    ("floor", Function::Floor, 1, 1),
    ("last", Function::Last, 0, 0),
    ("not", Function::Not, 1, 1),
    ("number", Function::Number, 0, 1),
    ("position", Function::Position, 0, 0),
    ("round", Function::Round, 1, 1),
    ("string-length", Function::StringLength, 0, 1),
    ("substring", Function::Substring, 2, 3),
    ("sum", Function::Sum, 1, 1),
    ("true", Function::True, 0, 0),
];

#[derive(Clone, Debug, PartialEq)]
pub enum Path {
    /// The root of the document.
    Root,
    /// The node that a predicate judges; the root outside of predicates.
    Here,
    Step {
        from: Box<Path>,
        axis: Axis,
        name: Option<String>,
    },
    Filter {
        from: Box<Path>,
        by: Box<Path>,
    },
    Union(Box<Path>, Box<Path>),
    /// With the digits behind its point.
    Number(f64, u8),
    Text(String),
    UserVariable(String),
    And(Box<Path>, Box<Path>),
    Or(Box<Path>, Box<Path>),
    Compare(Comparison, Box<Path>, Box<Path>),
    Arithmetic(Arithmetic, Box<Path>, Box<Path>),
    Negate(Box<Path>),
    Call(Function, Vec<Path>),
}

/// Where a text is no path.
#[derive(Debug, PartialEq, Eq)]
pub enum Wrong {
    Syntax { at: usize },
    TwoNodeSets { at: usize },
    Variable { at: usize },
}

const MOST_LEVELS: usize = 100;

struct Parser<'t> {
    lexer: Lexer<'t>,
    at: usize,
    token: Option<Token<'t>>,
    levels: usize,
}

type Parsed = Result<Path, Wrong>;

impl Path {
    pub fn parse(text: &str) -> Parsed {
        let mut lexer = Lexer::new(text);
        let (at, token) = lexer.next();
        let mut parser = Parser { lexer, at, token, levels: 0 };
        let path = parser.either()?;
        if parser.token == Some(Token::End) { Ok(path) } else { parser.wrong() }
    }

    /// Whether its value is a set of nodes.
    pub fn is_nodes(&self) -> bool {
        use Path::*;
        matches!(self, Root | Here | Step { .. } | Filter { .. } | Union(..))
    }

    /// Whether its value is true or false.
    pub fn is_truth(&self) -> bool {
        use Function::{Boolean, Contains, False, Not, True};
        match self {
            Path::And(..) | Path::Or(..) | Path::Compare(..) => true,
            Path::Call(function, _) => matches!(function, Boolean | Contains | False | Not | True),
            _ => false,
        }
    }
}

impl<'t> Parser<'t> {
    fn wrong<T>(&self) -> Result<T, Wrong> {
        Err(Wrong::Syntax { at: self.at })
    }

    fn advance(&mut self) {
        (self.at, self.token) = self.lexer.next();
    }

    fn take(&mut self, mark: &str) -> bool {
        let found = matches!(self.token, Some(Token::Mark(found)) if found == mark);
        if found {
            self.advance();
        }
        found
    }

    fn take_word(&mut self, word: &str) -> bool {
        // `or (` looks like a call.
        let found = matches!(self.token, Some(Token::Name(found) | Token::Function(found)) if found == word);
        if found {
            self.advance();
        }
        found
    }

    fn expect(&mut self, mark: &str) -> Result<(), Wrong> {
        if self.take(mark) { Ok(()) } else { self.wrong() }
    }

    fn deeper(&mut self, parse: impl FnOnce(&mut Self) -> Parsed) -> Parsed {
        if self.levels == MOST_LEVELS {
            return self.wrong();
        }
        self.levels += 1;
        let parsed = parse(self);
        self.levels -= 1;
        parsed
    }

    fn either(&mut self) -> Parsed {
        self.deeper(|parser| {
            let mut left = parser.both()?;
            while parser.take_word("or") {
                left = Path::Or(Box::new(left), Box::new(parser.both()?));
            }
            Ok(left)
        })
    }

    fn both(&mut self) -> Parsed {
        let mut left = self.equality()?;
        while self.take_word("and") {
            left = Path::And(Box::new(left), Box::new(self.equality()?));
        }
        Ok(left)
    }

    fn compared(&self, comparison: Comparison, left: Path, right: Path, at: usize) -> Parsed {
        if left.is_nodes() && right.is_nodes() {
            return Err(Wrong::TwoNodeSets { at });
        }
        Ok(Path::Compare(comparison, Box::new(left), Box::new(right)))
    }

    fn equality(&mut self) -> Parsed {
        let mut left = self.order()?;
        loop {
            let at = self.at;
            let comparison = if self.take("=") {
                Comparison::Equal
            } else if self.take("!=") {
                Comparison::NotEqual
            } else {
                return Ok(left);
            };
            let right = self.order()?;
            left = self.compared(comparison, left, right, at)?;
        }
    }

    fn order(&mut self) -> Parsed {
        let mut left = self.sum()?;
        loop {
            let at = self.at;
            let comparison = match self.token {
                Some(Token::Mark("<")) => Comparison::Less,
                Some(Token::Mark("<=")) => Comparison::LessOrEqual,
                Some(Token::Mark(">")) => Comparison::Greater,
                Some(Token::Mark(">=")) => Comparison::GreaterOrEqual,
                _ => return Ok(left),
            };
            self.advance();
            let right = self.sum()?;
            left = self.compared(comparison, left, right, at)?;
        }
    }

    fn sum(&mut self) -> Parsed {
        let mut left = self.product()?;
        loop {
            let operation = if self.take("+") {
                Arithmetic::Add
            } else if self.take("-") {
                Arithmetic::Subtract
            } else {
                return Ok(left);
            };
            left = Path::Arithmetic(operation, Box::new(left), Box::new(self.product()?));
        }
    }

    fn product(&mut self) -> Parsed {
        let mut left = self.negation()?;
        loop {
            let operation = if self.take("*") {
                Arithmetic::Multiply
            } else if self.take_word("div") {
                Arithmetic::Divide
            } else if self.take_word("mod") {
                Arithmetic::Modulo
            } else {
                return Ok(left);
            };
            left = Path::Arithmetic(operation, Box::new(left), Box::new(self.negation()?));
        }
    }

    fn negation(&mut self) -> Parsed {
        if self.take("-") {
            return self.deeper(|parser| Ok(Path::Negate(Box::new(parser.negation()?))));
        }
        self.union()
    }

    fn union(&mut self) -> Parsed {
        let mut left = self.path()?;
        while self.take("|") {
            let right = self.path()?;
            if !left.is_nodes() || !right.is_nodes() {
                return self.wrong();
            }
            left = Path::Union(Box::new(left), Box::new(right));
        }
        Ok(left)
    }

    /// A path, or a value with predicates and steps behind it.
    fn path(&mut self) -> Parsed {
        let from = match self.token.clone() {
            Some(Token::Number(number, digits)) => Path::Number(number, digits),
            Some(Token::Text(text)) => Path::Text(text.to_string()),
            Some(Token::UserVariable(name)) => Path::UserVariable(name.to_ascii_lowercase()),
            Some(Token::Variable(_)) => return Err(Wrong::Variable { at: self.at }),
            Some(Token::Mark("(")) => {
                self.advance();
                let inside = self.either()?;
                self.expect(")")?;
                return self.behind(inside);
            }
            Some(Token::Function(name)) if !is_node_type(name) => {
                let call = self.call(name)?;
                return self.behind(call);
            }
            Some(Token::Mark("/")) => {
                self.advance();
                return if self.begins_step() { self.steps(Path::Root) } else { Ok(Path::Root) };
            }
            Some(Token::Mark("//")) => {
                self.advance();
                return self.steps(all_below(Path::Root));
            }
            _ if self.begins_step() => return self.steps(Path::Here),
            _ => return self.wrong(),
        };
        self.advance();
        Ok(from)
    }

    /// Predicates and steps behind a parenthesis or a call.
    fn behind(&mut self, from: Path) -> Parsed {
        if !from.is_nodes() {
            return Ok(from);
        }
        let from = self.predicates(from)?;
        if self.take("//") {
            return self.steps(all_below(from));
        }
        if self.take("/") { self.steps(from) } else { Ok(from) }
    }

    fn call(&mut self, name: &str) -> Parsed {
        let Some((_, function, least, most)) = FUNCTIONS.iter().find(|(known, ..)| *known == name) else {
            return self.wrong();
        };
        self.advance();
        self.expect("(")?;
        let mut arguments = Vec::new();
        if !self.take(")") {
            loop {
                arguments.push(self.either()?);
                if !self.take(",") {
                    break;
                }
            }
            self.expect(")")?;
        }
        if !(*least..=*most).contains(&arguments.len()) {
            return self.wrong();
        }
        let of_nodes = matches!(function, Function::Count | Function::Sum);
        if of_nodes && !arguments[0].is_nodes() {
            return self.wrong();
        }
        if arguments.is_empty() && *most == 1 {
            arguments.push(Path::Here);
        }
        Ok(Path::Call(*function, arguments))
    }

    fn begins_step(&self) -> bool {
        match self.token {
            Some(Token::Name(_) | Token::Axis(_) | Token::Mark("*" | "." | ".." | "@")) => true,
            Some(Token::Function(name)) => is_node_type(name),
            _ => false,
        }
    }

    fn steps(&mut self, from: Path) -> Parsed {
        let mut path = self.step(from)?;
        loop {
            if self.take("//") {
                path = self.step(all_below(path))?;
            } else if self.take("/") {
                path = self.step(path)?;
            } else {
                return Ok(path);
            }
        }
    }

    fn step(&mut self, from: Path) -> Parsed {
        let axis = match self.token {
            Some(Token::Mark(".")) => {
                self.advance();
                return Ok(from);
            }
            Some(Token::Mark("..")) => {
                self.advance();
                return Ok(Path::Step { from: Box::new(from), axis: Axis::Parent, name: None });
            }
            Some(Token::Mark("@")) => Some(Axis::Attribute),
            Some(Token::Axis(name)) => match axis_named(name) {
                Some(axis) => Some(axis),
                None => return self.wrong(),
            },
            _ => None,
        };
        if axis.is_some() {
            self.advance();
        }
        let axis = axis.unwrap_or(Axis::Child);
        let name = match self.token {
            Some(Token::Mark("*")) => None,
            Some(Token::Name(name)) => Some(name.to_string()),
            // Texts belong to their elements: `a/text()` is `a`.
            Some(Token::Function(name)) if is_node_type(name) => {
                self.advance();
                self.expect("(")?;
                self.expect(")")?;
                return self.predicates(from);
            }
            _ => return self.wrong(),
        };
        self.advance();
        self.predicates(Path::Step { from: Box::new(from), axis, name })
    }

    fn predicates(&mut self, mut from: Path) -> Parsed {
        while self.take("[") {
            let by = self.either()?;
            self.expect("]")?;
            from = Path::Filter { from: Box::new(from), by: Box::new(by) };
        }
        Ok(from)
    }
}

fn all_below(from: Path) -> Path {
    Path::Step { from: Box::new(from), axis: Axis::Descendant { itself: true }, name: None }
}

fn is_node_type(name: &str) -> bool {
    matches!(name, "comment" | "text" | "processing-instruction" | "node")
}

fn axis_named(name: &str) -> Option<Axis> {
    Some(match name {
        "self" => Axis::Itself,
        "child" => Axis::Child,
        "attribute" => Axis::Attribute,
        "parent" => Axis::Parent,
        "ancestor" => Axis::Ancestor { itself: false },
        "ancestor-or-self" => Axis::Ancestor { itself: true },
        "descendant" => Axis::Descendant { itself: false },
        "descendant-or-self" => Axis::Descendant { itself: true },
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_path() {
        for text in
            ["", "/a[", "a b", "a(", "name(a)", "/a/", "following::a", "1 +", "'a", "count(1)", "a | 1", "!", "a]"]
        {
            assert!(matches!(Path::parse(text), Err(Wrong::Syntax { .. })), "{text}");
        }
        assert_eq!(Path::parse("/a[b = c]"), Err(Wrong::TwoNodeSets { at: 5 }));
        assert_eq!(Path::parse("$x"), Err(Wrong::Variable { at: 0 }));
        assert!(Path::parse(&"(".repeat(5000)).is_err());
        assert!(Path::parse(&"-".repeat(5000)).is_err());
        assert!(Path::parse(&"a[".repeat(5000)).is_err());
    }

    #[test]
    fn names_like_operators() {
        assert!(matches!(Path::parse("/div/mod"), Ok(Path::Step { .. })));
        assert!(matches!(Path::parse("2 div 1"), Ok(Path::Arithmetic(Arithmetic::Divide, ..))));
        assert!(matches!(Path::parse("/x:a/@y:b"), Ok(Path::Step { axis: Axis::Attribute, .. })));
    }
}
