//! Well-known text: `POINT(1 2)`, `POLYGON((0 0,0 1,1 1,0 0))`.
//!
//! Read: names in any case, spaces anywhere, the points of a MULTIPOINT with and without parentheses, an empty
//! collection as `GEOMETRYCOLLECTION()` and `GEOMETRYCOLLECTION EMPTY`. Written: as MySQL writes it, numbers with as
//! many digits as tell them apart.

use super::{GeometryKind, MAX_NESTING, Malformed, Shape, plain};
use crate::format::{append_f64, parse_double_prefix};
use geo_types::{Coord, GeometryCollection, LineString, MultiLineString, MultiPoint, MultiPolygon, Point, Polygon};

/// The shape that a text says.
pub fn parse_wkt(text: &[u8]) -> Result<Shape, Malformed> {
    let mut reader = Reader { rest: text };
    let shape = reader.shape(0)?;
    reader.skip();
    if reader.rest.is_empty() { Ok(shape) } else { Err(Malformed::Invalid) }
}

struct Reader<'a> {
    /// What has not been read.
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn skip(&mut self) {
        self.rest = self.rest.trim_ascii_start();
    }

    /// Reads `symbol` if it is next.
    fn accept(&mut self, symbol: u8) -> bool {
        self.skip();
        match self.rest.split_first() {
            Some((first, rest)) if *first == symbol => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    fn expect(&mut self, symbol: u8) -> Result<(), Malformed> {
        if self.accept(symbol) { Ok(()) } else { Err(Malformed::Invalid) }
    }

    fn word(&mut self) -> &'a [u8] {
        self.skip();
        let end = self.rest.iter().position(|b| !b.is_ascii_alphabetic()).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    fn number(&mut self) -> Result<f64, Malformed> {
        self.skip();
        let parsed = parse_double_prefix(self.rest);
        let number = parsed.consumed > 0 && !parsed.overflow && parsed.value.is_finite();
        if !number {
            return Err(Malformed::Invalid);
        }
        self.rest = &self.rest[parsed.consumed..];
        // Behind a number stands a space or a symbol.
        match self.rest.first() {
            Some(b) if !b.is_ascii_whitespace() && !matches!(b, b',' | b')') => Err(Malformed::Invalid),
            _ => Ok(parsed.value),
        }
    }

    fn coord(&mut self) -> Result<Coord, Malformed> {
        Ok(Coord { x: self.number()?, y: self.number()? })
    }

    /// `(item, …)`
    fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Result<T, Malformed>) -> Result<Vec<T>, Malformed> {
        self.expect(b'(')?;
        let mut items = Vec::new();
        loop {
            items.push(item(self)?);
            if !self.accept(b',') {
                self.expect(b')')?;
                return Ok(items);
            }
        }
    }

    fn line(&mut self) -> Result<LineString, Malformed> {
        let coords = self.list(Self::coord)?;
        if coords.len() < 2 { Err(Malformed::Invalid) } else { Ok(LineString(coords)) }
    }

    fn polygon(&mut self) -> Result<Polygon, Malformed> {
        let mut rings = self.list(|reader| {
            let ring = reader.list(Self::coord)?;
            let closed = ring.len() >= 4 && ring.first() == ring.last();
            if closed { Ok(LineString(ring)) } else { Err(Malformed::Invalid) }
        })?;
        let exterior = rings.remove(0);
        Ok(Polygon::new(exterior, rings))
    }

    /// A point of a MULTIPOINT.
    fn member(&mut self) -> Result<Point, Malformed> {
        let inside = self.accept(b'(');
        let coord = self.coord()?;
        if inside {
            self.expect(b')')?;
        }
        Ok(Point(coord))
    }

    fn shape(&mut self, depth: usize) -> Result<Shape, Malformed> {
        let word = self.word();
        let is = |kind: GeometryKind| word.eq_ignore_ascii_case(kind.text_name().as_bytes());
        if is(GeometryKind::Point) {
            self.expect(b'(')?;
            let coord = self.coord()?;
            self.expect(b')')?;
            Ok(Shape::Point(Point(coord)))
        } else if is(GeometryKind::LineString) {
            self.line().map(Shape::LineString)
        } else if is(GeometryKind::Polygon) {
            self.polygon().map(Shape::Polygon)
        } else if is(GeometryKind::MultiPoint) {
            self.list(Self::member).map(|points| Shape::MultiPoint(MultiPoint(points)))
        } else if is(GeometryKind::MultiLineString) {
            self.list(Self::line).map(|lines| Shape::MultiLineString(MultiLineString(lines)))
        } else if is(GeometryKind::MultiPolygon) {
            self.list(Self::polygon).map(|polygons| Shape::MultiPolygon(MultiPolygon(polygons)))
        } else if is(GeometryKind::Collection) || word.eq_ignore_ascii_case(b"GEOMCOLLECTION") {
            self.collection(depth)
        } else {
            Err(Malformed::Invalid)
        }
    }

    fn collection(&mut self, depth: usize) -> Result<Shape, Malformed> {
        if depth >= MAX_NESTING {
            return Err(Malformed::Invalid);
        }
        let before = self.rest;
        if self.word().eq_ignore_ascii_case(b"EMPTY") {
            return Ok(Shape::GeometryCollection(GeometryCollection(Vec::new())));
        }
        self.rest = before;
        self.expect(b'(')?;
        if self.accept(b')') {
            return Ok(Shape::GeometryCollection(GeometryCollection(Vec::new())));
        }
        let mut parts = Vec::new();
        loop {
            parts.push(self.shape(depth + 1)?);
            if !self.accept(b',') {
                self.expect(b')')?;
                return Ok(Shape::GeometryCollection(GeometryCollection(parts)));
            }
        }
    }
}

/// Appends a shape as text.
pub fn append_wkt(shape: &Shape, out: &mut Vec<u8>) {
    if let Shape::Line(_) | Shape::Rect(_) | Shape::Triangle(_) = shape {
        return append_wkt(&plain(shape.clone()), out);
    }
    out.extend_from_slice(GeometryKind::of(shape).text_name().as_bytes());
    match shape {
        Shape::Point(point) => list(&[point.0], coord, out),
        Shape::LineString(l) => line(l, out),
        Shape::Polygon(p) => polygon(p, out),
        Shape::MultiPoint(points) => list(&points.0, |point, out| list(&[point.0], coord, out), out),
        Shape::MultiLineString(lines) => list(&lines.0, line, out),
        Shape::MultiPolygon(polygons) => list(&polygons.0, polygon, out),
        Shape::GeometryCollection(parts) if parts.0.is_empty() => out.extend_from_slice(b" EMPTY"),
        Shape::GeometryCollection(parts) => list(&parts.0, append_wkt, out),
        Shape::Line(_) | Shape::Rect(_) | Shape::Triangle(_) => {}
    }
}

fn list<T>(items: &[T], mut item: impl FnMut(&T, &mut Vec<u8>), out: &mut Vec<u8>) {
    out.push(b'(');
    for (at, one) in items.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        item(one, out);
    }
    out.push(b')');
}

fn coord(c: &Coord, out: &mut Vec<u8>) {
    append_f64(c.x, out);
    out.push(b' ');
    append_f64(c.y, out);
}

fn line(line: &LineString, out: &mut Vec<u8>) {
    list(&line.0, coord, out);
}

fn polygon(polygon: &Polygon, out: &mut Vec<u8>) {
    out.push(b'(');
    line(polygon.exterior(), out);
    for ring in polygon.interiors() {
        out.push(b',');
        line(ring, out);
    }
    out.push(b')');
}
