//! Computations on an ellipsoid, with geodesics: the shortest lines between points.
//!
//! Distances, azimuths and points along a geodesic are Karney's (`geographiclib-rs`), exact to some nanometres. The
//! rest follows from them:
//!
//! * The distance of a point from a geodesic: the foot is where the direction to the point is at right angles, which is sought between the ends.
//! * A point lies inside a ring when the directions from it to the ring's points, one after the other, turn once all the way round, as the ring runs.
//! * Two geodesics cross when the ends of each lie on different sides of the other. This holds of edges shorter than a quarter of the Earth;
//!   what is farther apart than both are long cannot cross.
//! * The highest latitude of an edge is at one of its ends, or where it runs east or west (Clairaut).
//!
//! Points nearer than a micrometre to an edge lie on it. Coordinates are degrees, `x` the longitude.

use crate::expr::Context;
use crate::expr::convert::Result;
use geo::{Coord, LineString, Polygon};
use geographiclib_rs::{DirectGeodesic, Geodesic, InverseGeodesic, PolygonArea, Winding};
use rauk_types::geometry::reference::Ellipsoid;
use rauk_types::geometry::{Bounds, Shape, plain};

/// Metres within which a point lies on an edge.
const ON_EDGE: f64 = 1e-6;
/// Work of one inverse computation, as bytes that are read.
const WORK: usize = 2048;

pub struct Earth {
    geodesic: Geodesic,
    ellipsoid: Ellipsoid,
}

/// The geodesic from one point to another.
#[derive(Clone, Copy)]
struct Course {
    metres: f64,
    /// Directions at the first and at the last point, clockwise from north.
    start: f64,
    end: f64,
}

/// How a point lies to a shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    Inside,
    Boundary,
    Outside,
}

/// A shape, taken apart.
#[derive(Default)]
pub struct Pieces {
    pub points: Vec<Coord>,
    pub lines: Vec<LineString>,
    pub polygons: Vec<Polygon>,
}

impl Pieces {
    pub fn of(shape: &Shape) -> Pieces {
        let mut pieces = Pieces::default();
        pieces.add(shape);
        pieces
    }

    fn add(&mut self, shape: &Shape) {
        match shape {
            Shape::Point(point) => self.points.push(point.0),
            Shape::LineString(line) => self.lines.push(line.clone()),
            Shape::Polygon(polygon) => self.polygons.push(polygon.clone()),
            Shape::MultiPoint(points) => self.points.extend(points.0.iter().map(|point| point.0)),
            Shape::MultiLineString(lines) => self.lines.extend(lines.0.iter().cloned()),
            Shape::MultiPolygon(polygons) => self.polygons.extend(polygons.0.iter().cloned()),
            Shape::GeometryCollection(parts) => parts.0.iter().for_each(|part| self.add(part)),
            other => self.add(&plain(other.clone())),
        }
    }

    /// All edges of lines and rings.
    fn edges(&self) -> impl Iterator<Item = (Coord, Coord)> + Clone {
        let rings = self.polygons.iter().flat_map(rings);
        self.lines.iter().chain(rings).flat_map(|line| line.0.windows(2).map(|pair| (pair[0], pair[1])))
    }

    fn vertices(&self) -> impl Iterator<Item = Coord> {
        let rings = self.polygons.iter().flat_map(rings);
        self.points.iter().copied().chain(self.lines.iter().chain(rings).flat_map(|line| line.0.iter().copied()))
    }
}

fn rings(polygon: &Polygon) -> impl Iterator<Item = &LineString> + Clone {
    std::iter::once(polygon.exterior()).chain(polygon.interiors())
}

/// An angle in (-180, 180].
fn turn(degrees: f64) -> f64 {
    let turn = degrees.rem_euclid(360.0);
    if turn > 180.0 { turn - 360.0 } else { turn }
}

