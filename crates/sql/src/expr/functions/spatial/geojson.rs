//! GeoJSON: geometries as documents and back.
//!
//! Coordinates are longitude, latitude, as they are stored. `ST_AsGeoJSON(g [, digits [, options]])`: option 1 adds the
//! rectangle, 2 a short name of the system, 4 a long one. `ST_GeomFromGeoJSON(document [, options [, srid]])`: the SRID
//! is the argument's, else that of `crs`, else 4326. Options 2, 3 and 4 cut further dimensions off, which are an error
//! otherwise (3073).

use super::{Call, Function, check_range, errors, nothing, rules, stored, system};
use crate::expr::Context;
use crate::expr::convert::Result;
use crate::expr::json;
use geo::{Coord, GeometryCollection, LineString, MultiLineString, MultiPoint, MultiPolygon, Point, Polygon};
use rauk_types::error::codes;
use rauk_types::geometry::{Bounds, GeometryKind, MAX_NESTING, ReferenceSystem, Shape, is_empty, plain};
use rauk_types::json::{Json, JsonRef, Members};
use rauk_types::{DataType, Geometry, MysqlError, TypeKind, Value, ValueRef};
use std::borrow::Cow;

pub const FUNCTIONS: &[Function] = &[
    Function::new(
        "ST_ASGEOJSON",
        1,
        3,
        |_| Ok(super::Derived::new(DataType::new(TypeKind::Json)).nullable()),
        as_document,
    ),
    Function::new("ST_GEOMFROMGEOJSON", 1, 3, rules::any, from_document),
];

const BBOX: i64 = 1;
const SHORT_NAME: i64 = 2;
const LONG_NAME: i64 = 4;
const ALL_OPTIONS: i64 = BBOX | SHORT_NAME | LONG_NAME;
/// Digits behind the point that mean all of them.
const ALL_DIGITS: i64 = 16;

/// Errors: 1690 for digits and options.
fn as_document(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    let name = c.lower_name();
    let geometry = c.geometry(0)?;
    let digits = if c.has(1) { c.int(1, context)? } else { i64::from(i32::MAX) };
    if !(0..=i64::from(i32::MAX)).contains(&digits) {
        return Err(errors::out_of_range("max decimal digits", &name));
    }
    let options = if c.has(2) { c.int(2, context)? } else { 0 };
    if !(0..=ALL_OPTIONS).contains(&options) {
        return Err(errors::out_of_range("options", &name));
    }
    match ReferenceSystem::find(geometry.srid) {
        Some(system) => {
            check_range(&geometry.shape, system, |axis, value| errors::parameter_out_of_range(axis, value, &name))?
        }
        None => errors::warn_axis_order(geometry.srid, context),
    }
    let digits = (digits < ALL_DIGITS).then_some(digits as i32);
    let mut members = document_members(&geometry.shape, digits, options & BBOX != 0);
    if options & (SHORT_NAME | LONG_NAME) != 0 && geometry.srid != 0 {
        let system = match options & LONG_NAME {
            0 => format!("EPSG:{}", geometry.srid),
            _ => format!("urn:ogc:def:crs:EPSG::{}", geometry.srid),
        };
        let properties = Json::Object(Members::new(vec![("name".into(), Json::String(system.into()))]));
        let crs = vec![("type".into(), text("name")), ("properties".into(), properties)];
        members.push(("crs".into(), Json::Object(Members::new(crs))));
    }
    json::encoded(&Json::Object(Members::new(members)), context)
}

/// The part of a document that a stored geometry is; `None`: the bytes are no geometry.
pub(in crate::expr) fn part(bytes: &[u8]) -> Option<Json<'static>> {
    Geometry::stored(bytes).ok().map(|geometry| of_shape(&geometry.shape, None, false))
}

fn text(text: &'static str) -> Json<'static> {
    Json::String(Cow::Borrowed(text))
}

fn of_shape(shape: &Shape, digits: Option<i32>, bbox: bool) -> Json<'static> {
    Json::Object(Members::new(document_members(shape, digits, bbox)))
}

type Pairs = Vec<(Cow<'static, str>, Json<'static>)>;

