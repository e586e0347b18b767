//! Areas, lengths, distances.
//!
//! A third argument of `ST_Distance` (and the second of `ST_Length`) is a unit of length (3902), which a system without
//! a unit has not (3882). The distances of Hausdorff and Fréchet are the discrete ones, between the points of lines.

use super::combine::bounded;
use super::geodesic::{Earth, Pieces};
use super::{Call, Function, Located, errors, heavy};
use crate::expr::Context;
use crate::expr::convert::Result;
use geo::{Area, Coord, Distance, Euclidean, Length, LineString};
use rauk_types::error::codes;
use rauk_types::geometry::reference::{self, Ellipsoid};
use rauk_types::geometry::{GeometryKind, Shape, SystemKind};
use rauk_types::{MysqlError, Value};

const DOUBLE: fn(super::Typing<'_>) -> Result<super::Derived> = super::super::rules::double_or_null;

pub const FUNCTIONS: &[Function] = &[
    Function::new("ST_AREA", 1, 1, DOUBLE, area),
    Function::new("ST_LENGTH", 1, 2, DOUBLE, length),
    heavy("ST_DISTANCE", 2, 3, DOUBLE, distance),
    heavy("ST_DISTANCE_SPHERE", 2, 3, DOUBLE, distance_sphere),
    heavy("ST_HAUSDORFFDISTANCE", 2, 3, DOUBLE, |c, x| discrete(c, x, hausdorff)),
    heavy("ST_FRECHETDISTANCE", 2, 3, DOUBLE, |c, x| discrete(c, x, frechet)),
];

/// The radius of the sphere in SRID 0, in metres.
const SPHERE_RADIUS: f64 = 6_370_986.0;

/// Error 1690: MySQL names what it computed.
fn finite(value: f64, what: &str, function: &str) -> Result<Value> {
    if value.is_finite() { Ok(Value::Double(value)) } else { Err(errors::out_of_range(what, function)) }
}

fn area(c: &Call<'_, '_>, _: &mut Context) -> Result<Value> {
    let geometry = c.located(0)?;
    let polygons = match &geometry.shape {
        Shape::Polygon(polygon) => std::slice::from_ref(polygon),
        Shape::MultiPolygon(polygons) => &polygons.0,
        _ => return Err(errors::unexpected_type("POLYGON/MULTIPOLYGON", geometry.kind(), "st_area")),
    };
    let area = match geometry.system.ellipsoid() {
        Some(ellipsoid) => {
            let earth = Earth::new(ellipsoid);
            polygons.iter().map(|polygon| earth.area(polygon)).sum()
        }
        // Each polygon by itself: their rings may run either way.
        None => polygons.iter().map(Area::unsigned_area).sum(),
    };
    finite(area, "Area", "st_area")
}

/// A length in the unit that an argument names. Errors: 3882, 3902.
fn in_unit(c: &Call<'_, '_>, argument: usize, geometry: &Located, metres: f64) -> Result<f64> {
    if !c.has(argument) {
        return Ok(metres);
    }
    let name = c.text(argument);
    if !geometry.system.has_unit() {
        let message = format!(
            "The geometry passed to function {} is in SRID 0, which doesn't specify a length unit. Can't convert to '{name}'.",
            c.lower_name()
        );
        return Err(MysqlError::new(codes::GEOMETRY_IN_UNKNOWN_LENGTH_UNIT, message));
    }
    let unit = reference::unit(&name)
        .ok_or_else(|| MysqlError::new(codes::UNIT_NOT_FOUND, format!("There's no unit of measure named '{name}'.")))?;
    Ok(metres / unit)
}

/// NULL of what is no line.
fn length(c: &Call<'_, '_>, _: &mut Context) -> Result<Value> {
    let geometry = c.located(0)?;
    let lines = match &geometry.shape {
        Shape::LineString(line) => std::slice::from_ref(line),
        Shape::MultiLineString(lines) => &lines.0,
        _ => return Ok(Value::Null),
    };
    let length = lines.iter().map(|line| of_line(line, &geometry)).sum();
    finite(in_unit(c, 1, &geometry, length)?, "Length", "st_length")
}

/// The length of a line, in metres or as the plane has it.
pub(super) fn of_line(line: &LineString, geometry: &Located) -> f64 {
    match geometry.system.ellipsoid() {
        Some(ellipsoid) => Earth::new(ellipsoid).length(line),
        None => Euclidean.length(line),
    }
}

/// NULL where one is empty.
fn distance(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    let (a, b) = c.pair()?;
    if a.is_empty() || b.is_empty() {
        return Ok(Value::Null);
    }
    bounded(&a.shape, "st_distance")?;
    bounded(&b.shape, "st_distance")?;
    let apart = match a.system.ellipsoid() {
        Some(ellipsoid) => Earth::new(ellipsoid).apart(&Pieces::of(&a.shape), &Pieces::of(&b.shape), context)?,
        None => Euclidean.distance(&a.shape, &b.shape),
    };
    finite(in_unit(c, 2, &a, apart)?, "Distance", "st_distance")
}

fn points(shape: &Shape) -> Option<Vec<Coord>> {
    match shape {
        Shape::Point(point) => Some(vec![point.0]),
        Shape::MultiPoint(points) => Some(points.0.iter().map(|point| point.0).collect()),
        _ => None,
    }
}

fn kinds(a: &Located, b: &Located) -> String {
    let name = |kind: GeometryKind| kind.type_name().to_ascii_uppercase();
    format!("{}, {}", name(a.kind()), name(b.kind()))
}

/// On a sphere: of points. Errors: 3618, 3704, 3705, 3706, 3731, 3732.
fn distance_sphere(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    const NAME: &str = "st_distance_sphere";
    let (a, b) = c.pair()?;
    let radius = match a.system.kind {
        SystemKind::Plane => SPHERE_RADIUS,
        SystemKind::Geographic(ellipsoid) => ellipsoid.mean_radius(),
        SystemKind::WebMercator => return Err(errors::not_projected(NAME, &kinds(&a, &b))),
    };
    if a.is_empty() || b.is_empty() {
        return Ok(Value::Null);
    }
    let (Some(from), Some(to)) = (points(&a.shape), points(&b.shape)) else {
        return Err(match a.system.kind {
            SystemKind::Plane => errors::not_cartesian(NAME, &kinds(&a, &b)),
            _ => errors::not_geographic(NAME, &kinds(&a, &b)),
        });
    };
    // In SRID 0 coordinates are degrees here too.
    let degrees = reference::ReferenceSystem::find(4326).expect("it is there");
    for shape in [&a.shape, &b.shape] {
        super::check_range(shape, degrees, |axis, value| errors::parameter_out_of_range(axis, value, NAME))?;
    }
    let radius = if c.has(2) { c.f64(2, context)? } else { radius };
    if radius.is_nan() || radius <= 0.0 {
        let message = format!("Invalid radius provided to function {NAME}: Radius must be greater than zero.");
        return Err(MysqlError::new(codes::NONPOSITIVE_RADIUS, message));
    }
    let mut least = f64::INFINITY;
    for a in &from {
        context.budget.work(64 * to.len())?;
        for b in &to {
            least = least.min(haversine(*a, *b));
        }
    }
    finite(least * radius, "Distance", NAME)
}

/// The angle between two points of a sphere.
fn haversine(a: Coord, b: Coord) -> f64 {
    let half = |v: f64| (v.to_radians() / 2.0).sin().powi(2);
    let h = half(b.y - a.y) + a.y.to_radians().cos() * b.y.to_radians().cos() * half(b.x - a.x);
    2.0 * h.sqrt().min(1.0).asin()
}

/// How two points are apart: on a plane or on an ellipsoid.
enum Metric {
    Plane,
    Ellipsoid(Box<Earth>),
}

impl Metric {
    fn of(ellipsoid: Option<Ellipsoid>) -> Metric {
        ellipsoid.map_or(Metric::Plane, |ellipsoid| Metric::Ellipsoid(Box::new(Earth::new(ellipsoid))))
    }

    fn distance(&self, a: Coord, b: Coord) -> f64 {
        match self {
            Metric::Plane => (a.x - b.x).hypot(a.y - b.y),
            Metric::Ellipsoid(earth) => earth.distance(a, b),
        }
    }

    /// Bytes of work of a distance.
    fn work(&self) -> usize {
        match self {
            Metric::Plane => 16,
            Metric::Ellipsoid(_) => 2048,
        }
    }
}

type Measured = fn(&[Vec<Coord>], &[Vec<Coord>], &Metric, &mut Context) -> Result<f64>;

/// A distance between the points of lines, or of sets of points. Errors: 3618, 3704 for other kinds.
fn discrete(c: &Call<'_, '_>, context: &mut Context, measure: Measured) -> Result<Value> {
    let name = c.lower_name();
    let (a, b) = c.pair()?;
    if a.is_empty() || b.is_empty() {
        return Ok(Value::Null);
    }
    let lines = |shape: &Shape| match shape {
        Shape::LineString(line) => Some(vec![line.0.clone()]),
        Shape::MultiLineString(lines) => Some(lines.0.iter().map(|line| line.0.clone()).collect()),
        shape => points(shape).map(|points| vec![points]),
    };
    let is_line = |kind| kind == GeometryKind::LineString;
    let is_points = |kind| matches!(kind, GeometryKind::Point | GeometryKind::MultiPoint);
    let is_lines = |kind| matches!(kind, GeometryKind::LineString | GeometryKind::MultiLineString);
    let frechet = name == "st_frechetdistance";
    let (ka, kb) = (a.kind(), b.kind());
    let allowed = if frechet {
        is_line(ka) && is_line(kb)
    } else {
        is_lines(ka) && is_lines(kb)
            || is_points(ka) && is_points(kb) && (ka, kb) != (GeometryKind::Point, GeometryKind::Point)
    };
    let (Some(from), Some(to)) = (lines(&a.shape).filter(|_| allowed), lines(&b.shape)) else {
        return Err(match a.system.is_geographic() {
            true => errors::not_geographic(&name, &kinds(&a, &b)),
            false => errors::not_cartesian(&name, &kinds(&a, &b)),
        });
    };
    let metric = Metric::of(a.system.ellipsoid());
    let distance = measure(&from, &to, &metric, context)?;
    finite(in_unit(c, 2, &a, distance)?, "Distance", &name)
}

/// The largest distance of a point of the first from the nearest point of the second; not the other way round, as in
/// MySQL.
fn hausdorff(a: &[Vec<Coord>], b: &[Vec<Coord>], metric: &Metric, context: &mut Context) -> Result<f64> {
    let mut largest = 0f64;
    let count: usize = b.iter().map(Vec::len).sum();
    for point in a.iter().flatten() {
        context.budget.work(count * metric.work())?;
        let nearest = b.iter().flatten().map(|other| metric.distance(*point, *other)).fold(f64::INFINITY, f64::min);
        largest = largest.max(nearest);
    }
    Ok(largest)
}

/// The shortest leash with which two walk along the lines, from point to point, and none goes back.
fn frechet(a: &[Vec<Coord>], b: &[Vec<Coord>], metric: &Metric, context: &mut Context) -> Result<f64> {
    let (a, b) = (&a[0], &b[0]);
    let mut before: Vec<f64> = Vec::new();
    for (i, from) in a.iter().enumerate() {
        context.budget.work(b.len() * metric.work())?;
        let mut row: Vec<f64> = Vec::with_capacity(b.len());
        for (j, to) in b.iter().enumerate() {
            let distance = metric.distance(*from, *to);
            let reached = match (i, j) {
                (0, 0) => distance,
                (0, _) => row[j - 1],
                (_, 0) => before[0],
                _ => row[j - 1].min(before[j]).min(before[j - 1]),
            };
            row.push(distance.max(reached));
        }
        before = row;
    }
    Ok(before.last().copied().unwrap_or(0.0))
}
