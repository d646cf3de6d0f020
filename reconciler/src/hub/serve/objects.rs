//! Lists, watches and single objects of our own kinds.

use std::ops::Bound;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::Response;
use http::{HeaderMap, Uri};
use serde_json::json;

use super::accept::form;
use super::answer::{Refused, answered, json_answer, typed};
use super::context::Context;
use super::list;
use super::query::{Query, pairs, write_continue};
use super::resource::{GROUP, Resource};
use super::table::Shape;
use super::watch::Watch;
use crate::limits::API_WATCHES_MAX;

/// kubectl asks for the namespace of an object that it was told is not there, and shows what it hears then.
pub(super) async fn namespace(context: State<Context>, Path(name): Path<String>) -> Response {
    for resource in Resource::ALL {
        let shelf = context.store.shelf(resource).await;
        if shelf.items.keys().any(|(namespace, _)| *namespace == name) {
            let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
            return json_answer(&namespace);
        }
    }
    Refused::no_such_in("", "namespaces", &name).into()
}

pub(super) async fn list(
    context: State<Context>,
    Path(resource): Path<String>,
    headers: HeaderMap,
    uri: Uri,
) -> Response {
    answered(listed(&context, None, &resource, &headers, &uri).await)
}

pub(super) async fn list_namespace(
    context: State<Context>,
    Path((namespace, resource)): Path<(String, String)>,
    headers: HeaderMap,
    uri: Uri,
) -> Response {
    answered(listed(&context, Some(namespace), &resource, &headers, &uri).await)
}

pub(super) async fn one(
    context: State<Context>,
    Path(names): Path<(String, String)>,
    headers: HeaderMap,
    uri: Uri,
) -> Response {
    answered(got(&context, "", (&names.0, &names.1), &headers, &uri).await)
}

pub(super) async fn one_of_namespace(
    context: State<Context>,
    Path((namespace, resource, name)): Path<(String, String, String)>,
    headers: HeaderMap,
    uri: Uri,
) -> Response {
    answered(got(&context, &namespace, (&resource, &name), &headers, &uri).await)
}

fn asked(context: &Context, plural: &str, headers: &HeaderMap, uri: &Uri) -> Result<(Shape, Query), Refused> {
    let unknown = || Refused::not_found(format!("the server could not find the requested resource {plural:?}"));
    let resource = Resource::from_plural(plural).ok_or_else(unknown)?;
    let form = form(headers, false).ok_or_else(Refused::not_acceptable)?;
    let query = Query::parse(&pairs(uri)?)?;
    Ok((
        Shape {
            resource,
            form,
            rows: query.rows,
            asking: context.asking.clone(),
        },
        query,
    ))
}

async fn listed(
    context: &Context,
    namespace: Option<String>,
    plural: &str,
    headers: &HeaderMap,
    uri: &Uri,
) -> Result<Response, Refused> {
    let (shape, mut query) = asked(context, plural, headers, uri)?;
    if namespace.is_some() {
        if !shape.resource.names().namespaced {
            return Err(Refused::not_found(format!("{plural} are not in namespaces")));
        }
        query.namespace = namespace;
    }
    if query.watch {
        return watched(context, shape, query);
    }
    let shelf = context.store.shelf(shape.resource).await;
    let after = query.after.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
    let following = shelf.items.range((after, Bound::Unbounded));
    let mut selected = following.filter(|(_, item)| query.selects(&item.object));
    let first = selected.by_ref().take(query.limit.unwrap_or(usize::MAX));
    let items: Vec<_> = first.map(|(_, item)| Arc::clone(item)).collect();
    let mut metadata = json!({ "resourceVersion": shelf.version.to_string() });
    let left = selected.count();
    if left > 0 {
        metadata["remainingItemCount"] = json!(left);
        metadata["continue"] = json!(items.last().map(|last| write_continue(&last.object)));
    }
    Ok(list::listed(shape, metadata, items))
}

fn watched(context: &Context, shape: Shape, query: Query) -> Result<Response, Refused> {
    let permit = Arc::clone(&context.watches).try_acquire_owned();
    let permit = permit.map_err(|_| Refused::too_many(format!("{API_WATCHES_MAX} watches run already")))?;
    let (store, shutdown) = (Arc::clone(&context.store), context.shutdown.clone());
    let watch = Watch {
        store,
        shape,
        query,
        shutdown,
        _permit: permit,
    };
    Ok(typed("application/json", Body::from_stream(watch.events())))
}

async fn got(
    context: &Context,
    namespace: &str,
    (plural, name): (&str, &str),
    headers: &HeaderMap,
    uri: &Uri,
) -> Result<Response, Refused> {
    let (shape, _) = asked(context, plural, headers, uri)?;
    let shelf = context.store.shelf(shape.resource).await;
    let item = shelf.items.get(&(namespace.to_owned(), name.to_owned()));
    let missing = || Refused::no_such_in(GROUP, plural, name);
    Ok(json_answer(&shape.one(item.ok_or_else(missing)?)))
}
