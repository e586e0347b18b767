//! Round trips of random shapes, and bytes and texts that are none.

use super::*;
use geo_types::{GeometryCollection, LineString, MultiLineString, MultiPoint, MultiPolygon, Point, Polygon, coord};
use proptest::prelude::*;

fn text_of(shape: &Shape) -> String {
    let mut out = Vec::new();
    append_wkt(shape, &mut out);
    String::from_utf8(out).unwrap()
}

fn number() -> impl Strategy<Value = f64> {
    prop_oneof![
        (-1000i32..1000).prop_map(f64::from),
        any::<f64>().prop_filter("finite", |v| v.is_finite()),
        Just(0.0),
        Just(-0.0),
        Just(f64::MAX),
        Just(f64::MIN_POSITIVE),
    ]
}

fn point() -> impl Strategy<Value = Coord> {
    (number(), number()).prop_map(|(x, y)| Coord { x, y })
}

fn line() -> impl Strategy<Value = LineString> {
    prop::collection::vec(point(), 2..6).prop_map(LineString)
}

fn ring() -> impl Strategy<Value = LineString> {
    prop::collection::vec(point(), 3..6).prop_map(|mut points| {
        points.push(points[0]);
        LineString(points)
    })
}

fn polygon() -> impl Strategy<Value = Polygon> {
    (ring(), prop::collection::vec(ring(), 0..3)).prop_map(|(exterior, interiors)| Polygon::new(exterior, interiors))
}

fn shape() -> impl Strategy<Value = Shape> {
    let leaf = prop_oneof![
        point().prop_map(|c| Shape::Point(Point(c))),
        line().prop_map(Shape::LineString),
        polygon().prop_map(Shape::Polygon),
        prop::collection::vec(point().prop_map(Point), 1..5).prop_map(|p| Shape::MultiPoint(MultiPoint(p))),
        prop::collection::vec(line(), 1..4).prop_map(|l| Shape::MultiLineString(MultiLineString(l))),
        prop::collection::vec(polygon(), 1..4).prop_map(|p| Shape::MultiPolygon(MultiPolygon(p))),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop::collection::vec(inner, 0..4).prop_map(|parts| Shape::GeometryCollection(GeometryCollection(parts)))
    })
}

