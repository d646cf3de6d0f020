//! An explanation from a clone: what the push of a revision would decide.

use anyhow::Context as _;
use render::explain::{Context, explain};
use render::load::LoadMemo;
use render::{ClusterName, Published, UnitKey};
use serde_json::Value;

use super::{ExplainOptions, hint};
use crate::cli::progress::Progress;
use crate::cli::rooms::Rooms;
use crate::cli::{output, plan};
use crate::hub::load_revision;

/// Explains a unit at a revision, on what the hub has rendered; `None` where there is no such unit, which is
/// said.
pub(super) fn explanation(
    options: &ExplainOptions,
    revision: &str,
    namespace: &str,
    name: &str,
) -> anyhow::Result<Option<Value>> {
    let unit = UnitKey::new(namespace, name)?;
    let cluster = options.cluster.as_deref().map(ClusterName::parse).transpose()?;
    let source = options.clone.open()?;
    let revision = source
        .resolve(revision)
        .with_context(|| format!("failed to find {revision}"))?;
    let progress = Progress::begin(format!("reading {revision}"));
    let (fleet, _) = load_revision(&source, &revision, &mut LoadMemo::default())
        .with_context(|| format!("failed to read {revision}"))?;
    // No hub is asked: what clusters have is known by a record alone.
    let rooms = Rooms::new(&options.rooms, None);
    let reports = rooms.of(&fleet)?;
    // A plan as the hub makes it says what would be held back.
    let findings = plan::findings(&options.clone, &revision, &rooms)?;
    let rendered = options.clone.rendered(&source)?;
    let published = rendered.map(|rendered| rendered.published);
    let published = published.unwrap_or_else(Published::default);
    drop(progress);
    if let Some(unknown) = cluster.as_ref().filter(|name| !fleet.clusters.contains_key(*name)) {
        output::tell(&format!(
            "error: managedclusters \"{unknown}\" not found at {revision}\n"
        ));
        let names: Vec<_> = fleet.clusters.keys().map(ToString::to_string).collect();
        super::hint(unknown.as_str(), &names);
        return Ok(None);
    }
    let looking = Context {
        fleet: &fleet,
        published: &published,
        findings: &findings,
        reports: &reports,
        now: rooms.now(),
    };
    let Some(mut explained) = explain(&looking, &unit, cluster.as_ref()) else {
        output::tell(&format!("error: subscriptions \"{unit}\" not found at {revision}\n"));
        let names: Vec<_> = fleet.units.keys().map(ToString::to_string).collect();
        hint(&unit.to_string(), &names);
        return Ok(None);
    };
    let own = findings
        .into_iter()
        .filter(|finding| finding.unit.as_ref() == Some(&unit));
    explained.findings.extend(own);
    explained.findings.sort();
    explained.findings.dedup();
    let mut value = serde_json::to_value(explained)?;
    value["revision"] = Value::from(format!("sha1:{revision}"));
    Ok(Some(value))
}
