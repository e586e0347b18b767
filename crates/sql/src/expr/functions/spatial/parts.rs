//! What points, lines, polygons and collections have: coordinates, points, rings, members.
//!
//! A coordinate is that of an axis of the system: `ST_X` of a point in 4326 is its latitude. With a second argument it
//! is changed. Numbers of points, rings and members begin with 1; one that is not there is NULL.

use super::{Axis, Call, Derived, Function, Located, check_range, errors, rules, truth};
use crate::expr::Context;
use crate::expr::convert::Result;
use geo::{LineString, Point, Polygon};
use rauk_types::geometry::Shape;
use rauk_types::{DataType, Value};

const INTEGER: fn(super::Typing<'_>) -> Result<Derived> = |_| Ok(Derived::new(DataType::BIGINT).nullable());

pub const FUNCTIONS: &[Function] = &[
    Function::new("ST_X", 1, 2, rules::number_or_point, |c, x| coordinate(c, x, Place::First)),
    Function::new("ST_Y", 1, 2, rules::number_or_point, |c, x| coordinate(c, x, Place::Second)),
    Function::new("ST_LATITUDE", 1, 2, rules::number_or_point, |c, x| coordinate(c, x, Place::Named(Axis::Latitude))),
    Function::new("ST_LONGITUDE", 1, 2, rules::number_or_point, |c, x| coordinate(c, x, Place::Named(Axis::Longitude))),
    Function::new("ST_STARTPOINT", 1, 1, rules::point, |c, _| point(c, |line| line.0.first().copied())),
    Function::new("ST_ENDPOINT", 1, 1, rules::point, |c, _| point(c, |line| line.0.last().copied())),
    Function::new("ST_POINTN", 2, 2, rules::point, |c, x| {
        let number = c.int(1, x)?;
        point(c, |line| at(&line.0, number).copied())
    }),
    Function::new("ST_NUMPOINTS", 1, 1, INTEGER, |c, _| {
        let geometry = c.located(0)?;
        Ok(line(&geometry).map_or(Value::Null, |line| Value::Int(line.0.len() as i64)))
    }),
    Function::new("ST_ISCLOSED", 1, 1, rules::truth, |c, _| {
        let geometry = c.located(0)?;
        Ok(match &geometry.shape {
            Shape::LineString(line) => truth(line.is_closed()),
            Shape::MultiLineString(lines) => truth(lines.0.iter().all(LineString::is_closed)),
            _ => Value::Null,
        })
    }),
    Function::new("ST_EXTERIORRING", 1, 1, rules::line, |c, _| {
        let geometry = c.located(0)?;
        Ok(polygon(&geometry).map_or(Value::Null, |polygon| geometry.with(polygon.exterior().clone())))
    }),
    Function::new("ST_INTERIORRINGN", 2, 2, rules::line, |c, x| {
        let geometry = c.located(0)?;
        let number = c.int(1, x)?;
        let ring = polygon(&geometry).and_then(|polygon| at(polygon.interiors(), number));
        Ok(ring.map_or(Value::Null, |ring| geometry.with(ring.clone())))
    }),
    Function::new("ST_NUMINTERIORRING", 1, 1, INTEGER, rings),
    Function::new("ST_NUMINTERIORRINGS", 1, 1, INTEGER, rings),
    Function::new("ST_NUMGEOMETRIES", 1, 1, INTEGER, |c, _| {
        Ok(members(&c.located(0)?.shape).map_or(Value::Null, |count| Value::Int(count as i64)))
    }),
    Function::new("ST_GEOMETRYN", 2, 2, rules::any, |c, x| {
        let geometry = c.located(0)?;
        let number = c.int(1, x)?;
        let found = match &geometry.shape {
            Shape::MultiPoint(points) => at(&points.0, number).map(|point| Shape::Point(*point)),
            Shape::MultiLineString(lines) => at(&lines.0, number).cloned().map(Shape::LineString),
            Shape::MultiPolygon(polygons) => at(&polygons.0, number).cloned().map(Shape::Polygon),
            Shape::GeometryCollection(parts) => at(&parts.0, number).cloned(),
            _ => None,
        };
        Ok(found.map_or(Value::Null, |shape| geometry.with(shape)))
    }),
];

/// The item with this number, from 1 on.
fn at<T>(items: &[T], number: i64) -> Option<&T> {
    usize::try_from(number).ok()?.checked_sub(1).and_then(|place| items.get(place))
}

fn line(geometry: &Located) -> Option<&LineString> {
    match &geometry.shape {
        Shape::LineString(line) => Some(line),
        _ => None,
    }
}

fn polygon(geometry: &Located) -> Option<&Polygon> {
    match &geometry.shape {
        Shape::Polygon(polygon) => Some(polygon),
        _ => None,
    }
}

/// How many members a collection has.
fn members(shape: &Shape) -> Option<usize> {
    match shape {
        Shape::MultiPoint(points) => Some(points.0.len()),
        Shape::MultiLineString(lines) => Some(lines.0.len()),
        Shape::MultiPolygon(polygons) => Some(polygons.0.len()),
        Shape::GeometryCollection(parts) => Some(parts.0.len()),
        _ => None,
    }
}

fn point(c: &Call<'_, '_>, of: impl Fn(&LineString) -> Option<geo::Coord>) -> Result<Value> {
    let geometry = c.located(0)?;
    Ok(line(&geometry).and_then(of).map_or(Value::Null, |coord| geometry.with(Point(coord))))
}

fn rings(c: &Call<'_, '_>, _: &mut Context) -> Result<Value> {
    let geometry = c.located(0)?;
    Ok(polygon(&geometry).map_or(Value::Null, |polygon| Value::Int(polygon.interiors().len() as i64)))
}

/// Which coordinate of a point.
enum Place {
    /// Of the first axis of its system.
    First,
    Second,
    /// Of a geographic system.
    Named(Axis),
}

/// A coordinate of a point, or the point with it changed. Errors: 3516, 3726, 1690, 3616, 3617.
fn coordinate(c: &Call<'_, '_>, context: &mut Context, place: Place) -> Result<Value> {
    let name = c.lower_name();
    let geometry = c.located(0)?;
    let Shape::Point(point) = geometry.shape else {
        return Err(errors::unexpected_type("POINT", geometry.kind(), &name));
    };
    let geographic = geometry.system.is_geographic();
    let is_y = match place {
        // Latitude, the first axis of a geographic system, is stored second.
        Place::First => geographic,
        Place::Second => !geographic,
        Place::Named(_) if !geographic => return Err(errors::only_geographic(&name, geometry.system.srid)),
        Place::Named(axis) => axis == Axis::Latitude,
    };
    if !c.has(1) {
        return Ok(Value::Double(if is_y { point.y() } else { point.x() }));
    }
    let what = match place {
        Place::Named(Axis::Latitude) => "Latitude",
        Place::Named(Axis::Longitude) => "Longitude",
        Place::First => "X coordinate",
        Place::Second => "Y coordinate",
    };
    let number = c.finite(1, what, context)?;
    let mut changed = point;
    *(if is_y { &mut changed.0.y } else { &mut changed.0.x }) = number;
    let shape = Shape::Point(changed);
    check_range(&shape, geometry.system, |axis, value| errors::coordinate_out_of_range(axis, value, &name))?;
    Ok(geometry.with(shape))
}

/// The line that a function wants. Error 3516.
pub(super) fn only_line<'a>(geometry: &'a Located, function: &str) -> Result<&'a LineString> {
    line(geometry).ok_or_else(|| errors::unexpected_type("LINESTRING", geometry.kind(), function))
}
