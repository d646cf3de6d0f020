//! What a chart would bring to a cluster: `helm template` against an address that knows nothing of the cluster but what
//! it said of itself.
//!
//! Helm's own list of API versions, which it takes where it asks no cluster, has versions that no cluster serves any
//! more: a chart that looks for them would be predicted with them. So helm asks, and the answer is the cluster's word.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;

use http::{Request, Response, StatusCode, header};
use kube::Client;
use kube::client::Body;
use render::ObjectKey;
use render::chart::{Capabilities, ChartSource, Crds, Preview, PreviewRequest, predicted};
use serde_json::{Value, json};

use super::HelmOptions;
use super::chart::Kept;
use super::program::HelmError;
use super::run::{Means, Run, RunError};
use super::wanted::{Place, Repository, Source, Wanted};
use crate::fault::line;
use crate::limits::{PREVIEW_TIMEOUT, PREVIEW_TRIES_MAX, PREVIEW_WORDS_MAX};

/// There is no helm that could be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoHelm;

/// Predicts what a chart brings.
pub(crate) async fn preview(options: &HelmOptions, request: &PreviewRequest) -> Result<Preview, NoHelm> {
    let wanted = match wanted(request) {
        Ok(wanted) => wanted,
        Err(why) => return Ok(Preview::Unknown { why }),
    };
    let mut served: BTreeSet<String> = request.capabilities.api_versions().iter().cloned().collect();
    for _ in 0..PREVIEW_TRIES_MAX {
        match printed(options, request, &wanted, &served).await {
            Ok((first, second)) => {
                let preview = predicted(&first, &second, &wanted.place.namespace);
                return Ok(preview.unwrap_or_else(|why| Preview::Unknown { why }));
            }
            Err(RunError::Helm(HelmError::NotRun { .. })) => return Err(NoHelm),
            Err(RunError::Helm(HelmError::Failed { words, .. })) => {
                // What is printed has kinds that something else may define before: that is no fault of the chart.
                let unknown = unknown_kinds(&words);
                if unknown.is_empty() || unknown.is_subset(&served) {
                    return Ok(Preview::Failed { words: short(&words) });
                }
                served.extend(unknown);
            }
            Err(error) => return Ok(Preview::Unknown { why: line(&error) }),
        }
    }
    let why = "its objects are of kinds that helm does not find".to_owned();
    Ok(Preview::Unknown { why })
}

fn wanted(request: &PreviewRequest) -> Result<Wanted, String> {
    let order = &request.order;
    let source = match (&order.source, &request.files) {
        (ChartSource::Folder { .. }, Some(files)) => Source::Folder(Arc::clone(files)),
        (ChartSource::Folder { path }, None) => return Err(format!("the chart of folder {path} is not here")),
        (
            ChartSource::Repository {
                pull_secret: Some(_), ..
            },
            _,
        ) => {
            return Err("its repository asks for a login, which agents alone have".to_owned());
        }
        (ChartSource::Repository { .. }, _) => Source::Repository(Repository::of(&order.source, "")),
    };
    Ok(Wanted {
        chart: ObjectKey::new("fleet.flotilla.dev/v1alpha1", "HelmChart", "", &order.release_name),
        place: Place {
            namespace: order.target_namespace.clone(),
            release: order.release_name.clone(),
        },
        source,
        order: Arc::clone(order),
        content: String::new(),
    })
}

/// What helm prints, twice.
async fn printed(
    options: &HelmOptions,
    request: &PreviewRequest,
    wanted: &Wanted,
    served: &BTreeSet<String>,
) -> Result<(String, String), RunError> {
    let means = Means {
        program: options.program.clone(),
        folder: None,
        kept: Kept::new(options.folder.as_ref().map(|folder| folder.join("charts"))),
        client: likeness(&request.capabilities, served),
    };
    let mut run = Run::prepare(&means, &wanted.place, PREVIEW_TIMEOUT).await?;
    run.bring(&means, wanted).await?;
    let mut flags = vec!["--validate", "--disable-openapi-validation"];
    if wanted.order.crds != Crds::Skip {
        flags.push("--include-crds");
    }
    if wanted.order.disable_hooks {
        flags.push("--no-hooks");
    }
    let first = run
        .templates_with(&flags)
        .await
        .map_err(|error| without_home(error, run.home()))?;
    let second = run
        .templates_with(&flags)
        .await
        .map_err(|error| without_home(error, run.home()))?;
    Ok((first, second))
}

/// Each run has a folder of its own: with its name in them, the same words would be others each time.
fn without_home(error: RunError, home: &Path) -> RunError {
    match error {
        RunError::Helm(HelmError::Failed { command, words }) => {
            let words = words.replace(&format!("{}/", home.display()), "");
            RunError::Helm(HelmError::Failed { command, words })
        }
        error => error,
    }
}

/// The kinds of which helm says that the cluster does not know them, as capabilities have them.
fn unknown_kinds(words: &str) -> BTreeSet<String> {
    let quoted = |text: &str| text.split('"').nth(1).map(str::to_owned);
    let parts = words.split("no matches for kind ").skip(1);
    let kind = |part: &str| {
        let (kind, rest) = part.split_once(" in version ")?;
        Some(format!("{}/{}", quoted(rest)?, quoted(kind)?))
    };
    parts.filter_map(kind).collect()
}

