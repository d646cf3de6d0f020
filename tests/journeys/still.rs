//! What must not change: refs, and objects in clusters.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::{Duration, Instant};

use flotilla_tests::{Output, eventually, parts, wait};
use serde_json::Value;

use super::support::{Fleet, LIMIT, versions};

/// How long nothing may change: a push takes well under a second to reach a cluster, also on a busy machine.
const STILL: Duration = Duration::from_secs(2);

/// Where the hub's refs stand, and the version of every ConfigMap in every cluster.
#[derive(Debug, PartialEq)]
pub(super) struct Picture {
    refs: Vec<Option<String>>,
    objects: Vec<BTreeMap<String, String>>,
}

impl Picture {
    #[track_caller]
    pub(super) fn of(fleet: &Fleet) -> Self {
        Self {
            refs: state_refs(fleet),
            objects: objects(fleet),
        }
    }

    /// `rendered` and `released`.
    pub(super) fn refs(&self) -> &[Option<String>] {
        &self.refs
    }
}

/// `rendered` and `released`.
fn state_refs(fleet: &Fleet) -> Vec<Option<String>> {
    let refs = ["flotilla/rendered", "flotilla/released"];
    refs.map(|name| fleet.repository.head(name)).to_vec()
}

/// The version of every ConfigMap of the fleet, cluster by cluster.
#[track_caller]
pub(super) fn objects(fleet: &Fleet) -> Vec<BTreeMap<String, String>> {
    let clusters = fleet.clusters.iter();
    clusters.map(|cluster| versions(cluster, "configmaps")).collect()
}

/// Looks for a while whether anything differs from the picture, and panics if it does.
#[track_caller]
pub(super) fn assert_unchanged(fleet: &Fleet, picture: &Picture, what: &str) {
    wait::throughout(STILL, what, || unchanged(&Picture::of(fleet), picture));
}

/// As [`assert_unchanged`], for the clusters alone.
#[track_caller]
pub(super) fn assert_objects_unchanged(fleet: &Fleet, before: &[BTreeMap<String, String>], what: &str) {
    wait::throughout(STILL, what, || unchanged(&objects(fleet)[..], before));
}

fn unchanged<T: std::fmt::Debug + PartialEq + ?Sized>(now: &T, before: &T) -> Result<(), String> {
    if now == before {
        return Ok(());
    }
    Err(format!("{now:#?} was {before:#?}"))
}

/// Waits until both state refs stand where they stood.
#[track_caller]
pub(super) fn until_refs(fleet: &Fleet, expected: &[Option<String>], what: &str) {
    eventually(LIMIT, what, || unchanged(&state_refs(fleet)[..], expected));
}

/// Waits until a hub that just started has all its agents.
#[track_caller]
pub(super) fn until_connected(fleet: &Fleet) {
    eventually(LIMIT, "every agent connects", || {
        let connected = fleet.logs().matches("Agent connected.").count();
        let all = fleet.clusters.len();
        (connected >= all).then_some(()).ok_or(format!("{connected} of {all}"))
    });
}

/// Waits until a condition of the fleet has a reason, as the hub's own API says it.
#[track_caller]
pub(super) fn until_reason(fleet: &Fleet, condition: &str, reason: &str) {
    eventually(LIMIT, &format!("{condition} is {reason}"), || {
        let mut kubectl = parts::command("kubectl");
        let path = "/apis/fleet.flotilla.dev/v1alpha1/fleets/fleet";
        let answer = Output::of(kubectl.args(["--server", &fleet.api(), "get", "--raw", path])).ok()?;
        let answer: Value = serde_json::from_str(&answer).map_err(|error| error.to_string())?;
        let conditions = answer["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let found = conditions.iter().find(|found| found["type"] == condition);
        match found {
            Some(found) if found["reason"] == reason => Ok(()),
            _ => Err(format!("{conditions:#?}")),
        }
    });
}

/// Lets time pass: for what happens at no particular moment.
pub(super) fn pass(time: Duration) {
    let started = Instant::now();
    eventually(LIMIT, "time passes", || {
        let passed = started.elapsed() >= time;
        passed.then_some(()).ok_or_else(|| "not yet".to_owned())
    });
}

/// Runs `git` in the bare repository, as somebody who may do anything there.
#[track_caller]
pub(super) fn git_bare(fleet: &Fleet, arguments: &[&str]) -> String {
    fleet.repository.git_bare(arguments).expect_ok().trim().to_owned()
}

/// Copies a folder of a stopped process, as a backup does.
pub(super) fn copy(from: &str, to: &str) {
    Output::of(Command::new("cp").args(["-R", from, to])).expect_ok();
}
