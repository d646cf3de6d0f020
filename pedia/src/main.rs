//! The door of `flotilla-pedia`, the read side of a fleet. What it will do is said by `--help`; nothing of it
//! is here yet, and it says so rather than pretend.

use std::process::ExitCode;

use clap::Parser;

/// Answers questions about every cluster of a fleet from one index.
///
/// flotilla-pedia will follow the objects of all clusters, and the fleet's own, keep them in SQL (SQLite or
/// PostgreSQL), and answer as Kubernetes lists to kubectl and as a page to a browser. It only reads.
///
/// This version has the door alone: it answers --help and --version, and ends with exit code 64 otherwise.
#[derive(Parser)]
#[command(name = "flotilla-pedia", version)]
struct Arguments {}

/// Wrong usage, as sysexits.h has it: what was asked for is not there.
const USAGE: u8 = 64;

fn main() -> ExitCode {
    if let Err(error) = Arguments::try_parse() {
        // Help and version are no errors; printing fails only where nobody listens.
        let _ = error.print();
        return if error.use_stderr() {
            ExitCode::from(USAGE)
        } else {
            ExitCode::SUCCESS
        };
    }
    eprintln!(
        "error: this version of flotilla-pedia has no index yet\nhint: `flotilla-pedia --help` says what it will do"
    );
    ExitCode::from(USAGE)
}
