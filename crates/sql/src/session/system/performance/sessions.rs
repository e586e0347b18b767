//! Sessions: threads, accounts, attributes of connections, and where variables have their values from.

use super::P;
use crate::session::digests::AccountName;
use crate::session::lookup::Viewer;
use crate::session::processlist::Process;
use crate::session::status;
use crate::session::system::{Definition, Hints, Rows, s, u};
use crate::session::variables::table::VARIABLES;
use rauk_types::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

pub(super) const TABLES: &[Definition] = &[
    Definition {
        database: P,
        name: "threads",
        columns: "THREAD_ID u, NAME s128, TYPE s10, PROCESSLIST_ID u?, PROCESSLIST_USER s32?, PROCESSLIST_HOST s255?, PROCESSLIST_DB s64?, PROCESSLIST_COMMAND s16?, PROCESSLIST_TIME i?, PROCESSLIST_STATE s64?, PROCESSLIST_INFO x?, PARENT_THREAD_ID u?, ROLE s64?, INSTRUMENTED s3, HISTORY s3, CONNECTION_TYPE s16?, THREAD_OS_ID u?, RESOURCE_GROUP s64?, EXECUTION_ENGINE s9?, CONTROLLED_MEMORY u, MAX_CONTROLLED_MEMORY u, TOTAL_MEMORY u, MAX_TOTAL_MEMORY u, TELEMETRY_ACTIVE s3",
        rows: threads,
    },
    Definition {
        database: P,
        name: "users",
        columns: "USER c32?, CURRENT_CONNECTIONS i, TOTAL_CONNECTIONS i, MAX_SESSION_CONTROLLED_MEMORY u, MAX_SESSION_TOTAL_MEMORY u",
        rows: users,
    },
    Definition {
        database: P,
        name: "hosts",
        columns: "HOST c255?, CURRENT_CONNECTIONS i, TOTAL_CONNECTIONS i, MAX_SESSION_CONTROLLED_MEMORY u, MAX_SESSION_TOTAL_MEMORY u",
        rows: hosts,
    },
    Definition {
        database: P,
        name: "accounts",
        columns: "USER c32?, HOST c255?, CURRENT_CONNECTIONS i, TOTAL_CONNECTIONS i, MAX_SESSION_CONTROLLED_MEMORY u, MAX_SESSION_TOTAL_MEMORY u",
        rows: accounts,
    },
    Definition { database: P, name: "session_connect_attrs", columns: ATTRIBUTES, rows: attributes },
    Definition { database: P, name: "session_account_connect_attrs", columns: ATTRIBUTES, rows: own_attributes },
    Definition {
        database: P,
        name: "status_by_thread",
        columns: "THREAD_ID u, VARIABLE_NAME s64, VARIABLE_VALUE s1024?",
        rows: status_by_thread,
    },
    Definition {
        database: P,
        name: "persisted_variables",
        columns: "VARIABLE_NAME s64, VARIABLE_VALUE s1024?",
        rows: persisted,
    },
    Definition {
        database: P,
        name: "variables_info",
        columns: "VARIABLE_NAME s64, VARIABLE_SOURCE s12?, VARIABLE_PATH s1024?, MIN_VALUE s64?, MAX_VALUE s64?, SET_TIME q?, SET_USER c32?, SET_HOST c255?",
        rows: variables_info,
    },
];

const ATTRIBUTES: &str = "PROCESSLIST_ID u, ATTR_NAME b32, ATTR_VALUE b1024?, ORDINAL_POSITION n?";

fn number_of(viewer: &Viewer, process: &Process) -> u64 {
    viewer.engine.database.cluster_session_id(process.id)
}

fn threads(viewer: &Viewer, _: &Hints<'_>) -> Rows {
    let now = viewer.engine.now_micros();
    let row = |process: Arc<Process>| {
        let info = process.info();
        let number = number_of(viewer, &process);
        vec![
            u(number),
            s("thread/sql/one_connection"),
            s("FOREGROUND"),
            u(number),
            s(&process.user),
            s(&process.host),
            process.database.lock().as_ref().map_or(Value::Null, s),
            s(if info.is_some() { "Query" } else { "Sleep" }),
            Value::Int((now - process.since_micros()).max(0) / 1_000_000),
            info.as_ref().map_or(Value::Null, |_| s("executing")),
            info.map_or(Value::Null, Value::Str),
            Value::Null,
            Value::Null,
            s("YES"),
            s("NO"),
            s(if process.tls_cipher.is_some() { "SSL/TLS" } else { "TCP/IP" }),
            Value::Null,
            s("USR_default"),
            s("PRIMARY"),
            u(0u32),
            u(0u32),
            u(0u32),
            u(0u32),
            s("NO"),
        ]
    };
    Ok(viewer.engine.processes.all().into_iter().map(row).collect())
}

/// Sessions that are there, and all since the start.
type Connections = (i64, i64);

