use super::*;
use jiff::tz::TimeZone;
use proptest::prelude::*;

fn date(year: u16, month: u8, day: u8) -> Date {
    Date::from_parts(year, month, day)
}

/// The value with six fraction digits, `?` and the error otherwise; `+` for what follows, `^` for rounding up.
fn read_date_time(text: &str, flags: DateFlags) -> String {
    match parse_date_time(text.as_bytes(), flags) {
        Ok(p) => {
            let value = if p.date_only { p.value.date().to_string() } else { format!("{:.6}", p.value) };
            format!("{value}{}{}", if p.truncated { "+" } else { "" }, if p.round_up { "^" } else { "" })
        }
        Err(error) => format!("?{error:?}"),
    }
}

#[test]
fn dates_in_all_spellings() {
    for (text, expected) in [
        ("2024-1-2", "2024-01-02"),
        ("20240102", "2024-01-02"),
        ("240102", "2024-01-02"),
        ("24-1-2", "2024-01-02"),
        ("69-1-1", "2069-01-01"),
        ("70-1-1", "1970-01-01"),
        ("0-1-1", "0000-01-01"),
        ("00-1-1", "2000-01-01"),
        ("10:11:12", "2010-11-12"),
        ("  2024-01-02  ", "2024-01-02"),
        ("2024-01-02T03:04:05.123", "2024-01-02 03:04:05.123000"),
        ("20240102030405", "2024-01-02 03:04:05.000000"),
        ("240102030405.5", "2024-01-02 03:04:05.500000"),
        ("20240102T030405", "2024-01-02 03:04:05.000000"),
        ("2024@1@2 3*4*5", "2024-01-02 03:04:05.000000"),
        ("2024-01-02 03", "2024-01-02 03:00:00.000000"),
        ("2024-01-02 03:04:05.", "2024-01-02 03:04:05.000000"),
        ("2024-01-02 03:04:05.1234567", "2024-01-02 03:04:05.123456^"),
        ("2024-01-02 03:04:05.1234564", "2024-01-02 03:04:05.123456"),
        ("2024-01-02 03:04:05 x", "2024-01-02 03:04:05.000000+"),
        ("2024-01-02x", "2024-01-02+"),
        ("2024-00-00", "2024-00-00"),
        ("0000-00-00", "0000-00-00"),
        ("0000-00-00 00:00:00", "0000-00-00 00:00:00.000000"),
        ("2024-01-02 25:00:00", "?OutOfRange"),
        ("2024-13-02", "?OutOfRange"),
        ("2024-02-30", "?OutOfRange"),
        ("2023-02-29", "?OutOfRange"),
        ("10000-01-01", "?OutOfRange"),
        ("abc", "?Malformed"),
        ("2024", "?Malformed"),
        ("2024-01", "?Malformed"),
        ("", "?Malformed"),
        ("-2024-01-01", "?Malformed"),
        ("20241", "?OutOfRange"),
        ("99999999-1-1", "?Malformed"),
    ] {
        assert_eq!(read_date_time(text, DateFlags::default()), expected, "{text:?}");
    }
}

#[test]
fn sql_modes_decide_about_dates_that_are_none() {
    let zero = DateFlags { no_zero_date: true, ..DateFlags::default() };
    let parts = DateFlags { no_zero_in_date: true, ..DateFlags::default() };
    let invalid = DateFlags { allow_invalid: true, ..DateFlags::default() };
    assert_eq!(read_date_time("0000-00-00", zero), "?ZeroDate");
    assert_eq!(read_date_time("0000-00-00", parts), "0000-00-00");
    assert_eq!(read_date_time("2024-00-01", zero), "2024-00-01");
    assert_eq!(read_date_time("2024-00-01", parts), "?ZeroInDate");
    assert_eq!(read_date_time("2024-02-30", invalid), "2024-02-30");
    assert_eq!(read_date_time("2024-02-32", invalid), "?OutOfRange");
    assert_eq!(date(2024, 1, 0).check(parts), Err(TemporalError::ZeroInDate));
    assert_eq!(date(2024, 2, 31).check(DateFlags::default()), Err(TemporalError::OutOfRange));
    assert_eq!(DateTime::new(Date::ZERO, 1).check(zero), Ok(()));
}

