//! The `flotilla` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    flotilla_reconciler::cli::main()
}
