//! The real disk: one directory, locked against a second process.
//!
//! **Who may read it.** The redo log has all rows, the catalog's journal the password hashes. So files are made with mode 0600 and directories with 0700, whatever the umask is, and opening takes the
//! rights of group and others away from what is there already, of an older version, say, with a warning: a copy or a backup made by another account may have relied on them.
//!
//! Buffered writes and `fdatasync`. `O_DIRECT|O_DSYNC` on aligned blocks was measured beside it and gains nothing (ext4 on a virtio disk, medians of 256 B to 4 KiB: 74–110 µs buffered,
//! 70–105 µs direct, from run to run; `cargo bench -p rauk-log --bench durable_write` prints both), and buffered writes need no alignment. What does matter is the first write
//! into a block that was only allocated: 186 µs instead of 90 for 4 KiB. That is why segments are overwritten in turn, and new ones zeroed a little ahead (`redo/writer.rs`).
use crate::disk::{Disk, DiskFile};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Name of the file whose lock says that a process uses the directory.
pub const LOCK_FILE: &str = "LOCK";
/// What is made may be read and written by its owner only.
pub const FILE_MODE: u32 = 0o600;
pub const DIRECTORY_MODE: u32 = 0o700;
/// Rights of group and others.
const OTHERS: u32 = 0o077;
/// Directories within directories that are looked into.
const DEPTH: u32 = 4;

pub struct RealDisk {
    root: PathBuf,
    /// Held for as long as this disk is open; the system gives it back when the process ends, however it ends.
    _lock: File,
}

struct RealFile {
    file: File,
}

impl RealDisk {
    /// Opens a directory, making it when it is not there, and locks it.
    pub fn open(root: impl AsRef<Path>) -> io::Result<RealDisk> {
        let root = root.as_ref().to_path_buf();
        make_directory(&root).map_err(|e| named(e, "cannot make data directory", &root))?;
        let path = root.join(LOCK_FILE);
        let lock = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(FILE_MODE)
            .open(&path)
            .map_err(|e| named(e, "cannot open lock file", &path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(io::Error::new(
                    io::ErrorKind::ResourceBusy,
                    format!("data directory {} is in use by another process", root.display()),
                ));
            }
            Err(TryLockError::Error(e)) => return Err(named(e, "cannot lock", &path)),
        }
        close_to_others(&root);
        Ok(RealDisk { root, _lock: lock })
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }
}

/// Directories above it are made as the umask has it.
fn make_directory(path: &Path) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    match fs::DirBuilder::new().mode(DIRECTORY_MODE).create(path) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        made => made,
    }
}

/// Takes the rights of group and others away from the directory and everything in it, and says so. What cannot be changed is told of and left.
fn close_to_others(root: &Path) {
    let mut changed = Changed::default();
    changed.look(root, DEPTH);
    let directory = root.display();
    if let Some(first) = &changed.first {
        let count = changed.count;
        tracing::warn!(%directory, count, example = %first.display(), "files that other accounts could read are closed to them (mode 0600, directories 0700)");
    }
    if let Some((path, error)) = &changed.failed {
        tracing::warn!(%directory, file = %path.display(), %error, "other accounts can read this file, and its mode cannot be changed: change it, or its owner");
    }
}

#[derive(Default)]
struct Changed {
    count: u64,
    first: Option<PathBuf>,
    failed: Option<(PathBuf, io::Error)>,
}

impl Changed {
    fn look(&mut self, path: &Path, depth: u32) {
        if let Err(error) = self.look_at(path, depth)
            // A file may go meanwhile: nobody's but this process's own, but what is not there is not read.
            && error.kind() != io::ErrorKind::NotFound
        {
            self.failed.get_or_insert((path.to_path_buf(), error));
        }
    }

    fn look_at(&mut self, path: &Path, depth: u32) -> io::Result<()> {
        let link = fs::symlink_metadata(path)?.is_symlink();
        let metadata = fs::metadata(path)?;
        // A directory may lie on another disk; a file elsewhere is somebody else's.
        if link && !metadata.is_dir() {
            return Ok(());
        }
        let mode = metadata.permissions().mode() & 0o7777;
        if mode & OTHERS != 0 {
            fs::set_permissions(path, fs::Permissions::from_mode(mode & !OTHERS))?;
            self.count += 1;
            self.first.get_or_insert(path.to_path_buf());
        }
        if metadata.is_dir() && depth > 0 {
            for entry in fs::read_dir(path)? {
                self.look(&entry?.path(), depth - 1);
            }
        }
        Ok(())
    }
}

/// Keeps the kind and says which path it was.
fn named(error: io::Error, what: &str, path: &Path) -> io::Error {
    io::Error::new(error.kind(), format!("{what} {}: {error}", path.display()))
}

