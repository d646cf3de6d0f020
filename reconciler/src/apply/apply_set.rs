//! ApplySets (KEP-3659) as a view: labels by which other tools find what a unit brought. Nothing is decided by them.
//!
//! In: units whose policy asks for it. Out: a label on each object that is sent, and one ConfigMap per unit beside the
//! inventory, the set's parent, which is written before its members are. Releases of Helm are no members.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, ObjectMeta, Patch, PatchParams, Preconditions};
use render::describe::is_chart;
use render::{Digest, ObjectKey, UnitKey};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::FIELD_MANAGER;
use super::request::{RequestError, bounded};
use super::session::{Session, Unit};

/// The label of a set's parent.
const LABEL_ID: &str = "applyset.kubernetes.io/id";

/// The label of its members.
const LABEL_PART_OF: &str = "applyset.kubernetes.io/part-of";

/// Who keeps it.
const ANNOTATION_TOOLING: &str = "applyset.kubernetes.io/tooling";

/// The kinds that its members may be of.
const ANNOTATION_KINDS: &str = "applyset.kubernetes.io/contains-group-kinds";

/// Namespaces that its members may be in, beside the parent's own.
const ANNOTATION_NAMESPACES: &str = "applyset.kubernetes.io/additional-namespaces";

/// The version of what is written here, not of the program: an upgrade writes nothing.
const TOOLING: &str = "flotilla/v1.0.0";

/// What a parent's name begins with.
const NAME_PREFIX: &str = "applyset.";

/// What an API server takes of a name.
const NAME_BYTES_MAX: usize = 253;

/// A parent as it is in the cluster, and as it should be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Parent {
    kinds: String,
    namespaces: String,
}

/// The parents that are known to be in the cluster: name → its UID and what it says.
#[derive(Debug, Default)]
pub(super) struct ApplySets {
    parents: BTreeMap<String, (String, Parent)>,
}

/// The name of a unit's parent. A namespace has no dot, so that no two units share one.
fn parent_name(unit: &UnitKey) -> String {
    let name = format!("{NAME_PREFIX}{}.{}", unit.namespace(), unit.name());
    if name.len() <= NAME_BYTES_MAX {
        return name;
    }
    let digest = Digest::of_bytes(unit.to_string().as_bytes()).short(32);
    format!("{NAME_PREFIX}{digest}")
}

/// The id of the set whose parent is a ConfigMap, as KEP-3659 makes it.
fn id(name: &str, namespace: &str) -> String {
    let hash = Sha256::digest(format!("{name}.{namespace}.ConfigMap."));
    format!("applyset-{}-v1", URL_SAFE_NO_PAD.encode(hash))
}

/// The id of a unit's set.
pub(super) fn id_of(unit: &UnitKey, namespace: &str) -> String {
    id(&parent_name(unit), namespace)
}

/// An object as it is sent, as a member of a set.
pub(super) fn member(mut object: Value, id: Option<&str>) -> Value {
    if let (Some(id), Some(metadata)) = (id, object.get_mut("metadata").and_then(Value::as_object_mut)) {
        let labels = metadata.entry("labels").or_insert_with(|| json!({}));
        if !labels.is_object() {
            *labels = json!({});
        }
        labels[LABEL_PART_OF] = id.into();
    }
    object
}

impl Parent {
    fn of<'a>(members: impl IntoIterator<Item = &'a ObjectKey>, own: &str) -> Self {
        let (mut kinds, mut namespaces) = (BTreeSet::new(), BTreeSet::new());
        for key in members {
            kinds.insert(match key.group.as_str() {
                "" => key.kind.clone(),
                group => format!("{}.{group}", key.kind),
            });
            if !key.namespace.is_empty() && key.namespace != own {
                namespaces.insert(key.namespace.clone());
            }
        }
        let list = |words: BTreeSet<String>| words.into_iter().collect::<Vec<_>>().join(",");
        Self {
            kinds: list(kinds),
            namespaces: list(namespaces),
        }
    }

    fn manifest(&self, name: &str, namespace: &str, unit: &UnitKey) -> Value {
        json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": name,
                "labels": {LABEL_ID: id(name, namespace)},
                "annotations": {
                    ANNOTATION_TOOLING: TOOLING,
                    ANNOTATION_KINDS: self.kinds,
                    ANNOTATION_NAMESPACES: self.namespaces,
                },
            },
            "data": {"unit": unit.to_string()},
        })
    }
}

