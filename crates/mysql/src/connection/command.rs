//! The command phase: wait for a command, run it on the session, send its answer with one write.
//!
//! A statement's future runs on the thread that read its packet and is polled directly: no task switch, no channel. Only when it has to wait are
//! the stop signal and timers looked at.
use super::link::{Channel, ChannelError, Link};
use super::plain_ok;
use super::stream::Peer;
use crate::backend::{Backend, Prepared, Session, Timeouts};
use crate::constants::{capability, code, command, status as flag};
use crate::handshake::{self, Login};
use crate::packet::read::{Fields, Malformed};
use crate::packet::reader::{FrameError, Packet};
use crate::result::sink::{Context, Form, Sink};
use crate::result::{column, status};
use crate::runtime::{Sleep, sleep_until};
use crate::server::{Counters, Phase, Registered, Server};
use crate::statement::{Statements, parameters};
use crate::statement_text;
use rauk_types::error::codes;
use rauk_types::result::ServerStatus;
use rauk_types::{MysqlError, Value};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Poll;
use std::time::{Duration, Instant};

/// How the command phase ended.
pub enum Exit {
    /// In order: COM_QUIT, or the server's own wish with a last packet written.
    Closed,
    /// The client went without a word, or spoke nonsense.
    Aborted,
    /// COM_CHANGE_USER: the session ends, authentication begins again.
    ChangeUser(Login, Option<u16>),
}

/// What ends a connection that waits for a command.
#[derive(Clone, Copy)]
enum Stop {
    Killed,
    Shutdown,
}

type Signal<T> = Pin<Box<dyn Future<Output = T> + Send>>;

pub struct Commands<'a, B: Backend> {
    pub channel: &'a mut Channel,
    session: B::Session,
    context: Context,
    counters: &'a Counters,
    statements: Statements,
    /// Parameters of the present execution, kept for its memory.
    values: Vec<Value>,
    /// Resolves when a waiting connection must end.
    stop: Signal<Stop>,
    /// What it has resolved to.
    stopped: Option<Stop>,
    timer: Pin<Box<Sleep>>,
    watch: Watch,
    timeouts: Timeouts,
}

/// What a statement that waits is watched for.
struct Watch {
    /// Resolves when even running statements must end.
    abort: Signal<()>,
    peer: Option<Peer>,
    /// Ends the running statement; the server has it too, for its own end.
    interrupt: Registered,
    /// Until the client is looked after again; made for the first statement that waits.
    timer: Option<Pin<Box<Sleep>>>,
}

/// How often it is looked whether the client of a statement that waits is still there.
const LOOK: Duration = Duration::from_secs(1);

/// After a command.
enum Next {
    Continue,
    Exit(Exit),
}

impl<'a, B: Backend> Commands<'a, B> {
    pub fn new(
        server: &Server<B>,
        channel: &'a mut Channel,
        session: B::Session,
        context: Context,
        counters: &'a Counters,
    ) -> Self {
        let killed: Signal<()> = Box::pin(session.killed());
        let drained: Signal<()> = Box::pin(server.phase_reached(Phase::Draining));
        let timeouts = session.timeouts();
        channel.link.set_write_timeout(timeouts.write);
        let peer = channel.link.stream.peer();
        let closing: Signal<()> = Box::pin(server.phase_reached(Phase::Closing));
        channel.link.end_waits_with(Box::pin(first(Box::pin(session.killed()), closing)));
        Commands {
            channel,
            context,
            counters,
            statements: Statements::default(),
            values: Vec::new(),
            stop: Box::pin(first_of(killed, drained)),
            stopped: None,
            watch: Watch {
                abort: Box::pin(server.phase_reached(Phase::Closing)),
                peer,
                interrupt: server.interrupts().register(Arc::new(session.interrupter())),
                timer: None,
            },
            timer: Box::pin(sleep_until(Instant::now() + timeouts.idle)),
            timeouts,
            session,
        }
    }

    /// The OK that ends authentication.
    pub fn welcome(&mut self) {
        let completion = plain_ok(self.session.status());
        status::write_ok(&mut self.channel.link.writer, self.context.capabilities, &completion, &[]);
    }

