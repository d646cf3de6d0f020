//! Paths and verbs: what is asked for, and by whom it is answered.

use std::net::IpAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Extension, Path, Request, State};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{get, post};
use futures_util::future::join;
use http::{HeaderMap, Method, Uri, header};
use render::access::Person;
use render::{ClusterName, UnitKey};
use serde_json::{Value, json};

use super::accept::{Form, form};
use super::answer::{READ_ONLY, Refused, answered, json_answer, typed};
use super::context::Context;
use super::costs::Asker;
use super::explanation::explanation;
use super::object::plain;
use super::query::pairs;
use super::resource::{GROUP, Resource, VERSION};
use super::sight::Sight;
use super::{discovery, metrics, objects, one_cluster, openapi, reconcile};
use crate::hub::asking::Asking;
use crate::limits::API_ANSWER_TIMEOUT;
use crate::wire::Dependants;

/// Who asks, where the door for people says so.
type Who = Option<Extension<Asker>>;

fn asker(who: Who) -> Asker {
    who.map_or_else(Asker::default, |Extension(who)| who)
}

/// Every path.
pub(super) fn router(context: Context) -> Router {
    let group = format!("/apis/{GROUP}");
    let version = format!("{group}/{VERSION}");
    Router::new()
        .route("/healthz", get(healthy))
        .route("/livez", get(healthy))
        .route("/readyz", get(ready))
        .route("/metrics", get(scrape))
        .route(reconcile::PATH, post(reconcile::reconcile))
        .route("/openapi/v3", get(async || json_answer(&openapi::index())))
        .route(&openapi::path(), get(async || json_answer(openapi::document())))
        .route("/version", get(async || json_answer(&discovery::version())))
        .route(
            "/api",
            get(async |headers: HeaderMap| roots(&headers, discovery::core_versions, discovery::aggregated_core)),
        )
        .route("/api/v1/namespaces/{name}", get(objects::namespace))
        .route("/api/v1", get(async || json_answer(&discovery::core_resources())))
        .route(
            "/apis",
            get(async |headers: HeaderMap| roots(&headers, discovery::groups, discovery::aggregated)),
        )
        .route(&group, get(async || json_answer(&discovery::group())))
        .route(&version, get(async || json_answer(&discovery::resources())))
        .route(&format!("{version}/rooms"), get(rooms))
        .route(&format!("{version}/{{resource}}"), get(objects::list))
        .route(&format!("{version}/{{resource}}/{{name}}"), get(objects::one))
        .route(
            &format!("{version}/namespaces/{{namespace}}/{{resource}}"),
            get(objects::list_namespace),
        )
        .route(
            &format!("{version}/namespaces/{{namespace}}/{{resource}}/{{name}}"),
            get(objects::one_of_namespace),
        )
        .route(
            &format!("{version}/namespaces/{{namespace}}/subscriptions/{{name}}/explanation"),
            get(explained),
        )
        .route(
            &format!("{version}/managedclusters/{{name}}/dependants"),
            get(dependants),
        )
        .route(&format!("{version}/managedclusters/{{name}}/tunnel"), get(tunnel))
        .route(
            &format!("{version}/managedclusters/{{name}}/capabilities"),
            get(capabilities),
        )
        .fallback(async || Response::from(Refused::not_found("the server could not find the requested resource")))
        .layer(middleware::from_fn_with_state(context.clone(), door))
        .with_state(context)
}

/// What holds for every request: it reads, it came under a name of this machine, and it has an end. A request
/// to look may come under any name, as webhooks do: it tells nothing, and changes nothing that Git does not say.
async fn door(State(context): State<Context>, request: Request, next: Next) -> Response {
    let asks_to_look = request.uri().path() == reconcile::PATH && *request.method() == Method::POST;
    if !asks_to_look && !matches!(*request.method(), Method::GET | Method::HEAD) {
        let path = request.uri().path().to_owned();
        return refuse_write(&context, &path).await.into();
    }
    if !asks_to_look && context.local_names && !came_under_a_local_name(request.headers(), request.uri()) {
        return Refused::forbidden("this API answers to localhost and loopback addresses only").into();
    }
    match tokio::time::timeout(API_ANSWER_TIMEOUT, next.run(request)).await {
        Ok(response) => response,
        Err(_) => Refused::unavailable("the answer took too long").into(),
    }
}

