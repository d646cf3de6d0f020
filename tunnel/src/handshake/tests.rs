//! Handshakes that must fail, over a pipe in memory.

use std::time::Duration;

use super::fuzz::{Socket, key, sockets, us};
use super::*;
use crate::frame::Nonce;

/// A hub with `hub` and an agent with `agent` exporter meet; both hold the right keys.
async fn meet(hub: Option<u8>, agent: Option<u8>) -> (Result<Agreed, HandshakeError>, Result<Agreed, HandshakeError>) {
    let (mut hub_socket, mut agent_socket) = sockets().await;
    let (hub_key, agent_key) = (key(), key());
    let pins = [hub_key.public()];
    let (hub, agent) = (us(&hub_key, "", hub), us(&agent_key, "north", agent));
    let keys_of = |_: &str| Some(vec![agent_key.public()]);
    tokio::join!(
        as_hub(&mut hub_socket, &hub, &keys_of),
        as_agent(&mut agent_socket, &agent, &pins)
    )
}

#[tokio::test]
async fn both_sides_of_one_tls_connection_agree() {
    for exporter in [Some(3), None] {
        let (hub, agent) = meet(exporter, exporter).await;
        let (hub, agent) = (
            hub.ok().map(|agreed| agreed.terms.role),
            agent.ok().map(|agreed| agreed.terms.role),
        );
        assert_eq!(
            (hub, agent),
            (Some(Role::Hub), Some(Role::Agent)),
            "exporter {exporter:?}"
        );
    }
}

#[tokio::test]
async fn somebody_between_two_tls_connections_is_noticed() {
    let (hub, agent) = meet(Some(3), Some(4)).await;
    assert!(
        matches!(hub, Err(HandshakeError::AgentNotProven { .. })),
        "the agent signed for another connection"
    );
    assert!(matches!(agent, Err(HandshakeError::Refused(_))));
}

#[tokio::test]
async fn a_pinned_agent_does_not_let_itself_be_talked_out_of_binding() {
    let (hub, agent) = meet(None, Some(4)).await;
    assert!(matches!(agent, Err(HandshakeError::NotBound)));
    assert!(matches!(hub, Err(HandshakeError::Refused(_))));
}

async fn next(socket: &mut Socket, awaited: Kind) -> Frame {
    receive(socket, awaited).await.expect("it comes")
}

async fn tell(socket: &mut Socket, frame: Frame) {
    send(socket, frame, Kind::Hello).await.expect("the pipe is open");
}

fn plain_hello(nonce: u8) -> Hello {
    let key = key();
    Hello {
        nonce: Nonce([nonce; 32]),
        ..hello(&us(&key, "north", None)).expect("the system has random bytes")
    }
}

#[tokio::test]
async fn a_recorded_agent_hello_is_worth_nothing_in_another_handshake() {
    let (hub_key, agent_key) = (key(), key());
    let keys_of = |_: &str| Some(vec![agent_key.public()]);
    let hub = us(&hub_key, "", None);
    let (mut hub_socket, mut agent_socket) = sockets().await;
    let recording = async {
        let Frame::Hello(challenge) = next(&mut agent_socket, Kind::Hello).await else {
            unreachable!("a HELLO")
        };
        let mut hello = plain_hello(5);
        let proof = Proof {
            hub_nonce: challenge.nonce,
            agent_nonce: hello.nonce,
            cluster: "north",
            epoch: 7,
            exporter: None,
            server_id: "",
            endpoints: &[],
        };
        hello.signature = STANDARD.encode(proof.sign(Role::Agent, &agent_key));
        tell(&mut agent_socket, Frame::Hello(Box::new(hello.clone()))).await;
        hello
    };
    let (first, recorded) = tokio::join!(as_hub(&mut hub_socket, &hub, &keys_of), recording);
    assert!(first.is_ok(), "it was good once");
    let (mut hub_socket, mut agent_socket) = sockets().await;
    let replay = tell(&mut agent_socket, Frame::Hello(Box::new(recorded)));
    let (second, ()) = tokio::join!(as_hub(&mut hub_socket, &hub, &keys_of), replay);
    assert!(matches!(second, Err(HandshakeError::AgentNotProven { .. })));
}