    pub async fn run(&mut self) -> Exit {
        loop {
            if self.channel.link.send().await.is_err() || self.channel.link.is_broken() {
                return Exit::Aborted;
            }
            self.channel.link.writer.park();
            self.counters.sent.fetch_add(self.channel.link.take_sent(), Relaxed);
            let packet = match self.next().await {
                Ok(packet) => packet,
                Err(exit) => return exit,
            };
            self.counters.received.fetch_add(self.channel.take_received(), Relaxed);
            self.counters.commands.fetch_add(1, Relaxed);
            let next = match packet {
                Some(packet) => self.command(&packet).await,
                None => Ok(Next::Continue),
            };
            match next {
                Ok(Next::Continue) => {}
                Ok(Next::Exit(exit)) => return exit,
                Err(error) => {
                    let set = self.session.status().charsets.of_names();
                    status::write_error(&mut self.channel.link.writer, &error, set);
                }
            }
        }
    }

    /// Waits for the next command. `None`: it was answered already, being too large.
    async fn next(&mut self) -> Result<Option<Packet>, Exit> {
        self.channel.reader.set_sequence(0);
        self.channel.reader.set_limit(self.session.max_allowed_packet());
        let timeouts = self.session.timeouts();
        let idle_since = Instant::now();
        if timeouts != self.timeouts {
            self.timeouts = timeouts;
            self.channel.link.set_write_timeout(timeouts.write);
            self.timer.as_mut().reset(idle_since + timeouts.idle);
        }
        // When part of a packet is there, its rest must come within the read timeout after the last bytes.
        let mut half: Option<(u64, Instant)> = None;
        let waited = poll_fn(|cx| {
            if let Poll::Ready(packet) = self.channel.poll_packet(cx) {
                return Poll::Ready(Ok(packet));
            }
            if self.channel.in_packet() {
                let reads = self.channel.reads;
                if half.is_none_or(|(seen, _)| seen != reads) {
                    let deadline = Instant::now() + timeouts.read;
                    if half.is_none() {
                        self.timer.as_mut().reset(deadline);
                    }
                    half = Some((reads, deadline));
                }
            }
            if self.stopped.is_none()
                && let Poll::Ready(stop) = self.stop.as_mut().poll(cx)
            {
                self.stopped = Some(stop);
            }
            match self.stopped {
                // The server waits a while for what has begun; whoever is killed is not waited for.
                Some(Stop::Shutdown) if self.channel.in_packet() => {}
                Some(stop) => return Poll::Ready(Err(Some(stop))),
                None => {}
            }
            while self.timer.as_mut().poll(cx).is_ready() {
                let deadline = half.map_or(idle_since + timeouts.idle, |(_, deadline)| deadline);
                if Instant::now() >= deadline {
                    return Poll::Ready(Err(None));
                }
                self.timer.as_mut().reset(deadline);
            }
            Poll::Pending
        })
        .await;
        let set = self.session.status().charsets.of_names();
        let writer = &mut self.channel.link.writer;
        match waited {
            Ok(Ok(packet)) => Ok(Some(packet)),
            Ok(Err(ChannelError::Frame(FrameError::TooLarge))) => {
                let error = "Got a packet bigger than 'max_allowed_packet' bytes";
                status::write_error(writer, &MysqlError::new(codes::NET_PACKET_TOO_LARGE, error), set);
                Ok(None)
            }
            Ok(Err(ChannelError::Frame(FrameError::OutOfOrder { .. }))) => {
                let error = MysqlError::new(codes::NET_PACKETS_OUT_OF_ORDER, "Got packets out of order");
                status::write_error(writer, &error, set);
                Err(Exit::Aborted)
            }
            Ok(Err(_)) => Err(Exit::Aborted),
            Err(Some(Stop::Killed)) => Err(Exit::Closed),
            Err(Some(Stop::Shutdown)) => {
                writer.set_sequence(0);
                status::write_error(writer, &shutting_down(), set);
                Err(Exit::Closed)
            }
            Err(None) => {
                writer.set_sequence(0);
                let error = if half.is_some() {
                    MysqlError {
                        state: *b"08S01",
                        ..MysqlError::new(code::NET_READ_INTERRUPTED, "Got timeout reading communication packets")
                    }
                } else {
                    MysqlError::new(
                        codes::CLIENT_INTERACTION_TIMEOUT,
                        "The client was disconnected by the server because of inactivity. \
                         See wait_timeout and interactive_timeout for configuring this behavior.",
                    )
                };
                status::write_error(writer, &error, set);
                Err(Exit::Aborted)
            }
        }
    }

