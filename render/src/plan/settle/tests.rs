use serde_json::{Value, json};

use super::*;
use crate::chart::{Capabilities, PredictedObject, Preview, PreviewMode, PreviewRequest, Previews};
use crate::describe::{DescribedObject, key_of};
use crate::model::ApplyPolicy;
use crate::name::VariantName;
use crate::plan::{changes_charts, predicted_changes, unpredicted};

fn description(objects: &[Value], apply: ApplyPolicy) -> Arc<Description> {
    let object = |value: &Value| DescribedObject {
        key: key_of(value).expect("the object names itself"),
        content: Content::Plain {
            object: Arc::new(value.clone()),
        },
        provenance: Vec::new(),
    };
    let described = Description::new(objects.iter().map(object).collect()).expect("the keys differ");
    Arc::new(described.under(apply))
}

fn config_map(name: &str, data: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "shop"}, "data": {"x": data}})
}

fn cluster(name: &str) -> ClusterName {
    ClusterName::parse(name).expect("a valid name")
}

type Had = Option<Arc<Description>>;

fn part(unit: &str, clusters: &[&str], before: Had, after: Had) -> Part {
    let share = |content: &Had| {
        content.as_ref().map(|content| Share {
            variant: VariantName::default_variant(),
            digest: content.digest,
            replicas: Default::default(),
            drift: DriftMode::Correct,
        })
    };
    let (from, to) = (share(&before), share(&after));
    let clusters = clusters.iter().map(|name| cluster(name)).collect();
    Part::new(
        unit.parse().expect("a valid unit"),
        clusters,
        (from, before),
        (to, after),
    )
}

/// `unit on clusters: change object, …` of each part.
fn told(parts: &[Part], left: &[&str]) -> Vec<String> {
    let staying = Staying {
        clusters: left.iter().map(|name| cluster(name)).collect(),
        ..Staying::default()
    };
    lines(parts, &staying)
}

fn lines(parts: &[Part], staying: &Staying) -> Vec<String> {
    let line = |part: &Part| {
        let clusters: Vec<_> = part.clusters.iter().map(|cluster| cluster.as_str()).collect();
        let objects = part.objects.iter().map(|change| {
            let word = match &change.change {
                Change::Added => "added".to_owned(),
                Change::Removed => "removed".to_owned(),
                Change::Kept(by) => format!("kept by {by}"),
                Change::MovedTo(unit) => format!("to {unit}"),
                Change::MovedFrom { unit, fields } => format!("from {unit} with {}", fields.len()),
                Change::Changed(_) | Change::EncryptedChanged => "changed".to_owned(),
            };
            format!("{} {word}", change.object.name)
        });
        format!(
            "{} on {}: {}",
            part.unit,
            clusters.join(" "),
            objects.collect::<Vec<_>>().join(", ")
        )
    };
    settle(parts, staying).iter().map(line).collect()
}

#[test]
fn what_moves_between_units_is_not_told_as_removed() {
    let policy = ApplyPolicy::default;
    let two = description(&[config_map("a", "1"), config_map("b", "1")], policy());
    let parts = [
        part(
            "shop/new",
            &["lyon"],
            None,
            Some(description(&[config_map("a", "2")], policy())),
        ),
        part("shop/old", &["lyon", "paris"], Some(two), None),
    ];
    let expected = [
        "shop/new on lyon: a from shop/old with 1",
        "shop/old on lyon: a to shop/new, b removed",
        "shop/old on paris: a removed, b removed",
    ];
    assert_eq!(
        told(&parts, &[]),
        expected,
        "an object moves only where another unit gets it"
    );
}

#[test]
fn what_stays_in_the_cluster_is_told_as_kept() {
    let orphan = ApplyPolicy {
        deletion: DeletionPolicy::Orphan,
        ..ApplyPolicy::default()
    };
    let mut kept = config_map("b", "1");
    kept["metadata"]["annotations"] = json!({"helm.sh/resource-policy": "keep"});
    let all = |apply| Some(description(&[config_map("a", "1"), kept.clone()], apply));
    let less = |apply| Some(description(&[config_map("c", "1")], apply));
    let parts = [
        part("shop/left", &["lyon"], all(orphan.clone()), None),
        part("shop/less", &["lyon"], all(orphan.clone()), less(orphan)),
        part("shop/gone", &["lyon", "rome"], all(ApplyPolicy::default()), None),
    ];
    let annotation = "b kept by annotation helm.sh/resource-policy";
    let expected = [
        "shop/left on lyon: a kept by deletionPolicy: Orphan, b kept by deletionPolicy: Orphan".to_owned(),
        format!("shop/less on lyon: a removed, {annotation}, c added"),
        format!("shop/gone on lyon: a removed, {annotation}"),
        "shop/gone on rome: a kept by deletionPolicy: Orphan of the cluster, b kept by deletionPolicy: Orphan of the cluster"
            .to_owned(),
    ];
    assert_eq!(told(&parts, &["rome"]), expected);
}

