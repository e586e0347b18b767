//! Spatial functions: MySQL 8's, over the geometries of [`rauk_types::geometry`].
//!
//! ```text
//! (here)    arguments and results: shapes in their reference systems
//! errors    what can be wrong with them
//! build     Point LineString Polygon … ST_MakeEnvelope
//! formats   ST_…FromText ST_…FromWKB ST_AsText ST_AsBinary
//! geojson   ST_AsGeoJSON ST_GeomFromGeoJSON      geohash   ST_GeoHash and back
//! whole     what any geometry has: ST_SRID ST_Dimension ST_Envelope …
//! parts     what points, lines, polygons and collections have
//! measure   ST_Area ST_Length ST_Distance … and distances of lines
//! along     ST_LineInterpolatePoint ST_PointAtDistance ST_Simplify
//! combine   ST_Union ST_Buffer ST_ConvexHull …    collect   the aggregate ST_Collect
//! relate    ST_Contains ST_Touches …              boxes     MBRContains …
//! validity  ST_IsValid ST_IsSimple ST_Validate
//! transform ST_Transform
//! geodesic  the computations on an ellipsoid
//! cast      CAST(… AS POINT) …
//! ```
//! **Arguments.** A geometry is bytes in the stored form, wherever they come from (3037, 3055). Its reference system has to be one that is known (3548), as
//! a function means something else on an ellipsoid than on a plane; in a geographic system the coordinates have to be in range (3731, 3732). Functions of
//! two geometries want them in one system (3033).
//!
//! **Geographic systems.** What is computed there is computed with geodesics on the ellipsoid: distances, lengths, areas, points along lines, whether shapes
//! meet, and how points lie to other shapes. What is not is refused (3618), and never computed as on a plane.
//!
//! **Results** are of one of the kinds that are stored; an empty one is `GEOMETRYCOLLECTION EMPTY`.

mod along;
mod boxes;
mod build;
pub(in crate::expr) mod cast;
pub(crate) mod collect;
mod combine;
mod errors;
mod formats;
mod geodesic;
mod geohash;
pub(in crate::expr) mod geojson;
mod measure;
mod parts;
mod relate;
mod transform;
mod validity;
mod whole;

#[cfg(test)]
mod tests;

use super::{Call, Derived, Function, Typing};
use crate::expr::Context;
use crate::expr::convert::Result;
use rauk_types::geometry::{GeometryKind, Malformed, ReferenceSystem, Shape, all_coords, is_empty, plain};
use rauk_types::{DataType, Geometry, MysqlError, Value};

pub const GROUPS: &[&[Function]] = &[
    build::FUNCTIONS,
    formats::FUNCTIONS,
    geojson::FUNCTIONS,
    geohash::FUNCTIONS,
    whole::FUNCTIONS,
    parts::FUNCTIONS,
    measure::FUNCTIONS,
    along::FUNCTIONS,
    combine::FUNCTIONS,
    relate::FUNCTIONS,
    boxes::FUNCTIONS,
    validity::FUNCTIONS,
    transform::FUNCTIONS,
];

/// Whether it is a function that says yes or no.
pub(crate) fn is_test(name: &str) -> bool {
    let tests = [relate::FUNCTIONS, boxes::FUNCTIONS].into_iter().flatten();
    tests.map(|function| function.name).any(|test| test == name)
        || matches!(name, "ST_ISVALID" | "ST_ISSIMPLE" | "ST_ISEMPTY" | "ST_ISCLOSED")
}

