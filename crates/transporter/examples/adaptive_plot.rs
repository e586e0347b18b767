//! Draws `docs/adaptive-send.svg`: `max_waits` of one simulated socket while its load changes.
//! `cargo run -p rauk-transporter --example adaptive_plot`

#[path = "../tests/connections/loads.rs"]
#[allow(dead_code)]
mod loads;

use loads::{Load, Socket};
use plotters::prelude::*;
use std::time::Duration;

/// Each load lasts so many seconds.
const LENGTH: f64 = 0.6;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let phases = [
        ("Poisson 50 k/s", Load::Poisson(50_000.0)),
        ("Poisson 200 k/s", Load::Poisson(200_000.0)),
        ("one ping-pong, 25 µs", Load::PingPong(1, 25)),
        ("bursts of 50, 2 k/s", Load::Bursts(50, 2_000.0)),
        ("idle", Load::Idle),
        ("Poisson 1 k/s", Load::Poisson(1_000.0)),
        ("8 ping-pongs, 60 µs", Load::PingPong(8, 60)),
    ];
    let mut socket = Socket::new(1);
    let mut drawn = Vec::new();
    for (name, load) in phases {
        let seen = socket.run(load, Duration::from_secs_f64(LENGTH));
        drawn.push((name, seen));
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/adaptive-send.svg");
    let area = SVGBackend::new(path, (1000, 420)).into_drawing_area();
    area.fill(&WHITE)?;
    let end = LENGTH * phases.len() as f64;
    let mut chart = ChartBuilder::on(&area)
        .caption("Adaptive send: how many frames may wait (longest wait 200 µs)", ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(36)
        .y_label_area_size(44)
        .build_cartesian_2d(0.0..end, 0.0..27.0)?;
    chart.configure_mesh().x_desc("seconds").y_desc("max_waits").light_line_style(WHITE).draw()?;
    for (i, (name, seen)) in drawn.iter().enumerate() {
        let left = i as f64 * LENGTH;
        chart.draw_series(LineSeries::new([(left, 0.0), (left, 27.0)], BLACK.mix(0.2)))?;
        let points = seen.course.iter().map(|(at, waits)| (*at, f64::from(*waits)));
        chart.draw_series(LineSeries::new(points, BLUE.stroke_width(2)))?;
        let style = ("sans-serif", 12).into_font();
        chart.draw_series([Text::new(name.to_string(), (left + 0.02, 26.5), style.clone())])?;
        let words = match seen.messages {
            0 => String::new(),
            _ => format!("{:.1} a send, wait {:.0} µs", seen.messages as f64 / seen.sends as f64, seen.mean_wait_us()),
        };
        chart.draw_series([Text::new(words, (left + 0.02, 25.2), style)])?;
    }
    area.present()?;
    Ok(())
}
