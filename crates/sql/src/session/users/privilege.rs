//! Privileges as bits.

/// A set of privileges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Privileges(pub u64);

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
    // MySQL 8's dynamic privileges that tools grant or ask for.
    ("BACKUP_ADMIN", false),
    ("CONNECTION_ADMIN", false),
    ("PERSIST_RO_VARIABLES_ADMIN", false),
    ("ROLE_ADMIN", false),
    ("SESSION_VARIABLES_ADMIN", false),
    ("SET_USER_ID", false),
    ("SYSTEM_USER", false),
    ("SYSTEM_VARIABLES_ADMIN", false),
    ("XA_RECOVER_ADMIN", false),
];
/// How many of [`NAMES`] are MySQL's static privileges.
const STATIC: usize = 30;
const GRANT_OPTION_BIT: u32 = 63;

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
    pub const CONNECTION_ADMIN: Privileges = Privileges(1 << 31);
    pub const SET_USER_ID: Privileges = Privileges(1 << 35);
    pub const SYSTEM_VARIABLES_ADMIN: Privileges = Privileges(1 << 37);
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

    /// One privilege by its name in upper case; `USAGE` is none. `None`: there is no such privilege.
    pub fn named(name: &str) -> Option<Privileges> {
        match name {
            "USAGE" => Some(Privileges::NONE),
            "GRANT OPTION" => Some(Privileges::GRANT_OPTION),
            _ => NAMES.iter().position(|(n, _)| *n == name).map(|bit| Privileges(1 << bit)),
        }
    }

    pub fn with(self, other: Privileges) -> Privileges {
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
        let fixed = (1u64 << STATIC) - 1;
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
            (Privileges::CONNECTION_ADMIN, "CONNECTION_ADMIN"),
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
