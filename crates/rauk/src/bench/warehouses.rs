//! Transactions of one warehouse: tables, rows, and what a terminal does.
//!
//! After TPC-C's New-Order (order lines, stock, the district's next number) and Payment (sums in warehouse, district, customer; history), half of each. The tables lie together by warehouse
//! (`PARTITION BY KEY (w_id)`), or have the specification's foreign keys, or only the indexes that these need ([`Shape`]). Each warehouse has one terminal with a connection of its own, so that no transaction waits for another unless it was told to touch a second warehouse. It is not TPC-C.
//!
//! # What is checked
//! [`check`] adds up after a run: orders taken are those acknowledged; warehouses' sums are those of their districts and those of the payments acknowledged; each order has its lines. A transaction
//! whose end is not known (the connection was lost in its commit) fails the run: on servers that nobody kills there is none.

use crate::bench::servers::{again_on_conflict, is_conflict};
use mysql::prelude::Queryable;
use mysql::{Conn, Params, params};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::time::{Duration, Instant};

pub const DISTRICTS: u32 = 10;
const CUSTOMERS: u32 = 30;
const ITEMS: u32 = 1000;
/// Rows of one INSERT while loading.
const BATCH: usize = 500;
/// A transaction that conflicts is begun again so many times.
const ATTEMPTS: u32 = 100;

const TABLES: &[(&str, &str)] = &[
    ("warehouse", "w_id INT PRIMARY KEY, w_ytd BIGINT NOT NULL, w_name VARCHAR(40) NOT NULL"),
    (
        "district",
        "w_id INT, d_id INT, d_next_o_id INT NOT NULL, d_ytd BIGINT NOT NULL, d_name VARCHAR(40) NOT NULL, PRIMARY KEY (w_id, d_id)",
    ),
    (
        "customer",
        "w_id INT, d_id INT, c_id INT, c_balance BIGINT NOT NULL, c_payments INT NOT NULL, c_data VARCHAR(250) NOT NULL, PRIMARY KEY (w_id, d_id, c_id)",
    ),
    (
        "stock",
        "w_id INT, i_id INT, s_quantity INT NOT NULL, s_ytd BIGINT NOT NULL, s_data VARCHAR(50) NOT NULL, PRIMARY KEY (w_id, i_id)",
    ),
    ("orders", "w_id INT, d_id INT, o_id INT, c_id INT NOT NULL, o_lines INT NOT NULL, PRIMARY KEY (w_id, d_id, o_id)"),
    (
        "order_line",
        "w_id INT, d_id INT, o_id INT, ol_number INT, i_id INT NOT NULL, supply_w_id INT NOT NULL, quantity INT NOT NULL, amount BIGINT NOT NULL, PRIMARY KEY (w_id, d_id, o_id, ol_number)",
    ),
    (
        "history",
        "w_id INT, h_id BIGINT, d_id INT NOT NULL, c_w_id INT NOT NULL, c_id INT NOT NULL, amount BIGINT NOT NULL, PRIMARY KEY (w_id, h_id)",
    ),
];

/// How the tables are declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// `PARTITION BY KEY (w_id)`.
    Partitioned,
    /// With the indexes that foreign keys need.
    Indexed,
    /// With foreign keys.
    ForeignKeys,
}

/// Table, columns, table and columns that they refer to. An index begins with the columns of each.
const FOREIGN_KEYS: &[(&str, &str, &str, &str)] = &[
    ("district", "w_id", "warehouse", "w_id"),
    ("customer", "w_id, d_id", "district", "w_id, d_id"),
    ("stock", "w_id", "warehouse", "w_id"),
    ("orders", "w_id, d_id, c_id", "customer", "w_id, d_id, c_id"),
    ("order_line", "w_id, d_id, o_id", "orders", "w_id, d_id, o_id"),
    ("order_line", "supply_w_id, i_id", "stock", "w_id, i_id"),
    ("history", "w_id, d_id", "district", "w_id, d_id"),
];

