//! Programs that a benchmark starts, measures and ends itself: by their pids, in a temporary directory, on free ports. A run that is interrupted ends them too ([`end_with_this_process`]).

use parking_lot::Mutex;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

/// What is there to be ended and taken away. A process is in it for as long as nobody has waited for it, so that its number cannot be another's.
#[derive(Default)]
struct Remains {
    processes: Vec<u32>,
    directory: Option<PathBuf>,
}

static REMAINS: Mutex<Remains> = Mutex::new(Remains { processes: Vec::new(), directory: None });

/// From now on Ctrl-C or SIGTERM ends what this run has started, takes its directory away, and ends the run.
pub fn end_with_this_process() {
    std::thread::spawn(|| {
        if wait_for_signal().is_err() {
            return;
        }
        // Held until the end: nothing is started or waited for any more.
        let remains = REMAINS.lock();
        for pid in &remains.processes {
            let _ = Command::new("kill").args(["-KILL", &pid.to_string()]).status();
        }
        if let Some(directory) = &remains.directory {
            // Programs that are going may still write.
            for _ in 0..50 {
                let _ = std::fs::remove_dir_all(directory);
                std::thread::sleep(Duration::from_millis(100));
                if !directory.exists() {
                    break;
                }
            }
        }
        std::process::exit(130);
    });
}

/// The first one; those after it change nothing (`timeout` sends two).
fn wait_for_signal() -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        Ok(())
    })
}

/// A program under measurement; killed when dropped.
pub struct Process {
    name: &'static str,
    child: Child,
}

impl Process {
    /// Starts a program so that there is no moment in which the end of the run would not end it.
    pub fn start(name: &'static str, command: &mut Command) -> std::io::Result<Process> {
        let mut remains = REMAINS.lock();
        let child = command.spawn()?;
        remains.processes.push(child.id());
        Ok(Process { name, child })
    }

    pub fn new(name: &'static str, child: Child) -> Process {
        REMAINS.lock().processes.push(child.id());
        Process { name, child }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Option<String> {
        match self.status() {
            Ok(None) => None,
            Ok(Some(status)) => Some(format!("{} ended with {status}", self.name)),
            Err(error) => Some(error),
        }
    }

    fn status(&mut self) -> Result<Option<ExitStatus>, String> {
        // Waited for under the lock: the number is free as soon as this has seen the end.
        let mut remains = REMAINS.lock();
        let status = self.child.try_wait().map_err(|e| e.to_string())?;
        if status.is_some() {
            remains.processes.retain(|p| *p != self.child.id());
        }
        Ok(status)
    }

    /// Sends a signal, by its name without SIG.
    pub fn signal(&self, name: &str) -> Result<(), String> {
        let (signal, pid) = (format!("-{name}"), self.pid().to_string());
        let sent = Command::new("kill").args([&signal, &pid]).status().map_err(|e| e.to_string())?;
        if sent.success() { Ok(()) } else { Err(format!("kill {signal} {pid} failed")) }
    }

    /// SIGTERM, and waits for a clean end.
    pub fn stop(mut self) -> Result<(), String> {
        self.signal("TERM")?;
        let deadline = Instant::now() + Duration::from_secs(30);
        while Instant::now() < deadline {
            if let Some(status) = self.status()? {
                return if status.success() { Ok(()) } else { Err(format!("{} ended with {status}", self.name)) };
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Err(format!("{} did not stop within 30 s", self.name))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let pid = self.child.id();
        REMAINS.lock().processes.retain(|p| *p != pid);
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
    free_ports(1).map(|ports| ports[0])
}

/// Several of them, all different.
pub fn free_ports(count: usize) -> Result<Vec<u16>, String> {
    let bind = |_| std::net::TcpListener::bind("127.0.0.1:0").map_err(|e| e.to_string());
    let listeners: Vec<_> = (0..count).map(bind).collect::<Result<_, _>>()?;
    listeners.iter().map(|l| l.local_addr().map(|a| a.port()).map_err(|e| e.to_string())).collect()
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
        REMAINS.lock().directory = None;
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            eprintln!("cannot remove {}: {error}", self.0.display());
        }
    }
}

/// In the working directory, not in /tmp: that may be memory, and durable commits are measured.
pub fn temporary_directory() -> Result<TemporaryDirectory, String> {
    temporary_directory_in(&std::env::current_dir().map_err(|e| e.to_string())?, "rauk-bench")
}

/// One for a process: the next takes the place of this one in what is removed when the process is interrupted.
pub fn temporary_directory_in(parent: &Path, name: &str) -> Result<TemporaryDirectory, String> {
    let path = parent.join(format!("{name}-{}", std::process::id()));
    std::fs::create_dir(&path).map_err(|e| format!("cannot make {}: {e}", path.display()))?;
    REMAINS.lock().directory = Some(path.clone());
    Ok(TemporaryDirectory(path))
}
