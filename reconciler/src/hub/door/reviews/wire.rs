//! The body of such a question: JSON, or Kubernetes' Protobuf, which kubectl sends. Of the latter the few fields are read that
//! are asked by.

use serde::{Deserialize, Deserializer};

/// What a Protobuf body begins with.
const MAGIC: &[u8] = b"k8s\0";

/// What is asked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Spec {
    pub(super) resource_attributes: Option<OfResource>,
    pub(super) non_resource_attributes: Option<OfPath>,
    /// Of a question about all rules.
    #[serde(deserialize_with = "null_is_absent")]
    pub(super) namespace: String,
}

/// See `spec.resourceAttributes`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct OfResource {
    #[serde(deserialize_with = "null_is_absent")]
    pub(super) namespace: String,
    #[serde(deserialize_with = "null_is_absent")]
    pub(super) verb: String,
    #[serde(deserialize_with = "null_is_absent")]
    pub(super) group: String,
    #[serde(deserialize_with = "null_is_absent")]
    pub(super) version: String,
    #[serde(deserialize_with = "null_is_absent")]
    pub(super) resource: String,
    #[serde(deserialize_with = "null_is_absent")]
    pub(super) subresource: String,
    #[serde(deserialize_with = "null_is_absent")]
    pub(super) name: String,
}

/// See `spec.nonResourceAttributes`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct OfPath {
    #[serde(deserialize_with = "null_is_absent")]
    pub(super) path: String,
    #[serde(deserialize_with = "null_is_absent")]
    pub(super) verb: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Body {
    #[serde(deserialize_with = "null_is_absent")]
    spec: Spec,
}

/// Whether `spec` has the namespace alone, whose Protobuf field has the number of another one elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum About {
    Access,
    Rules,
}

/// As API servers read it.
fn null_is_absent<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Reads a body; `None` where it is none.
pub(super) fn spec(body: &[u8], about: About) -> Option<Spec> {
    let Some(envelope) = body.strip_prefix(MAGIC) else {
        return Some(serde_json::from_slice::<Body>(body).ok()?.spec);
    };
    let object = last(envelope, 2)?.unwrap_or_default();
    let spec = last(object, 2)?.unwrap_or_default();
    if about == About::Rules {
        return Some(Spec {
            namespace: text(spec, 1)?,
            ..Spec::default()
        });
    }
    let resource = |of: &[u8]| {
        Some(OfResource {
            namespace: text(of, 1)?,
            verb: text(of, 2)?,
            group: text(of, 3)?,
            version: text(of, 4)?,
            resource: text(of, 5)?,
            subresource: text(of, 6)?,
            name: text(of, 7)?,
        })
    };
    let path = |of: &[u8]| {
        Some(OfPath {
            path: text(of, 1)?,
            verb: text(of, 2)?,
        })
    };
    let (of_resource, of_path) = (last(spec, 1)?, last(spec, 2)?);
    Some(Spec {
        resource_attributes: of_resource.map(resource).map_or(Some(None), |read| read.map(Some))?,
        non_resource_attributes: of_path.map(path).map_or(Some(None), |read| read.map(Some))?,
        namespace: String::new(),
    })
}

/// A field of texts; empty where there is none.
fn text(message: &[u8], number: u64) -> Option<String> {
    let bytes = last(message, number)?.unwrap_or_default();
    String::from_utf8(bytes.to_vec()).ok()
}

/// The last field of this number that has a length; the outer `None` is a message that cannot be read.
fn last(mut message: &[u8], number: u64) -> Option<Option<&[u8]>> {
    let mut found = None;
    while !message.is_empty() {
        let tag = varint(&mut message)?;
        let content = match tag & 7 {
            0 => {
                varint(&mut message)?;
                continue;
            }
            1 => take(&mut message, 8)?,
            2 => {
                let length = usize::try_from(varint(&mut message)?).ok()?;
                take(&mut message, length)?
            }
            5 => take(&mut message, 4)?,
            _ => return None,
        };
        if tag >> 3 == number && tag & 7 == 2 {
            found = Some(content);
        }
    }
    Some(found)
}