proptest! {
    #[test]
    fn the_stored_form_comes_back(srid: u32, shape in shape()) {
        let geometry = Geometry { srid, shape };
        let stored = geometry.to_stored();
        prop_assert_eq!(stored.len(), SRID_BYTES + wkb::length(&geometry.shape));
        prop_assert_eq!(Geometry::stored(&stored).unwrap(), geometry);
    }

    #[test]
    fn the_text_comes_back(shape in shape()) {
        let text = text_of(&shape);
        let read = parse_wkt(text.as_bytes()).unwrap();
        prop_assert_eq!(text_of(&read), text);
        prop_assert_eq!(read, shape);
    }

    #[test]
    fn a_stored_form_that_is_cut_or_longer_is_none(shape in shape(), cut in any::<prop::sample::Index>()) {
        let stored = Geometry { srid: 0, shape }.to_stored();
        prop_assert!(Geometry::stored(&stored[..cut.index(stored.len())]).is_err());
        let longer = [&stored[..], &[0]].concat();
        prop_assert_eq!(Geometry::stored(&longer), Err(Malformed::Invalid));
    }

    #[test]
    fn bytes_that_were_changed_are_read_or_refused(
        shape in shape(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut stored = Geometry { srid: 0, shape }.to_stored();
        for (at, byte) in changes {
            let at = at.index(stored.len());
            stored[at] = byte;
        }
        if let Ok(read) = Geometry::stored(&stored) {
            prop_assert_eq!(Geometry::stored(&read.to_stored()).unwrap(), read);
        }
        let _ = parse_wkb(&stored[SRID_BYTES..]);
    }

    #[test]
    fn random_bytes_and_texts_are_refused_or_read(bytes in prop::collection::vec(any::<u8>(), 0..200), text in "[ A-Za-z0-9(),.eE+-]{0,60}") {
        let _ = Geometry::stored(&bytes);
        let _ = parse_wkb(&bytes);
        let _ = parse_wkt(&bytes);
        let _ = parse_wkt(text.as_bytes());
    }

    #[test]
    fn swapping_twice_changes_nothing(shape in shape()) {
        prop_assert_eq!(swapped(swapped(shape.clone())), shape);
    }
}

#[test]
fn a_point_as_mysql_stores_it() {
    let stored = Geometry::new(4326, Point(coord! { x: 1.0, y: 2.0 })).to_stored();
    let expected =
        [&[0xE6, 0x10, 0, 0, 1, 1, 0, 0, 0][..], &[0, 0, 0, 0, 0, 0, 0xF0, 0x3F], &[0, 0, 0, 0, 0, 0, 0, 0x40]]
            .concat();
    assert_eq!(stored, expected);
    assert_eq!(stored.len(), POINT_BYTES);
}

#[test]
fn either_byte_order_is_read_but_one_is_stored() {
    let big = [&[0, 0, 0, 0, 1][..], &1f64.to_be_bytes(), &2f64.to_be_bytes()].concat();
    assert_eq!(parse_wkb(&big).unwrap(), Shape::Point(Point(coord! { x: 1.0, y: 2.0 })));
    assert_eq!(Geometry::stored(&[&[0; 4][..], &big].concat()), Err(Malformed::ByteOrder));
}

#[test]
fn deep_collections_are_refused() {
    let nested = |depth: usize| {
        let text = format!("{}POINT(1 1){}", "GEOMETRYCOLLECTION(".repeat(depth), ")".repeat(depth));
        let mut bytes = vec![0; 4];
        for _ in 0..depth {
            bytes.extend([1, 7, 0, 0, 0, 1, 0, 0, 0]);
        }
        append_wkb(&Shape::Point(Point(coord! { x: 1.0, y: 1.0 })), &mut bytes);
        (parse_wkt(text.as_bytes()).is_ok(), Geometry::stored(&bytes).is_ok())
    };
    assert_eq!(nested(MAX_NESTING), (true, true));
    assert_eq!(nested(MAX_NESTING + 1), (false, false));
    assert_eq!(nested(200_000), (false, false));
}

#[test]
fn counts_are_not_believed() {
    for kind in 2..=7u32 {
        let mut bytes = vec![0, 0, 0, 0, 1];
        bytes.extend(kind.to_le_bytes());
        bytes.extend(u32::MAX.to_le_bytes());
        bytes.extend([0; 64]);
        assert_eq!(Geometry::stored(&bytes), Err(Malformed::Invalid), "{kind}");
    }
}

#[test]
fn texts() {
    for (text, expected) in [
        ("point(1 2)", "POINT(1 2)"),
        (" Point ( 1.50   -2e3 ) ", "POINT(1.5 -2000)"),
        ("MULTIPOINT(0 0,2 2)", "MULTIPOINT((0 0),(2 2))"),
        ("MULTIPOINT((0 0),(2 2))", "MULTIPOINT((0 0),(2 2))"),
        ("GEOMETRYCOLLECTION()", "GEOMETRYCOLLECTION EMPTY"),
        ("geometrycollection empty", "GEOMETRYCOLLECTION EMPTY"),
        (
            "GEOMCOLLECTION(POINT(1 1),GEOMETRYCOLLECTION EMPTY)",
            "GEOMETRYCOLLECTION(POINT(1 1),GEOMETRYCOLLECTION EMPTY)",
        ),
    ] {
        assert_eq!(text_of(&parse_wkt(text.as_bytes()).unwrap()), expected, "{text}");
    }
    for text in [
        "",
        "POINT",
        "POINT()",
        "POINT EMPTY",
        "POINT(1)",
        "POINT(1 2 3)",
        "POINT(1 2",
        "POINT(1 2))",
        "POINT(1,2)",
        "POINT(1 2) x",
        "POINT(1e400 0)",
        "POINT(1x 2)",
        "POINT(nan 0)",
        "POINT(inf 0)",
        "LINESTRING(0 0)",
        "LINESTRING EMPTY",
        "POLYGON((0 0,0 1,1 1,1 0))",
        "POLYGON((0 0,1 1,0 0))",
        "POLYGON(())",
        "POLYGON((0 0,0 5,5 5,5 0,0 0),())",
        "MULTIPOINT()",
        "MULTIPOINT(0 0,1)",
        "MULTIPOLYGON(((0 0,0 1,1 1,1 0,0 0)),(2 2,2 3,3 3,3 2,2 2))",
        "GEOMETRYCOLLECTION(POINT())",
        "GEOMETRYCOLLECTION EMPTYNESS",
        "GEOMETRYCOLLECTION EMPTY()",
        "CIRCLE(0 0)",
        "POINTZ(1 2 3)",
        "SRID=1;POINT(1 1)",
    ] {
        assert_eq!(parse_wkt(text.as_bytes()), Err(Malformed::Invalid), "{text}");
    }
}

#[test]
fn rectangles() {
    let of = |text: &str| Bounds::of(&parse_wkt(text.as_bytes()).unwrap()).unwrap();
    let square = of("LINESTRING(0 0,2 2)");
    let inside = of("POINT(1 1)");
    let corner = of("POINT(2 2)");
    let edge = of("LINESTRING(0 0,2 0)");
    let beside = of("LINESTRING(2 0,4 2)");
    let over = of("LINESTRING(1 1,3 3)");
    assert!(square.contains(&inside) && square.covers(&corner) && !square.contains(&corner));
    assert!(square.covers(&edge) && !square.contains(&edge) && square.touches(&edge));
    assert!(square.touches(&beside) && !square.overlaps(&beside));
    assert!(square.overlaps(&over) && !square.overlaps(&square) && !square.touches(&over));
    assert!(square.contains(&square) && edge.contains(&edge) && inside.contains(&inside));
    assert!(!of("POINT(5 5)").intersects(&square));
    assert_eq!(Bounds::of(&parse_wkt(b"GEOMETRYCOLLECTION EMPTY").unwrap()), None);
    assert_eq!(text_of(&square.to_shape()), "POLYGON((0 0,2 0,2 2,0 2,0 0))");
    assert_eq!(text_of(&edge.to_shape()), "LINESTRING(0 0,2 0)");
    assert_eq!(text_of(&inside.to_shape()), "POINT(1 1)");
}

#[test]
fn systems() {
    let numbers: Vec<u32> = reference::SYSTEMS.iter().map(|system| system.srid).collect();
    assert_eq!(numbers, [0, 4326, 3857, 4258, 4269], "places are stored: new systems go to the end");
    let names = |kinds: [GeometryKind; 8]| kinds.map(|kind| kind as u8);
    assert_eq!(names(GeometryKind::ALL), [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(reference::unit("METRE"), Some(1.0));
    assert_eq!(reference::unit("parsec"), None);
}
