//! Spatial functions with geometries of any kind, sizes that are hard, and bytes that are none: none panics, and what
//! they give is well formed. What `geodesic` computes is compared with what is known.

use super::geodesic::{Earth, Pieces, Position};
use super::*;
use crate::expr::bind::literal;
use crate::expr::types::{self, COERCIBLE};
use crate::expr::{BindContext, Context, Expr, Val};
use geo::{Coord, LineString, Point};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rauk_types::geometry::{parse_wkt, reference};
use rauk_types::{Collation, TypeKind};
use std::sync::Arc;

fn shape(text: &str) -> Shape {
    parse_wkt(text.as_bytes()).unwrap()
}

fn context() -> Context {
    Context::new(Arc::new(crate::expr::tests::Variables))
}

/// Geometries, some of which are invalid or at the ends of what numbers hold.
fn shapes(random: &mut StdRng) -> Shape {
    let number = |random: &mut StdRng| match random.random_range(0..12) {
        0 => f64::MAX,
        1 => f64::MIN_POSITIVE,
        2 => -1e300,
        3 => 1e-200,
        4 => 0.1,
        5 => -0.0,
        _ => f64::from(random.random_range(-5..5)),
    };
    let coord = |random: &mut StdRng| Coord { x: number(random), y: number(random) };
    let line = |random: &mut StdRng| {
        let count = random.random_range(2..7);
        LineString((0..count).map(|_| coord(random)).collect())
    };
    let polygon = |random: &mut StdRng| {
        let ring = |random: &mut StdRng| {
            let mut ring = line(random);
            ring.0.push(coord(random));
            ring.close();
            ring
        };
        geo::Polygon::new(ring(random), (0..random.random_range(0..2)).map(|_| ring(random)).collect())
    };
    match random.random_range(0..10) {
        0 => Shape::Point(Point(coord(random))),
        1 => Shape::LineString(line(random)),
        2 => Shape::Polygon(polygon(random)),
        3 => Shape::MultiPoint(geo::MultiPoint((0..3).map(|_| Point(coord(random))).collect())),
        4 => Shape::MultiLineString(geo::MultiLineString((0..2).map(|_| line(random)).collect())),
        5 => Shape::MultiPolygon(geo::MultiPolygon((0..2).map(|_| polygon(random)).collect())),
        6 => Shape::GeometryCollection(geo::GeometryCollection((0..2).map(|_| shapes(random)).collect())),
        7 => nothing(),
        8 => shape("POLYGON((0 0,4 0,4 4,0 4,0 0),(1 1,2 1,2 2,1 2,1 1))"),
        _ => shape("LINESTRING(0 0,4 4,4 0,0 4)"),
    }
}

