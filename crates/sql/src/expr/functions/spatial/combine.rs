//! Sets of points from others: unions, intersections, differences; buffers, hulls, centroids.
//!
//! A shape is taken apart into layers: areas, lines and points. Areas are combined by `geo` (`i_overlay`), which works
//! on a grid of some 2³⁰ steps over both shapes; what it gives is put back to where it exactly is: to points of the
//! arguments, and to where their edges cross ([`Exact`]). Lines and points are combined with each other here, and cut
//! by areas there. A point or a line of a result that lies in one of its areas or lines is not said twice.
//!
//! Coordinates beyond 10¹⁰⁰ are refused (1690): the products of two would be no numbers.

use super::errors;
use super::geodesic::{Earth, Pieces};
use super::{Call, Derived, Function, Located, heavy, nothing, rules};
use crate::expr::Context;
use crate::expr::convert::Result;
use crate::expr::types::text_type;
use geo::algorithm::buffer::{Buffer, BufferStyle, LineCap, LineJoin};
use geo::algorithm::convex_hull::graham_hull;
use geo::line_intersection::{LineIntersection, line_intersection};
use geo::{
    BooleanOps, Centroid, Coord, CoordsIter, GeometryCollection, Intersects, Line, LineString, MultiLineString,
    MultiPoint, MultiPolygon, Point, Polygon, unary_union,
};
use rauk_types::geometry::{Bounds, Shape, all_coords};
use rauk_types::{Collation, Value};
use rstar::{AABB, RTree, RTreeObject};
use std::f64::consts::PI;

pub const FUNCTIONS: &[Function] = &[
    heavy("ST_UNION", 2, 2, rules::any, |c, x| combined(c, x, union)),
    heavy("ST_INTERSECTION", 2, 2, rules::any, |c, x| combined(c, x, intersection)),
    heavy("ST_DIFFERENCE", 2, 2, rules::any, |c, x| combined(c, x, difference)),
    heavy("ST_SYMDIFFERENCE", 2, 2, rules::any, |c, x| combined(c, x, symmetric_difference)),
    heavy("ST_BUFFER", 2, 5, rules::any, buffer),
    Function::new(
        "ST_BUFFER_STRATEGY",
        1,
        2,
        |_| Ok(Derived::new(text_type(16, Collation::Binary)).nullable()),
        strategy,
    ),
    heavy("ST_CONVEXHULL", 1, 1, rules::any, hull),
    Function::new("ST_CENTROID", 1, 1, rules::point, |c, _| {
        let geometry = plane(c)?;
        let centroid = geometry.shape.centroid().filter(|_| !geometry.is_empty());
        let Some(centroid) = centroid else { return Ok(Value::Null) };
        if !centroid.x().is_finite() || !centroid.y().is_finite() {
            return Err(errors::out_of_range("Centroid", "st_centroid"));
        }
        Ok(geometry.with(centroid))
    }),
];

/// The largest coordinate whose products with others are numbers, and the smallest extent and distance.
pub(super) const LARGEST: f64 = 1e100;
const SMALLEST: f64 = 1e-100;

/// The first argument, which has to be in a plane. Error 3618.
fn plane(c: &Call<'_, '_>) -> Result<Located> {
    let geometry = c.located(0)?;
    if geometry.system.is_geographic() {
        return Err(errors::not_geographic_of(&c.lower_name(), &[geometry.kind()]));
    }
    Ok(geometry)
}

/// Error 1690.
pub(super) fn bounded(shape: &Shape, function: &str) -> Result<()> {
    let fits = all_coords(shape, &mut |c| c.x.abs() <= LARGEST && c.y.abs() <= LARGEST);
    let extent = extent(shape);
    if fits && (extent == 0.0 || extent >= SMALLEST) {
        Ok(())
    } else {
        Err(errors::out_of_range("Coordinate", function))
    }
}

/// A shape as sets of points of three dimensions.
struct Layers {
    /// They do not overlap.
    areas: MultiPolygon,
    lines: Vec<LineString>,
    points: Vec<Coord>,
}

