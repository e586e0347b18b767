//! Processes by number, and only those that are meant: a number that the system has given to another process since is not taken for it.
//!
//! A process is known by its number, when it began (ticks since the system started) and which start of the system that was. Executing another program, as a node that starts anew does, changes none
//! of the three. One that has ended and that nobody has waited for yet counts as ended.

use serde::{Deserialize, Serialize};
use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    pub pid: u32,
    began: u64,
    boot: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    Kill,
    Stop,
    Continue,
    Terminate,
}

impl Signal {
    fn name(self) -> &'static str {
        match self {
            Signal::Kill => "KILL",
            Signal::Stop => "STOP",
            Signal::Continue => "CONT",
            Signal::Terminate => "TERM",
        }
    }
}

/// State and beginning of a process.
fn look(pid: u32) -> Option<(char, u64)> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The program's name stands in brackets and may hold anything.
    let mut fields = text.get(text.rfind(')')? + 2..)?.split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    let began = fields.nth(18)?.parse().ok()?;
    Some((state, began))
}

fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_string()
}

impl Process {
    /// The process that has this number now.
    pub fn of(pid: u32) -> Option<Process> {
        let (_, began) = look(pid)?;
        Some(Process { pid, began, boot: boot() })
    }

    fn state(&self) -> Option<char> {
        let (state, began) = look(self.pid)?;
        (began == self.began && boot() == self.boot && !matches!(state, 'Z' | 'X')).then_some(state)
    }

    pub fn is_running(&self) -> bool {
        self.state().is_some()
    }

    pub fn is_paused(&self) -> bool {
        self.state() == Some('T')
    }

    pub fn send(&self, signal: Signal) -> Result<(), String> {
        if !self.is_running() {
            return Err(format!("its process {} has ended", self.pid));
        }
        let sent = Command::new("sh")
            .args(["-c", "kill -s \"$1\" \"$2\"", "sh", signal.name(), &self.pid.to_string()])
            .stdin(Stdio::null())
            .output()
            .map_err(|e| format!("cannot send a signal: {e}"))?;
        if sent.status.success() {
            return Ok(());
        }
        Err(format!("cannot send a signal to process {}: {}", self.pid, String::from_utf8_lossy(&sent.stderr).trim()))
    }

    /// Whether it has ended within the time.
    pub fn wait_gone(&self, limit: Duration) -> bool {
        let end = Instant::now() + limit;
        loop {
            if !self.is_running() {
                return true;
            }
            if Instant::now() >= end {
                return false;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_and_its_end_noticed() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let process = Process::of(child.id()).unwrap();
        assert!(process.is_running() && !process.is_paused());
        process.send(Signal::Stop).unwrap();
        let end = Instant::now() + Duration::from_secs(5);
        while !process.is_paused() {
            assert!(Instant::now() < end);
            std::thread::sleep(Duration::from_millis(5));
        }
        process.send(Signal::Continue).unwrap();
        let other = Process { began: process.began + 1, ..process.clone() };
        assert!(!other.is_running(), "the number was given to another process");
        assert!(other.send(Signal::Kill).is_err());
        let other = Process { boot: "another start of the system".into(), ..process.clone() };
        assert!(!other.is_running());
        process.send(Signal::Kill).unwrap();
        assert!(process.wait_gone(Duration::from_secs(5)), "also before it was waited for");
        child.wait().unwrap();
        assert!(process.send(Signal::Kill).unwrap_err().contains("has ended"));
    }
}
