//! The definitions in a chart's `crds/`, put in before helm runs where the HelmChart asks for it. Helm itself
//! only ever makes those that are not there.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::{Api, Patch, PatchParams};
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::manifest;
use super::run::RunError;
use crate::apply::request::{RequestError, bounded};
use crate::limits::CRD_ESTABLISHED_TIMEOUT;

/// Field manager of definitions: Helm's own name for itself, so that who looks finds one.
const MANAGER: &str = "helm";

/// Why definitions were not put in.
#[derive(Debug, thiserror::Error)]
pub(super) enum DefinitionsError {
    /// They cannot be read.
    #[error("the chart's crds/ are not understood: {0}")]
    Unreadable(String),
    /// The API server did not take one.
    #[error("failed to put in {name}")]
    Refused {
        /// Which.
        name: String,
        /// Why.
        #[source]
        source: RequestError,
    },
}

/// Puts them in, and waits until the API server serves their kinds.
pub(super) async fn replace(client: &Client, text: &str) -> Result<(), RunError> {
    put_in(client, text).await.map_err(RunError::Definitions)
}

async fn put_in(client: &Client, text: &str) -> Result<(), DefinitionsError> {
    let definitions = manifest::read(text).map_err(DefinitionsError::Unreadable)?;
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let params = PatchParams::apply(MANAGER).force();
    let mut names = Vec::new();
    for definition in definitions
        .iter()
        .filter(|one| one.key.kind == "CustomResourceDefinition")
    {
        let (name, object): (_, Value) = (&definition.key.name, definition.object());
        let applied = bounded(api.patch(name, &params, &Patch::Apply(&object))).await;
        applied.map_err(|source| DefinitionsError::Refused {
            name: name.clone(),
            source,
        })?;
        names.push(name.clone());
    }
    let start = Instant::now();
    for name in names {
        // Those that take longer are helm's to complain about.
        while start.elapsed() < CRD_ESTABLISHED_TIMEOUT && !is_established(&api, &name).await {
            sleep(Duration::from_millis(50)).await;
        }
    }
    Ok(())
}

async fn is_established(api: &Api<CustomResourceDefinition>, name: &str) -> bool {
    let Ok(definition) = bounded(api.get(name)).await else {
        return false;
    };
    let conditions = definition
        .status
        .and_then(|status| status.conditions)
        .unwrap_or_default();
    conditions
        .iter()
        .any(|condition| condition.type_ == "Established" && condition.status == "True")
}
