//! Two threads beside a running statement: one cancels it on Ctrl-C, one shows its time.
//!
//! Ctrl-C is SIGINT. It is blocked in all threads, and one thread waits for it; programs that the shell starts get it
//! as any program does ([`shell_command`]). While a statement runs, the thread opens a second connection to the same
//! server and sends KILL QUERY; the statement then ends with error 1317 like any that fails. The shell waits with its
//! next statement until that has been sent, so that a KILL never meets a statement that it was not meant for. At the
//! prompt the line editor has the terminal in a mode in which Ctrl-C is a key, and none of this happens.
//!
//! A script (`-e`, a file, a pipe) is ended by Ctrl-C: its statement is cancelled, nothing more is run, the exit code
//! is 130. Between two statements, or on the second Ctrl-C, the process ends at once. A file of `source` ends too, and
//! the prompt goes on.
//!
//! Another thread shows the seconds of a statement that runs for longer than one, on standard error if that is a
//! terminal, and of DDL how far it is ([`super::progress`]). The line goes when the statement has rows to show, or ends.

use super::progress::{Asked, Asker};
use crate::client::{self, Options};
use mysql::prelude::Queryable;
use nix::sys::signal::{SigSet, Signal};
use std::io::{IsTerminal, Write};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// 128 and the number of SIGINT, as shells have it.
pub const INTERRUPTED: u8 = 130;
/// A statement that is shorter shows no time.
const PATIENCE: Duration = Duration::from_secs(1);
/// A server is not asked before how far a statement is.
const LONG: Duration = Duration::from_secs(2);
/// How long the server may take for the second connection and its KILL.
const KILL: Duration = Duration::from_secs(5);

#[derive(Default)]
struct State {
    current: Option<Current>,
    /// Statements that have begun.
    statements: u64,
    /// A KILL is under way.
    killing: bool,
    /// Ctrl-C has been pressed while a statement ran, and nobody has asked.
    interrupted: bool,
    ended: bool,
}

struct Current {
    number: u64,
    connection: u32,
    server: Options,
    label: String,
    began: Instant,
    /// There is a line with the time.
    shown: bool,
    /// Rows are being shown: no line any more.
    quiet: bool,
    /// The server may say how far it is.
    is_ddl: bool,
    far: Option<String>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    script: AtomicBool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics with it")
    }
}

pub struct Watch {
    shared: Arc<Shared>,
}

impl Watch {
    /// Blocks SIGINT; to be called before other threads are started. Ctrl-C ends the shell until [`Watch::at_prompt`].
    pub fn begin() -> Result<Watch, String> {
        let told = |e: &dyn std::fmt::Display| format!("cannot wait for signals: {e}");
        let interrupt: SigSet = [Signal::SIGINT].into_iter().collect();
        interrupt.thread_block().map_err(|e| told(&e))?;
        let shared = Arc::new(Shared {
            state: Mutex::new(State::default()),
            changed: Condvar::new(),
            script: AtomicBool::new(true),
        });
        let watched = shared.clone();
        let thread = std::thread::Builder::new().name("interrupt".into()).spawn(move || {
            while interrupt.wait().is_ok() {
                watched.interrupt();
            }
        });
        thread.map_err(|e| told(&e))?;
        if std::io::stderr().is_terminal() {
            let watched = shared.clone();
            let thread = std::thread::Builder::new().name("progress".into()).spawn(move || watched.show_progress());
            thread.map_err(|e| told(&e))?;
        }
        Ok(Watch { shared })
    }

    /// From here on Ctrl-C ends statements only.
    pub fn at_prompt(&self) {
        self.shared.script.store(false, Ordering::Relaxed);
    }

    /// A statement begins.
    pub fn statement(&self, connection: u32, server: Options, label: &str, is_ddl: bool) {
        let mut state = self.shared.lock();
        state.statements += 1;
        state.current = Some(Current {
            number: state.statements,
            connection,
            server,
            label: label.into(),
            began: Instant::now(),
            shown: false,
            quiet: false,
            is_ddl,
            far: None,
        });
        self.shared.changed.notify_all();
    }

    /// Its rows are about to be shown.
    pub fn quiet(&self) {
        if let Some(current) = &mut self.shared.lock().current {
            current.quiet = true;
            clear(current);
        }
    }

    /// It has ended. Returns when no KILL for it is under way.
    pub fn end(&self) {
        let mut state = self.shared.lock();
        if let Some(mut current) = state.current.take() {
            clear(&mut current);
        }
        while state.killing {
            state = self.shared.changed.wait(state).expect("nobody panics with it");
        }
    }

