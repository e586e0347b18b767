//! Whether a geometry is valid (its rings do not cross, its polygons do not overlap) and simple (it does not meet
//! itself).
//!
//! Of lines and polygons in a geographic system that is not computed (3618).

use super::combine::LARGEST;
use super::geodesic::Pieces;
use super::{Call, Function, Located, errors, heavy, rules, truth};
use crate::expr::Context;
use crate::expr::convert::Result;
use geo::line_intersection::{LineIntersection, line_intersection};
use geo::{Coord, Line, LineString, Validation};
use rauk_types::Value;
use rauk_types::geometry::{Shape, all_coords};
use rstar::{AABB, RTree, RTreeObject};
use std::collections::HashSet;

pub const FUNCTIONS: &[Function] = &[
    heavy("ST_ISVALID", 1, 1, rules::truth, |c, x| Ok(truth(is_valid(c, x)?.1))),
    heavy("ST_VALIDATE", 1, 1, rules::any, |c, x| {
        let (geometry, valid) = is_valid(c, x)?;
        Ok(if valid { geometry.with(geometry.shape.clone()) } else { Value::Null })
    }),
    heavy("ST_ISSIMPLE", 1, 1, rules::truth, |c, x| {
        let geometry = c.located(0)?;
        on_plane(&geometry, "st_issimple")?;
        x.budget.work(32 * c.bytes(0).len())?;
        Ok(truth(is_simple(&geometry.shape)))
    }),
];

/// Error 3618.
fn on_plane(geometry: &Located, function: &str) -> Result<()> {
    let pieces = Pieces::of(&geometry.shape);
    let points = pieces.lines.is_empty() && pieces.polygons.is_empty();
    if points || !geometry.system.is_geographic() {
        return Ok(());
    }
    Err(errors::not_geographic_of(function, &[geometry.kind()]))
}

fn is_valid(c: &Call<'_, '_>, context: &mut Context) -> Result<(Located, bool)> {
    let geometry = c.located(0)?;
    on_plane(&geometry, &c.lower_name())?;
    context.budget.work(32 * c.bytes(0).len())?;
    // Numbers whose products are none have no order.
    let ordinary = all_coords(&geometry.shape, &mut |c| c.x.abs() <= LARGEST && c.y.abs() <= LARGEST);
    let valid = ordinary && valid(&geometry.shape);
    Ok((geometry, valid))
}

/// Whether a shape in a plane is valid.
pub(super) fn valid(shape: &Shape) -> bool {
    match shape {
        Shape::GeometryCollection(parts) => parts.0.iter().all(valid),
        // Lines need two different points, and may cross themselves.
        Shape::LineString(line) => line.0.iter().any(|c| *c != line.0[0]),
        Shape::MultiLineString(lines) => lines.0.iter().all(|line| line.0.iter().any(|c| *c != line.0[0])),
        Shape::Point(_) | Shape::MultiPoint(_) => true,
        shape => shape.is_valid(),
    }
}

fn is_simple(shape: &Shape) -> bool {
    match shape {
        Shape::MultiPoint(points) => {
            let mut seen = HashSet::new();
            points.0.iter().all(|point| seen.insert(((point.x() + 0.0).to_bits(), (point.y() + 0.0).to_bits())))
        }
        Shape::LineString(line) => lines_are_simple(std::slice::from_ref(line)),
        Shape::MultiLineString(lines) => lines_are_simple(&lines.0),
        Shape::GeometryCollection(parts) => parts.0.iter().all(is_simple),
        _ => true,
    }
}

/// An edge of a line: which line, which edge.
struct Edge {
    line: Line,
    of: usize,
    number: usize,
}

impl RTreeObject for Edge {
    type Envelope = AABB<[f64; 2]>;

    fn envelope(&self) -> Self::Envelope {
        AABB::from_corners([self.line.start.x, self.line.start.y], [self.line.end.x, self.line.end.y])
    }
}

/// Lines that meet themselves only where one edge follows another, and each other only at their ends.
fn lines_are_simple(lines: &[LineString]) -> bool {
    let lines: Vec<Vec<Coord>> = lines
        .iter()
        .map(|line| {
            let mut points = line.0.clone();
            points.dedup();
            points
        })
        .collect();
    let edges = lines.iter().enumerate().flat_map(|(of, points)| {
        points.windows(2).enumerate().map(move |(number, pair)| Edge { line: Line::new(pair[0], pair[1]), of, number })
    });
    let tree = RTree::bulk_load(edges.collect());
    let is_end = |of: usize, c: Coord| {
        let points = &lines[of];
        let open = points.first() != points.last();
        open && (points.first() == Some(&c) || points.last() == Some(&c))
    };
    tree.iter().all(|edge| {
        let mut others = tree.locate_in_envelope_intersecting(&edge.envelope());
        others.all(|other| {
            if (edge.of, edge.number) >= (other.of, other.number) {
                return true;
            }
            match line_intersection(edge.line, other.line) {
                None => true,
                Some(LineIntersection::Collinear { intersection }) if intersection.start != intersection.end => false,
                Some(found) => {
                    let at = match found {
                        LineIntersection::SinglePoint { intersection, .. } => intersection,
                        LineIntersection::Collinear { intersection } => intersection.start,
                    };
                    if edge.of != other.of {
                        return is_end(edge.of, at) && is_end(other.of, at);
                    }
                    let follows = other.number == edge.number + 1 && at == edge.line.end;
                    let closes = edge.number == 0
                        && other.number + 2 == lines[edge.of].len()
                        && at == edge.line.start
                        && at == other.line.end;
                    follows || closes
                }
            }
        })
    })
}
