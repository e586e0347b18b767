//! Who a data directory is: `member.json`, beside the data of a cluster's member.
//!
//! It is made before anything else of a member, with a random number by which the cluster knows the directory for ever. What it becomes a member of is written down as soon as that is
//! known; what a crash in between leaves can be begun again. A directory without it that holds data was made by a node that is alone; such a one can found a cluster, and is a member's from then on.

use super::settings::role_names;
use rauk_log::real_disk::{DIRECTORY_MODE, FILE_MODE};
use rauk_log::superblock;
use rauk_manage::group::RoleKind;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

pub const FILE: &str = "member.json";
pub const SECRET_FILE: &str = "cluster.secret";
const FORMAT: u32 = 1;
/// What a standalone node has in its directory, beside no `member.json`. Any of them will do: the others may be missing, which its start then says.
const ALONE: [&str; 3] = ["catalog.journal", superblock::PATHS[0], superblock::PATHS[1]];

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemberFile {
    pub format: u32,
    /// Random number of this directory, in hexadecimal.
    pub directory: String,
    /// The cluster's name, and its id in hexadecimal once it is known here.
    pub cluster_name: Option<String>,
    pub cluster: Option<String>,
    /// This node's number, once it has one.
    pub node: Option<u16>,
    pub roles: Vec<Role>,
    /// Replicas of the cluster that is being founded here, until it is.
    pub founding: Option<u8>,
    /// Fingerprint of the cluster's certificate authority, once it has one.
    #[serde(default)]
    pub authority: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    Manage,
    Data,
    Sql,
}

/// What a directory is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Directory {
    /// Nobody's yet.
    Empty,
    Alone,
    Member(MemberFile),
}

impl MemberFile {
    pub fn new(directory: u64) -> MemberFile {
        MemberFile {
            format: FORMAT,
            directory: format!("{directory:016x}"),
            cluster_name: None,
            cluster: None,
            node: None,
            roles: Vec::new(),
            founding: None,
            authority: None,
        }
    }

    pub fn directory(&self) -> u64 {
        u64::from_str_radix(&self.directory, 16).unwrap_or(0)
    }

    /// Zeros before it is known.
    pub fn cluster(&self) -> [u8; 16] {
        self.cluster.as_deref().and_then(from_hexadecimal).unwrap_or_default()
    }

    pub fn set_cluster(&mut self, id: [u8; 16], name: &str) {
        self.cluster = Some(hexadecimal(&id));
        self.cluster_name = Some(name.into());
    }

    pub fn roles(&self) -> BTreeSet<RoleKind> {
        let kind = |role: &Role| match role {
            Role::Manage => RoleKind::Manage,
            Role::Data => RoleKind::Data,
            Role::Sql => RoleKind::Sql,
        };
        self.roles.iter().map(kind).collect()
    }

    pub fn set_roles(&mut self, roles: &BTreeSet<RoleKind>) {
        let role = |kind: &RoleKind| match kind {
            RoleKind::Manage => Role::Manage,
            RoleKind::Data => Role::Data,
            RoleKind::Sql => Role::Sql,
        };
        self.roles = roles.iter().map(role).collect();
    }

    /// For messages: what is known of it.
    pub fn described(&self) -> String {
        let name = self.cluster_name.as_deref().unwrap_or("a cluster");
        match self.node {
            Some(node) => format!("node {node} of the cluster '{name}' ({})", role_names(&self.roles())),
            None => format!("a node of the cluster '{name}'"),
        }
    }

    /// Replaces the file; on disk when it returns.
    pub fn store(&self, directory: &Path) -> Result<(), String> {
        let path = directory.join(FILE);
        let text = serde_json::to_string_pretty(self).expect("a member file can be written");
        write_durably(directory, FILE, text.as_bytes()).map_err(|e| format!("cannot write {}: {e}", path.display()))
    }

    fn check(&self) -> Result<(), String> {
        if self.format != FORMAT {
            return Err(format!("its format is {}, this program reads {FORMAT}", self.format));
        }
        if self.directory() == 0 {
            return Err("'directory' is not a number in hexadecimal".into());
        }
        match &self.cluster {
            Some(id) if from_hexadecimal(id).is_none() => Err("'cluster' is not an id in hexadecimal".into()),
            _ => Ok(()),
        }
    }
}

/// Whether the directory has tables of a node alone, which a cluster is to be made of.
pub fn is_alone(directory: &Path) -> bool {
    directory.join(ALONE[0]).exists()
}

/// Whether a file of this name says that a directory is one of ours.
pub fn is_ours(name: &OsStr) -> bool {
    name == FILE || ALONE.iter().any(|ours| name == *ours)
}

