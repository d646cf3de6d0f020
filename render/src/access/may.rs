//! The decision: whether a person may ask for something there, and by which binding.

use std::collections::BTreeMap;
use std::fmt;

use super::model::{Access, Binding, RoleRef, Subject};
use super::request::{Attributes, Class, Target};
use super::{PREFIX, Rule};

/// Who asks, as the hub knows them after they showed who they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Person {
    /// Without prefix.
    pub user: String,
    /// Without prefix.
    pub groups: Vec<String>,
}

/// What is asked.
#[derive(Clone, Copy, Debug)]
pub enum Where<'a> {
    /// A cluster, by name.
    Cluster {
        /// Its name in the fleet.
        name: &'a str,
        /// Its labels, which bindings select by.
        labels: &'a BTreeMap<String, String>,
    },
    /// The hub's own kinds.
    Hub,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It is allowed.
    Allowed {
        /// The binding that allows it, as `RoleBinding shop/readers`.
        by: String,
    },
    /// It is not.
    Denied {
        /// What would be needed, for the person who asked.
        sentence: String,
        /// Whether they may know that there is such a cluster. Where not, the sentence is [`unknown`]'s, and so has to
        /// be the answer about a cluster that is not there.
        is_known: bool,
    },
}

impl Decision {
    /// Whether it is allowed.
    pub fn is_allowed(&self) -> bool {
        matches!(self, Self::Allowed { .. })
    }
}

/// Whether a person may read this there. Requests of another class are denied, whatever any role says.
pub fn may(access: &Access, person: &Person, place: Where<'_>, request: &Attributes) -> Decision {
    match request.class() {
        Class::Read => decide(access, person, place, request),
        Class::Interactive => refused(
            access,
            person,
            place,
            request,
            "it reaches into the cluster, and this path only reads",
        ),
        Class::Write => refused(
            access,
            person,
            place,
            request,
            "changes are commits in the fleet repository",
        ),
    }
}

/// Whether a person may reach into a container or port there: rights for class Interactive, and for nothing else. It asks
/// for the verb `create`, however it is sent: a role that was meant to read, `get` on everything, would run commands
/// otherwise, and a proxy leads to whatever listens.
pub fn may_interact(access: &Access, person: &Person, place: Where<'_>, request: &Attributes) -> Decision {
    if request.class() != Class::Interactive {
        return refused(access, person, place, request, "it reaches into nothing");
    }
    let asked = Attributes {
        verb: "create",
        target: request.target.clone(),
    };
    decide(access, person, place, &asked)
}

/// What is said about a cluster of which a person may not know, whether it is there or not.
pub fn unknown(person: &Person, cluster: &str) -> String {
    format!(
        "{person} may ask no cluster {cluster:?}: {}",
        needed("names them for it")
    )
}

fn decide(access: &Access, person: &Person, place: Where<'_>, request: &Attributes) -> Decision {
    if person.is_reserved() {
        return stranger(person, place);
    }
    let mut named = None;
    for binding in access.bindings.values() {
        if !binding.names(person) || !binding.reaches(place) {
            continue;
        }
        if access.gives(binding, request) {
            return Decision::Allowed { by: binding.label() };
        }
        named.get_or_insert(binding);
    }
    match named {
        Some(binding) if is_discovery(request) => Decision::Allowed { by: binding.label() },
        Some(_) => denied(person, place, request, &needed("gives them that")),
        None => stranger(person, place),
    }
}

/// A refusal that no right could change.
fn refused(access: &Access, person: &Person, place: Where<'_>, request: &Attributes, why: &str) -> Decision {
    let mut bindings = access.bindings.values();
    if !person.is_reserved() && bindings.any(|binding| binding.names(person) && binding.reaches(place)) {
        denied(person, place, request, why)
    } else {
        stranger(person, place)
    }
}

fn denied(person: &Person, place: Where<'_>, request: &Attributes, why: &str) -> Decision {
    Decision::Denied {
        sentence: format!("{person} may not {} {place}: {why}", wish(request)),
        is_known: true,
    }
}

