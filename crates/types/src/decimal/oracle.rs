//! A slow decimal for tests: unbounded digits in strings, schoolbook arithmetic, nothing shared with the real one.

use super::{Decimal, DecimalError, MAX_PRECISION, MAX_SCALE};
use proptest::prelude::*;
use std::cmp::Ordering;
use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

/// Digits with the lowest first, without zeros at the high end.
type Natural = Vec<u8>;

fn trim(mut n: Natural) -> Natural {
    while n.last() == Some(&0) {
        n.pop();
    }
    n
}

fn compare(a: &Natural, b: &Natural) -> Ordering {
    a.len().cmp(&b.len()).then_with(|| a.iter().rev().cmp(b.iter().rev()))
}

fn add(a: &Natural, b: &Natural) -> Natural {
    let mut out = Vec::new();
    let mut carry = 0;
    for i in 0..a.len().max(b.len()) + 1 {
        let sum = a.get(i).unwrap_or(&0) + b.get(i).unwrap_or(&0) + carry;
        out.push(sum % 10);
        carry = sum / 10;
    }
    trim(out)
}

/// `a - b` for `a >= b`.
fn subtract(a: &Natural, b: &Natural) -> Natural {
    let mut out = Vec::new();
    let mut borrow = 0;
    for (i, from) in a.iter().enumerate() {
        let digit = *from as i8 - *b.get(i).unwrap_or(&0) as i8 - borrow;
        borrow = i8::from(digit < 0);
        out.push((digit + 10 * borrow) as u8);
    }
    trim(out)
}

fn multiply(a: &Natural, b: &Natural) -> Natural {
    let mut out = vec![0u32; a.len() + b.len() + 1];
    for (i, x) in a.iter().enumerate() {
        for (j, y) in b.iter().enumerate() {
            out[i + j] += u32::from(x * y);
        }
    }
    for i in 0..out.len() - 1 {
        out[i + 1] += out[i] / 10;
        out[i] %= 10;
    }
    trim(out.into_iter().map(|digit| digit as u8).collect())
}

/// Quotient and rest.
fn divide(a: &Natural, b: &Natural) -> (Natural, Natural) {
    let (mut quotient, mut rest) = (Vec::new(), Vec::new());
    for digit in a.iter().rev() {
        rest.insert(0, *digit);
        rest = trim(rest);
        let mut count = 0;
        while compare(&rest, b).is_ge() {
            rest = subtract(&rest, b);
            count += 1;
        }
        quotient.insert(0, count);
    }
    (trim(quotient), rest)
}

fn shifted(n: &Natural, zeros: usize) -> Natural {
    trim([vec![0; zeros], n.clone()].concat())
}

/// A number of any length.
#[derive(Clone, Debug)]
struct Slow {
    negative: bool,
    digits: Natural,
    scale: usize,
}

impl Slow {
    fn parse(text: &str) -> Slow {
        let negative = text.starts_with('-');
        let scale = text.split_once('.').map_or(0, |(_, fraction)| fraction.len());
        let digits = text.bytes().rev().filter(u8::is_ascii_digit).map(|b| b - b'0').collect();
        Slow { negative, digits: trim(digits), scale }
    }

    fn text(&self) -> String {
        let mut digits: Vec<char> = self.digits.iter().map(|d| char::from(b'0' + d)).collect();
        digits.resize(digits.len().max(self.scale + 1), '0');
        if self.scale > 0 {
            digits.insert(self.scale, '.');
        }
        if self.negative && !self.digits.is_empty() {
            digits.push('-');
        }
        digits.iter().rev().collect()
    }

    fn aligned(&self, scale: usize) -> Natural {
        shifted(&self.digits, scale - self.scale)
    }

