//! `ST_Transform`: coordinates of one system in another.
//!
//! WGS 84, ETRS89 and NAD83 are taken for the same, as EPSG's null transformations do (they differ by less than two
//! metres); the web's Mercator projection is of WGS 84. SRID 0 is nowhere on the Earth (3741, 3742).

use super::{Call, Function, check_range, errors, rules, stored, system};
use crate::expr::Context;
use crate::expr::convert::Result;
use geo::Coord;
use rauk_types::geometry::{SystemKind, all_coords, mapped};
use rauk_types::{MysqlError, Value};
use std::f64::consts::{FRAC_PI_2, FRAC_PI_4};

pub const FUNCTIONS: &[Function] = &[Function::new("ST_TRANSFORM", 2, 2, rules::any, transform)];

/// ER_TRANSFORM_SOURCE_SRS_NOT_SUPPORTED.
const SOURCE_NOT_SUPPORTED: u16 = 3741;
/// ER_TRANSFORM_TARGET_SRS_NOT_SUPPORTED.
const TARGET_NOT_SUPPORTED: u16 = 3742;

/// The radius of the sphere of the web's Mercator projection.
const RADIUS: f64 = 6_378_137.0;

fn transform(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    let geometry = c.located(0)?;
    let target = system(c.srid(1, context)?)?;
    if geometry.system.srid == target.srid {
        return Ok(geometry.with(geometry.shape.clone()));
    }
    for (system, code, side) in [(geometry.system, SOURCE_NOT_SUPPORTED, "from"), (target, TARGET_NOT_SUPPORTED, "to")]
    {
        if system.kind == SystemKind::Plane {
            let message = format!("Transformation {side} SRID {} is not supported.", system.srid);
            return Err(MysqlError::new(code, message));
        }
    }
    let degrees = match geometry.system.kind {
        SystemKind::WebMercator => mapped(geometry.shape, &|c| Coord {
            x: (c.x / RADIUS).to_degrees(),
            y: (FRAC_PI_2 - 2.0 * (-c.y / RADIUS).exp().atan()).to_degrees(),
        }),
        _ => geometry.shape,
    };
    let shape = match target.kind {
        SystemKind::WebMercator => mapped(degrees, &|c| Coord {
            x: RADIUS * c.x.to_radians(),
            y: RADIUS * (FRAC_PI_4 + c.y.to_radians() / 2.0).tan().ln(),
        }),
        _ => degrees,
    };
    // The poles are infinitely far away, or nearly so.
    if !all_coords(&shape, &mut |c| c.x.is_finite() && c.y.is_finite()) {
        return Err(errors::out_of_range("Coordinate", "st_transform"));
    }
    check_range(&shape, target, |axis, value| errors::coordinate_out_of_range(axis, value, "st_transform"))?;
    Ok(stored(target.srid, shape))
}
