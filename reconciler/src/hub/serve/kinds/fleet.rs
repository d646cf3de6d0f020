//! The one object of kind Fleet.

use std::collections::BTreeMap;

use render::rekey::KeyChange;
use render::{ClusterName, Revision};
use serde_json::{Map, Value, json};
use tunnel::PublicKey;

use super::super::object::{Object, plain};
use super::{of, or_dash, ready_cells};
use crate::hub::engine::KeyWish;
use crate::hub::knocks::Knock;
use crate::hub::observe::{FleetView, Observation, Session, short_revision, shown_revision};
use crate::hub::proposals::proposed_file;

/// Its name.
const NAME: &str = "fleet";

pub(super) fn object(observation: &Observation<'_>) -> Object {
    let state = observation.state;
    let view = observation.fleet();
    let declared = state.fleet.as_ref();
    Object {
        namespace: String::new(),
        name: NAME.to_owned(),
        labels: BTreeMap::new(),
        live: None,
        made_by: state.released.iter().map(|released| released.lineage.clone()).collect(),
        created: None,
        declared_in: String::new(),
        spec: declared.map(|fleet| plain(&fleet.spec)).unwrap_or_else(|| json!({})),
        status: status(observation, &view),
        cells: cells(&state.branch, &view),
        conditions: view.conditions,
    }
}

fn status(observation: &Observation<'_>, view: &FleetView) -> Map<String, Value> {
    let branch = &observation.state.branch;
    let proposed = observation.state.proposed.as_ref();
    let mut status = Map::new();
    let mut put = |field: &str, value: Option<Value>| {
        if let Some(value) = value {
            status.insert(field.to_owned(), value);
        }
    };
    let shown = |revision: &Option<Revision>| {
        revision
            .as_ref()
            .map(|revision| json!(shown_revision(branch, revision)))
    };
    put("source", shown(&view.source));
    put("accepted", shown(&view.accepted));
    // Commits of the hub's own refs, on no branch of the source.
    put(
        "rendered",
        view.rendered.as_ref().map(|commit| json!(shown_revision("", commit))),
    );
    put(
        "released",
        view.released.as_ref().map(|commit| json!(shown_revision("", commit))),
    );
    put(
        "proposed",
        proposed.map(|proposed| json!(proposed.branch.trim_start_matches("refs/heads/"))),
    );
    put(
        "proposedSource",
        proposed
            .and_then(|proposed| proposed.source.as_ref())
            .map(|source| json!(shown_revision(branch, source))),
    );
    let kept = observation.state.kept_proposals.iter();
    let kept: Vec<_> = kept.map(|branch| branch.trim_start_matches("refs/heads/")).collect();
    put("keptProposals", (!kept.is_empty()).then(|| json!(kept)));
    put("mergeWith", observation.merge_command().map(|command| json!(command)));
    put("sequence", view.sequence.map(|sequence| json!(sequence)));
    put("recovering", observation.is_recovering().then_some(json!(true)));
    let clusters = view
        .clusters
        .iter()
        .map(|(session, count)| (session.as_str().to_owned(), json!(count)));
    put(
        "clusters",
        Some(Value::Object(
            clusters.map(|(name, count)| (lower_first(&name), count)).collect(),
        )),
    );
    let knocking: Vec<_> = observation.state.knocks.iter().map(knocking).collect();
    let joining = observation.state.joining();
    let joining: Vec<_> = joining
        .iter()
        .map(|(name, key)| waiting(observation, name, key))
        .collect();
    let (changes, contests) = observation.state.keys_waiting();
    let changes: Vec<_> = changes
        .iter()
        .map(|(name, change)| key_change(observation, name, change))
        .collect();
    let contests: Vec<_> = contests
        .iter()
        .map(|(name, wishes)| key_contest(name, wishes))
        .collect();
    put("keyContests", (!contests.is_empty()).then(|| json!(contests)));
    put("keyChanges", (!changes.is_empty()).then(|| json!(changes)));
    put("joining", (!joining.is_empty()).then(|| json!(joining)));
    put("knocking", (!knocking.is_empty()).then(|| json!(knocking)));
    put("units", Some(plain(view.units)));
    put("findings", Some(plain(view.findings)));
    status
}

/// A cluster whose agent asked for registration, with the branch to merge or the file to push.
fn waiting(observation: &Observation<'_>, name: &ClusterName, key: &PublicKey) -> Value {
    let branch = observation.state.joins.branch(name);
    let file = proposed_file(name, key);
    let mut said = json!({ "cluster": name, "key": key.to_string(), "branch": branch, "file": file });
    if observation.state.joins.is_contested(name) {
        said["message"] = json!("another hub proposes another key for it: close that branch, or end its agent");
    }
    said
}

/// A cluster whose agent wishes another key, with the branch to merge or what to push.
pub(super) fn key_change(observation: &Observation<'_>, name: &ClusterName, change: &KeyChange) -> Value {
    let keys = &observation.state.agent_keys;
    let mut said = match change {
        KeyChange::Add(key) => json!({ "cluster": name, "add": key }),
        KeyChange::Remove(key) => json!({ "cluster": name, "remove": key }),
    };
    if let Some(branch) = keys.branch(name) {
        said["branch"] = json!(branch);
    }
    if let Some(why) = keys.by_hand(name) {
        said["message"] = json!(why);
    }
    said
}

/// A cluster whose agents wish different keys, of which none is proposed.
fn key_contest(name: &ClusterName, wishes: &[KeyWish]) -> Value {
    let one = |wish: &KeyWish| format!("{} ({})", wish.next, wish.asker());
    let all: Vec<_> = wishes.iter().map(one).collect();
    let message = format!(
        "its agents wish different keys, and none is proposed: {}; end the one that is not yours, and take its key out",
        all.join(" or ")
    );
    json!({ "cluster": name, "message": message })
}

/// A caller that is not let in.
fn knocking(knock: &Knock) -> Value {
    json!({
        "cluster": knock.cluster,
        "key": knock.key.map(|key| key.to_string()).unwrap_or_default(),
        "reason": knock.why.as_str(),
        "message": knock.message(),
        "first": render::time::rfc3339(knock.first),
        "last": render::time::rfc3339(knock.last),
        "count": knock.count,
    })
}

/// A field's name from a word: `NeverSeen` → `neverSeen`.
fn lower_first(word: &str) -> String {
    let mut chars = word.chars();
    let first = chars.next().map(|first| first.to_ascii_lowercase());
    first.into_iter().chain(chars).collect()
}

fn cells(branch: &str, view: &FleetView) -> Vec<Value> {
    let (ready, message) = ready_cells(&view.conditions);
    let count = |wanted: Session| {
        view.clusters
            .iter()
            .find(|(session, _)| *session == wanted)
            .map_or(0, |(_, count)| *count)
    };
    let clusters = view.clusters.iter().map(|(_, count)| count).sum();
    let short = |commit: &Option<Revision>| or_dash(commit.as_ref().map(|commit| short_revision("", commit)));
    vec![
        ready,
        or_dash(view.accepted.as_ref().map(|revision| short_revision(branch, revision))),
        json!(view.sequence.unwrap_or_default()),
        of(count(Session::Connected), clusters),
        of(view.units.ready, view.units.total),
        json!(view.findings.errors),
        short(&view.rendered),
        short(&view.released),
        message,
    ]
}
