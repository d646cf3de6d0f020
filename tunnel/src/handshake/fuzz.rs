//! Handshakes in memory, with whatever bytes a peer says.

use tokio::io::{AsyncWriteExt as _, DuplexStream};
use tokio_tungstenite::tungstenite::protocol::Role as SocketRole;

use super::*;
use crate::fuzz::messages;

pub(super) static NO_TOKEN: Token = Token(String::new());

pub(super) type Socket = WebSocketStream<DuplexStream>;

/// Messages instead of HELLO and AUTH, told to a hub and to an agent, and the bytes themselves to a hub. Each is refused.
///
/// # Panics
/// Where one is not, or does not end.
pub fn hello(input: &[u8]) {
    let said: Vec<_> = messages(input).map(|bytes| Message::Binary(bytes.into())).collect();
    survive(&said);
    survive_bytes(input);
}

pub(super) async fn sockets() -> (Socket, Socket) {
    let (hub, agent) = tokio::io::duplex(64 * 1024);
    let hub = WebSocketStream::from_raw_socket(hub, SocketRole::Server, None);
    let agent = WebSocketStream::from_raw_socket(agent, SocketRole::Client, None);
    tokio::join!(hub, agent)
}

pub(super) fn key() -> SecretKey {
    SecretKey::generate().expect("the system has random bytes")
}

pub(super) fn us<'a>(key: &'a SecretKey, cluster: &'a str, exporter: Option<u8>) -> Introduction<'a> {
    let exporter = exporter.map(|byte| [byte; 32]);
    Introduction {
        key,
        version: "0.1.0",
        cluster,
        epoch: 7,
        server_id: "",
        endpoints: &[],
        exporter,
        spread: std::time::Duration::from_millis(1_500),
        held: &[],
        instance: "",
        token: &NO_TOKEN,
    }
}

/// Handshakes in memory; whoever waits for nothing is at the end of its patience at once.
fn in_memory<T>(work: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build();
    runtime.expect("a runtime needs nothing").block_on(work)
}

/// Both sides hear these messages from a peer that has no key of either, and then nothing more.
pub(super) fn survive(messages: &[Message]) {
    in_memory(async {
        for role in [Role::Hub, Role::Agent] {
            let (hub_socket, agent_socket) = sockets().await;
            let (mut socket, mut peer) = match role {
                Role::Hub => (hub_socket, agent_socket),
                Role::Agent => (agent_socket, hub_socket),
            };
            let (own, other) = (key(), key().public());
            let talk = async {
                for message in messages {
                    if peer.send(message.clone()).await.is_err() {
                        break;
                    }
                }
                // Whoever goes on listening hears it out.
                while let Some(Ok(_)) = peer.next().await {}
            };
            let known = move |_: &str| Some(vec![other]);
            let refused = async {
                let outcome = match role {
                    Role::Hub => as_hub(&mut socket, &us(&own, "", None), &known).await.err(),
                    Role::Agent => as_agent(&mut socket, &us(&own, "north", None), &[other]).await.err(),
                };
                drop(socket);
                outcome
            };
            let (refused, ()) = tokio::join!(refused, talk);
            assert!(refused.is_some(), "nobody comes to terms with {messages:?}");
        }
    });
}

/// As [`survive`], with bytes that may be no WebSocket's.
pub(super) fn survive_bytes(bytes: &[u8]) {
    in_memory(async {
        let (own, other) = (key(), key().public());
        let (near, mut far) = tokio::io::duplex(64 * 1024);
        let mut socket = WebSocketStream::from_raw_socket(near, SocketRole::Server, None).await;
        // It may have hung up before.
        let _written = far.write_all(bytes).await;
        let _ended = far.shutdown().await;
        let outcome = as_hub(&mut socket, &us(&own, "", None), &move |_: &str| Some(vec![other])).await;
        assert!(outcome.is_err());
    });
}
