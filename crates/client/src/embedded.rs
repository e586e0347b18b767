//! The whole database in this process: no port, no thread between the program and its rows.

use crate::{Client, Error};
use std::path::Path;

/// An open database. [`Rauk::client`] gives the same API as over the network.
pub struct Rauk {
    _private: (),
}

impl Rauk {
    /// Opens or makes the database in a directory; recovers what a crash left.
    pub fn open(_directory: impl AsRef<Path>) -> Result<Rauk, Error> {
        todo!()
    }

    /// The same with limits and durability.
    pub fn open_with(_directory: impl AsRef<Path>, _config: rauk_node::Config) -> Result<Rauk, Error> {
        todo!()
    }

    pub fn client(&self) -> Client {
        todo!()
    }

    /// Writes a last checkpoint and closes. Dropping it closes too, and loses nothing that was acknowledged.
    pub fn close(self) -> Result<(), Error> {
        todo!()
    }
}
