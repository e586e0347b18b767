//! What information_schema says of geometries: their columns, the spatial reference systems, units of length.

use super::catalog::{column_privileges, stored_tables};
use super::views;
use super::{Definition, Hints, INFORMATION_SCHEMA, Rows, s, u};
use crate::session::lookup::Viewer;
use rauk_types::geometry::reference::{SYSTEMS, UNITS};
use rauk_types::{GeometryKind, Value};

const I: &str = INFORMATION_SCHEMA;

pub(super) const TABLES: &[Definition] = &[
    Definition {
        database: I,
        name: "ST_GEOMETRY_COLUMNS",
        columns: "TABLE_CATALOG s64, TABLE_SCHEMA b64, TABLE_NAME b64, COLUMN_NAME s64?, SRS_NAME s80?, SRS_ID u?, GEOMETRY_TYPE_NAME x",
        rows: columns,
    },
    Definition {
        database: I,
        name: "ST_SPATIAL_REFERENCE_SYSTEMS",
        columns: "SRS_NAME s80, SRS_ID u, ORGANIZATION s256?, ORGANIZATION_COORDSYS_ID u?, DEFINITION x, DESCRIPTION x?",
        rows: systems,
    },
    Definition {
        database: I,
        name: "ST_UNITS_OF_MEASURE",
        columns: "UNIT_NAME s255, UNIT_TYPE s7, CONVERSION_FACTOR g, DESCRIPTION s255",
        rows: |_, _| {
            let row = |(name, metres): &(&str, f64)| vec![s(*name), s("LINEAR"), Value::Double(*metres), s("")];
            Ok(UNITS.iter().map(row).collect())
        },
    },
];

fn columns(viewer: &Viewer, hints: &Hints<'_>) -> Rows {
    let mut rows = Vec::new();
    let views = views::visible(viewer, hints).into_iter().filter_map(|view| views::schema_of(viewer, &view).ok());
    for table in stored_tables(viewer, hints).into_iter().chain(views) {
        let privileges = column_privileges(viewer, &table);
        for column in table.visible_columns() {
            let Some(kind) = column.ty.geometry_kind() else { continue };
            if privileges(&column.name).is_empty() {
                continue;
            }
            let system = column.ty.reference_system();
            rows.push(vec![
                s("def"),
                s(&table.database),
                s(&table.name),
                s(&column.name),
                system.map_or(Value::Null, |system| s(system.name)),
                system.map_or(Value::Null, |system| u(system.srid)),
                s(GeometryKind::type_name(kind)),
            ]);
        }
    }
    Ok(rows)
}

fn systems(_: &Viewer, _: &Hints<'_>) -> Rows {
    let row = |system: &rauk_types::geometry::ReferenceSystem| {
        let registered = system.srid != 0;
        vec![
            s(system.name),
            u(system.srid),
            if registered { s("EPSG") } else { Value::Null },
            if registered { u(system.srid) } else { Value::Null },
            s(system.definition),
            Value::Null,
        ]
    };
    Ok(SYSTEMS.iter().map(row).collect())
}
