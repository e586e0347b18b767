//! TPC-H's eight tables after its specification (4.2.3): definitions and rows.
//!
//! Keys, dates, prices and words are distributed as the specification says: order keys are sparse (8 of each 32), a third
//! of the customers has no orders, the suppliers of a part are spread over all suppliers, prices follow part keys,
//! statuses follow dates. Numbers and texts are not those of the specification's own program, so answers are compared
//! between servers and not with its reference answers.
//!
//! Beside the primary keys there is an index on every foreign key. Both servers have the same ones.

use super::random::Random;
use super::words::{COLORS, CONTAINERS, INSTRUCTIONS, MODES, NATIONS, PRIORITIES, REGIONS, SEGMENTS, TYPES, Text};
use rauk_types::datetime::Date;
use std::fmt::Write;

pub const DEFINITIONS: &[&str] = &[
    "CREATE TABLE region (r_regionkey INT NOT NULL PRIMARY KEY, r_name CHAR(25) NOT NULL, r_comment VARCHAR(152))",
    "CREATE TABLE nation (n_nationkey INT NOT NULL PRIMARY KEY, n_name CHAR(25) NOT NULL, n_regionkey INT NOT NULL, \
     n_comment VARCHAR(152), KEY (n_regionkey))",
    "CREATE TABLE supplier (s_suppkey INT NOT NULL PRIMARY KEY, s_name CHAR(25) NOT NULL, s_address VARCHAR(40) NOT NULL, \
     s_nationkey INT NOT NULL, s_phone CHAR(15) NOT NULL, s_acctbal DECIMAL(15,2) NOT NULL, \
     s_comment VARCHAR(101) NOT NULL, KEY (s_nationkey))",
    "CREATE TABLE part (p_partkey INT NOT NULL PRIMARY KEY, p_name VARCHAR(55) NOT NULL, p_mfgr CHAR(25) NOT NULL, \
     p_brand CHAR(10) NOT NULL, p_type VARCHAR(25) NOT NULL, p_size INT NOT NULL, p_container CHAR(10) NOT NULL, \
     p_retailprice DECIMAL(15,2) NOT NULL, p_comment VARCHAR(23) NOT NULL)",
    "CREATE TABLE partsupp (ps_partkey INT NOT NULL, ps_suppkey INT NOT NULL, ps_availqty INT NOT NULL, \
     ps_supplycost DECIMAL(15,2) NOT NULL, ps_comment VARCHAR(199) NOT NULL, PRIMARY KEY (ps_partkey, ps_suppkey), \
     KEY (ps_suppkey))",
    "CREATE TABLE customer (c_custkey INT NOT NULL PRIMARY KEY, c_name VARCHAR(25) NOT NULL, \
     c_address VARCHAR(40) NOT NULL, c_nationkey INT NOT NULL, c_phone CHAR(15) NOT NULL, \
     c_acctbal DECIMAL(15,2) NOT NULL, c_mktsegment CHAR(10) NOT NULL, c_comment VARCHAR(117) NOT NULL, \
     KEY (c_nationkey))",
    "CREATE TABLE orders (o_orderkey INT NOT NULL PRIMARY KEY, o_custkey INT NOT NULL, o_orderstatus CHAR(1) NOT NULL, \
     o_totalprice DECIMAL(15,2) NOT NULL, o_orderdate DATE NOT NULL, o_orderpriority CHAR(15) NOT NULL, \
     o_clerk CHAR(15) NOT NULL, o_shippriority INT NOT NULL, o_comment VARCHAR(79) NOT NULL, KEY (o_custkey))",
    "CREATE TABLE lineitem (l_orderkey INT NOT NULL, l_partkey INT NOT NULL, l_suppkey INT NOT NULL, \
     l_linenumber INT NOT NULL, l_quantity DECIMAL(15,2) NOT NULL, l_extendedprice DECIMAL(15,2) NOT NULL, \
     l_discount DECIMAL(15,2) NOT NULL, l_tax DECIMAL(15,2) NOT NULL, l_returnflag CHAR(1) NOT NULL, \
     l_linestatus CHAR(1) NOT NULL, l_shipdate DATE NOT NULL, l_commitdate DATE NOT NULL, l_receiptdate DATE NOT NULL, \
     l_shipinstruct CHAR(25) NOT NULL, l_shipmode CHAR(10) NOT NULL, l_comment VARCHAR(44) NOT NULL, \
     PRIMARY KEY (l_orderkey, l_linenumber), KEY (l_partkey, l_suppkey), KEY (l_suppkey))",
];

