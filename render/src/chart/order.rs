//! What a HelmChart orders: which chart, as which release, with which values and options.
//!
//! Clusternet's words are read as they are; `skipCRDs` and `replaceCRDs` are two of the three ways of `crds`.

use std::fmt;

use serde_json::{Map, Value};

use crate::digest::Digest;

/// Revisions of a release that are kept where the HelmChart does not say: enough to go back over a bad week, and few
/// enough that their Secrets, each with the whole manifest, do not fill etcd.
pub const HISTORY_DEFAULT: u32 = 5;

/// Seconds that helm may wait where the HelmChart does not say; Helm's own default, and Clusternet's.
pub const TIMEOUT_SECONDS_DEFAULT: u32 = 300;

/// Characters of a release's name, by Helm.
const RELEASE_NAME_CHARS_MAX: usize = 53;

/// What a HelmChart orders.
#[derive(Clone, PartialEq)]
pub struct ChartOrder {
    /// Where the chart comes from.
    pub source: ChartSource,
    /// The release's name: `releaseName`, or the HelmChart's own name.
    pub release_name: String,
    /// Where it is installed.
    pub target_namespace: String,
    /// What it is installed with; nulls in it are Helm's to read.
    pub values: Map<String, Value>,
    /// Whether helm makes the namespace; true by default.
    pub create_namespace: bool,
    /// Seconds that helm may wait; 300 by default.
    pub timeout_seconds: u32,
    /// `--wait`.
    pub wait: bool,
    /// `--wait-for-jobs`.
    pub wait_for_jobs: bool,
    /// `--replace`, at install.
    pub replace: bool,
    /// `--no-hooks`.
    pub disable_hooks: bool,
    /// `--force`.
    pub force: bool,
    /// `--atomic` at install.
    pub atomic: bool,
    /// `--atomic` at upgrade.
    pub upgrade_atomic: bool,
    /// What becomes of the chart's `crds/`.
    pub crds: Crds,
    /// Revisions kept; 5 by default.
    pub history_max: u32,
}

/// Where a chart comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChartSource {
    /// A folder of the fleet repository; its files travel with the order.
    Folder {
        /// From the root of the repository, without a slash at its end.
        path: String,
    },
    /// A repository of charts, or a registry.
    Repository {
        /// `http://`, `https://` or `oci://`.
        repo: String,
        /// The chart's name.
        chart: String,
        /// Its version; none is the newest.
        version: Option<String>,
        /// SHA-256 of the chart's archive, to be checked by whoever pulls it.
        digest: Option<Digest>,
        /// The Secret with the login.
        pull_secret: Option<PullSecret>,
        /// A registry that speaks HTTP.
        plain_http: bool,
    },
}

/// A Secret by name; its keys are `username` and `password`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PullSecret {
    /// Its namespace; empty where the HelmChart names none.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// What becomes of a chart's `crds/`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Crds {
    /// Left alone.
    Skip,
    /// Made where they are not there, and never changed: as Helm does.
    #[default]
    Create,
    /// Made where they are not there, and replaced by the chart's at each upgrade.
    CreateReplace,
}

/// A HelmChart that orders nothing that could be done. Load refuses all of these before.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidOrder {
    /// A field that must be there.
    #[error("spec.{0} is missing")]
    Missing(&'static str),
    /// A field of another type.
    #[error("spec.{0} is not {1}")]
    Type(&'static str, &'static str),
    /// A digest that is none.
    #[error("spec.digest is no SHA-256")]
    Digest,
    /// Two sources.
    #[error("spec.path and spec.repo are both there")]
    TwoSources,
    /// A release's name that Helm refuses.
    #[error("{0:?} cannot be the name of a release")]
    ReleaseName(String),
}

