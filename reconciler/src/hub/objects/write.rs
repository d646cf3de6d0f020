//! One object to a hub cluster: written, told how it fares, or removed. What is not ours is never taken over.

use kube::Client;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, Preconditions, ValidationDirective};
use serde_json::{Value, json};

use super::desired::{Bound, Release};
use super::kind::Id;
use super::live::{Live, MANAGER};
use super::name;
use crate::apply::{RequestError, bounded};

/// What came of an object that was to be written.
pub(super) enum Written {
    /// It is there as it should be.
    Ours(Box<Live>),
    /// Somebody else's object has its name, and why it is somebody else's.
    Foreign(String),
    /// The API server refused it; others may well be taken.
    Refused(String),
    /// The API server is of no use right now.
    Stopped(RequestError),
}

/// Writes an object. `live` is the one with our label, where there is one.
pub(super) async fn write(client: Client, id: Id, bound: Bound, release: Release, live: Option<Live>) -> (Id, Written) {
    let written = match present(&client, &id, live).await {
        Ok(Some(live)) => match live.objection() {
            Some(objection) => Ok(Written::Foreign(objection)),
            // What is ours says what we say, whoever changed it.
            None => apply(&client, &id, &bound, &release, Some(&live.uid)).await.map(ours),
        },
        Ok(None) => create(&client, &id, &bound, &release).await,
        Err(error) => Err(error),
    };
    let written = written.unwrap_or_else(|error| {
        if error.is_general() {
            Written::Stopped(error)
        } else {
            Written::Refused(error.line())
        }
    });
    (id, written)
}

fn ours(object: DynamicObject) -> Written {
    Written::Ours(Box::new(Live::new(&object, None)))
}

/// The object as it is. One without our label may still be ours, as a person may have taken it off: then
/// its UID is recorded on it.
async fn present(client: &Client, id: &Id, live: Option<Live>) -> Result<Option<Live>, RequestError> {
    if live.is_some() {
        return Ok(live);
    }
    let found = bounded(id.api(client).get_opt(&id.name)).await?;
    Ok(found.map(|found| {
        let mut live = Live::new(&found, None);
        let label = found.metadata.labels.as_ref().and_then(|labels| labels.get(name::MODE));
        live.managed &= live.recorded.is_some() || label.is_some_and(|mode| mode == name::OBJECTS);
        live
    }))
}

/// Makes an object, and records its UID on it. Not by force: who came in between keeps what is theirs.
async fn create(client: &Client, id: &Id, bound: &Bound, release: &Release) -> Result<Written, RequestError> {
    let made = apply(client, id, bound, release, None).await?;
    let uid = made.metadata.uid.unwrap_or_default();
    apply(client, id, bound, release, Some(&uid)).await.map(ours)
}

async fn apply(
    client: &Client,
    id: &Id,
    bound: &Bound,
    release: &Release,
    uid: Option<&str>,
) -> Result<DynamicObject, RequestError> {
    let params = PatchParams {
        force: uid.is_some(),
        field_validation: Some(ValidationDirective::Strict),
        ..PatchParams::apply(MANAGER)
    };
    let object = bound.written(release, uid);
    bounded(id.api(client).patch(&id.name, &params, &Patch::Apply(&object))).await
}

/// Writes the status of an object with this UID.
pub(super) async fn write_status(
    client: Client,
    id: Id,
    uid: String,
    status: Value,
) -> (Id, Result<DynamicObject, RequestError>) {
    let object = json!({
        "apiVersion": id.kind.api_version(),
        "kind": id.kind.as_str(),
        "metadata": {"name": id.name, "namespace": id.namespace, "uid": uid},
        "status": status,
    });
    let params = PatchParams::apply(MANAGER).force();
    let written = bounded(id.api(&client).patch_status(&id.name, &params, &Patch::Apply(&object))).await;
    (id, written)
}

/// Removes exactly the object that was looked at.
pub(super) async fn remove(client: Client, id: Id, live: Live) -> (Id, Result<(), RequestError>) {
    let params = DeleteParams {
        preconditions: Some(Preconditions {
            uid: Some(live.uid),
            resource_version: Some(live.resource_version),
        }),
        ..DeleteParams::background()
    };
    let removed = match bounded(id.api(&client).delete(&id.name, &params)).await {
        Ok(_) => Ok(()),
        Err(error) if error.is_not_found() => Ok(()),
        Err(error) => Err(error),
    };
    (id, removed)
}
