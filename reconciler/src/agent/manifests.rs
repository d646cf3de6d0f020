//! What is applied in a cluster so that its agent runs there: everything in a namespace of its own, with the fewest
//! rights that an agent needs.
//!
//! What the feeds hold is not known here, so that the rights for it are given by whoever asks. The cluster's key comes
//! along only where somebody asked for it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use render::ClusterName;
use serde_json::{Value, json};
use tunnel::PublicKey;

use super::grants::{self, Grant};
use crate::apply::NAMESPACE;

/// Name of all that is the agent's own.
const NAME: &str = "flotilla-agent";

/// Name of the roles by which people are let through.
const PEOPLE: &str = "flotilla-agent-people";

/// The user and group of the agent's process: those of distroless images.
const NOBODY: u32 = 65532;

/// What the objects are made of.
pub struct Manifests<'a> {
    /// Which cluster.
    pub cluster: &'a ClusterName,
    /// Where the hub listens.
    pub hub: &'a str,
    /// The hub's keys.
    pub hub_keys: &'a [PublicKey],
    /// An image that has the binary `flotilla`.
    pub image: &'a str,
    /// Whether people may ask through the agent.
    pub people: bool,
    /// What the agent lends to the hub, as its flag spells it.
    pub allow: &'a str,
    /// What the applier may do to what the feeds hold.
    pub rights: Rights,
    /// The cluster's key in PEM form, to come along as a Secret.
    pub key: Option<String>,
}

/// What an applier may do, beside what every agent needs.
pub enum Rights {
    /// Nothing yet: somebody else binds roles.
    None,
    /// Everything.
    ClusterAdmin,
    /// What these ClusterRoles and Roles say.
    Roles(Vec<Value>),
}

/// Objects that stand under one comment.
type Part = (&'static str, Vec<Value>);

impl Manifests<'_> {
    /// YAML for `kubectl apply`.
    pub fn yaml(&self) -> String {
        let mut text = String::new();
        for (comment, objects) in self.parts() {
            for (at, object) in objects.iter().enumerate() {
                text.push_str("---\n");
                if at == 0 {
                    comment.lines().for_each(|line| text.push_str(&format!("# {line}\n")));
                }
                text.push_str(&render::yaml::write(object));
            }
        }
        text
    }

    fn parts(&self) -> Vec<Part> {
        let mut parts = vec![
            (
                "Everything of the agent is in this namespace and nothing of it in another one.",
                vec![namespace(), service_account()],
            ),
            (
                "What every agent needs: namespaces for what it applies, what nodes have left, where replicas are divided by\n\
                 it, and which addresses Services have.",
                vec![
                    cluster_role(NAME, &rules(&grants::EVERYWHERE)),
                    cluster_role_binding(NAME, NAME),
                ],
            ),
            (
                "Its own Lease, inventory and journal, and keys of SOPS documents.",
                vec![role(), role_binding(NAME, NAMESPACE, NAME)],
            ),
        ];
        if self.people {
            parts.push((
                "People who ask through the hub. The agent acts as flotilla:NAME and never as a name or group that\n\
                 begins with system:, but Kubernetes cannot hold it to that: whoever can take this ServiceAccount can\n\
                 become anybody. Leave both out where nobody asks, with --sync-mode pull.",
                vec![
                    cluster_role(PEOPLE, &rules(&grants::PEOPLE)),
                    cluster_role_binding(PEOPLE, PEOPLE),
                ],
            ));
        }
        parts.extend(self.rights_part());
        parts.push((
            "Where the hub is, and by which key it is known. None of it is secret.",
            vec![self.config_map()],
        ));
        if let Some(key) = &self.key {
            parts.push(("The cluster's key. This file is a secret now.", vec![secret(key)]));
        }
        parts.push((
            "The key is read from the Secret flotilla-agent, which has it as `key`.",
            vec![self.deployment()],
        ));
        parts
    }

    fn rights_part(&self) -> Option<Part> {
        match &self.rights {
            Rights::None => None,
            Rights::ClusterAdmin => Some((
                "The fleet repository may say anything of this cluster.",
                vec![cluster_role_binding("flotilla-agent-applies", "cluster-admin")],
            )),
            Rights::Roles(roles) => {
                let mut objects = Vec::new();
                for role in roles {
                    objects.push(role.clone());
                    objects.push(binding_of(role));
                }
                Some(("What the fleet repository may say of this cluster.", objects))
            }
        }
    }

    fn config_map(&self) -> Value {
        let keys: Vec<_> = self.hub_keys.iter().map(ToString::to_string).collect();
        json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": metadata(NAME),
            "data": {
                "cluster": self.cluster,
                "hub": self.hub,
                "hub-key": keys.join(","),
                "allow": self.allow,
            },
        })
    }

    fn deployment(&self) -> Value {
        let labels = json!({ "app.kubernetes.io/name": NAME });
        json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": metadata(NAME),
            "spec": {
                "replicas": 1,
                "selector": { "matchLabels": labels },
                "template": {
                    "metadata": { "labels": labels },
                    "spec": {
                        "serviceAccountName": NAME,
                        "securityContext": {
                            "runAsNonRoot": true,
                            "runAsUser": NOBODY,
                            "fsGroup": NOBODY,
                            "seccompProfile": { "type": "RuntimeDefault" },
                        },
                        "containers": [self.container()],
                        "volumes": [
                            { "name": "key", "secret": { "secretName": NAME } },
                            { "name": "tmp", "emptyDir": {} },
                        ],
                    },
                },
            },
        })
    }

    fn container(&self) -> Value {
        let from_map = |name: &str, key: &str| json!({ "name": name, "valueFrom": { "configMapKeyRef": { "name": NAME, "key": key } } });
        json!({
            "name": "agent",
            "image": self.image,
            "command": ["flotilla", "agent"],
            "env": [
                from_map("FLOTILLA_CLUSTER", "cluster"),
                from_map("FLOTILLA_HUB", "hub"),
                from_map("FLOTILLA_HUB_KEYS", "hub-key"),
                from_map("FLOTILLA_ALLOW", "allow"),
                { "name": "FLOTILLA_KEY_FILE", "value": "/key/key" },
                { "name": "FLOTILLA_POD", "valueFrom": { "fieldRef": { "fieldPath": "metadata.name" } } },
            ],
            "resources": {
                "requests": { "cpu": "20m", "memory": "32Mi" },
                "limits": { "memory": "128Mi" },
            },
            "securityContext": {
                "allowPrivilegeEscalation": false,
                "readOnlyRootFilesystem": true,
                "capabilities": { "drop": ["ALL"] },
            },
            "volumeMounts": [
                { "name": "key", "mountPath": "/key", "readOnly": true },
                // Files of runs of helm; nothing in it has to last.
                { "name": "tmp", "mountPath": "/tmp" },
            ],
        })
    }
}

