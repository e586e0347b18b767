//! Geometries: their kinds, their stored form, their text.
//!
//! A value is stored as MySQL stores it: four bytes with the number of its spatial reference system (SRID), little
//! endian, then the shape as well-known binary ([`wkb`](self)), little endian. Clients get these bytes. In memory a
//! shape is a tree of `geo_types`, on which the algorithms of `geo` work.
//!
//! In a geographic system ([`reference`]) the first coordinate that is stored is the longitude, whatever the order of
//! the system's axes, which is latitude first for 4326; text and binary forms that come and go are in the order of the
//! axes.
//!
//! **Bounds.** What a count promises is checked against the bytes that are there before anything is allocated, and collections nest at most
//! [`MAX_NESTING`] deep, so that no bytes and no text make a tree that is much larger than they are, or that overflows a stack.
//!
//! **Well formed** means: coordinates are finite; a line has two points, a ring four of which the last is the first; a polygon has a ring; only a
//! GEOMETRYCOLLECTION may be empty. Whether a polygon crosses itself is another question (`ST_IsValid`).

mod bounds;
pub mod reference;
mod wkb;
mod wkt;

#[cfg(test)]
mod tests;

pub use bounds::Bounds;
pub use reference::{ReferenceSystem, SystemKind};
pub use wkb::{append_wkb, parse_wkb};
pub use wkt::{append_wkt, parse_wkt};

use crate::error::{MysqlError, codes};
use crate::schema::Column;
use geo_types::Coord;
use serde::{Deserialize, Serialize};

/// A shape as a tree.
pub type Shape = geo_types::Geometry<f64>;

/// How deep collections may nest.
pub const MAX_NESTING: usize = 64;
/// Bytes of the SRID before the shape.
pub const SRID_BYTES: usize = 4;
/// Bytes of the shortest value: of an empty collection.
pub const MIN_BYTES: usize = SRID_BYTES + 9;
/// Bytes of a stored point: what a key on a POINT column holds.
pub const POINT_BYTES: usize = SRID_BYTES + 21;

/// Which shapes a column takes, and which a value is. The numbers are those of well-known binary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[repr(u8)]
pub enum GeometryKind {
    /// Of a column: any.
    Geometry = 0,
    Point = 1,
    LineString = 2,
    Polygon = 3,
    MultiPoint = 4,
    MultiLineString = 5,
    MultiPolygon = 6,
    Collection = 7,
}

impl GeometryKind {
    pub const ALL: [GeometryKind; 8] = [
        GeometryKind::Geometry,
        GeometryKind::Point,
        GeometryKind::LineString,
        GeometryKind::Polygon,
        GeometryKind::MultiPoint,
        GeometryKind::MultiLineString,
        GeometryKind::MultiPolygon,
        GeometryKind::Collection,
    ];

    pub fn from_code(code: u32) -> Option<GeometryKind> {
        GeometryKind::ALL.get(code as usize).copied()
    }

    /// The kind of this shape.
    pub fn of(shape: &Shape) -> GeometryKind {
        match shape {
            Shape::Point(_) => GeometryKind::Point,
            Shape::Line(_) | Shape::LineString(_) => GeometryKind::LineString,
            Shape::Polygon(_) | Shape::Rect(_) | Shape::Triangle(_) => GeometryKind::Polygon,
            Shape::MultiPoint(_) => GeometryKind::MultiPoint,
            Shape::MultiLineString(_) => GeometryKind::MultiLineString,
            Shape::MultiPolygon(_) => GeometryKind::MultiPolygon,
            Shape::GeometryCollection(_) => GeometryKind::Collection,
        }
    }

    /// The name of the column type, and of the kind in functions and errors (in upper case there).
    pub fn type_name(self) -> &'static str {
        match self {
            GeometryKind::Geometry => "geometry",
            GeometryKind::Point => "point",
            GeometryKind::LineString => "linestring",
            GeometryKind::Polygon => "polygon",
            GeometryKind::MultiPoint => "multipoint",
            GeometryKind::MultiLineString => "multilinestring",
            GeometryKind::MultiPolygon => "multipolygon",
            GeometryKind::Collection => "geomcollection",
        }
    }

    /// The name in well-known text.
    pub fn text_name(self) -> &'static str {
        match self {
            GeometryKind::Geometry => "GEOMETRY",
            GeometryKind::Point => "POINT",
            GeometryKind::LineString => "LINESTRING",
            GeometryKind::Polygon => "POLYGON",
            GeometryKind::MultiPoint => "MULTIPOINT",
            GeometryKind::MultiLineString => "MULTILINESTRING",
            GeometryKind::MultiPolygon => "MULTIPOLYGON",
            GeometryKind::Collection => "GEOMETRYCOLLECTION",
        }
    }

    /// Whether a column of this kind takes a value of that.
    pub fn takes(self, value: GeometryKind) -> bool {
        self == GeometryKind::Geometry || self == value
    }
}

/// What is wrong with bytes or a text that should be a geometry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    #[error("no well-formed geometry")]
    Invalid,
    /// Only the stored form says so: elsewhere both byte orders are read.
    #[error("the byte order is not little endian")]
    ByteOrder,
}

/// A shape and the system in which its coordinates are.
#[derive(Clone, Debug, PartialEq)]
pub struct Geometry {
    pub srid: u32,
    pub shape: Shape,
}

impl Geometry {
    pub fn new(srid: u32, shape: impl Into<Shape>) -> Geometry {
        Geometry { srid, shape: shape.into() }
    }