    fn add(&self, other: &Slow) -> Slow {
        let scale = self.scale.max(other.scale);
        let (a, b) = (self.aligned(scale), other.aligned(scale));
        let (negative, digits) = match (self.negative == other.negative, compare(&a, &b)) {
            (true, _) => (self.negative, add(&a, &b)),
            (false, Ordering::Less) => (other.negative, subtract(&b, &a)),
            (false, _) => (self.negative, subtract(&a, &b)),
        };
        Slow { negative, digits, scale }
    }

    fn multiply(&self, other: &Slow) -> Slow {
        Slow {
            negative: self.negative != other.negative,
            digits: multiply(&self.digits, &other.digits),
            scale: self.scale + other.scale,
        }
    }

    /// The quotient cut off at `scale`, and whether anything was.
    fn divide(&self, other: &Slow, scale: usize) -> (Slow, bool) {
        let (quotient, rest) = divide(&shifted(&self.digits, scale + other.scale), &shifted(&other.digits, self.scale));
        (Slow { negative: self.negative != other.negative, digits: quotient, scale }, !rest.is_empty())
    }

    fn remainder(&self, other: &Slow) -> Slow {
        let scale = self.scale.max(other.scale);
        let (_, digits) = divide(&self.aligned(scale), &other.aligned(scale));
        Slow { negative: self.negative, digits, scale }
    }

    fn truncated(&self, scale: usize) -> Slow {
        let drop = self.scale.saturating_sub(scale);
        Slow {
            negative: self.negative,
            digits: self.digits[drop.min(self.digits.len())..].to_vec(),
            scale: self.scale - drop,
        }
    }

    /// Half away from zero.
    fn rounded(&self, scale: usize) -> Slow {
        let drop = self.scale.saturating_sub(scale);
        let mut out = self.truncated(scale);
        if drop > 0 && self.digits.get(drop - 1).is_some_and(|digit| *digit >= 5) {
            out.digits = add(&out.digits, &vec![1]);
        }
        out
    }

    /// What an operation of the real decimal gives for this exact result: at most 30 digits behind the point and 65 in all,
    /// rounded once.
    fn fitted(&self) -> Result<String, DecimalError> {
        let mut scale = self.scale.min(MAX_SCALE.into());
        loop {
            let out = self.rounded(scale);
            if out.digits.len() <= MAX_PRECISION.into() {
                return Ok(out.text());
            }
            if scale == 0 {
                return Err(DecimalError::Overflow);
            }
            scale -= 1;
        }
    }
}

fn text(value: Result<Decimal, DecimalError>) -> Result<String, DecimalError> {
    value.map(|v| v.to_string())
}

/// Texts of decimals: of all lengths, with runs of nines and zeros, where carries happen.
fn numbers() -> impl Strategy<Value = String> {
    let digits = prop_oneof![
        3 => prop::collection::vec(0u8..10, 1..66),
        3 => prop::collection::vec(0u8..10, 1..10),
        1 => prop::collection::vec(Just(9u8), 1..66),
        1 => prop::collection::vec(prop::sample::select(vec![0u8, 0, 0, 5, 9, 9]), 1..66),
        1 => (1usize..65).prop_map(|zeros| [vec![1], vec![0; zeros]].concat()),
    ];
    (digits, 0usize..=30, any::<bool>()).prop_map(|(digits, scale, negative)| {
        let mut text: String = digits.iter().map(|d| char::from(b'0' + d)).collect();
        let scale = scale.min(text.len());
        if scale > 0 {
            text.insert(text.len() - scale, '.');
        }
        if text.starts_with('.') {
            text.insert(0, '0');
        }
        if negative { format!("-{text}") } else { text }
    })
}