fn connections(viewer: &Viewer) -> Vec<(AccountName, Connections)> {
    let mut open: BTreeMap<(String, String), i64> = BTreeMap::new();
    for process in viewer.engine.processes.all() {
        *open.entry((process.user.clone(), process.host.clone())).or_default() += 1;
    }
    let all = viewer.engine.processes.accounts.all();
    let known = |name: &(String, String)| all.iter().any(|(other, _)| other.as_ref() == Some(name));
    let beyond: i64 = open.iter().filter(|(name, _)| !known(name)).map(|(_, count)| count).sum();
    let row = |(name, sums): &(AccountName, crate::session::digests::AccountSums)| {
        let now = name.as_ref().map_or(beyond, |name| open.get(name).copied().unwrap_or(0));
        (name.clone(), (now, i64::try_from(sums.sessions).unwrap_or(i64::MAX)))
    };
    all.iter().map(row).collect()
}

fn count_columns((now, total): Connections) -> [Value; 4] {
    [Value::Int(now), Value::Int(total), u(0u32), u(0u32)]
}

fn accounts(viewer: &Viewer, _: &Hints<'_>) -> Rows {
    let row = |(name, counts): (AccountName, Connections)| {
        let (user, host) = name.map_or((Value::Null, Value::Null), |(user, host)| (s(user), s(host)));
        [user, host].into_iter().chain(count_columns(counts)).collect()
    };
    Ok(connections(viewer).into_iter().map(row).collect())
}

fn by_part(viewer: &Viewer, part: impl Fn((String, String)) -> String) -> Rows {
    let mut parts: BTreeMap<Option<String>, Connections> = BTreeMap::new();
    for (name, (now, total)) in connections(viewer) {
        let sum = parts.entry(name.map(&part)).or_default();
        (sum.0, sum.1) = (sum.0 + now, sum.1 + total);
    }
    let row = |(part, counts): (Option<String>, Connections)| {
        std::iter::once(part.map_or(Value::Null, s)).chain(count_columns(counts)).collect()
    };
    Ok(parts.into_iter().map(row).collect())
}

fn users(viewer: &Viewer, _: &Hints<'_>) -> Rows {
    by_part(viewer, |(user, _)| user)
}

fn hosts(viewer: &Viewer, _: &Hints<'_>) -> Rows {
    by_part(viewer, |(_, host)| host)
}

fn attribute_rows(viewer: &Viewer, wanted: impl Fn(&Process) -> bool) -> Rows {
    let mut rows = Vec::new();
    for process in viewer.engine.processes.all().into_iter().filter(|process| wanted(process)) {
        let number = number_of(viewer, &process);
        let attributes = process.attributes.iter().enumerate();
        rows.extend(attributes.map(|(at, (name, value))| vec![u(number), s(name), s(value), Value::Int(at as i64)]));
    }
    Ok(rows)
}

fn attributes(viewer: &Viewer, _: &Hints<'_>) -> Rows {
    attribute_rows(viewer, |_| true)
}

/// Those of sessions of one's own account.
fn own_attributes(viewer: &Viewer, _: &Hints<'_>) -> Rows {
    let own = viewer.engine.processes.find(viewer.connection_id);
    attribute_rows(viewer, |process| {
        own.as_ref().is_some_and(|own| own.user == process.user && own.host == process.host)
    })
}

fn status_by_thread(viewer: &Viewer, _: &Hints<'_>) -> Rows {
    let mut rows = Vec::new();
    for process in viewer.engine.processes.all() {
        let number = number_of(viewer, &process);
        let mut counts = [0; status::NAMES.len()];
        process.counters.add_to(&mut counts);
        rows.extend(
            status::NAMES.iter().zip(counts).map(|(name, count)| vec![u(number), s(*name), s(count.to_string())]),
        );
    }
    Ok(rows)
}

fn persisted(viewer: &Viewer, _: &Hints<'_>) -> Rows {
    let all = viewer.engine.persisted().into_iter();
    Ok(all.map(|(name, value)| vec![s(name), s(value)]).collect())
}

/// Who has set a value, and when, is not kept.
fn variables_info(viewer: &Viewer, _: &Hints<'_>) -> Rows {
    let engine = &viewer.engine;
    let persisted = engine.persisted();
    let mut rows = Vec::new();
    for (at, variable) in VARIABLES.iter().enumerate() {
        let (now, begun) = (engine.variables.get(at), engine.variables.default_of(at));
        let source = if persisted.iter().any(|(name, value)| name == variable.name && *value == variable.show(&now)) {
            "PERSISTED"
        } else if now != begun {
            "DYNAMIC"
        } else if begun != variable.default_value() {
            "COMMAND_LINE"
        } else {
            "COMPILED"
        };
        let (least, most) = variable.bounds().map_or((s("0"), s("0")), |(least, most)| (s(least), s(most)));
        let mut row = vec![s(variable.name), s(source), s(""), least, most];
        row.resize(8, Value::Null);
        rows.push(row);
    }
    Ok(rows)
}