impl Earth {
    pub fn new(ellipsoid: Ellipsoid) -> Earth {
        Earth { geodesic: Geodesic::new(ellipsoid.semi_major, ellipsoid.flattening()), ellipsoid }
    }

    fn course(&self, from: Coord, to: Coord) -> Course {
        let (metres, start, end, _) = self.geodesic.inverse(from.y, from.x, to.y, to.x);
        Course { metres, start, end }
    }

    pub fn distance(&self, from: Coord, to: Coord) -> f64 {
        self.course(from, to).metres
    }

    /// The point so many metres from another, in a direction, and the direction there.
    fn go(&self, from: Coord, direction: f64, metres: f64) -> (Coord, f64) {
        let (y, x, end) = self.geodesic.direct(from.y, from.x, direction, metres);
        // Longitudes are in (-180, 180].
        let x = turn(x);
        (Coord { x, y }, end)
    }

    /// The point so many metres along an edge.
    pub fn along(&self, from: Coord, to: Coord, metres: f64) -> Coord {
        let course = self.course(from, to);
        if metres >= course.metres { to } else { self.go(from, course.start, metres).0 }
    }

    pub fn length(&self, line: &LineString) -> f64 {
        line.0.windows(2).map(|pair| self.distance(pair[0], pair[1])).sum()
    }

    /// The area inside a ring: positive where it runs counterclockwise.
    fn signed_area(&self, ring: &LineString) -> f64 {
        let mut area = PolygonArea::new(&self.geodesic, Winding::CounterClockwise);
        ring.0.iter().skip(1).for_each(|c| area.add_point(c.y, c.x));
        area.compute(true).1
    }

    pub fn area(&self, polygon: &Polygon) -> f64 {
        // The direction of a ring does not matter.
        let of_ring = |ring: &LineString| self.signed_area(ring).abs();
        of_ring(polygon.exterior()) - polygon.interiors().iter().map(of_ring).sum::<f64>()
    }

    /// Metres from a point to the nearest point of an edge.
    fn to_edge(&self, point: Coord, (from, to): (Coord, Coord)) -> f64 {
        let edge = self.course(from, to);
        let at_start = self.course(from, point);
        if edge.metres == 0.0 || at_start.metres == 0.0 {
            return at_start.metres;
        }
        // How much nearer the point comes with each metre along the edge.
        let nearer = |direction: f64, to_point: f64| (to_point - direction).to_radians().cos();
        if nearer(edge.start, at_start.start) <= 0.0 {
            return at_start.metres;
        }
        let at_end = self.course(to, point);
        if at_end.metres == 0.0 || nearer(edge.end, at_end.start) >= 0.0 {
            return at_end.metres;
        }
        let (mut low, mut high) = (0.0, edge.metres);
        let mut place = (at_start.metres * nearer(edge.start, at_start.start)).clamp(low, high);
        let mut least = at_start.metres.min(at_end.metres);
        for _ in 0..100 {
            let (foot, direction) = self.go(from, edge.start, place);
            let there = self.course(foot, point);
            least = least.min(there.metres);
            let gain = nearer(direction, there.start);
            if gain > 0.0 {
                low = place;
            } else {
                high = place;
            }
            // On a plane the foot would be just there.
            let step = there.metres * gain;
            if step.abs() < 1e-7 || high - low < 1e-7 {
                break;
            }
            let next = place + step;
            place = if next > low && next < high { next } else { (low + high) / 2.0 };
        }
        least
    }

    /// Whether a point lies on an edge, and else by how much the direction to it turns along the edge.
    fn seen(&self, point: Coord, (from, to): (Coord, Coord)) -> Option<f64> {
        let (a, b) = (self.course(point, from), self.course(point, to));
        if a.metres < ON_EDGE || b.metres < ON_EDGE {
            return None;
        }
        let turned = turn(b.start - a.start);
        let missing = (180.0 - turned.abs()).to_radians();
        if missing * a.metres * b.metres / (a.metres + b.metres) < ON_EDGE { None } else { Some(turned) }
    }