fn stranger(person: &Person, place: Where<'_>) -> Decision {
    match place {
        Where::Cluster { name, .. } => Decision::Denied {
            sentence: unknown(person, name),
            is_known: false,
        },
        Where::Hub => Decision::Denied {
            sentence: format!(
                "{person} may ask nothing of the hub: {}",
                needed("for all clusters names them")
            ),
            is_known: true,
        },
    }
}

fn needed(what: &str) -> String {
    format!("no binding below access/ in the fleet repository {what}")
}

/// `list deployments.apps/scale "web" in namespace shop`, as far as the request says it.
fn wish(request: &Attributes) -> String {
    let mut wish = format!("{} {}", request.verb, request.target.resource_name());
    if let Target::Resource { namespace, name, .. } = &request.target {
        if !name.is_empty() {
            wish += &format!(" \"{name}\"");
        }
        if !namespace.is_empty() {
            wish += &format!(" in namespace {namespace}");
        }
    }
    wish
}

/// What kubectl asks before it asks for anything: which kinds there are, and what the caller may do. Whoever may read
/// something needs it.
fn is_discovery(request: &Attributes) -> bool {
    match &request.target {
        // Of what is created, the questions about oneself alone are of this class.
        Target::Resource { .. } => request.verb == "create" && request.class() == Class::Read,
        Target::Path(path) => {
            let parts: Vec<_> = path.split('/').filter(|part| !part.is_empty()).collect();
            request.verb == "get"
                && matches!(
                    parts.as_slice(),
                    ["version"] | ["api"] | ["api", _] | ["apis"] | ["apis", _] | ["apis", _, _] | ["openapi", ..]
                )
        }
    }
}

impl Access {
    /// The bindings that name a person and are for that place, sorted; none for a name that nobody may have.
    pub fn bindings_of<'a>(&'a self, person: &'a Person, place: Where<'a>) -> impl Iterator<Item = &'a Binding> {
        let bindings = self.bindings.values().map(|binding| &**binding);
        bindings.filter(move |binding| !person.is_reserved() && binding.names(person) && binding.reaches(place))
    }

    fn gives(&self, binding: &Binding, request: &Attributes) -> bool {
        let namespace = match &request.target {
            Target::Resource { namespace, .. } => namespace.as_str(),
            Target::Path(_) => "",
        };
        // What a RoleBinding gives, it gives in its namespace.
        if !binding.key.namespace.is_empty() && binding.key.namespace != namespace {
            return false;
        }
        match &binding.role {
            RoleRef::BuiltIn(role) => role.allows(request),
            RoleRef::Own(_) if request.target.is_kubelet() => false,
            RoleRef::Own(key) => {
                let mut rules = self.roles.get(key).into_iter().flat_map(|role| &role.rules);
                rules.any(|rule: &Rule| rule.allows(request))
            }
        }
    }
}

impl Binding {
    fn names(&self, person: &Person) -> bool {
        self.subjects.iter().any(|subject| match subject {
            Subject::User(user) => *user == person.user,
            Subject::Group(group) => person.groups.contains(group),
        })
    }

    /// A binding for some clusters says nothing of the hub.
    fn reaches(&self, place: Where<'_>) -> bool {
        match place {
            Where::Cluster { labels, .. } => self.is_for(labels),
            Where::Hub => self.clusters.is_none(),
        }
    }
}

impl Person {
    /// Whether the name or a group is one that nobody may have. No agent asks its cluster for such a person.
    fn is_reserved(&self) -> bool {
        is_reserved(&self.user) || self.groups.iter().any(|group| is_reserved(group))
    }
}

/// Whether a name or group can be nobody's: what begins so is Kubernetes' own, or has a prefix that is set here.
pub fn is_reserved(name: &str) -> bool {
    name.starts_with("system:") || name.starts_with(PREFIX)
}

impl fmt::Display for Person {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.user)?;
        match self.groups.as_slice() {
            [] => Ok(()),
            groups => write!(f, " (groups {})", groups.join(", ")),
        }
    }
}

impl fmt::Display for Where<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cluster { name, .. } => write!(f, "on cluster {name}"),
            Self::Hub => f.write_str("at the hub"),
        }
    }
}

#[cfg(test)]
mod tests;
