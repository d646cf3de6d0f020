//! What an API server would say to objects: a dry run of each, which changes nothing.

use std::collections::BTreeSet;

use kube::Client;
use kube::api::{Api, DynamicObject, ObjectMeta, Patch, PatchParams, ValidationDirective};
use render::model::Replace;
use render::{ManifestObject, ObjectKey};

use super::discovery::{Kinds, ServedKind};
use super::ownership::{self, Cause, Immutable, Owners};
use super::request::{RequestError, bounded};
use super::{FIELD_MANAGER, message};

/// What is known of an object after its dry run.
pub(crate) struct Checked {
    /// What its API calls its kind in the plural; `None` where the cluster does not serve it.
    pub(crate) plural: Option<String>,
    /// What the API server says.
    pub(crate) verdict: Verdict,
}

/// What an API server says to an object.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It would take it.
    Taken,
    /// It would take it, or could not be asked; with why.
    Noted(String),
    /// It refuses it, in its own words.
    Refused(String),
}

/// A dry run that did not come to its end.
#[derive(Debug, thiserror::Error)]
#[error("failed to ask the API server")]
pub(crate) struct DryRunError(#[source] RequestError);

/// Asks for each object, in order.
pub(crate) async fn dry_run(client: &Client, objects: &[ManifestObject]) -> Result<Vec<Checked>, DryRunError> {
    let kinds = Kinds::discover(client).await.map_err(DryRunError)?;
    let brought = Brought::by(objects);
    let mut checked = Vec::with_capacity(objects.len());
    for object in objects {
        checked.push(match kinds.find(&object.api_version, &object.key.kind) {
            Some(kind) => Checked {
                plural: Some(kind.resource.plural.clone()),
                verdict: ask(client, kind, object, &brought).await.map_err(DryRunError)?,
            },
            None => Checked {
                plural: None,
                verdict: brought
                    .kind(object)
                    .unwrap_or_else(|| Verdict::Refused(kinds.absence(&object.api_version, &object.key.kind))),
            },
        });
    }
    Ok(checked)
}

async fn ask(
    client: &Client,
    kind: &ServedKind,
    object: &ManifestObject,
    brought: &Brought<'_>,
) -> Result<Verdict, RequestError> {
    let key = &object.key;
    if object.is_encrypted() {
        return Ok(Verdict::Noted(
            "it is encrypted, so the API server was not asked".to_owned(),
        ));
    }
    if !kind.namespaced && !key.namespace.is_empty() {
        let words = "it has a namespace, and objects of its kind have none";
        return Ok(Verdict::Refused(words.to_owned()));
    }
    let there = match bounded(api(client, kind, object).get_metadata_opt(&key.name)).await {
        Ok(there) => there.map(|there| there.metadata),
        // Then the dry run says why.
        Err(_) => None,
    };
    let plain = send(client, kind, object, false).await;
    let status = match plain {
        Ok(()) => return Ok(adoption(there.as_ref(), &[]).map_or(Verdict::Taken, Verdict::Noted)),
        Err(RequestError::Refused(status)) => status,
        Err(error @ RequestError::Senseless(_)) => return Ok(Verdict::Refused(error.line())),
        Err(error) => return Err(error),
    };
    let causes = ownership::causes(&status);
    if !causes.is_empty() {
        // Whose fields they are on this one cluster says nothing about the manifest, which is asked for again.
        return match send(client, kind, object, true).await {
            Ok(()) => {
                Ok(Verdict::Noted(adoption(there.as_ref(), &causes).unwrap_or_else(|| {
                    format!("on this cluster: {}", ownership::words(&causes))
                })))
            }
            Err(RequestError::Refused(status)) => Ok(Verdict::Refused(words(key, object, &status.message))),
            Err(error) => Err(error),
        };
    }
    if let Some(immutable) = ownership::immutable(&status) {
        return Ok(anew(object, &immutable));
    }
    match status.code {
        401 | 429 => Err(RequestError::Refused(status)),
        404 if brought.namespaces.contains(key.namespace.as_str()) => Ok(Verdict::Noted(
            "its namespace comes with it and is not there yet, so the API server could not judge it".to_owned(),
        )),
        _ => Ok(Verdict::Refused(words(key, object, &status.message))),
    }
}

async fn send(client: &Client, kind: &ServedKind, object: &ManifestObject, force: bool) -> Result<(), RequestError> {
    let params = PatchParams {
        dry_run: true,
        force,
        field_manager: Some(FIELD_MANAGER.to_owned()),
        field_validation: Some(ValidationDirective::Strict),
    };
    let patch = Patch::Apply(&*object.value);
    bounded(api(client, kind, object).patch(&object.key.name, &params, &patch))
        .await
        .map(drop)
}

fn api(client: &Client, kind: &ServedKind, object: &ManifestObject) -> Api<DynamicObject> {
    // Where the applier puts it, too.
    let namespace = match object.key.namespace.as_str() {
        "" => "default",
        namespace => namespace,
    };
    kind.api(client, namespace)
}

/// What becomes of an object that is there and is not ours; `None` when it is ours, or not there.
fn adoption(there: Option<&ObjectMeta>, causes: &[Cause]) -> Option<String> {
    let owners = Owners::of(there?);
    if owners.ours().is_some() {
        return None;
    }
    let by = match owners.earlier().join(", ") {
        names if names.is_empty() => String::new(),
        names => format!(", written by {names}"),
    };
    let forced = match causes {
        [] => String::new(),
        causes => format!("; it wins over {}", ownership::words(causes)),
    };
    Some(format!(
        "on this cluster it is there already{by}, and is adopted with what Git says{forced}"
    ))
}

/// What becomes of an object that differs in a field that cannot change.
fn anew(object: &ManifestObject, immutable: &Immutable) -> Verdict {
    let said = words(&object.key, object, &immutable.words);
    match ownership::objection(&object.key, &object.value, Replace::Never, true) {
        None => Verdict::Noted(format!("on this cluster it will be recreated: {said}")),
        Some(hint) => Verdict::Refused(format!("{said}; {hint}")),
    }
}

fn words(key: &ObjectKey, object: &ManifestObject, words: &str) -> String {
    message::about(key, &object.value, words)
}

/// What the objects bring along themselves, which is not there during a dry run.
struct Brought<'a> {
    namespaces: BTreeSet<&'a str>,
    /// (group, kind) of their definitions.
    kinds: BTreeSet<(&'a str, &'a str)>,
}

impl<'a> Brought<'a> {
    fn by(objects: &'a [ManifestObject]) -> Self {
        let of_kind = |group: &'static str, kind: &'static str| {
            objects
                .iter()
                .filter(move |object| object.key.group == group && object.key.kind == kind)
        };
        let text = |object: &'a ManifestObject, pointer: &str| object.value.pointer(pointer)?.as_str();
        let defined = of_kind("apiextensions.k8s.io", "CustomResourceDefinition");
        Self {
            namespaces: of_kind("", "Namespace")
                .map(|object| object.key.name.as_str())
                .collect(),
            kinds: defined
                .filter_map(|object| Some((text(object, "/spec/group")?, text(object, "/spec/names/kind")?)))
                .collect(),
        }
    }

    fn kind(&self, object: &ManifestObject) -> Option<Verdict> {
        let is_brought = self
            .kinds
            .contains(&(object.key.group.as_str(), object.key.kind.as_str()));
        let words = "its kind comes with it and is not served yet, so the API server could not judge it";
        is_brought.then(|| Verdict::Noted(words.to_owned()))
    }
}