/// A web page can make a browser send requests here under the page's own name, and would then read what
/// comes back; a browser cannot lie about that name.
fn came_under_a_local_name(headers: &HeaderMap, uri: &Uri) -> bool {
    let header = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let Some(authority) = uri.authority().map(|authority| authority.as_str()).or(header) else {
        return true;
    };
    let Ok(authority) = authority.parse::<http::uri::Authority>() else {
        return false;
    };
    let host = authority.host().trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// A writer is told where writing happens, and for an object that is declared somewhere, where that is.
async fn refuse_write(context: &Context, path: &str) -> Refused {
    let mut message = READ_ONLY.to_owned();
    let parts: Vec<_> = path.split('/').collect();
    let named = match parts.as_slice() {
        [_, "apis", _, _, "namespaces", namespace, plural, name] => Some((*plural, *namespace, *name)),
        [_, "apis", _, _, plural, name] => Some((*plural, "", *name)),
        _ => None,
    };
    if let Some((plural, namespace, name)) = named
        && let Some(resource) = Resource::from_plural(plural)
        && let Some(item) = context
            .store
            .shelf(resource)
            .await
            .items
            .get(&(namespace.to_owned(), name.to_owned()))
        && !item.object.declared_in.is_empty()
    {
        message = format!("{message}; {name} is declared in {}", item.object.declared_in);
    }
    Refused::method_not_allowed(message)
}

async fn healthy() -> Response {
    typed("text/plain; charset=utf-8", "ok")
}

/// Ready once source and the state refs were looked at, and other hubs told who is connected to them: before that, an empty
/// list would be a lie, and a cluster that is there not found. Not ready any more from the word on that ends the hub.
async fn ready(State(context): State<Context>) -> Response {
    let why_not = if context.shutdown.is_cancelled() {
        "this hub is ending"
    } else if !context.store.has_looked() {
        "source and the state refs were not looked at yet"
    } else if !context.first_words.are_over() {
        "another hub has not told yet who is connected to it"
    } else {
        return healthy().await;
    };
    Refused::unavailable(why_not).into()
}

async fn scrape(State(context): State<Context>, who: Who) -> Response {
    let place = match context.costs.scrape(&asker(who), &context.tally) {
        Ok(place) => place,
        Err(refused) => return refused.into(),
    };
    let (state, door) = (context.store.snapshot(), context.tally.counts());
    let with_keys = context.asking.as_ref().map_or(0, Asking::with_keys);
    let written = tokio::task::spawn_blocking(move || {
        let _place = place;
        metrics::text(&state, &door, with_keys)
    });
    match written.await {
        Ok(Ok(text)) => typed(metrics::CONTENT_TYPE, text),
        Ok(Err(_)) | Err(_) => Refused::unavailable("the metrics could not be written").into(),
    }
}

fn roots(headers: &HeaderMap, plain: fn() -> Value, aggregated: fn() -> Value) -> Response {
    match form(headers, true) {
        Some(Form::Discovery) => {
            let content_type = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
            typed(content_type, aggregated().to_string())
        }
        Some(_) => json_answer(&plain()),
        None => Refused::not_acceptable().into(),
    }
}

/// Why a unit is where it is; `?cluster=NAME` narrows it.
async fn explained(
    State(context): State<Context>,
    Path((namespace, name)): Path<(String, String)>,
    who: Who,
    uri: Uri,
) -> Response {
    let asked = || {
        let unit = UnitKey::new(namespace.as_str(), name.as_str());
        let unit = unit.map_err(|_| Refused::no_such_in(GROUP, "subscriptions", &name))?;
        let cluster = pairs(&uri)?.into_iter().find(|(key, _)| key == "cluster");
        let cluster = cluster.map(|(_, name)| {
            ClusterName::parse(name.as_str()).map_err(|_| Refused::no_such_in(GROUP, "managedclusters", &name))
        });
        Ok((unit, cluster.transpose()?))
    };
    let (unit, cluster) = match asked() {
        Ok(asked) => asked,
        Err(refused) => return Refused::into(refused),
    };
    let place = match context.costs.explanation(&asker(who), &context.tally) {
        Ok(place) => place,
        Err(refused) => return refused.into(),
    };
    let state = context.store.snapshot();
    let previews = context.asking.as_ref().map(|asking| asking.previews(&state));
    let known = (previews.unwrap_or_default(), context.rooms(&state));
    let made = tokio::task::spawn_blocking(move || {
        let _place = place;
        explanation(&state, &unit, cluster.as_ref(), (&known.0, &known.1))
    });
    match made.await {
        Ok(made) => answered(made.map(|value| json_answer(&value))),
        Err(_) => Refused::unavailable("the explanation could not be made").into(),
    }
}

/// What room clusters have, as a plan would be told now: for plans elsewhere.
async fn rooms(State(context): State<Context>) -> Response {
    json_answer(&plain(context.rooms(&context.store.snapshot())))
}

/// What a cluster said of itself: what charts are predicted for.
async fn capabilities(State(context): State<Context>, Path(name): Path<String>) -> Response {
    let said = one_cluster::capabilities(&context.store.snapshot(), &name);
    answered(said.map(|value| json_answer(&value)))
}

/// What goes or stays behind with objects of a cluster: `?object=GROUP/KIND/NAMESPACE/NAME`, once for each. A person hears of
/// what they may read there.
async fn dependants(
    State(context): State<Context>,
    Path(name): Path<String>,
    who: Who,
    person: Option<Extension<Arc<Person>>>,
    uri: Uri,
) -> Response {
    let place = context.costs.question(&asker(who), &context.tally);
    let state = context.store.snapshot();
    let asked = place.and_then(|place| Ok((place, one_cluster::question(&state, &name, &pairs(&uri)?)?)));
    match asked {
        Err(refused) => refused.into(),
        Ok((_place, (cluster, question))) => {
            let sight = person.map(|Extension(person)| Sight {
                person,
                fleet: state.fleet.clone(),
                cluster: cluster.clone(),
            });
            drop(state);
            let (question, note) = match &sight {
                Some(sight) => sight.question(question),
                None => (question, None),
            };
            let found = match &context.asking {
                _ if question.objects.is_empty() => Ok(Dependants::default()),
                None => return Refused::unavailable("this hub asks no clusters").into(),
                Some(asking) => asking.dependants(&cluster, question).await,
            };
            match found {
                Ok(found) => {
                    let mut shown = match sight {
                        Some(sight) => sight.answer(found),
                        None => found,
                    };
                    shown.notes.extend(note);
                    json_answer(&plain(shown))
                }
                Err(error) => Refused::unavailable(crate::fault::line(&error)).into(),
            }
        }
    }
}

/// What is known of a cluster's tunnel, and with `?ping=N` what became of so many pings.
async fn tunnel(State(context): State<Context>, Path(name): Path<String>, who: Who, uri: Uri) -> Response {
    let state = context.store.snapshot();
    let asked = one_cluster::known(&state, &name).and_then(|cluster| {
        let pings = one_cluster::pings(&pairs(&uri)?)?;
        context.costs.pings(&asker(who), pings, &context.tally)?;
        Ok((cluster, pings))
    });
    drop(state);
    match (asked, &context.asking) {
        (Err(refused), _) => refused.into(),
        (Ok(_), None) => Refused::unavailable("this hub has no tunnels").into(),
        (Ok((cluster, pings)), Some(asking)) => {
            // Whoever times pings does not wait for what other hubs know.
            let elsewhere = async {
                match pings {
                    0 => asking.elsewhere(&cluster).await,
                    _ => Vec::new(),
                }
            };
            let (tries, elsewhere) = join(asking.ping(&cluster, pings), elsewhere).await;
            json_answer(&json!({
                "cluster": cluster,
                "hub": env!("CARGO_PKG_VERSION"),
                "pings": tries,
                "seen": asking.tunnel(&cluster),
                "elsewhere": plain(elsewhere),
            }))
        }
    }
}
