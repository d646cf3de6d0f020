//! What a HelmChart of a unit asks for: which release, of which chart, with which values, and how.

use std::sync::Arc;
use std::time::Duration;

use render::chart::{ChartFiles, ChartOrder, ChartSource, PullSecret};
use render::{Digest, ObjectKey};
use serde_json::{Value, json};

use crate::limits::HELM_TIMEOUT_MAX;

/// Hexadecimal digits of a marker: a label's value has at most 63 characters.
const MARKER_DIGITS: usize = 32;

/// A release that should be there. It has no `Debug`: values may be secret.
#[derive(Clone)]
pub(in crate::apply) struct Wanted {
    /// The HelmChart.
    pub chart: ObjectKey,
    /// Where the release is.
    pub place: Place,
    /// Where its chart comes from.
    pub source: Source,
    /// Its values, and how it is installed and upgraded.
    pub order: Arc<ChartOrder>,
    /// Digest of chart and values. While a release carries it, it is left as it is: options alone are no
    /// reason for a revision.
    pub content: String,
}

/// Where a release is in the cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::apply) struct Place {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub release: String,
}

/// Where a chart comes from.
#[derive(Clone)]
pub(in crate::apply) enum Source {
    /// A folder of the repository, delivered with the HelmChart.
    Folder(Arc<ChartFiles>),
    /// A chart repository, over HTTP or OCI.
    Repository(Repository),
}

/// A chart in a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::apply) struct Repository {
    /// `https://…`, `http://…` or `oci://…`, without a slash at its end.
    pub url: String,
    /// The chart's name.
    pub chart: String,
    /// A version, a range of them, or nothing for the newest.
    pub version: String,
    /// What its archive must have.
    pub digest: Option<Digest>,
    /// OCI over plain HTTP.
    pub plain_http: bool,
    /// The Secret with what the repository asks for.
    pub secret: Option<PullSecret>,
}

impl Wanted {
    /// Reads a HelmChart; why it makes no release where it makes none.
    pub(in crate::apply) fn read(
        chart: &ObjectKey,
        object: &Value,
        files: Option<Arc<ChartFiles>>,
    ) -> Result<Self, String> {
        let order = ChartOrder::of(object).map_err(|error| error.to_string())?;
        let (source, described) = match (&order.source, files) {
            (ChartSource::Folder { .. }, Some(files)) => {
                let described = json!({ "files": files.digest().to_string() });
                (Source::Folder(files), described)
            }
            (ChartSource::Folder { path }, None) => {
                return Err(format!("the chart of folder {path} was not delivered with it"));
            }
            (ChartSource::Repository { .. }, _) => {
                let repository = Repository::of(&order.source, &chart.namespace);
                let Repository {
                    url, chart, version, ..
                } = &repository;
                let mut described = json!({"repo": url, "chart": chart, "version": version});
                if let Some(digest) = repository.digest {
                    described["digest"] = digest.to_string().into();
                }
                (Source::Repository(repository), described)
            }
        };
        let content = marker(&json!({"chart": described, "values": order.values}));
        Ok(Self {
            chart: chart.clone(),
            place: Place {
                namespace: order.target_namespace.clone(),
                release: order.release_name.clone(),
            },
            source,
            order: Arc::new(order),
            content,
        })
    }

    /// Marks releases of this HelmChart.
    pub(in crate::apply) fn owner(&self) -> String {
        owner(&self.chart)
    }

    /// How long one run of helm may take.
    pub(in crate::apply) fn timeout(&self) -> Duration {
        Duration::from_secs(u64::from(self.order.timeout_seconds.max(1))).min(HELM_TIMEOUT_MAX)
    }

    /// Whether it counts as failed when its objects do not become healthy.
    pub(in crate::apply) fn waits(&self, is_first: bool) -> bool {
        self.order.wait
            || self.order.wait_for_jobs
            || if is_first {
                self.order.atomic
            } else {
                self.order.upgrade_atomic
            }
    }
}

