//! What one caller may have of the hub's own API, and how much of an answer is in memory.

use axum::Extension;

use super::super::Asker;
use super::*;
use crate::limits::{API_BATCH, EXPLANATIONS_MAX, EXPLANATIONS_OF_PERSON_MAX, PINGS_MAX, PINGS_OF_PERSON_MAX};

/// So many clusters that a list of them is written in pieces.
fn many() -> Api {
    let names: Vec<String> = (0..API_BATCH * 2 + 10).map(|number| format!("c{number:03}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut world = World::new();
    world.push('1', &names, &[]);
    Api::new(world)
}

#[tokio::test]
async fn a_long_list_is_written_in_pieces_and_is_the_same_list() {
    let api = many();
    let path = format!("{GROUP}/managedclusters");
    for (accept, elements) in [("application/json", "items"), (TABLE, "rows")] {
        let (_, mut body) = api.ask("GET", &path, accept).await;
        let mut pieces = Vec::new();
        while let Some(frame) = body.frame().await {
            pieces.push(frame.expect("a frame").into_data().expect("data"));
        }
        assert_eq!(
            pieces.len(),
            3,
            "{elements}: no piece has more than {API_BATCH} objects"
        );
        let whole: Value = serde_json::from_slice(&pieces.concat()).expect("the pieces are one JSON text");
        let listed = whole[elements].as_array().expect("a list");
        assert_eq!(listed.len(), API_BATCH * 2 + 10);
        assert!(whole["metadata"]["resourceVersion"].is_string() && whole["kind"].is_string());
        let pages = format!("{path}?limit=100");
        let (_, first) = api.get(&pages, accept).await;
        assert_eq!(first["metadata"]["remainingItemCount"], API_BATCH * 2 + 10 - 100);
        assert_eq!(first[elements].as_array(), Some(&listed[..100].to_vec()));
    }
}

#[tokio::test(start_paused = true)]
async fn what_waits_in_a_watch_is_shared_until_it_is_sent() {
    let mut api = many();
    let mut events = api.watch("/managedclusters?watch=1").await;
    assert_eq!(events.next().await.as_deref(), Some("ADDED c000"));
    let shelf_of = |api: &Api| {
        let store = Arc::clone(&api.store);
        async move { store.shelf(super::super::resource::Resource::ManagedClusters).await }
    };
    let shelf = shelf_of(&api).await;
    let last = shelf
        .items
        .last_key_value()
        .map(|(_, item)| Arc::clone(item))
        .expect("an object");
    let holders = Arc::strong_count(&last);
    assert!(holders > 2, "the watch points to what all share: {holders}");
    drop((shelf, last));
    let mut told = 1;
    while told < API_BATCH * 2 + 10 {
        assert!(events.next().await.expect("more").starts_with("ADDED c"));
        told += 1;
    }
    api.change(|world| world.connect("c001"));
    assert_eq!(
        events.next().await.as_deref(),
        Some("MODIFIED c001"),
        "and nothing twice"
    );
}

#[tokio::test(start_paused = true)]
async fn who_asks_for_too_much_at_a_time_is_told_to_come_again() {
    let mut api = Api::settled();
    let store = Arc::clone(&api.store);
    let context = Context::new(store, true, api.stop.clone()).asking(asking(Predictors::new()));
    let whole = router(context.clone());
    let of = |who: &str| whole.clone().layer(Extension(Asker(who.to_owned())));
    let tunnel = format!("{GROUP}/managedclusters/a/tunnel?ping={PINGS_MAX}");
    let explanation = format!("{GROUP}/namespaces/shop/subscriptions/web/explanation");
    api.router = of("ada");
    for _ in 0..PINGS_OF_PERSON_MAX as usize / PINGS_MAX {
        assert_eq!(api.get(&tunnel, "application/json").await.0, StatusCode::OK);
    }
    let (status, refused) = api.get(&tunnel, "application/json").await;
    assert_eq!(status, StatusCode::TOO_MANY_REQUESTS, "{refused}");
    assert_eq!(
        (&refused["kind"], &refused["reason"]),
        (&json!("Status"), &json!("TooManyRequests"))
    );
    let wait = refused["details"]["retryAfterSeconds"]
        .as_u64()
        .expect("a word on when to come again");
    tokio::time::advance(std::time::Duration::from_secs(wait)).await;
    assert_eq!(
        api.get(&tunnel, "application/json").await.0,
        StatusCode::OK,
        "after that she may"
    );
    let held: Vec<_> = (0..EXPLANATIONS_OF_PERSON_MAX)
        .map(|_| context.explaining("ada"))
        .collect();
    assert_eq!(
        api.get(&explanation, "application/json").await.0,
        StatusCode::TOO_MANY_REQUESTS
    );
    api.router = of("bob");
    assert_eq!(
        api.get(&explanation, "application/json").await.0,
        StatusCode::OK,
        "others are served"
    );
    assert_eq!(api.get(&tunnel, "application/json").await.0, StatusCode::OK);
    let more: Vec<_> = (EXPLANATIONS_OF_PERSON_MAX..EXPLANATIONS_MAX)
        .map(|number| context.explaining(&format!("user-{number}")))
        .collect();
    assert_eq!(
        api.get(&explanation, "application/json").await.0,
        StatusCode::TOO_MANY_REQUESTS
    );
    drop((held, more));
    assert_eq!(api.get(&explanation, "application/json").await.0, StatusCode::OK);
}
