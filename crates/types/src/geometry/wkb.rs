//! Well-known binary: a byte for the byte order, four for the kind, then counts and coordinates.
//!
//! Each part of a MULTI… and of a collection says its byte order and kind again.

use super::{GeometryKind, MAX_NESTING, Malformed, Shape};
use geo_types::{Coord, GeometryCollection, LineString, MultiLineString, MultiPoint, MultiPolygon, Point, Polygon};

/// Bytes before the content: byte order and kind.
const HEADER: usize = 5;
const COUNT: usize = 4;
const COORD: usize = 16;

/// A shape of bytes in either byte order, all of which belong to it.
pub fn parse_wkb(bytes: &[u8]) -> Result<Shape, Malformed> {
    parse(bytes, false)
}

/// The same of what is stored, where the byte order is little endian.
pub(super) fn parse_stored(bytes: &[u8]) -> Result<Shape, Malformed> {
    parse(bytes, true)
}

fn parse(bytes: &[u8], little_only: bool) -> Result<Shape, Malformed> {
    let mut reader = Reader { bytes, little_only };
    let shape = reader.shape(0)?;
    if reader.bytes.is_empty() { Ok(shape) } else { Err(Malformed::Invalid) }
}

struct Reader<'a> {
    /// What has not been read.
    bytes: &'a [u8],
    little_only: bool,
}

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self.bytes.split_first_chunk::<N>().ok_or(Malformed::Invalid)?;
        self.bytes = rest;
        Ok(*taken)
    }

    fn number(&mut self, little: bool) -> Result<u32, Malformed> {
        let bytes = self.take()?;
        Ok(if little { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) })
    }

    /// A count of things of which each takes at least `each` bytes.
    fn count(&mut self, little: bool, least: usize, each: usize) -> Result<usize, Malformed> {
        let count = self.number(little)? as usize;
        let fits = count >= least && count.checked_mul(each).is_some_and(|bytes| bytes <= self.bytes.len());
        if fits { Ok(count) } else { Err(Malformed::Invalid) }
    }

    fn coord(&mut self, little: bool) -> Result<Coord, Malformed> {
        let (x, y) = (self.take()?, self.take()?);
        let read = if little { f64::from_le_bytes } else { f64::from_be_bytes };
        let (x, y) = (read(x), read(y));
        if x.is_finite() && y.is_finite() { Ok(Coord { x, y }) } else { Err(Malformed::Invalid) }
    }

    fn coords(&mut self, little: bool, least: usize) -> Result<Vec<Coord>, Malformed> {
        let count = self.count(little, least, COORD)?;
        (0..count).map(|_| self.coord(little)).collect()
    }

    /// Byte order and kind.
    fn header(&mut self) -> Result<(bool, GeometryKind), Malformed> {
        let [order] = self.take()?;
        let little = match order {
            1 => true,
            0 if self.little_only => return Err(Malformed::ByteOrder),
            0 => false,
            _ => return Err(Malformed::Invalid),
        };
        let kind = GeometryKind::from_code(self.number(little)?).filter(|kind| *kind != GeometryKind::Geometry);
        Ok((little, kind.ok_or(Malformed::Invalid)?))
    }

    fn line(&mut self, little: bool) -> Result<LineString, Malformed> {
        self.coords(little, 2).map(LineString)
    }

    fn polygon(&mut self, little: bool) -> Result<Polygon, Malformed> {
        let count = self.count(little, 1, COUNT + 4 * COORD)?;
        let mut rings = Vec::with_capacity(count);
        for _ in 0..count {
            let ring = self.coords(little, 4)?;
            if ring.first() != ring.last() {
                return Err(Malformed::Invalid);
            }
            rings.push(LineString(ring));
        }
        let exterior = rings.remove(0);
        Ok(Polygon::new(exterior, rings))
    }

    /// The parts of a MULTI…, each of the same kind.
    fn parts<T>(
        &mut self,
        little: bool,
        kind: GeometryKind,
        each: usize,
        read: impl Fn(&mut Self, bool) -> Result<T, Malformed>,
    ) -> Result<Vec<T>, Malformed> {
        let count = self.count(little, 1, HEADER + each)?;
        let mut parts = Vec::with_capacity(count);
        for _ in 0..count {
            let (little, part) = self.header()?;
            if part != kind {
                return Err(Malformed::Invalid);
            }
            parts.push(read(self, little)?);
        }
        Ok(parts)
    }

    fn shape(&mut self, depth: usize) -> Result<Shape, Malformed> {
        let (little, kind) = self.header()?;
        Ok(match kind {
            GeometryKind::Point => Shape::Point(Point(self.coord(little)?)),
            GeometryKind::LineString => Shape::LineString(self.line(little)?),
            GeometryKind::Polygon => Shape::Polygon(self.polygon(little)?),
            GeometryKind::MultiPoint => {
                Shape::MultiPoint(MultiPoint(
                    self.parts(little, GeometryKind::Point, COORD, |reader, little| reader.coord(little).map(Point))?,
                ))
            }
            GeometryKind::MultiLineString => Shape::MultiLineString(MultiLineString(self.parts(
                little,
                GeometryKind::LineString,
                COUNT + 2 * COORD,
                Self::line,
            )?)),
            GeometryKind::MultiPolygon => Shape::MultiPolygon(MultiPolygon(self.parts(
                little,
                GeometryKind::Polygon,
                2 * COUNT + 4 * COORD,
                Self::polygon,
            )?)),
            GeometryKind::Collection => {
                if depth >= MAX_NESTING {
                    return Err(Malformed::Invalid);
                }
                let count = self.count(little, 0, HEADER + COUNT)?;
                let parts = (0..count).map(|_| self.shape(depth + 1)).collect::<Result<Vec<_>, _>>()?;
                Shape::GeometryCollection(GeometryCollection(parts))
            }
            GeometryKind::Geometry => return Err(Malformed::Invalid),
        })
    }
}

