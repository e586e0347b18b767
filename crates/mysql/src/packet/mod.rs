//! Packets without I/O: reading and writing their fields, cutting a byte stream into packets and back, compression.
//!
//! Nothing in here awaits, and nothing believes a length before the bytes are there.

pub mod compression;
pub mod pool;
pub mod read;
pub mod reader;
pub mod write;
pub mod writer;

/// Payload length that says "the packet goes on in the next frame".
pub const MAX_FRAME: usize = 0xFF_FFFF;
pub const HEADER: usize = 4;
