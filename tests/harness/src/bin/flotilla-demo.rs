//! `cargo demo`; and the whole of `flotilla` when it is called by that name, as the demo's own folder does.

use std::process::ExitCode;

fn main() -> ExitCode {
    flotilla_harness::demo::main()
}