/// MySQL's name of a function that MariaDB has without `ST_`; any other name as it is.
pub(super) fn of_mariadb(name: &str) -> &str {
    match name {
        "ASTEXT" | "ASWKT" => "ST_ASTEXT",
        "ASBINARY" | "ASWKB" => "ST_ASBINARY",
        "GEOMFROMTEXT" | "GEOMETRYFROMTEXT" => "ST_GEOMFROMTEXT",
        "POINTFROMTEXT" => "ST_POINTFROMTEXT",
        "LINEFROMTEXT" | "LINESTRINGFROMTEXT" => "ST_LINEFROMTEXT",
        "POLYFROMTEXT" | "POLYGONFROMTEXT" => "ST_POLYFROMTEXT",
        "MPOINTFROMTEXT" | "MULTIPOINTFROMTEXT" => "ST_MPOINTFROMTEXT",
        "MLINEFROMTEXT" | "MULTILINESTRINGFROMTEXT" => "ST_MLINEFROMTEXT",
        "MPOLYFROMTEXT" | "MULTIPOLYGONFROMTEXT" => "ST_MPOLYFROMTEXT",
        "GEOMCOLLFROMTEXT" | "GEOMETRYCOLLECTIONFROMTEXT" => "ST_GEOMCOLLFROMTEXT",
        "GEOMFROMWKB" | "GEOMETRYFROMWKB" => "ST_GEOMFROMWKB",
        "POINTFROMWKB" => "ST_POINTFROMWKB",
        "LINEFROMWKB" | "LINESTRINGFROMWKB" => "ST_LINEFROMWKB",
        "POLYFROMWKB" | "POLYGONFROMWKB" => "ST_POLYFROMWKB",
        "MPOINTFROMWKB" | "MULTIPOINTFROMWKB" => "ST_MPOINTFROMWKB",
        "MLINEFROMWKB" | "MULTILINESTRINGFROMWKB" => "ST_MLINEFROMWKB",
        "MPOLYFROMWKB" | "MULTIPOLYGONFROMWKB" => "ST_MPOLYFROMWKB",
        "GEOMCOLLFROMWKB" | "GEOMETRYCOLLECTIONFROMWKB" => "ST_GEOMCOLLFROMWKB",
        "X" => "ST_X",
        "Y" => "ST_Y",
        "SRID" => "ST_SRID",
        "DIMENSION" => "ST_DIMENSION",
        "GEOMETRYTYPE" => "ST_GEOMETRYTYPE",
        "ISEMPTY" => "ST_ISEMPTY",
        "ISSIMPLE" => "ST_ISSIMPLE",
        "ISCLOSED" => "ST_ISCLOSED",
        "ENVELOPE" => "ST_ENVELOPE",
        "STARTPOINT" => "ST_STARTPOINT",
        "ENDPOINT" => "ST_ENDPOINT",
        "POINTN" => "ST_POINTN",
        "NUMPOINTS" => "ST_NUMPOINTS",
        "GLENGTH" => "ST_LENGTH",
        "AREA" => "ST_AREA",
        "CENTROID" => "ST_CENTROID",
        "BUFFER" => "ST_BUFFER",
        "CONVEXHULL" => "ST_CONVEXHULL",
        "EXTERIORRING" => "ST_EXTERIORRING",
        "INTERIORRINGN" => "ST_INTERIORRINGN",
        "NUMINTERIORRINGS" => "ST_NUMINTERIORRINGS",
        "NUMGEOMETRIES" => "ST_NUMGEOMETRIES",
        "GEOMETRYN" => "ST_GEOMETRYN",
        name => name,
    }
}

/// A geometry and what its coordinates mean.
pub(super) struct Located {
    pub shape: Shape,
    pub system: &'static ReferenceSystem,
}

impl Located {
    pub fn kind(&self) -> GeometryKind {
        GeometryKind::of(&self.shape)
    }

    pub fn is_empty(&self) -> bool {
        is_empty(&self.shape)
    }

    /// A result in the same system.
    pub fn with(&self, shape: impl Into<Shape>) -> Value {
        stored(self.system.srid, shape)
    }
}

/// A result: a geometry in its stored form.
pub(super) fn stored(srid: u32, shape: impl Into<Shape>) -> Value {
    Value::Bytes(Geometry::new(srid, plain(shape.into())).to_stored())
}

/// A geometry of bytes. Errors: 3037, 3055.
pub(super) fn read(bytes: &[u8], function: &str) -> Result<Geometry> {
    Geometry::stored(bytes).map_err(|malformed| match malformed {
        Malformed::Invalid => errors::invalid(function),
        Malformed::ByteOrder => errors::byte_order(),
    })
}

/// The system of an SRID. Error 3548.
pub(super) fn system(srid: u32) -> Result<&'static ReferenceSystem> {
    ReferenceSystem::find(srid).ok_or_else(|| errors::unknown_system(srid))
}

/// A geometry in its system, whose coordinates are in range. Errors: 3548, 3731, 3732.
pub(super) fn locate(geometry: Geometry, function: &str) -> Result<Located> {
    let system = system(geometry.srid)?;
    check_range(&geometry.shape, system, |axis, value| errors::parameter_out_of_range(axis, value, function))?;
    Ok(Located { shape: geometry.shape, system })
}

/// One of the two axes of a geographic system.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Axis {
    Longitude,
    Latitude,
}

