//! A hub and an agent with one tunnel between them, and what serves its streams.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::io::copy_bidirectional_with_sizes;
use tokio::net::{TcpListener, TcpStream};
use tunnel::{AcceptOptions, ConnectOptions, IncomingOpen, Opener, SecretKey, Session, TargetClass, TunnelStream};

use super::flow;
use super::place::Place;

/// The one cluster of these benches.
const CLUSTER: &str = "north";
/// How long an open may take; nothing here is slow to answer.
pub(super) const DEADLINE: Duration = Duration::from_secs(5);
/// What a relay reads at once, each way.
const RELAY_BYTES: usize = 64 * 1024;

/// What a stream is for, by its target.
pub(super) const SEND: &str = "send";
pub(super) const ECHO: &str = "echo";

/// A hub's door.
pub(super) struct Door {
    pub(super) listener: TcpListener,
    pub(super) address: SocketAddr,
    pub(super) options: AcceptOptions,
    pub(super) hub_key: Arc<SecretKey>,
    pub(super) agent_key: Arc<SecretKey>,
}

impl Door {
    /// A door that takes any cluster with the one key.
    pub(super) async fn open() -> anyhow::Result<Self> {
        let (hub_key, agent_key) = (Arc::new(SecretKey::generate()?), Arc::new(SecretKey::generate()?));
        let registered = agent_key.public();
        let options = AcceptOptions::new(Arc::clone(&hub_key), Arc::new(move |_: &str| Some(vec![registered])))?;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        Ok(Self {
            listener,
            address,
            options,
            hub_key,
            agent_key,
        })
    }
}

/// Both ends of a tunnel.
pub(super) struct Ends {
    pub(super) opener: Opener,
    pub(super) hub: Session,
    pub(super) agent: Session,
}

impl Ends {
    /// A tunnel from `agent` to `hub`; with `through` the agent dials what that gives for the hub's address.
    pub(super) fn start(
        hub: &Place,
        agent: &Place,
        through: impl FnOnce(SocketAddr) -> anyhow::Result<SocketAddr>,
    ) -> anyhow::Result<Self> {
        let door = hub.run(Door::open())?;
        let address = through(door.address)?;
        let options = ConnectOptions::new(
            format!("wss://{address}"),
            vec![door.hub_key.public()],
            CLUSTER,
            Arc::clone(&door.agent_key),
            1,
        );
        let accepting = hub.begin(async move {
            let (socket, _) = door.listener.accept().await?;
            Ok(tunnel::accept(socket, &door.options).await?)
        });
        let at_agent = agent.run(async move { Ok(tunnel::connect(&options).await?) })?;
        let at_hub = accepting()?;
        let mut incoming = at_agent.incoming;
        agent.keep(async move {
            while let Some(wish) = incoming.next().await {
                tokio::spawn(serve(wish));
            }
        });
        Ok(Self {
            opener: at_hub.opener,
            hub: at_hub.session,
            agent: at_agent.session,
        })
    }
}

/// What the agent does with a stream: serve it itself, or carry it to an address.
async fn serve(wish: IncomingOpen) -> anyhow::Result<()> {
    let target = wish.open.target;
    if target == SEND {
        return flow::send(wish.responder.accept()?).await;
    }
    if target == ECHO {
        return flow::echo(wish.responder.accept()?).await;
    }
    let socket = TcpStream::connect(&target).await?;
    relay(wish.responder.accept()?, socket).await
}

/// Carries bytes between a stream and a socket until both directions ended.
pub(super) async fn relay(mut stream: TunnelStream, mut socket: TcpStream) -> anyhow::Result<()> {
    socket.set_nodelay(true)?;
    copy_bidirectional_with_sizes(&mut stream, &mut socket, RELAY_BYTES, RELAY_BYTES).await?;
    Ok(())
}

/// A stream to `target`.
pub(super) async fn stream(opener: &Opener, target: &str) -> anyhow::Result<TunnelStream> {
    let stream = opener.open(TargetClass::Deliver, target, DEADLINE).await;
    stream.with_context(|| format!("no stream to {target}"))
}