impl ChartOrder {
    /// Reads a HelmChart as it is described.
    ///
    /// # Errors
    ///
    /// Any error means that nothing is to be done for it.
    pub fn of(chart: &Value) -> Result<Self, InvalidOrder> {
        let spec = Spec(&chart["spec"]);
        let release_name = match spec.text("releaseName")? {
            Some(name) => name,
            None => chart["metadata"]["name"].as_str().unwrap_or_default(),
        };
        if !is_release_name(release_name) {
            return Err(InvalidOrder::ReleaseName(release_name.to_owned()));
        }
        let values = match &spec.0["values"] {
            Value::Null => Map::new(),
            Value::Object(values) => values.clone(),
            _ => return Err(InvalidOrder::Type("values", "a map")),
        };
        Ok(Self {
            source: spec.source()?,
            release_name: release_name.to_owned(),
            target_namespace: spec.required("targetNamespace")?,
            values,
            create_namespace: spec.flag("createNamespace")?.unwrap_or(true),
            timeout_seconds: spec.number("timeoutSeconds")?.unwrap_or(TIMEOUT_SECONDS_DEFAULT),
            wait: spec.is_on("wait")?,
            wait_for_jobs: spec.is_on("waitForJob")?,
            replace: spec.is_on("replace")?,
            disable_hooks: spec.is_on("disableHooks")?,
            force: spec.is_on("force")?,
            atomic: spec.is_on("atomic")?,
            upgrade_atomic: spec.is_on("upgradeAtomic")?,
            crds: spec.crds()?,
            history_max: spec.number("historyMax")?.unwrap_or(HISTORY_DEFAULT),
        })
    }
}

/// Without values, which may be secret.
impl fmt::Debug for ChartOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChartOrder")
            .field("source", &self.source)
            .field("release_name", &self.release_name)
            .finish_non_exhaustive()
    }
}

impl ChartOrder {
    /// The values as a file for helm, which reads YAML: JSON, with those characters escaped that YAML takes for ends of
    /// lines or refuses, though they may stand in JSON as they are.
    pub fn values_text(&self) -> String {
        let text = Value::Object(self.values.clone()).to_string();
        let mut escaped = String::with_capacity(text.len());
        for c in text.chars() {
            match c {
                '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' => {
                    escaped.push_str(&format!("\\u{:04x}", u32::from(c)));
                }
                c => escaped.push(c),
            }
        }
        escaped
    }
}

struct Spec<'a>(&'a Value);

