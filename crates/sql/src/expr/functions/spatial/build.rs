//! Geometries of their parts, in SRID 0: `Point(x, y)`, `LineString(point, …)` and so on; `ST_MakeEnvelope`.
//!
//! The parts are geometries in SRID 0 (others are wrong arguments, 1210), of the kind that the whole is made of.

use super::{Call, Function, errors, rules, stored};
use crate::expr::Context;
use crate::expr::convert::Result;
use geo::{Coord, GeometryCollection, LineString, MultiLineString, MultiPoint, MultiPolygon, Point, Polygon};
use rauk_types::Value;
use rauk_types::geometry::{Bounds, MAX_NESTING, Shape};

pub const FUNCTIONS: &[Function] = &[
    Function::new("POINT", 2, 2, rules::point, |c, x| {
        Ok(stored(0, Point(Coord { x: c.finite(0, "Point", x)?, y: c.finite(1, "Point", x)? })))
    }),
    Function::new("LINESTRING", 1, u8::MAX, rules::line, |c, _| {
        let points = parts(c, |shape| match shape {
            Shape::Point(point) => Some(point.0),
            _ => None,
        })?;
        if points.len() < 2 {
            return Err(errors::invalid("linestring"));
        }
        Ok(stored(0, LineString(points)))
    }),
    Function::new("POLYGON", 1, u8::MAX, rules::polygon, |c, _| {
        let mut rings = parts(c, |shape| match shape {
            Shape::LineString(line) => Some(line),
            _ => None,
        })?;
        if rings.iter().any(|ring| ring.0.len() < 4 || !ring.is_closed()) {
            return Err(errors::invalid("polygon"));
        }
        let exterior = rings.remove(0);
        Ok(stored(0, Polygon::new(exterior, rings)))
    }),
    Function::new("MULTIPOINT", 1, u8::MAX, rules::multi_point, |c, _| {
        let points = parts(c, |shape| match shape {
            Shape::Point(point) => Some(point),
            _ => None,
        })?;
        Ok(stored(0, MultiPoint(points)))
    }),
    Function::new("MULTILINESTRING", 1, u8::MAX, rules::multi_line, |c, _| {
        let lines = parts(c, |shape| match shape {
            Shape::LineString(line) => Some(line),
            _ => None,
        })?;
        Ok(stored(0, MultiLineString(lines)))
    }),
    Function::new("MULTIPOLYGON", 1, u8::MAX, rules::multi_polygon, |c, _| {
        let polygons = parts(c, |shape| match shape {
            Shape::Polygon(polygon) => Some(polygon),
            _ => None,
        })?;
        Ok(stored(0, MultiPolygon(polygons)))
    }),
    Function::new("GEOMETRYCOLLECTION", 0, u8::MAX, rules::collection, collection),
    Function::new("GEOMCOLLECTION", 0, u8::MAX, rules::collection, collection),
    Function::new("ST_MAKEENVELOPE", 2, 2, rules::any, envelope),
];

/// All arguments as parts. Errors: 3037, 1210.
fn parts<T>(c: &Call<'_, '_>, part: impl Fn(Shape) -> Option<T>) -> Result<Vec<T>> {
    let name = c.lower_name();
    (0..c.len())
        .map(|at| {
            let geometry = c.geometry(at)?;
            if geometry.srid != 0 {
                return Err(errors::wrong_arguments(&name));
            }
            part(geometry.shape).ok_or_else(|| errors::invalid(&name))
        })
        .collect()
}

fn collection(c: &Call<'_, '_>, _: &mut Context) -> Result<Value> {
    let parts = parts(c, Some)?;
    if parts.iter().any(|part| depth(part) >= MAX_NESTING) {
        return Err(errors::invalid(&c.lower_name()));
    }
    Ok(stored(0, Shape::GeometryCollection(GeometryCollection(parts))))
}

/// How deep collections are nested in a shape.
pub(super) fn depth(shape: &Shape) -> usize {
    match shape {
        Shape::GeometryCollection(parts) => 1 + parts.0.iter().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// The rectangle between two points: a segment or a point where it has no area. Errors: 1210, 3618.
fn envelope(c: &Call<'_, '_>, _: &mut Context) -> Result<Value> {
    let (first, second) = c.pair()?;
    let name = c.lower_name();
    let (Shape::Point(a), Shape::Point(b)) = (&first.shape, &second.shape) else {
        return Err(errors::wrong_arguments(&name));
    };
    if first.system.is_geographic() {
        return Err(errors::not_geographic_of(&name, &[first.kind(), second.kind()]));
    }
    let bounds = Bounds::of(&Shape::MultiPoint(MultiPoint(vec![*a, *b]))).expect("two points have bounds");
    Ok(first.with(bounds.to_shape()))
}
