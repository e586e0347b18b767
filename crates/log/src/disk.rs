//! All disk access goes through [`Disk`], so that the simulator can tear, lose, fill and flip.
//!
//! What a caller may rely on, and no more: a sector of 512 bytes is written wholly or not at all; what `sync_data` returned for stays; what was written
//! since may be there in part, in any order; files made, renamed and removed since the last `sync_dir` of their directory may be there or not.
//! After a failed `sync_data` nothing is known of what was not synced before.
use std::io;
use std::sync::Arc;

/// A directory tree. Paths are relative to its root, with `/`.
pub trait Disk: Send + Sync {
    fn create_dir_all(&self, path: &str) -> io::Result<()>;
    /// Names in a directory, sorted.
    fn list(&self, path: &str) -> io::Result<Vec<String>>;
    fn exists(&self, path: &str) -> io::Result<bool>;
    /// Opens for reading and writing; `create` makes the file when it is not there.
    fn open(&self, path: &str, create: bool) -> io::Result<Arc<dyn DiskFile>>;
    fn remove(&self, path: &str) -> io::Result<()>;
    /// Replaces `to`. Durable only after `sync_dir` of the directory.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    fn sync_dir(&self, path: &str) -> io::Result<()>;
    /// Does two pieces of work with files at the same time; both are over when it returns. The simulator draws the order of their operations.
    fn together<'a>(&self, first: Box<dyn FnOnce() + Send + 'a>, second: Box<dyn FnOnce() + Send + 'a>) {
        std::thread::scope(|scope| {
            scope.spawn(second);
            first();
        });
    }
}

pub trait DiskFile: Send + Sync {
    fn len(&self) -> io::Result<u64>;
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;
    fn write_all_at(&self, buffer: &[u8], offset: u64) -> io::Result<()>;
    /// Makes room for `length` bytes (posix_fallocate): the file is at least as long afterwards, and later writes within it do not fail for lack of space.
    fn allocate(&self, length: u64) -> io::Result<()>;
    fn set_len(&self, length: u64) -> io::Result<()>;
    /// fdatasync: contents and length are durable when it returns.
    fn sync_data(&self) -> io::Result<()>;
}

/// The directory part of a path, empty for the root.
pub(crate) fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(dir, _)| dir)
}
