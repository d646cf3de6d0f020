//! Objects of charts as they are predicted, claimed by two.

use super::*;
use crate::chart::{Capabilities, PredictedObject, Preview, PreviewMode};
use crate::name::ObjectKey;

/// A unit on a and b with ConfigMaps of these names, and with a chart where `values` is not empty.
fn charted(key: &str, objects: &[&str], values: &str) -> (UnitKey, Unit) {
    let (key, declared) = unit(key, objects, &[]);
    let config_map =
        |name: &&str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "shop"}});
    let chart = json!({"apiVersion": "fleet.flotilla.dev/v1alpha1", "kind": "HelmChart",
        "metadata": {"name": format!("chart-{}", key.name())},
        "spec": {"repo": "https://x", "chart": key.name(), "version": "1.0.0", "targetNamespace": "shop",
            "values": {"objects": values}}});
    let chart = (!values.is_empty()).then_some(chart);
    let declared = Unit {
        base: Arc::new(base(objects.iter().map(config_map).chain(chart))),
        ..declared
    };
    (key, declared)
}

fn fleet_of(units: &[(&str, &[&str], &str)]) -> Fleet {
    let mut fleet = declared(&[]);
    let units = units.iter().map(|(key, objects, values)| charted(key, objects, values));
    fleet.units = units.collect();
    fleet
}

impl World {
    /// Has every chart predicted: as ConfigMaps of the names in its values, separated by blanks; one whose values say
    /// `unknown` is not.
    fn predict(&mut self, fleet: &Fleet) {
        let said = Arc::new(Capabilities::new("v1.33.0".to_owned(), Vec::new()));
        let clusters = ["a", "b"].map(|name| (cluster_name(name), Arc::clone(&said)));
        self.previews.mode = PreviewMode::On;
        self.previews.capabilities = clusters.into();
        let snapshot = Snapshot {
            revision: fleet.revision.clone(),
            fleet: Arc::new(fleet.clone()),
            reports: Reports::default(),
            moves: Default::default(),
            chart_previews: self.previews.clone(),
            previous: Arc::clone(&self.published),
            now: 0,
        };
        for (key, request) in plan(&snapshot, &mut Memo::default()).pending {
            let names = request.order.values["objects"].as_str().unwrap_or_default();
            let object = |name: &str| {
                let (folder, name) = name.split_once('/').unwrap_or(("templates", name));
                PredictedObject {
                    key: ObjectKey::new("v1", "ConfigMap", "shop", name),
                    value: Arc::new(json!({})),
                    template: format!("web/{folder}/{name}.yaml"),
                    hook: false,
                }
            };
            let preview = match names {
                "unknown" => Preview::Unknown {
                    why: "it is private".to_owned(),
                },
                names => Preview::Predicted {
                    objects: names.split(' ').map(object).collect(),
                    unsteady: Vec::new(),
                },
            };
            self.previews.known.insert(key, Arc::new(preview));
        }
    }

    fn predicted(&mut self, units: &[(&str, &[&str], &str)]) -> Vec<crate::Finding> {
        let fleet = fleet_of(units);
        self.predict(&fleet);
        let findings = self.planned(fleet);
        let claims = findings
            .into_iter()
            .filter(|finding| finding.reason == "ObjectClaimedTwice");
        claims.collect()
    }
}

#[track_caller]
fn check(findings: &[crate::Finding], expected: &[(&str, &str)]) {
    let told: Vec<_> = findings
        .iter()
        .map(|finding| {
            (
                finding.unit.as_ref().map(ToString::to_string).unwrap_or_default(),
                finding,
            )
        })
        .collect();
    let units: Vec<_> = told.iter().map(|(unit, _)| unit.as_str()).collect();
    let wanted: Vec<_> = expected.iter().map(|(unit, _)| *unit).collect();
    assert_eq!(units, wanted, "{findings:#?}");
    for ((_, finding), (_, words)) in told.iter().zip(expected) {
        assert!(
            finding.is_error() && finding.message.contains(words),
            "{words:?} is not in {finding:#?}"
        );
    }
}

#[test]
fn a_predicted_object_that_a_manifest_has_is_an_error_with_both_files() {
    let mut world = World::default();
    check(&world.predicted(&[("shop/plain", &["x", "y"], "")]), &[]);
    let both: &[(&str, &[&str], &str)] = &[("shop/charted", &[], "x z"), ("shop/plain", &["x", "y"], "")];
    let found = world.predicted(both);
    let message = found.first().map(|finding| finding.message.clone()).unwrap_or_default();
    let words = "ConfigMap shop/x would be delivered to cluster a and 1 other by shop/charted (";
    assert!(message.starts_with(words), "{message}");
    let chart = ", predicted from chart chart-charted: web/templates/x.yaml) and by shop/plain (";
    assert!(message.contains(chart), "{message}");
    check(
        &found,
        &[("shop/charted", "shop/plain has it, and shop/charted keeps what it had")],
    );
    assert_eq!(world.has("shop/charted", "a"), [] as [&str; 0]);
    assert_eq!(world.has("shop/plain", "a"), ["x", "y"]);
    check(
        &world.predicted(both),
        &[("shop/charted", "predicted from chart chart-charted")],
    );
    check(
        &world.predicted(&[("shop/charted", &[], "z"), ("shop/plain", &["x", "y"], "")]),
        &[],
    );
    assert_eq!(world.has("shop/charted", "a"), ["chart-charted"]);
}

#[test]
fn of_two_charts_with_one_object_the_one_that_was_there_goes_on() {
    let mut world = World::default();
    check(&world.predicted(&[("shop/a", &[], "x")]), &[]);
    let both: &[(&str, &[&str], &str)] = &[("shop/a", &[], "x w"), ("shop/b", &[], "x")];
    check(&world.predicted(both), &[("shop/b", "shop/a has it")]);
    assert_eq!(world.has("shop/a", "a"), ["chart-a"]);
    assert_eq!(world.has("shop/b", "a"), [] as [&str; 0]);
    let mut anew = World::default();
    let nobody = "both keep what they had";
    check(&anew.predicted(both), &[("shop/a", nobody), ("shop/b", nobody)]);
    assert_eq!(anew.has("shop/a", "a"), [] as [&str; 0]);
}

#[test]
fn what_is_not_predicted_or_only_made_where_it_is_missing_blocks_nobody() {
    let mut world = World::default();
    check(
        &world.predicted(&[("shop/plain", &["x"], ""), ("shop/private", &[], "unknown")]),
        &[],
    );
    assert_eq!(world.has("shop/private", "a"), ["chart-private"]);
    let definitions: &[(&str, &[&str], &str)] = &[
        ("shop/one", &[], "crds/x a"),
        ("shop/plain", &["x"], ""),
        ("shop/two", &[], "crds/x b"),
    ];
    check(&world.predicted(definitions), &[]);
    assert_eq!(
        (world.has("shop/one", "a"), world.has("shop/two", "b")),
        (vec!["chart-one".to_owned()], vec!["chart-two".to_owned()])
    );
}

#[test]
fn a_manifest_that_takes_what_a_chart_has_is_the_newcomer() {
    let mut world = World::default();
    check(&world.predicted(&[("shop/charted", &[], "x")]), &[]);
    let both: &[(&str, &[&str], &str)] = &[("shop/charted", &[], "x"), ("shop/plain", &["x"], "")];
    check(
        &world.predicted(both),
        &[("shop/plain", "shop/charted has it, and shop/plain keeps what it had")],
    );
    assert_eq!(world.has("shop/plain", "a"), [] as [&str; 0]);
    assert_eq!(world.has("shop/charted", "a"), ["chart-charted"]);
}
