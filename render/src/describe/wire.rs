//! The bytes a Description travels as: canonical JSON, `{"apply":{…},"objects":[content, …]}`, sorted by key. A policy
//! that says nothing is left out.
//!
//! Its digest is the SHA-256 of exactly these bytes, so that whoever receives them can check them.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::describe::{Content, DescribedObject, Description, key_of};
use crate::digest::{Digest, canonical_json};
use crate::model::ApplyPolicy;
use crate::name::ObjectKey;

/// Bytes that are not the Description they should be.
#[derive(Debug, thiserror::Error)]
pub enum InvalidDescription {
    /// Other bytes than the digest names.
    #[error("content has digest {found} and not {expected}")]
    Tampered {
        /// What was asked for.
        expected: Digest,
        /// What came.
        found: Digest,
    },
    /// Not JSON of a Description.
    #[error("failed to read description")]
    Unreadable(#[source] serde_json::Error),
    /// An object without apiVersion, kind or name.
    #[error("object {0} of the description has no apiVersion, kind or name")]
    Nameless(usize),
    /// An object that stands twice.
    #[error("object {0} stands twice in one description")]
    Duplicate(ObjectKey),
}

#[derive(Deserialize)]
struct Wire {
    #[serde(default)]
    apply: ApplyPolicy,
    objects: Vec<Content>,
}

impl Description {
    /// Sorts the objects by key and digests them.
    ///
    /// # Errors
    ///
    /// [`InvalidDescription::Duplicate`] when two objects have one key. Load refuses that before.
    pub fn new(objects: Vec<DescribedObject>) -> Result<Self, InvalidDescription> {
        Self::governed(objects, ApplyPolicy::default())
    }

    /// As [`Description::new`], with how the objects are applied.
    ///
    /// # Errors
    ///
    /// Those of [`Description::new`].
    pub fn governed(mut objects: Vec<DescribedObject>, apply: ApplyPolicy) -> Result<Self, InvalidDescription> {
        objects.sort_by(|a, b| a.key.cmp(&b.key));
        if let Some(pair) = objects.windows(2).find(|pair| pair[0].key == pair[1].key) {
            return Err(InvalidDescription::Duplicate(pair[0].key.clone()));
        }
        let written = write(&objects, &apply);
        Ok(Self {
            apply,
            digest: Digest::of_bytes(&written),
            bytes: written.len(),
            objects,
        })
    }

    /// The same objects, applied in this way. Two objects of one key were refused when the description was made.
    #[must_use]
    pub fn under(mut self, apply: ApplyPolicy) -> Self {
        if self.apply != apply {
            let written = write(&self.objects, &apply);
            self.digest = Digest::of_bytes(&written);
            self.bytes = written.len();
            self.apply = apply;
        }
        self
    }

    /// The bytes that travel; [`Description::digest`] is theirs.
    pub fn to_json(&self) -> Vec<u8> {
        write(&self.objects, &self.apply)
    }

    /// Reads bytes that should have this digest. Provenance does not travel and is empty.
    ///
    /// # Errors
    ///
    /// Any error means that the bytes are not to be used; what one had before stays good.
    pub fn from_json(bytes: &[u8], expected: Digest) -> Result<Self, InvalidDescription> {
        let found = Digest::of_bytes(bytes);
        if found != expected {
            return Err(InvalidDescription::Tampered { expected, found });
        }
        let wire: Wire = serde_json::from_slice(bytes).map_err(InvalidDescription::Unreadable)?;
        let named = |(index, content)| named(content).ok_or(InvalidDescription::Nameless(index));
        let objects = wire.objects.into_iter().enumerate().map(named);
        let description = Self::governed(objects.collect::<Result<_, _>>()?, wire.apply)?;
        // Right bytes in another form (unsorted, with fields we do not know) would be written on under
        // another digest than they came with.
        if description.digest == expected {
            Ok(description)
        } else {
            let found = description.digest;
            Err(InvalidDescription::Tampered { expected, found })
        }
    }
}

fn named(content: Content) -> Option<DescribedObject> {
    let key = match &content {
        Content::Chart { object, .. } | Content::Plain { object } => key_of(object)?,
        Content::Encrypted { key, .. } => key.clone(),
    };
    Some(DescribedObject {
        key,
        content,
        provenance: Vec::new(),
    })
}

fn write(objects: &[DescribedObject], apply: &ApplyPolicy) -> Vec<u8> {
    let mut bytes = b"{".to_vec();
    if !apply.is_default() {
        bytes.extend_from_slice(b"\"apply\":");
        bytes.extend(canonical_json(&json!(apply)));
        bytes.push(b',');
    }
    bytes.extend_from_slice(b"\"objects\":[");
    for (index, object) in objects.iter().enumerate() {
        if index > 0 {
            bytes.push(b',');
        }
        write_content(&object.content, &mut bytes);
    }
    bytes.extend_from_slice(b"]}");
    bytes
}

/// As serde writes [`Content`], in canonical form and without a copy of the object.
fn write_content(content: &Content, bytes: &mut Vec<u8>) {
    match content {
        Content::Chart { object, files } => {
            bytes.extend_from_slice(b"{\"files\":");
            bytes.extend(canonical_json(&json!(files)));
            bytes.extend_from_slice(b",\"object\":");
            bytes.extend(canonical_json(object));
            bytes.push(b'}');
        }
        Content::Plain { object } => {
            bytes.extend_from_slice(b"{\"object\":");
            bytes.extend(canonical_json(object));
            bytes.push(b'}');
        }
        Content::Encrypted {
            key,
            original,
            overrides,
        } => {
            let mut fields = json!({ "key": key, "original": original });
            if !overrides.is_empty() {
                fields["overrides"] = overrides.iter().map(|step| json!(step)).collect::<Value>();
            }
            bytes.extend(canonical_json(&fields));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use super::*;
    use crate::by_object::ByObject;
    use crate::describe::CarriedStep;

    fn plain(name: &str) -> DescribedObject {
        let object =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"z": "1", "a": "é"}});
        DescribedObject {
            key: key_of(&object).expect("it has a name"),
            content: Content::Plain {
                object: Arc::new(object),
            },
            provenance: Vec::new(),
        }
    }

