//! What Clusternet answers to given inputs, put to our own functions.
//!
//! Every vector of the areas listed here is either answered as upstream does, or stands among the
//! deviations with our answer and why it is right. A deviation that no longer deviates fails too. Where a
//! Subscription says whose arithmetic it wants, both are asked.

mod choosing;
mod deviations;
mod dividing;
mod feeds;
mod fields;
mod fleet;
mod overrides;
mod ranges;
mod rooms;
mod schedule;
mod ways;

use std::collections::BTreeSet;
use std::path::Path;

use render::model::SchedulingPolicy;
use serde_json::Value;

use crate::architecture::test_names;
use crate::inputs::with_inputs;

/// The vectors of these areas at the time of writing; what a run without inputs leaves out.
const VECTORS: usize = 167;

/// One question to upstream, and its answer.
struct Vector {
    id: String,
    area: String,
    input: Value,
    expected: Value,
}

/// How an area is answered here: our answer to an input, in the form of upstream's.
#[derive(Clone, Copy)]
enum Asked {
    /// In one way, whoever asks.
    Once(fn(&Value) -> Value),
    /// By Clusternet's arithmetic, and by ours.
    Both(fn(&Value, SchedulingPolicy) -> Value),
    /// Not at all, since there is no such thing here: why, and the test of what is promised instead.
    Never(&'static str, &'static str),
}

/// Reads upstream's answer.
type Reading = fn(&Value) -> Value;

use Asked::{Both, Never, Once};

const ONE_PLAN: &str =
    "one pure plan looks at every cluster and every unit each time: nothing is queued, tried again or sampled";
const TAINTS_IN_GIT: &str = "a cluster's taints are what its file says; no controller edits them";
const LABELS_IN_GIT: &str =
    "a cluster's labels are what its file says; what nodes are labelled with decides node by node";
const TOKENS: &str =
    "a token is 256 random bits in one word: no part of it is a name, and any other word is worth nothing";
const CONDITIONS: &str =
    "an object's conditions are made whole from what is known each time: none is merged into a list that stands there";
const BY_SESSION: &str =
    "a cluster is heard of while its session lasts; no heartbeat is waited for, and no taint follows";

const BY_KEY: &str = "a cluster is who proves the key in its file: no token of a ServiceAccount is made or read, and no path names who dials";
const NAMED_PEERS: &str = "other hubs are named by address and key; no Lease carries an address and a token";
const OWN_ADDRESSES: &str = "a kubeconfig names the hub's door and a cluster, and no API is rewritten; the door takes upstream's URLs of clusters as they stand";

const OWN_FORM: &str = "a_path_names_its_cluster_in_our_form_and_in_each_of_clusternets";

