//! Reads optimizer hints. They stand in a comment directly behind SELECT, which the lexer passes over; a mistake in them
//! is no error of the statement: what stands before it counts, and a warning tells of the rest.

use super::ast::{Hint, HintArgument, Hints};
use super::lexer::{Kind, Lexer, Mode, Token, unescape, unquote_name};

/// Characters of the text that a warning shows.
const SHOWN: usize = 80;

/// The hints in the text between SELECT and what follows it, which begins on `line`.
pub(super) fn hints(gap: &str, line: usize) -> Hints {
    let Some(text) = gap.trim_start().strip_prefix("/*+").and_then(|rest| rest.split("*/").next()) else {
        return Hints::default();
    };
    let line = line + gap[..gap.find("/*+").unwrap_or(0)].matches('\n').count();
    let mut reader = Reader { text, lexer: Lexer::new(text, Mode::default()), token: None };
    let mut out = Hints::default();
    loop {
        let at = reader.peek();
        match (at.kind, reader.hint()) {
            (Kind::End, _) => return out,
            (_, Some(hint)) => out.list.push(hint),
            (_, None) => {
                let from = (reader.peek().start as usize).min(text.len());
                let near: String = text[from..].trim_end().chars().take(SHOWN).collect();
                out.wrong = Some((format!("{near} */"), line + text[..from].matches('\n').count()));
                return out;
            }
        }
    }
}

struct Reader<'a> {
    text: &'a str,
    lexer: Lexer<'a>,
    token: Option<Token>,
}

impl Reader<'_> {
    fn peek(&mut self) -> Token {
        match self.token {
            Some(token) => token,
            None => {
                let token = self.lexer.next_token();
                self.token = Some(token);
                token
            }
        }
    }

    fn accept(&mut self, kind: Kind) -> Option<String> {
        let token = self.peek();
        if token.kind != kind {
            return None;
        }
        self.token = None;
        Some(token.text(self.text).to_string())
    }

    fn name(&mut self) -> Option<String> {
        match self.accept(Kind::Quoted) {
            Some(quoted) => Some(unquote_name(&quoted)),
            None => self.accept(Kind::Word),
        }
    }

    /// `@block`.
    fn block(&mut self) -> Option<String> {
        let name = self.accept(Kind::UserVariable)?;
        let name = name.trim_start_matches('@');
        Some(if name.starts_with('`') { unquote_name(name) } else { name.to_string() })
    }

    /// A hint; `None`: a mistake at the present token, or the end.
    fn hint(&mut self) -> Option<Hint> {
        let name = self.accept(Kind::Word)?.to_ascii_uppercase();
        let mut hint = Hint { name, block: None, arguments: vec![] };
        // All but some have parentheses.
        if self.accept(Kind::LParen).is_none() {
            return (hint.name == "JOIN_FIXED_ORDER").then_some(hint);
        }
        hint.block = self.block();
        let mut joined = hint.block.is_some();
        loop {
            if self.accept(Kind::RParen).is_some() {
                return Some(hint);
            }
            hint.arguments.push(self.argument(joined && !hint.arguments.is_empty())?);
            joined = self.accept(Kind::Comma).is_none();
        }
    }

    fn argument(&mut self, joined: bool) -> Option<HintArgument> {
        if let Some(number) = self.accept(Kind::Integer) {
            return Some(HintArgument { name: number, block: None, value: None, joined });
        }
        let name = self.name()?;
        let block = self.block();
        let mut value = None;
        if self.accept(Kind::Eq).is_some() {
            value = Some(match self.accept(Kind::String) {
                Some(text) => unescape(&text[1..text.len() - 1], text.chars().next()?, Mode::default()),
                None => {
                    let sign = self.accept(Kind::Minus).unwrap_or_default();
                    let value = self.accept(Kind::Integer).or_else(|| self.accept(Kind::Word))?;
                    format!("{sign}{value}")
                }
            });
        }
        Some(HintArgument { name, block, value, joined })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<String> {
        let hints = hints(text, 1);
        let argument = |a: &HintArgument| {
            let block = a.block.as_ref().map_or(String::new(), |block| format!("@{block}"));
            let value = a.value.as_ref().map_or(String::new(), |value| format!("={value}"));
            format!("{}{}{block}{value}", if a.joined { "+" } else { "" }, a.name)
        };
        let mut out: Vec<String> = hints
            .list
            .iter()
            .map(|hint| {
                let block = hint.block.as_ref().map_or(String::new(), |block| format!("@{block}:"));
                format!("{} {block}{}", hint.name, hint.arguments.iter().map(argument).collect::<Vec<_>>().join(","))
            })
            .collect();
        out.extend(hints.wrong.map(|(near, line)| format!("wrong {line}: {near}")));
        out
    }

    #[test]
    fn hints_are_read() {
        assert_eq!(read(" /*+ INDEX(t a b) no_merge(d) */ "), ["INDEX t,+a,+b", "NO_MERGE d"]);
        assert_eq!(read("/*+ INDEX(t a, b) */"), ["INDEX t,+a,b"]);
        assert_eq!(read("/*+ JOIN_ORDER(@q a, `b c`@r) */"), ["JOIN_ORDER @q:a,b c@r"]);
        assert_eq!(
            read("/*+ SET_VAR(x = 'a b') SET_VAR(y=-5) SET_VAR(z=ON) */"),
            ["SET_VAR x=a b", "SET_VAR y=-5", "SET_VAR z=ON"]
        );
        assert_eq!(read("/*+ MAX_EXECUTION_TIME(100) JOIN_FIXED_ORDER() JOIN_FIXED_ORDER */").len(), 3);
        assert_eq!(read("/* no hint */"), Vec::<String>::new());
        assert_eq!(read("/*+ */"), Vec::<String>::new());
    }

    #[test]
    fn mistakes_are_told_where_they_are() {
        assert_eq!(read("/*+ MERGE(a)\n ( */"), ["MERGE a", "wrong 2: ( */"]);
        assert_eq!(read("/*+ MERGE */"), ["wrong 1:  */"]);
        assert_eq!(read("/*+ MERGE(a */"), ["wrong 1:  */"]);
        assert_eq!(read("/*+ 'x' */"), ["wrong 1: 'x' */"]);
    }
}
