//! Kind Subscription.

use std::sync::Arc;

use super::super::declaration::{Declaration, DeclarationKey, UnitDeclaration};
use super::super::fields::Fields;
use super::super::pattern::{Pattern, Selection};
use super::metadata::Metadata;
use super::{OwnKind, Place, Reading, apply, scheduling, selector};
use crate::access::ACCESS_NAMESPACE;
use crate::model::{
    ApplyPolicy, DriftMode, Feed, Placing, Scheduling, Subscriber, Subscription, TaintEffect, Toleration,
};
use crate::name::UnitKey;

pub(super) fn read(top: &mut Fields<'_>, metadata: &Metadata, place: &Place<'_>) -> Reading {
    let key = key(top, metadata);
    let spec = match top.object("spec") {
        Some(fields) => read_spec(fields, key.as_ref()),
        None => {
            top.missing("spec");
            Spec::default()
        }
    };
    let Some(key) = key else {
        return Reading {
            key: None,
            declaration: None,
        };
    };
    let declaration_key = DeclarationKey::new(OwnKind::Subscription, key.namespace(), key.name());
    let subscription = Subscription {
        key,
        scheduling: spec.scheduling,
        placing: spec.placing,
        subscribers: spec.subscribers,
        tolerations: spec.tolerations,
        feeds: spec.feeds,
        apply: spec.apply,
        drift: spec.drift,
        file: place.file.clone(),
        line: place.line,
    };
    let unit = UnitDeclaration {
        subscription: Arc::new(subscription),
        selections: spec.selections,
        problems: Vec::new(),
    };
    Reading {
        key: Some(declaration_key),
        declaration: Some(Declaration::Unit(unit)),
    }
}

/// A Subscription without a namespace stands in `default`, as kubectl has it.
fn key(top: &Fields<'_>, metadata: &Metadata) -> Option<UnitKey> {
    if metadata.name.is_empty() {
        return None;
    }
    let namespace = metadata.namespace.as_deref().unwrap_or("default");
    if namespace == ACCESS_NAMESPACE {
        let message =
            format!("the units of {ACCESS_NAMESPACE} carry access/ into clusters, and are declared by nobody");
        top.error(
            "metadata.namespace",
            "FieldInvalid",
            message,
            "choose another namespace",
        );
    }
    UnitKey::new(namespace, metadata.name.as_str())
        .map_err(|error| {
            let is_namespace = UnitKey::new(namespace, "name").is_err();
            let field = if is_namespace {
                "metadata.namespace"
            } else {
                "metadata.name"
            };
            top.error(field, "FieldInvalid", error.to_string(), "");
        })
        .ok()
}

struct Spec {
    scheduling: Scheduling,
    placing: Placing,
    subscribers: Vec<Subscriber>,
    tolerations: Vec<Toleration>,
    feeds: Vec<Feed>,
    apply: ApplyPolicy,
    drift: Option<DriftMode>,
    /// One per feed: what a path feed selects.
    selections: Vec<Option<Selection>>,
}

impl Default for Spec {
    fn default() -> Self {
        Self {
            scheduling: Scheduling::Replication,
            placing: Placing::default(),
            subscribers: Vec::new(),
            tolerations: Vec::new(),
            feeds: Vec::new(),
            apply: ApplyPolicy::default(),
            drift: None,
            selections: Vec::new(),
        }
    }
}

fn read_spec(mut fields: Fields<'_>, key: Option<&UnitKey>) -> Spec {
    let (apply, drift) = apply::read(&mut fields, key);
    let (scheduling, placing) = scheduling::read(&mut fields);
    let mut spec = Spec {
        scheduling,
        placing,
        apply,
        drift,
        ..Spec::default()
    };
    fields.require("subscribers");
    let subscribers = fields.objects("subscribers").unwrap_or_default();
    spec.subscribers = subscribers.into_iter().map(subscriber).collect();
    scheduling::check(&fields, spec.scheduling, &spec.placing, &spec.subscribers);
    let tolerations = fields.objects("clusterTolerations").unwrap_or_default();
    spec.tolerations = tolerations.into_iter().map(toleration).collect();
    match fields.objects("feeds") {
        Some(items) if items.is_empty() => {
            fields.error(
                "feeds",
                "FieldInvalid",
                "a unit without feeds delivers nothing",
                "remove the Subscription",
            );
        }
        Some(items) => {
            for (feed, selection) in items.into_iter().filter_map(feed) {
                spec.feeds.push(feed);
                spec.selections.push(selection);
            }
        }
        // A null too: a unit whose feeds were all commented out would lose every object.
        None => fields.require("feeds"),
    }
    fields.finish();
    spec
}

fn subscriber(mut fields: Fields<'_>) -> Subscriber {
    let cluster_affinity = fields.object("clusterAffinity").map(selector::read);
    if cluster_affinity.is_none() {
        match fields.written("clusterAffinity") {
            None => fields.missing("clusterAffinity"),
            Some(value) if value.is_null() => {
                fields.warning("clusterAffinity", "SelectsNothing", "null selects no cluster");
            }
            Some(_) => {}
        }
    }
    let sub_group = fields.object("subGroupStrategy").map(scheduling::sub_group);
    let replicas = scheduling::bounds(&mut fields, "replicas");
    let weight = fields.integer("weight", 0..=i64::from(i32::MAX));
    fields.finish();
    Subscriber {
        cluster_affinity,
        weight: weight.and_then(|weight| u32::try_from(weight).ok()),
        replicas,
        sub_group,
    }
}