impl Shape {
    /// What stands behind the columns of a table, and behind its parenthesis.
    fn clauses(self, table: &str) -> (String, &'static str) {
        if self == Shape::Partitioned {
            return (String::new(), " PARTITION BY KEY (w_id)");
        }
        let mut clauses = String::new();
        for (_, columns, parent, parents) in FOREIGN_KEYS.iter().filter(|(of, ..)| *of == table) {
            clauses.push_str(&format!(", KEY ({columns})"));
            if self == Shape::ForeignKeys {
                clauses.push_str(&format!(", FOREIGN KEY ({columns}) REFERENCES trade.{parent} ({parents})"));
            }
        }
        (clauses, "")
    }
}

fn shown(error: mysql::Error) -> String {
    error.to_string()
}

/// Makes the database `trade`, and rows for so many warehouses.
pub fn load(connection: &mut Conn, warehouses: u32, shape: Shape) -> Result<(), String> {
    connection.query_drop("CREATE DATABASE trade").map_err(shown)?;
    for (name, columns) in TABLES {
        let (clauses, behind) = shape.clauses(name);
        let statement = format!("CREATE TABLE trade.{name} ({columns}{clauses}){behind}");
        connection.query_drop(statement).map_err(shown)?;
    }
    let filler = "x".repeat(200);
    let all = 1..=warehouses;
    let districts = all.clone().flat_map(|w| (1..=DISTRICTS).map(move |d| (w, d)));
    insert(connection, "warehouse", all.clone().map(|w| format!("({w}, 0, 'warehouse {w}')")))?;
    insert(connection, "district", districts.clone().map(|(w, d)| format!("({w}, {d}, 1, 0, 'district {d}')")))?;
    let customers = districts.flat_map(|(w, d)| (1..=CUSTOMERS).map(move |c| (w, d, c)));
    insert(connection, "customer", customers.map(|(w, d, c)| format!("({w}, {d}, {c}, 0, 0, '{filler}')")))?;
    let stock = all.flat_map(|w| (1..=ITEMS).map(move |i| (w, i)));
    insert(connection, "stock", stock.map(|(w, i)| format!("({w}, {i}, 50, 0, '{}')", &filler[..40])))
}

fn insert(connection: &mut Conn, table: &str, rows: impl Iterator<Item = String>) -> Result<(), String> {
    let mut rows = rows.peekable();
    while rows.peek().is_some() {
        let values: Vec<String> = rows.by_ref().take(BATCH).collect();
        let statement = format!("INSERT INTO trade.{table} VALUES {}", values.join(","));
        again_on_conflict(connection, &statement).map_err(|e| format!("loading {table}: {e}"))?;
    }
    Ok(())
}

/// The partition that holds a warehouse.
pub fn partition(connection: &mut Conn, warehouse: u32) -> Result<usize, String> {
    let statement = format!("EXPLAIN SELECT w_ytd FROM trade.warehouse WHERE w_id = {warehouse}");
    let row: mysql::Row = connection.query_first(statement).map_err(shown)?.ok_or("EXPLAIN gave nothing")?;
    let name: Option<String> = row.get("partitions");
    let number = name.as_deref().and_then(|name| name.strip_prefix('p')?.parse().ok());
    number.ok_or_else(|| format!("EXPLAIN names no single partition for a warehouse: {name:?}"))
}

/// What terminals have had acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    pub orders: u64,
    pub lines: u64,
    pub payments: u64,
    pub paid: u64,
    /// Begun again after a conflict.
    pub retries: u64,
}

impl Done {
    pub fn transactions(&self) -> u64 {
        self.orders + self.payments
    }

    pub fn add(&mut self, other: Done) {
        self.orders += other.orders;
        self.lines += other.lines;
        self.payments += other.payments;
        self.paid += other.paid;
        self.retries += other.retries;
    }
}

/// One warehouse's terminal.
pub struct Terminal {
    connection: Conn,
    warehouse: u32,
    warehouses: u32,
    /// Per cent of its transactions.
    remote: u32,
    random: SmallRng,
    /// Numbers of history rows; the next terminal of this warehouse begins behind them.
    pub next_history: u64,
    pub done: Done,
}

