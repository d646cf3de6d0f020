//! Charts are planned anew when what they are predicted to bring may be something else.

use render::load::load;
use render::{Previous, SourceTree};

use super::*;

/// The fleet with a unit that has a chart.
fn with_chart(fleet: &Fleet) -> Arc<Fleet> {
    let files = [
        (
            "subscription.yaml",
            "apiVersion: fleet.flotilla.dev/v1alpha1\nkind: Subscription\nmetadata: {namespace: shop, name: web}\n\
             spec: {subscribers: [{clusterAffinity: {}}], feeds: [{path: web.yaml}]}\n",
        ),
        (
            "web.yaml",
            "apiVersion: fleet.flotilla.dev/v1alpha1\nkind: HelmChart\nmetadata: {name: web}\n\
             spec: {repo: 'https://x', chart: web, targetNamespace: shop}\n",
        ),
    ];
    let (loaded, _) = load(
        &SourceTree::from_files(fleet.revision.clone(), files),
        &Previous::default(),
    );
    Arc::new(Fleet {
        units: loaded.units,
        ..fleet.clone()
    })
}

fn said(name: &str, version: &str) -> Event {
    let report = Report {
        version: Report::VERSION,
        held_read: true,
        cluster: cluster(name),
        held: None,
        refused: None,
        units: BTreeMap::new(),
        kubernetes_version: Some(version.to_owned()),
        api_versions: vec!["v1/Service".to_owned()],
        without_hub_since: None,
        applied_sequence: None,
        capacity: None,
        capacity_unknown: String::new(),
        trouble: String::new(),
        waits_for_lease: false,
        facts: None,
        nodes: None,
        corrections: crate::wire::Corrections::default(),
        hub_keys_known: Default::default(),
        agent: crate::wire::AgentCounts::default(),
    };
    Event::Reported {
        report: Box::new(report),
    }
}

#[test]
fn an_upgraded_cluster_has_its_charts_planned_anew_without_a_commit() {
    let mut world = settled();
    world.hear(said("a", "v1.33.0"));
    let plans = world.plans;
    world.hear(said("a", "v1.34.0"));
    world.hear(Event::Predicted);
    assert_eq!(
        world.plans,
        plans + 1,
        "without charts only a prediction that came would ask for it"
    );
    for (fleet, _) in world.source.values_mut() {
        *fleet = with_chart(fleet);
    }
    world.hear(Event::Predicted);
    let plans = world.plans;
    world.hear(said("a", "v1.34.0"));
    assert_eq!(world.plans, plans, "it said nothing new");
    let effects = step(&mut world.state, said("a", "v1.35.0"), 0);
    let [Effect::Plan { capabilities, .. }] = effects.as_slice() else {
        panic!("it is planned anew: {effects:?}");
    };
    let versions: Vec<_> = capabilities.values().map(|said| said.kubernetes_version()).collect();
    assert_eq!(versions, ["v1.35.0"], "b said nothing, and nothing is made up for it");
    // While it is planned, another one says something: that is planned after it.
    assert!(step(&mut world.state, said("b", "v1.35.0"), 0).is_empty());
    let plans = world.plans;
    let planned = world.perform(effects.into_iter().next().expect("one effect"));
    world.hear(planned.expect("a plan comes back"));
    assert_eq!(world.plans, plans + 2);
    assert_eq!(world.sequence(), Some(1), "and nothing is written");
}