#[test]
fn zone_offsets_are_read() {
    let offset = |text: &str| parse_date_time(text.as_bytes(), DateFlags::default()).unwrap();
    assert_eq!(offset("2024-01-02 03:04:05+05:30").offset, Some(19_800));
    assert_eq!(offset("2024-01-02 03:04:05.5-08:00").offset, Some(-28_800));
    for text in ["2024-01-02 03:04:05-00:00", "2024-01-02 03:04:05+15:00", "2024-01-02 03:04:05+5:30"] {
        assert_eq!((offset(text).offset, offset(text).truncated), (None, true), "{text}");
    }
}

#[test]
fn rounding_carries_into_the_next_day() {
    let parsed = |text: &str| parse_date_time(text.as_bytes(), DateFlags::default()).unwrap();
    let rounded = |text: &str, fsp| format!("{:.6}", parsed(text).to_precision(fsp, false).unwrap());
    assert_eq!(rounded("2024-12-31 23:59:59.5", 0), "2025-01-01 00:00:00.000000");
    assert_eq!(rounded("2024-12-31 23:59:59.4999999", 0), "2025-01-01 00:00:00.000000");
    assert_eq!(rounded("2024-12-31 23:59:59.9999995", 6), "2025-01-01 00:00:00.000000");
    assert_eq!(rounded("2024-12-31 12:00:00.1235", 3), "2024-12-31 12:00:00.124000");
    assert_eq!(parsed("9999-12-31 23:59:59.5").to_precision(0, false), None);
    assert_eq!(format!("{}", parsed("9999-12-31 23:59:59.5").to_precision(0, true).unwrap()), "9999-12-31 23:59:59");
    let time = |text: &str, fsp| format!("{:.6}", parse_time(text.as_bytes()).unwrap().to_precision(fsp, false));
    assert_eq!(time("-10:11:12.5", 0), "-10:11:13.000000");
    assert_eq!(time("10:11:12.9999996", 6), "10:11:13.000000");
    assert_eq!(time("838:59:59.5", 0), "838:59:59.000000");
}

#[test]
fn times_in_all_spellings() {
    for (text, expected) in [
        ("1 10:11:12", "34:11:12.000000"),
        ("2 3:4", "51:04:00.000000"),
        ("2 13", "61:00:00.000000"),
        ("2 3", "00:00:02.000000+"),
        ("10:11", "10:11:00.000000"),
        ("10", "00:00:10.000000"),
        ("101112", "10:11:12.000000"),
        ("1011", "00:10:11.000000"),
        ("10.5", "00:00:10.500000"),
        ("-10:11:12.5", "-10:11:12.500000"),
        (" 1 ", "00:00:01.000000"),
        ("10:", "00:00:10.000000+"),
        ("10:11:12abc", "10:11:12.000000+"),
        ("10:11:12.1234567", "10:11:12.123456^"),
        ("12:34:56.12345", "12:34:56.123450"),
        ("123456.123456", "12:34:56.123456"),
        ("2024-01-02 03:04:05", "03:04:05.000000"),
        ("2024-01-02T03:04:05.5", "03:04:05.500000"),
        ("20240102030405", "03:04:05.000000"),
        ("2024-01-02", "00:20:24.000000+"),
        ("839:00:00", "838:59:59.000000!"),
        ("-35 00:00:00", "-838:59:59.000000!"),
        ("10:60:00", "?OutOfRange"),
        ("60", "?OutOfRange"),
        ("1e5", "?Malformed"),
        ("abc", "?Malformed"),
        (":10", "?Malformed"),
        ("-", "?Malformed"),
        ("", "?Malformed"),
        ("4294967296", "?Malformed"),
    ] {
        let read = match parse_time(text.as_bytes()) {
            Ok(p) => {
                let marks = [(p.truncated, "+"), (p.round_up, "^"), (p.out_of_range, "!")];
                format!("{:.6}", p.value) + &marks.iter().filter(|m| m.0).map(|m| m.1).collect::<String>()
            }
            Err(error) => format!("?{error:?}"),
        };
        assert_eq!(read, expected, "{text:?}");
    }
}

