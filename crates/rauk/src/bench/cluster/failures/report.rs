//! The table of failures, and the same as JSON.

use super::circle::GOAL as GOAL_OF_CIRCLES;
use super::clients::Gaps;
use super::{Line, Measured, Round};
use comfy_table::{Table, presets};
use serde_json::{Value, json as value};
use std::time::Duration;

/// The middle one (of an even number the larger of two), and the largest.
fn middle_and_worst(mut times: Vec<Duration>) -> (Duration, Duration) {
    times.sort();
    (times[times.len() / 2], times[times.len() - 1])
}

fn of(line: &Line, what: impl Fn(&Round) -> Duration) -> (Duration, Duration) {
    middle_and_worst(line.rounds.iter().map(what).collect())
}

fn gaps(line: &Line, what: impl Fn(&Gaps) -> Duration) -> (Duration, Duration) {
    of(line, |round| what(&round.gaps))
}

fn ms((middle, worst): (Duration, Duration)) -> String {
    format!("{} / {}", middle.as_millis(), worst.as_millis())
}

fn seconds((middle, worst): (Duration, Duration)) -> String {
    format!("{:.2} / {:.2}", middle.as_secs_f64(), worst.as_secs_f64())
}

fn sum(line: &Line, what: impl Fn(&Round) -> u64) -> u64 {
    line.rounds.iter().map(what).sum()
}

pub fn table(measured: &Measured) -> String {
    let mut table = Table::new();
    table.load_preset(presets::ASCII_MARKDOWN).set_header([
        "nodes",
        "a node is",
        "longest without a write, ms: median / worst",
        "without a read, ms",
        "goal, ms",
        "before the failure, ms",
        "while it comes back: write, ms",
        "read, ms",
        "whole again after s",
        "acknowledged",
        "lost",
        "errors",
    ]);
    for line in &measured.lines {
        let errors: Vec<String> = line.errors.iter().map(|(code, count)| format!("{count} × {code}")).collect();
        let goal = line.kind.goal().map_or("–".to_string(), |goal| format!("< {}", goal.as_millis()));
        table.add_row([
            line.nodes.to_string(),
            line.kind.name().to_string(),
            ms(gaps(line, |g| g.write)),
            ms(gaps(line, |g| g.read)),
            goal,
            ms(gaps(line, |g| g.calm)),
            ms(gaps(line, |g| g.write_after)),
            ms(gaps(line, |g| g.read_after)),
            seconds(of(line, |round| round.whole)),
            sum(line, |round| round.acknowledged).to_string(),
            sum(line, |round| round.lost).to_string(),
            if errors.is_empty() { "none".to_string() } else { errors.join(", ") },
        ]);
    }
    let mut text = table.to_string();
    for circles in &measured.circles {
        let (count, times) = (circles.times.len(), ms(middle_and_worst(circles.times.clone())));
        text += &format!(
            "\n\n{count} deadlocks over two of {} nodes: error 1213 after {times} ms (median / worst; goal ≤ {}).",
            circles.nodes,
            GOAL_OF_CIRCLES.as_millis()
        );
    }
    text
}

pub fn json(measured: &Measured) -> Value {
    let ms = |time: Duration| time.as_millis() as u64;
    let round = |round: &Round| {
        value!({
            "write_gap_ms": ms(round.gaps.write), "read_gap_ms": ms(round.gaps.read), "longest_pause_before_ms": ms(round.gaps.calm),
            "write_gap_coming_back_ms": ms(round.gaps.write_after), "read_gap_coming_back_ms": ms(round.gaps.read_after),
            "whole_seconds": round.whole.as_secs_f64(), "acknowledged": round.acknowledged, "lost": round.lost,
        })
    };
    let line = |line: &Line| {
        value!({
            "nodes": line.nodes, "failure": line.kind.name(), "goal_ms": line.kind.goal().map(ms), "errors": line.errors,
            "rounds": line.rounds.iter().map(round).collect::<Vec<_>>(),
        })
    };
    let circles = measured.circles.iter().map(|c| {
        value!({ "nodes": c.nodes, "milliseconds": c.times.iter().map(|t| t.as_secs_f64() * 1e3).collect::<Vec<_>>() })
    });
    value!({
        "failures": measured.lines.iter().map(line).collect::<Vec<_>>(),
        "deadlocks": circles.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_and_the_worst() {
        let times = |list: &[u64]| list.iter().map(|n| Duration::from_millis(*n)).collect::<Vec<_>>();
        assert_eq!(ms(middle_and_worst(times(&[7]))), "7 / 7");
        assert_eq!(ms(middle_and_worst(times(&[9, 1, 5]))), "5 / 9");
        assert_eq!(ms(middle_and_worst(times(&[9, 1]))), "9 / 9");
    }
}
