//! Random expressions, calls and windows.

use super::{Choices, NAMES};
use crate::parse::ast::*;
use crate::parse::statement::Scope;

const NUMBERS: &[&str] = &["0", "1", "18446744073709551616", "1.5", ".5", "1.", "1e10", "1.5E-3"];

impl Choices<'_> {
    pub fn leaf(&mut self) -> Expr {
        match self.pick(10) {
            0 => Expr::number(self.one_of(NUMBERS)),
            1 => Expr::Column(self.column_name()),
            2 => Expr::text(self.string()),
            3 => Expr::Literal(self.literal()),
            4 => self.parameter(),
            5 => Expr::UserVariable(self.one_of(&["a", "a.b", "", "1", "with blank", "ba`ck", "a..b", "it's"]).into()),
            6 => Expr::SystemVariable {
                scope: self.one_of(&[Scope::Default, Scope::Session, Scope::Global, Scope::Persist]),
                name: self.one_of(&["version", "cache.size", "key cache.size"]).into(),
            },
            7 => Expr::Default,
            8 => Expr::DefaultOf(self.column_name()),
            _ => Expr::InsertedValue(self.column_name()),
        }
    }

    pub fn literal(&mut self) -> Literal {
        let charset = |c: &mut Self| Introducer::Charset(c.one_of(&["utf8mb4", "binary", "latin1"]).into());
        match self.pick(9) {
            0 => Literal::Null,
            1 => Literal::Boolean(self.flag()),
            2 => {
                let introducer = if self.flag() { Introducer::National } else { charset(self) };
                Literal::Text { value: self.string(), introducer: Some(introducer) }
            }
            3 => Literal::Hex { digits: self.one_of(&["", "4D", "00ff"]).into(), introducer: None },
            4 => Literal::Hex { digits: self.one_of(&["", "4D"]).into(), introducer: Some(charset(self)) },
            5 => Literal::Bits { digits: self.one_of(&["", "0", "101"]).into(), introducer: self.maybe(charset) },
            6 => Literal::Date(self.string()),
            7 => Literal::Time(self.string()),
            _ => Literal::Timestamp(self.string()),
        }
    }

    pub fn boxed(&mut self, depth: usize) -> Box<Expr> {
        Box::new(self.expr(depth))
    }

    pub fn exprs(&mut self, least: usize, depth: usize) -> Vec<Expr> {
        self.some(least, |c| c.expr(depth))
    }

    pub fn expr(&mut self, depth: usize) -> Expr {
        let Some(depth) = depth.checked_sub(1) else { return self.leaf() };
        match self.pick(32) {
            0 => self.leaf(),
            1 => {
                let op = self.one_of(&[UnaryOp::Minus, UnaryOp::Plus, UnaryOp::BitNot, UnaryOp::Not]);
                Expr::Unary { op, operand: self.boxed(depth) }
            }
            2 | 3 => {
                use BinaryOp::*;
                let op = self.one_of(&[
                    Add,
                    Equal,
                    NullSafeEqual,
                    NotEqual,
                    Less,
                    LessOrEqual,
                    Greater,
                    GreaterOrEqual,
                    BitOr,
                    BitAnd,
                    ShiftLeft,
                    ShiftRight,
                    Subtract,
                    Multiply,
                    Divide,
                    IntegerDivide,
                    Modulo,
                    BitXor,
                    Xor,
                ]);
                Expr::binary(op, self.expr(depth), self.expr(depth))
            }
            4 => {
                let op = self.one_of(&[BinaryOp::Add, BinaryOp::Subtract]);
                Expr::binary(op, self.expr(depth), self.interval(depth))
            }
            5 | 6 => self.junction(depth),
            7 => Expr::Is {
                operand: self.boxed(depth),
                test: self.one_of(&[IsTest::Null, IsTest::True, IsTest::False, IsTest::Unknown]),
                negated: self.flag(),
            },
            8 => Expr::Between {
                operand: self.boxed(depth),
                low: self.boxed(depth),
                high: self.boxed(depth),
                negated: self.flag(),
            },
            9 => {
                let operand = self.boxed(depth);
                let mut list = self.exprs(1, depth);
                if let [Expr::Subquery(_)] = &list[..] {
                    // It would be the query of IN.
                    list.push(self.leaf());
                }
                Expr::InList { operand, list, negated: self.flag() }
            }
            10 => {
                Expr::InQuery { operand: self.boxed(depth), query: Box::new(self.query(depth)), negated: self.flag() }
            }
            11 => Expr::Like {
                operand: self.boxed(depth),
                pattern: self.boxed(depth),
                escape: self.maybe(|c| c.boxed(depth)),
                negated: self.flag(),
            },
            12 => Expr::Regexp { operand: self.boxed(depth), pattern: self.boxed(depth), negated: self.flag() },
            13 => Expr::MemberOf { value: self.boxed(depth), array: self.boxed(depth) },
            14 => Expr::JsonPath { column: self.boxed(depth), path: self.string(), unquote: self.flag() },
            15 => Expr::Row(self.exprs(1, depth)),
            16 => Expr::Subquery(Box::new(self.query(depth))),
            17 => Expr::Exists(Box::new(self.query(depth))),
            18 => {
                use BinaryOp::*;
                Expr::Quantified {
                    left: self.boxed(depth),
                    op: self.one_of(&[Equal, NullSafeEqual, NotEqual, Less, LessOrEqual, Greater, GreaterOrEqual]),
                    quantifier: self.one_of(&[Quantifier::Any, Quantifier::All]),
                    query: Box::new(self.query(depth)),
                }
            }
            19 => Expr::Case {
                operand: self.maybe(|c| c.boxed(depth)),
                branches: self.some(1, |c| (c.expr(depth), c.expr(depth))),
                otherwise: self.maybe(|c| c.boxed(depth)),
            },
            20 => {
                let (target, operand) = (self.cast_type(), self.boxed(depth));
                Expr::Cast { operand, target: if self.flag() { target } else { CastType::Array(Box::new(target)) } }
            }
            21 => Expr::ConvertUsing { operand: self.boxed(depth), charset: self.charset() },
            22 => Expr::Collate { operand: self.boxed(depth), collation: self.charset() },
            23 => Expr::Extract { unit: self.unit(), operand: self.boxed(depth) },
            24 if self.flag() => Expr::WeightString {
                operand: self.boxed(depth),
                binary: self.flag(),
                length: 1 + self.pick(300) as u32,
            },
            24 => Expr::Trim {
                side: self.one_of(&[TrimSide::Both, TrimSide::Leading, TrimSide::Trailing]),
                what: self.maybe(|c| c.boxed(depth)),
                operand: self.boxed(depth),
            },
            25 => Expr::TimestampAdd { unit: self.unit(), amount: self.boxed(depth), date: self.boxed(depth) },
            26 => Expr::TimestampDiff { unit: self.unit(), from: self.boxed(depth), to: self.boxed(depth) },
            27 => Expr::Match {
                columns: self.some(1, Self::column_name),
                against: self.boxed(depth),
                mode: self.one_of(&[
                    MatchMode::Natural,
                    MatchMode::NaturalWithExpansion,
                    MatchMode::Boolean,
                    MatchMode::Expansion,
                ]),
            },
            28 => Expr::AssignVariable { name: self.name(), value: self.boxed(depth) },
            _ => Expr::Call(Box::new(self.call(depth))),
        }
    }

    /// Operands of AND or OR, in the shape that the parser gives them.
    pub fn junction(&mut self, depth: usize) -> Expr {
        let op = self.one_of(&[BinaryOp::And, BinaryOp::Or]);
        let count = 2 + self.pick(6);
        let mut trees: Vec<(Expr, usize)> = Vec::new();
        for _ in 0..count {
            let operand = match self.expr(depth) {
                same @ Expr::Binary { op: other, .. } if other == op => {
                    Expr::Is { operand: Box::new(same), test: IsTest::True, negated: false }
                }
                operand => operand,
            };
            let mut tree = (operand, 1);
            while let Some((left, size)) = trees.pop_if(|(_, size)| *size == tree.1) {
                tree = (Expr::binary(op, left, tree.0), 2 * size);
            }
            trees.push(tree);
        }
        let last = trees.pop().unwrap().0;
        trees.into_iter().rev().fold(last, |tree, (left, _)| Expr::binary(op, left, tree))
    }

    pub fn interval(&mut self, depth: usize) -> Expr {
        Expr::Interval { amount: self.boxed(depth), unit: self.unit() }
    }

    pub fn unit(&mut self) -> Unit {
        use Unit::*;
        self.one_of(&[
            Microsecond,
            Second,
            Minute,
            Hour,
            Day,
            Week,
            Month,
            Quarter,
            Year,
            SecondMicrosecond,
            MinuteMicrosecond,
            MinuteSecond,
            HourMicrosecond,
            HourSecond,
            HourMinute,
            DayMicrosecond,
            DaySecond,
            DayMinute,
            DayHour,
            YearMonth,
        ])
    }

    pub fn charset(&mut self) -> String {
        self.one_of(&["utf8mb4", "utf8mb4_bin", "binary", "latin1", "Or der", "select"]).into()
    }

    pub fn cast_type(&mut self) -> CastType {
        match self.pick(13) {
            0 => CastType::Signed,
            1 => CastType::Unsigned,
            2 => CastType::Char {
                length: self.maybe(Self::number),
                charset: self.maybe(|c| c.one_of(&["utf8mb4", "latin1"]).into()),
            },
            3 => CastType::Binary(self.maybe(Self::number)),
            4 => CastType::Date,
            5 => CastType::DateTime(self.maybe(Self::number)),
            6 => CastType::Time(self.maybe(Self::number)),
            7 => {
                let precision = self.maybe(Self::number);
                let scale = if precision.is_some() { self.maybe(Self::number) } else { None };
                CastType::Decimal { precision, scale }
            }
            8 => CastType::Float(self.maybe(Self::number)),
            9 => CastType::Double,
            10 => CastType::Json,
            11 => CastType::Geometry(self.one_of(&rauk_types::GeometryKind::ALL[1..])),
            _ => CastType::Year,
        }
    }

    pub fn call(&mut self, depth: usize) -> Call {
        let call = |name: &str, items| match Expr::call(name, items) {
            Expr::Call(call) => *call,
            _ => unreachable!(),
        };
        match self.pick(10) {
            // Names that the parser gives in upper case, since it has a rule for each.
            0 => call("SUBSTRING", self.exprs(1, depth)),
            1 => call("CHAR", self.exprs(1, depth)),
            2 => call("INTERVAL", self.exprs(2, depth)),
            3 => {
                let kind = Expr::text(self.one_of(&["DATE", "TIME", "DATETIME", "TIMESTAMP"]));
                call("GET_FORMAT", vec![kind, self.expr(depth)])
            }
            4 => Call { arguments: Arguments::Star, over: self.over(depth), ..call("count", vec![]) },
            5 => {
                let arguments = Arguments::List { distinct: self.flag(), items: self.exprs(1, depth) };
                let order_by = self.order_by(depth);
                Call { arguments, order_by, separator: self.maybe(Self::string), ..call("group_concat", vec![]) }
            }
            6 => {
                let name = self.one_of(&["nth_value", "lag", "first_value"]);
                let from_last = name == "nth_value" && self.flag();
                let nulls = self.maybe(|c| c.one_of(&[NullTreatment::Respect, NullTreatment::Ignore]));
                let items = self.exprs(1, depth);
                Call { from_last, nulls, over: self.over(depth), ..call(name, items) }
            }
            // Names that need quotes.
            7 => call(self.one_of(&["My Func", "cast", "select", "Exists", "any", "trim"]), self.exprs(0, depth)),
            8 => Call { database: Some(self.name()), ..call(self.one_of(NAMES), self.exprs(0, depth)) },
            _ => {
                let name = self.one_of(&["ifnull", "concat", "if", "left", "mod", "database", "now", "date", "x", "n"]);
                call(name, self.exprs(0, depth))
            }
        }
    }

    pub fn order_by(&mut self, depth: usize) -> Vec<OrderItem> {
        self.some(0, |c| OrderItem { expr: c.expr(depth), descending: c.flag() })
    }

    // Windows

    pub fn over(&mut self, depth: usize) -> Option<Window> {
        self.maybe(|c| if c.flag() { Window::Named(c.name()) } else { Window::Spec(Box::new(c.window_spec(depth))) })
    }

    pub fn window_spec(&mut self, depth: usize) -> WindowSpec {
        WindowSpec {
            base: self.maybe(Self::name),
            partition_by: self.exprs(0, depth),
            order_by: self.order_by(depth),
            frame: self.maybe(|c| Frame {
                unit: c.one_of(&[FrameUnit::Rows, FrameUnit::Range]),
                start: c.frame_bound(depth),
                end: c.maybe(|c| c.frame_bound(depth)),
            }),
        }
    }

    pub fn frame_bound(&mut self, depth: usize) -> FrameBound {
        let kind = self.pick(5);
        if kind < 3 {
            return [FrameBound::CurrentRow, FrameBound::UnboundedPreceding, FrameBound::UnboundedFollowing][kind]
                .clone();
        }
        let distance = match self.pick(3) {
            0 => Expr::number("1"),
            1 => self.parameter(),
            _ => self.interval(depth),
        };
        if kind == 3 { FrameBound::Preceding(distance) } else { FrameBound::Following(distance) }
    }
}
