//! Where a request goes, told by its path alone: to the hub itself, or to a cluster in one of four forms.

use render::model::Cluster;
use render::{ClusterName, Fleet};

/// Before the id of a cluster in Clusternet's forms.
pub(super) const SOCKETS: &str = "/apis/proxies.clusternet.io/v1alpha1/sockets/";

/// The label that Clusternet's clusters are found by.
const CLUSTER_ID: &str = "clusters.clusternet.io/cluster-id";

/// Where a request goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Route {
    /// To the hub's own API.
    Hub,
    /// To a cluster.
    Cluster(ToCluster),
}

/// A request to a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ToCluster {
    /// What stands in the path for the cluster.
    pub(super) id: String,
    /// Which form it was asked in.
    pub(super) form: Form,
    /// What is asked there; it begins with a slash.
    pub(super) path: String,
}

/// The forms of a path to a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// `/clusters/NAME/…`.
    Own,
    /// Clusternet's `…/proxy/direct/…`.
    Direct,
    /// Clusternet's `…/proxy/https/HOST/…` and `…/proxy/http/HOST/…`; by a name of the API server inside the cluster it
    /// is `Direct`.
    Address(Address),
}

/// Names by which a cluster's own API server is reached inside it.
const OWN_API_SERVER: [&str; 4] = [
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
];

/// An address that is to be reached from a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) tls: bool,
    pub(super) host: String,
    pub(super) port: u16,
}

impl ToCluster {
    /// The path that rights are asked for.
    pub(super) fn judged_path(&self) -> String {
        match &self.form {
            Form::Own | Form::Direct => self.path.clone(),
            Form::Address(address) => format!("/dial/{}", address.target()),
        }
    }
}

impl Address {
    fn is_own_api_server(&self) -> bool {
        self.tls && self.port == 443 && OWN_API_SERVER.contains(&self.host.as_str())
    }

    /// As an agent's policy lists it.
    pub(super) fn target(&self) -> String {
        let brackets = self.host.contains(':');
        let host = if brackets {
            format!("[{}]", self.host)
        } else {
            self.host.clone()
        };
        format!("{host}:{}", self.port)
    }

    fn parse(tls: bool, text: &str) -> Option<Self> {
        let authority: http::uri::Authority = text.parse().ok()?;
        // Names and passwords are nothing that an address needs.
        let plain = !text.contains('@') && !authority.host().is_empty();
        // What stands behind the host and is no port is not the usual one either.
        let port = match text.strip_prefix(authority.host()) {
            Some("") if tls => 443,
            Some("") => 80,
            _ => authority.port_u16()?,
        };
        plain.then(|| Self {
            tls,
            host: authority.host().trim_matches(['[', ']']).to_ascii_lowercase(),
            port,
        })
    }
}

/// A path that has the beginning of a form and not its rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Incomplete;

/// Reads a path, which is clear already (`render::access::attributes`).
pub(super) fn route(path: &str) -> Result<Route, Incomplete> {
    let to = |id: &str, form, rest: Option<&str>| {
        let path = format!("/{}", rest.unwrap_or_default());
        Ok(Route::Cluster(ToCluster {
            id: id.to_owned(),
            form,
            path,
        }))
    };
    if let Some(rest) = path.strip_prefix("/clusters/") {
        return match halves(rest) {
            ("", _) => Err(Incomplete),
            (id, rest) => to(id, Form::Own, rest),
        };
    }
    let Some(rest) = path.strip_prefix(SOCKETS) else {
        return Ok(Route::Hub);
    };
    let (id, rest) = halves(rest);
    let rest = rest.and_then(|rest| rest.strip_prefix("proxy/")).ok_or(Incomplete)?;
    let (form, rest) = halves(rest);
    match form {
        "direct" => to(id, Form::Direct, rest),
        "https" | "http" => {
            let (address, rest) = halves(rest.ok_or(Incomplete)?);
            let address = Address::parse(form == "https", address).ok_or(Incomplete)?;
            let form = match address.is_own_api_server() {
                true => Form::Direct,
                false => Form::Address(address),
            };
            to(id, form, rest)
        }
        _ => Err(Incomplete),
    }
}

