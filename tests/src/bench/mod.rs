//! Benches: `cargo fleet-bench BENCH`. One file per bench, one JSON line per figure.
//!
//! Enters: the name of a bench. Leaves: lines such as
//! `{"bench":"render","figure":"cold_1000_units","value":812.0,"unit":"ms","goal":"<=2000","met":true}` on
//! standard output. Deliberately not here: a verdict. A goal that is missed is shown, and fails no run.
//!
//! To add a bench, write `NAME.rs` with `pub(super) fn run(figures: &mut Figures) -> anyhow::Result<()>` and
//! name it in `BENCHES`.

mod apply;
mod corpus;
mod figures;
mod fleet;
mod goals;
mod machine;
mod push;
mod render;
mod rendered;
mod schedule;
mod tunnel;

pub use figures::{Figures, percentile};

/// A bench: its name, and what measures it.
type Bench = (&'static str, fn(&mut Figures) -> anyhow::Result<()>);

/// Every bench there is, by name.
const BENCHES: &[Bench] = &[
    ("apply", apply::run),
    ("fleet", fleet::run),
    ("machine", machine::run),
    ("push", push::run),
    ("render", render::run),
    ("rendered", rendered::run),
    ("schedule", schedule::run),
    ("tunnel", tunnel::run),
];

/// The names of all benches.
pub fn names() -> impl Iterator<Item = &'static str> {
    BENCHES.iter().map(|(name, _)| *name)
}

/// Measures the machine, then runs bench `name`. `None`: there is no such bench.
pub fn run(name: &str) -> Option<anyhow::Result<()>> {
    let (name, bench) = BENCHES.iter().find(|(candidate, _)| *candidate == name)?;
    let calibrated = machine::run(&mut Figures::of("machine"));
    Some(match *name {
        "machine" => calibrated,
        name => calibrated.and_then(|()| bench(&mut Figures::of(name))),
    })
}
