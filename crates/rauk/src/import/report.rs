//! How far an import is: a bar on a terminal, lines otherwise.
//!
//! Both go to standard error, the summary to standard output. Lines come with the batch that ends first after some
//! seconds, so that nothing runs beside the import.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Between two lines.
const PAUSE: Duration = Duration::from_secs(5);

pub struct Report {
    bar: ProgressBar,
    lines: bool,
    name: String,
    size: u64,
    begun: Instant,
    state: Mutex<State>,
}

struct State {
    bytes: u64,
    rows: u64,
    /// Rows of this run, for their rate.
    fresh: u64,
    told: Instant,
}

impl Report {
    pub fn new(name: &str, size: u64, bytes: u64, rows: u64) -> Report {
        let lines = !std::io::stderr().is_terminal();
        let target = if lines { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let bar = ProgressBar::with_draw_target(Some(size), target);
        let style = ProgressStyle::with_template("{prefix} {wide_bar} {percent} % {msg}, {eta} left");
        if let Ok(style) = style {
            bar.set_style(style);
        }
        bar.set_prefix(name.to_string());
        bar.set_position(bytes);
        bar.reset_eta();
        let begun = Instant::now();
        let state = Mutex::new(State { bytes, rows, fresh: 0, told: begun });
        Report { bar, lines, name: name.into(), size, begun, state }
    }

    pub fn committed(&self, bytes: u64, rows: u64) {
        let mut state = self.state.lock().expect("nobody panics with it");
        state.bytes += bytes;
        state.rows += rows;
        state.fresh += rows;
        let rate = state.fresh as f64 / self.begun.elapsed().as_secs_f64().max(1e-9);
        let text = format!("{} rows, {} rows/s", grouped(state.rows), grouped(rate as u64));
        if self.lines && state.told.elapsed() >= PAUSE {
            state.told = Instant::now();
            let part = state.bytes as f64 * 100.0 / self.size.max(1) as f64;
            eprintln!("{}: {part:.0} %, {text}", self.name);
        }
        self.bar.set_position(state.bytes);
        self.bar.set_message(text);
    }

    pub fn end(&self) {
        self.bar.finish_and_clear();
    }
}

/// 1234567 as `1 234 567`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// As people read it.
pub fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} bytes"),
        1024..1_048_576 => format!("{:.1} KiB", bytes as f64 / 1024.0),
        1_048_576..1_073_741_824 => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
        _ => format!("{:.2} GiB", bytes as f64 / 1_073_741_824.0),
    }
}

/// `1 row`, `2 rows`.
pub fn rows(count: u64) -> String {
    format!("{} {}", grouped(count), if count == 1 { "row" } else { "rows" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!((grouped(7), grouped(1_234_567)), ("7".into(), "1 234 567".into()));
        assert_eq!((size(5), size(1536), size(3 << 30)), ("5 bytes".into(), "1.5 KiB".into(), "3.00 GiB".into()));
        assert_eq!((rows(1), rows(2000)), ("1 row".into(), "2 000 rows".into()));
    }
}
