//! A pseudo terminal with a program on it: keys go in, and a test waits for what is shown.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Only a program that does not do what it should takes so long.
const LIMIT: Duration = Duration::from_secs(60);

pub struct Terminal {
    keys: File,
    child: Child,
    shown: Arc<Mutex<String>>,
    /// Until where the test has seen what is shown.
    seen: usize,
}

impl Terminal {
    pub fn start(mut command: Command) -> Terminal {
        let (mut ours, mut theirs) = (-1, -1);
        let size = libc::winsize { ws_row: 50, ws_col: 200, ws_xpixel: 0, ws_ypixel: 0 };
        // SAFETY: the descriptors are written before they are read, and the other pointers may be null.
        let made = unsafe { libc::openpty(&mut ours, &mut theirs, std::ptr::null_mut(), std::ptr::null(), &size) };
        assert_eq!(made, 0, "a pseudo terminal");
        // SAFETY: both are new, and nobody else has them.
        let (ours, theirs) = unsafe { (OwnedFd::from_raw_fd(ours), OwnedFd::from_raw_fd(theirs)) };
        let copy = || theirs.try_clone().expect("a descriptor");
        command.env("TERM", "xterm").stdin(copy()).stdout(copy()).stderr(copy());
        // SAFETY: both calls are allowed between fork and exec.
        unsafe {
            command.pre_exec(|| {
                if libc::setsid() < 0 || libc::ioctl(0, libc::TIOCSCTTY, 0) < 0 {
                    return Err(std::io::Error::last_os_error());
                }
                Ok(())
            });
        }
        let child = command.spawn().expect("the program starts");
        drop((command, theirs));
        let keys = File::from(ours);
        let mut screen = keys.try_clone().expect("a descriptor");
        let shown = Arc::new(Mutex::new(String::new()));
        let kept = shown.clone();
        std::thread::spawn(move || {
            let (mut bytes, mut part) = ([0; 4096], Vec::new());
            // The end of the program is an error here.
            while let Ok(n) = screen.read(&mut bytes) {
                part.extend_from_slice(&bytes[..n]);
                let whole = match std::str::from_utf8(&part) {
                    Ok(text) => text.len(),
                    Err(error) => error.valid_up_to(),
                };
                let text: Vec<u8> = part.drain(..whole).collect();
                kept.lock().expect("nobody panics with it").push_str(&String::from_utf8(text).expect("valid"));
            }
        });
        Terminal { keys, child, shown, seen: 0 }
    }

    pub fn keys(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("the terminal takes keys");
    }

    /// Types a line and waits for what it brings.
    pub fn line(&mut self, line: &str, brings: &str) -> String {
        self.keys(&format!("{line}\r"));
        self.wait_for(brings)
    }

    /// Waits until this is shown, behind what was waited for before; all that was shown in between.
    pub fn wait_for(&mut self, text: &str) -> String {
        let end = Instant::now() + LIMIT;
        loop {
            {
                let shown = self.shown.lock().expect("nobody panics with it");
                if let Some(at) = shown[self.seen..].find(text) {
                    let until = self.seen + at + text.len();
                    let between = shown[self.seen..until].to_string();
                    self.seen = until;
                    return between;
                }
                assert!(
                    Instant::now() < end,
                    "{text:?} is not shown, but {:?}; before: {:?}",
                    &shown[self.seen..],
                    &shown[..self.seen]
                );
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// All that was shown so far.
    pub fn all(&self) -> String {
        self.shown.lock().expect("nobody panics with it").clone()
    }

    pub fn ends(mut self) -> ExitStatus {
        let end = Instant::now() + LIMIT;
        loop {
            if let Some(status) = self.child.try_wait().expect("a child") {
                return status;
            }
            assert!(Instant::now() < end, "it does not end; shown: {}", self.all());
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
