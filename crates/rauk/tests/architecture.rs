//! The shape of the workspace: dependencies point downward, files stay readable, the map names every crate.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Lowest first. A crate may use those before it.
const LAYERS: &[&str] = &[
    "types",
    "wire",
    "kernel",
    "cluster",
    "log",
    "transporter",
    "manage",
    "raft",
    "node",
    "derive",
    "client",
    "sql",
    "mysql",
    "rauk",
    "models",
    "simulation",
    "differential",
];

/// Crates that must stay free of more than the order says.
const ONLY: &[(&str, &[&str])] = &[
    ("wire", &["types"]),
    ("kernel", &["types"]),
    ("cluster", &["types"]),
    ("raft", &["types", "log", "manage"]),
    ("log", &["types"]),
    ("transporter", &["types", "wire"]),
    ("derive", &[]),
    ("client", &["types", "wire", "transporter", "log", "node", "derive"]),
    ("mysql", &["types"]),
    ("models", &[]),
    // A judge shares no code with what it judges.
    ("differential", &[]),
];

/// Libraries that would bring I/O, clocks or threads into a crate that must be pure.
const IMPURE: &[&str] = &["tokio", "parking_lot", "libc", "rand", "socket2", "mio"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the workspace is there")
}

fn manifests() -> BTreeMap<String, toml::Table> {
    let crates = fs::read_dir(root().join("crates")).expect("crates/ is there");
    crates
        .map(|entry| entry.expect("readable").path())
        .filter(|path| path.join("Cargo.toml").exists())
        .map(|path| {
            let text = fs::read_to_string(path.join("Cargo.toml")).expect("readable");
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            (name, text.parse().expect("Cargo.toml is TOML"))
        })
        .collect()
}

fn dependencies(manifest: &toml::Table) -> Vec<String> {
    let table = manifest.get("dependencies").and_then(|d| d.as_table());
    table.map(|t| t.keys().cloned().collect()).unwrap_or_default()
}

#[test]
fn dependencies_point_downward() {
    for (name, manifest) in manifests() {
        let place = LAYERS.iter().position(|l| *l == name).unwrap_or_else(|| panic!("crate {name} has no layer"));
        for used in dependencies(&manifest).iter().filter_map(|d| d.strip_prefix("rauk-")) {
            let below = LAYERS.iter().position(|l| *l == used).unwrap_or_else(|| panic!("crate {used} has no layer"));
            assert!(below < place, "{name} uses {used}, which is not below it");
            if let Some((_, allowed)) = ONLY.iter().find(|(n, _)| *n == name) {
                assert!(allowed.contains(&used), "{name} may use {allowed:?} only, and uses {used}");
            }
        }
    }
}

/// The folders and files of `sql`, lowest first.
const SQL_FOLDERS: &[&str] = &[
    "hash",
    "nearest",
    "measure",
    "memory",
    "locks",
    "stack",
    "histogram",
    "statistics",
    "parse",
    "expr",
    "lookup",
    "logical",
    "bind",
    "optimize",
    "physical",
    "exec",
    "session",
];

#[test]
fn folders_of_sql_point_downward() {
    let source = root().join("crates/sql/src");
    let place = |name: &str| SQL_FOLDERS.iter().position(|folder| *folder == name);
    for file in sources(&source) {
        let path = file.strip_prefix(&source).expect("below it");
        let first = path.iter().next().expect("a name").to_string_lossy().into_owned();
        let folder = first.trim_end_matches(".rs");
        if folder == "lib" || path.iter().any(|part| part == "tests" || part == "tests.rs") {
            continue;
        }
        let own = place(folder).unwrap_or_else(|| panic!("{folder} of sql has no place"));
        let text = fs::read_to_string(&file).expect("readable");
        let product = text.split("#[cfg(test)]").next().expect("a first part");
        let product: String = product.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
        for used in &SQL_FOLDERS[own + 1..] {
            let names = product.match_indices(&format!("crate::{used}")).any(|(at, found)| {
                !product[at + found.len()..].starts_with(|next: char| next.is_alphanumeric() || next == '_')
            });
            assert!(!names, "{} uses {used}, which is not below {folder}", file.display());
        }
    }
}