fn document_members(shape: &Shape, digits: Option<i32>, bbox: bool) -> Pairs {
    let number = |v: f64| {
        let rounded = digits.map_or(v, |digits| {
            let power = 10f64.powi(digits);
            let rounded = (v * power).round_ties_even() / power;
            if rounded.is_finite() { rounded } else { v }
        });
        Json::Double(if rounded == 0.0 { 0.0 } else { rounded })
    };
    let coord = |c: &Coord| Json::Array(vec![number(c.x), number(c.y)]);
    let line = |line: &LineString| Json::Array(line.0.iter().map(coord).collect());
    let polygon = |polygon: &Polygon| {
        Json::Array(std::iter::once(polygon.exterior()).chain(polygon.interiors()).map(line).collect())
    };
    let (name, coordinates) = match shape {
        Shape::Point(point) => ("Point", coord(&point.0)),
        Shape::LineString(l) => ("LineString", line(l)),
        Shape::Polygon(p) => ("Polygon", polygon(p)),
        Shape::MultiPoint(points) => {
            ("MultiPoint", Json::Array(points.0.iter().map(|point| coord(&point.0)).collect()))
        }
        Shape::MultiLineString(lines) => ("MultiLineString", Json::Array(lines.0.iter().map(line).collect())),
        Shape::MultiPolygon(polygons) => ("MultiPolygon", Json::Array(polygons.0.iter().map(polygon).collect())),
        Shape::GeometryCollection(parts) => {
            let parts = parts.0.iter().map(|part| of_shape(part, digits, bbox)).collect();
            ("GeometryCollection", Json::Array(parts))
        }
        other => return document_members(&plain(other.clone()), digits, bbox),
    };
    let of = if name == "GeometryCollection" { "geometries" } else { "coordinates" };
    let mut members: Pairs = vec![("type".into(), text(name)), (of.into(), coordinates)];
    if let Some(bounds) = Bounds::of(shape).filter(|_| bbox && !is_empty(shape)) {
        let sides = [bounds.min.x, bounds.min.y, bounds.max.x, bounds.max.y];
        members.push(("bbox".into(), Json::Array(sides.into_iter().map(number).collect())));
    }
    members
}

/// What is read from a document.
struct Reading<'a> {
    function: &'a str,
    /// Further dimensions are an error.
    strict: bool,
    /// What a `crs` said.
    srid: Option<u32>,
}

/// Errors: 3141, 3070 to 3073, 1690, 3548, 3616, 3617.
fn from_document(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    let name = c.lower_name();
    let options = if c.has(1) { c.int(1, context)? } else { 1 };
    if !(1..=4).contains(&options) {
        return Err(errors::wrong_value("options", &options.to_string(), &name));
    }
    let given = if c.has(2) { Some(c.srid(2, context)?) } else { None };
    let stored_document;
    let mut root = match c.value(0) {
        ValueRef::Json(document) => {
            stored_document = json::normal(document, context)?.get().to_stored();
            Json::Stored(JsonRef::stored(&stored_document))
        }
        ValueRef::Str(document) => {
            stored_document =
                json::counted(&mut context.budget, |take| json::parsed(document, 1, &name, take)?.encode(take))?;
            Json::Stored(JsonRef::stored(&stored_document))
        }
        _ => return Err(errors::wrong_type("geojson", &name)),
    };
    let mut reading = Reading { function: &name, strict: options == 1, srid: None };
    let Some(shape) = reading.object(&mut root, 0)? else { return Ok(Value::Null) };
    let srid = given.or(reading.srid).unwrap_or(4326);
    check_range(&shape, system(srid)?, |axis, value| errors::coordinate_out_of_range(axis, value, &name))?;
    Ok(stored(srid, shape))
}

