//! The syntax tree of generated statements.
//!
//! The generator builds it, [`print`] turns it into SQL, [`visit`] walks it, and the shrinker changes it. It is this
//! crate's own on purpose: the judge shares no code with the parser that it judges. It is much smaller than SQL: an
//! operator or a function is a *form*, a text with places for its arguments (`({0} + {1})`, `SUBSTRING({0}, {1},
//! {2})`), so that a new function is one line in the generator's table and nothing here.
//!
//! Invariant: [`std::fmt::Display`] of a statement is all that a server sees. Two statements with the same text are the
//! same case.

pub mod feature;
pub mod print;
pub mod visit;

/// What kind of value an expression has. The generator asks for expressions by class; the shrinker keeps the class
/// where it can.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    Boolean,
    Integer,
    Decimal,
    Double,
    Text,
    Binary,
    Date,
    Time,
    DateTime,
    Json,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    Literal {
        text: String,
        class: Class,
    },
    /// `table` is empty for a name of the select list (ORDER BY, HAVING) and for the target of an assignment.
    Column {
        table: String,
        name: String,
        class: Class,
    },
    /// An operator, a function or an aggregate.
    Form {
        form: &'static str,
        arguments: Vec<Expr>,
        class: Class,
    },
    /// A form with a place `{Q}` for a query.
    Subquery {
        form: &'static str,
        arguments: Vec<Expr>,
        query: Box<Query>,
        class: Class,
    },
    Window {
        function: Box<Expr>,
        partition: Vec<Expr>,
        order: Vec<OrderKey>,
        frame: String,
        /// By the name [`WINDOW`], which the block defines with the same partition and order.
        named: bool,
    },
}

/// The name of a block's window.
pub const WINDOW: &str = "named_window";

#[derive(Clone, Debug, PartialEq)]
pub struct OrderKey {
    pub expr: Expr,
    pub descending: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    pub with: Vec<Cte>,
    pub body: Body,
    pub order: Vec<OrderKey>,
    /// Rows to pass over, rows to give.
    pub limit: Option<(u64, u64)>,
    /// `FOR UPDATE` and its like, or nothing.
    pub lock: &'static str,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Cte {
    pub name: String,
    pub columns: Vec<String>,
    pub recursive: bool,
    pub query: Query,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    Select(Box<Select>),
    Set { operator: &'static str, left: Box<Query>, right: Box<Query> },
    Values(Vec<Vec<Expr>>),
    Table(String),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Select {
    /// Optimizer hints: the text inside of `/*+ … */`.
    pub hints: String,
    pub distinct: bool,
    pub items: Vec<Item>,
    pub from: Option<From>,
    pub filter: Option<Expr>,
    pub group: Vec<Expr>,
    pub rollup: bool,
    pub having: Option<Expr>,
    /// Partition and order of the named window.
    pub window: Option<(Vec<Expr>, Vec<OrderKey>)>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    pub expr: Expr,
    pub alias: String,
}

#[derive(Clone, Debug, PartialEq)]
pub enum From {
    /// `hint` is the text behind the alias: `USE INDEX (…)`.
    Table {
        name: String,
        alias: String,
        hint: String,
    },
    Derived {
        query: Box<Query>,
        alias: String,
        lateral: bool,
    },
    /// `JOIN`, `LEFT JOIN`, …; without a condition a cross join.
    Join {
        kind: &'static str,
        left: Box<From>,
        right: Box<From>,
        on: Option<Expr>,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    Rows(Vec<Vec<Expr>>),
    Query(Query),
}

#[derive(Clone, Debug, PartialEq)]
pub enum Statement {
    Query(Query),
    /// The query through a view: CREATE VIEW, SELECT, DROP VIEW.
    View {
        query: Query,
        /// Other names for the columns, or none.
        columns: Vec<String>,
        /// Through a second view over the first.
        twice: bool,
    },
    /// A change through a view of one table. The inner statement names the view in the place of the table.
    ThroughView {
        table: String,
        columns: Vec<String>,
        filter: Option<Expr>,
        /// `WITH CHECK OPTION` and its like, or nothing.
        check: &'static str,
        change: Box<Statement>,
    },
    Insert {
        /// `INSERT`, `INSERT IGNORE`, `REPLACE`.
        verb: &'static str,
        table: String,
        columns: Vec<String>,
        source: Source,
        on_duplicate: Vec<(String, Expr)>,
        returning: Vec<Item>,
    },
    Update {
        with: Vec<Cte>,
        ignore: bool,
        from: From,
        set: Vec<(Expr, Expr)>,
        filter: Option<Expr>,
        order: Vec<OrderKey>,
        limit: Option<u64>,
    },
    Delete {
        with: Vec<Cte>,
        ignore: bool,
        /// Aliases whose rows go; empty for a DELETE of one table.
        targets: Vec<String>,
        from: From,
        filter: Option<Expr>,
        order: Vec<OrderKey>,
        limit: Option<u64>,
        returning: Vec<Item>,
    },
}

impl Class {
    /// Numbers, compared and added as numbers.
    pub fn is_number(self) -> bool {
        matches!(self, Class::Boolean | Class::Integer | Class::Decimal | Class::Double)
    }

    /// What the shrinker puts in the place of an expression of this class.
    pub fn simplest(self) -> &'static str {
        match self {
            Class::Boolean | Class::Integer => "1",
            Class::Decimal => "1.0",
            Class::Double => "1e0",
            Class::Text => "'a'",
            Class::Binary => "X'61'",
            Class::Date => "DATE'2020-01-01'",
            Class::Time => "TIME'10:00:00'",
            Class::DateTime => "TIMESTAMP'2020-01-01 10:00:00'",
            Class::Json => "'1'",
        }
    }
}

impl Expr {
    pub fn literal(text: impl Into<String>, class: Class) -> Expr {
        Expr::Literal { text: text.into(), class }
    }

    pub fn form(form: &'static str, class: Class, arguments: Vec<Expr>) -> Expr {
        Expr::Form { form, arguments, class }
    }

    pub fn column(table: &str, name: &str, class: Class) -> Expr {
        Expr::Column { table: table.into(), name: name.into(), class }
    }

    pub fn class(&self) -> Class {
        match self {
            Expr::Literal { class, .. }
            | Expr::Column { class, .. }
            | Expr::Form { class, .. }
            | Expr::Subquery { class, .. } => *class,
            Expr::Window { function, .. } => function.class(),
        }
    }
}

impl Query {
    pub fn of(body: Body) -> Query {
        Query { with: Vec::new(), body, order: Vec::new(), limit: None, lock: "" }
    }

    /// The SELECT whose list names the columns of the result, if there is one.
    pub fn first_select(&self) -> Option<&Select> {
        match &self.body {
            Body::Select(select) => Some(select),
            Body::Set { left, .. } => left.first_select(),
            Body::Values(_) | Body::Table(_) => None,
        }
    }

    /// Names of the columns of the result.
    pub fn names(&self) -> Vec<&str> {
        self.first_select().map_or(Vec::new(), |select| select.items.iter().map(|i| i.alias.as_str()).collect())
    }
}

impl Select {
    pub fn of(items: Vec<Item>) -> Select {
        Select {
            hints: String::new(),
            distinct: false,
            items,
            from: None,
            filter: None,
            group: Vec::new(),
            rollup: false,
            having: None,
            window: None,
        }
    }
}