#[test]
fn numbers_are_dates_and_times() {
    for (number, expected) in [
        (20240102, Some("2024-01-02 00:00:00")),
        (240102, Some("2024-01-02 00:00:00")),
        (691231, Some("2069-12-31 00:00:00")),
        (700101, Some("1970-01-01 00:00:00")),
        (101, Some("2000-01-01 00:00:00")),
        (20240102030405, Some("2024-01-02 03:04:05")),
        (240102030405, Some("2024-01-02 03:04:05")),
        (1231235959, Some("2000-12-31 23:59:59")),
        (0, Some("0000-00-00 00:00:00")),
        (10000101, Some("1000-01-01 00:00:00")),
        (991231235959, Some("1999-12-31 23:59:59")),
        (100, None),
        (700100, None),
        (991232, None),
        (9999999, None),
        (20241301, None),
        (100000000000000, None),
        (-20240102, None),
    ] {
        let read = date_time_from_number(number, DateFlags::default()).ok().map(|(value, _)| value.to_string());
        assert_eq!(read.as_deref(), expected, "{number}");
    }
    let time = |number| time_from_number(number).map(|t| t.to_string());
    assert_eq!(time(123456), Ok("12:34:56".into()));
    assert_eq!(time(-123456), Ok("-12:34:56".into()));
    assert_eq!(time(8385959), Ok("838:59:59".into()));
    assert_eq!(time(20240102030405), Ok("03:04:05".into()));
    assert_eq!(time(8390000), Err(TemporalError::OutOfRange));
    assert_eq!(time(-8390000), Err(TemporalError::OutOfRange));
    assert_eq!(time(6000), Err(TemporalError::Malformed));
    let value = DateTime::from_parts(2024, 1, 2, 3, 4, 5, 999_999).unwrap();
    assert_eq!((value.to_number(), value.date().to_number()), (20240102030405, 20240102));
    assert_eq!(Time::new(true, 12, 34, 56, 0).unwrap().to_number(), -123456);
}

/// Day numbers, weekdays, days of the year, WEEK and YEARWEEK in all modes as MariaDB 10.11 has them.
#[test]
fn weeks_are_those_of_mariadb() {
    for line in include_str!("mariadb_10_11_weeks.tsv").lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let number = |i: usize| fields[i].parse::<i64>().unwrap();
        let value = parse_date_time(fields[0].as_bytes(), DateFlags::default()).unwrap().value.date();
        assert_eq!(value.to_days(), Some(number(1)), "{value}");
        assert_eq!(Date::from_days(number(1)), value);
        assert_eq!(value.weekday().map(i64::from), Some(number(2)), "{value}");
        assert_eq!(value.day_of_week().map(i64::from), Some((number(2) + 1) % 7 + 1));
        assert_eq!(value.day_of_year().map(i64::from), Some(number(3)), "{value}");
        for mode in 0..8 {
            let (_, week) = value.week(WeekMode::new(mode)).unwrap();
            assert_eq!(i64::from(week), number(4 + mode as usize), "{value} mode {mode}");
            let (year, week) = value.week(WeekMode::new(mode).with_week_year()).unwrap();
            assert_eq!(i64::from(year) * 100 + i64::from(week), number(12 + mode as usize), "{value} mode {mode}");
        }
    }
}

