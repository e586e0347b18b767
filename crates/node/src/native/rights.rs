//! What an account may do with tables, for sessions of clients that have shown one.
//!
//! A session without an account may do everything: whoever has proved the secret, shown a certificate or has the database in the same process. With one, each request is
//! checked before anything of it is done, in MySQL's terms and with MySQL's errors:
//!
//! | request | needs |
//! |---|---|
//! | read, scan | SELECT; with a row lock one of UPDATE, DELETE, LOCK TABLES too |
//! | insert | INSERT; SELECT too where the row is asked for |
//! | write | INSERT, UPDATE; SELECT too where the row is asked for |
//! | update, increment | SELECT, UPDATE |
//! | delete | SELECT, DELETE |
//! | open a table | any privilege on it |
//! | create, drop a table | CREATE, DROP |
//! | create a database | CREATE on it |
//!
//! Privileges on columns alone give nothing here. What an account may do is asked once for each table, and again when accounts have changed ([`Rights::epoch`]); so
//! a change holds for the next request of an open connection, as it holds for the next statement of SQL. A scan that is open goes on.
//! Accounts are kept elsewhere: this crate knows them by the trait only.

use super::failure::{of_mysql, refused};
use parking_lot::RwLock;
use rauk_types::error::codes;
use rauk_types::{MysqlError, TableId, TableSchema};
use rauk_wire::{Failure, LockWish, OpKind, Shape, Wanted};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// A set of privileges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allowed(u8);

impl Allowed {
    pub const NOTHING: Allowed = Allowed(0);
    pub const SELECT: Allowed = Allowed(1);
    pub const INSERT: Allowed = Allowed(2);
    pub const UPDATE: Allowed = Allowed(4);
    pub const DELETE: Allowed = Allowed(8);
    pub const CREATE: Allowed = Allowed(16);
    pub const DROP: Allowed = Allowed(32);
    /// Rows may be locked.
    pub const LOCK: Allowed = Allowed(64);
    /// It may be known that the table exists.
    pub const SEE: Allowed = Allowed(128);

    /// In the order in which a missing one is told, with what MySQL calls the command.
    const COMMANDS: [(Allowed, &str); 8] = [
        (Allowed::SELECT, "SELECT"),
        (Allowed::INSERT, "INSERT"),
        (Allowed::UPDATE, "UPDATE"),
        (Allowed::DELETE, "DELETE"),
        (Allowed::CREATE, "CREATE"),
        (Allowed::DROP, "DROP"),
        (Allowed::LOCK, "SELECT with locking clause"),
        (Allowed::SEE, "SELECT"),
    ];

    pub const fn with(self, other: Allowed) -> Allowed {
        Allowed(self.0 | other.0)
    }

    /// This, if it is so.
    pub const fn when(self, so: bool) -> Allowed {
        if so { self } else { Allowed::NOTHING }
    }

    pub const fn contains(self, other: Allowed) -> bool {
        self.0 & other.0 == other.0
    }
}

/// An account at work.
pub trait Rights: Send + Sync {
    /// Moves when what it may do may have changed.
    fn epoch(&self) -> u64;
    fn on_table(&self, database: &str, table: &str) -> Allowed;
    fn on_database(&self, database: &str) -> Allowed;
    /// The account's name, as errors have it: `'user'@'host'`.
    fn name(&self) -> String;
    /// Whether requests of the account are counted.
    fn is_limited(&self) -> bool;
    /// A request begins. Error 1226 when the account has had all that it may have in an hour.
    fn spend(&self, writes: bool) -> Result<(), MysqlError>;
}

/// The account of a session.
pub(super) struct Account {
    rights: Arc<dyn Rights>,
    known: RwLock<Known>,
}

#[derive(Default)]
struct Known {
    epoch: u64,
    /// With the version of the definition: a table that is renamed may be another matter.
    tables: FxHashMap<TableId, (u32, Allowed)>,
}

fn lock(wish: LockWish) -> Allowed {
    Allowed::LOCK.when(wish != LockWish::None)
}

/// What an operation of a shape needs.
fn needs(shape: &Shape) -> Allowed {
    let shown = Allowed::SELECT.when(shape.wanted != Wanted::Nothing);
    match shape.kind {
        OpKind::Read => Allowed::SELECT.with(lock(shape.lock)),
        OpKind::Insert => Allowed::INSERT.with(shown),
        OpKind::Write => Allowed::INSERT.with(Allowed::UPDATE).with(shown),
        OpKind::Update | OpKind::Increment => Allowed::SELECT.with(Allowed::UPDATE),
        OpKind::Delete => Allowed::SELECT.with(Allowed::DELETE),
        OpKind::Savepoint | OpKind::RollbackTo => Allowed::NOTHING,
    }
}

pub(super) fn is_write(kind: OpKind) -> bool {
    !matches!(kind, OpKind::Read | OpKind::Savepoint | OpKind::RollbackTo)
}

impl Account {
    pub fn new(rights: Arc<dyn Rights>) -> Account {
        Account { rights, known: RwLock::default() }
    }

    pub fn rights(&self) -> &dyn Rights {
        &*self.rights
    }

    /// A request begins. Error 1226.
    pub fn spend(&self, writes: bool) -> Result<(), Failure> {
        self.rights.spend(writes).map_err(|error| of_mysql(&error))
    }