    fn in_ring(&self, point: Coord, ring: &LineString) -> Position {
        let mut turned = 0.0;
        for pair in ring.0.windows(2).filter(|pair| pair[0] != pair[1]) {
            match self.seen(point, (pair[0], pair[1])) {
                None => return Position::Boundary,
                Some(degrees) => turned += degrees,
            }
        }
        // Seen from the other side of the Earth a ring turns the other way.
        let around = turned.abs() > 180.0 && (turned < 0.0) == (self.signed_area(ring) > 0.0);
        if around { Position::Inside } else { Position::Outside }
    }

    fn in_polygon(&self, point: Coord, polygon: &Polygon) -> Position {
        match self.in_ring(point, polygon.exterior()) {
            Position::Inside => {}
            other => return other,
        }
        for ring in polygon.interiors() {
            match self.in_ring(point, ring) {
                Position::Outside => {}
                Position::Boundary => return Position::Boundary,
                Position::Inside => return Position::Outside,
            }
        }
        Position::Inside
    }

    /// How a point lies to a shape. The boundary of lines are the ends of an odd number of them.
    pub fn position(&self, point: Coord, pieces: &Pieces, context: &mut Context) -> Result<Position> {
        let mut position = Position::Outside;
        for polygon in &pieces.polygons {
            context.budget.work(WORK * rings(polygon).map(|ring| ring.0.len()).sum::<usize>())?;
            match self.in_polygon(point, polygon) {
                Position::Inside => return Ok(Position::Inside),
                Position::Boundary => position = Position::Boundary,
                Position::Outside => {}
            }
        }
        if pieces.points.iter().any(|c| self.distance(*c, point) < ON_EDGE) {
            return Ok(Position::Inside);
        }
        let (mut on_line, mut ends) = (false, 0);
        for line in &pieces.lines {
            context.budget.work(WORK * line.0.len())?;
            let on = line.0.windows(2).any(|pair| self.seen(point, (pair[0], pair[1])).is_none());
            on_line |= on;
            if on && !line.is_closed() {
                let last = [line.0[0], line.0[line.0.len() - 1]];
                ends += last.iter().filter(|end| self.distance(**end, point) < ON_EDGE).count();
            }
        }
        Ok(match on_line {
            true if ends % 2 == 1 => Position::Boundary,
            true => Position::Inside,
            false => position,
        })
    }

    fn edges_meet(&self, (a, b): (Coord, Coord), (c, d): (Coord, Coord)) -> bool {
        let (ab, cd) = (self.course(a, b), self.course(c, d));
        let ac = self.course(a, c);
        if ac.metres > ab.metres + cd.metres + ON_EDGE {
            return false;
        }
        let on = |point: Coord, from: Coord, to: Coord| self.seen(point, (from, to)).is_none();
        if on(a, c, d) || on(b, c, d) || on(c, a, b) || on(d, a, b) {
            return true;
        }
        if ab.metres == 0.0 || cd.metres == 0.0 {
            return false;
        }
        // On which side of the first edge the second's ends lie, and the other way round.
        let side =
            |from: Coord, course: Course, point: Coord| turn(self.course(from, point).start - course.start) > 0.0;
        side(a, ab, c) != side(a, ab, d) && side(c, cd, a) != side(c, cd, b)
    }

    /// Whether two shapes have a point in common.
    pub fn meet(&self, a: &Pieces, b: &Pieces, context: &mut Context) -> Result<bool> {
        for (inner, outer) in [(a, b), (b, a)] {
            for point in inner.vertices() {
                if self.position(point, outer, context)? != Position::Outside {
                    return Ok(true);
                }
            }
        }
        let boxes: Vec<_> = b.edges().map(|edge| (edge, self.edge_bounds(edge))).collect();
        for edge in a.edges() {
            context.budget.work(WORK)?;
            let bounds = self.edge_bounds(edge);
            for (other, other_bounds) in &boxes {
                context.budget.work(32)?;
                let apart = matches!((&bounds, other_bounds), (Some(one), Some(two)) if !one.intersects(two));
                if !apart {
                    context.budget.work(WORK * 8)?;
                    if self.edges_meet(edge, *other) {
                        return Ok(true);
                    }
                }
            }
        }
        Ok(false)
    }