#[test]
fn months_end_where_they_end() {
    assert_eq!(date(2024, 1, 31).add_months(1), Some(date(2024, 2, 29)));
    assert_eq!(date(2024, 2, 29).add_months(12), Some(date(2025, 2, 28)));
    assert_eq!(date(2024, 3, 31).add_months(-1), Some(date(2024, 2, 29)));
    assert_eq!(date(1, 1, 1).add_months(-1), Some(date(0, 12, 1)));
    assert_eq!(date(9999, 12, 1).add_months(1), None);
    assert_eq!(date(2024, 0, 1).add_months(1), None);
    assert_eq!(date(2024, 1, 1).add_months(i64::MAX), None);
    assert_eq!(date(1, 1, 1).add_days(-1), None);
    assert_eq!(date(9999, 12, 31).add_days(1), None);
    assert_eq!(date(2024, 2, 10).last_day(), Some(date(2024, 2, 29)));
    assert_eq!(
        (date(0, 2, 1).last_day(), date(1900, 2, 1).last_day()),
        (Some(date(0, 2, 28)), Some(date(1900, 2, 28)))
    );
    assert_eq!((date(2024, 4, 1).quarter(), date(2024, 12, 1).quarter(), date(2024, 0, 1).quarter()), (2, 4, 0));
    let at = |text: &str| parse_date_time(text.as_bytes(), DateFlags::default()).unwrap().value;
    assert_eq!(at("2024-01-01").add_micros(-1), Some(at("2023-12-31 23:59:59.999999")));
    assert_eq!(at("2024-02-29").months_since(at("2024-01-31")), 0);
    assert_eq!(at("2024-03-31").months_since(at("2024-01-31")), 2);
    assert_eq!(at("2024-01-31").months_since(at("2024-03-31 00:00:01")), -2);
}

#[test]
fn clocks_that_are_put_forward_and_back() {
    let berlin = TimeZone::get("Europe/Berlin").unwrap();
    let unix = |text: &str| {
        let value = parse_date_time(text.as_bytes(), DateFlags::default()).unwrap().value;
        let unix = value.to_unix_micros(&berlin).unwrap();
        (unix.micros / 1_000_000, unix.in_gap)
    };
    // As MySQL and MariaDB: the moment of the change for times that it skipped, the first for those that come twice.
    assert_eq!(unix("2024-03-31 02:30:00"), (1_711_846_800, true));
    assert_eq!(unix("2024-03-31 03:00:00"), (1_711_846_800, false));
    assert_eq!(unix("2024-10-27 02:30:00"), (1_729_989_000, false));
    assert_eq!(unix("2024-10-27 03:30:00"), (1_729_996_200, false));
    assert_eq!(DateTime::from_unix_micros(1_729_989_000_000_000, &berlin).unwrap().to_string(), "2024-10-27 02:30:00");
    assert_eq!(date(2024, 2, 0).at_midnight().to_unix_micros(&berlin), None);
    let fixed = TimeZone::fixed(jiff::tz::Offset::from_seconds(19_800).unwrap());
    let noon = DateTime::from_parts(1970, 1, 1, 5, 30, 1, 0).unwrap();
    assert_eq!(noon.to_unix_micros(&fixed), Some(UnixMicros { micros: TIMESTAMP_MIN, in_gap: false }));
    let last = DateTime::from_unix_micros_utc(TIMESTAMP_MAX).unwrap();
    assert_eq!(format!("{last:.6}"), "2038-01-19 03:14:07.999999");
    assert!(UnixMicros { micros: TIMESTAMP_MAX, in_gap: false }.is_timestamp());
    assert!(!UnixMicros { micros: TIMESTAMP_MIN - 1, in_gap: false }.is_timestamp());
}

