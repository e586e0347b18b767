//! The aggregate `ST_Collect`: the geometries of a group as one.
//!
//! Points become a MULTIPOINT, lines and polygons their MULTI…, anything else a collection, in the order of the rows.
//! All have to be in one system (4034).

use super::{build, errors, locate, read, stored};
use crate::expr::Context;
use crate::expr::convert::Result;
use geo::{GeometryCollection, LineString, MultiLineString, MultiPoint, MultiPolygon, Point, Polygon};
use rauk_types::Value;
use rauk_types::geometry::{GeometryKind, MAX_NESTING, Shape};

const NAME: &str = "st_collect";

/// What has been seen of a group.
#[derive(Clone, Default)]
pub(crate) struct Collected {
    srid: Option<u32>,
    /// In their stored forms.
    parts: Vec<Vec<u8>>,
    bytes: usize,
}

impl Collected {
    /// Errors: 3037, 3055, 3548, 3731, 3732, 4034.
    pub fn push(&mut self, bytes: &[u8]) -> Result<()> {
        let geometry = locate(read(bytes, NAME)?, NAME)?;
        let srid = geometry.system.srid;
        if let Some(first) = self.srid.filter(|first| *first != srid) {
            return Err(errors::different_srids_of_many(NAME, first, srid));
        }
        if build::depth(&geometry.shape) >= MAX_NESTING {
            return Err(errors::invalid(NAME));
        }
        self.srid = Some(srid);
        self.bytes += bytes.len();
        self.parts.push(bytes.to_vec());
        Ok(())
    }

    /// NULL of no geometry, and with warning 1301 of more than fit into a packet.
    pub fn finish(&self, context: &mut Context) -> Result<Value> {
        let Some(srid) = self.srid else { return Ok(Value::Null) };
        if self.bytes > context.max_allowed_packet {
            super::super::overflowed(NAME, context);
            return Ok(Value::Null);
        }
        context.budget.work(self.bytes)?;
        let shapes = self.parts.iter().map(|part| Ok(read(part, NAME)?.shape)).collect::<Result<Vec<Shape>>>()?;
        let all = |kind: GeometryKind| shapes.iter().all(|shape| GeometryKind::of(shape) == kind);
        let shape = if all(GeometryKind::Point) {
            Shape::MultiPoint(MultiPoint(shapes.into_iter().filter_map(|shape| Point::try_from(shape).ok()).collect()))
        } else if all(GeometryKind::LineString) {
            let lines = shapes.into_iter().filter_map(|shape| LineString::try_from(shape).ok()).collect();
            Shape::MultiLineString(MultiLineString(lines))
        } else if all(GeometryKind::Polygon) {
            let polygons = shapes.into_iter().filter_map(|shape| Polygon::try_from(shape).ok()).collect();
            Shape::MultiPolygon(MultiPolygon(polygons))
        } else {
            Shape::GeometryCollection(GeometryCollection(shapes))
        };
        Ok(stored(srid, shape))
    }
}
