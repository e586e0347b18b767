//! Text and binary forms, which come and go in the order of the system's axes: latitude first for 4326, unless
//! `axis-order` says otherwise.

use super::{Call, Derived, Function, Typing, check_range, errors, rules, stored, system};
use crate::expr::Context;
use crate::expr::convert::Result;
use crate::expr::types::text_type;
use rauk_types::error::codes;
use rauk_types::geometry::{
    GeometryKind, ReferenceSystem, Shape, append_wkb, append_wkt, parse_wkb, parse_wkt, swapped,
};
use rauk_types::{Collation, MysqlError, Value};

type Eval = fn(&Call<'_, '_>, &mut Context) -> Result<Value>;
type Rule = fn(Typing<'_>) -> Result<Derived>;

const fn reads(name: &'static str, ty: Rule, eval: Eval) -> Function {
    Function::new(name, 1, 3, ty, eval)
}

const fn binary_form(name: &'static str) -> Function {
    let ty: Rule = |_| Ok(Derived::new(text_type(u32::MAX.into(), Collation::Binary)).nullable());
    Function::new(name, 1, 2, ty, as_binary)
}

use GeometryKind as Kind;

pub const FUNCTIONS: &[Function] = &[
    reads("ST_GEOMFROMTEXT", rules::any, |c, x| from_text(c, x, Kind::Geometry)),
    reads("ST_GEOMETRYFROMTEXT", rules::any, |c, x| from_text(c, x, Kind::Geometry)),
    reads("ST_POINTFROMTEXT", rules::point, |c, x| from_text(c, x, Kind::Point)),
    reads("ST_LINEFROMTEXT", rules::line, |c, x| from_text(c, x, Kind::LineString)),
    reads("ST_LINESTRINGFROMTEXT", rules::line, |c, x| from_text(c, x, Kind::LineString)),
    reads("ST_POLYFROMTEXT", rules::polygon, |c, x| from_text(c, x, Kind::Polygon)),
    reads("ST_POLYGONFROMTEXT", rules::polygon, |c, x| from_text(c, x, Kind::Polygon)),
    reads("ST_MPOINTFROMTEXT", rules::multi_point, |c, x| from_text(c, x, Kind::MultiPoint)),
    reads("ST_MULTIPOINTFROMTEXT", rules::multi_point, |c, x| from_text(c, x, Kind::MultiPoint)),
    reads("ST_MLINEFROMTEXT", rules::multi_line, |c, x| from_text(c, x, Kind::MultiLineString)),
    reads("ST_MULTILINESTRINGFROMTEXT", rules::multi_line, |c, x| from_text(c, x, Kind::MultiLineString)),
    reads("ST_MPOLYFROMTEXT", rules::multi_polygon, |c, x| from_text(c, x, Kind::MultiPolygon)),
    reads("ST_MULTIPOLYGONFROMTEXT", rules::multi_polygon, |c, x| from_text(c, x, Kind::MultiPolygon)),
    reads("ST_GEOMCOLLFROMTXT", rules::collection, |c, x| from_text(c, x, Kind::Collection)),
    reads("ST_GEOMCOLLFROMTEXT", rules::collection, |c, x| from_text(c, x, Kind::Collection)),
    reads("ST_GEOMETRYCOLLECTIONFROMTEXT", rules::collection, |c, x| from_text(c, x, Kind::Collection)),
    reads("ST_GEOMFROMWKB", rules::any, |c, x| from_binary(c, x, Kind::Geometry)),
    reads("ST_GEOMETRYFROMWKB", rules::any, |c, x| from_binary(c, x, Kind::Geometry)),
    reads("ST_POINTFROMWKB", rules::point, |c, x| from_binary(c, x, Kind::Point)),
    reads("ST_LINEFROMWKB", rules::line, |c, x| from_binary(c, x, Kind::LineString)),
    reads("ST_LINESTRINGFROMWKB", rules::line, |c, x| from_binary(c, x, Kind::LineString)),
    reads("ST_POLYFROMWKB", rules::polygon, |c, x| from_binary(c, x, Kind::Polygon)),
    reads("ST_POLYGONFROMWKB", rules::polygon, |c, x| from_binary(c, x, Kind::Polygon)),
    reads("ST_MPOINTFROMWKB", rules::multi_point, |c, x| from_binary(c, x, Kind::MultiPoint)),
    reads("ST_MULTIPOINTFROMWKB", rules::multi_point, |c, x| from_binary(c, x, Kind::MultiPoint)),
    reads("ST_MLINEFROMWKB", rules::multi_line, |c, x| from_binary(c, x, Kind::MultiLineString)),
    reads("ST_MULTILINESTRINGFROMWKB", rules::multi_line, |c, x| from_binary(c, x, Kind::MultiLineString)),
    reads("ST_MPOLYFROMWKB", rules::multi_polygon, |c, x| from_binary(c, x, Kind::MultiPolygon)),
    reads("ST_MULTIPOLYGONFROMWKB", rules::multi_polygon, |c, x| from_binary(c, x, Kind::MultiPolygon)),
    reads("ST_GEOMCOLLFROMWKB", rules::collection, |c, x| from_binary(c, x, Kind::Collection)),
    reads("ST_GEOMETRYCOLLECTIONFROMWKB", rules::collection, |c, x| from_binary(c, x, Kind::Collection)),
    Function::new("ST_ASTEXT", 1, 2, rules::text, as_text),
    Function::new("ST_ASWKT", 1, 2, rules::text, as_text),
    binary_form("ST_ASBINARY"),
    binary_form("ST_ASWKB"),
];

fn from_text(c: &Call<'_, '_>, context: &mut Context, wanted: Kind) -> Result<Value> {
    let shape = parse_wkt(&c.bytes(0)).map_err(|_| errors::invalid(&c.lower_name()))?;
    imported(c, context, shape, wanted)
}

/// A value that is a geometry already keeps its SRID, as long as no other is given.
fn from_binary(c: &Call<'_, '_>, context: &mut Context, wanted: Kind) -> Result<Value> {
    let name = c.lower_name();
    if c.argument_type(0).is_geometry() {
        let geometry = c.geometry(0)?;
        if !wanted.takes(geometry.kind()) {
            return Err(errors::unexpected_type("WKB", geometry.kind(), &name));
        }
        let srid = if c.has(1) { c.srid(1, context)? } else { geometry.srid };
        check_range(&geometry.shape, system(srid)?, |axis, value| errors::coordinate_out_of_range(axis, value, &name))?;
        return Ok(stored(srid, geometry.shape));
    }
    let shape = parse_wkb(&c.bytes(0)).map_err(|_| errors::invalid(&name))?;
    imported(c, context, shape, wanted)
}

/// A shape that was read, in the system of the second argument. Errors: 3516, 3548, 3616, 3617.
fn imported(c: &Call<'_, '_>, context: &mut Context, shape: Shape, wanted: Kind) -> Result<Value> {
    let name = c.lower_name();
    let kind = Kind::of(&shape);
    let form = if name.ends_with("wkb") { "WKB" } else { "WKT" };
    if !wanted.takes(kind) {
        return Err(errors::unexpected_type(form, kind, &name));
    }
    let srid = if c.has(1) { c.srid(1, context)? } else { 0 };
    let system = system(srid)?;
    let order = if c.has(2) { axis_order(&c.text(2), &name)? } else { AxisOrder::OfSystem };
    let shape = if order.swaps(system) { swapped(shape) } else { shape };
    check_range(&shape, system, |axis, value| errors::coordinate_out_of_range(axis, value, &name))?;
    Ok(stored(srid, shape))
}

fn as_text(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    let mut out = Vec::new();
    append_wkt(&exported(c, context)?, &mut out);
    Ok(Value::Str(String::from_utf8(out).expect("names and numbers are ASCII")))
}

fn as_binary(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    let mut out = Vec::new();
    append_wkb(&exported(c, context)?, &mut out);
    Ok(Value::Bytes(out))
}

/// A shape in the order in which it leaves. That of an unknown system is as stored, with a warning.
fn exported(c: &Call<'_, '_>, context: &mut Context) -> Result<Shape> {
    let name = c.lower_name();
    let geometry = c.geometry(0)?;
    let order = if c.has(1) { axis_order(&c.text(1), &name)? } else { AxisOrder::OfSystem };
    let Some(system) = ReferenceSystem::find(geometry.srid) else {
        errors::warn_axis_order(geometry.srid, context);
        return Ok(geometry.shape);
    };
    check_range(&geometry.shape, system, |axis, value| errors::parameter_out_of_range(axis, value, &name))?;
    Ok(if order.swaps(system) { swapped(geometry.shape) } else { geometry.shape })
}

/// In which order the coordinates of a geographic system are written.
#[derive(Clone, Copy, PartialEq)]
enum AxisOrder {
    LongitudeFirst,
    LatitudeFirst,
    OfSystem,
}

impl AxisOrder {
    /// Whether that is not how they are stored: all geographic systems here have latitude first.
    fn swaps(self, system: &ReferenceSystem) -> bool {
        system.is_geographic() && self != AxisOrder::LongitudeFirst
    }
}

/// `axis-order=lat-long`, in any case, among spaces. Errors 3558 to 3564.
fn axis_order(options: &str, function: &str) -> Result<AxisOrder> {
    let text = options.trim_ascii();
    if text.is_empty() {
        return Ok(AxisOrder::OfSystem);
    }
    let symbol = |c: char| matches!(c, ',' | '=');
    if let Some(first) = text.chars().next().filter(|c| symbol(*c)) {
        let message =
            format!("The options argument in function {function} starts with the invalid character '{first}'.");
        return Err(MysqlError::new(codes::INVALID_OPTION_START_CHARACTER, message));
    }
    if let Some(last) = text.chars().last().filter(|c| symbol(*c)) {
        let message = format!("The options argument in function {function} ends with the invalid character '{last}'.");
        return Err(MysqlError::new(codes::INVALID_OPTION_END_CHARACTER, message));
    }
    let dense: String = text.chars().filter(|c| !c.is_ascii_whitespace()).collect();
    if let Some(sequence) = [",,", "=="].into_iter().find(|sequence| dense.contains(sequence)) {
        let message = format!(
            "The options argument in function {function} contains the invalid character sequence '{sequence}'."
        );
        return Err(MysqlError::new(codes::INVALID_OPTION_CHARACTERS, message));
    }
    let mut order = None;
    for pair in text.split(',') {
        let Some((key, value)) = pair.split_once('=').filter(|(_, value)| !value.contains('=')) else {
            let pair = pair.trim_ascii();
            let message = format!("The string '{pair}' is not a valid key = value pair in function {function}.");
            return Err(MysqlError::new(codes::INVALID_OPTION_KEY_VALUE_PAIR, message));
        };
        let (key, value) = (key.trim_ascii(), value.trim_ascii());
        if !key.eq_ignore_ascii_case("axis-order") {
            let message = format!("Invalid option key '{key}' in function {function}.");
            return Err(MysqlError::new(codes::INVALID_OPTION_KEY, message));
        }
        let read = match value.to_ascii_lowercase().as_str() {
            "lat-long" => AxisOrder::LatitudeFirst,
            "long-lat" => AxisOrder::LongitudeFirst,
            "srid-defined" => AxisOrder::OfSystem,
            _ => {
                let message = format!("Invalid value '{value}' for option '{key}' in function '{function}'.");
                return Err(MysqlError::new(codes::INVALID_OPTION_VALUE, message));
            }
        };
        if order.replace(read).is_some() {
            let message = format!("Duplicate option key '{key}' in function '{function}'.");
            return Err(MysqlError::new(codes::DUPLICATE_OPTION_KEY, message));
        }
    }
    Ok(order.unwrap_or(AxisOrder::OfSystem))
}