impl Layers {
    fn of(shape: &Shape) -> Layers {
        let pieces = Pieces::of(shape);
        let areas = match pieces.polygons.len() {
            0 | 1 => MultiPolygon(pieces.polygons),
            _ => {
                let exact = Exact::new(pieces.polygons.iter().flat_map(|polygon| polygon.rings_edges()));
                exact.areas(unary_union(&pieces.polygons))
            }
        };
        Layers { areas, lines: pieces.lines, points: pieces.points }
    }

    fn edges(&self) -> Vec<Line> {
        let rings = self.areas.0.iter().flat_map(|polygon| polygon.rings_edges());
        self.lines.iter().flat_map(LineString::lines).chain(rings).collect()
    }

    fn bytes(&self) -> usize {
        16 * (self.points.len() + self.lines.iter().map(|line| line.0.len()).sum::<usize>() + self.areas.coords_count())
    }

    /// The shape that says it with the fewest words.
    fn into_shape(mut self) -> Shape {
        self.areas.0.retain(|polygon| polygon.exterior().0.len() >= 4);
        let areas = match self.areas.0.len() {
            0 => None,
            1 => self.areas.0.pop().map(Shape::Polygon),
            _ => Some(Shape::MultiPolygon(self.areas)),
        };
        let lines = match self.lines.len() {
            0 => None,
            1 => self.lines.pop().map(Shape::LineString),
            _ => Some(Shape::MultiLineString(MultiLineString(self.lines))),
        };
        let points = match self.points.as_slice() {
            [] => None,
            [one] => Some(Shape::Point(Point(*one))),
            many => Some(Shape::MultiPoint(MultiPoint(many.iter().copied().map(Point).collect()))),
        };
        let mut parts: Vec<Shape> = [areas, lines, points].into_iter().flatten().collect();
        match parts.len() {
            0 => nothing(),
            1 => parts.remove(0),
            _ => Shape::GeometryCollection(GeometryCollection(parts)),
        }
    }
}

trait Rings {
    fn rings_edges(&self) -> impl Iterator<Item = Line>;
}

impl Rings for Polygon {
    fn rings_edges(&self) -> impl Iterator<Item = Line> {
        std::iter::once(self.exterior()).chain(self.interiors()).flat_map(LineString::lines)
    }
}

/// An edge in a tree of rectangles.
#[derive(Clone, Copy)]
struct Edge(Line);

impl RTreeObject for Edge {
    type Envelope = AABB<[f64; 2]>;

    fn envelope(&self) -> Self::Envelope {
        AABB::from_corners([self.0.start.x, self.0.start.y], [self.0.end.x, self.0.end.y])
    }
}

/// Edges, to be found by where they are.
struct Edges(RTree<Edge>);

impl Edges {
    fn new(edges: impl IntoIterator<Item = Line>) -> Edges {
        Edges(RTree::bulk_load(edges.into_iter().map(Edge).collect()))
    }

    fn near(&self, line: Line) -> impl Iterator<Item = Line> {
        self.0.locate_in_envelope_intersecting(&Edge(line).envelope()).map(|edge| edge.0)
    }

    fn has(&self, point: Coord) -> bool {
        self.near(Line::new(point, point)).any(|edge| edge.intersects(&point))
    }
}

/// Where points of a result may be: at the ends of edges, and where edges cross.
struct Exact {
    places: RTree<[f64; 2]>,
    /// How far a result may be from its place.
    reach: f64,
}

impl Exact {
    fn new(edges: impl Iterator<Item = Line>) -> Exact {
        let edges: Vec<Line> = edges.collect();
        let tree = Edges::new(edges.iter().copied());
        let mut places = Vec::with_capacity(edges.len() * 2);
        for edge in &edges {
            places.extend([[edge.start.x, edge.start.y], [edge.end.x, edge.end.y]]);
            for other in tree.near(*edge) {
                if let Some(LineIntersection::SinglePoint { intersection, is_proper: true }) =
                    line_intersection(*edge, other)
                {
                    places.push([intersection.x, intersection.y]);
                }
            }
        }
        let all = edges.iter().flat_map(|edge| [edge.start, edge.end]).collect::<LineString>();
        // Some steps of the grid.
        Exact { places: RTree::bulk_load(places), reach: extent(&Shape::LineString(all)) / f64::from(1 << 27) }
    }

