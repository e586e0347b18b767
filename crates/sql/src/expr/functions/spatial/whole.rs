//! What any geometry has: its system, dimension, kind, rectangle; and whether it is empty.

use super::{Call, Derived, Function, Typing, check_range, errors, rules, stored, system, truth};
use crate::expr::Context;
use crate::expr::convert::Result;
use rauk_types::geometry::{Bounds, Shape, swapped};
use rauk_types::{DataType, Value};

pub const FUNCTIONS: &[Function] = &[
    Function::new(
        "ST_SRID",
        1,
        2,
        |t: Typing<'_>| match t.arguments.len() {
            1 => Ok(Derived::new(DataType::BIGINT_UNSIGNED).nullable()),
            _ => rules::any(t),
        },
        srid,
    ),
    Function::new(
        "ST_DIMENSION",
        1,
        1,
        |_| Ok(Derived::new(DataType::BIGINT).nullable()),
        |c, _| Ok(dimension(&c.located(0)?.shape).map_or(Value::Null, |dimension| Value::Int(dimension.into()))),
    ),
    Function::new(
        "ST_GEOMETRYTYPE",
        1,
        1,
        |t| Ok(t.connection_text(20).nullable()),
        |c, _| Ok(Value::Str(c.located(0)?.kind().type_name().to_ascii_uppercase())),
    ),
    Function::new("ST_ISEMPTY", 1, 1, rules::truth, |c, _| Ok(truth(c.located(0)?.is_empty()))),
    Function::new("ST_ENVELOPE", 1, 1, rules::any, |c, _| {
        let geometry = c.located(0)?;
        if geometry.system.is_geographic() {
            return Err(errors::not_geographic_of("st_envelope", &[geometry.kind()]));
        }
        Ok(geometry.with(Bounds::of(&geometry.shape).map_or(super::nothing(), |bounds| bounds.to_shape())))
    }),
    Function::new("ST_SWAPXY", 1, 1, rules::any, |c, _| {
        let geometry = c.geometry(0)?;
        Ok(stored(geometry.srid, swapped(geometry.shape)))
    }),
];

/// The SRID, or the geometry with another: its coordinates stay as they are.
fn srid(c: &Call<'_, '_>, context: &mut Context) -> Result<Value> {
    let geometry = c.geometry(0)?;
    if !c.has(1) {
        return Ok(Value::UInt(geometry.srid.into()));
    }
    let srid = c.srid(1, context)?;
    check_range(&geometry.shape, system(srid)?, |axis, value| errors::parameter_out_of_range(axis, value, "st_srid"))?;
    Ok(stored(srid, geometry.shape))
}

/// 0: points, 1: lines, 2: areas; of a collection the largest. `None` where there is nothing.
pub(super) fn dimension(shape: &Shape) -> Option<u8> {
    match shape {
        Shape::GeometryCollection(parts) => parts.0.iter().filter_map(dimension).max(),
        Shape::Point(_) | Shape::MultiPoint(_) => Some(0),
        Shape::LineString(_) | Shape::MultiLineString(_) | Shape::Line(_) => Some(1),
        Shape::Polygon(_) | Shape::MultiPolygon(_) | Shape::Rect(_) | Shape::Triangle(_) => Some(2),
    }
}