    /// Error 1142.
    pub fn check_shape(&self, table: &TableSchema, shape: &Shape) -> Result<(), Failure> {
        self.check(table, needs(shape))
    }

    /// Error 1142.
    pub fn check_scan(&self, table: &TableSchema, wish: LockWish) -> Result<(), Failure> {
        self.check(table, Allowed::SELECT.with(lock(wish)))
    }

    fn check(&self, table: &TableSchema, needs: Allowed) -> Result<(), Failure> {
        let epoch = self.rights.epoch();
        let found = {
            let known = self.known.read();
            let known =
                known.tables.get(&table.id).filter(|(version, _)| known.epoch == epoch && *version == table.version);
            known.map(|(_, allowed)| *allowed)
        };
        let allowed = found.unwrap_or_else(|| {
            let allowed = self.rights.on_table(&table.database, &table.name);
            let mut known = self.known.write();
            if known.epoch != epoch {
                *known = Known { epoch, ..Known::default() };
            }
            known.tables.insert(table.id, (table.version, allowed));
            allowed
        });
        self.judge(allowed, needs, &table.name)
    }

    /// Of a table by its name, whether or not it exists. Error 1142.
    pub fn check_name(&self, database: &str, table: &str, needs: Allowed) -> Result<(), Failure> {
        self.judge(self.rights.on_table(database, table), needs, table)
    }

    fn judge(&self, allowed: Allowed, needs: Allowed, table: &str) -> Result<(), Failure> {
        let is_missing = |one: &Allowed| needs.contains(*one) && !allowed.contains(*one);
        match Allowed::COMMANDS.iter().find(|(one, _)| is_missing(one)) {
            None => Ok(()),
            Some((_, command)) => {
                let text = format!("{command} command denied to user {} for table '{table}'", self.rights.name());
                Err(refused(codes::TABLEACCESS_DENIED, text))
            }
        }
    }

    /// Error 1044.
    pub fn check_database(&self, database: &str, needs: Allowed) -> Result<(), Failure> {
        if self.rights.on_database(database).contains(needs) {
            return Ok(());
        }
        let text = format!("Access denied for user {} to database '{database}'", self.rights.name());
        Err(refused(codes::DBACCESS_DENIED, text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rauk_types::{Column, ColumnId, DataType, IndexId, IndexSchema};

    fn shape(kind: OpKind, lock: LockWish, wanted: Wanted) -> Shape {
        Shape {
            kind,
            table: TableId(1),
            version: 1,
            index: IndexId::PRIMARY,
            lock,
            columns: vec![],
            wanted,
            conditional: false,
        }
    }

    /// May read tables of the database `shop`.
    struct Shopper;

    impl Rights for Shopper {
        fn epoch(&self) -> u64 {
            1
        }

        fn on_table(&self, database: &str, _: &str) -> Allowed {
            Allowed::SELECT.when(database == "shop")
        }

        fn on_database(&self, _: &str) -> Allowed {
            Allowed::NOTHING
        }

        fn name(&self) -> String {
            "'shopper'@'%'".into()
        }

        fn is_limited(&self) -> bool {
            false
        }

        fn spend(&self, _: bool) -> Result<(), MysqlError> {
            Ok(())
        }
    }

    #[test]
    fn a_table_that_goes_to_another_database_is_asked_for_again() {
        let account = Account::new(Arc::new(Shopper));
        let read = shape(OpKind::Read, LockWish::None, Wanted::Row);
        let key = IndexSchema::primary(&[0]);
        let column = Column::new(ColumnId(0), "id", DataType::BIGINT, false);
        let mut table = TableSchema::new(TableId(1), "shop", "t", vec![column], vec![key]);
        assert!(account.check_shape(&table, &read).is_ok() && account.check_shape(&table, &read).is_ok());
        table.database = "safe".into();
        table.version += 1;
        let refused = account.check_shape(&table, &read).expect_err("it is another table's question");
        assert_eq!(refused.code, codes::TABLEACCESS_DENIED);
    }

    #[test]
    fn operations_need_what_their_statements_need() {
        let of = |kind| needs(&shape(kind, LockWish::None, Wanted::Nothing));
        assert_eq!(of(OpKind::Read), Allowed::SELECT);
        assert_eq!(of(OpKind::Insert), Allowed::INSERT);
        assert_eq!(of(OpKind::Write), Allowed::INSERT.with(Allowed::UPDATE));
        assert_eq!(of(OpKind::Update), Allowed::SELECT.with(Allowed::UPDATE));
        assert_eq!(of(OpKind::Increment), of(OpKind::Update));
        assert_eq!(of(OpKind::Delete), Allowed::SELECT.with(Allowed::DELETE));
        assert_eq!(of(OpKind::Savepoint), Allowed::NOTHING);
        let locked = needs(&shape(OpKind::Read, LockWish::Shared, Wanted::Row));
        assert_eq!(locked, Allowed::SELECT.with(Allowed::LOCK));
        let shown = needs(&shape(OpKind::Insert, LockWish::None, Wanted::Row));
        assert_eq!(shown, Allowed::SELECT.with(Allowed::INSERT));
        assert!(is_write(OpKind::Delete) && !is_write(OpKind::Read) && !is_write(OpKind::Savepoint));
    }
}