    fn place(&self, c: Coord) -> Coord {
        match self.places.nearest_neighbor(&[c.x, c.y]) {
            Some([x, y]) if (x - c.x).hypot(y - c.y) <= self.reach => Coord { x: *x, y: *y },
            _ => c,
        }
    }

    fn line(&self, line: &LineString) -> LineString {
        let mut placed: Vec<Coord> = line.0.iter().map(|c| self.place(*c)).collect();
        placed.dedup();
        LineString(placed)
    }

    fn areas(&self, areas: MultiPolygon) -> MultiPolygon {
        let polygon = |polygon: &Polygon| {
            let interiors = polygon.interiors().iter().map(|ring| self.line(ring)).filter(|ring| ring.0.len() >= 4);
            Polygon::new(self.line(polygon.exterior()), interiors.collect())
        };
        MultiPolygon(areas.0.iter().map(polygon).filter(|polygon| polygon.exterior().0.len() >= 4).collect())
    }
}

/// The longer side of the rectangle around a shape.
fn extent(shape: &Shape) -> f64 {
    Bounds::of(shape).map_or(0.0, |b| (b.max.x - b.min.x).max(b.max.y - b.min.y))
}

type Combine = fn(&Layers, &Layers) -> Layers;

fn combined(c: &Call<'_, '_>, context: &mut Context, combine: Combine) -> Result<Value> {
    let name = c.lower_name();
    let (a, b) = c.pair()?;
    if a.system.is_geographic() {
        return points_on_earth(&name, &a, &b);
    }
    bounded(&a.shape, &name)?;
    bounded(&b.shape, &name)?;
    let (first, second) = (Layers::of(&a.shape), Layers::of(&b.shape));
    context.budget.work(64 * (first.bytes() + second.bytes()))?;
    Ok(a.with(combine(&first, &second).into_shape()))
}

/// Sets of points are the same sets on an ellipsoid. Error 3618 for others.
fn points_on_earth(name: &str, a: &Located, b: &Located) -> Result<Value> {
    let points = |shape: &Shape| {
        let pieces = Pieces::of(shape);
        (pieces.lines.is_empty() && pieces.polygons.is_empty()).then_some(pieces.points)
    };
    let (Some(first), Some(second)) = (points(&a.shape), points(&b.shape)) else {
        return Err(errors::not_geographic_of(name, &[a.kind(), b.kind()]));
    };
    let layers = |points| Layers { areas: MultiPolygon(Vec::new()), lines: Vec::new(), points };
    let (first, second) = (layers(first), layers(second));
    let combine: Combine = match name {
        "st_union" => union,
        "st_intersection" => intersection,
        "st_difference" => difference,
        _ => symmetric_difference,
    };
    Ok(a.with(combine(&first, &second).into_shape()))
}

// Areas

fn of_areas(a: &Layers, b: &Layers, combine: fn(&MultiPolygon, &MultiPolygon) -> MultiPolygon) -> MultiPolygon {
    let edges = |layers: &Layers| layers.areas.0.iter().flat_map(Rings::rings_edges).collect::<Vec<_>>();
    let exact = Exact::new(edges(a).into_iter().chain(edges(b)));
    exact.areas(combine(&a.areas, &b.areas))
}

// Lines