impl Terminal {
    pub fn new(
        mut connection: Conn,
        warehouse: u32,
        warehouses: u32,
        remote: u32,
        next_history: u64,
    ) -> Result<Terminal, String> {
        connection.query_drop("USE trade").map_err(shown)?;
        let random = SmallRng::seed_from_u64(u64::from(warehouse) << 32 | next_history);
        Ok(Terminal { connection, warehouse, warehouses, remote, random, next_history, done: Done::default() })
    }

    /// Another warehouse, if this transaction is to touch one; else its own.
    fn supplier(&mut self) -> u32 {
        if self.warehouses > 1 && self.random.random_range(0..100) < self.remote {
            let other = self.random.random_range(1..self.warehouses);
            other + u32::from(other >= self.warehouse)
        } else {
            self.warehouse
        }
    }

    /// One transaction, begun again until it is committed.
    pub fn transaction(&mut self) -> Result<(), String> {
        let order = self.random.random_bool(0.5);
        let other = self.supplier();
        let seed: u64 = self.random.random();
        for _ in 0..ATTEMPTS {
            let mut random = SmallRng::seed_from_u64(seed);
            let result = if order { self.order(other, &mut random) } else { self.payment(other, &mut random) };
            match result {
                Ok(done) => {
                    self.done.add(done);
                    return Ok(());
                }
                Err(error) if is_conflict(&error) => {
                    self.done.retries += 1;
                    self.connection.query_drop("ROLLBACK").map_err(shown)?;
                }
                Err(error) => return Err(format!("a transaction of warehouse {}: {error}", self.warehouse)),
            }
        }
        Err(format!("a transaction of warehouse {} conflicted {ATTEMPTS} times", self.warehouse))
    }

    fn order(&mut self, other: u32, random: &mut SmallRng) -> Result<Done, mysql::Error> {
        let (w, d) = (self.warehouse, random.random_range(1..=DISTRICTS));
        let c = random.random_range(1..=CUSTOMERS);
        // In one order everywhere, so that terminals cannot wait for each other in a circle.
        let mut items: Vec<u32> = (0..random.random_range(5..=15)).map(|_| random.random_range(1..=ITEMS)).collect();
        items.sort_unstable();
        items.dedup();
        let connection = &mut self.connection;
        connection.query_drop("BEGIN")?;
        let number: u32 = connection
            .exec_first("SELECT d_next_o_id FROM district WHERE w_id = ? AND d_id = ? FOR UPDATE", (w, d))?
            .ok_or_else(|| missing("district"))?;
        connection
            .exec_drop("UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE w_id = ? AND d_id = ?", (w, d))?;
        let _: i64 = connection
            .exec_first("SELECT c_balance FROM customer WHERE w_id = ? AND d_id = ? AND c_id = ?", (w, d, c))?
            .ok_or_else(|| missing("customer"))?;
        connection.exec_drop("INSERT INTO orders VALUES (?, ?, ?, ?, ?)", (w, d, number, c, items.len()))?;
        for (at, item) in items.iter().enumerate() {
            // The first line is the other warehouse's.
            let supplier = if at == 0 { other } else { w };
            let quantity = random.random_range(1..=10);
            let left: i32 = connection
                .exec_first("SELECT s_quantity FROM stock WHERE w_id = ? AND i_id = ? FOR UPDATE", (supplier, item))?
                .ok_or_else(|| missing("stock"))?;
            let left = if left >= quantity + 10 { left - quantity } else { left - quantity + 91 };
            connection.exec_drop(
                "UPDATE stock SET s_quantity = ?, s_ytd = s_ytd + ? WHERE w_id = ? AND i_id = ?",
                (left, quantity, supplier, item),
            )?;
            let line: Params = params! {
                "w" => w, "d" => d, "o" => number, "n" => at + 1, "i" => item, "s" => supplier, "q" => quantity,
                "a" => i64::from(quantity) * i64::from(*item),
            };
            connection.exec_drop("INSERT INTO order_line VALUES (:w, :d, :o, :n, :i, :s, :q, :a)", line)?;
        }
        connection.query_drop("COMMIT")?;
        Ok(Done { orders: 1, lines: items.len() as u64, ..Done::default() })
    }

