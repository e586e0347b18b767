//! `rauk completions` and `rauk man`: the parts of a package that are generated from the command line's definition.
//!
//! Shell completions and man pages describe flags. A description that is kept by hand differs from the program after
//! the first forgotten change, so both are generated from the [`clap::Command`] that parses the arguments. The binary
//! generates them itself: `scripts/package.sh` runs the binary that it packs, and a user who copied the binary alone
//! gets the same files with the same commands.
//!
//! Completions go to standard output, because each shell has its own directory for them. Man pages are one file for
//! each subcommand (`rauk.1`, `rauk-start.1`, `rauk-bench-flex.1`, …), so `rauk man` takes a directory. Nothing that is
//! generated contains a date or a path, so that two packages of one commit are the same.
//!
//! Left out: completion of databases and tables. That needs a connection; the Tab key of `rauk sql` has it.

use crate::out;
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgMatches, Command};
use clap_complete::aot::{Bash, Fish, Zsh, generate};
use std::io::Write;
use std::path::{Path, PathBuf};

const SHELLS: &[&str] = &["bash", "zsh", "fish"];

pub fn completions_command() -> Command {
    Command::new("completions").about("Print the completions of a shell").arg(
        Arg::new("shell")
            .value_name("SHELL")
            .help("The shell that reads them")
            .required(true)
            .value_parser(PossibleValuesParser::new(SHELLS)),
    )
}

pub fn man_command() -> Command {
    Command::new("man").about("Write the man pages, one file for each subcommand").arg(
        Arg::new("dir")
            .value_name("DIR")
            .help("Directory for the pages; it is created if it does not exist")
            .required(true)
            .value_parser(clap::value_parser!(PathBuf)),
    )
}

pub fn completions(command: Command, arguments: &ArgMatches) -> Result<(), String> {
    let shell = arguments.get_one::<String>("shell").expect("clap requires it");
    // The generator panics when it cannot write, so it writes to memory.
    std::io::stdout().lock().write_all(&script(command, shell)).map_err(out::told)
}

fn script(mut command: Command, shell: &str) -> Vec<u8> {
    let mut text = Vec::new();
    match shell {
        "bash" => generate(Bash, &mut command, "rauk", &mut text),
        "zsh" => generate(Zsh, &mut command, "rauk", &mut text),
        _ => generate(Fish, &mut command, "rauk", &mut text),
    }
    text
}

pub fn man(command: Command, arguments: &ArgMatches) -> Result<(), String> {
    let directory = arguments.get_one::<PathBuf>("dir").expect("clap requires it");
    let written = write_pages(command, directory).map_err(|e| {
        format!("cannot write man pages to {}: {e}; choose a directory you may write", directory.display())
    })?;
    out::line(format_args!("{written} man pages in {}", directory.display()))
}

/// The number of pages.
fn write_pages(command: Command, directory: &Path) -> std::io::Result<usize> {
    std::fs::create_dir_all(directory)?;
    clap_mangen::generate_to(command, directory)?;
    Ok(std::fs::read_dir(directory)?.count())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Names as a man page has them: `rauk-bench-flex`.
    fn names(command: &Command, name: String, found: &mut BTreeSet<String>) {
        for inner in command.get_subcommands() {
            names(inner, format!("{name}-{}", inner.get_name()), found);
        }
        found.insert(name);
    }

    #[test]
    fn each_shell_completes_every_subcommand_and_flag() {
        for shell in SHELLS {
            let text = String::from_utf8(script(crate::command(), shell)).unwrap();
            for inner in crate::command().get_subcommands() {
                assert!(text.contains(inner.get_name()), "{shell}: {}", inner.get_name());
            }
            for key in crate::config::KEYS {
                assert!(text.contains(key.name), "{shell}: {}", key.name);
            }
        }
    }

    #[test]
    fn every_subcommand_has_a_man_page_with_its_flags() {
        let directory = tempfile::tempdir().unwrap();
        let pages = directory.path().join("not/there/yet");
        let written = write_pages(crate::command(), &pages).unwrap();
        let mut wanted = BTreeSet::new();
        names(&crate::command(), "rauk".into(), &mut wanted);
        for name in &wanted {
            let text =
                std::fs::read_to_string(pages.join(format!("{name}.1"))).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert!(text.contains(".SH SYNOPSIS"), "{name}");
        }
        assert_eq!(written, std::fs::read_dir(&pages).unwrap().count());
        let start = std::fs::read_to_string(pages.join("rauk-start.1")).unwrap();
        for key in crate::config::KEYS {
            assert!(start.contains(&key.name.replace('-', "\\-")), "{}", key.name);
        }
    }

    #[test]
    fn a_directory_that_cannot_be_written_is_one_line() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        std::fs::write(&file, "x").unwrap();
        let command = man_command().no_binary_name(true);
        let error = man(crate::command(), &command.get_matches_from([&file])).unwrap_err();
        assert!(error.contains("file") && error.contains("choose a directory") && !error.contains('\n'), "{error}");
    }
}
