//! Programs that a benchmark starts, measures and ends itself: by their pids, in a temporary directory, on free ports.

use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// A program under measurement; killed when dropped.
pub struct Process {
    name: &'static str,
    child: Child,
}

impl Process {
    pub fn new(name: &'static str, child: Child) -> Process {
        Process { name, child }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Option<String> {
        match self.child.try_wait() {
            Ok(None) => None,
            Ok(Some(status)) => Some(format!("{} ended with {status}", self.name)),
            Err(error) => Some(error.to_string()),
        }
    }

    /// SIGTERM, and waits for a clean end.
    pub fn stop(mut self) -> Result<(), String> {
        let pid = self.pid().to_string();
        Command::new("kill").args(["-TERM", &pid]).status().map_err(|e| e.to_string())?;
        let deadline = Instant::now() + Duration::from_secs(30);
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait().map_err(|e| e.to_string())? {
                return if status.success() { Ok(()) } else { Err(format!("{} ended with {status}", self.name)) };
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Err(format!("{} did not stop within 30 s", self.name))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // After `stop` the process is gone and both calls do nothing.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Processor time in seconds, user and system together, as the kernel counts it (in hundredths).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CpuTime {
    /// Of all threads of the process so far.
    pub own: f64,
    /// Of its children that have ended.
    pub children: f64,
}

pub fn cpu_time(pid: u32) -> Result<CpuTime, String> {
    let stat =
        std::fs::read_to_string(format!("/proc/{pid}/stat")).map_err(|e| format!("process {pid} is gone: {e}"))?;
    // The command's name may hold anything, in parentheses; fields 14 to 17 are counted from behind it.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
    let seconds = |range| -> f64 {
        let ticks: Option<&[&str]> = fields.get::<std::ops::Range<usize>>(range);
        ticks.map_or(0.0, |f| f.iter().filter_map(|t| t.parse::<f64>().ok()).sum::<f64>() / 100.0)
    };
    Ok(CpuTime { own: seconds(11..13), children: seconds(13..15) })
}

/// A port of the loopback interface that was free a moment ago.
pub fn free_port() -> Result<u16, String> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").map_err(|e| e.to_string())?;
    listener.local_addr().map(|a| a.port()).map_err(|e| e.to_string())
}

/// Removed when dropped.
pub struct TemporaryDirectory(PathBuf);

impl TemporaryDirectory {
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TemporaryDirectory {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            eprintln!("cannot remove {}: {error}", self.0.display());
        }
    }
}

/// In the working directory, not in /tmp: that may be memory, and durable commits are measured.
pub fn temporary_directory() -> Result<TemporaryDirectory, String> {
    let path = std::env::current_dir().map_err(|e| e.to_string())?.join(format!("rauk-bench-{}", std::process::id()));
    std::fs::create_dir(&path).map_err(|e| format!("cannot make {}: {e}", path.display()))?;
    Ok(TemporaryDirectory(path))
}
