//! The house: every test of Flotilla as a whole, in one binary.
//!
//! `real` says that the real parts work, `journeys` follow a push through the house, `architecture` holds the
//! rules of the house, `inputs` is the door to manifests that people really deploy,
//! `acting` makes commits in a clone as a person would,
//! `helm` is about releases, `fleet` is about many clusters, in memory, `contract` holds the in-memory API server against a real one,
//! `charts` has the real helm judge what values and charts come to,
//! `mistakes` is what people get wrong, with the message that each gets,
//! `kubectl` judges what the hub serves, `looking` the commands that only look, `template` is the repository
//! that `flotilla init` writes, `sops` opens what the real `sops` wrote,
//! `examples` and `vectors` are Clusternet's, beside what we make of them.
#![expect(clippy::panic, reason = "tests: a rule or a promise that is broken ends the test")]
#![allow(clippy::unwrap_used, reason = "tests: a value that is not there is a failure")]

mod acting;
mod apply;
mod approval;
mod architecture;
mod bench;
mod charts;
mod contract;
mod examples;
mod fleet;
mod helm;
mod inputs;
mod journeys;
mod kubectl;
mod looking;
mod mistakes;
mod nasty;
mod real;
mod secrets;
mod sops;
mod template;
mod upgrade;
mod vectors;