pub const TABLES: [&str; 8] = ["region", "nation", "supplier", "part", "partsupp", "customer", "orders", "lineitem"];

/// TO_DAYS('1970-01-01').
const DAYS_BEFORE_1970: i64 = 719_528;
/// 1992-01-01, in days since 1970.
const FIRST_DAY: i64 = 8035;
/// The last day of an order: 151 days before the end of 1998.
const LAST_ORDER: i64 = FIRST_DAY + 2405;
/// 1995-06-17: what is later is yet to be delivered.
const TODAY: i64 = 9298;

/// A row goes to `take` as the values of an INSERT, in parentheses, with the number of its table in [`TABLES`].
pub fn generate(scale: f64, take: &mut dyn FnMut(usize, &str) -> Result<(), String>) -> Result<(), String> {
    let mut random = Random::new(19_920_101);
    let text = Text::new(&mut random);
    let mut generator = Generator { sizes: Sizes::of(scale), random, text, row: String::new() };
    generator.places(take)?;
    generator.suppliers(take)?;
    generator.parts(take)?;
    generator.customers(take)?;
    generator.orders(take)
}

#[derive(Clone, Copy, Debug)]
struct Sizes {
    suppliers: i64,
    parts: i64,
    customers: i64,
    orders: i64,
    clerks: i64,
}

impl Sizes {
    fn of(scale: f64) -> Sizes {
        let rows = |per_scale: f64, least: i64| ((per_scale * scale).round() as i64).max(least);
        Sizes {
            suppliers: rows(1e4, 4),
            parts: rows(2e5, 20),
            customers: rows(1.5e5, 15),
            orders: rows(1.5e6, 15),
            clerks: rows(1e3, 1),
        }
    }

    /// The supplier of this number (0 to 3) of a part. The four differ, at small scales too.
    fn supplier_of(&self, part: i64, number: i64) -> i64 {
        let count = self.suppliers;
        let wanted = count / 4 + (part - 1) / count;
        let differ = (1..4).all(|n| (n * wanted) % count != 0);
        let step = if differ { wanted } else { count / 4 };
        (part + number * step) % count + 1
    }
}

/// In hundredths.
fn retail_price(part: i64) -> i64 {
    90_000 + (part / 10) % 20_001 + 100 * (part % 1_000)
}

struct Generator {
    sizes: Sizes,
    random: Random,
    text: Text,
    row: String,
}

type Take<'t> = &'t mut dyn FnMut(usize, &str) -> Result<(), String>;

impl Generator {
    fn integer(&mut self, value: i64) {
        write!(self.row, "{value},").expect("a String takes all");
    }

    fn hundredths(&mut self, value: i64) {
        let sign = if value < 0 { "-" } else { "" };
        write!(self.row, "{sign}{}.{:02},", value.abs() / 100, value.abs() % 100).expect("a String takes all");
    }

    /// No word of ours has a quote or a backslash.
    fn word(&mut self, value: &str) {
        write!(self.row, "'{value}',").expect("a String takes all");
    }

    fn date(&mut self, day: i64) {
        let text = date_text(day);
        self.word(&text);
    }

    fn comment(&mut self, least: usize, most: usize) {
        self.row.push('\'');
        self.row.push_str(self.text.piece(&mut self.random, least, most));
        self.row.push_str("',");
    }

    /// Random letters and digits.
    fn address(&mut self) {
        const LETTERS: &[u8] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ, ";
        self.row.push('\'');
        for _ in 0..self.random.between(10, 40) {
            let at = self.random.between(0, LETTERS.len() as i64 - 1) as usize;
            self.row.push(LETTERS[at].into());
        }
        self.row.push_str("',");
    }

    fn phone(&mut self, nation: i64) {
        let random = &mut self.random;
        let parts = (random.between(100, 999), random.between(100, 999), random.between(1000, 9999));
        self.word(&format!("{}-{}-{}-{}", nation + 10, parts.0, parts.1, parts.2));
    }

    fn begin(&mut self) {
        self.row.clear();
        self.row.push('(');
    }

