//! Sizes in bytes as people write them: `64KiB`, `1.5GiB`, `4G`, `100MB`.
//!
//! One grammar for every place that takes a size: flags, environment, the TOML file, `SET`. What [`show`] writes,
//! [`parse`] reads, so that an error can name a size which is pasted back as it stands. Left out: signs and exponents.

const UNITS: [(&str, u64); 4] = [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];

/// Bytes of a size as it is written; `None`: it is none. `k`, `m`, `g` and `t` are binary, as in MySQL's option files;
/// `kb` and so on are decimal.
pub fn parse(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = (&text[..digits], text[digits..].trim().to_ascii_lowercase());
    let factor: u64 = match unit.as_str() {
        "" | "b" => 1,
        "k" | "kib" => 1 << 10,
        "kb" => 1_000,
        "m" | "mib" => 1 << 20,
        "mb" => 1_000_000,
        "g" | "gib" => 1 << 30,
        "gb" => 1_000_000_000,
        "t" | "tib" => 1 << 40,
        "tb" => 1_000_000_000_000,
        _ => return None,
    };
    // Whole numbers stay exact where a double would not hold them.
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(factor);
    }
    let bytes = number.parse::<f64>().ok()? * factor as f64;
    (bytes.is_finite() && bytes < 1e18).then_some(bytes as u64)
}

/// In the largest unit that leaves at least 1, with one digit behind the point unless it is 0.
pub fn show(bytes: u64) -> String {
    let Some((unit, factor)) = UNITS.into_iter().find(|(_, factor)| bytes >= *factor) else {
        return format!("{bytes}B");
    };
    let tenths = (u128::from(bytes) * 10 + u128::from(factor / 2)) / u128::from(factor);
    match (tenths / 10, tenths % 10) {
        (whole, 0) => format!("{whole}{unit}"),
        (whole, tenth) => format!("{whole}.{tenth}{unit}"),
    }
}

/// The least whole number of MiB that holds so many bytes, as [`show`] writes sizes: what to give for a limit.
pub fn show_enough(bytes: u64) -> String {
    format!("{}MiB", bytes.div_ceil(1 << 20))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_all_units() {
        for (text, bytes) in [
            ("512", 512),
            ("512b", 512),
            ("64KiB", 65_536),
            ("64 kb", 64_000),
            ("1.5GiB", 3 << 29),
            ("4G", 4 << 30),
            ("4m", 4 << 20),
            ("100MB", 100_000_000),
            ("2TiB", 2 << 40),
            ("18446744073709551615", u64::MAX),
            (" 7 ", 7),
        ] {
            assert_eq!(parse(text), Some(bytes), "{text}");
        }
        for text in
            ["", "GiB", "-1", "1e9", "4 parsec", "1.2.3", ".", "18446744073709551616", "99999999999TiB", "9999999.5TiB"]
        {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_shown_can_be_read_back() {
        for (bytes, text) in [
            (0, "0B"),
            (1023, "1023B"),
            (1024, "1KiB"),
            (1536, "1.5KiB"),
            (3 << 29, "1.5GiB"),
            (16 << 20, "16MiB"),
            (25_276_497_920, "23.5GiB"),
            (5 << 40, "5TiB"),
        ] {
            assert_eq!(show(bytes), text);
            let read = parse(&show(bytes)).expect("it is a size");
            assert!(read.abs_diff(bytes) <= bytes / 10, "{text}: {read}");
        }
        assert_eq!(parse(&show_enough((16 << 20) + 1)), Some(17 << 20));
    }
}