fn toleration(mut fields: Fields<'_>) -> Toleration {
    let key = fields.text("key").unwrap_or_default().to_owned();
    let operator = fields.choice("operator", &[("Equal", "Equal"), ("Exists", "Exists")]);
    let value = fields.text("value").unwrap_or_default().to_owned();
    if key.is_empty() && operator != Some("Exists") {
        fields.error(
            "key",
            "FieldMissing",
            "a toleration without key needs the operator Exists",
            "",
        );
    }
    if operator == Some("Exists") && !value.is_empty() {
        fields.error("value", "FieldInvalid", "Exists takes no value", "");
    }
    let effect = fields
        .written("effect")
        .filter(|effect| effect.as_str() != Some(""))
        .and_then(|_| fields.choice("effect", &TaintEffect::WORDS));
    let toleration_seconds = fields.integer("tolerationSeconds", i64::MIN..=i64::MAX);
    if toleration_seconds.is_some() && effect.is_some_and(|effect| effect != TaintEffect::NoExecute) {
        let message = "has no effect with another effect than NoExecute: nothing leaves for it";
        fields.warning("tolerationSeconds", "NoEffect", message);
    }
    fields.finish();
    Toleration {
        key,
        operator: operator.map(str::to_owned),
        value,
        effect,
        toleration_seconds,
    }
}

fn feed(mut fields: Fields<'_>) -> Option<(Feed, Option<Selection>)> {
    // Clusternet has one form of feed alone; the others are unknown fields there.
    let written = |name: &'static str, fields: &mut Fields<'_>| {
        fields.judge().ours && fields.written(name).is_some_and(|value| !value.is_null())
    };
    let feed = match (written("path", &mut fields), written("selector", &mut fields)) {
        (true, true) => {
            fields.error("", "FieldInvalid", "a feed has either path or selector", "");
            return None;
        }
        (true, false) => path_feed(&mut fields),
        (false, true) => selector_feed(&mut fields),
        (false, false) if fields.judge().ours && !is_object(&mut fields) => {
            // A mistyped field is said as such, and once.
            if !fields.has_unknown() {
                fields.error("", "FieldMissing", "names nothing to deliver", FEED_FORMS);
            }
            None
        }
        (false, false) => object_feed(&mut fields),
    };
    fields.finish();
    feed
}

const PATH_FORMS: &str = "for example feeds/web/** or feeds/web/page.yaml";

const FEED_FORMS: &str = "a feed has a path, a selector, or apiVersion, kind, namespace and name of one object";

/// Whether any field says which object is meant.
fn is_object(fields: &mut Fields<'_>) -> bool {
    fields.written("namespace");
    let parts = ["apiVersion", "kind", "name"].map(|name| fields.written(name));
    parts.iter().flatten().any(|value| !value.is_null())
}

fn object_feed(fields: &mut Fields<'_>) -> Option<(Feed, Option<Selection>)> {
    let api_version = fields.required_text("apiVersion").map(str::to_owned);
    let kind = fields.required_text("kind").map(str::to_owned);
    let name = fields.required_text("name").map(str::to_owned);
    let namespace = fields.text("namespace").unwrap_or_default().to_owned();
    let feed = Feed::Object {
        api_version: api_version?,
        kind: kind?,
        namespace,
        name: name?,
    };
    Some((feed, None))
}

fn path_feed(fields: &mut Fields<'_>) -> Option<(Feed, Option<Selection>)> {
    let path = fields.required_text("path").map(str::to_owned);
    let exclude = fields.texts("exclude").unwrap_or_default();
    let mut excluded = Vec::with_capacity(exclude.len());
    for (index, glob) in exclude.iter().enumerate() {
        match Pattern::parse(glob) {
            Ok(pattern) => excluded.push(pattern),
            Err(error) => {
                let (reason, message) = (error.reason(), error.to_string());
                fields.error(&format!("exclude[{index}]"), reason, message, PATH_FORMS);
            }
        }
    }
    let path = path?;
    match Pattern::parse(&path) {
        Ok(pattern) => {
            let selection = Selection { pattern, excluded };
            Some((Feed::Path { path, exclude }, Some(selection)))
        }
        Err(error) => {
            fields.error("path", error.reason(), error.to_string(), PATH_FORMS);
            None
        }
    }
}

fn selector_feed(fields: &mut Fields<'_>) -> Option<(Feed, Option<Selection>)> {
    let selector = fields.object("selector").map(selector::read);
    if selector.as_ref().is_some_and(|selector| selector.is_empty()) {
        let message = "an empty selector would deliver every object of the repository";
        fields.error("selector", "FieldInvalid", message, "name a label, or use path");
    }
    let feed = Feed::Selector {
        kind: fields.text("kind").unwrap_or_default().to_owned(),
        api_version: fields.text("apiVersion").unwrap_or_default().to_owned(),
        namespace: fields.text("namespace").unwrap_or_default().to_owned(),
        selector: selector?,
    };
    Some((feed, None))
}
