//! The requests: the objects that are asked for, what else is where they are, and the volumes of claims.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::{StreamExt, stream};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use kube::Client;
use kube::api::{Api, DynamicObject, ListParams, ObjectMeta};
use render::ObjectKey;
use render::model::ANNOTATION_UNIT;
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use super::judge::{Asked, Facts, Seen, name};
use super::notes::Notes;
use crate::apply::FIELD_MANAGER;
use crate::apply::discovery::{Kinds, ServedKind};
use crate::apply::helm::LABEL_OWNER;
use crate::apply::request::{RequestError, bounded};
use crate::apply::unit::in_namespace;
use crate::limits::{
    DEPENDANTS_CLAIMS_MAX, DEPENDANTS_CONCURRENCY, DEPENDANTS_LOOKED_MAX, DEPENDANTS_NAMED_MAX, DEPENDANTS_TIMEOUT,
    LIST_PAGE_OBJECTS,
};
use crate::wire::{ClaimVolume, Counted};

/// Where Helm notes on an object which release brought it.
const ANNOTATION_RELEASE: (&str, &str) = ("meta.helm.sh/release-namespace", "meta.helm.sh/release-name");

/// Asks an API server, until a time.
pub(super) struct Gather {
    client: Client,
    deadline: Instant,
    notes: Notes,
}

/// Where is looked: everywhere, or in these namespaces.
enum Scope {
    All,
    Namespaces(BTreeSet<String>),
}

/// One kind, in one namespace or everywhere.
struct Listing {
    kind: Arc<ServedKind>,
    namespace: Option<String>,
}

impl Gather {
    pub(super) fn new(client: Client, deadline: Instant) -> Self {
        Self {
            client,
            deadline,
            notes: Notes::default(),
        }
    }

    pub(super) fn note(&mut self, note: String) {
        self.notes.note(note);
    }

    pub(super) fn into_notes(self) -> Vec<String> {
        self.notes.into_lines()
    }

    /// Everything that is to be known of these objects, as far as time allows.
    pub(super) async fn run(&mut self, asked: &[ObjectKey]) -> Facts {
        let mut facts = Facts::default();
        let client = self.client.clone();
        let kinds = match self.in_time(Kinds::discover(&client)).await {
            Some(Ok(kinds)) => kinds,
            Some(Err(error)) => {
                self.note(error.line());
                return facts;
            }
            None => return facts,
        };
        for group in kinds.away() {
            self.note(format!(
                "API group {group} does not answer: its objects were not looked at"
            ));
        }
        self.asked(&kinds, asked, &mut facts).await;
        if let Some(scope) = scope(&kinds, &facts.asked) {
            self.list(&kinds, &scope, &mut facts).await;
        }
        self.volumes(&mut facts).await;
        facts
    }

    /// `None`, with a note, once the time is over.
    async fn in_time<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        let done = timeout_at(self.deadline, work).await.ok();
        if done.is_none() {
            let seconds = DEPENDANTS_TIMEOUT.as_secs();
            self.note(format!("not all was looked at within {seconds} s"));
        }
        done
    }

    /// The objects themselves. One that is not there, or not the fleet's, is none that goes.
    async fn asked(&mut self, kinds: &Kinds, keys: &[ObjectKey], facts: &mut Facts) {
        let mut requests = Vec::new();
        for key in keys {
            requests.push(asked(self.client.clone(), kinds, key.clone()));
        }
        let found = stream::iter(requests)
            .buffered(DEPENDANTS_CONCURRENCY)
            .collect::<Vec<_>>();
        for found in self.in_time(found).await.unwrap_or_default() {
            match found {
                Ok(found) => facts.asked.extend(found),
                Err((key, words)) => {
                    let words = format!("{} {} could not be read: {words}", key.kind, key.name);
                    self.notes.failed("objects could not be read", key.to_string(), words);
                }
            }
        }
    }

    async fn list(&mut self, kinds: &Kinds, scope: &Scope, facts: &mut Facts) {
        let mut all = Vec::new();
        for listing in listings(kinds, scope) {
            all.push(pages(&self.client, listing));
        }
        let mut pages = stream::iter(all).flatten_unordered(DEPENDANTS_CONCURRENCY);
        while let Some(Some(page)) = self.in_time(pages.next()).await {
            let (kind, items) = match page {
                Ok(page) => page,
                Err((kind, words)) => {
                    self.notes.failed("kinds could not be listed", kind, words);
                    continue;
                }
            };
            for metadata in items {
                if facts.seen.len() >= DEPENDANTS_LOOKED_MAX {
                    self.note(format!("only the first {DEPENDANTS_LOOKED_MAX} objects were looked at"));
                    return;
                }
                facts.releases.extend(release_of_ours(&metadata));
                if let Some(uid) = metadata.uid.clone() {
                    facts.seen.insert(uid, seen(&kind, &metadata));
                }
            }
        }
    }

    /// The volumes of all claims that were seen.
    async fn volumes(&mut self, facts: &mut Facts) {
        let is_claim = |key: &ObjectKey| key.group.is_empty() && key.kind == "PersistentVolumeClaim";
        let seen = facts.seen.iter().filter(|(_, seen)| is_claim(&seen.key));
        let seen = seen.map(|(uid, seen)| (uid.clone(), seen.key.clone()));
        let mut claims: Vec<_> = seen.collect();
        if claims.len() > DEPENDANTS_CLAIMS_MAX {
            let rest = claims.len() - DEPENDANTS_CLAIMS_MAX;
            self.note(format!("the volumes of {rest} more claims were not looked at"));
            claims.truncate(DEPENDANTS_CLAIMS_MAX);
        }
        let mut requests = Vec::new();
        for (uid, key) in claims {
            let client = self.client.clone();
            requests.push(async move { (uid, volume(&client, &key).await) });
        }
        let found = stream::iter(requests)
            .buffered(DEPENDANTS_CONCURRENCY)
            .collect::<Vec<_>>();
        for (uid, found) in self.in_time(found).await.unwrap_or_default() {
            match found {
                Ok(found) => facts.volumes.extend(found.map(|volume| (uid, volume))),
                Err(error) => {
                    let words = format!("the volume of a claim could not be read: {}", error.line());
                    self.notes.failed("volumes could not be read", uid, words);
                }
            }
        }
    }
}