impl Reading<'_> {
    fn missing(&self, member: &str) -> MysqlError {
        MysqlError::new(
            codes::INVALID_GEOJSON_MISSING_MEMBER,
            format!("Invalid GeoJSON data provided to function {}: Missing required member '{member}'", self.function),
        )
    }

    fn wrong(&self, member: &str, expected: &str) -> MysqlError {
        MysqlError::new(
            codes::INVALID_GEOJSON_WRONG_TYPE,
            format!(
                "Invalid GeoJSON data provided to function {}: Member '{member}' must be of type '{expected}'",
                self.function
            ),
        )
    }

    fn invalid(&self) -> MysqlError {
        MysqlError::new(
            codes::INVALID_GEOJSON_UNSPECIFIED,
            format!("Invalid GeoJSON data provided to function {}", self.function),
        )
    }

    fn nested(&self, depth: usize) -> Result<()> {
        if depth > MAX_NESTING { Err(self.invalid()) } else { Ok(()) }
    }

    /// A member of an object, which names are found in any case.
    fn member<'m, 'a>(&self, members: &'m mut [(Cow<'a, str>, Json<'a>)], name: &str) -> Option<&'m mut Json<'a>> {
        members.iter_mut().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// A geometry, a feature or a collection of features; `None` for a feature without a geometry.
    fn object(&mut self, json: &mut Json<'_>, depth: usize) -> Result<Option<Shape>> {
        self.nested(depth)?;
        let Json::Object(members) = std::mem::replace(json.open()?, Json::Null) else { return Err(self.invalid()) };
        let mut members = members.into_list();
        let kind = match self.member(&mut members, "type") {
            None => return Err(self.missing("type")),
            Some(kind) => match kind.open()? {
                Json::String(kind) => kind.to_ascii_lowercase(),
                _ => return Err(self.wrong("type", "string")),
            },
        };
        if let Some(crs) = self.member(&mut members, "crs") {
            self.system(crs)?;
        }
        match kind.as_str() {
            "feature" => {
                if self.member(&mut members, "properties").is_none() {
                    return Err(self.missing("properties"));
                }
                let Some(geometry) = self.member(&mut members, "geometry") else {
                    return Err(self.missing("geometry"));
                };
                match geometry.open()? {
                    Json::Null => Ok(None),
                    Json::Object(_) => self.object(geometry, depth + 1),
                    _ => Err(self.wrong("geometry", "object")),
                }
            }
            "featurecollection" => {
                let features = self.array(&mut members, "features")?;
                let mut parts = Vec::new();
                for mut feature in features {
                    if !matches!(feature.open()?, Json::Object(_)) {
                        return Err(self.wrong("features", "array"));
                    }
                    parts.extend(self.object(&mut feature, depth + 1)?);
                }
                Ok(Some(if parts.is_empty() {
                    nothing()
                } else {
                    Shape::GeometryCollection(GeometryCollection(parts))
                }))
            }
            "geometrycollection" => {
                let geometries = self.array(&mut members, "geometries")?;
                let mut parts = Vec::new();
                for mut geometry in geometries {
                    parts.extend(self.object(&mut geometry, depth + 1)?);
                }
                Ok(Some(Shape::GeometryCollection(GeometryCollection(parts))))
            }
            kind => {
                let kind = GeometryKind::ALL.into_iter().find(|known| known.type_name() == kind);
                let kind = kind.filter(|kind| !matches!(kind, GeometryKind::Geometry | GeometryKind::Collection));
                let kind = kind.ok_or_else(|| self.invalid())?;
                let coordinates = self.array(&mut members, "coordinates")?;
                self.shape(kind, coordinates).map(Some)
            }
        }
    }

    /// A member that is an array.
    fn array<'a>(&self, members: &mut [(Cow<'a, str>, Json<'a>)], name: &str) -> Result<Vec<Json<'a>>> {
        let Some(value) = self.member(members, name) else { return Err(self.missing(name)) };
        match std::mem::replace(value.open()?, Json::Null) {
            Json::Array(items) => Ok(items),
            _ => Err(self.wrong(name, "array")),
        }
    }

    fn items<'a>(&self, json: &mut Json<'a>) -> Result<Vec<Json<'a>>> {
        match std::mem::replace(json.open()?, Json::Null) {
            Json::Array(items) => Ok(items),
            _ => Err(self.wrong("coordinates", "array")),
        }
    }

    fn coord(&self, items: Vec<Json<'_>>) -> Result<Coord> {
        let expected = if self.strict { 2 } else { items.len().max(2) };
        if items.len() < 2 || items.len() != expected {
            let found = items.len();
            return Err(MysqlError::new(
                codes::DIMENSION_UNSUPPORTED,
                format!(
                    "Unsupported number of coordinate dimensions in function {}: Found {found}, expected 2",
                    self.function
                ),
            ));
        }
        let mut numbers = [0.0; 2];
        for (mut item, number) in items.into_iter().zip(&mut numbers) {
            *number = match item.open()? {
                Json::Int(v) => *v as f64,
                Json::UInt(v) => *v as f64,
                Json::Double(v) => *v,
                Json::Decimal(v) => v.to_f64(),
                _ => return Err(self.wrong("coordinates", "array of numbers")),
            };
        }
        Ok(Coord { x: numbers[0], y: numbers[1] })
    }

    fn coords(&self, items: Vec<Json<'_>>, least: usize) -> Result<LineString> {
        let coords: Vec<Coord> =
            items.into_iter().map(|mut item| self.coord(self.items(&mut item)?)).collect::<Result<_>>()?;
        if coords.len() < least { Err(self.invalid()) } else { Ok(LineString(coords)) }
    }

    fn polygon(&self, items: Vec<Json<'_>>) -> Result<Polygon> {
        let mut rings = Vec::with_capacity(items.len());
        for mut item in items {
            let ring = self.coords(self.items(&mut item)?, 4)?;
            if !ring.is_closed() {
                return Err(self.invalid());
            }
            rings.push(ring);
        }
        if rings.is_empty() {
            return Err(self.invalid());
        }
        let exterior = rings.remove(0);
        Ok(Polygon::new(exterior, rings))
    }

    fn shape(&self, kind: GeometryKind, items: Vec<Json<'_>>) -> Result<Shape> {
        let many = |items: &Vec<Json<'_>>| if items.is_empty() { Err(self.invalid()) } else { Ok(()) };
        Ok(match kind {
            GeometryKind::Point => Shape::Point(Point(self.coord(items)?)),
            GeometryKind::LineString => Shape::LineString(self.coords(items, 2)?),
            GeometryKind::Polygon => Shape::Polygon(self.polygon(items)?),
            GeometryKind::MultiPoint => {
                many(&items)?;
                Shape::MultiPoint(MultiPoint(self.coords(items, 1)?.0.into_iter().map(Point).collect()))
            }
            GeometryKind::MultiLineString => {
                many(&items)?;
                let lines = items.into_iter().map(|mut item| self.coords(self.items(&mut item)?, 2));
                Shape::MultiLineString(MultiLineString(lines.collect::<Result<_>>()?))
            }
            GeometryKind::MultiPolygon => {
                many(&items)?;
                let polygons = items.into_iter().map(|mut item| self.polygon(self.items(&mut item)?));
                Shape::MultiPolygon(MultiPolygon(polygons.collect::<Result<_>>()?))
            }
            GeometryKind::Geometry | GeometryKind::Collection => return Err(self.invalid()),
        })
    }

    /// The system that a `crs` names. Links are not followed.
    fn system(&mut self, crs: &mut Json<'_>) -> Result<()> {
        let members = match std::mem::replace(crs.open()?, Json::Null) {
            Json::Null => return Ok(()),
            Json::Object(members) => members,
            _ => return Err(self.wrong("crs", "object")),
        };
        let mut members = members.into_list();
        let kind = match self.member(&mut members, "type") {
            None => return Err(self.missing("type")),
            Some(kind) => match kind.open()? {
                Json::String(kind) => kind.to_string(),
                _ => return Err(self.wrong("type", "string")),
            },
        };
        let properties = match self.member(&mut members, "properties") {
            None => return Err(self.missing("properties")),
            Some(properties) => match std::mem::replace(properties.open()?, Json::Null) {
                Json::Object(properties) => properties,
                _ => return Err(self.wrong("properties", "object")),
            },
        };
        if !kind.eq_ignore_ascii_case("name") {
            return Err(self.invalid());
        }
        let mut properties = properties.into_list();
        let name = match self.member(&mut properties, "name") {
            None => return Err(self.missing("name")),
            Some(name) => match name.open()? {
                Json::String(name) => name.to_string(),
                _ => return Err(self.wrong("name", "string")),
            },
        };
        let srid = match name.as_str() {
            "urn:ogc:def:crs:OGC:1.3:CRS84" => Some(4326),
            name => ["urn:ogc:def:crs:EPSG::", "EPSG:"]
                .iter()
                .find_map(|prefix| name.strip_prefix(prefix))
                .and_then(|number| number.parse::<u32>().ok())
                .filter(|srid| *srid > 0),
        };
        let srid = srid.ok_or_else(|| self.invalid())?;
        if self.srid.replace(srid).is_some_and(|before| before != srid) {
            return Err(self.invalid());
        }
        Ok(())
    }
}
