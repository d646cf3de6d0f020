//! How far the objects in a hub cluster have come, as a condition of the fleet.

use std::collections::BTreeMap;

use render::model::RenderMode;

use super::desired::{Desired, Release};
use super::kind::Id;
use super::mirror::{Mirror, MirrorError};
use super::run::RoundError;
use crate::fault::line;
use crate::hub::engine::Condition;
use crate::limits::{OBJECTS_NAMED_MAX, RESULT_MESSAGE_CHARS_MAX};

/// Type of the fleet's condition about its objects.
const KIND: &str = "ObjectsWritten";

pub(super) fn condition(status: &'static str, reason: &'static str, message: String) -> Condition {
    Condition {
        kind: KIND,
        status,
        reason,
        message,
    }
}

/// The condition of a fleet whose objects are not written.
pub(super) fn idle(mode: Option<RenderMode>, has_cluster: bool) -> Option<Condition> {
    match (mode, has_cluster) {
        (Some(RenderMode::Objects), false) => Some(condition(
            "False",
            "NoHubCluster",
            "spec.render.mode of fleet.yaml is objects, and the hub knows no hub cluster; start it with --objects-kubeconfig or --objects-in-cluster".to_owned(),
        )),
        (Some(RenderMode::Commits), true) => Some(condition(
            "True",
            "ModeCommits",
            "spec.render.mode of fleet.yaml is commits: nothing is written to the hub cluster, and what was written before stays".to_owned(),
        )),
        _ => None,
    }
}

/// The condition of a fleet whose hub cluster could not be read or written.
pub(super) fn trouble(error: &RoundError) -> Condition {
    let reason = match error {
        RoundError::Mirror(MirrorError::NotServed { .. }) => "KindsNotServed",
        RoundError::Mirror(_) | RoundError::Client(_) => "HubClusterUnreachable",
    };
    condition("False", reason, line(error))
}

/// How far it has come.
pub(super) fn verdict(mirror: &Mirror, desired: &Desired, release: &Release) -> Condition {
    if !mirror.foreign.is_empty() {
        let words = "objects of the hub cluster have names that are needed, and are not ours";
        return condition("False", "ForeignObjects", named(words, &mirror.foreign));
    }
    if !mirror.refused.is_empty() {
        let words = "objects were refused by the hub cluster";
        return condition("False", "ObjectsRefused", named(words, &mirror.refused));
    }
    if let Some(first) = desired.unreadable.first() {
        let message = format!(
            "{} contents could not be read, such as {first}",
            desired.unreadable.len()
        );
        return condition("Unknown", "ContentUnreadable", message);
    }
    let mut message = format!(
        "{} objects of the hub cluster say what sequence {} says",
        mirror.len() - mirror.kept.len(),
        release.sequence
    );
    if !mirror.kept.is_empty() {
        message = format!(
            "{message}; {}",
            named("others stay, since a proof is missing", &mirror.kept)
        );
    }
    condition("True", "Written", message)
}

fn named(words: &str, objects: &BTreeMap<Id, String>) -> String {
    let first = objects.iter().take(OBJECTS_NAMED_MAX);
    let short = |reason: &str| reason.chars().take(RESULT_MESSAGE_CHARS_MAX).collect::<String>();
    let first: Vec<_> = first.map(|(id, reason)| format!("{id}: {}", short(reason))).collect();
    format!("{} {words}: {}", objects.len(), first.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(mode: Option<RenderMode>, has_cluster: bool, expected: Option<(&str, &str)>) {
        let found = idle(mode, has_cluster);
        assert_eq!(found.map(|found| (found.status, found.reason)), expected);
    }

    #[test]
    fn only_a_mode_that_lacks_its_hub_cluster_is_something_to_mend() {
        check(None, true, None);
        check(Some(RenderMode::Commits), false, None);
        check(Some(RenderMode::Commits), true, Some(("True", "ModeCommits")));
        check(Some(RenderMode::Objects), false, Some(("False", "NoHubCluster")));
    }

    #[test]
    fn a_message_names_a_few_and_counts_all() {
        let objects = (0..9).map(|number| (Id::namespace(format!("n{number}")), "why".to_owned()));
        let message = named("objects", &objects.collect());
        assert_eq!(
            message,
            "9 objects: Namespace n0: why; Namespace n1: why; Namespace n2: why"
        );
    }
}
