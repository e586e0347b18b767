//! Privileges as bits.

/// A set of privileges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Privileges(pub u128);

/// Name and level, in the order in which SHOW GRANTS lists them: `true` for those that a database can be given too.
const NAMES: &[(&str, bool)] = &[
    ("SELECT", true),
    ("INSERT", true),
    ("UPDATE", true),
    ("DELETE", true),
    ("CREATE", true),
    ("DROP", true),
    ("RELOAD", false),
    ("SHUTDOWN", false),
    ("PROCESS", false),
    ("FILE", false),
    ("REFERENCES", true),
    ("INDEX", true),
    ("ALTER", true),
    ("SHOW DATABASES", false),
    ("SUPER", false),
    ("CREATE TEMPORARY TABLES", true),
    ("LOCK TABLES", true),
    ("EXECUTE", true),
    ("REPLICATION SLAVE", false),
    ("REPLICATION CLIENT", false),
    ("CREATE VIEW", true),
    ("SHOW VIEW", true),
    ("CREATE ROUTINE", true),
    ("ALTER ROUTINE", true),
    ("CREATE USER", false),
    ("EVENT", true),
    ("TRIGGER", true),
    ("CREATE TABLESPACE", false),
    ("CREATE ROLE", false),
    ("DROP ROLE", false),
    // The dynamic privileges of MySQL's manual, those of components too, which can be granted whether there is the
    // component or not.
    ("ALLOW_NONEXISTENT_DEFINER", false),
    ("APPLICATION_PASSWORD_ADMIN", false),
    ("AUDIT_ABORT_EXEMPT", false),
    ("AUDIT_ADMIN", false),
    ("AUTHENTICATION_POLICY_ADMIN", false),
    ("BACKUP_ADMIN", false),
    ("BINLOG_ADMIN", false),
    ("BINLOG_ENCRYPTION_ADMIN", false),
    ("CLONE_ADMIN", false),
    ("CONNECTION_ADMIN", false),
    ("ENCRYPTION_KEY_ADMIN", false),
    ("FIREWALL_ADMIN", false),
    ("FIREWALL_EXEMPT", false),
    ("FIREWALL_USER", false),
    ("FLUSH_OPTIMIZER_COSTS", false),
    ("FLUSH_PRIVILEGES", false),
    ("FLUSH_STATUS", false),
    ("FLUSH_TABLES", false),
    ("FLUSH_USER_RESOURCES", false),
    ("GROUP_REPLICATION_ADMIN", false),
    ("GROUP_REPLICATION_STREAM", false),
    ("INNODB_REDO_LOG_ARCHIVE", false),
    ("INNODB_REDO_LOG_ENABLE", false),
    ("MASKING_DICTIONARIES_ADMIN", false),
    ("NDB_STORED_USER", false),
    ("OPTIMIZE_LOCAL_TABLE", false),
    ("PASSWORDLESS_USER_ADMIN", false),
    ("PERSIST_RO_VARIABLES_ADMIN", false),
    ("REPLICATION_APPLIER", false),
    ("REPLICATION_SLAVE_ADMIN", false),
    ("RESOURCE_GROUP_ADMIN", false),
    ("RESOURCE_GROUP_USER", false),
    ("ROLE_ADMIN", false),
    ("SENSITIVE_VARIABLES_OBSERVER", false),
    ("SERVICE_CONNECTION_ADMIN", false),
    ("SESSION_VARIABLES_ADMIN", false),
    ("SET_ANY_DEFINER", false),
    ("SET_USER_ID", false),
    ("SHOW_ROUTINE", false),
    ("SKIP_QUERY_REWRITE", false),
    ("SYSTEM_USER", false),
    ("SYSTEM_VARIABLES_ADMIN", false),
    ("TABLE_ENCRYPTION_ADMIN", false),
    ("TELEMETRY_LOG_ADMIN", false),
    ("TP_CONNECTION_ADMIN", false),
    ("TRANSACTION_GTID_TAG", false),
    ("VERSION_TOKEN_ADMIN", false),
    ("XA_RECOVER_ADMIN", false),
];
/// How many of [`NAMES`] are MySQL's static privileges.
const STATIC: usize = 30;
const GRANT_OPTION_BIT: u32 = 127;