impl<'a> Spec<'a> {
    fn text(&self, name: &'static str) -> Result<Option<&'a str>, InvalidOrder> {
        match &self.0[name] {
            Value::Null => Ok(None),
            Value::String(text) => Ok(Some(text).filter(|text| !text.is_empty()).map(String::as_str)),
            _ => Err(InvalidOrder::Type(name, "text")),
        }
    }

    fn required(&self, name: &'static str) -> Result<String, InvalidOrder> {
        self.text(name)?.map(str::to_owned).ok_or(InvalidOrder::Missing(name))
    }

    fn flag(&self, name: &'static str) -> Result<Option<bool>, InvalidOrder> {
        match &self.0[name] {
            Value::Null => Ok(None),
            Value::Bool(flag) => Ok(Some(*flag)),
            _ => Err(InvalidOrder::Type(name, "true or false")),
        }
    }

    fn is_on(&self, name: &'static str) -> Result<bool, InvalidOrder> {
        Ok(self.flag(name)?.unwrap_or(false))
    }

    fn number(&self, name: &'static str) -> Result<Option<u32>, InvalidOrder> {
        match &self.0[name] {
            Value::Null => Ok(None),
            value => match value.as_u64().and_then(|number| u32::try_from(number).ok()) {
                Some(number) => Ok(Some(number)),
                None => Err(InvalidOrder::Type(name, "a whole number")),
            },
        }
    }

    fn source(&self) -> Result<ChartSource, InvalidOrder> {
        match (self.text("path")?, self.text("repo")?) {
            (Some(_), Some(_)) => Err(InvalidOrder::TwoSources),
            (Some(path), None) => Ok(ChartSource::Folder {
                path: path.trim_end_matches('/').to_owned(),
            }),
            (None, None) => Err(InvalidOrder::Missing("repo")),
            (None, Some(repo)) => Ok(ChartSource::Repository {
                repo: repo.to_owned(),
                chart: self.required("chart")?,
                version: self.text("version")?.map(str::to_owned),
                digest: self.text("digest")?.map(parse_digest).transpose()?,
                pull_secret: self.pull_secret()?,
                plain_http: self.is_on("plainHTTP")?,
            }),
        }
    }

    fn pull_secret(&self) -> Result<Option<PullSecret>, InvalidOrder> {
        let secret = Spec(&self.0["chartPullSecret"]);
        // Clusternet's form with nothing in it is none.
        let Some(name) = secret.text("name")? else {
            return Ok(None);
        };
        Ok(Some(PullSecret {
            namespace: secret.text("namespace")?.unwrap_or_default().to_owned(),
            name: name.to_owned(),
        }))
    }

    fn crds(&self) -> Result<Crds, InvalidOrder> {
        match self.text("crds")? {
            Some("Skip") => Ok(Crds::Skip),
            Some("Create") => Ok(Crds::Create),
            Some("CreateReplace") => Ok(Crds::CreateReplace),
            Some(_) => Err(InvalidOrder::Type("crds", "Skip, Create or CreateReplace")),
            None if self.is_on("skipCRDs")? => Ok(Crds::Skip),
            None if self.is_on("replaceCRDs")? => Ok(Crds::CreateReplace),
            None => Ok(Crds::Create),
        }
    }
}

/// `sha256:<64 hex>`, or the 64 digits alone, as an index of charts has them.
pub(crate) fn parse_digest(text: &str) -> Result<Digest, InvalidOrder> {
    let whole = if text.starts_with("sha256:") {
        text.to_owned()
    } else {
        format!("sha256:{text}")
    };
    whole.parse().map_err(|_| InvalidOrder::Digest)
}

/// Whether Helm takes it as the name of a release.
pub(crate) fn is_release_name(name: &str) -> bool {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let part =
        |part: &str| part.starts_with(inner) && part.ends_with(inner) && part.chars().all(|c| inner(c) || c == '-');
    !name.is_empty() && name.len() <= RELEASE_NAME_CHARS_MAX && name.split('.').all(part)
}

/// The folder that a HelmChart names, ending with a slash; `None` for one of a repository.
pub(crate) fn folder_of(chart: &Value) -> Option<String> {
    let path = chart.pointer("/spec/path")?.as_str()?;
    let path = path.strip_prefix("./").unwrap_or(path).trim_end_matches('/');
    (!path.is_empty()).then(|| format!("{path}/"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn chart(spec: Value) -> Value {
        json!({"apiVersion": "fleet.flotilla.dev/v1alpha1", "kind": "HelmChart", "metadata": {"name": "web"}, "spec": spec})
    }

    fn order(spec: Value) -> ChartOrder {
        match ChartOrder::of(&chart(spec)) {
            Ok(order) => order,
            Err(error) => unreachable!("it is an order: {error}"),
        }
    }

    #[test]
    fn what_is_not_said_is_as_helm_and_clusternet_have_it() {
        let order = order(json!({"repo": "https://x", "chart": "web", "targetNamespace": "shop"}));
        assert_eq!(
            (order.release_name.as_str(), order.target_namespace.as_str()),
            ("web", "shop")
        );
        assert!(order.create_namespace);
        assert_eq!(
            (order.timeout_seconds, order.history_max, order.crds),
            (300, 5, Crds::Create)
        );
        let flags = [
            order.wait,
            order.wait_for_jobs,
            order.replace,
            order.disable_hooks,
            order.force,
            order.atomic,
            order.upgrade_atomic,
        ];
        assert_eq!(flags, [false; 7]);
        assert!(order.values.is_empty());
    }

    #[test]
    fn every_option_of_clusternet_is_read() {
        let order = order(json!({
            "repo": "oci://x/y", "chart": "web", "version": "1.2.3", "targetNamespace": "shop", "plainHTTP": true,
            "chartPullSecret": {"name": "login", "namespace": "ops"}, "createNamespace": false, "timeoutSeconds": 9,
            "wait": true, "waitForJob": true, "replace": true, "disableHooks": true, "force": true, "atomic": true,
            "upgradeAtomic": true, "replaceCRDs": true,
        }));
        let pull_secret = Some(PullSecret {
            namespace: "ops".to_owned(),
            name: "login".to_owned(),
        });
        let expected = ChartSource::Repository {
            repo: "oci://x/y".to_owned(),
            chart: "web".to_owned(),
            version: Some("1.2.3".to_owned()),
            digest: None,
            pull_secret,
            plain_http: true,
        };
        assert_eq!(order.source, expected);
        assert_eq!(
            (order.create_namespace, order.timeout_seconds, order.crds),
            (false, 9, Crds::CreateReplace)
        );
        let flags = [
            order.wait,
            order.wait_for_jobs,
            order.replace,
            order.disable_hooks,
            order.force,
            order.atomic,
            order.upgrade_atomic,
        ];
        assert_eq!(flags, [true; 7]);
    }

    #[test]
    fn values_are_written_so_that_yaml_reads_them_as_they_are() {
        let values = json!({"a": "x\u{2028}y\u{85}z\u{feff}\u{7f}é😀", "b": null, "c": {"d": [1.5, null]}});
        let order = order(json!({"path": "charts/web", "targetNamespace": "shop", "values": values}));
        let text = order.values_text();
        let expected = r#"{"a":"x\u2028y\u0085z\ufeff\u007fé😀","b":null,"c":{"d":[1.5,null]}}"#;
        assert_eq!(text, expected);
        let read: Value = serde_json::from_str(&text).expect("it is JSON still");
        assert_eq!(read, values);
    }

    #[track_caller]
    fn check_crds(fields: Value, expected: Crds) {
        let mut spec = json!({"path": "charts/web/", "targetNamespace": "shop"});
        for (name, value) in fields.as_object().expect("a map") {
            spec[name] = value.clone();
        }
        let order = order(spec);
        assert_eq!(order.crds, expected, "{fields}");
        let path = "charts/web".to_owned();
        assert_eq!(order.source, ChartSource::Folder { path });
    }

    #[test]
    fn clusternets_words_on_definitions_are_ways_of_crds() {
        check_crds(json!({}), Crds::Create);
        check_crds(json!({"skipCRDs": true}), Crds::Skip);
        check_crds(json!({"skipCRDs": false, "replaceCRDs": false}), Crds::Create);
        check_crds(json!({"replaceCRDs": true}), Crds::CreateReplace);
        check_crds(json!({"skipCRDs": true, "replaceCRDs": true}), Crds::Skip);
        check_crds(json!({"crds": "CreateReplace"}), Crds::CreateReplace);
    }

    #[test]
    fn a_digest_is_read_with_and_without_its_algorithm() {
        let hex = "ab".repeat(32);
        let both = [hex.clone(), format!("sha256:{hex}")].map(|text| parse_digest(&text));
        assert!(both[0].is_ok() && both[0] == both[1]);
        assert_eq!(parse_digest("sha512:00"), Err(InvalidOrder::Digest));
    }

    #[test]
    fn what_cannot_be_done_is_refused() {
        let refused = |spec| ChartOrder::of(&chart(spec)).err();
        assert_eq!(
            refused(json!({"path": "a", "repo": "https://x", "targetNamespace": "a"})),
            Some(InvalidOrder::TwoSources)
        );
        assert_eq!(
            refused(json!({"path": "a"})),
            Some(InvalidOrder::Missing("targetNamespace"))
        );
        assert_eq!(
            refused(json!({"path": "a", "targetNamespace": "a", "values": []})),
            Some(InvalidOrder::Type("values", "a map"))
        );
        let long = "a".repeat(54);
        assert_eq!(
            refused(json!({"path": "a", "targetNamespace": "a", "releaseName": long})),
            Some(InvalidOrder::ReleaseName(long))
        );
    }
}