/// Reads what the directory is; it may not be there yet. A `member.json` that cannot be read is refused: it says who holds which rows.
pub fn inspect(directory: &Path) -> Result<Directory, String> {
    let path = directory.join(FILE);
    match fs::read_to_string(&path) {
        Ok(text) => {
            let read = serde_json::from_str(&text).map_err(|e| e.to_string());
            let read = read.and_then(|file: MemberFile| file.check().map(|()| file));
            read.map(Directory::Member).map_err(|e| {
                format!("{} is damaged ({e}); put it back from a copy, or join with an empty directory", path.display())
            })
        }
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("cannot read {}: {error}", path.display()))
        }
        Err(_) if ALONE.iter().any(|name| directory.join(name).exists()) => Ok(Directory::Alone),
        Err(_) => Ok(Directory::Empty),
    }
}

/// A file that is whole or not there, and that only its owner may read: written beside, synced, renamed.
pub fn write_durably(directory: &Path, name: &str, bytes: &[u8]) -> std::io::Result<()> {
    use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
    let part = directory.join(format!("{name}.part"));
    let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(FILE_MODE).open(&part)?;
    // One that was left behind may be open to others.
    file.set_permissions(fs::Permissions::from_mode(FILE_MODE))?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&part, directory.join(name))?;
    File::open(directory)?.sync_all()
}

/// A directory that only its owner may enter, made if it is not there. Those above it are made as the umask has it.
pub fn make_private(directory: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
    if let Some(above) = directory.parent() {
        fs::create_dir_all(above)?;
    }
    match fs::DirBuilder::new().mode(DIRECTORY_MODE).create(directory) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists && directory.is_dir() => {
            fs::set_permissions(directory, fs::Permissions::from_mode(DIRECTORY_MODE))
        }
        made => made,
    }
}

/// A file to write on behind what it has, which only its owner may read. One that others could read is closed to them.
pub fn append_private(path: &Path) -> std::io::Result<File> {
    use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
    let file = fs::OpenOptions::new().create(true).append(true).mode(FILE_MODE).open(path)?;
    file.set_permissions(fs::Permissions::from_mode(FILE_MODE))?;
    Ok(file)
}

/// A file to lock, made if it is not there; only its owner may read it.
pub fn lock_private(path: &Path) -> std::io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    fs::OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(FILE_MODE).open(path)
}

pub fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn from_hexadecimal(text: &str) -> Option<[u8; 16]> {
    if text.len() != 32 || !text.is_ascii() {
        return None;
    }
    let mut id = [0; 16];
    for (byte, at) in id.iter_mut().zip((0..).step_by(2)) {
        *byte = u8::from_str_radix(&text[at..at + 2], 16).ok()?;
    }
    Some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_says_who_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        assert_eq!(inspect(path), Ok(Directory::Empty));
        assert_eq!(inspect(&path.join("not/there")), Ok(Directory::Empty));
        let mut file = MemberFile::new(0xABCD_EF01_2345_6789);
        file.set_cluster([0xA5; 16], "test");
        file.set_roles(&BTreeSet::from([RoleKind::Sql, RoleKind::Data]));
        file.node = Some(3);
        file.store(path).unwrap();
        let Directory::Member(read) = inspect(path).unwrap() else { panic!("a member") };
        assert_eq!(read, file);
        assert_eq!((read.directory(), read.cluster()), (0xABCD_EF01_2345_6789, [0xA5; 16]));
        assert_eq!(read.described(), "node 3 of the cluster 'test' (data,sql)");
        assert!(!path.join("member.json.part").exists());
    }

    #[test]
    fn a_lone_nodes_directory_is_known() {
        for name in ALONE {
            let directory = tempfile::tempdir().unwrap();
            fs::write(directory.path().join(name), "x").unwrap();
            assert_eq!(inspect(directory.path()), Ok(Directory::Alone));
        }
    }

    #[test]
    fn a_damaged_file_is_refused_with_its_name() {
        let directory = tempfile::tempdir().unwrap();
        let good = serde_json::to_string(&MemberFile::new(5)).unwrap();
        let wrong = [
            String::new(),
            "{}".into(),
            good.replace("\"format\":1", "\"format\":9"),
            good.replace("0000000000000005", "xyz"),
            good.replace("\"cluster\":null", "\"cluster\":\"abc\""),
            good.replace("\"node\"", "\"nodes\""),
        ];
        for text in wrong {
            fs::write(directory.path().join(FILE), &text).unwrap();
            let error = inspect(directory.path()).unwrap_err();
            assert!(error.contains("member.json is damaged") && error.contains("empty directory"), "{text}: {error}");
        }
    }
}
