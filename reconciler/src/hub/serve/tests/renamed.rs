//! A cluster whose file got another name.

use render::published::Departure;

use super::*;

/// World a's file is called c now, with this key, and a is known as one that left with key A.
fn renamed(api: &mut Api, key: &str) {
    api.change(|world| {
        let mut fleet = world.state.fleet.as_deref().cloned().expect("it was planned");
        let (a, c) = (cluster("a"), cluster("c"));
        let mut file = fleet.clusters.remove(&a).expect("it was there");
        file.name = c.clone();
        file.public_keys = vec![key.to_owned()];
        fleet.clusters.insert(c, file);
        let departure = Departure {
            public_keys: vec!["ed25519:A".to_owned()],
            kubeconfig_context: None,
            deletion_policy: render::model::DeletionPolicy::Orphan,
            source: fleet.revision.clone(),
            since: 7_200,
            units: vec![unit("shop/web")],
        };
        world.state.fleet = Some(Arc::new(fleet));
        let released = world.state.released.as_mut().expect("it was released");
        let record = Arc::make_mut(&mut released.published).record.as_mut();
        record.expect("it has one").departed.insert(a, departure);
        world.state.version += 1;
    });
}

/// What is told of a.
async fn told(api: &Api) -> Value {
    let list = api.list("/managedclusters").await;
    let mut items = list["items"].as_array().expect("a list").iter();
    let a = items
        .find(|item| item["metadata"]["name"] == "a")
        .expect("it is listed");
    a["status"].clone()
}

#[tokio::test]
async fn the_old_name_of_a_renamed_cluster_says_which_cluster_it_is_now() {
    let mut api = Api::settled();
    api.change(|world| world.disconnect("a"));
    renamed(&mut api, "ed25519:A");
    let status = told(&api).await;
    assert_eq!(
        (&status["session"], &status["renamedTo"]),
        (&json!("Renamed"), &json!("c"))
    );
    let ready = &status["conditions"][0];
    assert_eq!(ready["reason"], "Leaving", "it is forgotten as any other that left");
    let message = ready["message"].as_str().expect("a message");
    for words in ["its key is cluster c's now", "--cluster c", "flotilla forget a"] {
        assert!(message.contains(words), "{words} in {message}");
    }
    let (_, table) = api.get(&format!("{GROUP}/managedclusters"), TABLE).await;
    let mut rows = table["rows"].as_array().expect("rows").iter();
    let row = rows.find(|row| row["object"]["metadata"]["name"] == "a");
    assert_eq!(row.expect("it is shown")["cells"][2], "Renamed", "{table:#}");
}

#[tokio::test]
async fn a_name_that_left_or_whose_agent_is_still_connected_is_not_called_renamed() {
    let mut api = Api::settled();
    renamed(&mut api, "ed25519:A");
    let status = told(&api).await;
    assert_eq!(status["session"], "Connected", "its agent was not started anew yet");
    assert_eq!(status["renamedTo"], "c");
    let mut api = Api::settled();
    api.change(|world| world.disconnect("a"));
    renamed(&mut api, "ed25519:B");
    let status = told(&api).await;
    assert_eq!(
        (&status["session"], &status["renamedTo"]),
        (&json!("Disconnected"), &Value::Null)
    );
    let message = status["conditions"][0]["message"].as_str().expect("a message");
    assert!(!message.contains("its key"), "{message}");
}