    async fn command(&mut self, packet: &Packet) -> Result<Next, MysqlError> {
        let Channel { reader, link, .. } = &mut *self.channel;
        let Some((&command, body)) = reader.payload(packet).split_first() else {
            return Err(malformed(Malformed("empty")));
        };
        let context = self.context;
        let mut fields = Fields::new(body);
        match command {
            command::QUERY => {
                if context.capabilities & capability::QUERY_ATTRIBUTES != 0 {
                    parameters::skip_attributes(&mut fields).map_err(malformed)?;
                }
                let status = self.session.status();
                let text = statement_text::decode(fields.rest(), status.charsets.client, status.no_backslash_escapes)?;
                if context.capabilities & capability::LOCAL_FILES != 0 && may_load(&text) {
                    // The packet's place is needed for those of the file.
                    let text = text.into_owned();
                    let mut sink = Sink::with_file(self.channel, context, status, self.timeouts.read);
                    let (outcome, next) = until(self.session.query(&text, &mut sink), &mut self.watch).await;
                    sink.finish(outcome);
                    return Ok(next);
                }
                let mut sink = Sink::new(link, context, Form::Text, status);
                let (outcome, next) = until(self.session.query(&text, &mut sink), &mut self.watch).await;
                sink.finish(outcome);
                return Ok(next);
            }
            command::STMT_EXECUTE => {
                let id = fields.u32().map_err(malformed)?;
                let statement =
                    self.statements.get_mut(id).ok_or_else(|| unknown_statement(id, "mysqld_stmt_execute"))?;
                if statement.long_data_exceeded {
                    self.statements.reset(id);
                    return Err(MysqlError::new(
                        codes::UNKNOWN_ERROR,
                        "Parameter of prepared statement which is set through mysql_send_long_data() is longer than \
                         'max_allowed_packet' bytes",
                    ));
                }
                let client = self.session.status().charsets.client;
                let capabilities = context.capabilities;
                let decoded = parameters::read_execute(&mut fields, statement, capabilities, client, &mut self.values);
                self.statements.reset(id);
                let execute = decoded.map_err(|error| {
                    tracing::debug!(%error, "COM_STMT_EXECUTE");
                    MysqlError::new(codes::WRONG_ARGUMENTS, "Incorrect arguments to mysqld_stmt_execute")
                })?;
                let mut sink = Sink::new(link, context, Form::Binary, self.session.status());
                if execute.wants_cursor {
                    sink.keep_rows();
                }
                let running = self.session.execute(id, &self.values, &mut sink);
                let (outcome, next) = until(running, &mut self.watch).await;
                let cursor = sink.finish(outcome);
                if let Some(statement) = self.statements.get_mut(id) {
                    statement.cursor = cursor;
                }
                self.values.clear();
                return Ok(next);
            }
            command::STMT_PREPARE => {
                let status = self.session.status();
                let text = statement_text::decode(body, status.charsets.client, status.no_backslash_escapes)?;
                let (prepared, next) = until(self.session.prepare(&text), &mut self.watch).await;
                let prepared = prepared?;
                write_prepared(link, context, &prepared, &self.session.status());
                let parameters = prepared.parameters.len() as u16;
                self.statements.insert(prepared.id, parameters);
                return Ok(next);
            }
            command::STMT_SEND_LONG_DATA => {
                // Never answered.
                if let (Ok(id), Ok(parameter)) = (fields.u32(), fields.u16()) {
                    let limit = self.session.max_allowed_packet();
                    self.statements.append_long_data(id, parameter, fields.rest(), limit);
                }
            }
            command::STMT_CLOSE => {
                if let Ok(id) = fields.u32()
                    && self.statements.remove(id)
                {
                    self.session.close_statement(id);
                }
            }
            command::STMT_RESET => {
                let id = fields.u32().map_err(malformed)?;
                self.statements.reset(id).ok_or_else(|| unknown_statement(id, "mysqld_stmt_reset"))?;
                self.ok();
            }
            command::STMT_FETCH => {
                let id = fields.u32().map_err(malformed)?;
                let count = fields.u32().map_err(malformed)?;
                let statement =
                    self.statements.get_mut(id).ok_or_else(|| unknown_statement(id, "mysqld_stmt_fetch"))?;
                let Some(rows) = &mut statement.cursor else {
                    return Err(MysqlError::new(
                        code::STMT_HAS_NO_OPEN_CURSOR,
                        format!("The statement ({id}) has no open cursor."),
                    ));
                };
                for _ in 0..count {
                    if !rows.fetch(&mut link.writer) {
                        break;
                    }
                    if link.writer.len() > FETCH_FLUSH {
                        link.send().await?;
                    }
                }
                let end = if rows.at_end() { flag::LAST_ROW_SENT } else { flag::CURSOR_EXISTS };
                if rows.at_end() {
                    statement.cursor = None;
                }
                let completion = plain_ok(self.session.status());
                status::write_end(&mut link.writer, context.capabilities, &completion, end, &[]);
            }
            command::INIT_DB => {
                let name = statement_text::decode(body, self.session.status().charsets.client, true)?;
                let (outcome, next) = until(self.session.init_db(&name), &mut self.watch).await;
                outcome?;
                let changes = self.session.take_changes();
                let completion = plain_ok(self.session.status());
                status::write_ok(&mut link.writer, context.capabilities, &completion, &changes);
                return Ok(next);
            }
            command::FIELD_LIST => {
                let charsets = self.session.status().charsets;
                let table = charsets.client.decode(fields.nul_bytes()).text.into_owned();
                let wildcard = charsets.client.decode(fields.rest()).text.into_owned();
                let columns = self.session.columns_of(&table, &wildcard)?;
                for c in &columns {
                    link.writer.begin();
                    column::write_column(c, &charsets, link.writer.out());
                    // The default value, which no client reads: NULL.
                    link.writer.out().push(0xFB);
                    link.writer.end();
                }
                let completion = plain_ok(self.session.status());
                status::write_end(&mut link.writer, context.capabilities, &completion, 0, &[]);
            }
            command::PROCESS_KILL | command::PROCESS_INFO => {
                let text = if command == command::PROCESS_KILL {
                    format!("KILL {}", fields.u32().map_err(malformed)?)
                } else {
                    "SHOW PROCESSLIST".to_owned()
                };
                let mut sink = Sink::new(link, context, Form::Text, self.session.status());
                let (outcome, next) = until(self.session.query(&text, &mut sink), &mut self.watch).await;
                sink.finish(outcome);
                return Ok(next);
            }
            command::PING => self.ok(),
            command::STATISTICS => {
                let text = self.session.statistics();
                link.writer.packet(text.as_bytes());
            }
            command::DEBUG => self.eof(),
            command::SET_OPTION => {
                let on = match fields.u16().map_err(malformed)? {
                    0 => true,
                    1 => false,
                    _ => return Err(unknown_command()),
                };
                self.session.set_multi_statements(on);
                self.eof();
            }
            command::RESET_CONNECTION => {
                let ((), next) = until_ended(self.session.reset(), &mut self.watch).await;
                self.statements.clear();
                self.ok();
                return Ok(next);
            }
            command::CHANGE_USER => {
                let (login, collation) = handshake::read_change_user(body, context.capabilities).map_err(malformed)?;
                return Ok(Next::Exit(Exit::ChangeUser(login, collation)));
            }
            command::QUIT => return Ok(Next::Exit(Exit::Closed)),
            _ => return Err(unknown_command()),
        }
        Ok(Next::Continue)
    }

