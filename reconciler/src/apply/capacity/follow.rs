//! Listens to nodes and pods. Objects are read where they arrive and dropped, so that memory grows with what is counted
//! of them, not with what they say.

use std::collections::BTreeMap;
use std::pin::Pin;

use futures_util::stream::{Stream, StreamExt, select};
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, ResourceExt};
use serde_json::Value;

use super::survey::{self, Node, Pod};
use crate::apply::watch::patient;
use crate::limits::{WATCH_LASTS, WATCH_PAGE_OBJECTS};

/// What was told of nodes and pods.
#[derive(Debug)]
pub(super) enum Told {
    /// All nodes.
    Nodes(BTreeMap<String, Node>),
    /// One, or that it is gone.
    Node(String, Option<Node>),
    /// All pods that take room.
    Pods(BTreeMap<String, Pod>),
    /// One, or that it takes no room any more.
    Pod(String, Option<Pod>),
    /// A watch does not work.
    Failed(String),
}

/// The two watches.
pub(super) struct Follower {
    events: Pin<Box<dyn Stream<Item = Told> + Send>>,
}

impl Follower {
    pub(super) fn start(client: &Client) -> Self {
        let nodes = listed(client, "Node", survey::node, Told::Nodes, Told::Node);
        let pods = listed(client, "Pod", survey::pod, Told::Pods, Told::Pod);
        Self {
            events: Box::pin(select(nodes, pods)),
        }
    }

    /// What is told next. Cancel-safe.
    pub(super) async fn next(&mut self) -> Told {
        match self.events.next().await {
            Some(told) => told,
            // A watch never ends by itself.
            None => std::future::pending().await,
        }
    }
}

fn listed<T: Send + 'static>(
    client: &Client,
    kind: &str,
    read: fn(&Value) -> Option<T>,
    all: fn(BTreeMap<String, T>) -> Told,
    one: fn(String, Option<T>) -> Told,
) -> impl Stream<Item = Told> + Send + 'static {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", kind));
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let config = watcher::Config::default()
        .timeout(WATCH_LASTS.as_secs().try_into().unwrap_or(60))
        .page_size(WATCH_PAGE_OBJECTS);
    let mut list: BTreeMap<String, T> = BTreeMap::new();
    patient(watcher(api, config)).filter_map(move |event| {
        let told = match event {
            Ok(Event::Init) => None,
            Ok(Event::InitApply(object)) => {
                let (name, item) = found(object, read);
                list.extend(item.map(|item| (name, item)));
                None
            }
            Ok(Event::InitDone) => Some(all(std::mem::take(&mut list))),
            Ok(Event::Apply(object)) => {
                let (name, item) = found(object, read);
                Some(one(name, item))
            }
            Ok(Event::Delete(object)) => Some(one(name(&object), None)),
            Err(error) => {
                // The list begins anew.
                list.clear();
                Some(Told::Failed(crate::fault::line(&error)))
            }
        };
        std::future::ready(told)
    })
}

fn name(object: &DynamicObject) -> String {
    format!("{}/{}", object.namespace().unwrap_or_default(), object.name_any())
        .trim_start_matches('/')
        .to_owned()
}

fn found<T>(object: DynamicObject, read: fn(&Value) -> Option<T>) -> (String, Option<T>) {
    let name = name(&object);
    let mut value = object.data;
    value["metadata"] = serde_json::to_value(object.metadata).unwrap_or_default();
    (name, read(&value))
}
