//! Manifests on their way into a fleet repository: what a person or an API server has goes in, objects with the
//! text and the file name that they get leave. Where they go, and whether a cluster takes them, is not known here.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::describe::{strip_server_fields, trim};
use crate::digest::Digest;
use crate::finding::Finding;
use crate::fleet::ManifestObject;
use crate::limits::FILE_NAME_BYTES_MAX;
use crate::load;
use crate::model::ANNOTATION_UNIT;
use crate::name::ObjectKey;
use crate::tree::SourceFile;
use crate::yaml;

/// What those who applied an object leave on it: kubectl a copy of all of it, Secrets as well, and we the unit that
/// it came with, which is another's as soon as it is added elsewhere.
const MARKS: [&str; 2] = ["kubectl.kubernetes.io/last-applied-configuration", ANNOTATION_UNIT];

/// One object with the text that its file gets.
#[derive(Clone)]
pub struct Manifest {
    /// As it will be read from that file.
    pub object: ManifestObject,
    /// The document as it was written, or written anew where something had to go. Ends with a line's end.
    pub text: String,
}

/// The objects of a file, in order. `name` is for findings; with an Error among them nothing is to be concluded.
///
/// An object that came out of an API server is trimmed, and one that never was in one keeps its text.
pub fn manifests(name: &str, bytes: &[u8]) -> (Vec<Manifest>, Vec<Finding>) {
    let file = SourceFile::from_bytes(bytes);
    let (objects, findings) = load::objects(name, &file);
    let text = yaml::decode(&file.bytes).unwrap_or_default();
    let documents = yaml::read(&text).unwrap_or_default();
    let spans: BTreeMap<_, _> = documents.iter().map(|document| (document.line, document)).collect();
    let manifest = |object: Arc<ManifestObject>| {
        let mut object = ManifestObject::clone(&object);
        let document = spans.get(&object.line);
        let own = document
            .map(|document| text[document.span.clone()].trim())
            .unwrap_or_default();
        if object.is_encrypted() {
            return Manifest {
                text: format!("{own}\n"),
                object,
            };
        }
        let mut value = Value::clone(&object.value);
        declare(&mut value);
        let is_whole = document.is_some_and(|document| document.value == value) && !own.starts_with('{');
        let text = if is_whole {
            format!("{own}\n")
        } else {
            yaml::write(&value)
        };
        object.digest = Digest::of_value(&value);
        object.value = Arc::new(value);
        Manifest { object, text }
    };
    (objects.into_iter().map(manifest).collect(), findings)
}

/// Leaves what a person declares.
fn declare(value: &mut Value) {
    let is_live = ["uid", "resourceVersion", "managedFields"]
        .iter()
        .any(|field| !value["metadata"][field].is_null());
    if !is_live {
        // `kubectl create --dry-run` writes some of them, empty.
        return strip_server_fields(value);
    }
    trim(value);
    if let Some(annotations) = value
        .pointer_mut("/metadata/annotations")
        .and_then(Value::as_object_mut)
    {
        for mark in MARKS {
            annotations.remove(mark);
        }
        if annotations.is_empty() {
            value["metadata"]
                .as_object_mut()
                .map(|metadata| metadata.remove("annotations"));
        }
    }
}

/// The name of an object's file without its ending: `deployments.shop.web`, and `namespaces.shop` where objects of
/// the kind have no namespace. `with_group` tells two kinds apart that share their plural.
///
/// What some file system refuses is replaced, and told from its like by a digest.
pub fn file_stem(plural: &str, key: &ObjectKey, with_group: bool) -> String {
    let group = Some(key.group.as_str()).filter(|group| with_group && !group.is_empty());
    let namespace = Some(key.namespace.as_str()).filter(|namespace| !namespace.is_empty());
    let parts = [Some(plural), group, namespace, Some(&key.name)];
    let whole = parts.into_iter().flatten().collect::<Vec<_>>().join(".");
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    let mut stem: String = whole.chars().map(|c| if plain(c) { c } else { '_' }).collect();
    stem.truncate(FILE_NAME_BYTES_MAX);
    if stem != whole {
        stem = format!("{stem}-{}", Digest::of_bytes(whole.as_bytes()).short(8));
    }
    stem
}

/// A kind's plural where no API server says it, as those who write CustomResourceDefinitions form it: `gateways`, `policies`,
/// `meshes`. Some kinds are plural already.
pub fn guessed_plural(kind: &str) -> String {
    let kind = kind.to_lowercase();
    if PLURAL.iter().any(|plural| kind.ends_with(plural)) {
        return kind;
    }
    if let Some(stem) = kind.strip_suffix('y')
        && !stem.ends_with(['a', 'e', 'i', 'o', 'u'])
    {
        return format!("{stem}ies");
    }
    let hisses = ["s", "x", "ch", "sh"].iter().any(|end| kind.ends_with(end));
    format!("{kind}{}", if hisses { "es" } else { "s" })
}