fn metadata(name: &str) -> Value {
    json!({ "name": name, "namespace": NAMESPACE })
}

fn namespace() -> Value {
    let labels = json!({ "pod-security.kubernetes.io/enforce": "restricted" });
    json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": NAMESPACE, "labels": labels } })
}

fn service_account() -> Value {
    json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata(NAME) })
}

fn secret(key: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata(NAME),
        "data": { "key": STANDARD.encode(key) },
    })
}

fn rules(grants: &[Grant]) -> Vec<Value> {
    grants.iter().map(|grant| grant.rule()).collect()
}

fn role() -> Value {
    let rules = rules(&grants::OWN);
    json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": metadata(NAME), "rules": rules })
}

fn cluster_role(name: &str, rules: &[Value]) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": { "name": name },
        "rules": rules,
    })
}

/// Binds a ClusterRole everywhere, to the agent.
fn cluster_role_binding(name: &str, role: &str) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": { "name": name },
        "subjects": [subject()],
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role },
    })
}

/// Binds a Role in its namespace, to the agent.
fn role_binding(name: &str, namespace: &str, role: &str) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": { "name": name, "namespace": namespace },
        "subjects": [subject()],
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role },
    })
}

fn binding_of(role: &Value) -> Value {
    let word = |pointer: &str| role.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let role_name = word("/metadata/name");
    let name = format!("flotilla-agent-{role_name}");
    match word("/kind") {
        "Role" => role_binding(&name, word("/metadata/namespace"), role_name),
        _ => cluster_role_binding(&name, role_name),
    }
}

fn subject() -> Value {
    json!({ "kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn golden(name: &str, text: &str) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("src/agent/golden")
            .join(name);
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::create_dir_all(path.parent().expect("a file is in a folder")).expect("the folder is writable");
            std::fs::write(&path, text).expect("the golden file is writable");
        }
        let expected = std::fs::read_to_string(&path).expect("the golden file is there; UPDATE_GOLDEN=1 writes it");
        assert_eq!(text, expected, "{name} differs; UPDATE_GOLDEN=1 rewrites it");
    }

    fn yaml(people: bool, rights: Rights, key: Option<&str>) -> String {
        let manifests = Manifests {
            cluster: &ClusterName::parse("paris").expect("a valid name"),
            hub: "hub.example.com:7443",
            hub_keys: &[PublicKey::from_bytes([7; 32])],
            image: "registry.example.com/flotilla:0.1.0",
            people,
            allow: if people { "read" } else { "look" },
            rights,
            key: key.map(str::to_owned),
        };
        manifests.yaml()
    }

    #[test]
    fn the_manifests_are_these() {
        let role = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "Role",
            "metadata": { "name": "feeds", "namespace": "shop" },
            "rules": [{ "apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"] }],
        });
        golden("join-fewest.yaml", &yaml(false, Rights::None, None));
        golden("join-roles.yaml", &yaml(true, Rights::Roles(vec![role]), None));
        golden("join-everything.yaml", &yaml(true, Rights::ClusterAdmin, Some("a key")));
    }

    #[test]
    fn everything_of_a_namespace_is_in_the_agents_own_and_no_token_is_made() {
        for text in [
            yaml(true, Rights::ClusterAdmin, Some("a key")),
            yaml(false, Rights::None, None),
        ] {
            for document in render::yaml::read(&text).expect("it is YAML") {
                let object = &document.value;
                if let Some(namespace) = object.pointer("/metadata/namespace") {
                    assert_eq!(namespace, NAMESPACE, "{object}");
                }
                assert_ne!(object["type"], "kubernetes.io/service-account-token");
            }
        }
    }

    #[test]
    fn the_key_comes_along_only_when_asked_for() {
        let encoded = STANDARD.encode("a key");
        assert!(yaml(true, Rights::None, Some("a key")).contains(&encoded));
        assert!(!yaml(true, Rights::None, None).contains("kind: Secret\n"));
    }
}
