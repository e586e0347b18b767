//! Where the present interval began, the bounds behind one, and names.

use super::*;

fn at(text: &str) -> DateTime {
    let parsed = rauk_types::datetime::parse_date_time(text.as_bytes(), Default::default()).expect("a time");
    parsed.to_precision(6, false).expect("a time")
}

fn span(count: u32, unit: SpanUnit) -> Span {
    Span { count, unit }
}

#[test]
fn the_present_interval() {
    for (unit, now, begins, name) in [
        (SpanUnit::Minute, "2024-02-29 12:34:56.7", "2024-02-29 12:34:00", "p202402291234"),
        (SpanUnit::Hour, "2024-02-29 23:59:59", "2024-02-29 23:00:00", "p2024022923"),
        (SpanUnit::Day, "2024-02-29 00:00:00", "2024-02-29 00:00:00", "p20240229"),
        (SpanUnit::Week, "2024-03-03 23:00:00", "2024-02-26 00:00:00", "p20240226"),
        (SpanUnit::Week, "2024-03-04 00:00:00", "2024-03-04 00:00:00", "p20240304"),
        (SpanUnit::Month, "2024-12-31 12:00:00", "2024-12-01 00:00:00", "p202412"),
        (SpanUnit::Quarter, "2024-12-31 12:00:00", "2024-10-01 00:00:00", "p202410"),
        (SpanUnit::Quarter, "2024-03-31 12:00:00", "2024-01-01 00:00:00", "p202401"),
        (SpanUnit::Year, "2024-12-31 12:00:00", "2024-01-01 00:00:00", "p2024"),
    ] {
        let begun = beginning(at(now), unit);
        assert_eq!(begun, at(begins), "{unit:?} {now}");
        assert_eq!(name_of(begun, unit), name);
    }
}

#[test]
fn bounds_behind_others() {
    for (from, every, next) in [
        ("2024-02-28 00:00:00", span(1, SpanUnit::Day), "2024-02-29 00:00:00"),
        ("2024-02-29 01:00:00", span(36, SpanUnit::Hour), "2024-03-01 13:00:00"),
        ("2024-02-28 00:00:00", span(1, SpanUnit::Month), "2024-03-28 00:00:00"),
        ("2024-01-31 06:00:00", span(1, SpanUnit::Month), "2024-03-01 06:00:00"),
        ("2024-02-29 00:00:00", span(1, SpanUnit::Year), "2025-03-01 00:00:00"),
        ("2024-12-01 00:00:00", span(2, SpanUnit::Quarter), "2025-06-01 00:00:00"),
    ] {
        assert_eq!(next_bound(at(from), every), Some(at(next)), "{from} {every}");
    }
    assert_eq!(next_bound(at("9999-12-31 00:00:00"), span(1, SpanUnit::Month)), None);
    assert_eq!(next_bound(at("2024-01-01 00:00:00"), span(Span::MAX_COUNT, SpanUnit::Year)), None);
}

/// Bounds grow, whatever the unit: the loop that makes partitions ends.
#[test]
fn bounds_grow() {
    for unit in SpanUnit::ALL {
        for start in ["2023-12-31 23:59:59", "2024-01-29 00:00:00", "2024-02-29 12:00:00"] {
            let mut from = at(start);
            for _ in 0..500 {
                let next = next_bound(from, span(1, unit)).expect("within the calendar");
                assert!(next > from, "{unit:?} {from:?}");
                from = next;
            }
        }
    }
}

#[test]
fn bounds_are_times_again() {
    let zone = TimeZone::fixed(jiff::tz::offset(2));
    let midnight = at("2024-02-29 00:00:00");
    for axis in [Axis::Date, Axis::DateTime, Axis::Days, Axis::Seconds, Axis::Unix] {
        let bound = axis.bound_at(midnight, &zone).expect("a bound");
        assert_eq!(axis.time_of(&bound, &zone), Some(midnight), "{axis:?}");
    }
    for axis in [Axis::DateTime, Axis::Seconds, Axis::Unix] {
        let noon = at("2024-02-29 12:34:56");
        assert_eq!(axis.time_of(&axis.bound_at(noon, &zone).expect("a bound"), &zone), Some(noon), "{axis:?}");
    }
    assert_eq!(Axis::Year.time_of(&Value::Int(2025), &zone), Some(at("2025-01-01 00:00:00")));
    for axis in [Axis::Days, Axis::Seconds, Axis::Year] {
        assert_eq!(axis.time_of(&Value::Int(-5), &zone), None, "{axis:?}");
    }
    assert_eq!(Axis::Unix.time_of(&Value::UInt(u64::MAX), &zone), None);
}