impl ApplySets {
    /// Those among these ConfigMaps.
    pub(super) fn among(stored: &[ConfigMap], namespace: &str) -> Self {
        let parents = stored.iter().filter_map(|stored| {
            let ObjectMeta {
                name: Some(name),
                uid: Some(uid),
                labels,
                annotations,
                ..
            } = &stored.metadata
            else {
                return None;
            };
            let is_ours = labels.as_ref()?.get(LABEL_ID) == Some(&id(name, namespace));
            let text = |annotation: &str| annotations.as_ref()?.get(annotation).cloned();
            let is_tool = text(ANNOTATION_TOOLING).is_some_and(|tool| tool.starts_with("flotilla/"));
            let parent = Parent {
                kinds: text(ANNOTATION_KINDS).unwrap_or_default(),
                namespaces: text(ANNOTATION_NAMESPACES).unwrap_or_default(),
            };
            (is_ours && is_tool && name.starts_with(NAME_PREFIX)).then(|| (name.clone(), (uid.clone(), parent)))
        });
        Self {
            parents: parents.collect(),
        }
    }

    async fn write(
        &mut self,
        api: &Api<ConfigMap>,
        (name, namespace): (String, &str),
        unit: &UnitKey,
        parent: Parent,
    ) -> Result<(), RequestError> {
        if self.parents.get(&name).is_some_and(|(_, known)| *known == parent) {
            return Ok(());
        }
        let manifest = parent.manifest(&name, namespace, unit);
        let params = PatchParams::apply(FIELD_MANAGER).force();
        let written = bounded(api.patch(&name, &params, &Patch::Apply(&manifest))).await?;
        let uid = written.metadata.uid.unwrap_or_default();
        self.parents.insert(name, (uid, parent));
        Ok(())
    }

    async fn remove(&mut self, api: &Api<ConfigMap>, name: &str) -> Result<(), RequestError> {
        let Some((uid, _)) = self.parents.get(name) else {
            return Ok(());
        };
        let preconditions = Preconditions {
            uid: Some(uid.clone()),
            resource_version: None,
        };
        let params = DeleteParams::default().preconditions(preconditions);
        match bounded(api.delete(name, &params)).await {
            // One of that name that somebody made since is not ours.
            Err(error) if !error.is_not_found() && error.code() != Some(409) => Err(error),
            _ => {
                self.parents.remove(name);
                Ok(())
            }
        }
    }
}

impl Session {
    /// Writes the parents of the sets that are wanted, and removes those of units that want none. It is a view: where
    /// that fails it is said, and everything else goes on.
    pub(super) async fn keep_apply_sets(&mut self) {
        let wanted = |unit: &Unit| unit.apply_set.is_some();
        if self.apply_sets.parents.is_empty() && !self.units.values().any(wanted) {
            return;
        }
        if let Err(error) = self.write_apply_sets().await {
            tracing::warn!(error = %error.line(), "Could not write the parent of an ApplySet.");
        }
    }

