//! CAST of a geometry to a kind: what is the same points in another form. What is not is error 4032.

use super::{errors, locate, read};
use crate::expr::convert::Result;
use geo::{GeometryCollection, LineString, MultiLineString, MultiPoint, MultiPolygon, Point, Polygon};
use rauk_types::error::codes;
use rauk_types::geometry::{GeometryKind, MAX_NESTING, Shape};
use rauk_types::{MysqlError, Value};

/// Errors: 3037, 3055, 3548, 4032.
pub(in crate::expr) fn to_kind(bytes: &[u8], wanted: GeometryKind) -> Result<Value> {
    let function = format!("cast_as_{}", wanted.text_name().to_ascii_lowercase());
    let geometry = locate(read(bytes, &function)?, &function)?;
    let from = geometry.kind();
    if wanted.takes(from) {
        return Ok(geometry.with(geometry.shape.clone()));
    }
    if wanted == GeometryKind::Collection && super::build::depth(&geometry.shape) + 1 > MAX_NESTING {
        return Err(errors::invalid(&function));
    }
    let cast = converted(&geometry.shape, wanted).ok_or_else(|| {
        let name = |kind: GeometryKind| kind.type_name().to_ascii_uppercase();
        let message = format!("Invalid cast from {} to {}.", name(from), name(wanted));
        MysqlError::new(codes::INVALID_CAST_TO_GEOMETRY, message)
    })?;
    Ok(geometry.with(cast))
}

fn ring_of(line: &LineString) -> Option<LineString> {
    (line.0.len() >= 4 && line.is_closed()).then(|| line.clone())
}

fn polygon_of(rings: &[LineString]) -> Option<Polygon> {
    let mut rings = rings.iter().map(ring_of).collect::<Option<Vec<_>>>()?;
    let exterior = (!rings.is_empty()).then(|| rings.remove(0))?;
    Some(Polygon::new(exterior, rings))
}

fn rings(polygon: &Polygon) -> Vec<LineString> {
    std::iter::once(polygon.exterior()).chain(polygon.interiors()).cloned().collect()
}

fn converted(shape: &Shape, wanted: GeometryKind) -> Option<Shape> {
    // A collection of one is what the one is.
    if let Shape::GeometryCollection(parts) = shape {
        let of = |kind: GeometryKind| !parts.0.is_empty() && parts.0.iter().all(|part| GeometryKind::of(part) == kind);
        return match wanted {
            GeometryKind::MultiPoint if of(GeometryKind::Point) => {
                let points = parts.0.iter().filter_map(|part| Point::try_from(part.clone()).ok()).collect();
                Some(Shape::MultiPoint(MultiPoint(points)))
            }
            GeometryKind::MultiLineString if of(GeometryKind::LineString) => {
                let lines = parts.0.iter().filter_map(|part| LineString::try_from(part.clone()).ok()).collect();
                Some(Shape::MultiLineString(MultiLineString(lines)))
            }
            GeometryKind::MultiPolygon if of(GeometryKind::Polygon) => {
                let polygons = parts.0.iter().filter_map(|part| Polygon::try_from(part.clone()).ok()).collect();
                Some(Shape::MultiPolygon(MultiPolygon(polygons)))
            }
            GeometryKind::Point | GeometryKind::LineString | GeometryKind::Polygon
                if parts.0.len() == 1 && of(wanted) =>
            {
                parts.0.first().cloned()
            }
            _ => None,
        };
    }
    match (wanted, shape) {
        (GeometryKind::Point, Shape::MultiPoint(points)) if points.0.len() == 1 => {
            points.0.first().copied().map(Shape::Point)
        }
        (GeometryKind::LineString, Shape::Polygon(polygon)) if polygon.interiors().is_empty() => {
            Some(Shape::LineString(polygon.exterior().clone()))
        }
        (GeometryKind::LineString, Shape::MultiPoint(points)) if points.0.len() >= 2 => {
            Some(Shape::LineString(LineString(points.0.iter().map(|point| point.0).collect())))
        }
        (GeometryKind::LineString, Shape::MultiLineString(lines)) if lines.0.len() == 1 => {
            lines.0.first().cloned().map(Shape::LineString)
        }
        (GeometryKind::Polygon, Shape::LineString(line)) => polygon_of(std::slice::from_ref(line)).map(Shape::Polygon),
        (GeometryKind::Polygon, Shape::MultiLineString(lines)) => polygon_of(&lines.0).map(Shape::Polygon),
        (GeometryKind::Polygon, Shape::MultiPolygon(polygons)) if polygons.0.len() == 1 => {
            polygons.0.first().cloned().map(Shape::Polygon)
        }
        (GeometryKind::MultiPoint, Shape::Point(point)) => Some(Shape::MultiPoint(MultiPoint(vec![*point]))),
        (GeometryKind::MultiPoint, Shape::LineString(line)) => {
            Some(Shape::MultiPoint(MultiPoint(line.0.iter().copied().map(Point).collect())))
        }
        (GeometryKind::MultiLineString, Shape::LineString(line)) => {
            Some(Shape::MultiLineString(MultiLineString(vec![line.clone()])))
        }
        (GeometryKind::MultiLineString, Shape::Polygon(polygon)) => {
            Some(Shape::MultiLineString(MultiLineString(rings(polygon))))
        }
        (GeometryKind::MultiLineString, Shape::MultiPolygon(polygons))
            if polygons.0.iter().all(|polygon| polygon.interiors().is_empty()) =>
        {
            let lines = polygons.0.iter().map(|polygon| polygon.exterior().clone()).collect();
            Some(Shape::MultiLineString(MultiLineString(lines)))
        }
        (GeometryKind::MultiPolygon, Shape::Polygon(polygon)) => {
            Some(Shape::MultiPolygon(MultiPolygon(vec![polygon.clone()])))
        }
        (GeometryKind::MultiPolygon, Shape::MultiLineString(lines)) => {
            let polygons = lines.0.iter().map(|line| polygon_of(std::slice::from_ref(line)));
            Some(Shape::MultiPolygon(MultiPolygon(polygons.collect::<Option<_>>()?)))
        }
        (GeometryKind::Collection, shape) => {
            let parts = match shape {
                Shape::MultiPoint(points) => points.0.iter().copied().map(Shape::Point).collect(),
                Shape::MultiLineString(lines) => lines.0.iter().cloned().map(Shape::LineString).collect(),
                Shape::MultiPolygon(polygons) => polygons.0.iter().cloned().map(Shape::Polygon).collect(),
                one => vec![one.clone()],
            };
            Some(Shape::GeometryCollection(GeometryCollection(parts)))
        }
        _ => None,
    }
}
