//! The tunnel over 100 Mbit/s and 60 ms: whether it fills the link, and whether a request waits behind bulk.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tunnel::Opener;

use super::ends::{ECHO, Ends, SEND, stream};
use super::flow;
use super::link::{BYTES_PER_SECOND, Link};
use super::place::Place;
use crate::bench::{Figures, percentile};

/// Ten round trips and some: a stream's window has grown by then.
const GROWTH: Duration = Duration::from_secs(1);
/// Over which the share of the link is looked at.
const LOOK: Duration = Duration::from_secs(4);
const BULK_STREAMS: usize = 10;
/// One more than 100, so that the 99th percentile leaves room for one.
const REQUESTS: usize = 101;
/// More than any of these streams moves.
const ENDLESS: u64 = u64::MAX;

pub(super) fn run(figures: &mut Figures) -> anyhow::Result<()> {
    let (hub, agent, router) = (Place::start("hub")?, Place::start("agent")?, Place::start("router")?);
    let link = Link::start(&router)?;
    let ends = Ends::start(&hub, &agent, |hub| link.to(&router, hub))?;
    let opener = ends.opener.clone();
    let share = hub.run(async move { bulk(&opener).await })?;
    figures.print("bulk_on_slow_link", share, "ratio")?;

    let probe = link.to(&router, bare_echo(&hub)?)?;
    let opener = ends.opener.clone();
    let requests = hub.begin(async move { requests_under_bulk(&opener).await });
    let bare = agent.begin(async move { bare_requests(probe).await });
    let (mut requests, mut bare) = (requests()?, bare()?);
    let path = percentile(&mut bare, 0.5).context("there were requests")?;
    figures.print_ms("path_rtt_under_bulk", path)?;
    for (figure, quantile) in [
        ("request_under_bulk_p50_vs_path_rtt", 0.5),
        ("request_under_bulk_p99_vs_path_rtt", 0.99),
    ] {
        let time = percentile(&mut requests, quantile).context("there were requests")?;
        figures.print(figure, time.as_secs_f64() / path.as_secs_f64(), "ratio")?;
    }
    Ok(())
}

/// The share of the link that one stream gets, agent to hub, once its window has grown.
async fn bulk(opener: &Opener) -> anyhow::Result<f64> {
    let mut bulk = stream(opener, SEND).await?;
    bulk.write_all(&ENDLESS.to_be_bytes()).await?;
    read_for(&mut bulk, GROWTH).await?;
    let started = Instant::now();
    let bytes = read_for(&mut bulk, LOOK).await?;
    Ok(bytes as f64 / started.elapsed().as_secs_f64() / BYTES_PER_SECOND)
}

async fn read_for(bulk: &mut tunnel::TunnelStream, time: Duration) -> anyhow::Result<u64> {
    let (started, mut bytes, mut buffer) = (Instant::now(), 0, vec![0; 64 * 1024]);
    while started.elapsed() < time {
        let read = bulk.read(&mut buffer).await?;
        ensure!(read > 0, "bulk ended early");
        bytes += read as u64;
    }
    Ok(bytes)
}

/// The times of small requests beside ten streams of bulk, all through the one tunnel.
async fn requests_under_bulk(opener: &Opener) -> anyhow::Result<Vec<Duration>> {
    for _ in 0..BULK_STREAMS {
        let mut bulk = stream(opener, SEND).await?;
        tokio::spawn(async move {
            bulk.write_all(&ENDLESS.to_be_bytes()).await?;
            tokio::io::copy(&mut bulk, &mut tokio::io::sink()).await
        });
    }
    tokio::time::sleep(GROWTH).await;
    let mut requests = stream(opener, ECHO).await?;
    flow::ask(&mut requests, REQUESTS).await
}

/// The same without a tunnel, while the link is as full: what the path itself takes.
async fn bare_requests(probe: SocketAddr) -> anyhow::Result<Vec<Duration>> {
    tokio::time::sleep(GROWTH).await;
    let mut socket = TcpStream::connect(probe).await?;
    socket.set_nodelay(true)?;
    flow::ask(&mut socket, REQUESTS).await
}

fn bare_echo(place: &Place) -> anyhow::Result<SocketAddr> {
    place.run(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        tokio::spawn(async move {
            let (socket, _) = listener.accept().await?;
            socket.set_nodelay(true)?;
            flow::echo(socket).await
        });
        Ok(address)
    })
}
