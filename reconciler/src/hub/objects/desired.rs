//! What a hub cluster should hold, from what is released and declared. A plain function.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use render::model::{Cluster, Dividing, LABEL_CLUSTER_ID, LABEL_CLUSTER_NAME, Scheduling};
use render::published::{Placement, Variant};
use render::{Digest, Fleet, Published, Unit, UnitKey};
use serde_json::{Map, Value, json};

use super::content::{self, Contents, Part};
use super::kind::{Id, Kind};
use super::name;

/// Everything that a hub cluster should hold.
#[derive(Debug, Default)]
pub(super) struct Desired {
    pub(super) objects: BTreeMap<Id, Wanted>,
    /// Namespaces that are a cluster's, so that nobody else's will do.
    pub(super) cluster_namespaces: BTreeSet<String>,
    /// What could not be read; while there is any, nothing may be removed.
    pub(super) unreadable: Vec<String>,
}

/// One object, before the UIDs of others are put in.
#[derive(Clone, Debug, Default)]
pub(super) struct Wanted {
    pub(super) labels: BTreeMap<String, String>,
    pub(super) annotations: BTreeMap<String, String>,
    /// Null for a kind without one.
    pub(super) spec: Value,
    /// The larger share of a Description's spec.
    pub(super) part: Option<Arc<Part>>,
    /// Labels whose value is another object's UID.
    pub(super) uid_labels: Vec<(&'static str, Id)>,
    /// The object that it belongs to.
    pub(super) owner: Option<Id>,
}

/// Finds the content of a variant with a placement's replicas.
pub(super) type FindContents<'a> = dyn FnMut(&UnitKey, &Placement, &Variant) -> Result<Arc<Contents>, String> + 'a;

/// What should be there. `find` gives contents; one that it cannot give leaves its pair out.
pub(super) fn desired(fleet: &Fleet, released: &Published, find: &mut FindContents<'_>) -> Desired {
    let mut desired = Desired::default();
    for cluster in fleet.clusters.values() {
        desired.cluster_namespaces.insert(cluster.namespace.clone());
        desired.namespace(&cluster.namespace, Some(cluster));
        let id = Id::new(Kind::ManagedCluster, &cluster.namespace, cluster.name.as_str());
        desired.objects.insert(id, managed_cluster(cluster));
    }
    let units: BTreeSet<_> = fleet.units.keys().chain(released.units.keys()).collect();
    for key in units {
        desired.namespace(key.namespace(), None);
        desired
            .objects
            .insert(subscription_id(key), subscription(key, fleet.units.get(key)));
    }
    for (key, unit) in &released.units {
        for cluster in unit.clusters.keys().filter_map(|name| fleet.clusters.get(name)) {
            let Some((placement, variant)) = unit.entry(&cluster.name) else {
                continue;
            };
            match find(key, placement, variant) {
                Ok(contents) => desired.pair(key, cluster, (placement, variant), &contents),
                Err(message) => desired.unreadable.push(format!("{key}: {message}")),
            }
        }
    }
    desired
}

/// Which Subscription a unit is.
pub(super) fn subscription_id(unit: &UnitKey) -> Id {
    Id::new(Kind::Subscription, unit.namespace(), unit.name())
}

impl Desired {
    fn namespace(&mut self, name: &str, cluster: Option<&Cluster>) {
        let wanted = self.objects.entry(Id::namespace(name)).or_default();
        let own = [(name::MODE, name::OBJECTS), (name::CREATED_BY, "flotilla")];
        wanted.labels.extend(own.map(pair));
        if let Some(cluster) = cluster {
            wanted.labels.extend(cluster_labels(cluster));
        }
    }

