//! The door's socket against who says nothing, says it slowly, or takes all places.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::Semaphore;

use super::super::audit::Audit;
use super::super::carry::Carrier;
use super::super::certificate::{Authority, authorities, config};
use super::super::files::Kept;
use super::super::login::Logins;
use super::super::tests::oslo_fleet;
use super::super::tokens::Tokens;
use super::*;
use crate::audit::AuditLog;
use crate::hub::tally::Tally;
use crate::limits::{DOOR_BODY_TIMEOUT, DOOR_UNREAD_MAX, PLACES_OF_KNOWN, PLACES_OF_STRANGER};

#[tokio::test(start_paused = true)]
async fn who_says_nothing_or_says_it_slowly_is_closed_in_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let authority = Authority::read_or_make(&folder.path().join("ca.key")).expect("it is made");
    let shown = authority.certificate_for(&["localhost".to_owned()]).expect("it signs");
    let tls = config(&shown, None).expect("it is one").config;
    for slowly in [false, true] {
        let (mut caller, socket) = tokio::io::duplex(1_024);
        let begin = tokio::time::Instant::now();
        let drip = async {
            // A byte a second of a record that claims to be a long one.
            for byte in [22, 3, 1, 16, 0].into_iter().chain(std::iter::repeat(1)) {
                if !slowly || caller.write_u8(byte).await.is_err() {
                    break;
                }
                tokio::time::sleep(std::time::Duration::from_secs(1)).await;
            }
            std::future::pending().await
        };
        tokio::select! {
            () = drip => {}
            secured = secured(socket, &tls) => assert!(secured.is_none()),
        }
        let late = DOOR_HANDSHAKE_TIMEOUT + std::time::Duration::from_secs(1);
        assert!(begin.elapsed() < late, "slowly: {slowly}");
    }
}

/// A porter whose hub knows ada, and oslo, which is not connected.
fn porter(folder: &std::path::Path) -> Arc<Porter> {
    let authority = Authority::read_or_make(&folder.join("ca.key")).expect("it is made");
    let shown = authority.certificate_for(&["localhost".to_owned()]).expect("it signs");
    let tokens = Tokens::parse(b"long-token-of-ada,ada,1,\"ops\"").expect("a file of tokens");
    let tally: Arc<Tally> = Arc::default();
    let tls = Kept::fixed(config(&shown, None).expect("it is one"));
    let state = crate::hub::SharedState::default();
    state.write().unwrap_or_else(PoisonError::into_inner).fleet = Some(oslo_fleet());
    Arc::new(Porter {
        state,
        own: axum::Router::new(),
        logins: Logins::new(tls, Some(Kept::fixed(tokens)), None, Arc::clone(&tally)),
        carrier: Carrier::new(Arc::default()),
        audit: Audit::begin(AuditLog::default(), CancellationToken::new()),
        tally,
        interactive: false,
        name: "hub".to_owned(),
        requests: std::sync::atomic::AtomicU64::new(0),
        watches: Arc::default(),
        own_answers: crate::hub::places::Places::new(1),
        written: Semaphore::new(1),
    })
}

/// Whoever believes that porter's authority.
fn trust(folder: &std::path::Path) -> rustls::ClientConfig {
    let authority = Authority::read_or_make(&folder.join("ca.key")).expect("it was made");
    let roots = authorities(authority.certificate.as_bytes()).expect("it is a certificate");
    rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring knows them")
        .with_root_certificates(roots)
        .with_no_client_auth()
}

/// Says something within TLS, and then a byte a second. What it is told until it is hung up on, and when that was.
async fn drips(beginning: &str) -> (String, Duration) {
    let folder = tempfile::tempdir().expect("a folder");
    let porter = porter(folder.path());
    let tls = Arc::clone(&porter.logins.tls.now().config);
    let trust = trust(folder.path());
    let (caller, socket) = tokio::io::duplex(64 << 10);
    let places = Places::default();
    let (_place, newcomer) = places.place(address("192.0.2.1")).expect("there is a place");
    // So that it is what is said slowly that counts, and not that nobody logged in.
    newcomer.is_known();
    let served = async {
        let stream = secured(socket, &tls).await.expect("it speaks TLS");
        Box::pin(converse(
            stream,
            address("192.0.2.1"),
            newcomer,
            porter,
            CancellationToken::new(),
        ))
        .await;
    };
    let says = async {
        let connector = tokio_rustls::TlsConnector::from(Arc::new(trust));
        let name = rustls::pki_types::ServerName::try_from("localhost").expect("a name");
        let stream = connector.connect(name, caller).await.expect("it is TLS");
        let begun = tokio::time::Instant::now();
        let (mut reader, mut writer) = tokio::io::split(stream);
        let drip = async {
            let _said = writer.write_all(beginning.as_bytes()).await;
            let _said = writer.flush().await;
            loop {
                sleep(Duration::from_secs(1)).await;
                let _said = writer.write_all(b"a").await;
                let _said = writer.flush().await;
            }
        };
        let mut told = Vec::new();
        tokio::select! {
            () = drip => {}
            // Hung up on in order, or not.
            _ended = reader.read_to_end(&mut told) => {}
        }
        (String::from_utf8_lossy(&told).into_owned(), begun.elapsed())
    };
    let (told, ()) = tokio::join!(says, served);
    told
}