impl Repository {
    /// Of a source that is one; a folder has none, and gives an empty one.
    pub(super) fn of(source: &ChartSource, namespace: &str) -> Self {
        let (repo, chart, version, digest, plain_http, secret) = match source {
            ChartSource::Repository {
                repo,
                chart,
                version,
                digest,
                pull_secret,
                plain_http,
            } => (
                repo.as_str(),
                chart.as_str(),
                version.clone(),
                *digest,
                *plain_http,
                pull_secret.clone(),
            ),
            ChartSource::Folder { .. } => ("", "", None, None, false, None),
        };
        Self {
            url: repo.trim_end_matches('/').to_owned(),
            chart: chart.to_owned(),
            version: version.unwrap_or_default(),
            digest,
            plain_http,
            secret: secret.map(|secret| beside(secret, namespace)),
        }
    }
}

/// A Secret without a namespace stands beside the HelmChart.
fn beside(secret: PullSecret, namespace: &str) -> PullSecret {
    if !secret.namespace.is_empty() {
        return secret;
    }
    let namespace = if namespace.is_empty() { "default" } else { namespace };
    PullSecret {
        namespace: namespace.to_owned(),
        ..secret
    }
}

/// Marks releases of a HelmChart. Not of its unit: a HelmChart that moves to another keeps its release.
pub(in crate::apply) fn owner(chart: &ObjectKey) -> String {
    marker(&json!({ "helmChart": chart.to_string() }))
}

fn marker(value: &Value) -> String {
    Digest::of_value(value).short(MARKER_DIGITS)
}

impl Place {
    /// As an entry of the inventory has it.
    pub(in crate::apply) fn text(&self) -> String {
        format!("{}/{}", self.namespace, self.release)
    }

    /// Reads what [`Place::text`] wrote.
    pub(in crate::apply) fn parse(text: &str) -> Option<Self> {
        let (namespace, release) = text.split_once('/')?;
        Some(Self {
            namespace: namespace.to_owned(),
            release: release.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(spec: Value) -> Result<Wanted, String> {
        let chart = ObjectKey::new("fleet.flotilla.dev/v1alpha1", "HelmChart", "shop", "cache");
        Wanted::read(&chart, &json!({ "metadata": {"name": "cache"}, "spec": spec }), None)
    }

    fn with(field: &str, value: Value) -> Value {
        let mut spec = json!({"repo": "https://charts.example.org/", "chart": "redis", "version": "1.2.3", "targetNamespace": "cache"});
        spec[field] = value;
        spec
    }

    fn content(field: &str, value: Value) -> String {
        match read(with(field, value)) {
            Ok(wanted) => wanted.content,
            Err(why) => unreachable!("it is whole: {why}"),
        }
    }

    #[test]
    fn options_alone_are_no_reason_for_a_revision() {
        let same = content("chart", json!("redis"));
        for (field, value) in [
            ("timeoutSeconds", json!(7)),
            ("atomic", json!(true)),
            ("historyMax", json!(2)),
            ("chartPullSecret", json!({"name": "other"})),
            ("values", json!({})),
            ("values", Value::Null),
            ("repo", json!("https://charts.example.org")),
        ] {
            assert_eq!(content(field, value), same, "{field}");
        }
        for (field, value) in [
            ("version", json!("1.2.4")),
            ("chart", json!("valkey")),
            ("repo", json!("https://other.example.org")),
            ("digest", json!("ab".repeat(32))),
            ("values", json!({"a": 1})),
        ] {
            assert_ne!(content(field, value), same, "{field}");
        }
    }

    #[test]
    fn a_pull_secret_without_namespace_stands_beside_the_chart() {
        let wanted = read(with("chartPullSecret", json!({"name": "pull"})));
        let Ok(Source::Repository(repository)) = wanted.map(|wanted| wanted.source) else {
            unreachable!("it names a repository");
        };
        let secret = repository.secret.map(|secret| (secret.namespace, secret.name));
        assert_eq!(secret, Some(("shop".to_owned(), "pull".to_owned())));
    }

    #[test]
    fn a_folder_that_did_not_come_along_is_said() {
        let why = read(json!({"path": "charts/web", "targetNamespace": "web"}))
            .err()
            .unwrap_or_default();
        assert!(why.contains("charts/web"), "{why}");
    }

    #[test]
    fn a_place_reads_back_as_it_was_written() {
        let place = Place {
            namespace: "shop".to_owned(),
            release: "cache".to_owned(),
        };
        assert_eq!(Place::parse(&place.text()), Some(place));
        assert_eq!(Place::parse("b5c0-uid-of-an-object"), None);
    }
}