    fn ok(&mut self) {
        self.welcome();
    }

    fn eof(&mut self) {
        let completion = plain_ok(self.session.status());
        status::write_end(&mut self.channel.link.writer, self.context.capabilities, &completion, 0, &[]);
    }
}

/// Fetched rows are sent when so many bytes wait.
const FETCH_FLUSH: usize = 256 * 1024;

fn write_prepared(link: &mut Link, context: Context, prepared: &Prepared, status: &ServerStatus) {
    let writer = &mut link.writer;
    writer.begin();
    let out = writer.out();
    out.push(0);
    out.extend_from_slice(&prepared.id.to_le_bytes());
    out.extend_from_slice(&(prepared.columns.len() as u16).to_le_bytes());
    out.extend_from_slice(&(prepared.parameters.len() as u16).to_le_bytes());
    out.push(0);
    out.extend_from_slice(&prepared.warnings.to_le_bytes());
    writer.end();
    for columns in [&prepared.parameters, &prepared.columns] {
        for c in columns {
            writer.begin();
            column::write_column(c, &status.charsets, writer.out());
            writer.end();
        }
        if !columns.is_empty() && context.capabilities & capability::DEPRECATE_EOF == 0 {
            status::write_eof(writer, 0, status::flags(status));
        }
    }
}

