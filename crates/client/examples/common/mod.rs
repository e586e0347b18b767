//! Where the examples' rows are: in this process, or at a server that is named on the command line.

use rauk_client::{Client, Error, Options, Rauk, blocking};

/// A client, and the database behind it when that is in this process (it closes when dropped, so keep it).
pub fn open() -> Result<(Client, Option<Rauk>), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [] => {
            let directory = std::env::temp_dir().join("rauk-examples");
            println!("embedded database in {}", directory.display());
            println!("(over the network: -- HOST:PORT SECRET_FILE, as `rauk start` says them)\n");
            let rauk = Rauk::open(directory)?;
            Ok((rauk.client(), Some(rauk)))
        }
        [address, secret_file] => {
            println!("server at {address}\n");
            Ok((blocking::connect(address, Options::secret_file(secret_file))?, None))
        }
        _ => {
            eprintln!("usage: [HOST:PORT SECRET_FILE]");
            std::process::exit(2);
        }
    }
}