fn both(text: &str) -> (Decimal, Slow) {
    (text.parse().unwrap(), Slow::parse(text))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn arithmetic_is_exact_and_rounds_once(x in numbers(), y in numbers()) {
        let ((a, slow_a), (b, slow_b)) = (both(&x), both(&y));
        prop_assert_eq!(a.to_string(), slow_a.text());
        prop_assert_eq!(text(a.checked_add(&b)), slow_a.add(&slow_b).fitted());
        let negative_b = Slow { negative: !slow_b.negative, ..slow_b.clone() };
        prop_assert_eq!(text(a.checked_sub(&b)), slow_a.add(&negative_b).fitted());
        prop_assert_eq!(text(a.checked_mul(&b)), slow_a.multiply(&slow_b).fitted());
        prop_assert_eq!(text(Ok(a.neg())), Slow { negative: !slow_a.negative, ..slow_a.clone() }.fitted());
        if b.is_zero() {
            prop_assert_eq!(a.checked_div(&b, 4), Err(DecimalError::DivisionByZero));
            prop_assert_eq!(a.checked_rem(&b), Err(DecimalError::DivisionByZero));
            return Ok(());
        }
        // Cut off at whole words of nine digits, then rounded; where the integer part leaves less room, only cut off.
        let words = |digits: u8| digits.div_ceil(9) * 9;
        let (s, t) = (a.scale(), b.scale());
        let guarded_scale = words(words(s) + words(t) + 4u8.saturating_sub(words(s) - s + words(t) - t)).min(30);
        match a.checked_div_guarded(&b, 4) {
            Ok(guarded) => {
                let (cut, _) = slow_a.divide(&slow_b, guarded.scale().into());
                prop_assert_eq!(guarded.to_string(), cut.text());
                prop_assert!(guarded.scale() == guarded_scale || cut.digits.len() == 65);
                let scale = usize::from(s + 4).min(30);
                prop_assert_eq!(text(a.checked_div(&b, 4)), cut.rounded(scale).fitted());
            }
            Err(error) => {
                prop_assert_eq!(error, DecimalError::Overflow);
                prop_assert!(slow_a.divide(&slow_b, 0).0.digits.len() > 65);
            }
        }
        let (integer, _) = slow_a.divide(&slow_b, 0);
        prop_assert_eq!(text(a.checked_div_integer(&b)), integer.fitted());
        prop_assert_eq!(text(a.checked_rem(&b)), slow_a.remainder(&slow_b).fitted());
    }

    #[test]
    fn order_and_hash_are_numeric(x in numbers(), y in numbers(), zeros in 0u8..30) {
        let ((a, slow_a), (b, slow_b)) = (both(&x), both(&y));
        let difference = slow_a.add(&Slow { negative: !slow_b.negative, ..slow_b });
        let expected = match (difference.digits.is_empty(), difference.negative) {
            (true, _) => Ordering::Equal,
            (_, true) => Ordering::Less,
            _ => Ordering::Greater,
        };
        prop_assert_eq!(a.cmp(&b), expected);
        prop_assert_eq!(a == b, expected.is_eq());
        if let Ok(padded) = a.rescale(a.scale().max(zeros)) {
            let hasher = RandomState::new();
            prop_assert_eq!(padded, a);
            prop_assert_eq!(hasher.hash_one(padded), hasher.hash_one(a));
            prop_assert_eq!(padded.identical(&a), zeros <= a.scale());
            prop_assert!(padded.normalized().identical(&a.normalized()));
        }
    }

    #[test]
    fn rounding_and_truncating(x in numbers(), scale in 0u8..=30, places in -70i32..40) {
        let (a, slow) = both(&x);
        let small = usize::from(scale.min(a.scale()));
        if slow.rounded(small).digits.len() <= 65 {
            prop_assert_eq!(a.rounded(scale).to_string(), slow.rounded(small).text());
        }
        prop_assert_eq!(a.truncated(scale).to_string(), slow.truncated(small).text());
        let fits = slow.digits.len() + usize::from(scale.saturating_sub(a.scale())) <= 65;
        if scale > a.scale() {
            let padded = Slow { digits: shifted(&slow.digits, usize::from(scale - a.scale())), scale: scale.into(), ..slow.clone() };
            prop_assert_eq!(text(a.rescale(scale)), if fits || a.is_zero() { Ok(padded.text()) } else { Err(DecimalError::Overflow) });
        }
        // Negative places: as if the point stood further left.
        if places < 0 {
            let moved = Slow { scale: slow.scale + places.unsigned_abs() as usize, ..slow.clone() };
            let back = |s: Slow| Slow { digits: shifted(&s.digits, places.unsigned_abs() as usize), scale: 0, ..s };
            prop_assert_eq!(text(a.round(places)), back(moved.rounded(0)).fitted());
            prop_assert_eq!(text(Ok(a.truncate(places))), back(moved.truncated(0)).fitted());
        } else {
            prop_assert!(a.round(places).unwrap().identical(&a.rounded(places as u8)));
        }
        // floor <= a <= ceil, integers, less than one apart
        let (floor, ceil) = (a.floor(), a.ceil());
        prop_assert!(floor <= a && a <= ceil && floor.scale() == 0 && ceil.scale() == 0);
        prop_assert!(ceil == floor || (ceil.checked_sub(&floor) == Ok(Decimal::from(1)) && a.rounded(0).scale() == 0));
    }

    #[test]
    fn text_is_read_as_written(digits in "-?[0-9]{1,90}", fraction in "(\\.[0-9]{0,90})?", exponent in -80i64..80, with in any::<bool>()) {
        let mut exact = Slow::parse(&format!("{digits}{fraction}"));
        let mut text = format!(" {digits}{fraction}");
        if with {
            text += &format!("e{exponent}");
            if exponent > exact.scale as i64 {
                exact.digits = shifted(&exact.digits, exponent as usize - exact.scale);
                exact.scale = 0;
            } else {
                exact.scale = (exact.scale as i64 - exponent) as usize;
            }
        }
        let length = text.len();
        let parsed = Decimal::parse_prefix(format!("{text} x").as_bytes());
        prop_assert_eq!(parsed.consumed, length);
        match exact.fitted() {
            Ok(expected) if !exact.digits.is_empty() => {
                prop_assert!(!parsed.overflow);
                prop_assert_eq!(parsed.value.to_string(), expected.clone());
                let kept = Slow::parse(&expected);
                prop_assert_eq!(parsed.rounded, kept.aligned(exact.scale.max(kept.scale)) != exact.aligned(exact.scale.max(kept.scale)));
            }
            Ok(_) => prop_assert!(parsed.value.is_zero() && !parsed.overflow),
            Err(_) => {
                prop_assert!(parsed.overflow);
                prop_assert_eq!(parsed.value.abs(), Decimal::largest(65, 0));
            }
        }
    }

    #[test]
    fn doubles_and_integers_convert(x in numbers(), double in -1e60f64..1e60, small in -1e3f64..1e3, n: i64, u: u64) {
        let (a, _) = both(&x);
        prop_assert_eq!(a.to_f64(), x.parse::<f64>().unwrap());
        for value in [double, small] {
            let back = Decimal::from_f64(value).unwrap();
            prop_assert!((back.to_f64() - value).abs() <= value.abs() * 1e-15 + 1e-30);
        }
        prop_assert_eq!(Decimal::from(n).to_i64(), Some(n));
        prop_assert_eq!(Decimal::from(u).to_u64(), Some(u));
        prop_assert_eq!(Decimal::from(u).to_f64(), u as f64);
    }
}

