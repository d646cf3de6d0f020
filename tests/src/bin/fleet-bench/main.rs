//! `cargo fleet-bench BENCH`: measures, and prints one JSON line per figure.

use std::process::ExitCode;

use clap::Parser;
use flotilla_tests::bench;

/// Measures Flotilla and prints one JSON line per figure.
///
/// Every run also prints the figure `calibration` of bench `machine`, the time of a fixed amount of hashing,
/// so that figures of different machines and hours can be compared.
#[derive(Parser)]
#[command(name = "fleet-bench")]
struct Arguments {
    /// What to measure
    bench: String,
}

/// Wrong usage, as sysexits.h has it.
const USAGE: u8 = 64;

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version are no errors; printing fails only where nobody listens.
            let _ = error.print();
            return if error.use_stderr() {
                ExitCode::from(USAGE)
            } else {
                ExitCode::SUCCESS
            };
        }
    };
    match bench::run(&arguments.bench) {
        Some(Ok(())) => ExitCode::SUCCESS,
        Some(Err(error)) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
        None => {
            let names: Vec<_> = bench::names().collect();
            eprintln!(
                "error: no bench is named {}\nhint: one of {}",
                arguments.bench,
                names.join(", ")
            );
            ExitCode::from(USAGE)
        }
    }
}
