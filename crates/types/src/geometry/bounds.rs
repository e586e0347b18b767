//! The smallest rectangle around a shape, with sides along the axes, and how two of them lie.
//!
//! A rectangle may be a segment or a point. Its inside is then that of a segment (without its ends) or of a point (the
//! point itself).

use super::{Shape, all_coords};
use geo_types::{Coord, LineString, Point, Polygon};

/// A closed rectangle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    pub min: Coord,
    pub max: Coord,
}

impl Bounds {
    /// Around a shape; `None` where it has no point.
    pub fn of(shape: &Shape) -> Option<Bounds> {
        let mut bounds: Option<Bounds> = None;
        all_coords(shape, &mut |c| {
            let grown = bounds.map_or(Bounds { min: c, max: c }, |b| Bounds {
                min: Coord { x: b.min.x.min(c.x), y: b.min.y.min(c.y) },
                max: Coord { x: b.max.x.max(c.x), y: b.max.y.max(c.y) },
            });
            bounds = Some(grown);
            true
        });
        bounds
    }

    /// 0: a point, 1: a segment, 2: a rectangle with an area.
    pub fn dimension(&self) -> u8 {
        u8::from(self.min.x < self.max.x) + u8::from(self.min.y < self.max.y)
    }

    pub fn intersects(&self, other: &Bounds) -> bool {
        self.min.x <= other.max.x && other.min.x <= self.max.x && self.min.y <= other.max.y && other.min.y <= self.max.y
    }

    /// No point of the other lies outside.
    pub fn covers(&self, other: &Bounds) -> bool {
        self.min.x <= other.min.x && other.max.x <= self.max.x && self.min.y <= other.min.y && other.max.y <= self.max.y
    }

    /// What both have; `None` where they are apart.
    pub fn intersection(&self, other: &Bounds) -> Option<Bounds> {
        self.intersects(other).then(|| Bounds {
            min: Coord { x: self.min.x.max(other.min.x), y: self.min.y.max(other.min.y) },
            max: Coord { x: self.max.x.min(other.max.x), y: self.max.y.min(other.max.y) },
        })
    }

    /// The insides have a point in common.
    pub fn insides_meet(&self, other: &Bounds) -> bool {
        // Along an axis on which both have a length the common part must have one; on which one has none, it must lie
        // inside the other.
        let meet = |a: (f64, f64), b: (f64, f64)| match (a.0 < a.1, b.0 < b.1) {
            (true, true) => a.0 < b.1 && b.0 < a.1,
            (false, true) => b.0 < a.0 && a.0 < b.1,
            (true, false) => a.0 < b.0 && b.0 < a.1,
            (false, false) => a.0 == b.0,
        };
        meet((self.min.x, self.max.x), (other.min.x, other.max.x))
            && meet((self.min.y, self.max.y), (other.min.y, other.max.y))
    }

    /// The other lies in it, and not only in its border.
    pub fn contains(&self, other: &Bounds) -> bool {
        self.covers(other) && self.insides_meet(other)
    }

    /// They meet, but their insides do not.
    pub fn touches(&self, other: &Bounds) -> bool {
        self.intersects(other) && !self.insides_meet(other)
    }

    /// They are of the same dimension, and so is what they have in common, which is none of them.
    pub fn overlaps(&self, other: &Bounds) -> bool {
        let common = self.intersection(other);
        let same = self.dimension() == other.dimension();
        same && common.is_some_and(|common| {
            common.dimension() == self.dimension() && self.insides_meet(other) && common != *self && common != *other
        })
    }

    /// As a shape: a point, a line or a polygon.
    pub fn to_shape(&self) -> Shape {
        let (min, max) = (self.min, self.max);
        match self.dimension() {
            0 => Shape::Point(Point(min)),
            1 => Shape::LineString(LineString(vec![min, max])),
            _ => {
                let corners = vec![min, Coord { x: max.x, y: min.y }, max, Coord { x: min.x, y: max.y }, min];
                Shape::Polygon(Polygon::new(LineString(corners), Vec::new()))
            }
        }
    }
}