fn real_date() -> impl Strategy<Value = Date> {
    (366i64..=3_652_424).prop_map(Date::from_days)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn calendar_agrees_with_jiff(value in real_date(), days in -4_000_000i64..4_000_000, months in -130_000i32..130_000) {
        let civil = jiff::civil::date(value.year() as i16, value.month() as i8, value.day() as i8);
        prop_assert_eq!(value.to_string(), civil.to_string());
        prop_assert!(value.is_real());
        prop_assert_eq!(Date::from_days(value.to_days().unwrap()), value);
        prop_assert_eq!(value.weekday().unwrap() as i8, civil.weekday().to_monday_zero_offset());
        prop_assert_eq!(value.day_of_year().unwrap() as i16, civil.day_of_year());
        let iso = civil.iso_week_date();
        if iso.year() > 0 {
            prop_assert_eq!(value.week(WeekMode::ISO), Some((iso.year() as u16, iso.week() as u8)));
        }
        let text = |d: Option<Date>| d.map(|d| d.to_string());
        let later = civil.checked_add(jiff::Span::new().days(days)).ok().filter(|d| d.year() > 0);
        prop_assert_eq!(text(value.add_days(days)), later.map(|d| d.to_string()));
        let later = civil.checked_add(jiff::Span::new().months(months)).ok().filter(|d| d.year() >= 0);
        prop_assert_eq!(text(value.add_months(months.into())), later.map(|d| d.to_string()));
    }

    #[test]
    fn local_times_come_back(micros in -60_000_000_000_000_000i64..250_000_000_000_000_000) {
        for zone in ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"] {
            let zone = TimeZone::get(zone).unwrap();
            let local = DateTime::from_unix_micros(micros, &zone).unwrap();
            let back = local.to_unix_micros(&zone).unwrap();
            prop_assert!(!back.in_gap);
            // The second of two equal local times comes back as the first.
            prop_assert!(back.micros == micros || DateTime::from_unix_micros(back.micros, &zone) == Some(local) && back.micros < micros);
        }
    }

    #[test]
    fn packing_keeps_order_and_parts(a in real_date(), b in real_date(), x in 0..MICROS_PER_DAY, y in 0..MICROS_PER_DAY) {
        let (p, q) = (DateTime::new(a, x), DateTime::new(b, y));
        prop_assert_eq!(p.cmp(&q), (a, x).cmp(&(b, y)));
        prop_assert_eq!((p.date(), p.micros_of_day()), (a, x));
        prop_assert_eq!(DateTime::from_packed(p.packed()), p);
        let built = DateTime::from_parts(p.year(), p.month(), p.day(), p.hour(), p.minute(), p.second(), p.microsecond());
        prop_assert_eq!(built, Some(p));
        let text = format!("{p:.6}");
        let read = parse_date_time(text.as_bytes(), DateFlags::default()).unwrap();
        prop_assert_eq!(read.value, p);
        prop_assert_eq!(p.add_micros(q.to_micros().unwrap() - p.to_micros().unwrap()), Some(q));
        let unix = p.to_unix_micros_utc().unwrap();
        prop_assert_eq!(DateTime::from_unix_micros_utc(unix), Some(p));
    }

    #[test]
    fn times_come_back_from_text(micros in Time::MIN.micros()..=Time::MAX.micros(), fsp in 0u8..=6) {
        let value = Time::from_micros(micros).unwrap();
        let text = format!("{value:.6}");
        prop_assert_eq!(parse_time(text.as_bytes()).unwrap().value, value);
        let built = Time::new(value.is_negative(), value.hours(), value.minutes(), value.seconds(), value.microsecond());
        prop_assert_eq!(built, Some(value));
        let unit = 10i64.pow(6 - u32::from(fsp));
        prop_assert_eq!(value.truncated(fsp).micros(), micros / unit * unit);
        prop_assert!((value.rounded(fsp).micros() - micros).abs() * 2 <= unit || value.rounded(fsp).micros().abs() == Time::MAX.micros());
        prop_assert_eq!(value.rounded(fsp).micros() % unit, 0);
    }

    #[test]
    fn reading_garbage_does_no_harm(text in "[0-9:. T+-]{0,30}", bytes: Vec<u8>, number: i64) {
        for text in [text.as_bytes(), &bytes] {
            let _ = (parse_date_time(text, DateFlags::default()), parse_time(text));
        }
        let _ = (date_time_from_number(number, DateFlags::default()), time_from_number(number));
    }
}