#[test]
fn the_partition_core_stays_pure() {
    let manifests = manifests();
    for name in ["types", "wire", "kernel", "cluster"] {
        for used in dependencies(&manifests[name]) {
            assert!(!IMPURE.contains(&used.as_str()), "{name} must be pure and uses {used}");
        }
    }
    let pure = ["crates/kernel/src", "crates/wire/src", "crates/cluster/src"];
    let tests = |file: &Path| file.components().any(|part| part.as_os_str() == "tests");
    for file in pure.iter().flat_map(|folder| sources(&root().join(folder))).filter(|file| !tests(file)) {
        let text = fs::read_to_string(&file).expect("readable");
        let product = text.split("#[cfg(test)]").next().expect("a first part");
        for word in ["std::fs", "std::net", "std::thread", "std::time::Instant", "SystemTime", "Instant::now"] {
            assert!(!product.contains(word), "{} uses {word}", file.display());
        }
    }
}

/// A wall clock that jumps changes no decision: leases, views, timeouts and times of commits rest on clocks that only go on, and on numbers. It is read where a time of day is what is asked for.
#[test]
fn the_wall_clock_decides_nothing() {
    let mut places: BTreeSet<String> = BTreeSet::new();
    let is_test =
        |file: &Path| file.components().any(|part| part.as_os_str() == "tests" || part.as_os_str() == "tests.rs");
    for file in sources(&root().join("crates")).into_iter().filter(|file| !is_test(file)) {
        let text = fs::read_to_string(&file).expect("readable");
        let product = text.split("#[cfg(test)]").next().expect("a first part");
        let ways = [
            "SystemTime",
            "CLOCK_REALTIME",
            "gettimeofday",
            "Timestamp::now()",
            "Zoned::now",
            "Utc::now",
            "Local::now",
        ];
        if ways.iter().any(|word| product.contains(word)) {
            places.insert(file.strip_prefix(root()).expect("below the root").display().to_string());
        }
    }
    let known = [
        // When something happened, for people.
        "crates/node/src/member/event_log.rs",
        // The time of day that defaults of columns are filled with, for native clients.
        "crates/node/src/native/mod.rs",
        // NOW() and its family.
        "crates/sql/src/session/engine.rs",
        // Until when certificates of nodes are valid.
        "crates/transporter/src/certificates/authority.rs",
        "crates/transporter/src/certificates/node_tls.rs",
    ];
    assert_eq!(places, known.map(str::to_owned).into_iter().collect(), "a clock that may jump is read elsewhere");
}

#[test]
fn every_crate_is_on_the_map() {
    let map = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md is there");
    for name in manifests().keys() {
        assert!(map.contains(&format!("`{name}`")), "ARCHITECTURE.md does not name the crate {name}");
    }
}

#[test]
fn every_library_is_explained() {
    let map = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md is there");
    for (name, manifest) in manifests() {
        for used in dependencies(&manifest).iter().filter(|d| !d.starts_with("rauk-")) {
            assert!(map.contains(&format!("`{used}`")), "ARCHITECTURE.md does not say why {name} uses {used}");
        }
    }
}

#[test]
fn files_fit_in_a_head_and_say_what_they_are_for() {
    let mut wrong = Vec::new();
    for file in sources(&root().join("crates")) {
        let text = fs::read_to_string(&file).expect("readable");
        let shown = file.strip_prefix(root()).expect("below the root").display().to_string();
        let test = shown.contains("/tests") || shown.contains("/benches/") || shown.contains("generated");
        if text.lines().count() > 1000 && !test {
            wrong.push(format!("{shown}: {} lines", text.lines().count()));
        }
        if !test && !text.trim_start().starts_with("//!") {
            wrong.push(format!("{shown}: begins without an essay"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn sources(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).expect("readable") {
        let path = entry.expect("readable").path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}
