//! Between Rust's types and a column's values: [`IntoKey`] for keys that are asked for, [`FromColumn`] for values that were read.
//!
//! Nothing is rounded, cut off or guessed. A number is read into every type that holds it exactly; a value that does not fit is `None`, which the caller
//! turns into an error that names the column. A TIMESTAMP, stored as a moment, is read as a [`DateTime`] in UTC; text is read as bytes, too, but bytes are not
//! read as text; any number but 0 is `true`, as in SQL. NULL is read into an `Option` (or a [`Value`]) only.
//!
//! Keys are handed over by reference and allocate nothing: up to four values stand on the stack.

use rauk_types::json::JsonRef;
use rauk_types::{Date, DateTime, Decimal, Time, Value, ValueRef};
use smallvec::SmallVec;

/// The values of a key in the order of its columns: a value, a tuple of values, or a list of [`Value`]s.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the value of a key",
    note = "a key is an integer, bool, &str, String, &[u8], Vec<u8>, Decimal, Date, Time, DateTime or Value, a tuple of up to six of them, or a slice of Values"
)]
pub trait IntoKey {
    /// Appends the key's values.
    fn values<'a>(&'a self, into: &mut SmallVec<[ValueRef<'a>; 4]>);
}

/// A type that a column's value can be read into.
#[diagnostic::on_unimplemented(
    message = "a column's value is not read into a `{Self}`",
    note = "there are integers, f32, f64, bool, String, Vec<u8>, Decimal, Date, Time, DateTime, Value, and Option of these"
)]
pub trait FromColumn: Sized {
    /// `None`: it does not fit.
    fn from_value(value: ValueRef<'_>) -> Option<Self>;
}

impl<T: IntoKey + ?Sized> IntoKey for &T {
    #[inline]
    fn values<'a>(&'a self, into: &mut SmallVec<[ValueRef<'a>; 4]>) {
        (**self).values(into);
    }
}

/// Types that are one value: how it is borrowed from them.
macro_rules! keys {
    ($($type:ty, $value:ident => $borrowed:expr;)*) => {$(
        impl IntoKey for $type {
            #[inline]
            fn values<'a>(&'a self, into: &mut SmallVec<[ValueRef<'a>; 4]>) {
                let $value = self;
                into.push($borrowed);
            }
        }
    )*};
}

keys! {
    i8, v => ValueRef::Int((*v).into());
    i16, v => ValueRef::Int((*v).into());
    i32, v => ValueRef::Int((*v).into());
    i64, v => ValueRef::Int(*v);
    isize, v => ValueRef::Int(*v as i64);
    u8, v => ValueRef::UInt((*v).into());
    u16, v => ValueRef::UInt((*v).into());
    u32, v => ValueRef::UInt((*v).into());
    u64, v => ValueRef::UInt(*v);
    usize, v => ValueRef::UInt(*v as u64);
    bool, v => ValueRef::Int((*v).into());
    str, v => ValueRef::Str(v);
    String, v => ValueRef::Str(v);
    [u8], v => ValueRef::Bytes(v);
    Vec<u8>, v => ValueRef::Bytes(v);
    Decimal, v => ValueRef::Decimal(*v);
    Date, v => ValueRef::Date(*v);
    Time, v => ValueRef::Time(*v);
    DateTime, v => ValueRef::DateTime(*v);
    Value, v => v.as_ref();
}

impl<const N: usize> IntoKey for [u8; N] {
    #[inline]
    fn values<'a>(&'a self, into: &mut SmallVec<[ValueRef<'a>; 4]>) {
        into.push(ValueRef::Bytes(self));
    }
}

impl IntoKey for [Value] {
    fn values<'a>(&'a self, into: &mut SmallVec<[ValueRef<'a>; 4]>) {
        into.extend(self.iter().map(Value::as_ref));
    }
}

impl<const N: usize> IntoKey for [Value; N] {
    fn values<'a>(&'a self, into: &mut SmallVec<[ValueRef<'a>; 4]>) {
        self.as_slice().values(into);
    }
}

impl IntoKey for Vec<Value> {
    fn values<'a>(&'a self, into: &mut SmallVec<[ValueRef<'a>; 4]>) {
        self.as_slice().values(into);
    }
}

macro_rules! tuples {
    ($($($name:ident)*;)*) => {$(
        impl<$($name: IntoKey),*> IntoKey for ($($name,)*) {
            #[inline]
            #[allow(non_snake_case)] // the types' names name the values, too
            fn values<'a>(&'a self, into: &mut SmallVec<[ValueRef<'a>; 4]>) {
                let ($($name,)*) = self;
                $($name.values(into);)*
            }
        }
    )*};
}

tuples! {
    A;
    A B;
    A B C;
    A B C D;
    A B C D E;
    A B C D E F;
}

macro_rules! integers {
    ($($type:ty)*) => {$(
        impl FromColumn for $type {
            #[inline]
            fn from_value(value: ValueRef<'_>) -> Option<Self> {
                match value {
                    ValueRef::Int(v) => v.try_into().ok(),
                    ValueRef::UInt(v) => v.try_into().ok(),
                    _ => None,
                }
            }
        }
    )*};
}

integers! { i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize }

impl FromColumn for f64 {
    #[inline]
    fn from_value(value: ValueRef<'_>) -> Option<Self> {
        match value {
            ValueRef::Double(v) => Some(v),
            // Up to here every integer is a DOUBLE.
            ValueRef::Int(v) if v.unsigned_abs() <= 1 << f64::MANTISSA_DIGITS => Some(v as f64),
            ValueRef::UInt(v) if v <= 1 << f64::MANTISSA_DIGITS => Some(v as f64),
            _ => None,
        }
    }
}

impl FromColumn for f32 {
    #[inline]
    fn from_value(value: ValueRef<'_>) -> Option<Self> {
        let wide = f64::from_value(value)?;
        let narrow = wide as f32;
        (f64::from(narrow) == wide || wide.is_nan()).then_some(narrow)
    }
}

impl FromColumn for bool {
    #[inline]
    fn from_value(value: ValueRef<'_>) -> Option<Self> {
        value.as_integer().map(|v| v != 0)
    }
}

/// A document as a program sees it.
pub(crate) fn json_text(document: JsonRef<'_>) -> Vec<u8> {
    let mut text = Vec::new();
    document.append_shown(&mut text);
    text
}

impl FromColumn for String {
    fn from_value(value: ValueRef<'_>) -> Option<Self> {
        match value {
            ValueRef::Json(document) => String::from_utf8(json_text(document)).ok(),
            value => value.as_str().map(String::from),
        }
    }
}

impl FromColumn for Vec<u8> {
    fn from_value(value: ValueRef<'_>) -> Option<Self> {
        match value {
            ValueRef::Json(document) => Some(json_text(document)),
            value => value.as_bytes().map(<[u8]>::to_vec),
        }
    }
}

impl FromColumn for Decimal {
    fn from_value(value: ValueRef<'_>) -> Option<Self> {
        match value {
            ValueRef::Decimal(v) => Some(v),
            ValueRef::Int(v) => Some(v.into()),
            ValueRef::UInt(v) => Some(v.into()),
            _ => None,
        }
    }
}

impl FromColumn for Date {
    fn from_value(value: ValueRef<'_>) -> Option<Self> {
        match value {
            ValueRef::Date(v) => Some(v),
            _ => None,
        }
    }
}

impl FromColumn for Time {
    fn from_value(value: ValueRef<'_>) -> Option<Self> {
        match value {
            ValueRef::Time(v) => Some(v),
            _ => None,
        }
    }
}

impl FromColumn for DateTime {
    fn from_value(value: ValueRef<'_>) -> Option<Self> {
        match value {
            ValueRef::DateTime(v) => Some(v),
            ValueRef::Timestamp(0) => Some(DateTime::ZERO),
            ValueRef::Timestamp(micros) => DateTime::from_unix_micros_utc(micros),
            _ => None,
        }
    }
}

impl FromColumn for Value {
    fn from_value(value: ValueRef<'_>) -> Option<Self> {
        Some(match value {
            ValueRef::Json(document) => Value::Str(String::from_utf8(json_text(document)).ok()?),
            value => value.to_owned(),
        })
    }
}

impl<T: FromColumn> FromColumn for Option<T> {
    #[inline]
    fn from_value(value: ValueRef<'_>) -> Option<Self> {
        if value.is_null() { Some(None) } else { T::from_value(value).map(Some) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(key: impl IntoKey) -> Vec<Value> {
        let mut values = SmallVec::new();
        key.values(&mut values);
        values.into_iter().map(ValueRef::to_owned).collect()
    }

    #[test]
    fn keys_of_every_type() {
        assert_eq!(key(-1i8), [Value::Int(-1)]);
        assert_eq!(key(u64::MAX), [Value::UInt(u64::MAX)]);
        let (number, text) = (&7u32, &String::from("a"));
        assert_eq!(key(number), [Value::UInt(7)]);
        assert_eq!(key(true), [Value::Int(1)]);
        assert_eq!(key("a"), [Value::from("a")]);
        assert_eq!(key(text), [Value::from("a")]);
        assert_eq!(key([1u8, 2]), [Value::Bytes(vec![1, 2])]);
        assert_eq!(key(&[1u8, 2][..]), [Value::Bytes(vec![1, 2])]);
        assert_eq!(key(vec![1u8]), [Value::Bytes(vec![1])]);
        assert_eq!(key((1u8, "b", (2i64, Date::MAX))).len(), 4);
        assert_eq!(key((1, 2, 3, 4, 5, 6)), (1..=6).map(Value::Int).collect::<Vec<_>>());
        let values = [Value::Null, Value::Double(0.5)];
        assert_eq!(key(&values[..]), values);
        assert_eq!(key(values.to_vec()), values);
        assert_eq!(key(values.clone()), values);
    }

    #[test]
    fn a_key_of_four_values_allocates_nothing() {
        let name = String::from("name");
        let four = (1u64, &name, "x", 2i32);
        let mut values = SmallVec::new();
        four.values(&mut values);
        assert!(!values.spilled());
    }

    #[test]
    fn integers_are_read_when_they_fit() {
        assert_eq!(i8::from_value(ValueRef::Int(-128)), Some(-128));
        assert_eq!(i8::from_value(ValueRef::Int(128)), None);
        assert_eq!(u64::from_value(ValueRef::Int(-1)), None);
        assert_eq!(i64::from_value(ValueRef::UInt(u64::MAX)), None);
        assert_eq!(u64::from_value(ValueRef::UInt(u64::MAX)), Some(u64::MAX));
        assert_eq!(u8::from_value(ValueRef::Str("1")), None);
        assert_eq!(u8::from_value(ValueRef::Null), None);
        assert_eq!(bool::from_value(ValueRef::Int(2)), Some(true));
    }

    #[test]
    fn floats_are_read_exactly_or_not_at_all() {
        assert_eq!(f64::from_value(ValueRef::Int(-(1 << 53))), Some(-9007199254740992.0));
        assert_eq!(f64::from_value(ValueRef::Int((1 << 53) + 1)), None);
        assert_eq!(f64::from_value(ValueRef::Int(i64::MIN)), None);
        assert_eq!(f64::from_value(ValueRef::UInt(u64::MAX)), None);
        assert_eq!(f32::from_value(ValueRef::Double(0.5)), Some(0.5));
        assert_eq!(f32::from_value(ValueRef::Double(0.1)), None);
        assert_eq!(f32::from_value(ValueRef::Double(f64::from(0.1f32))), Some(0.1));
        assert_eq!(f32::from_value(ValueRef::Double(f64::INFINITY)), Some(f32::INFINITY));
        assert!(f32::from_value(ValueRef::Double(f64::NAN)).is_some_and(f32::is_nan));
    }

    #[test]
    fn null_needs_an_option() {
        assert_eq!(Option::<u8>::from_value(ValueRef::Null), Some(None));
        assert_eq!(Option::<u8>::from_value(ValueRef::UInt(3)), Some(Some(3)));
        assert_eq!(Option::<u8>::from_value(ValueRef::UInt(300)), None);
        assert_eq!(String::from_value(ValueRef::Null), None);
        assert_eq!(Value::from_value(ValueRef::Null), Some(Value::Null));
    }

    #[test]
    fn a_timestamp_is_read_in_utc() {
        let read = DateTime::from_value(ValueRef::Timestamp(1_700_000_000_123_456)).unwrap();
        assert_eq!((read.to_string().as_str(), read.microsecond()), ("2023-11-14 22:13:20", 123_456));
        assert_eq!(DateTime::from_value(ValueRef::Timestamp(0)), Some(DateTime::ZERO));
        assert_eq!(Decimal::from_value(ValueRef::UInt(u64::MAX)), Some(Decimal::from(u64::MAX)));
        assert_eq!(Vec::<u8>::from_value(ValueRef::Str("ü")), Some(vec![0xC3, 0xBC]));
        assert_eq!(String::from_value(ValueRef::Bytes(b"a")), None);
    }
}
