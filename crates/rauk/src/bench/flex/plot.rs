//! The figures as one SVG: throughput of each workload and target as bars, and below, for each workload, the round trips of its targets over the percentiles.

use super::measure::Latency;
use super::report::{Line, Report};
use plotters::prelude::*;
use std::path::Path;

const COLOURS: &[RGBColor] = &[
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
];
const WIDTH: u32 = 1000;
const BARS: u32 = 420;
const CURVES: u32 = 360;

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

pub fn draw(file: &Path, report: &Report) -> Result<(), String> {
    let mut workloads: Vec<&str> = Vec::new();
    let mut targets: Vec<&str> = Vec::new();
    for line in &report.lines {
        for (name, names) in [(&line.workload, &mut workloads), (&line.target, &mut targets)] {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
    }
    let height = BARS + CURVES * workloads.len().div_ceil(2) as u32;
    let cannot = |e: &dyn std::fmt::Display| format!("cannot draw {}: {e}", file.display());
    let area = SVGBackend::new(file, (WIDTH, height)).into_drawing_area();
    area.fill(&WHITE).map_err(|e| cannot(&e))?;
    let (upper, lower) = area.split_vertically(BARS);
    bars(&upper, report, &workloads, &targets).map_err(|e| cannot(&e))?;
    let parts = lower.split_evenly((workloads.len().div_ceil(2), 2));
    for (workload, part) in workloads.iter().zip(&parts) {
        let lines: Vec<&Line> = report.lines.iter().filter(|l| l.workload == *workload).collect();
        curves(part, workload, &lines, &targets).map_err(|e| cannot(&e))?;
    }
    area.present().map_err(|e| cannot(&e))
}

fn colour(targets: &[&str], target: &str) -> RGBColor {
    let place = targets.iter().position(|t| *t == target).unwrap_or(0);
    COLOURS[place % COLOURS.len()]
}

fn rate(rate: &f64) -> String {
    if *rate >= 1e6 { format!("{:.1} M", rate / 1e6) } else { format!("{:.0} k", rate / 1e3) }
}

fn bars(
    area: &Area<'_>,
    report: &Report,
    workloads: &[&str],
    targets: &[&str],
) -> Result<(), Box<dyn std::error::Error>> {
    let highest = report.lines.iter().map(|l| l.sample.rate()).fold(1.0, f64::max);
    let o = &report.options;
    let title = format!(
        "Operations per second ({} threads × {} × {}, {} bytes, {} keys)",
        o.threads, o.parallel, o.operations, o.size, o.keys
    );
    let mut chart = ChartBuilder::on(area)
        .caption(title, ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(32)
        .y_label_area_size(64)
        .build_cartesian_2d(0.0..workloads.len() as f64, 0.0..highest * 1.4)?;
    chart.configure_mesh().disable_x_mesh().x_labels(0).y_label_formatter(&rate).light_line_style(WHITE).draw()?;
    let width = 0.8 / targets.len() as f64;
    for target in targets {
        let colour = colour(targets, target);
        let place = targets.iter().position(|t| t == target).unwrap_or(0) as f64;
        let mine = report.lines.iter().filter(|l| l.target == *target);
        let boxes: Vec<(f64, f64)> = mine
            .map(|line| {
                let group = workloads.iter().position(|w| *w == line.workload).unwrap_or(0) as f64;
                (group + 0.1 + width * place, line.sample.rate())
            })
            .collect();
        chart
            .draw_series(
                boxes.iter().map(|(x, y)| Rectangle::new([(*x, 0.0), (x + width * 0.92, *y)], colour.filled())),
            )?
            .label(*target)
            .legend(move |(x, y)| Rectangle::new([(x, y - 5), (x + 12, y + 5)], colour.filled()));
        chart.draw_series(
            boxes.iter().map(|(x, y)| Text::new(rate(y), (*x, y + highest * 0.035), ("sans-serif", 12))),
        )?;
    }
    chart.draw_series(
        workloads
            .iter()
            .enumerate()
            .map(|(i, name)| Text::new(name.to_string(), (i as f64 + 0.1, -highest * 0.02), ("sans-serif", 14))),
    )?;
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK)
        .draw()?;
    Ok(())
}

/// Percentiles by their nines: p90 is 1, p99 is 2.
const CURVE: &[f64] = &[0.0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999, 0.9995, 0.9999];

fn nines(q: f64) -> f64 {
    -(1.0 - q).log10()
}

fn curves(
    area: &Area<'_>,
    workload: &str,
    lines: &[&Line],
    targets: &[&str],
) -> Result<(), Box<dyn std::error::Error>> {
    let curves: Vec<(&str, Vec<(f64, f64)>)> = lines
        .iter()
        .filter_map(|line| {
            let known: Vec<f64> = match line.sample.latency {
                Latency::Measured(_) => CURVE.to_vec(),
                Latency::Quoted(_) => vec![0.5, 0.95, 0.99],
            };
            let points = known.iter().filter_map(|q| Some((nines(*q), line.sample.latency.quantile(*q)?.max(0.1))));
            let points: Vec<_> = points.collect();
            (!points.is_empty()).then_some((line.target.as_str(), points))
        })
        .collect();
    let values = || curves.iter().flat_map(|(_, points)| points.iter().map(|p| p.1));
    let (low, high) = (values().fold(f64::MAX, f64::min), values().fold(0.2, f64::max));
    // Whole decades, so that each has its line and label.
    let low = 10f64.powf(if low < high { low } else { 0.1 }.log10().floor());
    let high = 10f64.powf(high.log10().ceil()).max(low * 10.0);
    let mut chart = ChartBuilder::on(area)
        .caption(format!("{workload}: round trip in µs"), ("sans-serif", 16))
        .margin(12)
        .x_label_area_size(28)
        .y_label_area_size(56)
        .build_cartesian_2d(0.0..4.0f64, (low..high).log_scale())?;
    let percentile = |x: &f64| format!("p{}", ((1.0 - 10f64.powf(-x)) * 1e4).round() / 1e2);
    chart
        .configure_mesh()
        .x_labels(5)
        .x_label_formatter(&percentile)
        .y_label_formatter(&|y| format!("{y}"))
        .light_line_style(WHITE)
        .draw()?;
    for (target, points) in curves {
        let colour = colour(targets, target);
        chart.draw_series(LineSeries::new(points, colour.stroke_width(2)))?;
    }
    Ok(())
}
