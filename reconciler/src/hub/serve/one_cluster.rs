//! What is asked about one cluster: `…/managedclusters/NAME/dependants`, what goes or stays behind with its objects, which
//! the cluster is asked when somebody asks the hub, and `…/capabilities`, what it said of itself.

use render::{ClusterName, ObjectKey};
use serde_json::{Value, json};

use super::answer::Refused;
use super::resource::GROUP;
use crate::hub::engine::State;
use crate::limits::{DEPENDANTS_ASKED_MAX, PINGS_MAX};
use crate::wire::DependantsQuestion;

/// The version and the kinds that a cluster said last.
pub(super) fn capabilities(state: &State, name: &str) -> Result<Value, Refused> {
    let cluster = known(state, name)?;
    let all = state.capabilities();
    let said = all.get(&cluster);
    let said = said.ok_or_else(|| Refused::unavailable("the cluster has not said its version and kinds yet"))?;
    Ok(json!({ "kubernetesVersion": said.kubernetes_version(), "apiVersions": said.api_versions() }))
}

/// A cluster that is registered, or has a tunnel.
pub(super) fn known(state: &State, name: &str) -> Result<ClusterName, Refused> {
    let missing = || Refused::no_such_in(GROUP, "managedclusters", name);
    let cluster = ClusterName::parse(name).map_err(|_| missing())?;
    let declared = state.fleet.as_ref();
    let is_declared = declared.is_some_and(|fleet| fleet.clusters.contains_key(&cluster));
    if !is_declared && !state.clusters.contains_key(&cluster) {
        return Err(missing());
    }
    Ok(cluster)
}

/// The cluster and the question that a request means. A cluster whose file is gone is asked while it is connected.
pub(super) fn question(
    state: &State,
    name: &str,
    pairs: &[(String, String)],
) -> Result<(ClusterName, DependantsQuestion), Refused> {
    let cluster = known(state, name)?;
    let named = pairs.iter().filter(|(key, _)| key == "object");
    let objects: Result<Vec<ObjectKey>, Refused> = named
        .map(|(_, text)| {
            let parsed = text.parse::<ObjectKey>();
            parsed.map_err(|error| Refused::bad_request(format!("object: {error}")))
        })
        .collect();
    let objects = objects?;
    if objects.is_empty() || objects.len() > DEPENDANTS_ASKED_MAX {
        let message = format!("object must be given, and at most {DEPENDANTS_ASKED_MAX} times");
        return Err(Refused::bad_request(message));
    }
    Ok((cluster, DependantsQuestion { objects }))
}

/// How many pings a request asks for.
pub(super) fn pings(pairs: &[(String, String)]) -> Result<usize, Refused> {
    let Some((_, text)) = pairs.iter().find(|(key, _)| key == "ping") else {
        return Ok(0);
    };
    let number = text.parse().ok().filter(|number| *number <= PINGS_MAX);
    number.ok_or_else(|| Refused::bad_request(format!("ping is a number up to {PINGS_MAX}")))
}
