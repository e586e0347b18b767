//! Files of the server's machine, for LOAD DATA, SELECT … INTO OUTFILE and LOAD_FILE.
//!
//! Who has the FILE privilege could otherwise read and write whatever the server can, so files are in reach only where the server was started with
//! `secure-file-priv`: beneath that directory, after symlinks and `..` were followed, or everywhere if it is empty. The data directory is out of
//! reach unless the setting names a directory in it: there are keys and logs in it. Without the setting every file is error 1290.
//!
//! A disk or a pipe may keep a reader waiting, so each open file has a thread. Two pieces at most are on the way between it and the statement, which waits
//! for them as for anything else: KILL ends it. The thread ends when the statement has gone.

use super::engine::Engine;
use super::errors;
use super::session::Session;
use super::users::Privileges;
use super::variables::store::find;
use futures::channel::mpsc;
use futures::{SinkExt, StreamExt};
use rauk_node::block_on;
use rauk_types::error::codes;
use rauk_types::{MysqlError, Value};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// ER_TEXTFILE_NOT_READABLE.
const NOT_READABLE: u16 = 1085;
/// ER_FILE_EXISTS_ERROR.
const FILE_EXISTS: u16 = 1086;
/// ER_ERROR_ON_READ.
const ERROR_ON_READ: u16 = 1024;
/// ER_ERROR_ON_WRITE.
const ERROR_ON_WRITE: u16 = 1026;
/// EE_CANTCREATEFILE.
const CANNOT_CREATE: u16 = 1;
/// EE_STAT.
const CANNOT_STAT: u16 = 13;
/// EE_FILENOTFOUND.
const FILE_NOT_FOUND: u16 = 29;

/// Bytes of a piece of a file.
pub(super) const PIECE: usize = 256 << 10;
/// Pieces that wait between a thread and its statement, beside the one that the thread has.
const WAITING: usize = 1;

/// Where files may be.
enum Reach {
    Nowhere,
    /// Beneath this directory; its path has no symlinks.
    Beneath(PathBuf),
    Everywhere,
}

/// A path that may be read or written.
pub(super) struct AllowedFile {
    path: PathBuf,
    /// As the statement has it.
    name: String,
}

fn prevented() -> MysqlError {
    let message = "The MySQL server is running with the --secure-file-priv option so it cannot execute this statement";
    MysqlError::new(codes::OPTION_PREVENTS_STATEMENT, message)
}

/// `(OS errno 2 - No such file or directory)`
fn reason(error: &io::Error) -> String {
    let number = error.raw_os_error().unwrap_or(0);
    let text = error.to_string();
    let text = text.strip_suffix(&format!(" (os error {number})")).unwrap_or(&text);
    format!("(OS errno {number} - {text})")
}

impl Session {
    /// The FILE privilege: 1045.
    pub(super) fn require_file(&self) -> Result<(), MysqlError> {
        if self.account.global.contains(Privileges::FILE) {
            return Ok(());
        }
        let (user, host) = (&self.account.user, &self.process.host);
        let password = if self.account.hash.is_empty() { "NO" } else { "YES" };
        let message = format!("Access denied for user '{user}'@'{host}' (using password: {password})");
        Err(MysqlError::new(codes::ACCESS_DENIED, message))
    }
}

fn reach(engine: &Engine) -> Reach {
    let (_, at) = find("secure_file_priv").expect("a variable that the server reads exists");
    match engine.variables.get(at) {
        Value::Str(directory) if directory.is_empty() => Reach::Everywhere,
        // A directory that is gone has nothing beneath it.
        Value::Str(directory) => fs::canonicalize(directory).map_or(Reach::Nowhere, Reach::Beneath),
        _ => Reach::Nowhere,
    }
}

/// Where a file lies; a relative name is one in the data directory. Errors: 1290.
pub(super) fn allowed_file(engine: &Engine, name: &str) -> Result<AllowedFile, MysqlError> {
    let reach = reach(engine);
    if matches!(reach, Reach::Nowhere) || name.contains('\0') {
        return Err(prevented());
    }
    let data = engine.variables.text("datadir");
    let written = Path::new(&data).join(name);
    // A file that is to be made has no path yet, but its directory has. One whose directory is not there is nowhere.
    let path = match (fs::canonicalize(&written), written.parent(), written.file_name()) {
        (Ok(path), ..) => path,
        (Err(_), Some(parent), Some(file)) if fs::symlink_metadata(&written).is_err() => {
            fs::canonicalize(parent).map_err(|_| prevented())?.join(file)
        }
        // A symlink that leads nowhere.
        _ => return Err(prevented()),
    };
    let within = |directory: &Path| path.starts_with(directory);
    let hidden = fs::canonicalize(&data).is_ok_and(|data| !data.as_os_str().is_empty() && within(&data));
    let allowed = match &reach {
        Reach::Nowhere => false,
        Reach::Beneath(directory) => {
            let own = fs::canonicalize(&data).is_ok_and(|data| directory.starts_with(&data) && *directory != data);
            within(directory) && (own || !hidden)
        }
        Reach::Everywhere => !hidden,
    };
    match allowed {
        true => Ok(AllowedFile { path, name: written.display().to_string() }),
        false => Err(prevented()),
    }
}