/// The parts of lines inside of areas (their boundaries included), or outside.
fn cut(lines: &[LineString], areas: &MultiPolygon, inside: bool) -> Vec<LineString> {
    if lines.is_empty() || areas.0.is_empty() {
        return if inside { Vec::new() } else { lines.to_vec() };
    }
    let edges = lines.iter().flat_map(LineString::lines).collect::<Vec<_>>();
    let rings = areas.0.iter().flat_map(Rings::rings_edges);
    let exact = Exact::new(edges.into_iter().chain(rings));
    let cut = areas.clip(&MultiLineString(lines.to_vec()), !inside);
    cut.0.iter().map(|line| exact.line(line)).filter(|line| line.0.len() >= 2).collect()
}

/// The parts of lines that lie on edges, or that do not.
fn along(lines: &[LineString], edges: &Edges, on: bool) -> Vec<LineString> {
    let mut parts: Vec<LineString> = Vec::new();
    for line in lines {
        let mut part: Vec<Coord> = Vec::new();
        for edge in line.lines().filter(|edge| edge.start != edge.end) {
            let place = |c: Coord| {
                let (dx, dy) = (edge.end.x - edge.start.x, edge.end.y - edge.start.y);
                if dx.abs() >= dy.abs() { (c.x - edge.start.x) / dx } else { (c.y - edge.start.y) / dy }
            };
            // Which parts of the edge lie on others, as places from 0 to 1 with their points.
            let mut covered: Vec<(f64, Coord, f64, Coord)> = edges
                .near(edge)
                .filter_map(|other| match line_intersection(edge, other) {
                    Some(LineIntersection::Collinear { intersection }) => {
                        let (a, b) = (intersection.start, intersection.end);
                        let (pa, pb) = (place(a), place(b));
                        Some(if pa <= pb { (pa, a, pb, b) } else { (pb, b, pa, a) })
                    }
                    _ => None,
                })
                .filter(|(from, _, to, _)| from < to)
                .collect();
            covered.sort_by(|a, b| a.0.total_cmp(&b.0));
            let mut spans: Vec<(bool, Coord, Coord)> = Vec::new();
            let (mut reached, mut at) = (0.0, edge.start);
            for (from, start, to, end) in covered {
                if from > reached {
                    spans.push((false, at, start));
                    (reached, at) = (from, start);
                }
                if to > reached {
                    spans.push((true, at, end));
                    (reached, at) = (to, end);
                }
            }
            if reached < 1.0 && at != edge.end {
                spans.push((false, at, edge.end));
            }
            for (is_on, from, to) in spans {
                if is_on == on && part.last() == Some(&from) {
                    part.push(to);
                } else if is_on == on {
                    finish(&mut part, &mut parts);
                    part.extend([from, to]);
                } else {
                    finish(&mut part, &mut parts);
                }
            }
        }
        finish(&mut part, &mut parts);
    }
    parts
}

fn finish(part: &mut Vec<Coord>, parts: &mut Vec<LineString>) {
    let part = std::mem::take(part);
    if part.len() >= 2 {
        parts.push(LineString(part));
    }
}

/// Lines of both, each stretch once.
fn joined(mut lines: Vec<LineString>, others: &[LineString]) -> Vec<LineString> {
    for other in others {
        let edges = Edges::new(lines.iter().flat_map(LineString::lines));
        lines.extend(along(std::slice::from_ref(other), &edges, false));
    }
    lines
}

// Points

/// Points, each once, but those that lie in areas or on lines.
fn outside(points: impl IntoIterator<Item = Coord>, areas: &MultiPolygon, lines: &[LineString]) -> Vec<Coord> {
    let edges = Edges::new(lines.iter().flat_map(LineString::lines));
    let mut kept: Vec<Coord> = points.into_iter().filter(|c| !areas.intersects(c) && !edges.has(*c)).collect();
    sort_points(&mut kept);
    kept
}

fn sort_points(points: &mut Vec<Coord>) {
    // Zeros of either sign are one.
    points.iter_mut().for_each(|c| *c = Coord { x: c.x + 0.0, y: c.y + 0.0 });
    points.sort_by(|a, b| a.x.total_cmp(&b.x).then(a.y.total_cmp(&b.y)));
    points.dedup();
}

