//! How long a link that swallows everything goes unnoticed, in real time.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use tokio::time::timeout;

use super::ends::{ECHO, Ends, stream};
use super::flow;
use super::link::Link;
use super::place::Place;
use crate::bench::Figures;

/// Requests that go well before the link falls silent.
const REQUESTS: usize = 20;
/// Twice what it may take; whoever waits longer waits for ever.
const LIMIT: Duration = Duration::from_secs(50);

pub(super) fn run(figures: &mut Figures) -> anyhow::Result<()> {
    let (hub, agent, router) = (Place::start("hub")?, Place::start("agent")?, Place::start("router")?);
    let link = Link::start(&router)?;
    let ends = Ends::start(&hub, &agent, |hub| link.to(&router, hub))?;
    let opener = ends.opener.clone();
    hub.run(async move { flow::ask(&mut stream(&opener, ECHO).await?, REQUESTS).await })?;
    link.fall_silent();
    let silent = Instant::now();
    let noticed = |session: tunnel::Session| async move {
        let closed = timeout(LIMIT, session.closed()).await;
        closed.context("nobody noticed")?;
        Ok(silent.elapsed())
    };
    let (at_hub, at_agent) = (hub.begin(noticed(ends.hub)), agent.begin(noticed(ends.agent)));
    let slower = at_hub()?.max(at_agent()?);
    figures.print("blackhole_noticed", slower.as_secs_f64(), "s")
}
