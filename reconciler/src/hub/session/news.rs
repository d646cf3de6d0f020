//! What a cluster is told, and what it need not be told again.

use std::sync::Arc;

use crate::hub::mode_order::ModeOrder;
use crate::wire::{Envelope, Held, takes_mode};

/// Whether an envelope says something else than what was told in this session and what the cluster holds: an unchanged list
/// is not sent, whatever its sequence, unless the cluster has another mode that this one comes after. What the cluster
/// refused is told again once it may be believed, with another sequence or a grant. What is older than it holds it would
/// refuse: another hub was first.
pub(in crate::hub) fn is_news(envelope: &Envelope, told: Option<&Envelope>, held: Option<&Held>) -> bool {
    let is_older = |held: &Held| held.lineage == envelope.lineage && held.sequence > envelope.sequence;
    if held.is_some_and(is_older) {
        return false;
    }
    // Of another mode the cluster is told where it would take it: it may have a newer one from another hub.
    let goes_by_other = |held: &Held| held.mode != envelope.mode && takes_mode(Some(held), envelope);
    let is_held = |held: &Held| held.list == envelope.list && held.lineage == envelope.lineage && !goes_by_other(held);
    let Some(told) = told else {
        return !held.is_some_and(is_held);
    };
    if told.list != envelope.list || told.lineage != envelope.lineage || told.mode != envelope.mode {
        return true;
    }
    if told.mode_instead != envelope.mode_instead && held.is_some_and(goes_by_other) {
        return true;
    }
    let differs = told.sequence != envelope.sequence || told.lineage_grant != envelope.lineage_grant;
    differs && held.is_some_and(|held| !is_held(held))
}

/// The envelope as a cluster is to be told it, where it is news after what was told and what is held. History is read only where
/// something may be told.
pub(in crate::hub) async fn news(
    modes: &ModeOrder,
    envelope: Arc<Envelope>,
    (told, held): (Option<&Envelope>, Option<&Held>),
) -> Option<Arc<Envelope>> {
    let is_other_mode = held.is_some_and(|held| held.mode != envelope.mode);
    // Of two commits the order makes news of another mode alone.
    if !is_other_mode && !is_news(&envelope, told, held) {
        return None;
    }
    let envelope = modes.placed(envelope, held).await;
    is_news(&envelope, told, held).then_some(envelope)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use render::model::SyncMode;
    use render::{ClusterName, Digest, Revision};

    use super::*;
    use crate::wire::{EnvelopeUnit, LineageGrant, list_digest};

    fn revision(digit: char) -> Revision {
        Revision::parse(digit.to_string().repeat(40)).expect("forty digits are a revision")
    }

    fn envelope(lineage: char, sequence: u64, content: &str) -> Envelope {
        let unit = EnvelopeUnit {
            digest: Digest::of_bytes(content.as_bytes()),
            revision: revision('b'),
            replicas: Default::default(),
            drift: Default::default(),
            gates: Vec::new(),
        };
        let units = BTreeMap::from([("shop/web".parse().expect("a valid unit"), unit)]);
        Envelope {
            version: Envelope::VERSION,
            cluster: ClusterName::parse("edge-1").expect("a valid name"),
            lineage: revision(lineage),
            sequence,
            released: revision('c'),
            list: list_digest(&units, false),
            units,
            orphan: false,
            orphaned: Default::default(),
            mode: Default::default(),
            mode_source: None,
            mode_instead: None,
            lineage_grant: None,
        }
    }

    #[track_caller]
    fn check(newest: &Envelope, told: Option<&Envelope>, held: Option<&Envelope>, expected: bool) {
        let held = held.map(Envelope::held);
        assert_eq!(is_news(newest, told, held.as_ref()), expected);
    }

    #[test]
    fn only_what_a_cluster_does_not_hold_is_told() {
        let (old, same, new) = (envelope('a', 7, "x"), envelope('a', 8, "x"), envelope('a', 8, "y"));
        check(&old, None, None, true);
        check(&same, None, Some(&old), false);
        check(&new, None, Some(&old), true);
        check(&new, Some(&old), Some(&old), true);
        check(&same, Some(&old), Some(&old), false);
        check(&new, Some(&new), Some(&old), false);
    }

    #[test]
    fn another_mode_is_told_although_nothing_else_is_new() {
        let dual = envelope('a', 7, "x");
        let push = Envelope {
            mode: SyncMode::Push,
            ..dual.clone()
        };
        check(&push, None, Some(&dual), true);
        check(&push, Some(&dual), Some(&dual), true);
        check(&push, Some(&push), Some(&dual), false);
        check(&push, None, Some(&push), false);
        check(&dual, Some(&push), Some(&push), true);
    }

    #[test]
    fn a_hub_that_is_behind_another_one_tells_nothing_old() {
        let (older, newer) = (envelope('a', 7, "x"), envelope('a', 8, "y"));
        for told in [None, Some(&newer), Some(&older)] {
            check(&older, told, Some(&newer), false);
        }
        check(&envelope('a', 9, "x"), None, Some(&newer), true);
    }

    #[test]
    fn what_was_refused_is_told_again_once_it_may_be_believed() {
        let (held, refused, higher) = (envelope('a', 7, "x"), envelope('a', 7, "y"), envelope('a', 8, "y"));
        check(&refused, Some(&refused), Some(&held), false);
        check(&higher, Some(&refused), Some(&held), true);
        let other = envelope('d', 1, "x");
        let granted = Envelope {
            lineage_grant: Some(LineageGrant::new(&other.cluster, revision('d'), |_| Vec::new())),
            ..other.clone()
        };
        check(&granted, Some(&other), Some(&held), true);
        check(&granted, Some(&other), Some(&other), false);
    }
}