fn has(layers: &Layers, edges: &Edges, point: Coord) -> bool {
    layers.areas.intersects(&point) || edges.has(point) || layers.points.contains(&point)
}

fn union(a: &Layers, b: &Layers) -> Layers {
    let areas = match (a.areas.0.is_empty(), b.areas.0.is_empty()) {
        (_, true) => a.areas.clone(),
        (true, _) => b.areas.clone(),
        _ => of_areas(a, b, |a, b| a.union(b)),
    };
    let lines = cut(&joined(joined(Vec::new(), &a.lines), &b.lines), &areas, false);
    let points = outside(a.points.iter().chain(&b.points).copied(), &areas, &lines);
    Layers { areas, lines, points }
}

fn intersection(a: &Layers, b: &Layers) -> Layers {
    let areas = match a.areas.0.is_empty() || b.areas.0.is_empty() {
        true => MultiPolygon(Vec::new()),
        false => of_areas(a, b, |a, b| a.intersection(b)),
    };
    let (first, second) = (a.edges(), b.edges());
    let tree = Edges::new(second.iter().copied());
    let common: Vec<LineString> =
        along(&first.iter().map(|edge| LineString(vec![edge.start, edge.end])).collect::<Vec<_>>(), &tree, true);
    let mut lines = joined(cut(&a.lines, &b.areas, true), &cut(&b.lines, &a.areas, true));
    lines = joined(lines, &common);
    let lines = cut(&lines, &areas, false);
    let crossings = first.iter().flat_map(|edge| {
        tree.near(*edge).filter_map(|other| match line_intersection(*edge, other) {
            Some(LineIntersection::SinglePoint { intersection, .. }) => Some(intersection),
            Some(LineIntersection::Collinear { intersection }) if intersection.start == intersection.end => {
                Some(intersection.start)
            }
            _ => None,
        })
    });
    let in_both = |of: &[Coord], other: &Layers| {
        let edges = Edges::new(other.edges());
        of.iter().copied().filter(|point| has(other, &edges, *point)).collect::<Vec<_>>()
    };
    let points = crossings.chain(in_both(&a.points, b)).chain(in_both(&b.points, a)).collect::<Vec<_>>();
    let points = outside(points, &areas, &lines);
    // A crossing that was computed may lie beside the line that ends there.
    let points = points.into_iter().filter(|point| !ends_near(&lines, *point)).collect();
    Layers { areas, lines, points }
}

fn ends_near(lines: &[LineString], point: Coord) -> bool {
    let near = |c: &Coord| (c.x - point.x).hypot(c.y - point.y) <= 1e-12 * (point.x.abs() + point.y.abs());
    lines.iter().any(|line| line.0.first().is_some_and(near) || line.0.last().is_some_and(near))
}

fn difference(a: &Layers, b: &Layers) -> Layers {
    let areas = match a.areas.0.is_empty() || b.areas.0.is_empty() {
        true => a.areas.clone(),
        false => of_areas(a, b, |a, b| a.difference(b)),
    };
    let edges = Edges::new(b.edges());
    let lines = along(&cut(&a.lines, &b.areas, false), &Edges::new(b.lines.iter().flat_map(LineString::lines)), false);
    let mut points: Vec<Coord> = a.points.iter().copied().filter(|point| !has(b, &edges, *point)).collect();
    sort_points(&mut points);
    Layers { areas, lines, points }
}

fn symmetric_difference(a: &Layers, b: &Layers) -> Layers {
    let areas = match (a.areas.0.is_empty(), b.areas.0.is_empty()) {
        (_, true) => a.areas.clone(),
        (true, _) => b.areas.clone(),
        _ => of_areas(a, b, |a, b| a.xor(b)),
    };
    let (first, second) = (difference(a, b), difference(b, a));
    let lines = cut(&joined(first.lines, &second.lines), &areas, false);
    let points = outside(first.points.into_iter().chain(second.points), &areas, &lines);
    Layers { areas, lines, points }
}

// Buffers