/// How kinds end that are named by a plural.
const PLURAL: [&str; 2] = ["endpoints", "metrics"];

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let (manifests, findings) = manifests("in.yaml", text.as_bytes());
        assert_eq!(findings, []);
        let texts: Vec<_> = manifests.iter().map(|manifest| manifest.text.as_str()).collect();
        assert_eq!(texts, expected);
        for manifest in &manifests {
            let read = yaml::read(&manifest.text).expect("what is written is read");
            assert_eq!(read.len(), 1);
            assert_eq!(read[0].value, *manifest.object.value, "and says the same");
        }
    }

    #[test]
    fn what_a_person_wrote_keeps_its_text() {
        let one = "# for the fair\nkind: ConfigMap\napiVersion: v1\nmetadata: {name: a}  # short\n";
        let two = "apiVersion: v1\nkind: Service\nmetadata: {name: b}\nspec: {type: NodePort, ports: [{port: 80, nodePort: 30080}]}\n";
        check(&format!("---\n{one}---\n{two}"), &[one, two]);
    }

    #[test]
    fn what_came_out_of_an_api_server_is_trimmed() {
        let live = r#"{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "b", "uid": "1",
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "fleet.flotilla.dev/unit": "shop/web"}},
            "spec": {"clusterIP": "10.0.0.1", "type": "NodePort", "ports": [{"port": 80, "nodePort": 30080}]}, "status": {}}"#;
        let trimmed =
            "apiVersion: v1\nkind: Service\nmetadata:\n  name: b\nspec:\n  ports:\n  - port: 80\n  type: NodePort\n";
        check(live, &[trimmed]);
        check(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, creationTimestamp: null}\n",
            &["apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n"],
        );
        let ours = |mark| {
            format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: a, uid: x, annotations: {{{mark}}}}}}}")
        };
        check(
            &ours("fleet.flotilla.dev/prune: disabled, fleet.flotilla.dev/unit: a/b"),
            &[
                "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  annotations:\n    fleet.flotilla.dev/prune: disabled\n  name: a\n",
            ],
        );
    }

    #[test]
    fn a_list_becomes_a_manifest_for_each_item() {
        let list = "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n\
                    - {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}\n";
        let item = |name: &str| format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n");
        check(list, &[&item("a"), &item("b")]);
    }

    #[test]
    fn what_is_no_object_is_an_error() {
        let reason = |text: &str| {
            let (_, findings) = manifests("in.yaml", text.as_bytes());
            findings
                .iter()
                .map(|finding| finding.reason.clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(reason("a: {"), ["NotYaml"]);
        assert_eq!(reason("a: b\n"), ["NotAnObject"]);
        let own = "apiVersion: fleet.flotilla.dev/v1alpha1\nkind: Fleet\nmetadata: {name: fleet}\n";
        assert_eq!(reason(own), ["NotAnObject"], "a declaration is committed as it is");
    }

    #[test]
    fn a_file_is_named_after_its_object() {
        let stem = |plural, kind: &str, namespace, name: &str, with_group| {
            file_stem(plural, &ObjectKey::new(kind, "Foo", namespace, name), with_group)
        };
        assert_eq!(
            stem("foos", "x.io/v1", "kube-system", "abc.def-bar", false),
            "foos.kube-system.abc.def-bar"
        );
        assert_eq!(stem("bars", "x.io/v1", "", "abc", false), "bars.abc");
        assert_eq!(stem("bars", "x.io/v1", "", "abc", true), "bars.x.io.abc");
        let odd = stem("clusterroles", "x.io/v1", "", "system:node", false);
        assert!(odd.starts_with("clusterroles.system_node-"), "{odd}");
        assert_eq!(
            stem("bars", "v1", "", &"a".repeat(253), false).len(),
            FILE_NAME_BYTES_MAX + 9
        );
    }

    #[test]
    fn a_kinds_plural_is_guessed_as_those_who_name_kinds_form_it() {
        for (kind, expected) in [
            ("Ingress", "ingresses"),
            ("NetworkPolicy", "networkpolicies"),
            ("ConfigMap", "configmaps"),
            ("Gateway", "gateways"),
            ("APIKey", "apikeys"),
            ("Endpoints", "endpoints"),
            ("NodeMetrics", "nodemetrics"),
            ("Mesh", "meshes"),
            ("ServicePrefix", "serviceprefixes"),
            ("Y", "ies"),
            ("", "s"),
        ] {
            assert_eq!(guessed_plural(kind), expected, "{kind}");
        }
    }
}
