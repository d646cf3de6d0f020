//! One push, made by the demo itself and followed room by room. Every time that is shown was measured: by hub
//! and agents as they logged it, and by a watch at each cluster's API server.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{WatchEvent, WatchParams};
use render::ClusterName;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::folder::Folder;
use super::follow::{has_settled, lists, sequence, why};
use super::git::git;
use super::rooms::{Room, Rooms};
use super::world::View;
use super::{repository, text};

/// How often the hub's state is looked at.
const LOOK: Duration = Duration::from_millis(2);

/// How long everything may take to be where it should be, on a slow and busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// The key of the ConfigMap that is changed.
const KEY: &str = "greeting";

/// A time per cluster, since the push began.
pub(super) type Times = BTreeMap<ClusterName, Duration>;

/// Where the time went.
pub(super) struct Journey {
    pub(super) commit: String,
    pub(super) sequence: u64,
    pub(super) pushed: Duration,
    pub(super) source: Option<Duration>,
    pub(super) plan: Option<Span>,
    pub(super) publish: Option<Span>,
    pub(super) release: Option<Span>,
    pub(super) told: Times,
    pub(super) took: Times,
    pub(super) applied: Times,
    pub(super) seen: Times,
    pub(super) reported: Times,
}

/// When something was done, and how long it took.
#[derive(Clone, Copy)]
pub(super) struct Span {
    pub(super) done: Duration,
    pub(super) took: Duration,
}

/// Waits until what the repository says to begin with is in every cluster.
pub(super) async fn first(view: &View, _rooms: &Rooms) -> anyhow::Result<()> {
    let everywhere = async {
        while !is_everywhere(view) {
            sleep(LOOK).await;
        }
    };
    if timeout(LIMIT, everywhere).await.is_err() {
        bail!("the fleet did not start within {LIMIT:?}\n{}", missing(view));
    }
    Ok(())
}

fn is_everywhere(view: &View) -> bool {
    let state = view.hub.state();
    let lists = lists(&state);
    state.is_at_rest()
        && lists.len() >= view.clusters.len()
        && lists.iter().all(|(name, list)| has_settled(&state, name, list))
}

/// Which clusters lack what was released, and why.
fn missing(view: &View) -> String {
    let state = view.hub.state();
    let lists = lists(&state);
    let has = |name: &ClusterName| {
        lists
            .iter()
            .any(|(told, list)| told == name && has_settled(&state, name, list))
    };
    let lacking = view.clusters.iter().filter(|cluster| !has(&cluster.name));
    let lines = lacking.map(|cluster| format!("  {} lacks it{}", cluster.name, why(&state, &cluster.name)));
    let findings = state
        .findings
        .iter()
        .filter(|finding| finding.is_error())
        .map(|finding| format!("  {finding}"));
    lines.chain(findings).collect::<Vec<_>>().join("\n")
}

/// Changes, pushes, waits, tells.
pub(super) async fn run(folder: &Folder, rooms: &Rooms, view: &View) -> anyhow::Result<ExitCode> {
    let begun = view.begun.elapsed();
    let work = folder.work();
    if folder.is_named() {
        git(&work, &["pull", "--quiet", "--ff-only"]).await?;
    }
    let value = format!("Hello again, {}.", git(&work, &["rev-list", "--count", "HEAD"]).await?);
    change(&work.join(repository::FILE), &value)?;
    git(&work, &["commit", "--quiet", "--all", "--message", "Greet again"]).await?;
    let commit = git(&work, &["rev-parse", "HEAD"]).await?;
    let mut watches = watch_all(view, &value).await?;
    let start = Instant::now();
    git(&work, &["push", "--quiet", "origin", "main"]).await?;
    let pushed = start.elapsed();
    let (mut seen, mut reported) = (Times::new(), Times::new());
    let arrived = async {
        tokio::join!(
            async {
                while let Some(found) = watches.join_next().await {
                    if let Ok((name, at)) = found {
                        seen.insert(name, at.duration_since(start));
                    }
                }
            },
            report_all(view, &commit, start, &mut reported),
        );
    };
    if timeout(LIMIT, arrived).await.is_err() {
        let names: Vec<_> = view.clusters.iter().map(|cluster| &cluster.name).collect();
        eprintln!("{}", text::not_arrived(&value, &names, &seen, &missing(view)));
        return Ok(ExitCode::FAILURE);
    }
    let journey = journey(rooms, &view.hub.state(), commit, start, pushed, (seen, reported));
    verify(view, &value).await?;
    print!("{}", text::journey(&journey, view, begun, &value));
    Ok(ExitCode::SUCCESS)
}

/// Another greeting in the manifest.
fn change(file: &std::path::Path, value: &str) -> anyhow::Result<()> {
    let text = std::fs::read_to_string(file).with_context(|| format!("failed to read {}", file.display()))?;
    let is_it = |line: &&str| line.trim_start().starts_with(&format!("{KEY}:"));
    let Some(line) = text.lines().find(is_it) else {
        bail!(
            "{} has no `{KEY}:` any more, which --once changes; put it back, or use another --folder",
            file.display()
        );
    };
    let indent = &line[..line.len() - line.trim_start().len()];
    let text = text.replacen(line, &format!("{indent}{KEY}: {value}"), 1);
    std::fs::write(file, text).with_context(|| format!("failed to write {}", file.display()))
}