    fn payment(&mut self, other: u32, random: &mut SmallRng) -> Result<Done, mysql::Error> {
        let (w, d) = (self.warehouse, random.random_range(1..=DISTRICTS));
        let (customer_d, c) = (random.random_range(1..=DISTRICTS), random.random_range(1..=CUSTOMERS));
        let amount = random.random_range(1..=5000i64);
        let connection = &mut self.connection;
        connection.query_drop("BEGIN")?;
        connection.exec_drop("UPDATE warehouse SET w_ytd = w_ytd + ? WHERE w_id = ?", (amount, w))?;
        connection.exec_drop("UPDATE district SET d_ytd = d_ytd + ? WHERE w_id = ? AND d_id = ?", (amount, w, d))?;
        connection.exec_drop(
            "UPDATE customer SET c_balance = c_balance - ?, c_payments = c_payments + 1 WHERE w_id = ? AND d_id = ? AND c_id = ?",
            (amount, other, customer_d, c),
        )?;
        let number = self.next_history;
        connection.exec_drop("INSERT INTO history VALUES (?, ?, ?, ?, ?, ?)", (w, number, d, other, c, amount))?;
        connection.query_drop("COMMIT")?;
        self.next_history += 1;
        Ok(Done { payments: 1, paid: amount as u64, ..Done::default() })
    }
}

fn missing(table: &str) -> mysql::Error {
    mysql::Error::IoError(std::io::Error::other(format!("a row of {table} is not there")))
}

/// The terminals of a thread in turn, until the time is over.
pub fn work(terminals: &mut [Terminal], duration: Duration) -> Result<(), String> {
    let end = Instant::now() + duration;
    loop {
        for terminal in terminals.iter_mut() {
            if Instant::now() >= end {
                return Ok(());
            }
            terminal.transaction()?;
        }
    }
}

/// Compares what is there with what was acknowledged since the tables were loaded.
pub fn check(connection: &mut Conn, done: &Done) -> Result<(), String> {
    let mut one = |statement: &str| -> Result<u64, String> {
        let value: Option<Option<u64>> = connection.query_first(statement).map_err(shown)?;
        Ok(value.flatten().unwrap_or(0))
    };
    let found = [
        ("orders", one("SELECT COUNT(*) FROM trade.orders")?, done.orders),
        (
            "numbers given to orders",
            one("SELECT CAST(SUM(d_next_o_id - 1) AS UNSIGNED) FROM trade.district")?,
            done.orders,
        ),
        ("order lines", one("SELECT COUNT(*) FROM trade.order_line")?, done.lines),
        ("lines that orders tell of", one("SELECT CAST(SUM(o_lines) AS UNSIGNED) FROM trade.orders")?, done.lines),
        ("payments", one("SELECT COUNT(*) FROM trade.history")?, done.payments),
        ("payments of customers", one("SELECT CAST(SUM(c_payments) AS UNSIGNED) FROM trade.customer")?, done.payments),
        ("paid, by warehouse", one("SELECT CAST(SUM(w_ytd) AS UNSIGNED) FROM trade.warehouse")?, done.paid),
        ("paid, by district", one("SELECT CAST(SUM(d_ytd) AS UNSIGNED) FROM trade.district")?, done.paid),
        ("paid, by history", one("SELECT CAST(SUM(amount) AS UNSIGNED) FROM trade.history")?, done.paid),
    ];
    match found.iter().find(|(_, is, wanted)| is != wanted) {
        Some((what, is, wanted)) => Err(format!("wrong: {what}: {wanted} were acknowledged and {is} are there")),
        None => Ok(()),
    }
}