    fn end(&mut self, table: &str, take: Take<'_>) -> Result<(), String> {
        let number = TABLES.iter().position(|t| *t == table).expect("a table of TPC-H");
        self.row.pop();
        self.row.push(')');
        take(number, &self.row)
    }

    fn places(&mut self, take: Take<'_>) -> Result<(), String> {
        for (key, name) in REGIONS.iter().enumerate() {
            self.begin();
            self.integer(key as i64);
            self.word(name);
            self.comment(31, 115);
            self.end("region", take)?;
        }
        for (key, (name, region)) in NATIONS.iter().enumerate() {
            self.begin();
            self.integer(key as i64);
            self.word(name);
            self.integer(*region as i64);
            self.comment(31, 114);
            self.end("nation", take)?;
        }
        Ok(())
    }

    fn suppliers(&mut self, take: Take<'_>) -> Result<(), String> {
        for key in 1..=self.sizes.suppliers {
            let nation = self.random.between(0, 24);
            self.begin();
            self.integer(key);
            self.word(&format!("Supplier#{key:09}"));
            self.address();
            self.integer(nation);
            self.phone(nation);
            let balance = self.random.between(-99_999, 999_999);
            self.hundredths(balance);
            let mut comment = self.text.piece(&mut self.random, 25, 100).to_string();
            // Of 10 000 suppliers customers complain about five and recommend five.
            let opinion = match self.random.between(0, 1_999) {
                0 => Some("Complaints"),
                1 => Some("Recommends"),
                _ => None,
            };
            if let Some(opinion) = opinion {
                let gap = self.random.between(0, comment.len() as i64 - 18) as usize;
                let start = self.random.between(0, (comment.len() - 18 - gap) as i64) as usize;
                comment.replace_range(start..start + 8, "Customer");
                comment.replace_range(start + 8 + gap..start + 18 + gap, opinion);
            }
            self.word(&comment);
            self.end("supplier", take)?;
        }
        Ok(())
    }

    fn parts(&mut self, take: Take<'_>) -> Result<(), String> {
        let colors: Vec<&str> = COLORS.split_whitespace().collect();
        for key in 1..=self.sizes.parts {
            self.begin();
            self.integer(key);
            let mut name: Vec<&str> = Vec::with_capacity(5);
            while name.len() < 5 {
                let color = self.random.one_of(&colors);
                if !name.contains(&color) {
                    name.push(color);
                }
            }
            self.word(&name.join(" "));
            let manufacturer = self.random.between(1, 5);
            self.word(&format!("Manufacturer#{manufacturer}"));
            let brand = self.random.between(1, 5);
            self.word(&format!("Brand#{manufacturer}{brand}"));
            let ty = TYPES.map(|list| self.random.one_of(list)).join(" ");
            self.word(&ty);
            let size = self.random.between(1, 50);
            self.integer(size);
            let container = CONTAINERS.map(|list| self.random.one_of(list)).join(" ");
            self.word(&container);
            self.hundredths(retail_price(key));
            self.comment(5, 22);
            self.end("part", take)?;
        }
        for part in 1..=self.sizes.parts {
            for number in 0..4 {
                self.begin();
                self.integer(part);
                self.integer(self.sizes.supplier_of(part, number));
                let available = self.random.between(1, 9_999);
                self.integer(available);
                let cost = self.random.between(100, 100_000);
                self.hundredths(cost);
                self.comment(49, 198);
                self.end("partsupp", take)?;
            }
        }
        Ok(())
    }

    fn customers(&mut self, take: Take<'_>) -> Result<(), String> {
        for key in 1..=self.sizes.customers {
            let nation = self.random.between(0, 24);
            self.begin();
            self.integer(key);
            self.word(&format!("Customer#{key:09}"));
            self.address();
            self.integer(nation);
            self.phone(nation);
            let balance = self.random.between(-99_999, 999_999);
            self.hundredths(balance);
            let segment = self.random.one_of(SEGMENTS);
            self.word(segment);
            self.comment(29, 116);
            self.end("customer", take)?;
        }
        Ok(())
    }

