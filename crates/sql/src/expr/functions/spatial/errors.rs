//! Errors of spatial functions, in MySQL's words.

use super::Axis;
use crate::expr::Context;
use rauk_types::MysqlError;
use rauk_types::error::codes;
use rauk_types::geometry::GeometryKind;

/// 3037
pub fn invalid(function: &str) -> MysqlError {
    MysqlError::new(codes::GIS_INVALID_DATA, format!("Invalid GIS data provided to function {function}."))
}

/// 3055
pub fn byte_order() -> MysqlError {
    MysqlError::new(codes::GIS_DATA_WRONG_ENDIANESS, "Geometry byte string must be little endian.")
}

/// 3548
pub fn unknown_system(srid: u32) -> MysqlError {
    MysqlError::new(codes::SRS_NOT_FOUND, format!("There's no spatial reference system with SRID {srid}."))
}

/// Warning 3565: coordinates are shown in the order in which they are stored.
pub fn warn_axis_order(srid: u32, context: &mut Context) {
    let message = format!("There's no spatial reference system with SRID {srid}. The axis order is unknown.");
    context.warn(codes::WARN_SRS_NOT_FOUND_AXIS_ORDER, message);
}

/// 3033
pub fn different_srids(function: &str, first: u32, second: u32) -> MysqlError {
    let message = format!(
        "Binary geometry function {function} given two geometries of different srids: {first} and {second}, which should \
         have been identical."
    );
    MysqlError::new(codes::GIS_DIFFERENT_SRIDS, message)
}

/// 4034
pub fn different_srids_of_many(function: &str, first: u32, second: u32) -> MysqlError {
    let message = format!(
        "Arguments to function {function} contains geometries with different SRIDs: {first} and {second}. All geometries \
         must have the same SRID."
    );
    MysqlError::new(codes::GIS_DIFFERENT_SRIDS_AGGREGATION, message)
}

/// 3516
pub fn unexpected_type(expected: &str, found: GeometryKind, function: &str) -> MysqlError {
    let found = found.type_name().to_ascii_uppercase();
    let message = format!("{expected} value is a geometry of unexpected type {found} in {function}.");
    MysqlError::new(codes::UNEXPECTED_GEOMETRY_TYPE, message)
}

/// 3618. `kinds` as in `POINT, LINESTRING`.
pub fn not_geographic(function: &str, kinds: &str) -> MysqlError {
    let message = format!("{function}({kinds}) has not been implemented for geographic spatial reference systems.");
    MysqlError::new(codes::NOT_IMPLEMENTED_FOR_GEOGRAPHIC_SRS, message)
}

/// 3618 of these kinds.
pub fn not_geographic_of(function: &str, kinds: &[GeometryKind]) -> MysqlError {
    let kinds: Vec<String> = kinds.iter().map(|kind| kind.type_name().to_ascii_uppercase()).collect();
    not_geographic(function, &kinds.join(", "))
}

/// 3704
pub fn not_cartesian(function: &str, kinds: &str) -> MysqlError {
    let message = format!("{function}({kinds}) has not been implemented for Cartesian spatial reference systems.");
    MysqlError::new(codes::NOT_IMPLEMENTED_FOR_CARTESIAN_SRS, message)
}

/// 3705
pub fn not_projected(function: &str, kinds: &str) -> MysqlError {
    let message = format!("{function}({kinds}) has not been implemented for projected spatial reference systems.");
    MysqlError::new(codes::NOT_IMPLEMENTED_FOR_PROJECTED_SRS, message)
}

/// 3726
pub fn only_geographic(function: &str, srid: u32) -> MysqlError {
    let message = format!(
        "Function {function} is only defined for geographic spatial reference systems, but one of its arguments is in SRID \
         {srid}, which is not geographic."
    );
    MysqlError::new(codes::SRS_NOT_GEOGRAPHIC, message)
}

/// 3616, 3617: a coordinate that is given as a number, or read from a text.
pub fn coordinate_out_of_range(axis: Axis, value: f64, function: &str) -> MysqlError {
    match axis {
        Axis::Longitude => MysqlError::new(
            codes::LONGITUDE_OUT_OF_RANGE,
            format!(
                "Longitude {value:.6} is out of range in function {function}. It must be within (-180.000000, 180.000000]."
            ),
        ),
        Axis::Latitude => MysqlError::new(
            codes::LATITUDE_OUT_OF_RANGE,
            format!(
                "Latitude {value:.6} is out of range in function {function}. It must be within [-90.000000, 90.000000]."
            ),
        ),
    }
}

/// 3731, 3732: a coordinate of a geometry.
pub fn parameter_out_of_range(axis: Axis, value: f64, function: &str) -> MysqlError {
    let (code, name, range) = match axis {
        Axis::Longitude => (codes::GEOMETRY_PARAM_LONGITUDE_OUT_OF_RANGE, "longitude", "(-180.000000, 180.000000]"),
        Axis::Latitude => (codes::GEOMETRY_PARAM_LATITUDE_OUT_OF_RANGE, "latitude", "[-90.000000, 90.000000]"),
    };
    let message = format!(
        "A parameter of function {function} contains a geometry with {name} {value:.6}, which is out of range. It must be \
         within {range}."
    );
    MysqlError::new(code, message)
}

/// 1690
pub fn out_of_range(what: &str, function: &str) -> MysqlError {
    MysqlError::new(codes::DATA_OUT_OF_RANGE, format!("{what} value is out of range in '{function}'"))
}

/// 1210
pub fn wrong_arguments(function: &str) -> MysqlError {
    MysqlError::new(codes::WRONG_ARGUMENTS, format!("Incorrect arguments to {function}"))
}

/// 1411
pub fn wrong_value(kind: &str, value: &str, function: &str) -> MysqlError {
    MysqlError::new(codes::WRONG_VALUE_FOR_TYPE, format!("Incorrect {kind} value: '{value}' for function {function}"))
}

/// 3064
pub fn wrong_type(argument: &str, function: &str) -> MysqlError {
    MysqlError::new(codes::INCORRECT_TYPE, format!("Incorrect type for argument {argument} in function {function}."))
}
