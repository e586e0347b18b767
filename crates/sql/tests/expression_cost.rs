//! What the hot path costs: evaluating the conditions of key and range statements allocates nothing, and the normal form of a statement
//! is found in one pass whose buffers are used again. `cargo test -p rauk-sql --release --test expression_cost -- --nocapture` prints times.

use rauk_sql::expr::context::SystemVariables;
use rauk_sql::expr::{Aggregate, BindContext, Columns, Context, Expr, ExprKind, Resolved, Scope, bind};
use rauk_sql::parse::{self, Mode, Normal, normalize};
use rauk_types::{Collation, DataType, Date, Decimal, MysqlError, TypeKind, Value, ValueRef};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;
use std::time::Instant;

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: both calls go to the system's allocator as they are; counting touches nothing of it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATIONS.try_with(|a| a.set(a.get() + 1));
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the pointer came from `alloc` above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

struct NoVariables;

impl SystemVariables for NoVariables {
    fn get(&self, _: parse::statement::Scope, _: &str) -> Result<Value, MysqlError> {
        Ok(Value::Null)
    }
}

const COLUMNS: [(&str, DataType); 5] = [
    ("id", DataType::new(TypeKind::Int)),
    ("name", DataType::varchar(20, Collation::Utf8mb40900AiCi)),
    ("price", DataType::decimal(10, 2)),
    ("day", DataType::new(TypeKind::Date)),
    ("amount", DataType::DOUBLE),
];

struct Row([Value; 5]);

impl Columns for Row {
    fn column(&self, _: usize, column: usize) -> ValueRef<'_> {
        self.0[column].as_ref()
    }
}

struct Names;

impl Scope for Names {
    fn resolve(&mut self, path: &[&str]) -> Result<Resolved, MysqlError> {
        let column = COLUMNS.iter().position(|c| c.0 == path[0]).expect("a column");
        Ok(Resolved::Column { table: 0, column, ty: COLUMNS[column].1, nullable: false })
    }
    fn aggregate(&mut self, _: Aggregate) -> Result<ExprKind, MysqlError> {
        unreachable!("no aggregates here")
    }
    fn inserted_value(&mut self, _: &str) -> Result<Resolved, MysqlError> {
        unreachable!("no VALUES() here")
    }
    fn default_value(&mut self, _: &[&str]) -> Result<Expr, MysqlError> {
        unreachable!("no DEFAULT() here")
    }
}

fn context() -> Context {
    let mut context = Context::new(Arc::new(NoVariables));
    context.parameters = vec![Value::Int(42)];
    context
}

fn bound(sql: &str) -> Expr {
    let parameters = vec![DataType::BIGINT];
    let parsed = parse::parse_expression(sql, Mode::default()).unwrap();
    bind(&parsed, &mut Names, &BindContext { parameters, ..BindContext::default() }).unwrap()
}

fn timed(name: &str, mut work: impl FnMut()) {
    let rounds = if cfg!(debug_assertions) { 100 } else { 200_000 };
    let start = Instant::now();
    (0..rounds).for_each(|_| work());
    println!("{name:60} {:7.0} ns", start.elapsed().as_nanos() as f64 / f64::from(rounds));
}

#[test]
fn conditions_do_not_allocate() {
    let row = Row([
        Value::Int(42),
        Value::from("Muller"),
        Value::Decimal(Decimal::new(1050, 2)),
        Value::Date(Date::new(2024, 2, 29).unwrap()),
        Value::Double(1.5),
    ]);
    let mut context = context();
    for sql in [
        "id = ?",
        "id = ? AND name = 'MÜLLER'",
        "id BETWEEN 1 AND 100",
        "id IN (1, 2, 42)",
        "id IN (1, 2, 3, 4, 5, 6, 7, 8, 9, 42)",
        "name < 'z'",
        "name LIKE 'm%r'",
        "price * 2 > 20.5",
        "day = '2024-02-29'",
        "day BETWEEN '2024-01-01' AND '2024-12-31'",
        "amount + price < 100 OR id <=> ?",
        "id + 1 = 43 AND NOT id = 1",
        "CASE WHEN id > 40 THEN 1 ELSE 0 END",
    ] {
        let expr = bound(sql);
        assert!(expr.eval_bool(&row, &mut context).unwrap(), "{sql}");
        let before = ALLOCATIONS.get();
        for _ in 0..100 {
            expr.eval_bool(&row, &mut context).unwrap();
        }
        assert_eq!(ALLOCATIONS.get() - before, 0, "{sql}");
        timed(sql, || assert!(std::hint::black_box(&expr).eval_bool(&row, &mut context).unwrap()));
    }
}

#[test]
fn the_normal_form_uses_its_buffers_again() {
    let point = "SELECT c FROM sbtest1 WHERE id=12345";
    let mut normal = Normal::default();
    assert!(normalize(point, Mode::default(), &mut normal));
    let before = ALLOCATIONS.get();
    assert!(normalize(point, Mode::default(), &mut normal));
    assert_eq!(ALLOCATIONS.get() - before, 0);
    timed("normal form of a point select", || {
        assert!(normalize(std::hint::black_box(point), Mode::default(), &mut normal))
    });
    let insert = "INSERT INTO sbtest1 (id, k, c, pad) VALUES (0, 5012, '68487932199-96439406143-93774651418', '67847967377-48000963322')";
    timed("normal form of an insert", || {
        assert!(normalize(std::hint::black_box(insert), Mode::default(), &mut normal))
    });
    timed("parsing a point select", || drop(parse::parse(std::hint::black_box(point), Mode::default()).unwrap()));
    timed("parsing an insert", || drop(parse::parse(std::hint::black_box(insert), Mode::default()).unwrap()));
    timed("parsing COMMIT", || drop(parse::parse(std::hint::black_box("COMMIT"), Mode::default()).unwrap()));
    timed("parsing and binding id = ?", || drop(bound(std::hint::black_box("id = ?"))));
}
