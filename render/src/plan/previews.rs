//! What predictions of charts say about a variant: whom it must not reach, and what people are told.
//!
//! A cluster whose chart helm refuses keeps its whole last good content, and so does one whose prediction is on its way.
//! What cannot be predicted at all is said, and holds nothing: helm at the agent has the last word.

use std::collections::{BTreeMap, BTreeSet};

use crate::chart::{Preview, PreviewMode, PreviewRequest};
use crate::describe::{Description, is_chart};
use crate::digest::Digest;
use crate::finding::Finding;
use crate::fleet::Unit;
use crate::name::{ClusterName, ObjectKey, UnitKey};
use crate::plan::Snapshot;

/// What became of it.
#[derive(Debug, Default)]
pub(super) struct Judged {
    /// Clusters that keep what they have.
    pub(super) held: BTreeSet<ClusterName>,
    pub(super) findings: Vec<Finding>,
    /// Predictions that are still to be made.
    pub(super) pending: Vec<PreviewRequest>,
}

/// One thing to say of a chart, for the clusters that it is about.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Saying {
    Fails(String),
    Unsteady(Vec<String>),
    Unknown(String),
}

/// Judges a variant for its clusters.
pub(super) fn judge<'a>(
    snapshot: &Snapshot,
    (key, unit): (&UnitKey, &Unit),
    content: &Description,
    clusters: impl Iterator<Item = &'a ClusterName>,
) -> Judged {
    let mut judged = Judged::default();
    let previews = &snapshot.chart_previews;
    let charts: Vec<_> = content.objects.iter().filter(|object| is_chart(&object.key)).collect();
    if previews.mode != PreviewMode::On || charts.is_empty() {
        return judged;
    }
    let previous = snapshot.previous.units.get(key);
    let mut sayings: BTreeMap<(ObjectKey, Saying), Vec<ClusterName>> = BTreeMap::new();
    for cluster in clusters {
        let has_it = previous
            .and_then(|unit| unit.entry(cluster))
            .is_some_and(|(_, variant)| variant.digest == content.digest);
        let mut say = |chart: &ObjectKey, saying| {
            let about = sayings.entry((chart.clone(), saying)).or_default();
            about.push(cluster.clone());
        };
        if !previews.capabilities.contains_key(cluster) {
            let why = "the cluster has not said its version and kinds yet";
            charts
                .iter()
                .for_each(|chart| say(&chart.key, Saying::Unknown(why.to_owned())));
        }
        for (chart, request) in previews.requests(content, cluster) {
            match previews.known.get(&request.key()).map(AsRef::as_ref) {
                Some(Preview::Predicted { unsteady, .. }) if unsteady.is_empty() => {}
                Some(Preview::Predicted { unsteady, .. }) => say(&chart, Saying::Unsteady(unsteady.clone())),
                Some(Preview::Unknown { why }) => say(&chart, Saying::Unknown(why.clone())),
                Some(Preview::Failed { words }) => {
                    say(&chart, Saying::Fails(words.clone()));
                    judged.held.insert(cluster.clone());
                }
                None => {
                    judged.pending.push(request);
                    // What it has already is not made worse by having it.
                    if !has_it {
                        judged.held.insert(cluster.clone());
                    }
                }
            }
        }
    }
    let told = sayings.into_iter();
    judged.findings = told
        .map(|((chart, saying), clusters)| finding((key, unit), &chart, &saying, &clusters))
        .collect();
    judged
}

fn finding((key, unit): (&UnitKey, &Unit), chart: &ObjectKey, saying: &Saying, clusters: &[ClusterName]) -> Finding {
    let also = match clusters.len() {
        0 | 1 => String::new(),
        2 => ", also on 1 other cluster".to_owned(),
        count => format!(", also on {} other clusters", count - 1),
    };
    let name = &chart.name;
    let finding = match saying {
        Saying::Fails(words) => Finding::error("ChartFails", format!("helm refuses the chart {name}: {words}{also}"))
            .hint("correct the chart or its values; `helm template` with the same values says the same"),
        Saying::Unsteady(templates) => {
            let templates = templates.join(", ");
            let message = format!("the chart {name} prints something else each time in {templates}{also}");
            Finding::warning("ChartUnsteady", message).hint(
                "each change of chart or values makes it anew: name a Secret that is there, or keep the old value by lookup",
            )
        }
        Saying::Unknown(why) => {
            let message = format!("what the chart {name} brings is not predicted: {why}{also}");
            Finding::info("ChartNotPredicted", message)
        }
    };
    let is_it = |key: &ObjectKey| is_chart(key) && (&key.namespace, &key.name) == (&chart.namespace, &chart.name);
    let finding = match unit.base.objects.iter().find(|object| is_it(&object.key)) {
        Some(object) => finding.at(object.file.as_ref(), object.line),
        None => finding,
    };
    finding.unit(key).clusters(clusters)
}

/// Over all that is predicted; of a fleet without charts nobody looks at it.
pub(super) fn digest(snapshot: &Snapshot) -> Digest {
    if has_charts(snapshot) {
        snapshot.chart_previews.digest()
    } else {
        Digest::of_bytes(&[])
    }
}

fn has_charts(snapshot: &Snapshot) -> bool {
    let objects = snapshot.fleet.units.values().flat_map(|unit| &unit.base.objects);
    objects.into_iter().any(|object| is_chart(&object.key))
}

/// Says once that nobody predicts charts, where there are any.
pub(super) fn missing_helm(snapshot: &Snapshot) -> Option<Finding> {
    let is_missing = snapshot.chart_previews.mode == PreviewMode::NoHelm && has_charts(snapshot);
    is_missing.then(|| {
        let message = "the hub has no helm, so what charts bring is not predicted";
        Finding::warning("HelmMissing", message).hint("install helm 3 where the hub finds it, or name it with --helm")
    })
}