/// Bytes of a shape.
pub(super) fn length(shape: &Shape) -> usize {
    let line = |line: &LineString| COUNT + line.0.len() * COORD;
    let polygon =
        |polygon: &Polygon| COUNT + line(polygon.exterior()) + polygon.interiors().iter().map(line).sum::<usize>();
    HEADER
        + match shape {
            Shape::Point(_) => COORD,
            Shape::LineString(l) => line(l),
            Shape::Polygon(p) => polygon(p),
            Shape::MultiPoint(points) => COUNT + points.0.len() * (HEADER + COORD),
            Shape::MultiLineString(lines) => COUNT + lines.0.iter().map(|l| HEADER + line(l)).sum::<usize>(),
            Shape::MultiPolygon(polygons) => COUNT + polygons.0.iter().map(|p| HEADER + polygon(p)).sum::<usize>(),
            Shape::GeometryCollection(parts) => COUNT + parts.0.iter().map(length).sum::<usize>(),
            Shape::Line(_) => COUNT + 2 * COORD,
            Shape::Rect(_) => 2 * COUNT + 5 * COORD,
            Shape::Triangle(_) => 2 * COUNT + 4 * COORD,
        }
}

/// Appends a shape, little endian.
pub fn append_wkb(shape: &Shape, out: &mut Vec<u8>) {
    let header = |kind: GeometryKind, out: &mut Vec<u8>| {
        out.push(1);
        out.extend_from_slice(&u32::from(kind as u8).to_le_bytes());
    };
    let count = |n: usize, out: &mut Vec<u8>| out.extend_from_slice(&(n as u32).to_le_bytes());
    let coord = |c: Coord, out: &mut Vec<u8>| {
        out.extend_from_slice(&c.x.to_le_bytes());
        out.extend_from_slice(&c.y.to_le_bytes());
    };
    let line = |line: &LineString, out: &mut Vec<u8>| {
        count(line.0.len(), out);
        line.0.iter().for_each(|c| coord(*c, out));
    };
    let polygon = |polygon: &Polygon, out: &mut Vec<u8>| {
        count(1 + polygon.interiors().len(), out);
        line(polygon.exterior(), out);
        polygon.interiors().iter().for_each(|ring| line(ring, out));
    };
    if let Shape::Line(_) | Shape::Rect(_) | Shape::Triangle(_) = shape {
        return append_wkb(&super::plain(shape.clone()), out);
    }
    header(GeometryKind::of(shape), out);
    match shape {
        Shape::Point(point) => coord(point.0, out),
        Shape::LineString(l) => line(l, out),
        Shape::Polygon(p) => polygon(p, out),
        Shape::MultiPoint(points) => {
            count(points.0.len(), out);
            for point in &points.0 {
                header(GeometryKind::Point, out);
                coord(point.0, out);
            }
        }
        Shape::MultiLineString(lines) => {
            count(lines.0.len(), out);
            for l in &lines.0 {
                header(GeometryKind::LineString, out);
                line(l, out);
            }
        }
        Shape::MultiPolygon(polygons) => {
            count(polygons.0.len(), out);
            for p in &polygons.0 {
                header(GeometryKind::Polygon, out);
                polygon(p, out);
            }
        }
        Shape::GeometryCollection(parts) => {
            count(parts.0.len(), out);
            parts.0.iter().for_each(|part| append_wkb(part, out));
        }
        Shape::Line(_) | Shape::Rect(_) | Shape::Triangle(_) => {}
    }
}
