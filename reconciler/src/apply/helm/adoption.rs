//! Objects that are there before the release they belong to: whether they are nobody's, and may become its.
//!
//! Helm's own `--take-ownership` asks nobody. It is used only where each object that stands in the way carries no
//! sign of another owner.

use kube::api::DynamicObject;
use kube::core::ObjectMeta;
use render::model::ANNOTATION_UNIT;

use super::manifest;
use super::objects::KnownKinds;
use super::run::Means;
use super::wanted::Place;
use crate::apply::request::{RequestError, bounded};

/// Helm's words for an object that is there and not the release's.
pub(super) const REFUSED: &str = "cannot be imported into the current release";

/// Annotation of Helm: the release that an object belongs to.
const RELEASE: &str = "meta.helm.sh/release-name";

/// Labels and annotations by which tools say that an object is theirs.
const SIGNS: [&str; 7] = [
    "app.kubernetes.io/managed-by",
    RELEASE,
    ANNOTATION_UNIT,
    "kustomize.toolkit.fluxcd.io/name",
    "helm.toolkit.fluxcd.io/name",
    "argocd.argoproj.io/tracking-id",
    "apps.clusternet.io/owned-by-description",
];

/// Why nobody can say whose they are.
#[derive(Debug, thiserror::Error)]
pub(super) enum AdoptionError {
    /// The chart's objects cannot be read.
    #[error("the chart's objects are not understood: {0}")]
    Unreadable(String),
    /// The API server did not say.
    #[error("failed to look at them")]
    Look(#[source] RequestError),
}

/// The first object of the chart that is there and somebody else's, and whose; `None` where all are nobody's or
/// the release's own.
pub(super) async fn owner(
    means: &Means,
    kinds: &KnownKinds,
    place: &Place,
    templates: &str,
) -> Result<Option<String>, AdoptionError> {
    let objects = manifest::read(templates).map_err(AdoptionError::Unreadable)?;
    let kinds = kinds
        .with(&means.client, |_| false)
        .await
        .map_err(AdoptionError::Look)?;
    for object in &objects {
        let kind = kinds.find(&object.api_version, &object.key.kind);
        let (Some(kind), Some(key)) = (kind, object.key_in(&kinds, place)) else {
            continue;
        };
        let live: Option<DynamicObject> = bounded(kind.api(&means.client, &key.namespace).get_opt(&key.name))
            .await
            .map_err(AdoptionError::Look)?;
        if let Some(sign) = live.and_then(|live| sign(&live.metadata, place)) {
            return Ok(Some(format!("{key} is there already, and {sign}")));
        }
    }
    Ok(None)
}

/// What says that an object is somebody else's.
fn sign(metadata: &ObjectMeta, place: &Place) -> Option<String> {
    let marks = || metadata.labels.iter().chain(&metadata.annotations).flatten();
    let is_ours = marks().any(|(name, value)| name == RELEASE && *value == place.release);
    if is_ours {
        return None;
    }
    if let Some(owner) = metadata.owner_references.iter().flatten().next() {
        return Some(format!("{} {} owns it", owner.kind, owner.name));
    }
    let mark = marks().find(|(name, _)| SIGNS.contains(&name.as_str()));
    mark.map(|(name, value)| format!("{name}: {value} says whose it is"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(metadata: serde_json::Value, is_theirs: bool) {
        let place = Place {
            namespace: "shop".to_owned(),
            release: "web".to_owned(),
        };
        let metadata = serde_json::from_value(metadata).expect("it is metadata");
        assert_eq!(sign(&metadata, &place).is_some(), is_theirs);
    }

    #[test]
    fn only_what_carries_no_sign_of_another_is_nobodys() {
        check(json!({"name": "a", "labels": {"app": "web"}}), false);
        check(
            json!({"annotations": {RELEASE: "web"}, "labels": {"app.kubernetes.io/managed-by": "Helm"}}),
            false,
        );
        check(json!({"annotations": {RELEASE: "other"}}), true);
        check(json!({"annotations": {ANNOTATION_UNIT: "shop/web"}}), true);
        check(json!({"labels": {"app.kubernetes.io/managed-by": "Helm"}}), true);
        check(
            json!({"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}]}),
            true,
        );
    }
}