    /// Cancels the statement as Ctrl-C does.
    pub fn cancel(&self) {
        self.shared.kill();
    }

    /// Whether Ctrl-C was pressed since this was last asked.
    pub fn take_interrupted(&self) -> bool {
        std::mem::take(&mut self.shared.lock().interrupted)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.shared.lock().ended = true;
        self.shared.changed.notify_all();
    }
}

/// A command for the system's shell, which Ctrl-C reaches: what is blocked is inherited otherwise.
pub fn shell_command(command: &str) -> Command {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(command);
    // SAFETY: between fork and exec only the mask of signals is set, which is allowed there.
    unsafe {
        shell.pre_exec(|| Ok([Signal::SIGINT].into_iter().collect::<SigSet>().thread_unblock()?));
    }
    shell
}

fn clear(current: &mut Current) {
    if std::mem::take(&mut current.shown) {
        let _ = std::io::stderr().write_all(b"\r\x1b[K");
    }
}

impl Shared {
    fn interrupt(&self) {
        {
            let mut state = self.lock();
            let again = std::mem::replace(&mut state.interrupted, true);
            if self.script.load(Ordering::Relaxed) && (state.current.is_none() || again) {
                std::process::exit(INTERRUPTED.into());
            }
            if state.current.is_none() {
                // Nothing to cancel: the prompt, or a program that the shell has started.
                state.interrupted = false;
                return;
            }
        }
        self.kill();
    }

    fn kill(&self) {
        let (connection, mut server) = {
            let mut state = self.lock();
            let Some(current) = state.current.as_ref().filter(|_| !state.killing) else { return };
            let target = (current.connection, current.server.clone());
            state.killing = true;
            target
        };
        server.answer = Some(KILL);
        let killed = client::connect(&server).and_then(|mut second| {
            match second.conn.query_drop(format!("KILL QUERY {connection}")) {
                // It has ended meanwhile.
                Err(mysql::Error::MySqlError(error)) if error.code == 1094 => Ok(()),
                other => other.map_err(|e| e.to_string()),
            }
        });
        let mut state = self.lock();
        state.killing = false;
        if let Err(error) = killed {
            if let Some(current) = &mut state.current {
                clear(current);
            }
            eprintln!("the statement cannot be cancelled: {error}");
        }
        self.changed.notify_all();
    }

    fn show_progress(&self) {
        let mut asker = Asker::default();
        let mut state = self.lock();
        while !state.ended {
            let asked = state.current.as_mut().filter(|current| !current.quiet).and_then(|current| {
                let runs = current.began.elapsed();
                if runs >= PATIENCE {
                    current.shown = true;
                    let far = current.far.as_ref().map_or_else(String::new, |far| format!(": {far}"));
                    let _ = write!(std::io::stderr(), "\r\x1b[K{}{}{far}", current.label, shown(runs));
                }
                let Current { number, connection, .. } = *current;
                let asked = || Asked { number, connection, server: current.server.clone() };
                (current.is_ddl && runs >= LONG).then(asked)
            });
            match asked {
                Some(asked) => {
                    drop(state);
                    let far = asker.ask(&asked);
                    state = self.lock();
                    if let Some(current) = state.current.as_mut().filter(|current| current.number == asked.number) {
                        current.far = far;
                    }
                }
                None => asker.end(),
            }
            // Until the next whole second.
            let wait = state.current.as_ref().filter(|current| !current.quiet).map(|current| {
                let runs = current.began.elapsed();
                Duration::from_secs(runs.as_secs() + 1).saturating_sub(runs).max(Duration::from_millis(10))
            });
            state = match wait {
                _ if state.ended => break,
                Some(wait) => self.changed.wait_timeout(state, wait).expect("nobody panics with it").0,
                None => self.changed.wait(state).expect("nobody panics with it"),
            };
        }
    }
}

/// `5 s`, `2:05`, `1:02:05`
fn shown(time: Duration) -> String {
    let (hours, minutes, seconds) = (time.as_secs() / 3600, time.as_secs() / 60 % 60, time.as_secs() % 60);
    match (hours, minutes) {
        (0, 0) => format!("{seconds} s"),
        (0, _) => format!("{minutes}:{seconds:02}"),
        (_, _) => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_read_well() {
        let of = |seconds| shown(Duration::from_secs(seconds));
        assert_eq!((of(5), of(125), of(3725)), ("5 s".into(), "2:05".into(), "1:02:05".into()));
    }
}