/// Whether all coordinates are in range: longitudes in (-180, 180], latitudes in [-90, 90].
pub(super) fn check_range(
    shape: &Shape,
    system: &ReferenceSystem,
    error: impl Fn(Axis, f64) -> MysqlError,
) -> Result<()> {
    if !system.is_geographic() {
        return Ok(());
    }
    let mut wrong = None;
    all_coords(shape, &mut |c| {
        if !(c.x > -180.0 && c.x <= 180.0) {
            wrong = Some(error(Axis::Longitude, c.x));
        } else if !(-90.0..=90.0).contains(&c.y) {
            wrong = Some(error(Axis::Latitude, c.y));
        }
        wrong.is_none()
    });
    wrong.map_or(Ok(()), Err)
}

impl Call<'_, '_> {
    /// The name as errors print it.
    pub(super) fn lower_name(&self) -> String {
        self.name.to_ascii_lowercase()
    }

    pub(super) fn geometry(&self, argument: usize) -> Result<Geometry> {
        read(&self.bytes(argument), &self.lower_name())
    }

    pub(super) fn located(&self, argument: usize) -> Result<Located> {
        locate(self.geometry(argument)?, &self.lower_name())
    }

    /// Two geometries in one system. Error 3033.
    pub(super) fn pair(&self) -> Result<(Located, Located)> {
        let (first, second) = (self.geometry(0)?, self.geometry(1)?);
        if first.srid != second.srid {
            return Err(errors::different_srids(&self.lower_name(), first.srid, second.srid));
        }
        let name = self.lower_name();
        Ok((locate(first, &name)?, locate(second, &name)?))
    }

    /// A number that is finite. Error 1690 names it.
    pub(super) fn finite(&self, argument: usize, what: &str, context: &mut Context) -> Result<f64> {
        let number = self.f64(argument, context)?;
        if number.is_finite() { Ok(number) } else { Err(errors::out_of_range(what, &self.lower_name())) }
    }

    /// An SRID. Error 1690.
    pub(super) fn srid(&self, argument: usize, context: &mut Context) -> Result<u32> {
        let number = self.int(argument, context)?;
        u32::try_from(number).map_err(|_| errors::out_of_range("SRID", &self.lower_name()))
    }
}

/// Type rules.
mod rules {
    use super::*;

    fn of(kind: GeometryKind) -> Result<Derived> {
        Ok(Derived::new(DataType::geometry(kind, None)).nullable())
    }

    pub fn any(_: Typing<'_>) -> Result<Derived> {
        of(GeometryKind::Geometry)
    }

    pub fn point(_: Typing<'_>) -> Result<Derived> {
        of(GeometryKind::Point)
    }

    pub fn line(_: Typing<'_>) -> Result<Derived> {
        of(GeometryKind::LineString)
    }

    pub fn polygon(_: Typing<'_>) -> Result<Derived> {
        of(GeometryKind::Polygon)
    }

    pub fn multi_point(_: Typing<'_>) -> Result<Derived> {
        of(GeometryKind::MultiPoint)
    }

    pub fn multi_line(_: Typing<'_>) -> Result<Derived> {
        of(GeometryKind::MultiLineString)
    }

    pub fn multi_polygon(_: Typing<'_>) -> Result<Derived> {
        of(GeometryKind::MultiPolygon)
    }

    pub fn collection(_: Typing<'_>) -> Result<Derived> {
        of(GeometryKind::Collection)
    }

    /// A number, or with a second argument the point with it changed.
    pub fn number_or_point(t: Typing<'_>) -> Result<Derived> {
        if t.arguments.len() > 1 { point(t) } else { super::super::rules::double_or_null(t) }
    }

    pub fn truth(_: Typing<'_>) -> Result<Derived> {
        Ok(Derived::new(crate::expr::types::BOOLEAN).nullable())
    }

    pub fn text(t: Typing<'_>) -> Result<Derived> {
        Ok(t.connection_text(u32::MAX.into()).nullable())
    }
}

/// A function that may take long, or make much of little: it does not run under the guard of a partition elsewhere.
const fn heavy(
    name: &'static str,
    min: u8,
    max: u8,
    ty: fn(Typing<'_>) -> Result<Derived>,
    eval: fn(&Call<'_, '_>, &mut Context) -> Result<Value>,
) -> Function {
    Function::new(name, min, max, ty, eval).unbounded()
}

fn truth(value: bool) -> Value {
    Value::Int(value.into())
}

/// An empty result.
fn nothing() -> Shape {
    Shape::GeometryCollection(geo::GeometryCollection(Vec::new()))
}