fn argument(random: &mut StdRng) -> Expr {
    let bytes =
        |bytes: Vec<u8>| literal(Value::Bytes(bytes), DataType::geometry(GeometryKind::Geometry, None), COERCIBLE);
    let text = |text: &str| literal(Value::from(text), DataType::varchar(200, Collation::DEFAULT), COERCIBLE);
    match random.random_range(0..24) {
        0 => Expr::null(),
        1 => literal(Value::Int(random.random_range(-3..4)), DataType::BIGINT, types::NUMERIC),
        2 => literal(Value::Double(random.random_range(-2.0..9.0)), DataType::DOUBLE, types::NUMERIC),
        3 => literal(Value::Double(1e308), DataType::DOUBLE, types::NUMERIC),
        4 => bytes((0..random.random_range(0..90)).map(|_| random.random()).collect()),
        5 => text("POLYGON((0 0,4 0,4 4,0 4,0 0))"),
        6 => text("axis-order=long-lat"),
        7 => text(r#"{"type":"Feature","geometry":{"type":"MultiPoint","coordinates":[[1,2]]},"properties":null}"#),
        8 => text("point_circle"),
        9 => text("u4pruydq"),
        10 => literal(Value::Int(4326), DataType::BIGINT, types::NUMERIC),
        _ => {
            let mut stored = Geometry::new([0, 0, 3857, 4326][random.random_range(0..4)], shapes(random)).to_stored();
            if random.random_ratio(1, 8) {
                let at = random.random_range(0..stored.len());
                stored[at] ^= 1 << random.random_range(0..8);
            }
            bytes(stored)
        }
    }
}

#[test]
fn no_argument_makes_a_function_panic() {
    let mut random = StdRng::seed_from_u64(11);
    let bind = BindContext::default();
    let mut given = 0;
    for function in GROUPS.iter().copied().flatten() {
        for _ in 0..600 {
            let most = usize::from(function.max).min(usize::from(function.min) + 3);
            let count = random.random_range(usize::from(function.min)..=most);
            let mut arguments: Vec<Expr> = (0..count).map(|_| argument(&mut random)).collect();
            let typing = Typing { name: function.name, arguments: &mut arguments, context: &bind };
            let Ok(derived) = (function.ty)(typing) else { continue };
            let mut context = context();
            let owned: Vec<Value> =
                arguments.iter().map(|a| a.eval(&crate::expr::NoColumns, &mut context).unwrap()).collect();
            if function.null_on_null && owned.iter().any(Value::is_null) {
                continue;
            }
            let values: Vec<Val<'_>> = owned.iter().map(|value| Val::Ref(value.as_ref())).collect();
            let Ok(value) = function.call(&arguments, &values, &derived.ty, &mut context) else { continue };
            given += 1;
            if let (Value::Bytes(bytes), TypeKind::Geometry) = (&value, derived.ty.kind) {
                let read = Geometry::stored(bytes);
                assert!(read.is_ok(), "{} of {owned:?} gives {value:?}", function.name);
            }
            if let Value::Double(number) = value {
                assert!(number.is_finite(), "{} of {owned:?} gives {number}", function.name);
            }
        }
    }
    assert!(given > 5_000, "{given}");
}

fn earth() -> Earth {
    Earth::new(reference::ReferenceSystem::find(4326).unwrap().ellipsoid().unwrap())
}

#[test]
fn distances_on_the_ellipsoid() {
    let earth = earth();
    let at = |x: f64, y: f64| Coord { x, y };
    // A degree of the equator, and of a meridian at the equator.
    assert!((earth.distance(at(0.0, 0.0), at(1.0, 0.0)) - 111_319.490_793).abs() < 1e-5);
    assert!((earth.distance(at(0.0, 0.0), at(0.0, 1.0)) - 110_574.388_558).abs() < 1e-5);
    let apart = |a: &str, b: &str| earth.apart(&Pieces::of(&shape(a)), &Pieces::of(&shape(b)), &mut context()).unwrap();
    // From north of the equator straight down to it.
    let down = apart("POINT(5 1)", "LINESTRING(0 0,10 0)");
    assert!((down - 110_574.388_558).abs() < 1e-3, "{down}");
    assert_eq!(apart("LINESTRING(0 -1,0 1)", "LINESTRING(-1 0,1 0)"), 0.0);
    assert_eq!(apart("POINT(2 2)", "POLYGON((0 0,4 0,4 4,0 4,0 0))"), 0.0);
    // Over the date line.
    let over = apart("POINT(179.5 0)", "POINT(-179.5 0)");
    assert!((over - 111_319.490_793).abs() < 1e-5, "{over}");
    // The nearest point of a line, by trying.
    let line = (at(-3.0, 50.0), at(40.0, 61.0));
    let point = at(11.0, 48.0);
    let tried = (0..=20_000)
        .map(|n| {
            earth.distance(earth.along(line.0, line.1, earth.distance(line.0, line.1) * f64::from(n) / 20_000.0), point)
        })
        .fold(f64::INFINITY, f64::min);
    let found = apart("POINT(11 48)", "LINESTRING(-3 50,40 61)");
    assert!(found <= tried + 1e-6 && tried - found < 1.0, "{found} {tried}");
}

#[test]
fn points_in_rings_of_geodesics() {
    let earth = earth();
    let position = |point: Coord, text: &str| earth.position(point, &Pieces::of(&shape(text)), &mut context()).unwrap();
    let at = |x: f64, y: f64| Coord { x, y };
    // The edge along 50 degrees north bends north between its ends: 51 is still inside at the middle, though it is
    // outside as on a plane.
    let wide = "POLYGON((0 40,60 40,60 50,0 50,0 40))";
    assert_eq!(position(at(30.0, 51.0), wide), Position::Inside);
    assert_eq!(position(at(30.0, 41.0), wide), Position::Outside);
    assert_eq!(position(at(60.0, 50.0), wide), Position::Boundary);
    assert_eq!(position(at(0.0, 45.0), wide), Position::Boundary);
    let holed = "POLYGON((0 0,10 0,10 10,0 10,0 0),(4 4,6 4,6 6,4 6,4 4))";
    assert_eq!(position(at(5.0, 5.0), holed), Position::Outside);
    assert_eq!(position(at(2.0, 2.0), holed), Position::Inside);
    // Around the pole, and over the date line.
    let polar = "POLYGON((0 80,90 80,180 80,-90 80,0 80))";
    assert_eq!(position(at(45.0, 90.0), polar), Position::Inside);
    assert_eq!(position(at(45.0, 70.0), polar), Position::Outside);
    let date_line = "POLYGON((170 -10,-170 -10,-170 10,170 10,170 -10))";
    assert_eq!(position(at(180.0, 0.0), date_line), Position::Inside);
    assert_eq!(position(at(0.0, 0.0), date_line), Position::Outside);
}

#[test]
fn rectangles_around_geodesics() {
    let bounds = earth().bounds(&shape("LINESTRING(0 50,60 50)")).unwrap();
    let middle = earth().along(Coord { x: 0.0, y: 50.0 }, Coord { x: 60.0, y: 50.0 }, {
        earth().distance(Coord { x: 0.0, y: 50.0 }, Coord { x: 60.0, y: 50.0 }) / 2.0
    });
    assert!((bounds.max.y - middle.y).abs() < 1e-6 && bounds.min.y == 50.0, "{bounds:?} {middle:?}");
    assert_eq!(earth().bounds(&shape("LINESTRING(170 0,-170 0)")), None);
}