/// Each area's answer, by the beginning of its name; the longest beginning wins.
const AREAS: [(&str, Asked); 53] = [
    ("bind-order", Once(schedule::bind_order)),
    (
        "bootstrap-token",
        Never(TOKENS, "a_token_counts_once_for_its_own_cluster_and_until_it_expires"),
    ),
    ("capacity-aggregate", Once(rooms::aggregate)),
    ("capacity-node", Once(rooms::node)),
    ("cidr-discovery", Once(ranges::found)),
    (
        "cluster-lifecycle",
        Never(BY_SESSION, "a_cluster_that_is_away_is_offline_and_not_broken"),
    ),
    ("cluster-name", Once(choosing::cluster_name)),
    (
        "conditions",
        Never(CONDITIONS, "a_cluster_that_is_away_is_offline_and_not_broken"),
    ),
    (
        "cluster-ready",
        Never(BY_SESSION, "a_cluster_that_was_not_heard_yet_is_known_as_such"),
    ),
    (
        "discovery-secret",
        Never(
            "no controller of Cluster API hands out registrations: a token is made by who runs the hub, for one name",
            "a_token_gives_the_right_to_ask_and_nothing_else",
        ),
    ),
    ("dynamic-assign", Both(dividing::dynamic_assign)),
    ("dynamic-divide", Both(dividing::dynamic_divide)),
    (
        "extra-headers",
        Never(
            "who somebody is, the hub says; what a caller's own headers say of it is dropped, and goes to no cluster",
            "a_cluster_sees_no_credential_and_no_header_of_the_connection",
        ),
    ),
    ("feed-changed", Once(schedule::feed_changed)),
    ("feed-contains", Once(feeds::contains)),
    ("feed-format", Once(feeds::format)),
    ("feed-key", Once(feeds::key)),
    ("feed-obsolete", Once(feeds::obsolete)),
    ("field-lookup", Once(fields::lookup)),
    ("field-patch", Once(fields::patch)),
    ("inventory-parse", Once(rooms::inventory)),
    ("json-patch", Once(overrides::json_patch)),
    (
        "label-aggregate",
        Never(
            LABELS_IN_GIT,
            "inputs_change_with_what_was_looked_at_and_with_nothing_else",
        ),
    ),
    (
        "label-common",
        Never(
            LABELS_IN_GIT,
            "inputs_change_with_what_was_looked_at_and_with_nothing_else",
        ),
    ),
    (
        "label-patch",
        Never(
            LABELS_IN_GIT,
            "inputs_change_with_what_was_looked_at_and_with_nothing_else",
        ),
    ),
    ("merge-targets", Both(dividing::merge_targets)),
    ("node-taint-filter", Once(rooms::node_taint_filter)),
    ("override", Once(overrides::steps)),
    ("override-derived", Once(overrides::steps)),
    ("override-order", Once(overrides::order)),
    (
        "peer-lease",
        Never(
            NAMED_PEERS,
            "only_hubs_that_are_named_are_let_in_and_no_cluster_passes_for_one",
        ),
    ),
    ("predict-merge", Both(dividing::predict_merge)),
    ("queue", Once(choosing::queue)),
    (
        "queue-backoff",
        Never(ONE_PLAN, "decisions_that_no_commit_causes_are_a_minute_apart"),
    ),
    ("proxy-url", Once(ways::proxy_url)),
    ("requirements", Once(rooms::requirements)),
    (
        "sa-token",
        Never(BY_KEY, "a_key_is_revoked_when_its_file_names_it_no_more_or_is_gone"),
    ),
    ("sampling", Once(choosing::sampling)),
    ("score-normalize", Once(choosing::score_normalize)),
    ("shadow-url", Never(OWN_ADDRESSES, OWN_FORM)),
    ("spec-hash", Once(schedule::spec_hash)),
    ("static-assign", Both(schedule::assign)),
    ("static-divide", Both(schedule::divide)),
    ("static-weight-order", Both(schedule::weight_order)),
    ("subgroup", Both(choosing::sub_group)),
    ("sync-mode", Once(choosing::who_applies)),
    ("taint-add", Never(TAINTS_IN_GIT, "taints_keep_out_or_evict")),
    ("taint-remove", Never(TAINTS_IN_GIT, "taints_keep_out_or_evict")),
    ("taint-filter", Once(schedule::taint_filter)),
    ("taint-score", Both(choosing::taint_score)),
    ("trim", Once(feeds::trim)),
    ("trim-derived", Once(feeds::trim)),
    (
        "tunnel-auth",
        Never(BY_KEY, "an_agent_with_another_key_is_refused_and_waits_a_minute"),
    ),
];

/// All areas of scheduling, by the beginnings of their names: none of their vectors may be asked by nobody.
const SCHEDULING: [&str; 19] = [
    "static-",
    "dynamic-",
    "merge-targets",
    "queue",
    "sampling-",
    "subgroup",
    "bind-order",
    "score-",
    "taint-",
    "node-taint-filter",
    "capacity-",
    "predict-merge",
    "requirements",
    "inventory-parse",
    "cluster-",
    "label-",
    "spec-hash",
    "feed-changed",
    "feed-obsolete",
];

/// What of upstream's answers is compared, where that is not all of it or stands there in another form.
const READ: [(&str, Reading); 2] = [("merge-targets", dividing::by_name), ("requirements", rooms::amounts)];