    async fn write_apply_sets(&mut self) -> Result<(), RequestError> {
        let (api, namespace) = (self.shards.clone(), self.namespace.clone());
        let mut members: BTreeMap<&UnitKey, Vec<&ObjectKey>> = BTreeMap::new();
        // Also what is about to leave is of a kind that somebody may look for.
        for (key, entry) in self.inventory.iter().filter(|(key, _)| !is_chart(key)) {
            members.entry(&entry.unit).or_default().push(key);
        }
        for (key, unit) in &self.units {
            members.entry(key).or_default().extend(unit.keys());
        }
        let mut sets = std::mem::take(&mut self.apply_sets);
        let mut keep = BTreeSet::new();
        let mut outcome = Ok(());
        for (unit, members) in members {
            let name = parent_name(unit);
            let is_wanted = self.units.get(unit).map(|unit| unit.apply_set.is_some());
            // What has not arrived, or has left and is still there, keeps the parent that it has.
            if is_wanted == Some(false) {
                continue;
            }
            keep.insert(name.clone());
            if is_wanted == Some(true) {
                let parent = Parent::of(members, &namespace);
                outcome = outcome.and(sets.write(&api, (name, &namespace), unit, parent).await);
            }
        }
        let unwanted: Vec<_> = sets
            .parents
            .keys()
            .filter(|name| !keep.contains(*name))
            .cloned()
            .collect();
        for name in unwanted {
            outcome = outcome.and(sets.remove(&api, &name).await);
        }
        self.apply_sets = sets;
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(name: &str) -> UnitKey {
        name.parse().expect("a valid unit")
    }

    #[test]
    fn an_id_is_made_as_kubectl_makes_it() {
        // As another program made them: sha256 of "name.namespace.ConfigMap.", URL-safe base64 without padding.
        assert_eq!(
            id("my-set", "shop"),
            "applyset-gNhPL3TyOycu5fKYoabjYll_PBddGL8ghySj5B67VDw-v1"
        );
        let of_unit = "applyset-KqfjHtI91GCCv0ze5n4V2NnwswLnbWv1AG_kjbBlxCk-v1";
        assert_eq!(id_of(&unit("shop/web"), "flotilla-system"), of_unit);
        assert!(of_unit.len() <= 63, "it fits into a label");
    }

    #[tokio::test]
    async fn a_parent_that_somebody_made_anew_is_left_to_them() {
        use kube::client::Body;

        let answering = |code: u16| {
            let service = tower::service_fn(move |_: http::Request<Body>| async move {
                let status = json!({"kind": "Status", "status": "Failure", "code": code, "reason": "", "message": "no",
                    "metadata": {}});
                let response = http::Response::builder().status(code);
                response.body(Body::from(status.to_string().into_bytes()))
            });
            Api::namespaced(kube::Client::new(service, "default"), "flotilla-system")
        };
        let mut sets = ApplySets::default();
        for (code, is_known) in [(500, true), (409, false), (404, false)] {
            sets.parents
                .insert("one".to_owned(), ("its uid".to_owned(), Parent::default()));
            let removed = sets.remove(&answering(code), "one").await;
            assert_eq!(removed.is_err(), is_known, "{code}");
            assert_eq!(sets.parents.contains_key("one"), is_known, "{code}");
        }
    }

    #[test]
    fn no_two_units_share_a_parent() {
        assert_ne!(parent_name(&unit("a/b.c")), parent_name(&unit("a/b-c")));
        assert_eq!(parent_name(&unit("shop/web")), "applyset.shop.web");
    }

    #[test]
    fn a_parent_names_kinds_and_namespaces_once_and_in_order() {
        let members = [
            ObjectKey::new("v1", "ConfigMap", "shop", "b"),
            ObjectKey::new("v1", "ConfigMap", "flotilla-system", "a"),
            ObjectKey::new("apps/v1", "Deployment", "bar", "a"),
            ObjectKey::new("v1", "Namespace", "", "shop"),
        ];
        let parent = Parent::of(&members, "flotilla-system");
        assert_eq!(parent.kinds, "ConfigMap,Deployment.apps,Namespace");
        assert_eq!(parent.namespaces, "bar,shop");
        let name = parent_name(&unit("shop/web"));
        let mut stored: ConfigMap =
            serde_json::from_value(parent.manifest(&name, "flotilla-system", &unit("shop/web")))
                .expect("it is a ConfigMap");
        stored.metadata.uid = Some("1".to_owned());
        let read = ApplySets::among(&[stored.clone()], "flotilla-system");
        assert_eq!(read.parents[&name], ("1".to_owned(), parent));
        stored.metadata.labels = None;
        assert!(ApplySets::among(&[stored], "flotilla-system").parents.is_empty());
    }

    #[test]
    fn a_member_has_the_label_and_everything_else_has_none() {
        let object = json!({"metadata": {"name": "a", "labels": {"own": "label"}}});
        assert_eq!(member(object.clone(), None), object);
        let labelled = member(object, Some("applyset-x-v1"));
        assert_eq!(
            labelled["metadata"]["labels"],
            json!({"own": "label", LABEL_PART_OF: "applyset-x-v1"})
        );
    }
}
