//! Points along lines, and lines with fewer points.

use super::geodesic::Earth;
use super::{Call, Function, Located, errors, heavy, nothing, parts, rules};
use crate::expr::Context;
use crate::expr::convert::Result;
use geo::{Coord, LineString, MultiPoint, Point, Polygon};
use rauk_types::Value;
use rauk_types::geometry::Shape;

pub const FUNCTIONS: &[Function] = &[
    Function::new("ST_LINEINTERPOLATEPOINT", 2, 2, rules::point, |c, x| {
        let geometry = c.located(0)?;
        let fraction = fraction(c, x)?;
        let line = parts::only_line(&geometry, "st_lineinterpolatepoint")?;
        let walk = Walk::new(line, &geometry)?;
        Ok(geometry.with(Point(walk.at(walk.total * fraction))))
    }),
    heavy("ST_LINEINTERPOLATEPOINTS", 2, 2, rules::any, points),
    Function::new("ST_POINTATDISTANCE", 2, 2, rules::point, |c, x| {
        let geometry = c.located(0)?;
        let distance = c.f64(1, x)?;
        let line = parts::only_line(&geometry, "st_pointatdistance")?;
        let walk = Walk::new(line, &geometry)?;
        if !(0.0..=walk.total).contains(&distance) {
            return Err(errors::out_of_range("Distance", "st_pointatdistance"));
        }
        Ok(geometry.with(Point(walk.at(distance))))
    }),
    heavy("ST_SIMPLIFY", 2, 2, rules::any, simplify),
];

/// A part of a line: 0 to 1. Error 1690.
fn fraction(c: &Call<'_, '_>, context: &mut Context) -> Result<f64> {
    let fraction = c.f64(1, context)?;
    if (0.0..=1.0).contains(&fraction) { Ok(fraction) } else { Err(errors::out_of_range("Fraction", &c.lower_name())) }
}

/// A line with the distances of its points from its beginning.
struct Walk<'a> {
    line: &'a LineString,
    reached: Vec<f64>,
    total: f64,
    earth: Option<Earth>,
}

impl Walk<'_> {
    /// Error 1690 where the line is longer than a number says.
    fn new<'a>(line: &'a LineString, geometry: &Located) -> Result<Walk<'a>> {
        let earth = geometry.system.ellipsoid().map(Earth::new);
        let mut total = 0.0;
        let mut reached = vec![0.0];
        for pair in line.0.windows(2) {
            total += match &earth {
                Some(earth) => earth.distance(pair[0], pair[1]),
                None => (pair[1].x - pair[0].x).hypot(pair[1].y - pair[0].y),
            };
            reached.push(total);
        }
        if !total.is_finite() {
            return Err(errors::out_of_range("Length", "st_length"));
        }
        Ok(Walk { line, reached, total, earth })
    }

    /// The point at a distance from the beginning.
    fn at(&self, distance: f64) -> Coord {
        let next = self.reached.partition_point(|reached| *reached < distance);
        if next == 0 {
            return self.line.0[0];
        }
        if next >= self.reached.len() {
            return self.line.0[self.line.0.len() - 1];
        }
        let (from, to) = (self.line.0[next - 1], self.line.0[next]);
        let rest = distance - self.reached[next - 1];
        if let Some(earth) = &self.earth {
            return earth.along(from, to, rest);
        }
        let part = rest / (self.reached[next] - self.reached[next - 1]);
        if part >= 1.0 {
            return to;
        }
        Coord { x: from.x + (to.x - from.x) * part, y: from.y + (to.y - from.y) * part }
    }
}

/// Points at equal distances: one where there is room for one.
fn points(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    let geometry = c.located(0)?;
    let fraction = fraction(c, context)?;
    let line = parts::only_line(&geometry, "st_lineinterpolatepoints")?;
    let walk = Walk::new(line, &geometry)?;
    if fraction == 0.0 {
        return Ok(geometry.with(MultiPoint(vec![Point(walk.at(0.0))])));
    }
    // A step that is a fraction like 0.1 reaches the end, though its tenfold is a little less than 1.
    let count = (1.0 / fraction + 1e-9).floor();
    // Each point takes 21 bytes.
    if count * 21.0 > usize::MAX as f64 / 2.0 || !c.fits(count as usize * 21, context) {
        return Ok(Value::Null);
    }
    let count = count as usize;
    context.budget.work(count * 64)?;
    let mut points = Vec::with_capacity(count);
    for step in 1..=count {
        points.push(Point(walk.at((walk.total * fraction * step as f64).min(walk.total))));
    }
    Ok(geometry.with(MultiPoint(points)))
}