#[tokio::test(start_paused = true)]
async fn who_says_headers_or_a_body_slowly_within_tls_is_hung_up_on_in_time() {
    let (told, after) = drips("GET /healthz HTTP/1.1\r\nhost: hub\r\nx: ").await;
    assert!(
        after <= API_HEADER_TIMEOUT + Duration::from_secs(2),
        "{after:?}: {told}"
    );
    let body = "POST /clusters/oslo/apis/authorization.k8s.io/v1/selfsubjectaccessreviews HTTP/1.1\r\nhost: hub\r\n\
        authorization: Bearer long-token-of-ada\r\ncontent-length: 1000\r\n\r\n{";
    let (told, after) = drips(body).await;
    assert!(told.starts_with("HTTP/1.1 408 "), "{told}");
    assert!(after <= DOOR_BODY_TIMEOUT + DOOR_IDLE_MAX, "{after:?}: {told}");
    let (told, after) = drips("").await;
    assert!(
        after <= API_HEADER_TIMEOUT + Duration::from_secs(2),
        "{after:?}: {told}"
    );
}

fn address(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

#[tokio::test]
async fn one_address_takes_a_part_of_all_connections_at_most() {
    let places = Places::default();
    let here = address("192.0.2.1");
    let known = || {
        let (place, newcomer) = places.place(here)?;
        newcomer.is_known();
        Some(place)
    };
    let mut held: Vec<_> = (0..DOOR_CONNECTIONS_MAX / PLACES_OF_KNOWN).map(|_| known()).collect();
    assert!(held.iter().all(Option::is_some));
    assert!(known().is_none());
    assert!(places.place(address("192.0.2.2")).is_some());
    held.pop();
    assert!(known().is_some(), "one went away");
}

#[tokio::test(start_paused = true)]
async fn who_does_not_log_in_leaves_places_to_others_and_is_closed_in_time() {
    let places = Places::default();
    let silent = |text: &str| places.place(address(text));
    let held: Vec<_> = (0..DOOR_NEWCOMERS_MAX / PLACES_OF_STRANGER)
        .map(|_| silent("192.0.2.1"))
        .collect();
    assert!(held.iter().all(Option::is_some));
    assert!(silent("192.0.2.1").is_none(), "an address has its share of them");
    let (_place, newcomer) = silent("192.0.2.2").expect("another one has theirs");
    let begin = tokio::time::Instant::now();
    newcomer.overdue().await;
    assert_eq!(begin.elapsed(), DOOR_NEWCOMER_MAX);
    newcomer.is_known();
    let overdue = timeout(DOOR_NEWCOMER_MAX * 2, newcomer.overdue()).await;
    assert!(overdue.is_err(), "who is logged in stays");
}

/// Has ada ask over HTTP/2 for what is not there, and let no more than so many bytes of the answer come. How long the
/// connection lasts from then on; `ends`: with the hub.
async fn reads_nothing(window: u32, ends: bool) -> Duration {
    let folder = tempfile::tempdir().expect("a folder");
    let (porter, shutdown) = (porter(folder.path()), CancellationToken::new());
    let tls = Arc::clone(&porter.logins.tls.now().config);
    let mut trust = trust(folder.path());
    trust.alpn_protocols = vec![b"h2".to_vec()];
    let (caller, socket) = tokio::io::duplex(64 << 10);
    let here = address("192.0.2.1");
    let places = Places::default();
    let (_place, newcomer) = places.place(here).expect("there is a place");
    let stop = shutdown.clone();
    let served = async {
        let stream = secured(socket, &tls).await.expect("it speaks TLS");
        Box::pin(converse(stream, here, newcomer, porter, stop)).await;
        tokio::time::Instant::now()
    };
    let asks = async {
        let connector = tokio_rustls::TlsConnector::from(Arc::new(trust));
        let name = rustls::pki_types::ServerName::try_from("localhost").expect("a name");
        let stream = connector.connect(name, caller).await.expect("it is TLS");
        let mut http = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
        http.initial_stream_window_size(window);
        let (mut sender, connection) = http.handshake(TokioIo::new(stream)).await.expect("it is HTTP/2");
        let connection = tokio::spawn(connection);
        let request = Request::get("https://hub/clusters/paris/api/v1/pods")
            .header(http::header::AUTHORIZATION, "Bearer long-token-of-ada")
            .body(http_body_util::Empty::<bytes::Bytes>::new())
            .expect("a request");
        let answer = sender.send_request(request).await.expect("it is answered");
        assert!(answer.status().is_client_error(), "{answer:?}");
        let begun = tokio::time::Instant::now();
        if ends {
            shutdown.cancel();
        }
        let _gone = connection.await;
        drop((answer, sender));
        begun
    };
    let both = async { tokio::join!(asks, served) };
    let (begun, ended) = timeout(DOOR_UNREAD_MAX * 3, both).await.expect("it ends");
    ended - begun
}

#[tokio::test(start_paused = true)]
async fn who_reads_nothing_of_a_refusal_keeps_no_connection() {
    let longest = DOOR_UNREAD_MAX + DOOR_JUDGED_AGAIN * 2;
    let lasted = reads_nothing(0, false).await;
    assert!(lasted <= longest, "nothing comes: {lasted:?}");
    let longest = DOOR_IDLE_MAX + DOOR_JUDGED_AGAIN;
    for ends in [false, true] {
        let lasted = reads_nothing(1, ends).await;
        assert!(lasted <= longest, "a byte comes, and the hub ends: {ends}: {lasted:?}");
    }
}
