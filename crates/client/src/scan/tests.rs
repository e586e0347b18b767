use super::*;
use crate::testing::{Place, opened, place, schema};
use std::ops::Bound::{Excluded, Included, Unbounded};

/// One key by the table's definition: `None` is NULL.
fn key(index: usize, values: &[Option<i64>]) -> Vec<u8> {
    let values: Vec<Value> = values.iter().map(|v| v.map_or(Value::Null, Value::Int)).collect();
    let mut key = Vec::new();
    opened(schema()).encode_key_prefix(index, &values, &mut key).expect("fits");
    key
}

fn keys(place: &Place, index: usize, scan: impl FnOnce(Scan) -> Scan) -> Result<Keys, Error> {
    let definition = opened(schema());
    scan(Scan::of_table(place.table(opened(schema())))).keys(&definition, index)
}

fn holds(keys: &Keys, key: &[u8]) -> bool {
    keys.as_ref().is_some_and(|(low, high)| {
        let above = match low {
            Included(low) => key >= low.as_slice(),
            Excluded(low) => key > low.as_slice(),
            Unbounded => true,
        };
        let below = match high {
            Included(high) => key <= high.as_slice(),
            Excluded(high) => key < high.as_slice(),
            Unbounded => true,
        };
        above && below
    })
}

#[test]
fn bounds_hold_exactly_the_rows_between_them() {
    let place = place();
    let numbers: Vec<Option<i64>> = std::iter::once(None).chain((-2..=2).map(Some)).collect();
    let bounds = |value: Option<i64>| match value {
        None => vec![Unbounded],
        Some(value) => vec![Included(value), Excluded(value)],
    };
    // Ascending and descending alike: on the first column, and on both.
    for index in [1, 2] {
        for (low, high) in numbers.iter().flat_map(|low| numbers.iter().map(move |high| (*low, *high))) {
            for (low, high) in bounds(low).iter().flat_map(|l| bounds(high).into_iter().map(move |h| (*l, h))) {
                let first = keys(&place, index, |scan| scan.range((low, high))).expect("fits");
                let both = |bound: Bound<i64>| bound.map(|value| (value, 0i64));
                let pairs = keys(&place, index, |scan| scan.range((both(low), both(high)))).expect("fits");
                for (a, b) in numbers.iter().flat_map(|a| numbers.iter().map(move |b| (*a, *b))) {
                    let encoded = key(index, &[a, b]);
                    // NULL is below every value.
                    let within = |bound: Bound<Option<i64>>, end: Bound<Option<i64>>, at| (bound, end).contains(&at);
                    assert_eq!(
                        holds(&first, &encoded),
                        within(low.map(Some), high.map(Some), a),
                        "{a:?} in {low:?}..{high:?} of index {index}"
                    );
                    let pair = |bound: Bound<i64>| bound.map(|value| (Some(value), Some(0)));
                    assert_eq!(
                        holds(&pairs, &encoded),
                        (pair(low), pair(high)).contains(&(a, b)),
                        "{:?} in {low:?}..{high:?} of index {index}",
                        (a, b)
                    );
                }
            }
        }
    }
}

#[test]
fn a_prefix_holds_all_that_begins_so() {
    let place = place();
    for index in [1, 2, 3] {
        let prefix = keys(&place, index, |scan| scan.prefix(1i64)).expect("fits");
        for (a, b) in (-1..=2).flat_map(|a| (-1..=1).map(move |b| (a, b))) {
            assert_eq!(holds(&prefix, &key(index, &[Some(a), Some(b)])), a == 1);
        }
        assert!(holds(&prefix, &key(index, &[Some(1), None])));
        let whole = keys(&place, index, |scan| scan.prefix((1i64, 0i64))).expect("fits");
        assert!(holds(&whole, &key(index, &[Some(1), Some(0)])) && !holds(&whole, &key(index, &[Some(1), Some(1)])));
    }
}

#[test]
fn bounds_over_both_directions_are_refused_unless_they_do_not_matter() {
    let place = place();
    let error = keys(&place, 3, |scan| scan.range((1i64, 0i64)..(2, 0))).unwrap_err();
    assert_eq!(error.kind, ErrorKind::InvalidValue);
    let same = keys(&place, 3, |scan| scan.range((1i64, 0i64)..=(1, 5))).expect("only the second column differs");
    for b in -1..=6 {
        assert_eq!(holds(&same, &key(3, &[Some(1), Some(b)])), (0..=5).contains(&b), "{b}");
    }
}

#[test]
fn mistakes_are_told() {
    let place = place();
    let table = place.table(opened(schema()));
    let kind = |scan: Scan| scan.resolve(&opened(schema())).map_err(|error| error.kind);
    assert_eq!(table.scan_index("zzz").map(|_| ()).unwrap_err().kind, ErrorKind::UnknownIndex);
    assert_eq!(kind(table.scan().columns(&["zzz"])), Err(ErrorKind::UnknownColumn));
    assert_eq!(kind(table.scan().range(..(1u64, 2u64))), Err(ErrorKind::WrongType));
    assert_eq!(kind(table.scan().range(.."text")), Err(ErrorKind::WrongType));
    assert_eq!(kind(table.scan().range(5u64..5)), Ok(None), "an empty range");
    assert!(kind(table.scan()).is_ok_and(|scan| scan.is_some_and(|scan| scan.index.is_none() && !scan.ordered)));
    let backward = kind(table.scan().direction(Direction::Backward)).expect("fits").expect("not empty");
    assert_eq!((backward.index, backward.ordered, backward.reverse), (Some(rauk_types::IndexId(0)), true, true));
}