    /// A unit on a cluster: its Base, and its Descriptions.
    fn pair(&mut self, unit: &UnitKey, cluster: &Cluster, entry: (&Placement, &Variant), contents: &Contents) {
        let base = name::base(unit, &cluster.name);
        let base_id = Id::new(Kind::Base, &cluster.namespace, &base);
        let shown = shown(entry);
        let (subscription, namespace) = (subscription_id(unit), &cluster.namespace);
        let mut annotations = shown.clone();
        annotations.extend(left_out(contents.feeds_left_out));
        let wanted = Wanted {
            labels: labels(
                Kind::Subscription,
                (unit.namespace(), unit.name()),
                Some((unit, cluster)),
            ),
            annotations,
            spec: json!({"feeds": contents.feeds}),
            uid_labels: vec![
                (name::CONFIG_UID, subscription.clone()),
                (name::SUBS_UID, subscription.clone()),
            ],
            ..Wanted::default()
        };
        self.objects.insert(base_id.clone(), wanted);
        for part in &contents.parts {
            let id = name::description(&base, part.deployer.as_str(), part.index);
            let mut annotations = shown.clone();
            if part.referenced > 0 {
                annotations.insert(name::REFERENCED.to_owned(), part.referenced.to_string());
            }
            let wanted = Wanted {
                labels: labels(Kind::Base, (namespace, &base), Some((unit, cluster))),
                annotations,
                spec: json!({"deployer": part.deployer.as_str()}),
                part: Some(Arc::clone(part)),
                uid_labels: vec![
                    (name::CONFIG_UID, base_id.clone()),
                    (name::SUBS_UID, subscription.clone()),
                ],
                owner: Some(base_id.clone()),
            };
            self.objects.insert(Id::new(Kind::Description, namespace, id), wanted);
        }
    }
}

fn managed_cluster(cluster: &Cluster) -> Wanted {
    let mut labels = cluster.labels.clone();
    labels.extend([(name::MODE, name::OBJECTS), (name::CREATED_BY, "flotilla")].map(pair));
    labels.extend(cluster_labels(cluster));
    let mut spec = json!({
        "clusterId": name::cluster_id(cluster),
        "clusterType": match cluster.cluster_type.as_str() {
            "" => "StandardCluster",
            written => written,
        },
        "syncMode": cluster.sync_mode,
    });
    if !cluster.taints.is_empty() {
        spec["taints"] = json!(cluster.taints);
    }
    Wanted {
        labels,
        spec,
        ..Wanted::default()
    }
}

/// A unit that is not declared any more, or cannot be read, still has its name while it is released.
fn subscription(key: &UnitKey, unit: Option<&Unit>) -> Wanted {
    let (mut subscribers, mut feeds, mut left_out_count) = (Vec::new(), Vec::new(), 0);
    // Clusternet's scheduler leaves a Subscription alone that names another one.
    let mut spec = json!({"schedulerName": "flotilla", "schedulingStrategy": "Replication"});
    if let Some(unit) = unit {
        let declared = &unit.subscription;
        // One without affinity selects nothing, and Clusternet's form cannot say that.
        let selecting = declared.subscribers.iter().filter_map(|subscriber| {
            let mut form = json!({"clusterAffinity": subscriber.cluster_affinity.as_ref()?});
            if let Some(weight) = subscriber.weight {
                form["weight"] = json!(weight);
            }
            Some(form)
        });
        subscribers.extend(selecting);
        if !declared.tolerations.is_empty() {
            spec["clusterTolerations"] = without_empty(json!(declared.tolerations));
        }
        match declared.scheduling {
            Scheduling::Replication => {}
            Scheduling::Dividing(Dividing::Static) => {
                spec["schedulingStrategy"] = json!("Dividing");
                spec["dividingScheduling"] = json!({"type": "Static"});
            }
            Scheduling::Dividing(Dividing::Dynamic(strategy)) => {
                spec["schedulingStrategy"] = json!("Dividing");
                spec["dividingScheduling"] = json!({"type": "Dynamic", "dynamicDividing": {"strategy": strategy}});
            }
        }
        let all = unit.base.objects.iter();
        let all = all.map(|object| content::feed(&object.api_version, &object.key));
        (feeds, left_out_count) = content::bounded(all.collect());
    }
    spec["subscribers"] = Value::Array(subscribers);
    spec["feeds"] = Value::Array(feeds);
    Wanted {
        labels: labels(Kind::Subscription, (key.namespace(), key.name()), None),
        annotations: left_out(left_out_count).into_iter().collect(),
        spec,
        ..Wanted::default()
    }
}

/// Tolerations have fields that are empty where Kubernetes leaves them out.
fn without_empty(mut items: Value) -> Value {
    for item in items.as_array_mut().into_iter().flatten() {
        if let Some(fields) = item.as_object_mut() {
            fields.retain(|_, value| !value.is_null() && value != "");
        }
    }
    items
}

fn pair((name, value): (&str, &str)) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

fn cluster_labels(cluster: &Cluster) -> [(String, String); 2] {
    [
        (LABEL_CLUSTER_ID.to_owned(), name::cluster_id(cluster)),
        pair((LABEL_CLUSTER_NAME, cluster.name.as_str())),
    ]
}

/// Clusternet's labels of an object that was made from another one.
fn labels(kind: Kind, made_from: (&str, &str), of: Option<(&UnitKey, &Cluster)>) -> BTreeMap<String, String> {
    let (namespace, made_from) = made_from;
    let mut labels = BTreeMap::from([(name::MODE, name::OBJECTS), (name::CREATED_BY, "flotilla")].map(pair));
    let mut fitting = |label: &str, value: &str| {
        if value.len() <= name::LABEL_VALUE_BYTES_MAX {
            labels.insert(label.to_owned(), value.to_owned());
        }
    };
    if let Some((unit, cluster)) = of {
        fitting(name::CONFIG_KIND, kind.as_str());
        fitting(name::CONFIG_NAMESPACE, namespace);
        fitting(name::CONFIG_NAME, made_from);
        fitting(name::SUBS_NAMESPACE, unit.namespace());
        fitting(name::SUBS_NAME, unit.name());
        for (label, value) in cluster_labels(cluster) {
            fitting(&label, &value);
        }
    }
    labels
}

/// What people are shown of a placement.
fn shown((placement, variant): (&Placement, &Variant)) -> BTreeMap<String, String> {
    BTreeMap::from([
        (name::VARIANT.to_owned(), placement.variant.to_string()),
        (name::VARIANT_DIGEST.to_owned(), variant.digest.to_string()),
        (name::REVISION.to_owned(), variant.revision.to_string()),
    ])
}

fn left_out(count: usize) -> Option<(String, String)> {
    (count > 0).then(|| (name::FEEDS_LEFT_OUT.to_owned(), count.to_string()))
}

/// An object with the UIDs of others put in: all of it but its part, and but the record of its writing.
#[derive(Clone, Debug)]
pub(super) struct Bound {
    pub(super) object: Value,
    part: Option<Arc<Part>>,
    /// Over all of it.
    pub(super) digest: Digest,
}

/// The release that an object is written with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Release {
    /// Root commit of `released`.
    pub(super) lineage: String,
    pub(super) sequence: u64,
}