/// How the corners of a buffer are drawn.
#[derive(Clone, Copy)]
struct Style {
    /// `None`: flat.
    end: Option<f64>,
    /// Points of a circle, or how far a miter may reach.
    join: Join,
    /// `None`: a square.
    point: Option<f64>,
}

#[derive(Clone, Copy)]
enum Join {
    Round(f64),
    Miter(f64),
}

const POINTS_OF_CIRCLE: f64 = 32.0;
/// MySQL's numbers of the strategies.
const STRATEGIES: [(&str, u32); 6] =
    [("end_round", 1), ("end_flat", 2), ("join_round", 3), ("join_miter", 4), ("point_circle", 5), ("point_square", 6)];
const MOST_POINTS: f64 = 65_536.0;

/// A strategy as bytes: its number and its value. Error 1210.
fn strategy(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    let wrong = || errors::wrong_arguments("st_buffer_strategy");
    let name = c.text(0);
    let (name, number) = *STRATEGIES.iter().find(|(known, _)| known.eq_ignore_ascii_case(&name)).ok_or_else(wrong)?;
    let takes_value = !matches!(name, "end_flat" | "point_square");
    if takes_value != c.has(1) {
        return Err(wrong());
    }
    let value = if takes_value { c.f64(1, context)? } else { 0.0 };
    if takes_value && !(value > 0.0 && value.is_finite()) || name != "join_miter" && value > MOST_POINTS {
        return Err(wrong());
    }
    let mut bytes = number.to_le_bytes().to_vec();
    bytes.extend(value.to_le_bytes());
    Ok(Value::Bytes(bytes))
}

/// The strategies of the arguments from the third on: one of each group. Error 1210.
fn style(c: &Call<'_, '_>) -> Result<Style> {
    let wrong = || errors::wrong_arguments("st_buffer");
    let mut style =
        Style { end: Some(POINTS_OF_CIRCLE), join: Join::Round(POINTS_OF_CIRCLE), point: Some(POINTS_OF_CIRCLE) };
    let mut groups = [false; 3];
    for argument in 2..c.len() {
        let bytes = c.bytes(argument);
        let bytes: [u8; 12] = bytes.as_ref().try_into().map_err(|_| wrong())?;
        let [a, b, c, d, value @ ..] = bytes;
        let value = f64::from_le_bytes(value);
        let points = value.max(4.0);
        let number = u32::from_le_bytes([a, b, c, d]);
        if !(0.0..=MOST_POINTS).contains(&value) {
            return Err(wrong());
        }
        match number {
            1 => style.end = Some(points),
            2 => style.end = None,
            3 => style.join = Join::Round(points),
            4 => style.join = Join::Miter(value.max(1.0)),
            5 => style.point = Some(points),
            6 => style.point = None,
            _ => return Err(wrong()),
        }
        let group = &mut groups[(number as usize - 1) / 2];
        if std::mem::replace(group, true) {
            return Err(wrong());
        }
    }
    Ok(style)
}

fn circle(center: Coord, radius: f64, points: Option<f64>) -> Polygon {
    let at = |turn: f64| Coord { x: center.x + radius * turn.cos(), y: center.y + radius * turn.sin() };
    let corners = match points {
        Some(points) => {
            let count = points.floor() as usize;
            (0..count).map(|n| at(2.0 * PI * n as f64 / count as f64)).collect::<Vec<_>>()
        }
        None => [(1.0, 1.0), (-1.0, 1.0), (-1.0, -1.0), (1.0, -1.0)]
            .into_iter()
            .map(|(x, y)| Coord { x: center.x + radius * x, y: center.y + radius * y })
            .collect(),
    };
    Polygon::new(LineString(corners), Vec::new())
}

