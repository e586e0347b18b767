//! Roles: those tables of information_schema, and what the tables of `mysql` say of them.

use super::privileges::{capitalized_names, set_of};
use super::{Definition, Hints, INFORMATION_SCHEMA, Rows, s, yes};
use crate::parse::statement::UserName;
use crate::session::lookup::Viewer;
use crate::session::users::{AccountRecord, Privileges};
use rauk_types::Value;
use std::sync::Arc;

const I: &str = INFORMATION_SCHEMA;

pub(super) const TABLES: &[Definition] = &[
    Definition {
        database: I,
        name: "APPLICABLE_ROLES",
        columns: "USER s97?, HOST s256?, GRANTEE s97?, GRANTEE_HOST s256?, ROLE_NAME s255?, ROLE_HOST s256?, IS_GRANTABLE s3, IS_DEFAULT s3?, IS_MANDATORY s3",
        rows: applicable,
    },
    Definition {
        database: I,
        name: "ADMINISTRABLE_ROLE_AUTHORIZATIONS",
        columns: "USER s97?, HOST s256?, GRANTEE s97?, GRANTEE_HOST s256?, ROLE_NAME s255?, ROLE_HOST s256?, IS_GRANTABLE s3, IS_DEFAULT s3?, IS_MANDATORY s3",
        rows: administrable,
    },
    Definition {
        database: I,
        name: "ENABLED_ROLES",
        columns: "ROLE_NAME s255?, ROLE_HOST s255?, IS_DEFAULT s3?, IS_MANDATORY s3",
        rows: enabled,
    },
    Definition {
        database: I,
        name: "ROLE_TABLE_GRANTS",
        columns: "GRANTOR s97?, GRANTOR_HOST s256?, GRANTEE c32, GRANTEE_HOST c255, TABLE_CATALOG s3, TABLE_SCHEMA c64, TABLE_NAME c64, PRIVILEGE_TYPE s255, IS_GRANTABLE s3",
        rows: table_grants,
    },
    Definition {
        database: I,
        name: "ROLE_COLUMN_GRANTS",
        columns: "GRANTOR s97?, GRANTOR_HOST s256?, GRANTEE c32, GRANTEE_HOST c255, TABLE_CATALOG s3, TABLE_SCHEMA c64, TABLE_NAME c64, COLUMN_NAME c64, PRIVILEGE_TYPE s31, IS_GRANTABLE s3",
        rows: column_grants,
    },
    Definition {
        database: "mysql",
        name: "role_edges",
        columns: "FROM_HOST s255, FROM_USER b32, TO_HOST s255, TO_USER b32, WITH_ADMIN_OPTION s1",
        rows: edges,
    },
    Definition {
        database: "mysql",
        name: "default_roles",
        columns: "HOST s255, USER b32, DEFAULT_ROLE_HOST s255, DEFAULT_ROLE_USER b32",
        rows: defaults,
    },
];

/// The edges that lead from the session's account to the roles that it can have: whose, to which, and whether it may
/// be granted further.
fn reachable(viewer: &Viewer) -> Vec<(UserName, UserName, bool)> {
    let users = &viewer.engine.users;
    let Some(own) = users.find(&viewer.account.user, &viewer.account.host) else { return vec![] };
    let mut edges: Vec<_> =
        users.granted_roles(&own).into_iter().map(|(role, admin)| (own.name(), role, admin)).collect();
    let direct: Vec<UserName> = edges.iter().map(|(_, role, _)| role.clone()).collect();
    for role in users.reached(&direct) {
        edges.extend(role.roles.iter().map(|(to, admin)| (role.name(), to.clone(), *admin)));
    }
    edges.sort();
    edges
}

fn edge_rows(viewer: &Viewer, admin_only: bool) -> Rows {
    let users = &viewer.engine.users;
    let own = &viewer.account;
    let default = users.find(&own.user, &own.host).map(|own| own.default_roles.clone()).unwrap_or_default();
    let edges = reachable(viewer).into_iter().filter(|(_, _, admin)| !admin_only || *admin);
    Ok(edges
        .map(|(of, role, admin)| {
            vec![
                s(&own.user),
                s(&own.host),
                s(&of.user),
                s(&of.host),
                s(&role.user),
                s(&role.host),
                yes(admin),
                yes(own.is(&of) && default.contains(&role)),
                yes(users.is_mandatory(&role)),
            ]
        })
        .collect())
}

fn applicable(viewer: &Viewer, _: &Hints<'_>) -> Rows {
    edge_rows(viewer, false)
}

fn administrable(viewer: &Viewer, _: &Hints<'_>) -> Rows {
    edge_rows(viewer, true)
}

/// Active roles, and those that they lead to.
fn active(viewer: &Viewer) -> Vec<Arc<AccountRecord>> {
    let mut reached = viewer.engine.users.reached(&viewer.active_roles);
    reached.sort_by_key(|role| role.name());
    reached
}

fn enabled(viewer: &Viewer, _: &Hints<'_>) -> Rows {
    let users = &viewer.engine.users;
    let own = users.find(&viewer.account.user, &viewer.account.host);
    let is_default = |role: &UserName| own.as_ref().is_some_and(|own| own.default_roles.contains(role));
    let row = |role: &Arc<AccountRecord>| {
        let name = role.name();
        vec![s(&role.user), s(&role.host), yes(is_default(&name)), yes(users.is_mandatory(&name))]
    };
    Ok(active(viewer).iter().map(row).collect())
}

fn table_grants(viewer: &Viewer, _: &Hints<'_>) -> Rows {
    let mut rows = Vec::new();
    for role in active(viewer) {
        for ((database, table), privileges) in &role.tables {
            rows.push(vec![
                s(""),
                s(""),
                s(&role.user),
                s(&role.host),
                s("def"),
                s(database),
                s(table),
                set_of(*privileges),
                yes(privileges.contains(Privileges::GRANT_OPTION)),
            ]);
        }
    }
    Ok(rows)
}

fn column_grants(viewer: &Viewer, _: &Hints<'_>) -> Rows {
    let mut rows = Vec::new();
    for role in active(viewer) {
        for ((database, table), columns) in &role.columns {
            let on_table = role.tables.get(&(database.clone(), table.clone())).copied().unwrap_or_default();
            for (column, privileges) in columns {
                rows.push(vec![
                    s(""),
                    s(""),
                    s(&role.user),
                    s(&role.host),
                    s("def"),
                    s(database),
                    s(table),
                    s(column),
                    s(capitalized_names(*privileges).join(",")),
                    yes(on_table.contains(Privileges::GRANT_OPTION)),
                ]);
            }
        }
    }
    Ok(rows)
}

fn edges(viewer: &Viewer, _: &Hints<'_>) -> Rows {
    let mut rows: Vec<Vec<Value>> = Vec::new();
    for account in viewer.engine.users.all().iter() {
        for (role, admin) in &account.roles {
            let admin = if *admin { "Y" } else { "N" };
            rows.push(vec![s(&role.host), s(&role.user), s(&account.host), s(&account.user), s(admin)]);
        }
    }
    Ok(rows)
}

fn defaults(viewer: &Viewer, _: &Hints<'_>) -> Rows {
    let mut rows: Vec<Vec<Value>> = Vec::new();
    for account in viewer.engine.users.all().iter() {
        for role in &account.default_roles {
            rows.push(vec![s(&account.host), s(&account.user), s(&role.host), s(&role.user)]);
        }
    }
    Ok(rows)
}
