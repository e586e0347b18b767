//! How the rectangles around two geometries lie to each other: `MBRContains` and its family.
//!
//! In a geographic system the rectangle is that around geodesics, between two meridians and two parallels; one that
//! crosses the date line is not computed (3618). NULL where one is empty.

use super::geodesic::Earth;
use super::{Call, Function, Located, errors, rules, truth};
use crate::expr::convert::Result;
use rauk_types::Value;
use rauk_types::geometry::Bounds;

type Test = fn(&Bounds, &Bounds) -> bool;

const fn of(name: &'static str, eval: fn(&Call<'_, '_>, &mut crate::expr::Context) -> Result<Value>) -> Function {
    Function::new(name, 2, 2, rules::truth, eval)
}

pub const FUNCTIONS: &[Function] = &[
    of("MBRCONTAINS", |c, _| test(c, |a, b| a.contains(b))),
    of("MBRWITHIN", |c, _| test(c, |a, b| b.contains(a))),
    of("MBRCOVERS", |c, _| test(c, |a, b| a.covers(b))),
    of("MBRCOVEREDBY", |c, _| test(c, |a, b| b.covers(a))),
    of("MBRDISJOINT", |c, _| test(c, |a, b| !a.intersects(b))),
    of("MBREQUALS", |c, _| test(c, |a, b| a == b)),
    of("MBRINTERSECTS", |c, _| test(c, |a, b| a.intersects(b))),
    of("MBROVERLAPS", |c, _| test(c, |a, b| a.overlaps(b))),
    of("MBRTOUCHES", |c, _| test(c, |a, b| a.touches(b))),
];

fn test(c: &Call<'_, '_>, test: Test) -> Result<Value> {
    let (a, b) = c.pair()?;
    if a.is_empty() || b.is_empty() {
        return Ok(Value::Null);
    }
    let name = c.lower_name();
    let refused = || errors::not_geographic_of(&name, &[a.kind(), b.kind()]);
    let (first, second) = (bounds(&a).ok_or_else(refused)?, bounds(&b).ok_or_else(refused)?);
    Ok(truth(test(&first, &second)))
}

fn bounds(geometry: &Located) -> Option<Bounds> {
    match geometry.system.ellipsoid() {
        Some(ellipsoid) => Earth::new(ellipsoid).bounds(&geometry.shape),
        None => Bounds::of(&geometry.shape),
    }
}
