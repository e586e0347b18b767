//! LOAD DATA: who may, where the file comes from, and one statement around its rows.
//!
//! The whole file is one statement, and in autocommit one transaction, as in MySQL: an error that is no warning leaves nothing behind. It is
//! bounded by what a transaction may write (error 1114 says the limit).
//!
//! A client that was asked for its file sends it to the end, whatever the server says, so after an error the rest is read and thrown away; only then the
//! error can be told. That ends early when the connection is killed.

use super::files::{FileReader, allowed_file};
use super::processlist::{Killed, Process};
use super::run::Done;
use super::session::Session;
use super::status::Counter;
use super::transactions::is_stale;
use crate::expr::context::WarningLevel;
use crate::parse::Statement;
use crate::parse::ast::LoadData;
use futures::future::{Either, select};
use rauk_types::result::{Completion, FileFuture, FlushFuture, ResultColumn, ResultSink};
use rauk_types::{MysqlError, Value, ValueRef};
use std::sync::Arc;

/// ER_CLIENT_LOCAL_FILES_DISABLED.
const LOCAL_FILES_DISABLED: u16 = 3948;
/// WARN_NON_ASCII_SEPARATOR_NOT_IMPLEMENTED.
const NON_ASCII_SEPARATOR: u16 = 1638;

/// How often it is planned again because definitions changed before it began.
const MAX_REPLANS: usize = 8;

/// Who has the file.
enum Origin<'a> {
    Client(&'a mut dyn ResultSink),
    Server(FileReader),
}

/// Where the executor reads the file.
struct Loading<'a> {
    origin: Origin<'a>,
    name: &'a str,
    /// Something of the file was asked for.
    begun: bool,
    ended: bool,
}

impl Loading<'_> {
    async fn read(&mut self, into: &mut Vec<u8>) -> Result<bool, MysqlError> {
        if self.ended {
            return Ok(false);
        }
        let first = !std::mem::replace(&mut self.begun, true);
        let read = match &mut self.origin {
            Origin::Client(sink) => match !first || sink.request_file(self.name) {
                true => sink.read_file(into).await,
                false => Err(local_files_disabled()),
            },
            Origin::Server(file) => match file.next().await {
                Ok(Some(piece)) if into.is_empty() => {
                    *into = piece;
                    Ok(true)
                }
                Ok(Some(piece)) => {
                    into.extend_from_slice(&piece);
                    Ok(true)
                }
                Ok(None) => Ok(false),
                Err(error) => Err(error),
            },
        };
        self.ended = matches!(read, Ok(false));
        read
    }

    /// Reads what a client still sends.
    async fn drain(&mut self, process: &Arc<Process>) {
        if !self.begun || !matches!(self.origin, Origin::Client(_)) {
            return;
        }
        let mut rest = Vec::new();
        loop {
            rest.clear();
            let read = std::pin::pin!(self.read(&mut rest));
            match select(read, Killed(process.clone())).await {
                // An error was told by who met it first; the file goes on, or it has ended.
                Either::Left((Ok(true) | Err(_), _)) => {}
                Either::Left((Ok(false), _)) | Either::Right(_) => return,
            }
        }
    }
}

impl ResultSink for Loading<'_> {
    fn columns(&mut self, _: &[ResultColumn]) {}

    fn row(&mut self, _: &[ValueRef<'_>]) {}

    fn withdraw(&mut self) -> bool {
        !self.begun
    }

    fn complete(&mut self, _: &Completion) {}

    fn buffered(&self) -> usize {
        0
    }

    fn flush(&mut self) -> FlushFuture<'_> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn read_file<'a>(&'a mut self, into: &'a mut Vec<u8>) -> FileFuture<'a> {
        Box::pin(self.read(into))
    }
}

fn local_files_disabled() -> MysqlError {
    let message = "Loading local data is disabled; this must be enabled on both the client and server sides";
    MysqlError::new(LOCAL_FILES_DISABLED, message)
}

impl Session {
    /// LOAD DATA [LOCAL] INFILE. Errors: 13, 29, 1045, 1083, 1085, 1290, 3948, and those of INSERT.
    pub(super) async fn load_data(&mut self, load: &LoadData, sink: &mut dyn ResultSink) -> Result<Done, MysqlError> {
        if load.local {
            let enabled = self.variables.by_name("local_infile") == Value::Int(1);
            if !(enabled && self.client.local_files) {
                return Err(local_files_disabled());
            }
        } else {
            self.require_file()?;
        }
        let mut load = load.clone();
        if load.charset.is_none()
            && let Value::Str(charset) = self.variables.by_name("character_set_database")
        {
            load.charset = Some(charset);
        }
        let format = &load.format;
        let separators = [&format.field_end, &format.enclosed, &format.escaped, &format.line_start, &format.line_end];
        if separators.iter().any(|bytes| !bytes.is_ascii()) {
            let message = "Non-ASCII separator arguments are not fully supported".to_string();
            self.push_warning(WarningLevel::Warning, NON_ASCII_SEPARATOR, message);
        }
        let statement = Statement::Load(Box::new(load));
        let Statement::Load(load) = &statement else { unreachable!("it was made above") };
        self.process.counters.add(Counter::Load, 1);
        for attempt in 0.. {
            let (plan, _) = self.plan(&statement, self.parameter_types.clone())?;
            let origin = match load.local {
                true => Origin::Client(&mut *sink),
                false => Origin::Server(FileReader::open(&allowed_file(&self.engine, &load.file)?)?),
            };
            let mut loading = Loading { origin, name: &load.file, begun: false, ended: false };
            let result = self.run_plan(&plan, &mut loading).await;
            loading.drain(&self.process).await;
            match result {
                Err(error) if is_stale(&error) && attempt < MAX_REPLANS && !loading.begun => {}
                Err(error) => return Err(error),
                Ok(completion) => return Ok(completion.into()),
            }
        }
        unreachable!("the loop returns")
    }
}