/// An object as it is there; `None` where it is not, or is nobody's of the fleet. What went wrong is in words.
async fn asked(client: Client, kinds: &Kinds, key: ObjectKey) -> Result<Option<Asked>, (ObjectKey, String)> {
    let version = match key.group.as_str() {
        "" => "v1".to_owned(),
        group => format!("{group}/v1"),
    };
    let Some(kind) = kinds.find_any(&version, &key.kind) else {
        return Ok(None);
    };
    let namespace = match (kind.namespaced, key.namespace.as_str()) {
        (true, "") => "default",
        (true, namespace) => namespace,
        (false, _) => "",
    };
    let found = bounded(kind.api(&client, namespace).get_metadata_opt(&key.name)).await;
    let failed = |error: RequestError| (key.clone(), error.line());
    let Some(found) = found.map_err(failed)? else {
        return Ok(None);
    };
    if !is_ours(&found.metadata) {
        return Ok(None);
    }
    let custom_resources = match (key.group.as_str(), key.kind.as_str()) {
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            custom_resources(&client, kinds, kind, &key).await.map_err(failed)?
        }
        _ => None,
    };
    Ok(Some(Asked {
        place: in_namespace(&key, namespace),
        key,
        uid: found.metadata.uid.unwrap_or_default(),
        finalizers: found.metadata.finalizers.unwrap_or_default(),
        custom_resources,
    }))
}

/// How many objects of its kind there are, and the first few.
async fn custom_resources(
    client: &Client,
    kinds: &Kinds,
    kind: &ServedKind,
    key: &ObjectKey,
) -> Result<Option<Counted>, RequestError> {
    let Some(definition) = bounded(kind.api(client, "").get_opt(&key.name)).await? else {
        return Ok(None);
    };
    let text = |pointer: &str| definition.data.pointer(pointer).and_then(Value::as_str);
    let (group, defined) = (text("/spec/group"), text("/spec/names/kind"));
    let (Some(group), Some(defined)) = (group, defined) else {
        return Ok(None);
    };
    let Some(served) = kinds.find_any(&format!("{group}/v1"), defined) else {
        return Ok(None);
    };
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &served.resource);
    let named = u32::try_from(DEPENDANTS_NAMED_MAX).unwrap_or(u32::MAX);
    let page = bounded(api.list_metadata(&ListParams::default().limit(named))).await?;
    let more = page.metadata.remaining_item_count.unwrap_or_default();
    let names = page.items.iter().map(|item| name(&served.key_of(&item.metadata), ""));
    let counted = Counted {
        kind: format!("{defined}.{group}"),
        count: page.items.len() + usize::try_from(more).unwrap_or_default(),
        names: names.collect(),
    };
    Ok((counted.count > 0).then_some(counted))
}

/// Where what names these objects can be: owners and what they own share a namespace, unless the owner has none.
fn scope(kinds: &Kinds, asked: &[Asked]) -> Option<Scope> {
    let mut namespaces = BTreeSet::new();
    for Asked { place, .. } in asked {
        match (place.group.as_str(), place.kind.as_str()) {
            ("", "Namespace") => drop(namespaces.insert(place.name.clone())),
            // Its objects are counted, and own nothing of it.
            ("apiextensions.k8s.io", "CustomResourceDefinition") => {}
            _ if place.namespace.is_empty() => return Some(Scope::All),
            _ => drop(namespaces.insert(place.namespace.clone())),
        }
    }
    let has_kinds = kinds.preferred().next().is_some();
    (has_kinds && !namespaces.is_empty()).then_some(Scope::Namespaces(namespaces))
}

