//! How much goes through, what it costs, and what a small request pays for the way.
//!
//! Every round measures both sides of each ratio one after the other; a figure is the median of its rounds, so
//! that a neighbour who is busy for a moment decides nothing.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context as _;
use tokio::net::{TcpListener, TcpStream};

use super::ends::{self, Ends, SEND, relay, stream};
use super::flow::{self, Flow};
use super::place::Place;
use super::raw::Raw;
use crate::bench::{Figures, percentile};

const ROUNDS: usize = 5;
const MANY: usize = 100;
const BYTES: u64 = 512 << 20;
/// Requests of one round; the first ones warm up.
const REQUESTS: usize = 2_000;
const WARM_UP: usize = 200;

pub(super) fn run(figures: &mut Figures) -> anyhow::Result<()> {
    let (client, hub, agent, target) = (
        Place::start("client")?,
        Place::start("hub")?,
        Place::start("agent")?,
        Place::start("target")?,
    );
    let raw = Raw::start(&hub, &agent)?;
    let ends = Ends::start(&hub, &agent, Ok)?;
    let sender = serve(&target, Target::Send)?;
    let echo = serve(&target, Target::Echo)?;
    let path = |to: SocketAddr| front(&hub, &ends, to);
    let (sender_by_tunnel, echo_by_tunnel) = (path(sender)?, path(echo)?);

    let mut ratios = Ratios::default();
    for _ in 0..ROUNDS {
        let one = raw.flow(1, BYTES)?;
        let mux = flow::measure(&[&hub, &agent], &hub, streams(&hub, &ends, 1)?, BYTES)?;
        let many = raw.flow(MANY, BYTES / MANY as u64)?;
        let muxes = flow::measure(&[&hub, &agent], &hub, streams(&hub, &ends, MANY)?, BYTES / MANY as u64)?;
        let socket = client.run(connect(sender_by_tunnel))?;
        let whole = flow::measure(&[&hub, &agent], &client, vec![socket], BYTES)?;
        ratios.add(one, mux, many, muxes, whole);
        let direct = client.run(requests(echo))?;
        let through = client.run(requests(echo_by_tunnel))?;
        ratios
            .added_us
            .push((through.as_secs_f64() - direct.as_secs_f64()) * 1e6);
    }
    ratios.print(figures)
}

#[derive(Default)]
struct Ratios {
    one: Vec<f64>,
    many: Vec<f64>,
    whole: Vec<f64>,
    cpu: Vec<f64>,
    raw_mib: Vec<f64>,
    added_us: Vec<f64>,
}

impl Ratios {
    fn add(&mut self, one: Flow, mux: Flow, many: Flow, muxes: Flow, whole: Flow) {
        self.one.push(mux.bytes_per_second() / one.bytes_per_second());
        self.many.push(muxes.bytes_per_second() / many.bytes_per_second());
        self.whole.push(whole.bytes_per_second() / one.bytes_per_second());
        self.cpu.push(whole.cpu_per_byte() / one.cpu_per_byte());
        self.raw_mib.push(one.bytes_per_second() / (1 << 20) as f64);
    }

    fn print(self, figures: &mut Figures) -> anyhow::Result<()> {
        for (figure, values, unit) in [
            ("raw_tls", self.raw_mib, "MiB/s"),
            ("one_stream_vs_raw_tls", self.one, "ratio"),
            ("hundred_streams_vs_raw_tls", self.many, "ratio"),
            ("whole_path_vs_raw_tls", self.whole, "ratio"),
            ("cpu_vs_raw_tls", self.cpu, "ratio"),
            ("small_request_added_p50", self.added_us, "us"),
        ] {
            figures.print(figure, median(values).context("there were rounds")?, unit)?;
        }
        Ok(())
    }
}

/// The one in the middle; none of none.
pub(super) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

fn streams(hub: &Place, ends: &Ends, count: usize) -> anyhow::Result<Vec<tunnel::TunnelStream>> {
    let opener = ends.opener.clone();
    hub.run(async move {
        let mut streams = Vec::new();
        for _ in 0..count {
            streams.push(stream(&opener, SEND).await?);
        }
        Ok(streams)
    })
}

/// A listener at the hub; each of its connections goes through the tunnel to `to`.
fn front(hub: &Place, ends: &Ends, to: SocketAddr) -> anyhow::Result<SocketAddr> {
    let opener = ends.opener.clone();
    hub.run(async move {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let opener = opener.clone();
                tokio::spawn(async move { relay(ends::stream(&opener, &to.to_string()).await?, socket).await });
            }
        });
        Ok(address)
    })
}

/// What stands at the end of the path.
#[derive(Clone, Copy)]
enum Target {
    Send,
    Echo,
}

fn serve(place: &Place, target: Target) -> anyhow::Result<SocketAddr> {
    place.run(async move {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                // Without it the answer may wait for the kernel; the socket works all the same.
                let _ = socket.set_nodelay(true);
                match target {
                    Target::Send => tokio::spawn(flow::send(socket)),
                    Target::Echo => tokio::spawn(flow::echo(socket)),
                };
            }
        });
        Ok(address)
    })
}

async fn connect(address: SocketAddr) -> anyhow::Result<TcpStream> {
    let socket = TcpStream::connect(address).await?;
    socket.set_nodelay(true)?;
    Ok(socket)
}

/// The median time of a small request on a connection that is there already.
async fn requests(address: SocketAddr) -> anyhow::Result<Duration> {
    let mut socket = connect(address).await?;
    flow::ask(&mut socket, WARM_UP).await?;
    let mut times = flow::ask(&mut socket, REQUESTS).await?;
    percentile(&mut times, 0.5).context("there were requests")
}
