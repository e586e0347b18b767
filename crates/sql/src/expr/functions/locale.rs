//! Locales: names of months and days, and how numbers are written, for `lc_time_names` and for functions that take a locale.
//!
//! The table has a line for each locale, in the order of MySQL's numbers (`SET lc_time_names = 4` is `de_DE`): its name; the months; their short names; the
//! days from Monday on; their short names; what stands between thousands; the decimal point; how digits are grouped (`three`, or `lakh`: three, then
//! twos). Its names and signs are what MariaDB 10.11 answers for each of them. It is read once.

use std::sync::OnceLock;

/// One locale.
#[derive(Debug)]
pub(crate) struct Locale {
    pub name: &'static str,
    pub months: Vec<&'static str>,
    pub short_months: Vec<&'static str>,
    /// From Monday on.
    pub days: Vec<&'static str>,
    pub short_days: Vec<&'static str>,
    pub thousands: &'static str,
    pub point: &'static str,
    /// Groups of digits beyond the first have two, not three.
    pub by_lakh: bool,
}

const TABLE: &str = include_str!("locales.tsv");

fn read(line: &'static str) -> Locale {
    let mut fields = line.split('\t');
    let mut field = || fields.next().expect("a line of the table is whole");
    let name = field();
    let mut names = || field().split('|').collect::<Vec<_>>();
    let (months, short_months, days, short_days) = (names(), names(), names(), names());
    let thousands = match field() {
        "space" => " ",
        sign => sign,
    };
    let point = field();
    let by_lakh = field() == "lakh";
    Locale { name, months, short_months, days, short_days, thousands, point, by_lakh }
}

fn all() -> &'static [Locale] {
    static ALL: OnceLock<Vec<Locale>> = OnceLock::new();
    ALL.get_or_init(|| TABLE.lines().map(read).collect())
}

/// en_US.
pub(crate) fn usual() -> &'static Locale {
    &all()[0]
}

/// By its name, in any case.
pub(crate) fn find(name: &str) -> Option<&'static Locale> {
    all().iter().find(|locale| locale.name.eq_ignore_ascii_case(name))
}

/// By its number.
pub(crate) fn numbered(number: u64) -> Option<&'static Locale> {
    all().get(usize::try_from(number).ok()?)
}

/// The number of a locale that is known.
pub(crate) fn number(name: &str) -> u8 {
    all().iter().position(|locale| locale.name == name).map_or(0, |at| at as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_whole() {
        assert_eq!(all().len(), 111);
        for locale in all() {
            let counts =
                [&locale.months, &locale.short_months, &locale.days, &locale.short_days].map(|names| names.len());
            assert_eq!(counts, [12, 12, 7, 7], "{}", locale.name);
            assert!([",", "."].contains(&locale.point), "{}", locale.name);
        }
        assert_eq!(usual().name, "en_US");
        assert_eq!(numbered(4).map(|locale| locale.name), Some("de_DE"));
        assert_eq!(find("DE_de").map(|locale| locale.days[0]), Some("Montag"));
    }
}