fn longest<T: Copy>(list: &[(&str, T)], area: &str) -> Option<T> {
    let beginnings = list.iter().filter(|(beginning, _)| area.starts_with(beginning));
    beginnings
        .max_by_key(|(beginning, _)| beginning.len())
        .map(|(_, found)| *found)
}

fn read(file: &Path) -> Vec<Vector> {
    let bytes = std::fs::read(file).expect("the vectors lie beside the inputs");
    let list: Vec<Value> = serde_json::from_slice(&bytes).expect("the vectors are a JSON list");
    let text = |value: &Value| value.as_str().expect("id and area are text").to_owned();
    list.into_iter()
        .map(|vector| {
            let area = text(&vector["area"]);
            let expected = match longest(&READ, &area) {
                Some(read) => read(&vector["expected"]),
                None => vector["expected"].clone(),
            };
            Vector {
                id: text(&vector["id"]),
                input: vector["input"].clone(),
                expected,
                area,
            }
        })
        .collect()
}

#[test]
fn clusternets_vectors_are_answered_alike_or_deviate_by_name() {
    with_inputs(VECTORS, |root| {
        let vectors = read(&root.with_file_name("vectors").join("clusternet.json"));
        let mut answered = BTreeSet::new();
        let mut wrong = Vec::new();
        for vector in &vectors {
            let Some(asked) = longest(&AREAS, &vector.area) else {
                continue;
            };
            let is_new = answered.insert(&vector.id);
            assert!(is_new, "{} is there twice", vector.id);
            let (compatible, ours) = match asked {
                Once(answer) => (None, answer(&vector.input)),
                Both(answer) => (
                    Some(answer(&vector.input, SchedulingPolicy::Clusternet)),
                    answer(&vector.input, SchedulingPolicy::Flotilla),
                ),
                Never(..) => continue,
            };
            let compatible = compatible.filter(|compatible| *compatible != vector.expected);
            wrong.extend(compatible.map(|answer| {
                let Vector { id, expected, .. } = vector;
                format!("{id}: upstream answers {expected}, and in its name we answer {answer}")
            }));
            wrong.extend(mistake(vector, &ours));
        }
        for deviation in deviations::ALL {
            if !vectors.iter().any(|vector| vector.id == deviation.id) {
                wrong.push(format!("{}: there is no such vector to deviate from", deviation.id));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert_eq!(answered.len(), VECTORS, "vectors that are answered");
    });
}

#[test]
fn every_vector_of_scheduling_is_asked() {
    with_inputs(SCHEDULING.len(), |root| {
        let vectors = read(&root.with_file_name("vectors").join("clusternet.json"));
        let is_of_scheduling = |vector: &&Vector| SCHEDULING.iter().any(|area| vector.area.starts_with(area));
        let unasked = vectors.iter().filter(is_of_scheduling);
        let unasked = unasked.filter(|vector| longest(&AREAS, &vector.area).is_none());
        let unasked: Vec<_> = unasked.map(|vector| vector.id.as_str()).collect();
        assert_eq!(unasked, [""; 0], "vectors that nobody asks");
    });
}

#[test]
fn what_upstream_computes_and_is_not_here_has_a_test_of_what_is_promised_instead() {
    let tests = test_names::all();
    for (area, asked) in AREAS {
        if let Never(why, instead) = asked {
            assert!(
                tests.iter().any(|test| test == instead),
                "{area} ({why}): no test is called {instead}"
            );
        }
    }
}

/// What is wrong with our answer, if anything is.
fn mistake(vector: &Vector, ours: &Value) -> Option<String> {
    let Vector { id, expected, .. } = vector;
    match deviations::ALL.iter().find(|deviation| deviation.id == *id) {
        None if ours == expected => None,
        None => Some(format!("{id}: upstream answers {expected}, we answer {ours}")),
        Some(_) if ours == expected => Some(format!("{id}: stands among the deviations and is none")),
        Some(deviation) => {
            let stated: Value = serde_json::from_str(deviation.ours).expect("a deviation states JSON");
            let why = deviation.because;
            (stated != *ours).then(|| format!("{id}: we answer {ours}, and not {stated} ({why})"))
        }
    }
}