/// The first `most` bytes of a plain file that can be read.
pub(super) fn load(file: &AllowedFile, most: usize) -> Option<Vec<u8>> {
    // A pipe would wait for who writes into it.
    let length = fs::metadata(&file.path).ok().filter(fs::Metadata::is_file)?.len();
    let opened = File::open(&file.path).ok()?;
    let mut bytes = Vec::with_capacity(most.min(usize::try_from(length).unwrap_or(most)));
    opened.take(most as u64).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// A file that a thread reads.
pub(super) struct FileReader {
    pieces: mpsc::Receiver<Result<Vec<u8>, MysqlError>>,
}

impl FileReader {
    /// Errors: 13, 29, 1085.
    pub fn open(file: &AllowedFile) -> Result<FileReader, MysqlError> {
        let AllowedFile { path, name } = file;
        let found = fs::metadata(path)
            .map_err(|error| MysqlError::new(CANNOT_STAT, format!("Can't get stat of '{name}' {}", reason(&error))))?;
        if !found.is_file() && !found.file_type().is_fifo() {
            let message = format!("The file '{name}' must be in the database directory or be readable by all");
            return Err(MysqlError::new(NOT_READABLE, message));
        }
        let (sender, pieces) = mpsc::channel(WAITING);
        let (path, name) = (path.clone(), name.clone());
        // A pipe is opened by the thread, since that waits for who writes into it.
        let opened = match found.is_file() {
            true => Some(open_to_read(&path, &name)?),
            false => None,
        };
        in_thread("file-read", move || {
            let opened = opened.map_or_else(|| open_to_read(&path, &name), Ok);
            read_pieces(opened, &name, sender);
        })?;
        Ok(FileReader { pieces })
    }

    /// The next piece; `None`: the file has ended.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>, MysqlError> {
        self.pieces.next().await.transpose()
    }
}

fn open_to_read(path: &Path, name: &str) -> Result<File, MysqlError> {
    File::open(path)
        .map_err(|error| MysqlError::new(FILE_NOT_FOUND, format!("File '{name}' not found {}", reason(&error))))
}

fn in_thread(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), MysqlError> {
    let spawned = std::thread::Builder::new().name(name.to_string()).spawn(work);
    spawned.map(drop).map_err(|error| {
        let message =
            format!("Can't create a new thread ({error}); if you are not out of available memory, see the limits");
        MysqlError::new(1135, message)
    })
}

fn read_pieces(opened: Result<File, MysqlError>, name: &str, mut sender: mpsc::Sender<Result<Vec<u8>, MysqlError>>) {
    let mut file = match opened {
        Ok(file) => file,
        Err(error) => {
            _ = block_on(sender.send(Err(error)));
            return;
        }
    };
    loop {
        let mut piece = Vec::with_capacity(PIECE);
        let read = Read::by_ref(&mut file).take(PIECE as u64).read_to_end(&mut piece);
        let sent = match read {
            Ok(0) => return,
            Ok(_) => block_on(sender.send(Ok(piece))),
            Err(error) => {
                let message = format!("Error reading file '{name}' {}", reason(&error));
                _ = block_on(sender.send(Err(MysqlError::new(ERROR_ON_READ, message))));
                return;
            }
        };
        // Nobody wants more.
        if sent.is_err() {
            return;
        }
    }
}

/// A new file that a thread writes. Dropped before it is finished, it is removed.
pub(super) struct FileWriter {
    pieces: Option<mpsc::Sender<Vec<u8>>>,
    outcome: futures::channel::oneshot::Receiver<Result<(), MysqlError>>,
    path: PathBuf,
    finished: bool,
}

impl FileWriter {
    /// Errors: 1, 1086.
    pub fn create(file: &AllowedFile) -> Result<FileWriter, MysqlError> {
        let AllowedFile { path, name } = file;
        let created = OpenOptions::new().write(true).create_new(true).mode(0o640).open(path);
        let mut file = created.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => MysqlError::new(FILE_EXISTS, format!("File '{name}' already exists")),
            _ => {
                let message = format!("Can't create/write to file '{name}' {}", reason(&error));
                MysqlError::new(CANNOT_CREATE, message)
            }
        })?;
        let (sender, mut pieces) = mpsc::channel::<Vec<u8>>(WAITING);
        let (tell, outcome) = futures::channel::oneshot::channel();
        let (path, name) = (path.clone(), name.clone());
        let writer = FileWriter { pieces: Some(sender), outcome, path, finished: false };
        in_thread("file-write", move || {
            let mut written = Ok(());
            while let Some(piece) = block_on(pieces.next()) {
                written = file.write_all(&piece).map_err(|error| {
                    MysqlError::new(ERROR_ON_WRITE, format!("Error writing file '{name}' {}", reason(&error)))
                });
                if written.is_err() {
                    break;
                }
            }
            // The statement sees at its next piece, or at the end, that nobody takes them.
            drop(pieces);
            _ = tell.send(written);
        })?;
        Ok(writer)
    }

    /// Hands a piece to the thread, when it has room for it. Errors: 1026.
    pub async fn write(&mut self, piece: Vec<u8>) -> Result<(), MysqlError> {
        let Some(pieces) = &mut self.pieces else { return Ok(()) };
        if pieces.send(piece).await.is_err() {
            self.pieces = None;
            return self.told().await;
        }
        Ok(())
    }

    /// Waits until everything is written.
    pub async fn finish(mut self) -> Result<(), MysqlError> {
        self.pieces = None;
        self.told().await?;
        self.finished = true;
        Ok(())
    }

    async fn told(&mut self) -> Result<(), MysqlError> {
        match (&mut self.outcome).await {
            Ok(outcome) => outcome,
            Err(_) => Err(errors::unknown("The thread that writes a file has ended")),
        }
    }
}

impl Drop for FileWriter {
    fn drop(&mut self) {
        if !self.finished {
            self.pieces = None;
            // The name goes at once; what the thread still writes goes with the file's last handle.
            if let Err(error) = fs::remove_file(&self.path) {
                tracing::warn!(path = %self.path.display(), %error, "an unfinished file cannot be removed");
            }
        }
    }
}
