//! Collations: how text compares, and the weight strings that stand in keys.
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[repr(u8)]
pub enum Collation {
    /// Bytes (BINARY, BLOB), no padding.
    Binary,
    /// Code points, PAD SPACE.
    Utf8mb4Bin,
    /// UCA 9.0.0, accent- and case-insensitive, NO PAD. The default.
    #[default]
    Utf8mb40900AiCi,
    /// One weight a character, ß = s, PAD SPACE.
    Utf8mb4GeneralCi,
    /// UCA 4.0.0, PAD SPACE, ß = ss.
    Utf8mb4UnicodeCi,
}

impl Collation {
    pub const DEFAULT: Collation = Collation::Utf8mb40900AiCi;

    /// MySQL's name: `utf8mb4_0900_ai_ci`.
    pub fn name(self) -> &'static str {
        todo!()
    }
    /// MySQL's number, as in the protocol: 63, 46, 255, 45, 224.
    pub fn mysql_id(self) -> u16 {
        todo!()
    }
    /// By name; latin1 and ascii names, and other utf8mb3/utf8mb4 names, map to the nearest that Rauk has. `None`: unknown (1273).
    pub fn from_name(name: &str) -> Option<Collation> {
        let _ = name;
        todo!()
    }
    pub fn pad_space(self) -> bool {
        todo!()
    }
    pub fn compare(self, a: &[u8], b: &[u8]) -> Ordering {
        let _ = (a, b);
        todo!()
    }
    /// Appends the weight string of valid UTF-8 `text` (bytes themselves for Binary): equal strings give equal bytes, and byte
    /// order is collation order. PAD SPACE collations drop trailing spaces' weights in a way that keeps the order.
    pub fn sort_key(self, text: &[u8], out: &mut Vec<u8>) {
        let _ = (text, out);
        todo!()
    }
}
