//! Documents and paths of EXTRACTVALUE and UPDATEXML.
//!
//! ```text
//! document   text → nodes: elements, attributes, texts, each with its place in the text
//! path       XPath's text → steps and expressions
//! select     the nodes and values that a path finds
//! ```
//! The XPath is the part of 1.0 that MySQL's manual lists: location paths with the axes that it names, predicates, operators, and the functions `boolean
//! ceiling concat contains count false floor last not number position round string-length substring sum true`. Paths begin at the root of the document.
//! Left out, as there: `following`, `preceding` and their siblings, `namespace`, variables, and functions of names and of text normalisation.
//!
//! **Bounds.** A document has at most as many nodes as bytes and 1 000 levels, a path 100 levels; each step of a path over a node is counted as work, so that
//! KILL ends an evaluation.

mod document;
mod path;
mod select;

pub(in crate::expr) use document::Document;
pub(in crate::expr) use path::Path;
pub(in crate::expr) use select::{Found, evaluate};