impl Privileges {
    pub const NONE: Privileges = Privileges(0);
    pub const SELECT: Privileges = Privileges(1);
    pub const INSERT: Privileges = Privileges(1 << 1);
    pub const UPDATE: Privileges = Privileges(1 << 2);
    pub const DELETE: Privileges = Privileges(1 << 3);
    pub const CREATE: Privileges = Privileges(1 << 4);
    pub const DROP: Privileges = Privileges(1 << 5);
    pub const RELOAD: Privileges = Privileges(1 << 6);
    pub const PROCESS: Privileges = Privileges(1 << 8);
    pub const FILE: Privileges = Privileges(1 << 9);
    pub const REFERENCES: Privileges = Privileges(1 << 10);
    pub const INDEX: Privileges = Privileges(1 << 11);
    pub const ALTER: Privileges = Privileges(1 << 12);
    pub const SHOW_DATABASES: Privileges = Privileges(1 << 13);
    pub const SUPER: Privileges = Privileges(1 << 14);
    pub const CREATE_TEMPORARY_TABLES: Privileges = Privileges(1 << 15);
    pub const LOCK_TABLES: Privileges = Privileges(1 << 16);
    pub const CREATE_VIEW: Privileges = Privileges(1 << 20);
    pub const SHOW_VIEW: Privileges = Privileges(1 << 21);
    pub const CREATE_USER: Privileges = Privileges(1 << 24);
    pub const CREATE_ROLE: Privileges = Privileges(1 << 28);
    pub const DROP_ROLE: Privileges = Privileges(1 << 29);
    pub const APPLICATION_PASSWORD_ADMIN: Privileges = Privileges(1 << 31);
    pub const BACKUP_ADMIN: Privileges = Privileges(1 << 35);
    pub const CONNECTION_ADMIN: Privileges = Privileges(1 << 39);
    pub const ROLE_ADMIN: Privileges = Privileges(1 << 62);
    pub const FLUSH_STATUS: Privileges = Privileges(1 << 46);
    pub const FLUSH_PRIVILEGES: Privileges = Privileges(1 << 45);
    pub const FLUSH_TABLES: Privileges = Privileges(1 << 47);
    pub const FLUSH_USER_RESOURCES: Privileges = Privileges(1 << 48);
    pub const SET_ANY_DEFINER: Privileges = Privileges(1 << 66);
    pub const SET_USER_ID: Privileges = Privileges(1 << 67);
    pub const SYSTEM_VARIABLES_ADMIN: Privileges = Privileges(1 << 71);
    pub const GRANT_OPTION: Privileges = Privileges(1 << GRANT_OPTION_BIT);
    /// Everything but GRANT OPTION.
    pub const ALL_GLOBAL: Privileges = Privileges((1 << NAMES.len()) - 1);

    /// All that a database or table can be given, without GRANT OPTION.
    pub fn all_database() -> Privileges {
        let bits =
            NAMES.iter().enumerate().filter(|(_, (_, database))| *database).fold(0, |all, (bit, _)| all | 1 << bit);
        Privileges(bits)
    }

    /// All that a table can be given.
    pub fn all_table() -> Privileges {
        let not = ["CREATE TEMPORARY TABLES", "LOCK TABLES", "EXECUTE", "CREATE ROUTINE", "ALTER ROUTINE", "EVENT"];
        not.iter()
            .fold(Privileges::all_database(), |all, name| all.without(Privileges::named(name).unwrap_or_default()))
    }

    /// All that a column can be given.
    pub const fn all_column() -> Privileges {
        Privileges::SELECT.with(Privileges::INSERT).with(Privileges::UPDATE).with(Privileges::REFERENCES)
    }

    /// MySQL's dynamic privileges.
    pub fn all_dynamic() -> Privileges {
        Privileges::ALL_GLOBAL.split_dynamic().1
    }

    /// One privilege by its name in upper case; `USAGE` is none. `None`: there is no such privilege.
    pub fn named(name: &str) -> Option<Privileges> {
        match name {
            "USAGE" => Some(Privileges::NONE),
            "GRANT OPTION" => Some(Privileges::GRANT_OPTION),
            _ => NAMES.iter().position(|(n, _)| *n == name).map(|bit| Privileges(1 << bit)),
        }
    }

    pub const fn with(self, other: Privileges) -> Privileges {
        Privileges(self.0 | other.0)
    }

    pub fn without(self, other: Privileges) -> Privileges {
        Privileges(self.0 & !other.0)
    }

    pub fn contains(self, other: Privileges) -> bool {
        self.0 & other.0 == other.0
    }

