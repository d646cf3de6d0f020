//! What becomes of a request whose caller is known: decided from the fleet alone, so that the same answer is found again
//! while what it began lasts.

use render::access::{self, Attributes, Class, Decision, Person, Target, Where, may, may_interact};
use render::model::SyncMode;
use render::{ClusterName, Fleet};

use super::refusal;
use super::route::{self, Address, Form, Route, ToCluster};
use crate::hub::serve::Refused;

/// A request as far as it is judged by.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) route: Route,
    pub(super) attributes: Attributes,
}

/// What becomes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The hub's own API answers.
    Here {
        /// The binding that allows it.
        by: String,
    },
    /// The cluster answers.
    Carry {
        to: ToCluster,
        cluster: ClusterName,
        aim: Aim,
        /// See `Here`.
        by: String,
    },
    /// It would write to the cluster, and its caller is told where that is done.
    Write { cluster: ClusterName },
    /// Nobody is asked.
    Refuse(Refused),
}

/// What is to be reached in a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Aim {
    /// The API server, to be read.
    Read,
    /// The API server, and what it leads into.
    Interactive,
    /// An address that the agent's policy lists.
    Dial(Address),
}

/// Asked by what watches over processes, which has no login.
const HEALTH: [&str; 3] = ["/healthz", "/livez", "/readyz"];

/// Whether a request of the hub's own API is answered to anybody.
pub(super) fn is_for_anybody(attributes: &Attributes) -> bool {
    let is_health = matches!(&attributes.target, Target::Path(path) if HEALTH.contains(&path.as_str()));
    is_health && attributes.class() == Class::Read
}

/// What becomes of a request. `interactive`: whether this hub carries what reaches into containers.
pub(super) fn verdict(fleet: Option<&Fleet>, person: &Person, asked: &Asked, interactive: bool) -> Verdict {
    match &asked.route {
        Route::Hub => at_hub(fleet, person, &asked.attributes),
        Route::Cluster(to) => at_cluster(fleet, person, to, &asked.attributes, interactive),
    }
}

/// The same request for the object that it would write, to be read; `None` where it names none.
pub(super) fn as_read(attributes: &Attributes) -> Option<Attributes> {
    let mut read = Attributes {
        verb: "get",
        target: attributes.target.clone(),
    };
    match &mut read.target {
        Target::Resource { name, subresource, .. } if !name.is_empty() => subresource.clear(),
        Target::Resource { .. } | Target::Path(_) => return None,
    }
    Some(read)
}

/// Whether a person may read something in a cluster, which is not said to anybody who may not.
pub(super) fn may_read(fleet: &Fleet, person: &Person, cluster: &ClusterName, read: &Attributes) -> bool {
    let declared = fleet.clusters.get(cluster);
    declared.is_some_and(|declared| {
        let place = Where::Cluster {
            name: cluster.as_str(),
            labels: &declared.labels,
        };
        may(&fleet.access, person, place, read).is_allowed()
    })
}

/// A writer who may read the object is told by the API where it is declared, and others only that nobody writes.
fn at_hub(fleet: Option<&Fleet>, person: &Person, attributes: &Attributes) -> Verdict {
    let Some(fleet) = fleet else {
        return forbidden("the hub has accepted no revision yet, and so knows no rights");
    };
    let is_write = attributes.class() == Class::Write;
    let read_only = || Verdict::Refuse(Refused::read_only());
    let judged = match is_write {
        true => as_read(attributes),
        false => Some(attributes.clone()),
    };
    let Some(judged) = judged else { return read_only() };
    match may(&fleet.access, person, Where::Hub, &judged) {
        Decision::Allowed { by } => Verdict::Here { by },
        Decision::Denied { .. } if is_write => read_only(),
        Decision::Denied { sentence, .. } => forbidden(sentence),
    }
}

fn at_cluster(
    fleet: Option<&Fleet>,
    person: &Person,
    to: &ToCluster,
    attributes: &Attributes,
    interactive: bool,
) -> Verdict {
    // In the words of the path: another name would say that there is one.
    let unknown = || Verdict::Refuse(refusal::unknown(&to.form, access::unknown(person, &to.id)));
    let Some((fleet, declared)) = fleet.and_then(|fleet| Some((fleet, route::cluster(fleet, to)?))) else {
        return unknown();
    };
    let cluster = declared.name.clone();
    let place = Where::Cluster {
        name: cluster.as_str(),
        labels: &declared.labels,
    };
    let class = attributes.class();
    let decision = match class {
        Class::Interactive => may_interact(&fleet.access, person, place, attributes),
        Class::Read | Class::Write => may(&fleet.access, person, place, attributes),
    };
    match (decision, class) {
        (Decision::Denied { is_known: false, .. }, _) => unknown(),
        (_, Class::Write) => Verdict::Write { cluster },
        // No right would help where the hub carries none of it.
        (_, Class::Interactive) if !interactive => forbidden(refusal::NOT_INTERACTIVE),
        (Decision::Denied { sentence, .. }, _) => forbidden(sentence),
        (Decision::Allowed { .. }, _) if declared.sync_mode == SyncMode::Pull => forbidden(refusal::pull(&cluster)),
        (Decision::Allowed { by }, Class::Interactive | Class::Read) => Verdict::Carry {
            aim: match (class, &to.form) {
                (Class::Interactive, _) => Aim::Interactive,
                (_, Form::Address(address)) => Aim::Dial(address.clone()),
                (_, Form::Own | Form::Direct) => Aim::Read,
            },
            to: to.clone(),
            cluster,
            by,
        },
    }
}

fn forbidden(message: impl Into<String>) -> Verdict {
    Verdict::Refuse(Refused::forbidden(message))
}

#[cfg(test)]
mod tests;