/// Resolves with the first of two.
async fn first(mut one: Signal<()>, mut other: Signal<()>) {
    poll_fn(|cx| match one.as_mut().poll(cx) {
        Poll::Ready(()) => Poll::Ready(()),
        Poll::Pending => other.as_mut().poll(cx),
    })
    .await;
}

async fn first_of(mut killed: Signal<()>, mut drained: Signal<()>) -> Stop {
    poll_fn(|cx| {
        if killed.as_mut().poll(cx).is_ready() {
            Poll::Ready(Stop::Killed)
        } else {
            drained.as_mut().poll(cx).map(|()| Stop::Shutdown)
        }
    })
    .await
}

/// Runs a statement to its end, or to the moment at which the server closes. A statement whose client has gone is interrupted, as by KILL.
async fn until<T>(
    statement: impl Future<Output = Result<T, MysqlError>>,
    watch: &mut Watch,
) -> (Result<T, MysqlError>, Next) {
    let mut statement = std::pin::pin!(statement);
    poll_fn(|cx| {
        let polled = statement.as_mut().poll(cx);
        let interrupted = |error: &MysqlError| error.code == codes::QUERY_INTERRUPTED;
        match polled {
            // It may have been the end of the server that interrupted it.
            Poll::Ready(Err(error)) if interrupted(&error) => match watch.abort.as_mut().poll(cx) {
                Poll::Ready(()) => Poll::Ready((Err(shutting_down()), Next::Exit(Exit::Closed))),
                Poll::Pending => Poll::Ready((Err(error), Next::Continue)),
            },
            Poll::Ready(outcome) => Poll::Ready((outcome, Next::Continue)),
            Poll::Pending => {
                watch.look(cx);
                watch.abort.as_mut().poll(cx).map(|()| (Err(shutting_down()), Next::Exit(Exit::Closed)))
            }
        }
    })
    .await
}

impl Watch {
    /// Interrupts the statement when its client has gone. The timer goes on over statements, so that a short wait costs a look at it and no more.
    fn look(&mut self, cx: &mut std::task::Context<'_>) {
        let Some(peer) = &self.peer else { return };
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(Instant::now() + LOOK)));
        while timer.as_mut().poll(cx).is_ready() {
            if peer.is_gone() {
                self.interrupt.call();
            }
            timer.as_mut().reset(Instant::now() + LOOK);
        }
    }
}

async fn until_ended(work: impl Future<Output = ()>, watch: &mut Watch) -> ((), Next) {
    let work = async {
        work.await;
        Ok(())
    };
    let (_, next) = until(work, watch).await;
    ((), next)
}

/// Whether a text may be one of LOAD DATA; yes too often does no harm.
fn may_load(text: &str) -> bool {
    let first = text.trim_ascii_start().as_bytes().first();
    let begins = matches!(first, Some(b'L' | b'l' | b'/' | b'#' | b'-' | b'(' | b';'));
    (begins || text.contains(';')) && text.as_bytes().windows(6).any(|word| word.eq_ignore_ascii_case(b"INFILE"))
}

fn shutting_down() -> MysqlError {
    MysqlError::new(codes::SERVER_SHUTDOWN, "Server shutdown in progress")
}

fn unknown_command() -> MysqlError {
    MysqlError::new(codes::UNKNOWN_COM, "Unknown command")
}

fn unknown_statement(id: u32, place: &str) -> MysqlError {
    MysqlError::new(codes::UNKNOWN_STMT_HANDLER, format!("Unknown prepared statement handler ({id}) given to {place}"))
}

fn malformed(error: Malformed) -> MysqlError {
    tracing::debug!(%error, "command");
    MysqlError::new(code::MALFORMED_PACKET, "Malformed communication packet.")
}