fn take<'a>(message: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, rest) = message.split_at_checked(length)?;
    *message = rest;
    Some(taken)
}

fn varint(message: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let byte = *take(message, 1)?.first()?;
        number |= u64::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As kubectl sent it.
    const CAN_I: &[u8] = b"k8s\x00\n2\n\x17authorization.k8s.io/v1\x12\x17SelfSubjectAccessReview\x12T\n\x10\n\x00\x12\x00\x1a\x00\"\x00*\x002\x008\x00B\x00\x126\n4\n\x04shop\x12\x03get\x1a\x12fleet.flotilla.dev\"\x00*\x0dsubscriptions2\x00:\x00\x1a\x08\x08\x00\x12\x00\x1a\x00 \x00\x1a\x00\"\x00";
    const LIST: &[u8] = b"k8s\x00\n1\n\x17authorization.k8s.io/v1\x12\x16SelfSubjectRulesReview\x12#\n\x10\n\x00\x12\x00\x1a\x00\"\x00*\x002\x008\x00B\x00\x12\t\n\x07default\x1a\x04\x18\x00\"\x00\x1a\x00\"\x00";

    #[test]
    fn a_question_reads_alike_in_either_form() {
        let json =
            br#"{"spec": {"resourceAttributes": {"namespace": "shop", "verb": "get", "group": "fleet.flotilla.dev",
            "resource": "subscriptions", "labelSelector": {}}}}"#;
        let read = spec(CAN_I, About::Access).expect("it is read");
        assert_eq!(spec(json, About::Access), Some(read.clone()));
        let asked = read.resource_attributes.expect("it asks of a resource");
        assert_eq!(
            (asked.namespace.as_str(), asked.resource.as_str()),
            ("shop", "subscriptions")
        );
        assert_eq!(read.non_resource_attributes, None);
        let rules = spec(LIST, About::Rules).expect("it is read");
        assert_eq!(rules.namespace, "default");
        assert_eq!(
            spec(br#"{"spec": {"namespace": "default"}}"#, About::Rules),
            Some(rules)
        );
    }

    #[test]
    fn null_is_read_as_what_is_not_said() {
        let nulls = |of: &str| {
            of.split(' ')
                .map(|field| format!("{field:?}: null"))
                .collect::<Vec<_>>()
                .join(", ")
        };
        for (null, absent) in [
            (r#"{"spec": null}"#.to_owned(), "{}"),
            (
                format!(
                    r#"{{"spec": {{{}}}}}"#,
                    nulls("resourceAttributes nonResourceAttributes namespace")
                ),
                r#"{"spec": {}}"#,
            ),
            (
                format!(
                    r#"{{"spec": {{"resourceAttributes": {{{}}}}}}}"#,
                    nulls("namespace verb group version resource subresource name")
                ),
                r#"{"spec": {"resourceAttributes": {}}}"#,
            ),
            (
                format!(r#"{{"spec": {{"nonResourceAttributes": {{{}}}}}}}"#, nulls("path verb")),
                r#"{"spec": {"nonResourceAttributes": {}}}"#,
            ),
        ] {
            let read = spec(null.as_bytes(), About::Access);
            assert!(read.is_some(), "{null}");
            assert_eq!(read, spec(absent.as_bytes(), About::Access), "{null}");
        }
    }

    #[test]
    fn what_is_cut_off_or_no_question_is_none() {
        for about in [About::Access, About::Rules] {
            for body in [
                b"".as_slice(),
                b"[",
                b"k8s",
                b"k8s\0\x12\xff",
                b"k8s\0\x13\x00",
                b"k8s\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
            ] {
                assert_eq!(spec(body, about), None, "{body:?}");
            }
            // Wherever it ends, it ends the reading.
            for end in 4..CAN_I.len() {
                let _read = spec(&CAN_I[..end], about);
            }
        }
    }
}
