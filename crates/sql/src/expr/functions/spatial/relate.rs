//! How two geometries lie to each other: `ST_Contains` and its family.
//!
//! On a plane `geo` finds how insides, boundaries and outsides of both meet (DE-9IM). A collection is the set of all
//! its points: one of one dimension is looked at as a MULTI…, its areas united; areas that are not valid are refused
//! (3037) where it matters; what would have to tell inside and boundary of a mix of points, lines and areas apart is
//! refused (1235).
//!
//! In a geographic system it is computed whether shapes meet, and how points lie to other shapes; else error 3618.

use super::combine::bounded;
use super::geodesic::{Earth, Pieces, Position};
use super::validity::valid;
use super::whole::dimension;
use super::{Call, Function, Located, errors, heavy, rules, truth};
use crate::expr::Context;
use crate::expr::convert::Result;
use geo::relate::IntersectionMatrix;
use geo::{BooleanOps, Coord, Intersects, MultiLineString, MultiPoint, MultiPolygon, Point, Relate, unary_union};
use rauk_types::error::codes;
use rauk_types::geometry::Shape;
use rauk_types::{MysqlError, Value};

pub const FUNCTIONS: &[Function] = &[
    heavy("ST_CONTAINS", 2, 2, rules::truth, |c, x| {
        let (a, b) = both(c)?;
        within(c, x, &b, &a)
    }),
    heavy("ST_WITHIN", 2, 2, rules::truth, |c, x| {
        let (a, b) = both(c)?;
        within(c, x, &a, &b)
    }),
    heavy("ST_INTERSECTS", 2, 2, rules::truth, |c, x| Ok(meet(c, x)?.map_or(Value::Null, truth))),
    heavy("ST_DISJOINT", 2, 2, rules::truth, |c, x| Ok(meet(c, x)?.map_or(Value::Null, |meet| truth(!meet)))),
    heavy("ST_EQUALS", 2, 2, rules::truth, |c, x| {
        let (a, b) = both(c)?;
        // Nothing equals nothing, and nothing else.
        if a.is_empty() || b.is_empty() {
            return Ok(truth(a.is_empty() && b.is_empty()));
        }
        if a.system.is_geographic() {
            return on_earth(c, x, &a, &b, |inside, boundary, outside, rest| !rest && !outside && !boundary && inside);
        }
        by_matrix(c, x, &a, &b, IntersectionMatrix::is_equal_topo)
    }),
    heavy("ST_TOUCHES", 2, 2, rules::truth, |c, x| {
        let (a, b) = both(c)?;
        // Points have no boundary by which to touch.
        if dimension(&a.shape) == Some(0) && dimension(&b.shape) == Some(0) {
            return Ok(Value::Null);
        }
        if a.system.is_geographic() {
            return on_earth(c, x, &a, &b, |inside, boundary, _, _| boundary && !inside);
        }
        by_matrix(c, x, &a, &b, IntersectionMatrix::is_touches)
    }),
    heavy("ST_CROSSES", 2, 2, rules::truth, |c, x| {
        let (a, b) = both(c)?;
        if dimension(&a.shape) == Some(2) || dimension(&b.shape) == Some(0) {
            return Ok(Value::Null);
        }
        if a.system.is_geographic() {
            return on_earth(c, x, &a, &b, |inside, _, outside, _| inside && outside);
        }
        by_matrix(c, x, &a, &b, IntersectionMatrix::is_crosses)
    }),
    heavy("ST_OVERLAPS", 2, 2, rules::truth, |c, x| {
        let (a, b) = both(c)?;
        if dimension(&a.shape) != dimension(&b.shape) {
            return Ok(Value::Null);
        }
        if a.system.is_geographic() {
            return on_earth(c, x, &a, &b, |inside, _, outside, rest| inside && outside && rest);
        }
        by_matrix(c, x, &a, &b, IntersectionMatrix::is_overlaps)
    }),
];

/// Two geometries in one system, whose coordinates can be computed with. Errors: 3033, 1690.
fn both(c: &Call<'_, '_>) -> Result<(Located, Located)> {
    let (a, b) = c.pair()?;
    let name = c.lower_name();
    bounded(&a.shape, &name)?;
    bounded(&b.shape, &name)?;
    Ok((a, b))
}

/// Error 3037: what is inside of areas that are not valid is not known.
fn need_valid(a: &Located, b: &Located, function: &str) -> Result<()> {
    let is_valid = |shape: &Shape| dimension(shape) != Some(2) || valid(shape);
    if is_valid(&a.shape) && is_valid(&b.shape) { Ok(()) } else { Err(errors::invalid(function)) }
}

/// Whether they have a point in common; `None` where one is empty.
fn meet(c: &Call<'_, '_>, context: &mut Context) -> Result<Option<bool>> {
    let (a, b) = both(c)?;
    if a.is_empty() || b.is_empty() {
        return Ok(None);
    }
    Ok(Some(match a.system.ellipsoid() {
        Some(ellipsoid) => Earth::new(ellipsoid).meet(&Pieces::of(&a.shape), &Pieces::of(&b.shape), context)?,
        None => a.shape.intersects(&b.shape),
    }))
}