    pub fn kind(&self) -> GeometryKind {
        GeometryKind::of(&self.shape)
    }

    /// A value in its stored form.
    pub fn stored(bytes: &[u8]) -> Result<Geometry, Malformed> {
        let (srid, rest) = bytes.split_first_chunk::<SRID_BYTES>().ok_or(Malformed::Invalid)?;
        Ok(Geometry { srid: u32::from_le_bytes(*srid), shape: wkb::parse_stored(rest)? })
    }

    pub fn to_stored(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(SRID_BYTES + wkb::length(&self.shape));
        out.extend_from_slice(&self.srid.to_le_bytes());
        append_wkb(&self.shape, &mut out);
        out
    }

    pub fn is_empty(&self) -> bool {
        is_empty(&self.shape)
    }
}

/// Error 1416.
pub fn no_geometry() -> MysqlError {
    MysqlError::new(
        codes::CANT_CREATE_GEOMETRY_OBJECT,
        "Cannot get geometry object from data you send to the GEOMETRY field",
    )
}

/// Whether a column takes these bytes: a geometry of its kind, in its system where it has one. Errors: 1416, 3643.
pub fn check_column(column: &Column, bytes: &[u8]) -> Result<(), MysqlError> {
    let geometry = Geometry::stored(bytes).map_err(|_| no_geometry())?;
    if !column.ty.geometry_kind().is_some_and(|kind| kind.takes(geometry.kind())) {
        return Err(no_geometry());
    }
    let (own, name) = (geometry.srid, &column.name);
    match column.ty.reference_system() {
        Some(system) if system.srid != own => Err(MysqlError::new(
            codes::WRONG_SRID_FOR_COLUMN,
            format!(
                "The SRID of the geometry does not match the SRID of the column '{name}'. The SRID of the geometry is {own}, \
                 but the SRID of the column is {}. Consider changing the SRID of the geometry or the SRID property of the \
                 column.",
                system.srid
            ),
        )),
        _ => Ok(()),
    }
}

/// Whether a shape has no point: a collection of nothing, or of such.
pub fn is_empty(shape: &Shape) -> bool {
    matches!(shape, Shape::GeometryCollection(parts) if parts.iter().all(is_empty))
}

/// The shape with the coordinates of each point exchanged.
pub fn swapped(shape: Shape) -> Shape {
    mapped(shape, &|c| Coord { x: c.y, y: c.x })
}

/// The shape with each point put elsewhere.
pub fn mapped(shape: Shape, to: &impl Fn(Coord) -> Coord) -> Shape {
    let mut shape = plain(shape);
    map_in(&mut shape, to);
    shape
}

fn map_in(shape: &mut Shape, to: &impl Fn(Coord) -> Coord) {
    let line = |line: &mut geo_types::LineString| line.0.iter_mut().for_each(|c| *c = to(*c));
    let polygon = |polygon: &mut geo_types::Polygon| {
        polygon.exterior_mut(line);
        polygon.interiors_mut(|rings| rings.iter_mut().for_each(line));
    };
    match shape {
        Shape::Point(point) => point.0 = to(point.0),
        Shape::LineString(l) => line(l),
        Shape::Polygon(p) => polygon(p),
        Shape::MultiPoint(points) => points.0.iter_mut().for_each(|point| point.0 = to(point.0)),
        Shape::MultiLineString(lines) => lines.0.iter_mut().for_each(line),
        Shape::MultiPolygon(polygons) => polygons.0.iter_mut().for_each(polygon),
        Shape::GeometryCollection(parts) => parts.0.iter_mut().for_each(|part| map_in(part, to)),
        // Made plain before.
        Shape::Line(_) | Shape::Rect(_) | Shape::Triangle(_) => {}
    }
}

/// The shape as one of the seven kinds that are stored.
pub fn plain(shape: Shape) -> Shape {
    match shape {
        Shape::Line(line) => Shape::LineString(vec![line.start, line.end].into()),
        Shape::Rect(rect) => Shape::Polygon(rect.to_polygon()),
        Shape::Triangle(triangle) => Shape::Polygon(triangle.to_polygon()),
        shape => shape,
    }
}

/// Calls `visit` for each point of a shape, until it says no.
pub fn all_coords(shape: &Shape, visit: &mut impl FnMut(Coord) -> bool) -> bool {
    let polygon = |polygon: &geo_types::Polygon, visit: &mut dyn FnMut(Coord) -> bool| {
        polygon.exterior().0.iter().chain(polygon.interiors().iter().flat_map(|ring| ring.0.iter())).all(|c| visit(*c))
    };
    match shape {
        Shape::Point(point) => visit(point.0),
        Shape::LineString(line) => line.0.iter().all(|c| visit(*c)),
        Shape::Polygon(p) => polygon(p, visit),
        Shape::MultiPoint(points) => points.0.iter().all(|point| visit(point.0)),
        Shape::MultiLineString(lines) => lines.0.iter().all(|line| line.0.iter().all(|c| visit(*c))),
        Shape::MultiPolygon(polygons) => polygons.0.iter().all(|p| polygon(p, visit)),
        Shape::GeometryCollection(parts) => parts.0.iter().all(|part| all_coords(part, visit)),
        Shape::Line(line) => visit(line.start) && visit(line.end),
        Shape::Rect(rect) => visit(rect.min()) && visit(rect.max()),
        Shape::Triangle(triangle) => triangle.to_array().into_iter().all(visit),
    }
}