impl Wanted {
    /// Puts in the UIDs of others.
    ///
    /// # Errors
    ///
    /// The object that is not there yet.
    pub(super) fn bind<'a>(&self, id: &Id, lineage: &str, uid: impl Fn(&Id) -> Option<&'a str>) -> Result<Bound, Id> {
        let found = |of: &Id| uid(of).ok_or_else(|| of.clone());
        let mut labels = self.labels.clone();
        for (label, of) in &self.uid_labels {
            labels.insert((*label).to_owned(), found(of)?.to_owned());
        }
        let mut annotations = self.annotations.clone();
        annotations.insert(name::LINEAGE.to_owned(), lineage.to_owned());
        let mut metadata = json!({"name": id.name, "labels": labels, "annotations": annotations});
        if !id.namespace.is_empty() {
            metadata["namespace"] = json!(id.namespace);
        }
        if let Some(owner) = &self.owner {
            metadata["ownerReferences"] = json!([{
                "apiVersion": owner.kind.api_version(),
                "kind": owner.kind.as_str(),
                "name": owner.name,
                "uid": found(owner)?,
                "controller": true,
            }]);
        }
        let mut object = json!({
            "apiVersion": id.kind.api_version(),
            "kind": id.kind.as_str(),
            "metadata": metadata,
        });
        if !self.spec.is_null() {
            object["spec"] = self.spec.clone();
        }
        let part = self.part.as_ref().map(|part| part.digest.to_string());
        let digest = Digest::of_value(&json!({"object": object, "part": part}));
        Ok(Bound {
            object,
            part: self.part.clone(),
            digest,
        })
    }
}

impl Bound {
    /// All of it, without the record of its writing.
    pub(super) fn whole(&self) -> Value {
        let mut whole = self.object.clone();
        let part = self.part.as_ref().and_then(|part| part.spec.as_object());
        if let Some(spec) = whole.get_mut("spec").and_then(Value::as_object_mut) {
            spec.extend(part.cloned().unwrap_or_else(Map::new));
        }
        whole
    }

    /// All of it as it is written, with the UID where it has one already.
    pub(super) fn written(&self, release: &Release, uid: Option<&str>) -> Value {
        let mut whole = self.whole();
        let metadata = &mut whole["metadata"];
        metadata["annotations"][name::WRITTEN] = json!(self.digest.to_string());
        metadata["annotations"][name::SEQUENCE] = json!(release.sequence.to_string());
        if let Some(uid) = uid {
            metadata["annotations"][name::RECORDED_UID] = json!(uid);
            // The API server refuses it where another object has the name by now.
            metadata["uid"] = json!(uid);
        }
        whole
    }
}

#[cfg(test)]
mod tests;