    /// Metres between the nearest points of two shapes.
    pub fn apart(&self, a: &Pieces, b: &Pieces, context: &mut Context) -> Result<f64> {
        let plain_points = [a, b].iter().all(|pieces| pieces.lines.is_empty() && pieces.polygons.is_empty());
        if !plain_points && self.meet(a, b, context)? {
            return Ok(0.0);
        }
        let mut least = f64::INFINITY;
        for (from, to) in [(a, b), (b, a)] {
            for point in from.vertices() {
                for other in &to.points {
                    context.budget.work(WORK)?;
                    least = least.min(self.distance(point, *other));
                }
                for edge in to.edges() {
                    context.budget.work(WORK * 2)?;
                    let nearest_possible = self.distance(point, edge.0) - self.distance(edge.0, edge.1);
                    if nearest_possible < least {
                        context.budget.work(WORK * 8)?;
                        least = least.min(self.to_edge(point, edge));
                    }
                }
            }
            if plain_points {
                break;
            }
        }
        Ok(least)
    }

    /// The latitude at which a geodesic through a point in a direction turns back.
    fn turning_latitude(&self, from: Coord, direction: f64) -> f64 {
        // On the auxiliary sphere, whose latitude is the reduced one, the cosine of the latitude times the sine of the
        // direction is the same everywhere.
        let flat = 1.0 - self.ellipsoid.flattening();
        let reduced = (flat * from.y.to_radians().tan()).atan();
        let highest = (direction.to_radians().sin().abs() * reduced.cos()).clamp(0.0, 1.0).acos();
        (highest.tan() / flat).atan().to_degrees()
    }

    /// The rectangle around an edge; `None` where it crosses the date line or a pole.
    fn edge_bounds(&self, (from, to): (Coord, Coord)) -> Option<Bounds> {
        if (from.x - to.x).abs() >= 180.0 {
            return None;
        }
        let mut bounds = Bounds {
            min: Coord { x: from.x.min(to.x), y: from.y.min(to.y) },
            max: Coord { x: from.x.max(to.x), y: from.y.max(to.y) },
        };
        let course = self.course(from, to);
        let (start, end) = (course.start.to_radians().cos(), course.end.to_radians().cos());
        if start > 0.0 && end < 0.0 {
            bounds.max.y = bounds.max.y.max(self.turning_latitude(from, course.start));
        } else if start < 0.0 && end > 0.0 {
            bounds.min.y = bounds.min.y.min(-self.turning_latitude(from, course.start));
        }
        Some(bounds)
    }

    /// The rectangle around a shape; `None` where an edge crosses the date line or a pole.
    pub fn bounds(&self, shape: &Shape) -> Option<Bounds> {
        let mut all = Bounds::of(shape)?;
        for edge in Pieces::of(shape).edges() {
            let bounds = self.edge_bounds(edge)?;
            all.min.y = all.min.y.min(bounds.min.y);
            all.max.y = all.max.y.max(bounds.max.y);
        }
        Some(all)
    }
}

impl Earth {
    /// The points at a distance in directions all round, counterclockwise from east.
    pub fn circle(&self, center: Coord, metres: f64, count: usize) -> Vec<Coord> {
        (0..count).map(|n| self.go(center, 90.0 - 360.0 * n as f64 / count as f64, metres).0).collect()
    }
}

impl Earth {
    /// Whether a point is none of these.
    pub fn is_none_of(&self, point: Coord, points: &[Coord]) -> bool {
        points.iter().all(|other| self.distance(*other, point) >= ON_EDGE)
    }
}
