use std::collections::BTreeMap;

use render::model::SyncMode;
use render::model::SyncMode::{Dual, Pull, Push};
use render::{ClusterName, Revision};

use super::*;
use crate::wire::{Intake, list_digest};

fn revision(digit: char) -> Revision {
    Revision::parse(digit.to_string().repeat(40)).expect("forty hex digits")
}

fn word(mode: SyncMode, source: Option<char>, instead: Option<char>) -> Envelope {
    Envelope {
        version: Envelope::VERSION,
        cluster: ClusterName::parse("oslo").expect("a valid name"),
        lineage: revision('a'),
        sequence: 7,
        released: revision('b'),
        units: BTreeMap::new(),
        list: list_digest(&BTreeMap::new(), false),
        orphan: false,
        orphaned: BTreeMap::new(),
        mode,
        mode_source: source.map(revision),
        mode_instead: instead.map(revision),
        lineage_grant: None,
    }
}

/// What a cluster goes by that hears these words in this order.
#[track_caller]
fn check(words: &[Envelope], mode: SyncMode, source: Option<char>) {
    let mut intake = Intake::new(ClusterName::parse("oslo").expect("a valid name"), None);
    for word in words {
        intake.envelope(word, |_, _| true).expect("it is believed");
    }
    let held = intake.held().expect("something was told");
    assert_eq!((held.mode, held.mode_source.clone()), (mode, source.map(revision)));
}

#[test]
fn a_mode_is_taken_that_comes_after_the_one_that_is_held_and_no_other() {
    let first = word(Dual, Some('1'), None);
    check(&[first.clone(), word(Pull, Some('2'), Some('1'))], Pull, Some('2'));
    let newest = word(Pull, Some('3'), Some('1'));
    for late in [
        word(Dual, Some('2'), None),
        word(Dual, Some('2'), Some('1')),
        word(Push, Some('4'), Some('2')),
    ] {
        check(&[first.clone(), newest.clone(), late], Pull, Some('3'));
    }
}

#[test]
fn what_else_an_envelope_says_is_taken_also_where_its_mode_is_not() {
    let held = word(Pull, Some('3'), None);
    let released = Envelope {
        sequence: 8,
        released: revision('c'),
        ..word(Dual, Some('2'), None)
    };
    check(&[held.clone(), released.clone()], Pull, Some('3'));
    let mut intake = Intake::new(held.cluster.clone(), Some(held.held()));
    intake.envelope(&released, |_, _| true).expect("it is newer");
    assert_eq!(intake.held().map(|held| held.sequence), Some(8));
}

#[test]
fn a_hub_that_says_no_order_is_taken_as_it_always_was_and_an_order_begins_again_with_the_next_that_does() {
    let first = word(Dual, Some('1'), None);
    check(&[first.clone(), word(Dual, None, None)], Dual, Some('1'));
    check(&[first.clone(), word(Push, None, None)], Push, None);
    check(
        &[first, word(Push, None, None), word(Pull, Some('2'), None)],
        Pull,
        Some('2'),
    );
}

#[test]
fn a_lineage_that_was_granted_brings_its_mode() {
    let granted = Envelope {
        lineage: revision('d'),
        sequence: 1,
        ..word(Dual, Some('1'), None)
    };
    assert!(takes_mode(Some(&word(Pull, Some('3'), None).held()), &granted));
}