/// Errors: 1210, 1690, 3618.
fn buffer(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    const NAME: &str = "st_buffer";
    let geometry = c.located(0)?;
    let distance = c.finite(1, "Distance", context)?;
    let style = style(c)?;
    if geometry.is_empty() || distance == 0.0 {
        return Ok(geometry.with(geometry.shape.clone()));
    }
    if let Some(ellipsoid) = geometry.system.ellipsoid() {
        let Shape::Point(point) = geometry.shape else {
            return Err(errors::not_geographic_of(NAME, &[geometry.kind()]));
        };
        if distance < 0.0 || style.point.is_none() {
            return Err(errors::wrong_arguments(NAME));
        }
        let around = Earth::new(ellipsoid).circle(point.0, distance, style.point.unwrap_or(POINTS_OF_CIRCLE) as usize);
        return Ok(geometry.with(Polygon::new(LineString(around), Vec::new())));
    }
    bounded(&geometry.shape, NAME)?;
    let pieces = Pieces::of(&geometry.shape);
    if distance < 0.0 && !(pieces.points.is_empty() && pieces.lines.is_empty()) {
        return Err(errors::wrong_arguments(NAME));
    }
    // Within some powers of ten the grid tells a shape and what is around it apart.
    if !(SMALLEST..=LARGEST).contains(&distance.abs()) || distance.abs() < extent(&geometry.shape) * 1e-8 {
        return Err(errors::out_of_range("Distance", NAME));
    }
    let corners = match (style.join, style.end) {
        (Join::Round(join), Some(end)) => join.max(end),
        (Join::Round(join), None) => join,
        (Join::Miter(_), end) => end.unwrap_or(4.0),
    };
    let points = pieces.points.len() as f64 * style.point.unwrap_or(4.0)
        + pieces.lines.iter().map(|line| line.0.len()).sum::<usize>() as f64 * corners
        + pieces.polygons.iter().map(|polygon| polygon.coords_count()).sum::<usize>() as f64 * corners;
    if !c.fits((points * 16.0) as usize, context) {
        return Ok(Value::Null);
    }
    context.budget.work((points * 64.0) as usize)?;
    let turn = |points: f64| 2.0 * PI / points;
    let join = match style.join {
        Join::Round(points) => LineJoin::Round(turn(points)),
        Join::Miter(limit) => LineJoin::Miter(2.0 * (1.0 / limit).asin()),
    };
    let cap = style.end.map_or(LineCap::Butt, |points| LineCap::Round(turn(points)));
    let drawn = || BufferStyle::new(distance).line_join(join.clone()).line_cap(cap.clone());
    let mut around: Vec<Polygon> = Vec::new();
    around.extend(pieces.points.iter().map(|point| circle(*point, distance, style.point)));
    for line in &pieces.lines {
        let mut line = line.clone();
        line.0.dedup();
        match line.0.as_slice() {
            [one] => around.push(circle(*one, distance, style.point)),
            _ => around.extend(line.buffer_with_style(drawn()).0),
        }
    }
    around.extend(MultiPolygon(pieces.polygons).buffer_with_style(drawn()).0);
    let areas = if around.len() > 1 { unary_union(&around) } else { MultiPolygon(around) };
    Ok(geometry.with(Layers { areas, lines: Vec::new(), points: Vec::new() }.into_shape()))
}

// Hulls

/// NULL of nothing. Error 3618.
fn hull(c: &Call<'_, '_>, _: &mut Context) -> Result<Value> {
    let geometry = plane(c)?;
    bounded(&geometry.shape, "st_convexhull")?;
    let mut points: Vec<Coord> = Vec::new();
    all_coords(&geometry.shape, &mut |c| {
        points.push(c);
        true
    });
    sort_points(&mut points);
    let shape = match points.as_slice() {
        [] => return Ok(Value::Null),
        [one] => Shape::Point(Point(*one)),
        [a, b] => Shape::LineString(LineString(vec![*a, *b])),
        [first, .., last] => {
            let (first, last) = (*first, *last);
            let ring = graham_hull(&mut points, false);
            if ring.0.len() < 4 {
                Shape::LineString(LineString(vec![first, last]))
            } else {
                Shape::Polygon(Polygon::new(ring, Vec::new()))
            }
        }
    };
    Ok(geometry.with(shape))
}