    fn orders(&mut self, take: Take<'_>) -> Result<(), String> {
        for number in 0..self.sizes.orders {
            let key = number / 8 * 32 + number % 8 + 1;
            // A third of the customers, those whose keys three divides, has no orders.
            let customer = loop {
                let customer = self.random.between(1, self.sizes.customers);
                if customer % 3 != 0 {
                    break customer;
                }
            };
            let ordered = self.random.between(FIRST_DAY, LAST_ORDER);
            let lines = self.random.between(1, 7);
            let (mut total, mut open) = (0, 0);
            for line in 1..=lines {
                let price = self.line(key, line, ordered, &mut open, take)?;
                total += price;
            }
            self.begin();
            self.integer(key);
            self.integer(customer);
            self.word(match open {
                0 => "F",
                _ if open == lines => "O",
                _ => "P",
            });
            self.hundredths(total);
            self.date(ordered);
            let priority = self.random.one_of(PRIORITIES);
            self.word(priority);
            let clerk = self.random.between(1, self.sizes.clerks);
            self.word(&format!("Clerk#{clerk:09}"));
            self.integer(0);
            self.comment(19, 78);
            self.end("orders", take)?;
        }
        Ok(())
    }

    /// Gives its price with discount and tax; counts in `open` what is not shipped.
    fn line(&mut self, order: i64, line: i64, ordered: i64, open: &mut i64, take: Take<'_>) -> Result<i64, String> {
        let random = &mut self.random;
        let part = random.between(1, self.sizes.parts);
        let supplier = self.sizes.supplier_of(part, random.between(0, 3));
        let quantity = random.between(1, 50);
        let (discount, tax) = (random.between(0, 10), random.between(0, 8));
        let shipped = ordered + random.between(1, 121);
        let committed = ordered + random.between(30, 90);
        let received = shipped + random.between(1, 30);
        let returned = if received <= TODAY { random.one_of(&["R", "A"]) } else { "N" };
        let price = quantity * retail_price(part);
        self.begin();
        for key in [order, part, supplier, line] {
            self.integer(key);
        }
        for value in [quantity * 100, price, discount, tax] {
            self.hundredths(value);
        }
        self.word(returned);
        self.word(if shipped > TODAY { "O" } else { "F" });
        *open += i64::from(shipped > TODAY);
        for day in [shipped, committed, received] {
            self.date(day);
        }
        let instruction = self.random.one_of(INSTRUCTIONS);
        self.word(instruction);
        let mode = self.random.one_of(MODES);
        self.word(mode);
        self.comment(10, 43);
        self.end("lineitem", take)?;
        Ok(price * (100 - discount) * (100 + tax) / 10_000)
    }
}

/// `YYYY-MM-DD` of a day since 1970.
pub fn date_text(day: i64) -> String {
    let date = Date::from_days(DAYS_BEFORE_1970 + day);
    format!("{:04}-{:02}-{:02}", date.year(), date.month(), date.day())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(scale: f64) -> Vec<Vec<String>> {
        let mut tables = vec![Vec::new(); TABLES.len()];
        generate(scale, &mut |table, row| {
            tables[table].push(row.to_string());
            Ok(())
        })
        .unwrap();
        tables
    }

    #[test]
    fn tables_have_the_sizes_and_keys_of_the_specification() {
        let tables = rows(0.001);
        let counts: Vec<usize> = tables.iter().map(Vec::len).collect();
        assert_eq!(counts[..7], [5, 25, 10, 200, 800, 150, 1500]);
        assert!((5_500..6_500).contains(&counts[7]), "{} lines", counts[7]);
        let mut suppliers = std::collections::BTreeSet::new();
        for row in &tables[4] {
            let keys: Vec<&str> = row[1..].splitn(3, ',').take(2).collect();
            assert!(suppliers.insert(keys.clone().join(",")), "{row}: a part has a supplier once");
        }
        for row in &tables[7] {
            let fields: Vec<&str> = row[1..].splitn(4, ',').collect();
            assert!(suppliers.contains(&fields[1..3].join(",")), "{row}: the supplier has the part");
        }
        assert!(tables[6].iter().all(|row| row[1..].split(',').nth(1).unwrap().parse::<i64>().unwrap() % 3 != 0));
        assert_eq!(rows(0.001), tables, "the same scale gives the same rows");
    }

    #[test]
    fn days_have_their_dates() {
        let texts = [FIRST_DAY, TODAY, LAST_ORDER].map(date_text);
        assert_eq!(texts, ["1992-01-01", "1995-06-17", "1998-08-02"]);
    }
}