/// Pairs of numbers and what MariaDB 10.11 makes of them, with its scales.
#[test]
fn arithmetic_is_that_of_mariadb() {
    for line in include_str!("mariadb_10_11_arithmetic.tsv").lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let [a, b] = [0, 1].map(|i| fields[i].parse::<Decimal>().unwrap());
        let show = |value: Result<Decimal, DecimalError>| value.map_or("NULL".into(), |v| v.to_string());
        // 3 times a quotient: guard digits inside, rounded to the quotient's scale at the end.
        let scale = a.scale() + 4;
        let thrice = a.checked_div_guarded(&b, 4).and_then(|q| q.checked_mul(&Decimal::from(3)));
        let computed = [
            show(a.checked_add(&b)),
            show(a.checked_sub(&b)),
            show(a.checked_mul(&b)),
            show(a.checked_div(&b, 4)),
            show(a.checked_rem(&b)),
            // The type of ROUND(x, 1) has one digit behind the point.
            show(a.round(1).and_then(|v| v.rescale(1))),
            show(a.truncate(1).rescale(1)),
            show(a.round(-2)),
            a.floor().to_string(),
            a.ceil().to_string(),
            show(thrice.and_then(|v| v.rescale(scale))),
            u8::from(a < b).to_string(),
            u8::from(a == b).to_string(),
        ];
        for (i, value) in computed.iter().enumerate() {
            assert_eq!(value, fields[i + 2], "operation {i} of {a} and {b}");
        }
    }
}

