use serde_json::json;

use super::*;

/// A hub cluster with this many Descriptions of ours, none of which was told anything yet.
fn mirror(count: usize) -> Mirror {
    let config = kube::Config::new("http://127.0.0.1:1".parse().expect("a valid URI"));
    let live = |number: usize| {
        let live = Live {
            uid: number.to_string(),
            resource_version: "1".to_owned(),
            managed: true,
            recorded: Some(number.to_string()),
            written: None,
            release: None,
            drifted: false,
            deleting: false,
            status: Value::Null,
        };
        (id(number), live)
    };
    Mirror {
        client: Client::try_from(config).expect("a client"),
        live: (0..count).map(live).collect(),
        shared: BTreeSet::new(),
        foreign: BTreeMap::new(),
        refused: BTreeMap::new(),
        kept: BTreeMap::new(),
        cursor: None,
        told: BTreeMap::new(),
    }
}

fn id(number: usize) -> Id {
    Id::new(Kind::Description, "a", format!("d{number:04}"))
}

fn told(count: usize, heard: bool) -> BTreeMap<Id, Told> {
    let status = json!({"phase": "Success"});
    let told = Told { status, heard };
    (0..count).map(|number| (id(number), told.clone())).collect()
}

fn names(batch: &[(Id, String, Value)]) -> Vec<&str> {
    batch.iter().map(|(id, _, _)| id.name.as_str()).collect()
}

#[tokio::test]
async fn statuses_are_told_in_batches_and_each_has_its_turn() {
    let count = OBJECT_STATUSES_MAX + 3;
    let mut mirror = mirror(count);
    let told = told(count, true);
    let (first, more) = mirror.batch(&told, false, "now");
    assert_eq!((first.len(), more), (OBJECT_STATUSES_MAX, true));
    mirror.cursor = first.last().map(|(id, _, _)| id.clone());
    // The first of them changed again meanwhile, and comes after those that had no turn yet.
    let (second, _) = mirror.batch(&told, false, "now");
    assert_eq!(names(&second)[..4], ["d0200", "d0201", "d0202", "d0000"]);
}

#[tokio::test]
async fn what_is_told_already_is_not_told_again() {
    let mut mirror = mirror(2);
    mirror.live.get_mut(&id(0)).expect("it is there").status = json!({"phase": "Success"});
    mirror.live.get_mut(&id(1)).expect("it is there").status = json!({"phase": "Success", "reason": "old"});
    let (batch, more) = mirror.batch(&told(2, true), false, "now");
    assert_eq!(
        (names(&batch), more),
        (vec!["d0001"], false),
        "a field that went is told"
    );
}

#[tokio::test]
async fn what_an_api_server_drops_is_not_told_again_and_again() {
    let mut mirror = mirror(2);
    let all = told(2, true);
    mirror.told.insert(id(0), Digest::of_value(&all[&id(0)].status));
    assert_eq!(names(&mirror.batch(&all, false, "now").0), ["d0001"]);
    mirror.told.insert(id(0), Digest::of_bytes(b"what was told before"));
    assert_eq!(mirror.batch(&all, false, "now").0.len(), 2, "what is new is told");
}

#[tokio::test]
async fn what_was_not_heard_of_keeps_its_status_for_a_while() {
    let mut mirror = mirror(2);
    mirror.live.get_mut(&id(0)).expect("it is there").status = json!({"phase": "Failure"});
    let told = told(2, false);
    let patient = mirror.batch(&told, true, "now").0;
    assert_eq!(names(&patient), ["d0001"], "the other has a status from before");
    assert_eq!(mirror.batch(&told, false, "now").0.len(), 2);
}

#[tokio::test]
async fn nothing_is_told_to_what_is_not_ours() {
    let mut mirror = mirror(1);
    mirror.live.get_mut(&id(0)).expect("it is there").recorded = Some("another".to_owned());
    assert!(mirror.batch(&told(2, true), false, "now").0.is_empty());
}

#[tokio::test]
async fn a_namespace_of_others_has_room_for_units_and_none_for_clusters() {
    let mut mirror = mirror(0);
    mirror.shared.insert(Id::namespace("default"));
    let mut desired = Desired::default();
    let subscription = Id::new(Kind::Subscription, "default", "web");
    assert!(mirror.has_room(&subscription, &desired));
    assert!(!mirror.has_room(&Id::new(Kind::Subscription, "other", "web"), &desired));
    desired.cluster_namespaces.insert("default".to_owned());
    assert!(!mirror.has_room(&Id::new(Kind::Base, "default", "web-0"), &desired));
}