/// The id of the cluster whose API server the door asks under a path, where that is the path that Clusternet's kubeconfigs
/// have.
pub fn clusternet_id(path: &str) -> Option<String> {
    match route(path) {
        Ok(Route::Cluster(ToCluster {
            id, form: Form::Direct, ..
        })) => Some(id),
        Ok(Route::Hub | Route::Cluster(_)) | Err(Incomplete) => None,
    }
}

fn halves(text: &str) -> (&str, Option<&str>) {
    match text.split_once('/') {
        Some((first, rest)) => (first, Some(rest)),
        None => (text, None),
    }
}

/// The cluster that a path means: by its name, or in Clusternet's forms by its label `cluster-id` as well. Of several with
/// one id it is the first by name, as there.
pub(super) fn cluster<'a>(fleet: &'a Fleet, to: &ToCluster) -> Option<&'a Cluster> {
    let named = ClusterName::parse(to.id.as_str()).ok();
    let named = named.and_then(|name| fleet.clusters.get(&name));
    if named.is_some() || to.form == Form::Own {
        return named;
    }
    fleet
        .clusters
        .values()
        .find(|cluster| cluster.labels.get(CLUSTER_ID) == Some(&to.id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, expected: &str) {
        let said = match route(path) {
            Err(Incomplete) => "incomplete".to_owned(),
            Ok(Route::Hub) => "hub".to_owned(),
            Ok(Route::Cluster(ToCluster { id, form, path })) => match form {
                Form::Own => format!("own {id} {path}"),
                Form::Direct => format!("direct {id} {path}"),
                Form::Address(address) => {
                    let scheme = if address.tls { "https" } else { "http" };
                    format!("{scheme} {} {id} {path}", address.target())
                }
            },
        };
        assert_eq!(said, expected, "{path}");
    }

    #[test]
    fn a_path_names_its_cluster_in_our_form_and_in_each_of_clusternets() {
        let sockets = |rest: &str| format!("/apis/proxies.clusternet.io/v1alpha1/sockets/{rest}");
        check("/clusters/oslo/api/v1/pods", "own oslo /api/v1/pods");
        check("/clusters/oslo", "own oslo /");
        check("/clusters/oslo/", "own oslo /");
        check("/clusters/", "incomplete");
        check("/clusters", "hub");
        check("/apis/fleet.flotilla.dev/v1alpha1/subscriptions", "hub");
        check(&sockets("1-2-3/proxy/direct/api"), "direct 1-2-3 /api");
        check(&sockets("1-2-3/proxy/direct"), "direct 1-2-3 /");
        // As Clusternet's clients write it, and its shadow API without `proxy`, which no cluster is behind.
        check(
            &sockets("a-valid-uid/proxy/direct/version"),
            "direct a-valid-uid /version",
        );
        check(&sockets("abc/https/another.k8s.io/api/v1/foos"), "incomplete");
        check(
            &sockets("x/proxy/https/kubernetes.default.svc/api/v1"),
            "direct x /api/v1",
        );
        check(
            &sockets("x/proxy/http/kubernetes.default.svc/api/v1"),
            "http kubernetes.default.svc:80 x /api/v1",
        );
        check(
            &sockets("x/proxy/https/10.0.0.1:6443/api/v1"),
            "https 10.0.0.1:6443 x /api/v1",
        );
        check(
            &sockets("x/proxy/https/Api.Example/version"),
            "https api.example:443 x /version",
        );
        check(
            &sockets("x/proxy/http/predictor/replicas"),
            "http predictor:80 x /replicas",
        );
        check(&sockets("x/proxy/http/[fd00::1]:8080/"), "http [fd00::1]:8080 x /");
        for wrong in [
            "x",
            "x/proxy",
            "x/proxy/",
            "x/proxy/ftp/a/b",
            "x/proxy/https",
            "x/proxy/https/",
            "x/proxy/http/host:port/",
            "x/proxy/http/host:/",
            "x/proxy/http/host:65536/",
        ] {
            check(&sockets(wrong), "incomplete");
        }
        check(&sockets("x/proxy/https/user@host/"), "incomplete");
    }
}
