//! What changes inside releases of charts: `helm template` here, for clusters as the hub knows them.
//!
//! In: the parts of a plan with charts. Out: what is predicted to change, unit by unit, or why it is not. It holds
//! nothing: that is the hub's matter, which predicts for itself.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::{StreamExt as _, stream};
use render::chart::{Capabilities, PreviewMode, Previews};
use render::plan::{CAPABILITIES_UNKNOWN, Part, PredictedChange, predicted_changes, unpredicted};
use render::{ClusterName, UnitKey};
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use super::dependants::CLUSTERS_AT_ONCE;
use crate::apply::HelmOptions;
use crate::cli::client::{GROUP, Questions, encoded};
use crate::hub::Predictor;
use crate::limits::{PLAN_PREDICTED_CLUSTERS_MAX, PLAN_PREVIEWS_MAX, PLAN_PREVIEWS_TIMEOUT};

/// What is predicted to change, by unit.
pub(super) type ByUnit = BTreeMap<UnitKey, Vec<PredictedChange>>;

/// Predicts what changes.
pub(super) async fn ask(hub: &Questions<'_>, helm: PathBuf, parts: &[Part]) -> ByUnit {
    let clusters: BTreeSet<&ClusterName> = parts.iter().flat_map(|part| &part.clusters).collect();
    let answers = clusters.into_iter().enumerate().map(|(at, cluster)| async move {
        let said = match at < PLAN_PREDICTED_CLUSTERS_MAX {
            true => capabilities_of(hub, cluster).await,
            false => Err(format!(
                "only the first {PLAN_PREDICTED_CLUSTERS_MAX} clusters are looked at"
            )),
        };
        (cluster.clone(), said)
    });
    let answers: Vec<_> = stream::iter(answers).buffered(CLUSTERS_AT_ONCE).collect().await;
    let (mut capabilities, mut trouble) = (BTreeMap::new(), BTreeMap::new());
    for (cluster, said) in answers {
        match said {
            Ok(said) => drop(capabilities.insert(cluster, Arc::new(said))),
            Err(why) => drop(trouble.insert(cluster, why)),
        }
    }
    let previews = made(
        HelmOptions {
            program: helm,
            folder: None,
        },
        capabilities,
        parts,
    )
    .await;
    let mut found = ByUnit::new();
    for part in parts {
        let changes = predicted_changes(part, &previews).into_iter();
        let changes = changes.map(|change| explained(change, &previews, &trouble));
        found.entry(part.unit.clone()).or_default().extend(changes);
    }
    found
}

/// What a cluster says of itself, as the hub heard it.
async fn capabilities_of(hub: &Questions<'_>, cluster: &ClusterName) -> Result<Capabilities, String> {
    let path = format!("{GROUP}/managedclusters/{}/capabilities", encoded(cluster.as_str()));
    let said = hub.value(&path).await?;
    let version = said["kubernetesVersion"].as_str().unwrap_or_default().to_owned();
    let served = said["apiVersions"].as_array().into_iter().flatten();
    let served = served.filter_map(Value::as_str).map(str::to_owned).collect();
    Ok(Capabilities::new(version, served))
}

/// The predictions, as many as come in time.
async fn made(helm: HelmOptions, capabilities: BTreeMap<ClusterName, Arc<Capabilities>>, parts: &[Part]) -> Previews {
    let predictor = Predictor::new(helm);
    let deadline = Instant::now() + PLAN_PREVIEWS_TIMEOUT;
    let known = predictor.previews(capabilities.clone());
    let wanted = parts.iter().flat_map(|part| unpredicted(part, &known));
    let wanted: BTreeMap<_, _> = wanted.map(|request| (request.key(), request)).collect();
    for (key, request) in wanted.iter().take(PLAN_PREVIEWS_MAX) {
        if timeout_at(deadline, predictor.make(*key, request)).await.is_err() {
            break;
        }
    }
    predictor.previews(capabilities)
}

/// With why nothing is predicted, where more is known of that.
fn explained(change: PredictedChange, previews: &Previews, trouble: &BTreeMap<ClusterName, String>) -> PredictedChange {
    let is_unknown = change.not_predicted == CAPABILITIES_UNKNOWN;
    let why = change.clusters.first().and_then(|cluster| trouble.get(cluster));
    let why = match why {
        Some(why) if is_unknown => why.clone(),
        _ if previews.mode == PreviewMode::NoHelm && !change.not_predicted.is_empty() => {
            "there is no helm; install it, or name it with --helm".to_owned()
        }
        _ => return change,
    };
    PredictedChange {
        not_predicted: why,
        ..change
    }
}