impl Disk for RealDisk {
    fn create_dir_all(&self, path: &str) -> io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(self.path(path))
    }

    fn list(&self, path: &str) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(self.path(path))? {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        names.sort();
        Ok(names)
    }

    fn exists(&self, path: &str) -> io::Result<bool> {
        self.path(path).try_exists()
    }

    fn open(&self, path: &str, create: bool) -> io::Result<Arc<dyn DiskFile>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(create).truncate(false).mode(FILE_MODE);
        let file = options.open(self.path(path))?;
        Ok(Arc::new(RealFile { file }))
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        fs::remove_file(self.path(path))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path(from), self.path(to))
    }

    fn sync_dir(&self, path: &str) -> io::Result<()> {
        File::open(self.path(path))?.sync_all()
    }
}

impl DiskFile for RealFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_exact_at(buffer, offset)
    }

    fn write_all_at(&self, buffer: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_all_at(buffer, offset)
    }

    fn allocate(&self, length: u64) -> io::Result<()> {
        let present = self.len()?;
        match fs4::FileExt::allocate(&self.file, length) {
            Ok(()) => {}
            // A file system that cannot reserve room gets it written full.
            Err(e) if e.kind() == io::ErrorKind::Unsupported => {
                let zeros = vec![0; 1 << 20];
                let mut at = present;
                while at < length {
                    let part = (length - at).min(zeros.len() as u64);
                    self.file.write_all_at(&zeros[..part as usize], at)?;
                    at += part;
                }
            }
            Err(e) => return Err(e),
        }
        // Blocks that the file has already are not given again, but may lie behind its end.
        if self.len()? < length { self.file.set_len(length) } else { Ok(()) }
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.file.set_len(length)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn second_opener_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let first = RealDisk::open(dir.path()).unwrap();
        let error = RealDisk::open(dir.path()).err().expect("locked");
        assert!(error.to_string().contains("in use by another process"), "{error}");
        drop(first);
        RealDisk::open(dir.path()).unwrap();
    }

    /// Modes of everything below a directory, by path.
    fn modes(path: &Path, found: &mut Vec<(PathBuf, bool, u32)>) {
        let metadata = fs::metadata(path).unwrap();
        found.push((path.to_path_buf(), metadata.is_dir(), metadata.permissions().mode() & 0o777));
        if metadata.is_dir() {
            fs::read_dir(path).unwrap().for_each(|entry| modes(&entry.unwrap().path(), found));
        }
    }

    fn closed(path: &Path) {
        let mut found = Vec::new();
        modes(path, &mut found);
        for (path, directory, mode) in found {
            assert_eq!(mode, if directory { DIRECTORY_MODE } else { FILE_MODE }, "{}", path.display());
        }
    }

    #[test]
    fn only_the_owner_may_read() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("above/data");
        let fill = |disk: &RealDisk| {
            disk.create_dir_all("redo/deep").unwrap();
            for path in ["redo/deep/x", "redo/y.tmp", "z"] {
                disk.open(path, true).unwrap().write_all_at(b"x", 0).unwrap();
            }
            disk.rename("redo/y.tmp", "redo/y").unwrap();
        };
        fill(&RealDisk::open(&root).unwrap());
        closed(&root);
        // Of an older version: everybody may read.
        let mut found = Vec::new();
        modes(&root, &mut found);
        for (path, directory, _) in &found {
            let mode = if *directory { 0o755 } else { 0o644 };
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }
        // A file elsewhere keeps its mode, a directory elsewhere is a part of this one.
        let (file, other) = (dir.path().join("elsewhere"), dir.path().join("other disk"));
        fs::write(&file, "x").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        fs::create_dir(&other).unwrap();
        fs::write(other.join("segment"), "x").unwrap();
        std::os::unix::fs::symlink(&file, root.join("file")).unwrap();
        std::os::unix::fs::symlink(&other, root.join("directory")).unwrap();
        drop(RealDisk::open(&root).unwrap());
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o644);
        fs::remove_file(root.join("file")).unwrap();
        closed(&root);
        closed(&other);
    }

    #[test]
    fn files_and_names() {
        let dir = tempfile::tempdir().unwrap();
        let disk = RealDisk::open(dir.path()).unwrap();
        disk.create_dir_all("a/b").unwrap();
        assert!(disk.open("a/b/x", false).is_err());
        let file = disk.open("a/b/x", true).unwrap();
        file.write_all_at(b"x", 0).unwrap();
        file.allocate(100).unwrap();
        assert_eq!(file.len().unwrap(), 100);
        file.allocate(10_000).unwrap();
        file.allocate(5_000).unwrap();
        assert_eq!(file.len().unwrap(), 10_000);
        file.write_all_at(b"hello", 9_000).unwrap();
        file.sync_data().unwrap();
        disk.rename("a/b/x", "a/b/y").unwrap();
        disk.sync_dir("a/b").unwrap();
        assert_eq!(disk.list("a/b").unwrap(), ["y"]);
        let mut bytes = [0; 5];
        disk.open("a/b/y", false).unwrap().read_exact_at(&mut bytes, 9_000).unwrap();
        assert_eq!(&bytes, b"hello");
        assert!(file.read_exact_at(&mut bytes, 9_998).is_err());
        disk.remove("a/b/y").unwrap();
        assert!(!disk.exists("a/b/y").unwrap());
    }
}
