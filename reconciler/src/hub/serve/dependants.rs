//! What goes or stays behind with objects of a cluster: `…/managedclusters/NAME/dependants`, asked of the cluster when
//! somebody asks the hub.

use render::{ClusterName, ObjectKey};

use super::answer::Refused;
use super::resource::GROUP;
use crate::hub::engine::State;
use crate::limits::DEPENDANTS_ASKED_MAX;
use crate::wire::DependantsQuestion;

/// The cluster and the question that a request means. A cluster whose file is gone is asked while it is connected.
pub(super) fn question(
    state: &State,
    name: &str,
    pairs: &[(String, String)],
) -> Result<(ClusterName, DependantsQuestion), Refused> {
    let missing = || Refused::no_such_in(GROUP, "managedclusters", name);
    let cluster = ClusterName::parse(name).map_err(|_| missing())?;
    let is_declared = state
        .fleet
        .as_ref()
        .is_some_and(|fleet| fleet.clusters.contains_key(&cluster));
    if !is_declared && !state.clusters.contains_key(&cluster) {
        return Err(missing());
    }
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
