//! Text to [`Statement`].
pub mod statement;

pub use statement::Statement;
