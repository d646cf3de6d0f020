//! Whether a rule allows a request: RBAC's own reading, part by part.

use super::model::{BuiltIn, RBAC_GROUP, Rule};
use super::request::{Attributes, Target};

impl Rule {
    /// Whether it allows a request. What it says of namespaces is its role's and binding's matter.
    pub fn allows(&self, request: &Attributes) -> bool {
        has(&self.verbs, request.verb)
            && match &request.target {
                Target::Path(path) => self.non_resource_urls.iter().any(|own| is_path(own, path)),
                Target::Resource {
                    group,
                    resource,
                    subresource,
                    name,
                    ..
                } => {
                    has(&self.api_groups, group)
                        && self.resources.iter().any(|own| is_resource(own, resource, subresource))
                        && (self.resource_names.is_empty() || self.resource_names.contains(name))
                }
            }
    }
}

fn has(list: &[String], wanted: &str) -> bool {
    list.iter().any(|own| own == "*" || own == wanted)
}

/// `*` takes subresources with it, and `pods` does not.
fn is_resource(own: &str, resource: &str, subresource: &str) -> bool {
    match own.split_once('/') {
        None => own == "*" || (own == resource && subresource.is_empty()),
        Some((of, sub)) => !subresource.is_empty() && sub == subresource && (of == "*" || of == resource),
    }
}

fn is_path(own: &str, path: &str) -> bool {
    match own.strip_suffix('*') {
        Some(start) => path.starts_with(start),
        None => own == path,
    }
}

/// Subresources that the ClusterRole `edit` reaches into.
const EDIT_REACHES: [(&str, &str); 5] = [
    ("pods", "attach"),
    ("pods", "exec"),
    ("pods", "portforward"),
    ("pods", "proxy"),
    ("services", "proxy"),
];

impl BuiltIn {
    /// Whether it allows a request as far as the hub knows: the cluster's own RBAC has the last word, since roles of
    /// theirs may be aggregated into these. Asked about what is read and what is reached into, and nothing else.
    pub fn allows(self, request: &Attributes) -> bool {
        let Target::Resource {
            group,
            resource,
            subresource,
            ..
        } = &request.target
        else {
            return self == Self::ClusterAdmin;
        };
        let reaches = request.class() == super::Class::Interactive;
        let edited = group.is_empty() && EDIT_REACHES.contains(&(resource.as_str(), subresource.as_str()));
        let (is_secret, is_rbac) = (group.is_empty() && resource == "secrets", group == RBAC_GROUP);
        match self {
            Self::View => !reaches && !is_secret && !is_rbac,
            Self::Edit => (!reaches || edited) && !is_rbac,
            Self::Admin => !reaches || edited,
            Self::ClusterAdmin => true,
        }
    }
}