/// Lets an agent meet a hub that answers its HELLO with AUTH made by `auth`.
async fn check_auth_refused(auth: impl FnOnce(&Proof<'_>, &[u8], &SecretKey) -> Auth) {
    let (mut hub_socket, mut agent_socket) = sockets().await;
    let (hub_key, agent_key) = (key(), key());
    let pins = [hub_key.public()];
    let agent = us(&agent_key, "north", None);
    let false_hub = async {
        tell(
            &mut hub_socket,
            Frame::Hello(Box::new(Hello {
                cluster: String::new(),
                ..plain_hello(1)
            })),
        )
        .await;
        let Frame::Hello(theirs) = next(&mut hub_socket, Kind::Hello).await else {
            unreachable!("a HELLO")
        };
        let proof = Proof {
            hub_nonce: Nonce([1; 32]),
            agent_nonce: theirs.nonce,
            cluster: "north",
            epoch: 7,
            exporter: None,
            server_id: "",
            endpoints: &[],
        };
        let signature = STANDARD.decode(&theirs.signature).expect("base64");
        tell(&mut hub_socket, Frame::Auth(auth(&proof, &signature, &hub_key))).await;
    };
    let (outcome, ()) = tokio::join!(as_agent(&mut agent_socket, &agent, &pins), false_hub);
    assert!(matches!(outcome, Err(HandshakeError::HubNotProven)));
}

#[tokio::test]
async fn a_hub_must_sign_with_a_pinned_key_and_in_its_own_role() {
    check_auth_refused(|proof, _, _| {
        let other = key();
        Auth {
            key: *other.public().as_bytes(),
            signature: proof.sign(Role::Hub, &other),
            spread_ms: 0,
        }
    })
    .await;
    check_auth_refused(|_, reflected, hub_key| {
        let signature = reflected.try_into().expect("64 bytes");
        Auth {
            key: *hub_key.public().as_bytes(),
            signature,
            spread_ms: 0,
        }
    })
    .await;
    // The right key, in the other side's role.
    check_auth_refused(|proof, _, hub_key| Auth {
        key: *hub_key.public().as_bytes(),
        signature: proof.sign(Role::Agent, hub_key),
        spread_ms: 0,
    })
    .await;
    check_auth_refused(|proof, _, hub_key| {
        let signature = Proof { epoch: 8, ..*proof }.sign(Role::Hub, hub_key);
        Auth {
            key: *hub_key.public().as_bytes(),
            signature,
            spread_ms: 0,
        }
    })
    .await;
}

#[tokio::test]
async fn versions_without_a_common_one_are_named_on_both_sides() {
    let (mut hub_socket, mut agent_socket) = sockets().await;
    let hub_key = key();
    let newer = Hello {
        protocol: ProtocolRange { min: 2, max: 4 },
        version: "9.0.0".to_owned(),
        ..plain_hello(1)
    };
    let agent = async {
        next(&mut agent_socket, Kind::Hello).await;
        tell(&mut agent_socket, Frame::Hello(Box::new(newer))).await;
        receive(&mut agent_socket, Kind::Auth).await
    };
    let hub = us(&hub_key, "", None);
    let (hub, agent) = tokio::join!(as_hub(&mut hub_socket, &hub, &|_: &str| None), agent);
    let text = "hub 0.1.0 speaks protocol 1 to 1, agent 9.0.0 speaks 2 to 4";
    assert!(matches!(hub, Err(HandshakeError::Version { text: named, .. }) if named == text));
    let Err(HandshakeError::Refused(away)) = agent else {
        unreachable!("refused")
    };
    assert_eq!((away.reason, away.text.as_str()), (GoAwayReason::Version, text));
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_falls_silent_in_the_handshake_is_given_five_seconds() {
    let (mut hub_socket, _agent_socket) = sockets().await;
    let hub_key = key();
    let before = tokio::time::Instant::now();
    let outcome = as_hub(&mut hub_socket, &us(&hub_key, "", None), &|_: &str| None).await;
    assert!(matches!(outcome, Err(HandshakeError::Timeout { awaited: Kind::Hello })));
    assert_eq!(before.elapsed(), Duration::from_secs(5));
}

#[tokio::test]
async fn endpoints_that_do_not_fit_are_not_offered() {
    let long = "x".repeat(ENDPOINT_BYTES_MAX + 1);
    let many: Vec<String> = std::iter::once(long)
        .chain((0..40).map(|at| format!("wss://hub-{at}")))
        .collect();
    let fit = fitting(&many);
    assert_eq!((fit.len(), fit[0].as_str()), (ENDPOINTS_MAX, "wss://hub-0"));
}

#[tokio::test]
async fn programs_too_far_apart_name_both_versions_on_both_sides() {
    let (mut hub_socket, mut agent_socket) = sockets().await;
    let (hub_key, agent_key) = (key(), key());
    let pins = [hub_key.public()];
    let hub = Introduction {
        version: "1.4.0",
        ..us(&hub_key, "", Some(3))
    };
    let agent = Introduction {
        version: "1.2.9",
        ..us(&agent_key, "north", Some(3))
    };
    let keys_of = |_: &str| Some(vec![agent_key.public()]);
    let (on_hub, on_agent) = tokio::join!(
        as_hub(&mut hub_socket, &hub, &keys_of),
        as_agent(&mut agent_socket, &agent, &pins)
    );
    for outcome in [on_hub.err(), on_agent.err()] {
        let told = match outcome.expect("they do not go together") {
            HandshakeError::Version { text, .. } => text,
            HandshakeError::Refused(away) => away.text,
            other => other.to_string(),
        };
        assert!(told.contains("1.4.0") && told.contains("1.2.9"), "{told}");
    }
}

#[tokio::test]
async fn a_hub_that_an_agent_has_a_tunnel_to_is_left_before_it_knows_whose_tunnel_it_was() {
    let (mut hub_socket, mut agent_socket) = sockets().await;
    let (hub_key, agent_key) = (key(), key());
    let pins = [hub_key.public()];
    let hub = Introduction {
        server_id: "hub-a",
        ..us(&hub_key, "", Some(3))
    };
    let held = ["hub-a".to_owned()];
    let agent = Introduction {
        held: &held,
        ..us(&agent_key, "north", Some(3))
    };
    let as_agent = async {
        let outcome = as_agent(&mut agent_socket, &agent, &pins).await;
        drop(agent_socket);
        outcome
    };
    let (on_hub, on_agent) = tokio::join!(as_hub(&mut hub_socket, &hub, &Unasked), as_agent);
    assert!(matches!(on_agent, Err(HandshakeError::AlreadyHeld { .. })));
    assert!(on_hub.is_err());
}

#[tokio::test]
async fn an_agent_learns_over_what_time_its_fleet_comes_back() {
    let (hub, agent) = meet(None, None).await;
    assert_eq!(agent.ok().map(|agreed| agreed.peer.spread.as_millis()), Some(1_500));
    assert!(hub.is_ok());
}

/// A hub that is never asked for keys.
struct Unasked;

impl KeyLookup for Unasked {
    fn keys_of(&self, _: &str) -> Vec<PublicKey> {
        unreachable!("no name was given")
    }
}

/// What a hub hears of one that it does not let in.
#[derive(Default)]
struct Door(std::sync::Mutex<Vec<(String, Option<PublicKey>, bool)>>);

impl KeyLookup for Door {
    fn keys_of(&self, _: &str) -> Vec<PublicKey> {
        Vec::new()
    }

    fn stranger(&self, stranger: &Stranger<'_>) -> Option<String> {
        let hash = ring::digest::digest(&ring::digest::SHA256, b"a token");
        let hash = hash.as_ref().try_into().expect("32 bytes");
        let has_token = stranger.token.as_ref().is_some_and(|token| token.is_of(&hash));
        let heard = (stranger.cluster.to_owned(), stranger.key, has_token);
        self.0.lock().expect("no panic").push(heard);
        Some("merge branch a".to_owned())
    }
}

#[tokio::test]
async fn a_stranger_is_heard_with_the_key_that_it_proved_and_told_what_is_missing() {
    let (hub_key, agent_key, door) = (key(), key(), Door::default());
    let (mut hub_socket, mut agent_socket) = sockets().await;
    let pins = [hub_key.public()];
    let token = Token("a token".to_owned());
    let agent = Introduction {
        token: &token,
        ..us(&agent_key, "north", Some(3))
    };
    let hub = us(&hub_key, "", Some(3));
    let (_, told) = tokio::join!(
        as_hub(&mut hub_socket, &hub, &door),
        as_agent(&mut agent_socket, &agent, &pins)
    );
    let Err(HandshakeError::Refused(away)) = told else {
        unreachable!("it is not registered")
    };
    assert_eq!(
        (away.reason, away.text.as_str()),
        (GoAwayReason::IdentityRefused, "merge branch a")
    );
    let heard = door.0.into_inner().expect("no panic");
    assert_eq!(heard, [("north".to_owned(), Some(agent_key.public()), true)]);
}

#[tokio::test]
async fn a_key_that_a_stranger_only_names_is_not_its_own() {
    let (hub_key, agent_key, door) = (key(), key(), Door::default());
    let (mut hub_socket, mut agent_socket) = sockets().await;
    let hub = us(&hub_key, "", None);
    let lie = async {
        let Frame::Hello(_) = next(&mut agent_socket, Kind::Hello).await else {
            unreachable!("a HELLO")
        };
        let hello = Hello {
            key: agent_key.public().to_string(),
            ..plain_hello(5)
        };
        tell(&mut agent_socket, Frame::Hello(Box::new(hello))).await;
    };
    let (hub, ()) = tokio::join!(as_hub(&mut hub_socket, &hub, &door), lie);
    assert!(matches!(hub, Err(HandshakeError::UnknownCluster { .. })));
    let heard = door.0.into_inner().expect("no panic");
    assert_eq!(heard, [("north".to_owned(), None, false)]);
}