fn listings(kinds: &Kinds, scope: &Scope) -> Vec<Listing> {
    // Nobody owns events, and they are the most of all.
    let wanted = kinds.preferred().filter(|kind| kind.resource.kind != "Event");
    let of_kind = |kind: &Arc<ServedKind>| -> Vec<Listing> {
        let listing = |namespace| Listing {
            kind: Arc::clone(kind),
            namespace,
        };
        match scope {
            Scope::All => vec![listing(None)],
            Scope::Namespaces(_) if !kind.namespaced => Vec::new(),
            Scope::Namespaces(names) => names.iter().map(|name| listing(Some(name.clone()))).collect(),
        }
    };
    wanted.flat_map(of_kind).collect()
}

/// A kind and objects of it, or the kind and why not.
type Page = Result<(Arc<ServedKind>, Vec<ObjectMeta>), (String, String)>;

/// A listing page by page; an error ends it.
fn pages(client: &Client, listing: Listing) -> stream::BoxStream<'static, Page> {
    let resource = &listing.kind.resource;
    let api: Api<DynamicObject> = match &listing.namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, resource),
        None => Api::all_with(client.clone(), resource),
    };
    let first = Some(ListParams::default().limit(LIST_PAGE_OBJECTS));
    let kind = listing.kind;
    Box::pin(stream::unfold(first, move |params| {
        let (api, kind) = (api.clone(), Arc::clone(&kind));
        async move {
            let params = params?;
            match bounded(api.list_metadata(&params)).await {
                Ok(page) => {
                    let next = page.metadata.continue_.filter(|token| !token.is_empty());
                    let items = page.items.into_iter().map(|item| item.metadata).collect();
                    let next = next.map(|token| params.continue_token(&token));
                    Some((Ok((kind, items)), next))
                }
                // It went away meanwhile, or only serves single objects.
                Err(error) if matches!(error.code(), Some(404 | 405)) => None,
                Err(error) => {
                    let resource = &kind.resource;
                    let words = format!("{} could not be listed: {}", resource.kind, error.line());
                    Some((Err((format!("{}/{}", resource.group, resource.kind), words)), None))
                }
            }
        }
    }))
}

fn seen(kind: &ServedKind, metadata: &ObjectMeta) -> Seen {
    let owners = metadata.owner_references.iter().flatten();
    let annotations = metadata.annotations.as_ref();
    let annotation = |name: &str| annotations.and_then(|annotations| annotations.get(name));
    let release = annotation(ANNOTATION_RELEASE.0).zip(annotation(ANNOTATION_RELEASE.1));
    Seen {
        key: kind.key_of(metadata),
        owners: owners.map(|owner| owner.uid.clone()).collect(),
        ours: is_ours(metadata),
        release: release
            .map(|(namespace, name)| format!("{namespace}/{name}"))
            .or_else(|| release_of_ours(metadata)),
    }
}

fn is_ours(metadata: &ObjectMeta) -> bool {
    let annotations = metadata.annotations.as_ref();
    let fields = metadata.managed_fields.iter().flatten();
    annotations.is_some_and(|annotations| annotations.contains_key(ANNOTATION_UNIT))
        || fields
            .into_iter()
            .any(|entry| entry.manager.as_deref() == Some(FIELD_MANAGER))
}

/// The release whose revision a Secret is, where the fleet made it; the Secret is the release's own.
fn release_of_ours(metadata: &ObjectMeta) -> Option<String> {
    let labels = metadata.labels.as_ref()?;
    labels.get(LABEL_OWNER)?;
    Some(format!("{}/{}", metadata.namespace.as_ref()?, labels.get("name")?))
}

/// What a claim is bound to; `None` where the claim is gone.
async fn volume(client: &Client, claim: &ObjectKey) -> Result<Option<ClaimVolume>, RequestError> {
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(client.clone(), &claim.namespace);
    let Some(found) = bounded(claims.get_opt(&claim.name)).await? else {
        return Ok(None);
    };
    let mut told = ClaimVolume {
        claim: format!("{}/{}", claim.namespace, claim.name),
        volume: found.spec.and_then(|spec| spec.volume_name).unwrap_or_default(),
        reclaim_policy: String::new(),
    };
    if !told.volume.is_empty() {
        let volumes: Api<PersistentVolume> = Api::all(client.clone());
        let volume = bounded(volumes.get_opt(&told.volume)).await?;
        let policy = volume.and_then(|volume| volume.spec?.persistent_volume_reclaim_policy);
        told.reclaim_policy = policy.unwrap_or_default();
    }
    Ok(Some(told))
}
