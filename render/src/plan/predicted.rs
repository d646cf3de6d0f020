//! What changes inside the releases of charts, as far as it is predicted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Serialize;

use super::{ObjectChange, Part, changes};
use crate::chart::{PredictedObject, Preview, PreviewRequest, Previews};
use crate::describe::{Content, DescribedObject, Description, is_chart};
use crate::name::{ClusterName, ObjectKey};

/// Why nothing is predicted for a cluster that said nothing of itself.
pub const CAPABILITIES_UNKNOWN: &str = "its version and kinds are not known";

/// What changes inside a release, on clusters where the same does.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PredictedChange {
    /// Where, sorted; not empty.
    pub clusters: Vec<ClusterName>,
    /// The HelmChart.
    pub chart: ObjectKey,
    /// Its objects that are predicted to change, sorted; hooks are none.
    pub objects: Vec<ObjectChange>,
    /// Why nothing is predicted; empty where it is.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub not_predicted: String,
}

/// A chart before and after, each where it is there.
type Requests = BTreeMap<ObjectKey, (Option<PreviewRequest>, Option<PreviewRequest>)>;

/// Whether a part changes a chart.
pub fn changes_charts(part: &Part) -> bool {
    part.objects.iter().any(|change| is_chart(&change.object))
}

/// The predictions that are not known yet and would tell what a part changes.
pub fn unpredicted(part: &Part, previews: &Previews) -> Vec<PreviewRequest> {
    let wanted = part
        .clusters
        .iter()
        .flat_map(|cluster| requests(part, cluster, previews));
    let wanted = wanted.flat_map(|(_, (before, after))| before.into_iter().chain(after));
    wanted
        .filter(|request| !previews.known.contains_key(&request.key()))
        .collect()
}

/// What a part is predicted to change inside its charts' releases.
pub fn predicted_changes(part: &Part, previews: &Previews) -> Vec<PredictedChange> {
    let mut told: Vec<PredictedChange> = Vec::new();
    let mut tell = |cluster: &ClusterName, chart: ObjectKey, outcome: Result<Vec<ObjectChange>, String>| {
        let (objects, not_predicted) = match outcome {
            Ok(objects) => (objects, String::new()),
            Err(why) => (Vec::new(), why),
        };
        let alike = |known: &&mut PredictedChange| {
            known.chart == chart && known.objects == objects && known.not_predicted == not_predicted
        };
        match told.iter_mut().find(alike) {
            Some(known) => known.clusters.push(cluster.clone()),
            None => told.push(PredictedChange {
                clusters: vec![cluster.clone()],
                chart,
                objects,
                not_predicted,
            }),
        }
    };
    for cluster in &part.clusters {
        if !previews.capabilities.contains_key(cluster) {
            let charts = part.objects.iter().filter(|change| is_chart(&change.object));
            charts.for_each(|change| tell(cluster, change.object.clone(), Err(CAPABILITIES_UNKNOWN.to_owned())));
        }
        for (chart, (before, after)) in requests(part, cluster, previews) {
            let objects = |request: &Option<PreviewRequest>| match request {
                Some(request) => objects(previews.known.get(&request.key()).map(AsRef::as_ref)),
                None => Ok(None),
            };
            let changed = objects(&before).and_then(|before| Ok((before, objects(&after)?)));
            tell(
                cluster,
                chart,
                changed.map(|(before, after)| changes(before.as_ref(), after.as_ref())),
            );
        }
    }
    told
}

/// The charts of a part that differ, with what would predict them on a cluster.
fn requests(part: &Part, cluster: &ClusterName, previews: &Previews) -> Requests {
    let changed: BTreeSet<_> = part.objects.iter().map(|change| &change.object).collect();
    let of = |content: &Option<Arc<Description>>| {
        let content = content.as_ref();
        content
            .map(|content| previews.requests(content, cluster))
            .unwrap_or_default()
    };
    let mut found = Requests::new();
    for (chart, request) in of(&part.before)
        .into_iter()
        .filter(|(chart, _)| changed.contains(chart))
    {
        found.entry(chart).or_default().0 = Some(request);
    }
    for (chart, request) in of(&part.after).into_iter().filter(|(chart, _)| changed.contains(chart)) {
        found.entry(chart).or_default().1 = Some(request);
    }
    found
}

fn objects(preview: Option<&Preview>) -> Result<Option<Description>, String> {
    match preview {
        Some(preview) => Ok(described(preview.objects()?)),
        None => Err("it took too long".to_owned()),
    }
}

/// As a content, which can be compared; of two objects of one key the first.
fn described<'p>(stay: impl Iterator<Item = &'p PredictedObject>) -> Option<Description> {
    let mut seen = BTreeSet::new();
    let stay = stay.filter(|object| seen.insert(&object.key));
    let described = stay.map(|object| DescribedObject {
        key: object.key.clone(),
        content: Content::Plain {
            object: Arc::clone(&object.value),
        },
        provenance: Vec::new(),
    });
    Description::new(described.collect()).ok()
}
