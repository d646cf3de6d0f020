//! Which overrides meet which cluster, in which order, and what a variant is called.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;

use super::{MERGE, config, deployment};
use crate::fixture::{base, cluster, fleet, globalization, localization, selector, step, subscription};
use crate::fleet::Fleet;
use crate::localize::{matching, variant_name};
use crate::model::{Cluster, Override, Scheduling};
use crate::name::{ObjectKey, VariantName};

fn two_clusters(overrides: Vec<Override>) -> Fleet {
    let clusters = [cluster("a", &[("region", "eu")]), cluster("b", &[("region", "us")])];
    let unit = subscription(Scheduling::Replication, Vec::new());
    let mut fleet = fleet(clusters, unit, base([deployment(json!({})), config(json!({}))]));
    fleet.overrides = overrides.into_iter().map(Arc::new).collect();
    fleet.overrides.sort_by(|a, b| a.order_key().cmp(&b.order_key()));
    fleet
}

fn matched(fleet: &Fleet) -> BTreeMap<&str, Vec<&str>> {
    let base = &fleet.units.values().next().expect("the fleet has a unit").base;
    let names = |item: &Cluster| {
        matching(fleet, item, base)
            .iter()
            .map(|item| item.name.as_str())
            .collect()
    };
    fleet
        .clusters
        .values()
        .map(|item| (item.name.as_str(), names(item)))
        .collect()
}

#[test]
fn globalizations_apply_before_localizations_each_by_priority_and_name() {
    let key = ObjectKey::new("apps/v1", "Deployment", "", "web");
    let with_priority = |name: &str, priority| Override {
        priority,
        ..localization(name, &key, Vec::new())
    };
    let fleet = two_clusters(vec![
        with_priority("low", 100),
        with_priority("b", 500),
        with_priority("a", 500),
        Override {
            priority: 1000,
            ..globalization("high", &key, None, Vec::new())
        },
        globalization("eu", &key, Some(selector(&[("region", "eu")])), Vec::new()),
    ]);
    let matched = matched(&fleet);
    assert_eq!(matched["a"], ["eu", "high", "low", "a", "b"]);
    assert_eq!(matched["b"], ["high"]);
}

#[test]
fn an_override_meets_its_object_under_any_version_and_any_namespace_where_it_names_none() {
    let feed = |group: &str, kind, namespace, name| ObjectKey::new(&format!("{group}/v9"), kind, namespace, name);
    let fleet = two_clusters(vec![
        globalization("meets", &feed("apps", "Deployment", "", "web"), None, Vec::new()),
        globalization("other-group", &feed("x.io", "Deployment", "", "web"), None, Vec::new()),
        globalization("other-name", &feed("apps", "Deployment", "", "api"), None, Vec::new()),
        globalization(
            "other-namespace",
            &feed("apps", "Deployment", "x", "web"),
            None,
            Vec::new(),
        ),
    ]);
    assert_eq!(matched(&fleet)["b"], ["meets"]);
}

#[test]
fn a_variants_name_comes_from_names_and_never_from_content() {
    let key = ObjectKey::new("apps/v1", "Deployment", "", "web");
    let name = |names: &[&str], value: &str| {
        let overrides: Vec<_> = names
            .iter()
            .map(|name| Arc::new(localization(name, &key, vec![step(MERGE, value)])))
            .collect();
        variant_name(&overrides.iter().collect::<Vec<_>>())
    };
    assert_eq!(name(&[], "").as_str(), "default");
    assert_eq!(name(&["a"], "x: 1").as_str().len(), 8);
    assert_eq!(name(&["a"], "x: 1"), name(&["a"], "x: 2"));
    assert_ne!(name(&["a"], ""), name(&["a", "b"], ""));
}

#[test]
fn a_cluster_that_no_override_meets_gets_the_base() {
    let key = ObjectKey::new("apps/v1", "Deployment", "", "web");
    let fleet = two_clusters(vec![localization("local", &key, Vec::new())]);
    let matched = matched(&fleet);
    assert_eq!((matched["a"].len(), matched["b"].len()), (1, 0));
    assert_eq!(variant_name(&[]), VariantName::default_variant());
}