    pub fn intersects(self, other: Privileges) -> bool {
        self.0 & other.0 != 0
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The names, without GRANT OPTION.
    pub fn names(self) -> Vec<&'static str> {
        NAMES.iter().enumerate().filter(|(bit, _)| self.0 & (1 << bit) != 0).map(|(_, (name, _))| *name).collect()
    }

    /// MySQL's static privileges and, apart from them, the dynamic ones (SHOW GRANTS prints two lines).
    pub fn split_dynamic(self) -> (Privileges, Privileges) {
        let fixed = (1u128 << STATIC) - 1;
        (Privileges(self.0 & fixed), Privileges(self.0 & Privileges::ALL_GLOBAL.0 & !fixed))
    }
}

/// Rows of SHOW PRIVILEGES: name, context, comment.
pub fn descriptions() -> Vec<(&'static str, &'static str, &'static str)> {
    vec![
        ("Alter", "Tables", "To alter the table"),
        ("Create", "Databases,Tables,Indexes", "To create new databases and tables"),
        ("Create view", "Tables", "To create new views"),
        ("Create user", "Server Admin", "To create new users"),
        ("Delete", "Tables", "To delete existing rows"),
        ("Drop", "Databases,Tables", "To drop databases, tables, and views"),
        (
            "Grant option",
            "Databases,Tables,Functions,Procedures",
            "To give to other users those privileges you possess",
        ),
        ("Index", "Tables", "To create or drop indexes"),
        ("Insert", "Tables", "To insert data into tables"),
        ("Lock tables", "Databases", "To use LOCK TABLES (together with SELECT privilege)"),
        ("Process", "Server Admin", "To view the plain text of currently executing queries"),
        ("Reload", "Server Admin", "To reload or refresh tables, logs and privileges"),
        ("Select", "Tables", "To retrieve rows from table"),
        ("Show databases", "Server Admin", "To see all databases with SHOW DATABASES"),
        ("Super", "Server Admin", "To use KILL thread, SET GLOBAL, CHANGE MASTER, etc."),
        ("Show view", "Tables", "To see views with SHOW CREATE VIEW"),
        ("Update", "Tables", "To update existing rows"),
        ("Usage", "Server Admin", "No privileges - allow connect only"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_the_bits_of_their_names() {
        for (privilege, name) in [
            (Privileges::SELECT, "SELECT"),
            (Privileges::DELETE, "DELETE"),
            (Privileges::DROP, "DROP"),
            (Privileges::RELOAD, "RELOAD"),
            (Privileges::PROCESS, "PROCESS"),
            (Privileges::INDEX, "INDEX"),
            (Privileges::ALTER, "ALTER"),
            (Privileges::SHOW_DATABASES, "SHOW DATABASES"),
            (Privileges::SUPER, "SUPER"),
            (Privileges::LOCK_TABLES, "LOCK TABLES"),
            (Privileges::CREATE_VIEW, "CREATE VIEW"),
            (Privileges::SHOW_VIEW, "SHOW VIEW"),
            (Privileges::SET_USER_ID, "SET_USER_ID"),
            (Privileges::CREATE_USER, "CREATE USER"),
            (Privileges::BACKUP_ADMIN, "BACKUP_ADMIN"),
            (Privileges::CONNECTION_ADMIN, "CONNECTION_ADMIN"),
            (Privileges::CREATE_ROLE, "CREATE ROLE"),
            (Privileges::DROP_ROLE, "DROP ROLE"),
            (Privileges::ROLE_ADMIN, "ROLE_ADMIN"),
            (Privileges::FLUSH_STATUS, "FLUSH_STATUS"),
            (Privileges::FLUSH_TABLES, "FLUSH_TABLES"),
            (Privileges::FLUSH_PRIVILEGES, "FLUSH_PRIVILEGES"),
            (Privileges::FLUSH_USER_RESOURCES, "FLUSH_USER_RESOURCES"),
            (Privileges::APPLICATION_PASSWORD_ADMIN, "APPLICATION_PASSWORD_ADMIN"),
            (Privileges::SET_ANY_DEFINER, "SET_ANY_DEFINER"),
            (Privileges::SYSTEM_VARIABLES_ADMIN, "SYSTEM_VARIABLES_ADMIN"),
            (Privileges::GRANT_OPTION, "GRANT OPTION"),
        ] {
            assert_eq!(Privileges::named(name), Some(privilege), "{name}");
        }
        assert_eq!(NAMES[STATIC - 1].0, "DROP ROLE");
        assert!(Privileges::ALL_GLOBAL.contains(Privileges::all_database()));
        assert_eq!(Privileges::named("NONSENSE"), None);
    }
}
