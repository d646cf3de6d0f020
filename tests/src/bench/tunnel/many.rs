//! Ten thousand tunnels: how fast a hub takes them, and what they cost it while nothing happens.
//!
//! Their agents are processes of their own, this program again, because a process has so many descriptors and
//! the hub's memory is to be seen alone.

use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use futures_util::StreamExt as _;
use tokio::sync::{Semaphore, mpsc};
use tunnel::{ConnectOptions, PublicKey, SecretKey, Tunnel};

use super::ends::Door;
use super::place::Place;
use crate::bench::Figures;
use crate::bench::push::resident_mib;

const TUNNELS: usize = 10_000;
/// Processes of agents.
const PROCESSES: usize = 2;
/// Dials of one process that run at once.
const DIALS: usize = 32;
/// What a hub lets run at once.
const HANDSHAKES: usize = 64;
/// After which nothing of the handshakes is left to do.
const REST: Duration = Duration::from_secs(5);
/// No tunnel waits this long for the next one, unless something is stuck.
const PATIENCE: Duration = Duration::from_secs(60);
/// Tells a process that it is one of agents, and everything it needs.
const AGENTS: &str = "FLEET_BENCH_TUNNEL_AGENTS";

pub(super) fn run(figures: &mut Figures) -> anyhow::Result<()> {
    let hub = Place::start("hub")?;
    let door = hub.run(Door::open())?;
    let folder = tempfile::tempdir()?;
    let key = folder.path().join("agents.key");
    door.agent_key.save(&key)?;
    let (address, pin) = (door.address, door.hub_key.public());
    let (tunnels, mut taken) = mpsc::channel(HANDSHAKES);
    hub.keep(accept(door, tunnels));
    let (rss, cpu, started) = (resident_mib(std::process::id())?, hub.cpu()?, Instant::now());
    let mut agents = Vec::new();
    for process in 0..PROCESSES {
        let told = format!("{address} {pin} {process} {}", key.display());
        agents.push(Agents::start(&told)?);
    }
    let held = hub.run(async move {
        let mut held = Vec::with_capacity(TUNNELS);
        while held.len() < TUNNELS {
            let tunnel = tokio::time::timeout(PATIENCE, taken.recv()).await;
            held.push(tunnel.context("agents stopped dialling")?.context("the hub stopped")?);
        }
        Ok(held)
    })?;
    let (time, cpu) = (started.elapsed(), hub.cpu()? - cpu);
    figures.print("handshakes_seen", TUNNELS as f64 / time.as_secs_f64(), "1/s")?;
    // For two cores that do nothing else. A hub takes tunnels with half of its processors, and so half as many on two.
    figures.print("handshakes", 2.0 * TUNNELS as f64 / cpu.as_secs_f64(), "1/s")?;
    let living = hub.run(async move {
        tokio::time::sleep(REST).await;
        Ok(held)
    })?;
    let grown = resident_mib(std::process::id())? - rss;
    figures.print("idle_tunnel_hub", grown * 1024.0 / living.len() as f64, "KiB")
}

/// Takes tunnels as a hub does, so many handshakes at once.
async fn accept(door: Door, tunnels: mpsc::Sender<Tunnel>) {
    let room = Arc::new(Semaphore::new(HANDSHAKES));
    while let Ok((socket, _)) = door.listener.accept().await {
        let (options, tunnels) = (door.options.clone(), tunnels.clone());
        let Ok(permit) = Arc::clone(&room).acquire_owned().await else {
            return;
        };
        tokio::spawn(async move {
            match tunnel::accept(socket, &options).await {
                // The bench ends before its last tunnels do.
                Ok(tunnel) => drop(tunnels.send(tunnel).await),
                Err(error) => eprintln!("note: a handshake failed: {error}"),
            }
            drop(permit);
        });
    }
}

/// A process of agents; it ends with this value.
struct Agents(Child);

impl Agents {
    fn start(told: &str) -> anyhow::Result<Self> {
        let child = Command::new(std::env::current_exe()?)
            .arg("tunnel")
            .env(AGENTS, told)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn();
        child.map(Self).context("agents did not start")
    }
}

impl Drop for Agents {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The work of a process of agents, if this is one: dials, then holds its tunnels until its parent ends.
pub(super) fn agents() -> Option<anyhow::Result<()>> {
    let told = std::env::var(AGENTS).ok()?;
    Some(dial(&told))
}

fn dial(told: &str) -> anyhow::Result<()> {
    let mut words = told.splitn(4, ' ');
    let mut word = || words.next().context("told too little");
    let (address, pin): (SocketAddr, PublicKey) = (word()?.parse()?, word()?.parse()?);
    let process: usize = word()?.parse()?;
    let key = Arc::new(SecretKey::load(word()?.as_ref())?);
    let agents = Place::start("agents")?;
    let held = agents.run(async move {
        let dials = (0..TUNNELS / PROCESSES).map(|number| {
            let (url, name) = (format!("wss://{address}"), format!("cluster-{process}-{number}"));
            let options = ConnectOptions::new(url, vec![pin], name, Arc::clone(&key), 1);
            async move { tunnel::connect(&options).await }
        });
        let tunnels: Vec<_> = futures_util::stream::iter(dials)
            .buffer_unordered(DIALS)
            .collect()
            .await;
        let failed = tunnels.iter().filter(|tunnel| tunnel.is_err()).count();
        ensure!(failed == 0, "{failed} dials failed");
        Ok(tunnels)
    })?;
    // Standard input ends with the parent.
    std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink())?;
    drop(held);
    Ok(())
}
