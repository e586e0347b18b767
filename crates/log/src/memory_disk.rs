//! A disk in memory, for tests and fuzzing: nothing is ever lost, so it shows nothing about crashes (the simulator's disk does).
use crate::disk::{Disk, DiskFile};
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

#[derive(Default)]
pub struct MemoryDisk {
    files: RwLock<BTreeMap<String, Arc<MemoryFile>>>,
}

#[derive(Default)]
struct MemoryFile {
    bytes: RwLock<Vec<u8>>,
}

impl MemoryDisk {
    pub fn new() -> Arc<MemoryDisk> {
        Arc::default()
    }

    /// The files as they are now, on a disk of their own: what a process that ends now leaves.
    pub fn copy(&self) -> Arc<MemoryDisk> {
        let copied = |file: &Arc<MemoryFile>| Arc::new(MemoryFile { bytes: RwLock::new(file.bytes.read().clone()) });
        let files = self.files.read().iter().map(|(name, file)| (name.clone(), copied(file))).collect();
        Arc::new(MemoryDisk { files: RwLock::new(files) })
    }
}

fn missing(path: &str) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("no file {path}"))
}

impl Disk for MemoryDisk {
    fn create_dir_all(&self, _path: &str) -> io::Result<()> {
        Ok(())
    }

    fn list(&self, path: &str) -> io::Result<Vec<String>> {
        let files = self.files.read();
        let inside = files.keys().filter_map(|name| match path {
            "" => Some(&**name),
            path => name.strip_prefix(path)?.strip_prefix('/'),
        });
        Ok(inside.filter(|name| !name.contains('/')).map(str::to_string).collect())
    }

    fn exists(&self, path: &str) -> io::Result<bool> {
        let inside =
            |name: &String| name.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        Ok(self.files.read().keys().any(inside))
    }

    fn open(&self, path: &str, create: bool) -> io::Result<Arc<dyn DiskFile>> {
        let mut files = self.files.write();
        match files.get(path) {
            Some(file) => Ok(file.clone()),
            None if create => {
                let file = Arc::<MemoryFile>::default();
                files.insert(path.to_string(), file.clone());
                Ok(file)
            }
            None => Err(missing(path)),
        }
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        self.files.write().remove(path).map(drop).ok_or_else(|| missing(path))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut files = self.files.write();
        let file = files.remove(from).ok_or_else(|| missing(from))?;
        files.insert(to.to_string(), file);
        Ok(())
    }

    fn sync_dir(&self, _path: &str) -> io::Result<()> {
        Ok(())
    }
}

impl DiskFile for MemoryFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.bytes.read().len() as u64)
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let bytes = self.bytes.read();
        let range = usize::try_from(offset).ok().and_then(|start| bytes.get(start..start.checked_add(buffer.len())?));
        buffer.copy_from_slice(range.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write_all_at(&self, buffer: &[u8], offset: u64) -> io::Result<()> {
        let mut bytes = self.bytes.write();
        let (start, end) = (offset as usize, offset as usize + buffer.len());
        if bytes.len() < end {
            bytes.resize(end, 0);
        }
        bytes[start..end].copy_from_slice(buffer);
        Ok(())
    }

    fn allocate(&self, length: u64) -> io::Result<()> {
        let mut bytes = self.bytes.write();
        let length = bytes.len().max(length as usize);
        bytes.resize(length, 0);
        Ok(())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.bytes.write().resize(length as usize, 0);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }
}
