//! For programs without an asynchronous runtime: the calling thread waits, and receives for itself while it does.

use crate::{Client, Error, Options};

/// Runs a future of this API on the calling thread. While it waits, the thread receives from the network for all clients in it: so a request needs
/// no change of threads.
pub fn wait<T>(_future: impl Future<Output = T>) -> T {
    todo!()
}

pub fn connect(address: &str, options: Options) -> Result<Client, Error> {
    wait(Client::connect(address, options))
}