#[test]
fn what_leaves_stays_where_the_newest_word_says_so_whatever_the_cluster_has_heard() {
    let had = || Some(description(&[config_map("a", "1")], ApplyPolicy::default()));
    let leaves = part("shop/web", &["lyon", "paris"], had(), None);
    let stays = part(
        "shop/api",
        &["lyon"],
        had(),
        Some(description(&[], ApplyPolicy::default())),
    );
    let on = |name: &str| BTreeMap::from([(cluster(name), 0)]);
    let staying = Staying {
        units: [("shop/web", on("paris")), ("shop/api", on("lyon"))]
            .into_iter()
            .map(|(unit, clusters)| (unit.parse().expect("a valid unit"), clusters))
            .collect(),
        ..Staying::default()
    };
    let expected = [
        "shop/web on lyon: a removed",
        "shop/web on paris: a kept by deletionPolicy: Orphan",
        "shop/api on lyon: a removed",
    ];
    assert_eq!(lines(&[leaves, stays], &staying), expected);
}

#[test]
fn what_cannot_change_is_recreated_or_refused_as_its_unit_says() {
    let job = |image: &str, own: &str| {
        let mut job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j", "namespace": "shop"},
            "spec": {"template": {"image": image}}});
        if !own.is_empty() {
            job["metadata"]["annotations"] = json!({"fleet.flotilla.dev/replace": own});
        }
        job
    };
    let check = |own: &str, replace: Replace, drift: DriftMode, expected: Option<bool>| {
        let apply = ApplyPolicy {
            replace,
            ..ApplyPolicy::default()
        };
        let of = |image: &str| Some(description(&[job(image, own)], apply.clone()));
        let mut part = part("shop/web", &["lyon"], of("a"), of("b"));
        if let Some(share) = &mut part.to {
            share.drift = drift;
        }
        let found = fixed(&part);
        assert!(
            found.iter().all(|fixed| fixed.fields == ["spec.template.image"]),
            "{found:?}"
        );
        let refused = found.first().map(|fixed| !fixed.objection.is_empty());
        assert_eq!(refused, expected, "{own} {replace:?} {drift:?}");
    };
    check("", Replace::Never, DriftMode::Correct, Some(true));
    check("", Replace::WhenImmutable, DriftMode::Correct, Some(false));
    check("WhenImmutable", Replace::Never, DriftMode::Report, Some(false));
    check("Never", Replace::WhenImmutable, DriftMode::Correct, Some(true));
    check("", Replace::Never, DriftMode::Freeze, None);
}

#[test]
fn what_changes_inside_a_release_is_told_as_predicted_and_a_hook_is_not() {
    let chart = |values: &str| {
        json!({"apiVersion": "fleet.flotilla.dev/v1alpha1", "kind": "HelmChart", "metadata": {"name": "web"},
            "spec": {"repo": "https://x", "chart": "web", "version": "1.0.0", "targetNamespace": "shop",
                "values": {"v": values}}})
    };
    let of = |values: &str| {
        Some(description(
            &[chart(values), config_map("beside", values)],
            ApplyPolicy::default(),
        ))
    };
    let part = part("shop/web", &["lyon", "paris", "rome"], of("1"), of("2"));
    assert!(changes_charts(&part));
    let said = |version: &str| Arc::new(Capabilities::new(version.to_owned(), Vec::new()));
    let mut previews = Previews {
        mode: PreviewMode::On,
        capabilities: BTreeMap::from([(cluster("lyon"), said("v1.33.0")), (cluster("paris"), said("v1.24.0"))]),
        known: BTreeMap::new(),
    };
    let object = |name: &str, data: &str, hook: bool| PredictedObject {
        key: ObjectKey::new("v1", "ConfigMap", "shop", name),
        value: Arc::new(config_map(name, data)),
        template: format!("web/templates/{name}.yaml"),
        hook,
    };
    let wanted = unpredicted(&part, &previews);
    assert_eq!(wanted.len(), 4, "before and after, on two versions");
    for request in wanted {
        let values = request.order.values["v"].as_str().unwrap_or_default().to_owned();
        let preview = match (request.capabilities.kubernetes_version(), values.as_str()) {
            ("v1.24.0", "2") => Preview::Failed {
                words: "no such kind".to_owned(),
            },
            (_, "1") => Preview::Predicted {
                objects: vec![object("a", "1", false), object("gone", "1", false)],
                unsteady: Vec::new(),
            },
            _ => Preview::Predicted {
                objects: vec![
                    object("a", "2", false),
                    object("hook", "2", true),
                    object("new", "2", false),
                ],
                unsteady: Vec::new(),
            },
        };
        previews.known.insert(request.key(), Arc::new(preview));
    }
    assert_eq!(unpredicted(&part, &previews), [] as [PreviewRequest; 0]);
    let told: Vec<_> = predicted_changes(&part, &previews)
        .into_iter()
        .map(|change| {
            let objects: Vec<_> = change.objects.iter().map(|change| change.object.name.clone()).collect();
            format!(
                "{} {} {} {}",
                change.clusters[0],
                change.chart.name,
                objects.join(","),
                change.not_predicted
            )
        })
        .collect();
    let expected = [
        "lyon web a,gone,new ",
        "paris web  helm refuses it: no such kind",
        "rome web  its version and kinds are not known",
    ];
    assert_eq!(told, expected);
}
