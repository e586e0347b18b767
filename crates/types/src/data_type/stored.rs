//! The stored form of a type, in JSON (definitions) and in serde's binary formats.
//!
//! The fields `kind`, `unsigned`, `length`, `precision`, `scale`, `collation` in this order, as before there were ENUM and ZEROFILL: what
//! older builds wrote is read, and what has neither is written as they wrote it. `members` follows for ENUM and SET only. A reader of a binary
//! format knows by the kind, which comes first, whether it does.

use super::{DataType, TypeKind};
use crate::Collation;
use crate::members::{MAX_ENUM_MEMBERS, MAX_MEMBERS_BYTES, MAX_SET_MEMBERS, Members};
use serde::de::{self, MapAccess, SeqAccess, Visitor};
use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

const NAME: &str = "DataType";
const FIELDS: &[&str] = &["kind", "unsigned", "length", "precision", "scale", "collation", "members"];

/// The bit of a numeric type's length that says ZEROFILL. Display widths are at most 255.
const ZEROFILL: u32 = 1 << 31;

fn numeric(kind: TypeKind) -> bool {
    DataType::new(kind).is_numeric()
}

impl Serialize for DataType {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let fields = FIELDS.len() - usize::from(!self.has_members());
        let mut out = serializer.serialize_struct(NAME, fields)?;
        out.serialize_field("kind", &self.kind)?;
        out.serialize_field("unsigned", &self.unsigned)?;
        out.serialize_field("length", &(self.length | if self.zerofill { ZEROFILL } else { 0 }))?;
        out.serialize_field("precision", &self.precision)?;
        out.serialize_field("scale", &self.scale)?;
        out.serialize_field("collation", &self.collation)?;
        if self.has_members() {
            let texts: Vec<&str> = self.members.map(|members| members.texts().collect()).unwrap_or_default();
            out.serialize_field("members", &texts)?;
        }
        out.end()
    }
}

impl<'de> Deserialize<'de> for DataType {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_struct(NAME, FIELDS, Fields)
    }
}

struct Fields;

/// A type of its parts. A list of members that no column may have is refused, so that nothing larger is kept.
fn complete<E: de::Error>(mut ty: DataType, members: Option<Vec<String>>) -> Result<DataType, E> {
    if numeric(ty.kind) && ty.length & ZEROFILL != 0 {
        ty.length &= !ZEROFILL;
        ty.zerofill = true;
    }
    if ty.has_members() {
        let members = members.ok_or_else(|| E::missing_field("members"))?;
        let most = if ty.kind == TypeKind::Set { MAX_SET_MEMBERS } else { MAX_ENUM_MEMBERS };
        if members.len() > most || members.iter().map(String::len).sum::<usize>() > MAX_MEMBERS_BYTES {
            return Err(E::custom("more members than a column has"));
        }
        ty.members = Some(Members::intern(members));
    }
    Ok(ty)
}

impl<'de> Visitor<'de> for Fields {
    type Value = DataType;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a type")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<DataType, A::Error> {
        fn next<'de, T: Deserialize<'de>, A: SeqAccess<'de>>(seq: &mut A, at: usize) -> Result<T, A::Error> {
            seq.next_element()?.ok_or_else(|| de::Error::invalid_length(at, &Fields))
        }
        let ty = DataType {
            kind: next(&mut seq, 0)?,
            unsigned: next(&mut seq, 1)?,
            length: next(&mut seq, 2)?,
            precision: next(&mut seq, 3)?,
            scale: next(&mut seq, 4)?,
            collation: next(&mut seq, 5)?,
            zerofill: false,
            members: None,
        };
        let members = if ty.has_members() { Some(next(&mut seq, 6)?) } else { None };
        complete(ty, members)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<DataType, A::Error> {
        let (mut kind, mut unsigned, mut length) = (None::<TypeKind>, None::<bool>, None::<u32>);
        let (mut precision, mut scale, mut collation) = (None::<u8>, None::<u8>, None::<Collation>);
        let mut members = None::<Vec<String>>;
        while let Some(field) = map.next_key::<std::borrow::Cow<'de, str>>()? {
            match &*field {
                "kind" => kind = Some(map.next_value()?),
                "unsigned" => unsigned = Some(map.next_value()?),
                "length" => length = Some(map.next_value()?),
                "precision" => precision = Some(map.next_value()?),
                "scale" => scale = Some(map.next_value()?),
                "collation" => collation = Some(map.next_value()?),
                "members" => members = Some(map.next_value()?),
                _ => {
                    map.next_value::<de::IgnoredAny>()?;
                }
            }
        }
        let missing = |field| move || de::Error::missing_field(field);
        let ty = DataType {
            kind: kind.ok_or_else(missing("kind"))?,
            unsigned: unsigned.ok_or_else(missing("unsigned"))?,
            length: length.ok_or_else(missing("length"))?,
            precision: precision.ok_or_else(missing("precision"))?,
            scale: scale.ok_or_else(missing("scale"))?,
            collation: collation.ok_or_else(missing("collation"))?,
            zerofill: false,
            members: None,
        };
        complete(ty, members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(ty: DataType) -> (DataType, String) {
        let text = serde_json::to_string(&ty).unwrap();
        (serde_json::from_str(&text).unwrap(), text)
    }

    #[test]
    fn what_was_written_before_is_written_and_read_as_it_was() {
        let text = r#"{"kind":"TinyInt","unsigned":false,"length":1,"precision":0,"scale":0,"collation":"Binary"}"#;
        let boolean = DataType { length: 1, ..DataType::new(TypeKind::TinyInt) };
        assert_eq!(round(boolean), (boolean, text.to_string()));
        let long = DataType::new(TypeKind::LongText);
        assert_eq!(round(long).0, long);
        // In serde's sequences too, as the definitions of other programs may come.
        let seq = r#"["TinyInt",false,1,0,0,"Binary"]"#;
        assert_eq!(serde_json::from_str::<DataType>(seq).unwrap(), boolean);
    }

    #[test]
    fn members_and_zerofill_come_back() {
        let members = Members::intern(vec!["a".into(), "ü".into()]);
        for kind in [TypeKind::Enum, TypeKind::Set] {
            let ty = DataType::of_members(kind, members, Collation::Utf8mb4Bin);
            let (read, text) = round(ty);
            assert_eq!(read, ty);
            assert!(text.ends_with(r#""members":["a","ü"]}"#), "{text}");
            let seq = format!(r#"["{kind:?}",false,0,0,0,"Utf8mb4Bin",["a","ü"]]"#);
            assert_eq!(serde_json::from_str::<DataType>(&seq).unwrap(), ty);
        }
        let padded = DataType { unsigned: true, length: 10, zerofill: true, ..DataType::new(TypeKind::Int) };
        assert_eq!(round(padded).0, padded);
        assert_eq!(round(DataType::bit(64)).0, DataType::bit(64));
        let many: Vec<String> = (0..65).map(|n| n.to_string()).collect();
        let set = serde_json::json!({"kind": "Set", "unsigned": false, "length": 0, "precision": 0, "scale": 0,
            "collation": "Binary", "members": many});
        assert!(serde_json::from_value::<DataType>(set).is_err());
    }
}