/// Watches of the changed object, each of which ends when it shows the new value.
async fn watch_all(view: &View, value: &str) -> anyhow::Result<JoinSet<(ClusterName, Instant)>> {
    let mut watches = JoinSet::new();
    for cluster in &view.clusters {
        let api: Api<ConfigMap> = Api::namespaced(cluster.client.clone(), "default");
        let (name, value) = (cluster.name.clone(), value.to_owned());
        let there = api
            .get("hello")
            .await
            .with_context(|| format!("cluster {name} has no ConfigMap hello"))?;
        let version = there.metadata.resource_version.unwrap_or_default();
        watches.spawn(async move { (name, shown(&api, version, &value).await) });
    }
    Ok(watches)
}

/// When a watch first showed the value.
async fn shown(api: &Api<ConfigMap>, mut version: String, value: &str) -> Instant {
    loop {
        let only = WatchParams::default().fields("metadata.name=hello");
        if let Ok(events) = api.watch(&only, &version).await {
            let mut events = std::pin::pin!(events);
            while let Some(Ok(event)) = events.next().await {
                if let WatchEvent::Added(object) | WatchEvent::Modified(object) = event {
                    if greeting(&object) == Some(value) {
                        return Instant::now();
                    }
                    version = object.metadata.resource_version.unwrap_or(version);
                }
            }
        }
        sleep(LOOK).await;
    }
}

fn greeting(object: &ConfigMap) -> Option<&str> {
    object.data.as_ref()?.get(KEY).map(String::as_str)
}

/// Notes when each cluster's report of what was released came back to the hub.
async fn report_all(view: &View, commit: &str, start: Instant, reported: &mut Times) {
    loop {
        let state = view.hub.state();
        let accepted = state
            .accepted
            .as_ref()
            .is_some_and(|accepted| accepted.as_str() == commit);
        if accepted && state.is_at_rest() {
            for (name, list) in lists(&state) {
                if !reported.contains_key(&name) && has_settled(&state, &name, &list) {
                    reported.insert(name, start.elapsed());
                }
            }
            if reported.len() >= view.clusters.len() {
                return;
            }
        }
        sleep(LOOK).await;
    }
}

/// Every cluster is asked by itself, beside what watches and reports say.
async fn verify(view: &View, value: &str) -> anyhow::Result<()> {
    for cluster in &view.clusters {
        let api: Api<ConfigMap> = Api::namespaced(cluster.client.clone(), "default");
        let found = api.get("hello").await?;
        if greeting(&found) != Some(value) {
            bail!("cluster {} does not show {value:?}", cluster.name);
        }
    }
    Ok(())
}

/// Whatever was measured later than what follows from it was there by then: a watch and a log are ways to hear of
/// a change, and either may be late or, of a log, left out.
fn in_order(seen: &mut Times, applied: &mut Times, reported: &Times) {
    for (name, at) in reported {
        let latest = applied.entry(name.clone()).or_insert(*at);
        *latest = (*latest).min(*at);
    }
    for (name, at) in seen {
        *at = applied.get(name).map_or(*at, |applied| (*at).min(*applied));
    }
}

fn journey(
    rooms: &Rooms,
    state: &reconciler::hub::engine::State,
    commit: String,
    start: Instant,
    pushed: Duration,
    (mut seen, reported): (Times, Times),
) -> Journey {
    let steps = rooms.since(start, |_| true);
    let since = |at: Instant| at.duration_since(start);
    let of = |room| steps.iter().filter(move |step| step.room == room);
    let source = of(Room::Source).find(|step| step.fields.revision.as_deref() == Some(&commit));
    let span = |step: &super::rooms::Step| Span {
        done: since(step.at),
        took: Duration::from_millis(step.fields.elapsed_ms.unwrap_or_default()),
    };
    let plan = of(Room::Plan).find(|step| step.fields.revision.as_deref() == Some(&commit));
    let write = |ending: &str| {
        let is_it = |step: &&super::rooms::Step| {
            step.fields
                .component
                .as_deref()
                .is_some_and(|name| name.ends_with(ending))
        };
        of(Room::Write).find(is_it).map(span)
    };
    let sequence = sequence(state);
    let by_cluster = |room| -> Times {
        let steps = of(room).filter(|step| step.fields.sequence.is_none_or(|number| number == sequence));
        let named = steps.filter_map(|step| {
            let name = ClusterName::parse(step.fields.cluster.clone()?).ok()?;
            Some((name, since(step.at)))
        });
        named.collect()
    };
    let mut applied = by_cluster(Room::Applied);
    in_order(&mut seen, &mut applied, &reported);
    Journey {
        sequence,
        pushed,
        source: source.map(|step| since(step.at)),
        plan: plan.map(span),
        publish: write("rendered"),
        release: write("released"),
        told: by_cluster(Room::Told),
        took: by_cluster(Room::Took),
        applied,
        commit,
        seen,
        reported,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(each: &[(&str, u64)]) -> Times {
        let time = |(name, at): &(&str, u64)| (ClusterName::parse(*name).unwrap(), Duration::from_millis(*at));
        each.iter().map(time).collect()
    }

    #[test]
    fn every_cluster_has_its_times_and_none_is_later_than_what_follows_from_it() {
        let mut seen = times(&[("lima", 50), ("oslo", 90)]);
        let mut applied = times(&[("oslo", 80)]);
        in_order(&mut seen, &mut applied, &times(&[("lima", 60), ("oslo", 85)]));
        assert_eq!(applied, times(&[("lima", 60), ("oslo", 80)]));
        assert_eq!(seen, times(&[("lima", 50), ("oslo", 80)]));
    }
}
