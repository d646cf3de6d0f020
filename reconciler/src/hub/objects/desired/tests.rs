use std::fs;
use std::path::Path;

use render::describe::Description;
use render::load::load;
use render::plan::{Memo, Reports, Snapshot, plan};
use render::{Previous, Revision, SourceTree, layout, yaml};

use super::*;
use crate::hub::objects::content::{Place, contents};

const FLEET: &[(&str, &str)] = &[
    (
        "fleet.yaml",
        "apiVersion: fleet.flotilla.dev/v1alpha1\nkind: Fleet\nmetadata: {name: fleet}\nspec: {render: {mode: objects}}\n",
    ),
    (
        "clusters/oslo.yaml",
        "apiVersion: clusters.clusternet.io/v1beta1\nkind: ManagedCluster\nmetadata: {name: oslo, namespace: clusternet-oslo}\n\
         spec: {clusterId: dc91021d-2361-4f6d-a404-7c33b9e01118, syncMode: Pull}\n",
    ),
    (
        "clusters/paris.yaml",
        "apiVersion: fleet.flotilla.dev/v1alpha1\nkind: ManagedCluster\nmetadata: {name: paris, labels: {region: eu}}\n\
         spec: {taints: [{key: gpu, value: 'yes', effect: NoSchedule}]}\n",
    ),
    (
        "subscriptions/web.yaml",
        "apiVersion: fleet.flotilla.dev/v1alpha1\nkind: Subscription\nmetadata: {namespace: shop, name: web}\n\
         spec:\n  schedulingStrategy: Dividing\n  dividingScheduling: {type: Static}\n  clusterTolerations: [{key: gpu, operator: Exists}]\n\
         \x20 subscribers: [{clusterAffinity: {matchLabels: {region: eu}}, weight: 1}, {clusterAffinity: {}, weight: 2}]\n\
         \x20 feeds: [{path: 'feeds/**'}]\n",
    ),
    (
        "feeds/web.yaml",
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {namespace: shop, name: web}\nspec: {replicas: 6}\n",
    ),
    (
        "feeds/settings.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: shop, name: settings}\ndata: {a: b}\n",
    ),
];

struct World {
    fleet: Fleet,
    released: Published,
    contents: BTreeMap<Digest, Arc<Description>>,
}

fn world<'a>(files: impl IntoIterator<Item = &'a (&'a str, &'a str)>) -> World {
    let revision: Revision = "1".repeat(40).parse().expect("forty hex digits");
    let files = files
        .into_iter()
        .map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec()));
    let (fleet, findings) = load(&SourceTree::from_files(revision.clone(), files), &Previous::default());
    assert!(findings.iter().all(|finding| !finding.is_error()), "{findings:#?}");
    let snapshot = Snapshot {
        revision,
        fleet: Arc::new(fleet.clone()),
        reports: Reports::default(),
        moves: Default::default(),
        chart_previews: render::chart::Previews::default(),
        previous: Arc::default(),
        now: 0,
    };
    let plan = plan(&snapshot, &mut Memo::default());
    World {
        fleet,
        released: Published {
            record: None,
            units: plan.units,
        },
        contents: plan.contents,
    }
}

impl World {
    fn desired(&self) -> Desired {
        let mut find = |unit: &UnitKey, placement: &Placement, variant: &Variant| {
            let description = self.contents.get(&variant.digest).ok_or("it is missing")?;
            let folder = layout::unit_folder(unit, &placement.variant);
            let place = Place {
                digest: &variant.digest,
                folder: &folder,
            };
            Ok(Arc::new(contents(description, &placement.replicas, place)))
        };
        desired(&self.fleet, &self.released, &mut find)
    }

    /// Every object as it is written.
    fn text(&self) -> String {
        let release = Release {
            lineage: "0123456789ab".to_owned(),
            sequence: 7,
        };
        let objects = self.desired().objects;
        let uids: BTreeMap<Id, String> = objects.keys().map(|id| (id.clone(), format!("uid of {id}"))).collect();
        let written = objects.iter().map(|(id, wanted)| {
            let bound = wanted.bind(id, &release.lineage, |of| uids.get(of).map(String::as_str));
            let bound = bound.expect("every parent is there");
            yaml::write(&bound.written(&release, uids.get(id).map(String::as_str)))
        });
        written.collect::<Vec<_>>().join("---\n")
    }
}

#[test]
fn a_release_is_these_objects() {
    let text = world(FLEET).text();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/hub/objects/desired/objects.yaml");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, &text).expect("the golden file is writable");
    }
    let golden = fs::read_to_string(&path).expect("the golden file is there");
    assert_eq!(text, golden);
}

#[test]
fn the_same_release_is_the_same_bytes() {
    assert_eq!(world(FLEET).text(), world(FLEET.iter().rev()).text());
}

#[test]
fn what_cannot_be_read_is_named_and_left_out() {
    let mut world = world(FLEET);
    world.contents.clear();
    let desired = world.desired();
    assert_eq!(desired.unreadable.len(), 2, "{:?}", desired.unreadable);
    let kinds: BTreeSet<_> = desired.objects.keys().map(|id| id.kind).collect();
    assert!(!kinds.contains(&Kind::Base), "{kinds:?}");
    assert!(kinds.contains(&Kind::ManagedCluster), "the others are there");
}

#[test]
fn an_object_waits_for_the_one_that_it_belongs_to() {
    let objects = world(FLEET).desired().objects;
    let (id, base) = objects
        .iter()
        .find(|(id, _)| id.kind == Kind::Base)
        .expect("there is a Base");
    let missing = base.bind(id, "a", |_| None).expect_err("nothing is there yet");
    assert_eq!(missing.to_string(), "Subscription shop/web");
}

#[test]
fn a_unit_that_is_not_declared_any_more_keeps_its_name_while_it_is_released() {
    let mut world = world(FLEET);
    world.fleet.units.clear();
    let desired = world.desired();
    let id = subscription_id(&"shop/web".parse().expect("a valid unit"));
    assert_eq!(desired.objects[&id].spec["feeds"], json!([]));
    assert!(desired.objects.keys().any(|id| id.kind == Kind::Description));
}
