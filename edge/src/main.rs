//! The door of `flotilla-edge`, the proxy of a site. What it will do is said by `--help`; nothing of it is
//! here yet, and it says so rather than pretend.

use std::process::ExitCode;

use clap::Parser;

/// Keeps a site working while the cloud is away: a caching proxy before the Kubernetes API.
///
/// flotilla-edge will stand between a site's kubelets and pods and their API server, pass requests on while
/// the link is up, and answer reads from what it kept on disk while it is down.
///
/// This version has the door alone: it answers --help and --version, and ends with exit code 64 otherwise.
#[derive(Parser)]
#[command(name = "flotilla-edge", version)]
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
        "error: this version of flotilla-edge proxies nothing yet\nhint: `flotilla-edge --help` says what it will do"
    );
    ExitCode::from(USAGE)
}