#[test]
fn examples() {
    let d = |text: &str| text.parse::<Decimal>().unwrap();
    assert_eq!(d("1.50").to_string(), "1.50");
    assert_eq!(d("-.5").to_string(), "-0.5");
    assert_eq!(d("5.").to_string(), "5");
    assert_eq!(d("-0.00").to_string(), "0.00");
    assert_eq!(d("1.5e3").to_string(), "1500");
    assert_eq!(d("15e-3").to_string(), "0.015");
    assert_eq!(d("2").checked_div(&d("3"), 4).unwrap().to_string(), "0.6667");
    let third = d("2").checked_div_guarded(&d("3"), 4).unwrap();
    assert_eq!(third.to_string(), "0.666666666");
    assert_eq!(third.checked_mul(&d("3")).unwrap().rounded(4).to_string(), "2.0000");
    assert_eq!(d("155").round(-1).unwrap().to_string(), "160");
    assert_eq!(d("2.5").rounded(0).to_string(), "3");
    assert_eq!(d("-2.5").rounded(0).to_string(), "-3");
    assert_eq!(d("-7").checked_rem(&d("3")).unwrap().to_string(), "-1");
    assert_eq!(d("99999").checked_add(&d("0.1")).unwrap().to_string(), "99999.1");
    assert_eq!((d("0.05").precision(), d("0").precision(), d("123.4").precision()), (2, 1, 4));
    assert_eq!((d("0.05").integer_digits(), d("123.4").integer_digits()), (0, 3));
    assert_eq!(Decimal::largest(5, 2).to_string(), "999.99");
    assert!(d("999.99").fits(5, 2) && !d("1000").fits(5, 2) && !d("1.234").fits(5, 2));
    assert_eq!(d("999.995").to_precision(5, 2), Err(DecimalError::Overflow));
    assert_eq!(d("999.994").to_precision(5, 2).unwrap().to_string(), "999.99");
    assert_eq!(Decimal::from_f64(0.1).unwrap().to_string(), "0.1");
    assert_eq!(Decimal::from_f64(1e300), Err(DecimalError::Overflow));
    assert_eq!(Decimal::from_f64(f64::NAN), Err(DecimalError::NotANumber));
    assert_eq!(d("1e30").to_i64(), None);
    assert_eq!((d("-1.5").to_i64(), d("-1.5").to_u64(), d("1.5").to_u64()), (Some(-2), None, Some(2)));
    for wrong in ["", " ", "-", ".", "e5", "1x", "1 2"] {
        assert_eq!(wrong.parse::<Decimal>(), Err(DecimalError::NotANumber), "{wrong:?}");
    }
    assert_eq!("1e66".parse::<Decimal>(), Err(DecimalError::Overflow));
    assert_eq!(Decimal::parse_prefix(b"12.5abc").consumed, 4);
    assert_eq!(Decimal::parse_prefix(b"1e+").consumed, 1);
    assert_eq!(HashSet::from([d("1.0"), d("1.00"), d("1")]).len(), 1);
    let json = serde_json::to_string(&d("-1.50")).unwrap();
    assert_eq!(json, "\"-1.50\"");
    assert!(serde_json::from_str::<Decimal>(&json).unwrap().identical(&d("-1.50")));
}
