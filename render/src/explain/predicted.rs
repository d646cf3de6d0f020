//! What the charts of a unit are predicted to bring to each cluster.

use serde::Serialize;

use super::Explanation;
use crate::chart::{PredictedObject, Preview, Previews};
use crate::describe::is_chart;
use crate::fleet::Fleet;
use crate::localize;
use crate::name::{ClusterName, ObjectKey};
use crate::schedule::Divided;

/// What a chart is predicted to bring, on clusters where it is the same.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PredictedChart {
    /// The HelmChart.
    pub chart: ObjectKey,
    /// Where, sorted.
    pub clusters: Vec<ClusterName>,
    /// Its objects with their templates, sorted by key; hooks are none.
    pub objects: Vec<ChartObject>,
    /// Why nothing is predicted; empty where it is.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub not_predicted: String,
}

/// An object inside a release.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ChartObject {
    /// Which.
    pub object: ObjectKey,
    /// The template that it is from.
    pub template: String,
}

/// What the charts of an explained unit are predicted to bring, as far as predictions are known; in the order of its
/// variants. A variant whose overrides do not fit brings nothing.
pub fn predicted(fleet: &Fleet, explanation: &Explanation, previews: &Previews) -> Vec<PredictedChart> {
    let mut told: Vec<PredictedChart> = Vec::new();
    let Some(unit) = fleet.units.get(&explanation.unit) else {
        return told;
    };
    if !unit.base.objects.iter().any(|object| is_chart(&object.key)) {
        return told;
    }
    let index = localize::Index::new(fleet);
    let touching = index.touching(&unit.base);
    let divided = Divided::of(&unit.subscription);
    for variant in &explanation.variants {
        // All of its clusters meet the same overrides.
        let first = variant.clusters.first().and_then(|name| fleet.clusters.get(name));
        let overrides = first.map(|cluster| touching.for_cluster(cluster)).unwrap_or_default();
        let Ok(content) = localize::localize(&unit.base, &overrides, &divided) else {
            continue;
        };
        for cluster in &variant.clusters {
            for (chart, request) in previews.requests(&content, cluster) {
                let preview = previews.known.get(&request.key()).map(AsRef::as_ref);
                let (objects, not_predicted) = match objects(preview) {
                    Ok(objects) => (objects, String::new()),
                    Err(why) => (Vec::new(), why),
                };
                let alike = |known: &&mut PredictedChart| {
                    known.chart == chart && known.objects == objects && known.not_predicted == not_predicted
                };
                match told.iter_mut().find(alike) {
                    Some(known) => known.clusters.push(cluster.clone()),
                    None => told.push(PredictedChart {
                        chart,
                        clusters: vec![cluster.clone()],
                        objects,
                        not_predicted,
                    }),
                }
            }
        }
    }
    told.iter_mut().for_each(|chart| chart.clusters.sort_unstable());
    told
}

fn objects(preview: Option<&Preview>) -> Result<Vec<ChartObject>, String> {
    let object = |object: &PredictedObject| ChartObject {
        object: object.key.clone(),
        template: object.template.clone(),
    };
    let Some(preview) = preview else {
        return Err("it is not predicted yet".to_owned());
    };
    Ok(preview.objects()?.map(object).collect())
}