/// Whether all of `inner` lies in `outer`, and not only in its boundary.
fn within(c: &Call<'_, '_>, context: &mut Context, inner: &Located, outer: &Located) -> Result<Value> {
    if inner.is_empty() || outer.is_empty() {
        return Ok(Value::Null);
    }
    if inner.system.is_geographic() {
        return on_earth(c, context, inner, outer, |inside, _, outside, _| inside && !outside);
    }
    if let (Shape::Polygon(polygon), Shape::Point(point)) = (&outer.shape, &inner.shape) {
        return Ok(truth(geo::Contains::contains(polygon, point)));
    }
    context.budget.work(64 * (c.bytes(0).len() + c.bytes(1).len()))?;
    need_valid(inner, outer, &c.lower_name())?;
    if let (Some(a), Some(b)) = (uniform(&inner.shape), uniform(&outer.shape)) {
        return Ok(truth(a.relate(&b).is_within()));
    }
    // Of a mix: each part lies in what of the other has its dimension or a larger one, and the inside of one meets an
    // inside.
    let (parts, whole) = (Pieces::of(&inner.shape), Pieces::of(&outer.shape));
    let areas = unary_union(&whole.polygons);
    let lines = MultiLineString(whole.lines);
    let (mut inside, mut covered) = (false, true);
    for polygon in &parts.polygons {
        let matrix = Shape::from(polygon.clone()).relate(&Shape::from(areas.clone()));
        covered &= matrix.is_coveredby();
        inside = true;
    }
    for line in &parts.lines {
        let rest = areas.clip(&MultiLineString(vec![line.clone()]), true);
        let on_lines = rest.0.is_empty()
            || !lines.0.is_empty() && Shape::from(rest.clone()).relate(&Shape::from(lines.clone())).is_coveredby();
        covered &= on_lines;
        let matrix = Shape::from(line.clone()).relate(&Shape::from(areas.clone()));
        inside |= !rest.0.is_empty() || matrix.matches("T********").unwrap_or(false);
    }
    for point in &parts.points {
        let on = areas.intersects(point) || lines.intersects(point) || whole.points.contains(point);
        covered &= on;
        let matrix = |shape: Shape| Shape::Point(Point(*point)).relate(&shape).is_within();
        inside |= whole.points.contains(point)
            || !areas.0.is_empty() && matrix(Shape::from(areas.clone()))
            || !lines.0.is_empty() && matrix(Shape::from(lines.clone()));
    }
    Ok(truth(covered && inside))
}

/// A shape without collections, where all of it has one dimension.
fn uniform(shape: &Shape) -> Option<Shape> {
    let Shape::GeometryCollection(_) = shape else { return Some(shape.clone()) };
    let pieces = Pieces::of(shape);
    match (pieces.points.is_empty(), pieces.lines.is_empty(), pieces.polygons.is_empty()) {
        (false, true, true) => Some(Shape::MultiPoint(MultiPoint(pieces.points.into_iter().map(Point).collect()))),
        (true, false, true) => Some(Shape::MultiLineString(MultiLineString(pieces.lines))),
        (true, true, false) => Some(Shape::MultiPolygon(match pieces.polygons.len() {
            1 => MultiPolygon(pieces.polygons),
            _ => unary_union(&pieces.polygons),
        })),
        _ => None,
    }
}

type Matrix = fn(&IntersectionMatrix) -> bool;

fn by_matrix(c: &Call<'_, '_>, context: &mut Context, a: &Located, b: &Located, test: Matrix) -> Result<Value> {
    if a.is_empty() || b.is_empty() {
        return Ok(Value::Null);
    }
    context.budget.work(64 * (c.bytes(0).len() + c.bytes(1).len()))?;
    need_valid(a, b, &c.lower_name())?;
    let (Some(first), Some(second)) = (uniform(&a.shape), uniform(&b.shape)) else {
        let what = format!("{} of a GEOMETRYCOLLECTION of points, lines and polygons", c.lower_name());
        return Err(MysqlError::new(
            codes::NOT_SUPPORTED_YET,
            format!("This version of MySQL doesn't yet support '{what}'"),
        ));
    };
    Ok(truth(test(&first.relate(&second))))
}

/// A relation of points to a shape on an ellipsoid: decided by whether some lie inside, in the boundary, outside, and
/// whether the shape has more than these points. Where the second are points and the first are not, they change sides.
/// Error 3618 where neither are points.
fn on_earth(
    c: &Call<'_, '_>,
    context: &mut Context,
    a: &Located,
    b: &Located,
    test: fn(bool, bool, bool, bool) -> bool,
) -> Result<Value> {
    if a.is_empty() || b.is_empty() {
        return Ok(Value::Null);
    }
    let name = c.lower_name();
    let refused = || {
        let kinds = if name == "st_contains" { [b.kind(), a.kind()] } else { [a.kind(), b.kind()] };
        errors::not_geographic_of(&name, &kinds)
    };
    let ellipsoid = a.system.ellipsoid().ok_or_else(refused)?;
    let earth = Earth::new(ellipsoid);
    let (first, second) = (Pieces::of(&a.shape), Pieces::of(&b.shape));
    let only_points = |pieces: &Pieces| pieces.lines.is_empty() && pieces.polygons.is_empty();
    let symmetric = name == "st_touches" || name == "st_equals";
    let (points, shape) = match (only_points(&first), only_points(&second)) {
        (true, _) => (&first, &second),
        (false, true) if symmetric => (&second, &first),
        // A line or an area has more than some points.
        (false, true) if name == "st_within" || name == "st_contains" => return Ok(truth(false)),
        _ => return Err(refused()),
    };
    let (mut inside, mut boundary, mut outside) = (false, false, false);
    for point in &points.points {
        match earth.position(*point, shape, context)? {
            Position::Inside => inside = true,
            Position::Boundary => boundary = true,
            Position::Outside => outside = true,
        }
    }
    let more = |c: &Coord| earth.is_none_of(*c, &points.points);
    let rest = !only_points(shape) || shape.points.iter().any(more);
    Ok(truth(test(inside, boundary, outside, rest)))
}
