//! Another hub that takes connections and answers nothing.

use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, pause, timeout};
use tunnel::{AcceptOptions, Open, PublicKey, SecretKey, TargetClass};

use super::*;
use crate::hub::keys::KeyList;
use crate::hub::peers::{Dialling, Endpoints, Others, Peer, PeerKeys, follow};
use crate::limits::PEER_ANSWER_TIMEOUT;

const SOON: std::time::Duration = std::time::Duration::from_secs(60);

fn key() -> Arc<SecretKey> {
    Arc::new(SecretKey::generate().expect("there is randomness"))
}

/// One that lets this key in.
async fn mute(other: PublicKey) -> Peer {
    let own = key();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a port");
    let url = format!("wss://{}", listener.local_addr().expect("it is bound"));
    let keys = vec![own.public()];
    let known = move |_: &str| Some(vec![other]);
    let accept = AcceptOptions::new(own, Arc::new(known)).expect("a key makes a certificate");
    tokio::spawn(async move {
        let mut kept = Vec::new();
        loop {
            let (socket, _) = listener.accept().await.expect("the other hub dials");
            kept.push(tunnel::accept(socket, &accept).await.expect("it is proven"));
        }
    });
    Peer { url, keys }
}

/// The ways to it, once one stands.
async fn ways_to_a_mute_hub(stop: &CancellationToken) -> Others {
    let own = key();
    let (peer, others) = (mute(own.public()).await, Others::default());
    let dialling = Dialling {
        keys: watch::channel(KeyList::from([own])).1,
        peer_keys: Arc::new(PeerKeys::of(std::slice::from_ref(&peer))),
        server_id: "b".to_owned(),
        dispatch: Arc::default(),
        connections: Arc::default(),
        registry: Arc::default(),
        events: mpsc::channel(16).0,
        endpoints: Arc::new(Endpoints::new(Vec::new())),
        first_words: Arc::default(),
        others: others.clone(),
    };
    tokio::spawn(follow(peer, dialling, stop.clone()));
    let stands = || {
        let open = || Open::new(TargetClass::Look, "", SOON);
        others
            .ways(&cluster("a"))
            .iter()
            .any(|(_, way)| way.way(open()).is_ok())
    };
    let connected = async {
        while !stands() {
            tokio::task::yield_now().await;
        }
    };
    timeout(SOON, connected).await.expect("it connects soon");
    others
}

#[tokio::test]
async fn pings_do_not_wait_for_a_hub_that_says_nothing_and_a_description_does_for_a_while() {
    let mut api = Api::settled();
    let others = ways_to_a_mute_hub(&api.stop).await;
    let predictor = Arc::new(Predictor::new(HelmOptions::default()));
    let asking = Asking::new(
        Arc::default(),
        predictor,
        Arc::new(Predictors::new()),
        (Arc::default(), others),
    );
    let store = Arc::clone(&api.store);
    api.router = router(Context::new(store, true, api.stop.clone()).asking(asking));
    pause();
    let begun = Instant::now();
    let pinged = api.list("/managedclusters/a/tunnel?ping=1").await;
    assert!(begun.elapsed() < PEER_ANSWER_TIMEOUT, "after {:?}", begun.elapsed());
    assert_eq!(pinged["elsewhere"], json!([]), "{pinged:#}");
    let described = api.list("/managedclusters/a/tunnel").await;
    assert!(begun.elapsed() >= PEER_ANSWER_TIMEOUT, "it is waited for");
    let error = described["elsewhere"][0]["error"].as_str().unwrap_or_default();
    assert!(error.contains("no answer within"), "{described:#}");
    api.stop.cancel();
}
