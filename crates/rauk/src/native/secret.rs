//! The secret of native clients: a node's own, or the one that all nodes of a cluster have.
//!
//! A node alone makes its secret at its first start and keeps it in `native.secret`. In a cluster the secret is a setting in
//! the catalog, which the control plane brings to all nodes: the first node that serves native clients puts its own there, and every other
//! node takes it from there and writes it into its `native.secret`. So a client that has the file of one node is let in by
//! all of them, nobody copies files, and a node alone that founds a cluster keeps its secret. The catalog lies in files of mode 0600, as the accounts in it
//! do; nothing shows or logs it.
//!
//! A directory that had another secret before (of a cluster of an earlier version, whose nodes had one each) keeps that in
//! `native.secret.earlier`, and its clients are let in as long as that file is there. A file that is named with
//! `--secret-file` counts instead of all this.

use rauk_node::{Database, block_on};
use rauk_transporter::{Secret, TransportError};
use std::path::Path;

/// The secret's file in the data directory, where no other is named.
const SECRET_FILE: &str = "native.secret";
/// What a directory had before it took the cluster's.
const EARLIER_FILE: &str = "native.secret.earlier";
/// In the catalog: the cluster's secret, in hexadecimal.
const SETTING: &str = "native.secret";

fn told(error: TransportError) -> String {
    error.to_string()
}

/// The secret of this node's data directory.
pub fn own(directory: &Path, database: &Database) -> Result<Secret, String> {
    let path = directory.join(SECRET_FILE);
    if database.member().is_none() {
        return Secret::from_file_or_new(&path).map_err(told);
    }
    let own = match path.exists() {
        true => Some(Secret::from_file(&path).map_err(told)?),
        false => None,
    };
    let shared = shared(database, own.as_ref())?;
    match own {
        Some(own) if own.bytes() == shared.bytes() => {}
        Some(_) => {
            let earlier = directory.join(EARLIER_FILE);
            std::fs::rename(&path, &earlier)
                .map_err(|e| format!("cannot rename {} to {}: {e}", path.display(), earlier.display()))?;
            shared.store(&path).map_err(told)?;
        }
        None => shared.store(&path).map_err(told)?,
    }
    let earlier = directory.join(EARLIER_FILE);
    if !earlier.exists() {
        return Ok(shared);
    }
    let file = earlier.display();
    tracing::warn!(%file, "native clients with this node's earlier secret are let in; remove the file when all have the cluster's");
    Ok(shared.or(Secret::from_file(&earlier).map_err(told)?))
}

/// The cluster's secret; the first node that asks gives its own, or makes one.
fn shared(database: &Database, own: Option<&Secret>) -> Result<Secret, String> {
    if let Some(text) = database.setting(SETTING) {
        return read(&text);
    }
    let offered = own.cloned().unwrap_or_else(Secret::random);
    let text: String = offered.bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    // Another node may be faster: then its secret counts.
    block_on(database.set_first_settings(&[(SETTING.to_string(), text)]))
        .map_err(|e| format!("the cluster's secret of native clients cannot be stored: {e}"))?;
    match database.setting(SETTING) {
        Some(text) => read(&text),
        None => Err("the cluster's secret of native clients is not in the catalog".into()),
    }
}

fn read(text: &str) -> Result<Secret, String> {
    let digit = |at: usize| text.get(at..at + 2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
    let bytes: Option<Vec<u8>> = (0..text.len()).step_by(2).map(digit).collect();
    let bytes = bytes.ok_or("the cluster's secret of native clients in the catalog cannot be read")?;
    Secret::new(bytes).map_err(told)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_survive_the_catalog() {
        let secret = Secret::new("0123456789abcdef\u{e9}").unwrap();
        let text: String = secret.bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(read(&text).unwrap().bytes(), secret.bytes());
        for wrong in ["", "0", "zz", "30", "\u{e9}\u{e9}"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