fn short(words: &str) -> String {
    match words.char_indices().nth(PREVIEW_WORDS_MAX) {
        Some((end, _)) => format!("{}…", &words[..end]),
        None => words.to_owned(),
    }
}

/// A client of a cluster that serves these kinds, has no object, and takes none.
fn likeness(capabilities: &Capabilities, served: &BTreeSet<String>) -> Client {
    let answers = Arc::new(answers(capabilities, served));
    let service = tower::service_fn(move |request: Request<Body>| {
        let answers = Arc::clone(&answers);
        async move { Ok::<_, Infallible>(answer(&answers, request.uri().path())) }
    });
    Client::new(service, "default")
}

fn answer(answers: &BTreeMap<String, Value>, path: &str) -> Response<Body> {
    let absent = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404,
        "message": "a prediction has no objects"});
    let (status, said) = match answers.get(path.trim_end_matches('/')) {
        Some(said) => (StatusCode::OK, said),
        None => (StatusCode::NOT_FOUND, &absent),
    };
    let mut response = Response::new(Body::from(said.to_string().into_bytes()));
    *response.status_mut() = status;
    let json = header::HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

/// The discovery of a cluster, by path.
fn answers(capabilities: &Capabilities, served: &BTreeSet<String>) -> BTreeMap<String, Value> {
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::from([("v1", Vec::new())]);
    for (version, kind) in served.iter().filter_map(|kind| kind.rsplit_once('/')) {
        versions.entry(version).or_default().push(kind);
    }
    let mut answers = BTreeMap::new();
    let mut groups: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (version, kinds) in versions {
        // Names of resources are only part of paths that are not there.
        let resource = |kind: &&str| {
            json!({"name": format!("{}s", kind.to_lowercase()), "singularName": "", "namespaced": true, "kind": kind,
                "verbs": ["create", "delete", "get", "list", "patch", "update", "watch"]})
        };
        let resources: Vec<_> = kinds.iter().map(resource).collect();
        let list =
            json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": resources});
        match version.split_once('/') {
            Some((group, _)) => {
                groups.entry(group).or_default().push(version);
                answers.insert(format!("/apis/{version}"), list);
            }
            None => drop(answers.insert(format!("/api/{version}"), list)),
        }
    }
    let group = |(name, versions): (&str, Vec<&str>)| {
        let version = |version: &&str| json!({"groupVersion": version, "version": version.rsplit('/').next()});
        let versions: Vec<_> = versions.iter().map(version).collect();
        json!({"name": name, "versions": versions, "preferredVersion": versions.last()})
    };
    let groups: Vec<_> = groups.into_iter().map(group).collect();
    answers.insert(
        "/apis".to_owned(),
        json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}),
    );
    answers.insert("/api".to_owned(), json!({"kind": "APIVersions", "versions": ["v1"]}));
    answers.insert("/version".to_owned(), version(capabilities.kubernetes_version()));
    answers
}

/// `major` and `minor` are what a chart may look at besides the whole.
fn version(version: &str) -> Value {
    let mut numbers = version.trim_start_matches('v').split('.');
    let mut number = || {
        let digits = numbers.next().unwrap_or_default();
        let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        digits[..end].to_owned()
    };
    let (major, minor) = (number(), number());
    json!({"major": major, "minor": minor, "gitVersion": version})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_likeness_says_what_the_cluster_said() {
        let capabilities = Capabilities::new("v1.29.4-gke.100".to_owned(), Vec::new());
        let served = ["v1/Service", "policy/v1/PodDisruptionBudget"]
            .map(str::to_owned)
            .into();
        let answers = answers(&capabilities, &served);
        assert_eq!(
            answers["/version"],
            json!({"major": "1", "minor": "29", "gitVersion": "v1.29.4-gke.100"})
        );
        assert_eq!(
            answers["/apis"]["groups"][0]["versions"][0]["groupVersion"],
            "policy/v1"
        );
        assert_eq!(answers["/api/v1"]["resources"][0]["kind"], "Service");
        assert_eq!(
            answer(&answers, "/api/v1/namespaces/a/services/b").status(),
            StatusCode::NOT_FOUND
        );
    }

    #[test]
    fn kinds_that_helm_does_not_find_are_read_out_of_its_words() {
        let words = r#"unable to build kubernetes objects from release manifest: [resource mapping not found for name: "a" namespace: "" from "": no matches for kind "Widget" in version "x.io/v1" ensure CRDs are installed first, resource mapping not found for name: "b" namespace: "" from "": no matches for kind "Odd" in version "v1" ensure CRDs are installed first]"#;
        let expected = ["v1/Odd", "x.io/v1/Widget"].map(str::to_owned);
        assert_eq!(unknown_kinds(words), BTreeSet::from(expected));
        assert_eq!(unknown_kinds("execution error at (a.yaml:1:2): no"), BTreeSet::new());
    }
}
