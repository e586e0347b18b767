//! Geohashes: a latitude and a longitude as letters and digits, each of which halves the cell five times.
//!
//! Reading one gives the middle of its cell, rounded to as few digits as still lie in the cell.

use super::{Call, Derived, Function, Typing, errors, rules, stored, system};
use crate::expr::Context;
use crate::expr::convert::Result;
use crate::expr::types::Class;
use geo::{Coord, Point};
use rauk_types::Value;
use rauk_types::geometry::Shape;

/// No `a`, `i`, `l`, `o`.
const ALPHABET: &[u8; 32] = b"0123456789bcdefghjkmnpqrstuvwxyz";
const MAX_LENGTH: i64 = 100;
/// Digits that a double has for sure.
const MAX_DIGITS: i32 = 15;

pub const FUNCTIONS: &[Function] = &[
    Function::new("ST_GEOHASH", 2, 3, |t: Typing<'_>| Ok(t.connection_text(MAX_LENGTH as u64).nullable()), encode),
    Function::new("ST_LATFROMGEOHASH", 1, 1, number, |c, _| Ok(Value::Double(decode(c)?.latitude.middle()))),
    Function::new("ST_LONGFROMGEOHASH", 1, 1, number, |c, _| Ok(Value::Double(decode(c)?.longitude.middle()))),
    Function::new(
        "ST_POINTFROMGEOHASH",
        2,
        2,
        |t: Typing<'_>| {
            is_text(&t, 0, "geohash")?;
            rules::point(t)
        },
        |c, x| {
            let cell = decode(c)?;
            let srid = c.srid(1, x)?;
            system(srid)?;
            Ok(stored(srid, Point(Coord { x: cell.longitude.middle(), y: cell.latitude.middle() })))
        },
    ),
];

/// Error 3064: a geohash is a text.
fn is_text(t: &Typing<'_>, argument: usize, what: &str) -> Result<()> {
    match Class::of(&t.arguments[argument].ty) {
        Class::Text | Class::Null => Ok(()),
        _ => Err(errors::wrong_type(what, &t.name.to_ascii_lowercase())),
    }
}

fn number(t: Typing<'_>) -> Result<Derived> {
    is_text(&t, 0, "geohash")?;
    super::super::rules::double_or_null(t)
}

/// Degrees between which a coordinate lies.
#[derive(Clone, Copy)]
struct Interval {
    low: f64,
    high: f64,
}

impl Interval {
    fn halve(&mut self, upper: bool) {
        let middle = self.low + (self.high - self.low) / 2.0;
        *(if upper { &mut self.low } else { &mut self.high }) = middle;
    }

    /// The middle, rounded to as many digits as the width asks for.
    fn middle(&self) -> f64 {
        let width = self.high - self.low;
        let middle = self.low + width / 2.0;
        let (mut digits, mut rest) = (0, width);
        while rest > 0.0 && rest <= 0.1 && digits <= MAX_DIGITS {
            digits += 1;
            rest *= 10.0;
        }
        (digits..=MAX_DIGITS)
            .map(|digits| {
                let power = 10f64.powi(digits);
                (middle * power).round() / power
            })
            .find(|rounded| self.low <= *rounded && *rounded <= self.high)
            .map_or(middle, |rounded| if rounded == 0.0 { 0.0 } else { rounded })
    }
}

struct Cell {
    latitude: Interval,
    longitude: Interval,
}

impl Cell {
    const ALL: Cell =
        Cell { latitude: Interval { low: -90.0, high: 90.0 }, longitude: Interval { low: -180.0, high: 180.0 } };
}

/// Of a longitude, a latitude and a length, or of a point and a length. Errors: 1690, 1411, 3618 … of the point.
fn encode(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    let (at, length) = if c.has(2) {
        let longitude = c.f64(0, context)?;
        let latitude = c.f64(1, context)?;
        if !(-180.0..=180.0).contains(&longitude) {
            return Err(errors::out_of_range("longitude", "st_geohash"));
        }
        if !(-90.0..=90.0).contains(&latitude) {
            return Err(errors::out_of_range("latitude", "st_geohash"));
        }
        (Coord { x: longitude, y: latitude }, c.int(2, context)?)
    } else {
        let geometry = c.geometry(0)?;
        if geometry.srid != 0 && geometry.srid != 4326 {
            return Err(errors::wrong_value("SRID", &geometry.srid.to_string(), "st_geohash"));
        }
        let Shape::Point(point) = geometry.shape else {
            return Err(errors::unexpected_type("POINT", geometry.kind(), "st_geohash"));
        };
        if !(-180.0..=180.0).contains(&point.x()) {
            return Err(errors::out_of_range("longitude", "st_geohash"));
        }
        if !(-90.0..=90.0).contains(&point.y()) {
            return Err(errors::out_of_range("latitude", "st_geohash"));
        }
        (point.0, c.int(1, context)?)
    };
    if !(1..=MAX_LENGTH).contains(&length) {
        return Err(errors::out_of_range("max geohash length", "st_geohash"));
    }
    let mut cell = Cell::ALL;
    let mut hash = String::new();
    for letter in 0..length as usize {
        let mut index = 0;
        for bit in 0..5 {
            // Bits of the longitude and of the latitude take turns.
            let (interval, value) = match (letter * 5 + bit) % 2 {
                0 => (&mut cell.longitude, at.x),
                _ => (&mut cell.latitude, at.y),
            };
            let upper = value >= interval.low + (interval.high - interval.low) / 2.0;
            interval.halve(upper);
            index = index * 2 + usize::from(upper);
        }
        hash.push(char::from(ALPHABET[index]));
    }
    Ok(Value::Str(hash))
}

/// Error 1411.
fn decode(c: &Call<'_, '_>) -> Result<Cell> {
    let text = c.text(0);
    let wrong = || errors::wrong_value("geohash", &text, &c.lower_name());
    let mut cell = Cell::ALL;
    if text.is_empty() {
        return Err(wrong());
    }
    let mut bit = 0;
    for letter in text.bytes() {
        let lower = letter.to_ascii_lowercase();
        let index = ALPHABET.iter().position(|known| *known == lower).ok_or_else(wrong)?;
        for shift in (0..5).rev() {
            let interval = if bit % 2 == 0 { &mut cell.longitude } else { &mut cell.latitude };
            interval.halve(index >> shift & 1 == 1);
            bit += 1;
        }
    }
    Ok(cell)
}
