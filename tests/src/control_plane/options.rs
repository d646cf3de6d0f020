//! What a test asks of a control plane.

use std::sync::Arc;

use crate::Site;

/// Choices with defaults: a controller manager, no scheduler, no nodes.
#[derive(Clone, Debug)]
pub struct Options {
    /// Nodes that kwok plays. Any node brings the scheduler along.
    pub nodes: usize,
    /// Without a controller manager a cluster starts faster, and namespaces are never done deleting.
    pub controller_manager: bool,
    /// Callers beside the administrator. RBAC judges them.
    pub users: Vec<User>,
    /// More flags for kube-apiserver.
    pub apiserver_flags: Vec<String>,
    /// Where it stands; without it, in this machine's own network. There it is reached from inside alone.
    pub site: Option<Arc<Site>>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            nodes: 0,
            controller_manager: true,
            users: Vec::new(),
            apiserver_flags: Vec::new(),
            site: None,
        }
    }
}

impl Options {
    /// A cluster where workloads become ready: scheduler, kwok, and `count` nodes of 32 CPUs, 128 GiB and
    /// 110 pods.
    pub fn with_nodes(count: usize) -> Self {
        Self {
            nodes: count,
            ..Self::default()
        }
    }

    /// A small cluster inside a site.
    pub fn at(site: &Arc<Site>) -> Self {
        Self {
            controller_manager: false,
            site: Some(Arc::clone(site)),
            ..Self::default()
        }
    }

    /// One more caller.
    pub fn user(mut self, name: &str, groups: &[&str]) -> Self {
        self.users.push(User {
            name: name.to_owned(),
            groups: groups.iter().map(|&group| group.to_owned()).collect(),
        });
        self
    }
}

/// A caller the API server knows by its token.
#[derive(Clone, Debug)]
pub struct User {
    pub name: String,
    pub groups: Vec<String>,
}

impl User {
    /// The caller whom RBAC allows everything.
    pub(super) fn administrator() -> Self {
        Self {
            name: "admin".to_owned(),
            groups: vec!["system:masters".to_owned()],
        }
    }

    /// Its bearer token.
    pub fn token(&self) -> String {
        format!("token-of-{}", self.name)
    }
}