/// By Douglas and Peucker: points that lie nearer than a distance to the line without them go. NULL where nothing is
/// left. Errors: 1210, 3618.
fn simplify(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    let geometry = c.located(0)?;
    let distance = c.f64(1, context)?;
    if distance <= 0.0 || !distance.is_finite() {
        return Err(errors::wrong_arguments("st_simplify"));
    }
    if geometry.system.is_geographic() {
        return Err(errors::not_geographic_of("st_simplify", &[geometry.kind()]));
    }
    let simple = simplified(&geometry.shape, distance, context)?;
    Ok(simple.map_or(Value::Null, |shape| geometry.with(shape)))
}

fn simplified(shape: &Shape, distance: f64, context: &mut Context) -> Result<Option<Shape>> {
    Ok(match shape {
        Shape::LineString(line) => Some(Shape::LineString(fewer(line, distance, context)?)),
        Shape::Polygon(polygon) => of_polygon(polygon, distance, context)?.map(Shape::Polygon),
        Shape::MultiLineString(lines) => {
            let lines = lines.0.iter().map(|line| fewer(line, distance, context)).collect::<Result<_>>()?;
            Some(Shape::MultiLineString(geo::MultiLineString(lines)))
        }
        Shape::MultiPolygon(polygons) => {
            let mut kept = Vec::new();
            for polygon in &polygons.0 {
                kept.extend(of_polygon(polygon, distance, context)?);
            }
            (!kept.is_empty()).then_some(Shape::MultiPolygon(geo::MultiPolygon(kept)))
        }
        Shape::GeometryCollection(parts) if parts.0.is_empty() => Some(nothing()),
        Shape::GeometryCollection(parts) => {
            let mut kept = Vec::new();
            for part in &parts.0 {
                kept.extend(simplified(part, distance, context)?);
            }
            (!kept.is_empty()).then_some(Shape::GeometryCollection(geo::GeometryCollection(kept)))
        }
        other => Some(other.clone()),
    })
}

/// `None`: its outer ring collapses.
fn of_polygon(polygon: &Polygon, distance: f64, context: &mut Context) -> Result<Option<Polygon>> {
    let exterior = fewer(polygon.exterior(), distance, context)?;
    if exterior.0.len() < 4 {
        return Ok(None);
    }
    let mut interiors = Vec::new();
    for ring in polygon.interiors() {
        let ring = fewer(ring, distance, context)?;
        if ring.0.len() >= 4 {
            interiors.push(ring);
        }
    }
    Ok(Some(Polygon::new(exterior, interiors)))
}

/// Pieces that wait stand in a list, so that a long line needs no deep stack.
fn fewer(line: &LineString, distance: f64, context: &mut Context) -> Result<LineString> {
    let points = &line.0;
    let mut kept = vec![false; points.len()];
    kept[0] = true;
    kept[points.len() - 1] = true;
    let mut waiting = vec![(0, points.len() - 1)];
    while let Some((from, to)) = waiting.pop() {
        context.budget.work((to - from) * 32)?;
        // Of points that are equally far the first goes, as in MySQL.
        let mut largest = (distance * distance, None);
        for at in from + 1..to {
            let squared = to_segment(points[at], points[from], points[to]);
            if squared > largest.0 {
                largest = (squared, Some(at));
            }
        }
        if let Some(at) = largest.1 {
            kept[at] = true;
            waiting.extend([(from, at), (at, to)]);
        }
    }
    Ok(LineString(points.iter().zip(kept).filter(|(_, kept)| *kept).map(|(point, _)| *point).collect()))
}

/// The square of the distance of a point from a segment.
fn to_segment(point: Coord, from: Coord, to: Coord) -> f64 {
    let (dx, dy) = (to.x - from.x, to.y - from.y);
    let along = (point.x - from.x) * dx + (point.y - from.y) * dy;
    let length = dx * dx + dy * dy;
    let foot = if along <= 0.0 || length == 0.0 {
        from
    } else if length <= along {
        to
    } else {
        let part = along / length;
        Coord { x: from.x + dx * part, y: from.y + dy * part }
    };
    (point.x - foot.x).powi(2) + (point.y - foot.y).powi(2)
}
