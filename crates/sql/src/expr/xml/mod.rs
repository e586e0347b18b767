//! Documents and paths of EXTRACTVALUE and UPDATEXML.
//!
//! ```text
//! document   text → nodes: elements, attributes, texts, each with its place in the text
//! path       XPath's text → a tree of steps and operators
//! lexer      XPath's text → tokens
//! select     the nodes and values that a path finds
//! ```
//! The XPath is the part of 1.0 that MySQL's manual lists: location paths with the axes that it names, predicates, operators, user variables as `$@name`, and
//! the functions `boolean ceiling concat contains count false floor last not number position round string-length substring sum true`. A path begins at the
//! root of the document, in a predicate at the node that is judged.
//! Left out, as there: `following`, `preceding` and their siblings, `namespace`, and functions of names and of text normalisation.
//!
//! **Bounds.** A document has at most as many nodes as bytes and 1 000 levels, a path 100 levels; each node that a step looks at is counted as work, so that
//! KILL ends an evaluation.

mod document;
mod lexer;
mod path;
mod select;

pub(in crate::expr) use document::{Document, Kind};
pub(in crate::expr) use path::{Path, Wrong as PathError};
pub(in crate::expr) use select::{Found, find, string};
