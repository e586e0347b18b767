//! A password that is typed at the terminal and not shown.
//!
//! It is read from the terminal itself, not from standard input, which may be a script. The terminal gives each key as it
//! comes, shows none and sends no signals meanwhile, so that Ctrl-C can restore it; whatever ends the reading, it gets its
//! settings back.

use nix::sys::termios::{LocalFlags, SetArg, Termios, tcgetattr, tcsetattr};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};

/// Longer ones are refused; the protocol allows no more.
const LONGEST: usize = 256;

pub fn ask(prompt: &str) -> Result<String, String> {
    let terminal = OpenOptions::new().read(true).write(true).open("/dev/tty");
    let mut terminal =
        terminal.map_err(|_| "there is no terminal to ask for the password; give it as MYSQL_PWD or -pPASSWORD")?;
    let told = |e: &dyn std::fmt::Display| format!("cannot read the password from the terminal: {e}");
    let before = tcgetattr(&terminal).map_err(|e| told(&e))?;
    let mut quiet = before.clone();
    quiet.local_flags.remove(LocalFlags::ECHO | LocalFlags::ICANON | LocalFlags::ISIG);
    let shown = terminal.try_clone().map_err(|e| told(&e))?;
    tcsetattr(&terminal, SetArg::TCSAFLUSH, &quiet).map_err(|e| told(&e))?;
    let _restored = Restored { terminal: shown, before };
    write!(terminal, "{prompt}").map_err(|e| told(&e))?;
    let line = read_line(&mut terminal);
    let _ = writeln!(terminal);
    line
}

struct Restored {
    terminal: File,
    before: Termios,
}

impl Drop for Restored {
    fn drop(&mut self) {
        let _ = tcsetattr(&self.terminal, SetArg::TCSANOW, &self.before);
    }
}

fn read_line(from: &mut impl Read) -> Result<String, String> {
    const INTERRUPT: u8 = 3;
    const END: u8 = 4;
    let mut typed: Vec<u8> = Vec::new();
    let mut key = [0];
    loop {
        match from.read(&mut key) {
            Ok(0) => return Err("no password was typed".into()),
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(format!("cannot read the password from the terminal: {error}")),
        }
        match key[0] {
            b'\r' | b'\n' => break,
            INTERRUPT | END => return Err("no password was typed".into()),
            // Backspace; the whole character goes.
            8 | 127 => while typed.pop().is_some_and(|byte| (0x80..0xC0).contains(&byte)) {},
            // Ctrl-U
            21 => typed.clear(),
            byte => typed.push(byte),
        }
        if typed.len() > LONGEST {
            return Err(format!("a password has at most {LONGEST} bytes"));
        }
    }
    String::from_utf8(typed).map_err(|_| "the password is not UTF-8".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_make_a_line() {
        let line = |keys: &[u8]| read_line(&mut &*keys);
        assert_eq!(line(b"secret\nmore"), Ok("secret".into()));
        assert_eq!(line("aä\u{7f}b\r".as_bytes()), Ok("ab".into()));
        assert_eq!(line(b"\x7fwrong\x15right\r"), Ok("right".into()));
        assert_eq!(line(b"\n"), Ok(String::new()));
        for ended in [&b""[..], b"a", b"a\x03\n", b"\x04"] {
            assert!(line(ended).is_err());
        }
        assert!(line(&[b'x'; 300]).unwrap_err().contains("256"));
    }
}