    fn encrypted() -> DescribedObject {
        let key = ObjectKey::new("v1", "Secret", "", "db");
        let step = CarriedStep {
            step_type: "MergePatch".to_owned(),
            value: json!({"metadata": {"labels": {"x": "y"}}}),
            field_path: None,
            field_format: None,
        };
        let content = Content::Encrypted {
            key: key.clone(),
            original: "kind: Secret\n".into(),
            overrides: vec![step],
        };
        DescribedObject {
            key,
            content,
            provenance: Vec::new(),
        }
    }

    fn chart() -> DescribedObject {
        let object = json!({"apiVersion": "fleet.flotilla.dev/v1alpha1", "kind": "HelmChart", "metadata": {"name": "c"},
            "spec": {"path": "charts/c"}});
        let files = BTreeMap::from([("Chart.yaml".into(), Arc::from(&b"name: c\n"[..]))]);
        DescribedObject {
            key: key_of(&object).expect("it has a name"),
            content: Content::Chart {
                object: Arc::new(object),
                files: Arc::new(crate::chart::ChartFiles::new(files).expect("it is a chart")),
            },
            provenance: Vec::new(),
        }
    }

    fn description() -> Description {
        Description::new(vec![encrypted(), plain("b"), chart(), plain("a")]).expect("the keys differ")
    }

    #[test]
    fn a_description_reads_back_what_it_writes() {
        let description = description();
        let bytes = description.to_json();
        assert_eq!(Digest::of_bytes(&bytes), description.digest);
        let read = Description::from_json(&bytes, description.digest).expect("the bytes are good");
        assert_eq!(read, description);
    }

    #[test]
    fn a_policy_is_part_of_the_bytes_and_one_that_says_nothing_is_not() {
        let plain = Description::new(vec![plain("a")]).expect("one key");
        let apply = ApplyPolicy {
            timeout_seconds: Some(60),
            ..ApplyPolicy::default()
        };
        let governed = Description::governed(vec![self::plain("a")], apply).expect("one key");
        assert!(plain.to_json().starts_with(b"{\"objects\""));
        assert_ne!(governed.digest, plain.digest);
        let bytes = governed.to_json();
        assert_eq!(bytes, canonical_json(&serde_json::from_slice(&bytes).expect("JSON")));
        assert_eq!(
            Description::from_json(&bytes, governed.digest).expect("good bytes"),
            governed
        );
    }

    #[test]
    fn the_bytes_are_what_serde_would_write_in_canonical_form() {
        let description = description();
        let contents: Vec<_> = description.objects.iter().map(|object| &object.content).collect();
        assert_eq!(description.to_json(), canonical_json(&json!({ "objects": contents })));
    }

    #[test]
    fn the_order_of_objects_does_not_matter() {
        let other = Description::new(vec![plain("a"), chart(), plain("b"), encrypted()]).expect("the keys differ");
        assert_eq!(other, description());
    }

    #[test]
    fn an_object_that_stands_twice_is_refused() {
        let twice = Description::new(vec![plain("a"), plain("a")]);
        assert!(matches!(twice, Err(InvalidDescription::Duplicate(key)) if key.name == "a"));
    }

    #[track_caller]
    fn check_refused(bytes: &[u8], expected: Digest) {
        assert!(
            Description::from_json(bytes, expected).is_err(),
            "{}",
            String::from_utf8_lossy(bytes)
        );
    }

    #[test]
    fn bytes_that_are_not_the_description_are_refused() {
        let good = description();
        check_refused(&good.to_json()[1..], good.digest);
        for bytes in [
            &b"{"[..],
            b"{\"objects\":[{\"object\":{\"kind\":\"X\"}}]}",
            b"{\"objects\":[],\"more\":1}",
            b"{ \"objects\":[]}",
        ] {
            check_refused(bytes, Digest::of_bytes(bytes));
        }
    }

    #[test]
    fn replicas_go_into_the_named_object_alone() {
        let description = description();
        let replicas = ByObject::from([(plain("a").key, 3)]);
        let contents = description.with_replicas(&replicas);
        let Content::Plain { object } = &contents[0] else {
            unreachable!("the first object is plain")
        };
        assert_eq!(object["spec"]["replicas"], 3);
        assert_eq!(
            contents[1..],
            [plain("b").content, encrypted().content, chart().content]
        );
        assert_eq!(description, self::description(), "the description itself stays");
    }
}
