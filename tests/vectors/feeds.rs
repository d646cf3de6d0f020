//! Names of feeds, what leaves a cluster, and what a server filled in.

use std::collections::BTreeSet;

use render::ObjectKey;
use serde_json::{Value, json};

use super::fleet::{list, text};

/// A feed given as `[kind, namespace, name]`.
fn key_of(feed: &Value) -> ObjectKey {
    ObjectKey::new("v1", &text(&feed[0]), &text(&feed[1]), &text(&feed[2]))
}

pub(super) fn contains(input: &Value) -> Value {
    let feeds: Vec<_> = list(&input["feeds"]).iter().map(key_of).collect();
    json!({ "found": feeds.contains(&key_of(&input["feed"])) })
}

fn key_of_object(input: &Value) -> ObjectKey {
    let field = |name: &str| text(&input[name]);
    ObjectKey::new(
        &field("apiVersion"),
        &field("kind"),
        &field("namespace"),
        &field("name"),
    )
}

pub(super) fn format(input: &Value) -> Value {
    json!({ "text": key_of_object(input).to_string() })
}

pub(super) fn key(input: &Value) -> Value {
    json!({ "key": key_of_object(input).to_string() })
}

pub(super) fn obsolete(input: &Value) -> Value {
    let keys = |name: &str| list(&input[name]).iter().map(key_of).collect::<BTreeSet<_>>();
    let gone = &keys("old") - &keys("new");
    json!({ "obsolete": gone.iter().map(|key| [&key.kind, &key.namespace, &key.name]).collect::<Vec<_>>() })
}

pub(super) fn trim(input: &Value) -> Value {
    let mut object = input.clone();
    render::describe::trim(&mut object);
    json!({ "spec": object["spec"] })
}
