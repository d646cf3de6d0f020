//! Names with rules, parsed once at the door.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A name that breaks its rules.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} {text:?} is not valid: {rule}")]
pub struct InvalidName {
    what: &'static str,
    text: String,
    rule: &'static str,
}

fn is_dns_label(text: &str, chars_max: usize) -> bool {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !text.is_empty()
        && text.len() <= chars_max
        && text.chars().all(inner)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

/// Whether a namespace can be called so.
pub(crate) fn is_namespace(text: &str) -> bool {
    is_dns_label(text, 63)
}

fn is_dns_subdomain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(|label| is_dns_label(label, 253))
}

macro_rules! text_name {
    ($(#[$doc:meta])* $name:ident, $what:literal, $rule:literal, $check:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Parses the text, or says which rule it breaks.
            pub fn parse(text: impl Into<String>) -> Result<Self, InvalidName> {
                let text = text.into();
                let check: fn(&str) -> bool = $check;
                if check(&text) {
                    Ok(Self(text.into()))
                } else {
                    Err(InvalidName { what: $what, text, rule: $rule })
                }
            }

            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", self.0)
            }
        }

        impl FromStr for $name {
            type Err = InvalidName;
            fn from_str(text: &str) -> Result<Self, InvalidName> {
                Self::parse(text)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Self::parse(String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
            }
        }
    };
}

text_name! {
    /// The name of a cluster: a DNS label of at most 63 characters, so that it can be a label value, a
    /// namespace and a host name.
    ClusterName,
    "cluster name",
    "lower-case letters, digits and '-', at most 63, not starting or ending with '-'",
    |text| is_dns_label(text, 63)
}

text_name! {
    /// A Git commit id: 40 (SHA-1) or 64 (SHA-256) lower-case hex digits.
    Revision,
    "revision",
    "40 or 64 lower-case hex digits",
    |text| matches!(text.len(), 40 | 64) && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

impl ClusterName {
    /// Whether it is a copy of the other one: a quick look that may miss an equal name.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Revision {
    /// Its first twelve digits: as many as Git shows people in a large repository.
    pub fn short(&self) -> &str {
        &self.0[..12]
    }
}

text_name! {
    /// The name of a variant's folder: `default`, or 8 hex digits made from the names of its overrides,
    /// with a suffix `-held-<8 hex>` where an older content had to be kept beside a newer one.
    VariantName,
    "variant name",
    "letters, digits and '-'",
    |text| !text.is_empty() && text.len() <= 64 && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

impl VariantName {
    /// The variant without overrides.
    pub fn default_variant() -> Self {
        Self("default".into())
    }
}

/// The rule of Kubernetes that a label's value breaks, if it does.
pub fn wrong_label_value(text: &str) -> Option<&'static str> {
    let is_end = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    let inner = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let is_valid = text.is_empty()
        || (text.len() <= 63
            && text.chars().all(inner)
            && is_end(text.chars().next())
            && is_end(text.chars().next_back()));
    (!is_valid).then_some("letters, digits, '-', '_' and '.', at most 63, starting and ending with a letter or digit")
}

/// The rule of Kubernetes that a label's key breaks, if it does.
pub fn wrong_label_key(text: &str) -> Option<&'static str> {
    let (prefix, name) = text
        .rsplit_once('/')
        .map_or((None, text), |(prefix, name)| (Some(prefix), name));
    if prefix.is_some_and(|prefix| !is_dns_subdomain(prefix)) {
        return Some("what stands before the slash is a DNS name");
    }
    if name.is_empty() {
        return Some("a name of letters, digits, '-', '_' and '.', perhaps after a DNS name and a slash");
    }
    wrong_label_value(name)
}

/// A unit: the Subscription's namespace and name. Written `namespace/name`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnitKey {
    namespace: Arc<str>,
    name: Arc<str>,
}

impl UnitKey {
    /// Parses both parts by Kubernetes' rules for namespaces and object names.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Result<Self, InvalidName> {
        let (namespace, name) = (namespace.into(), name.into());
        if !is_dns_label(&namespace, 63) {
            return Err(InvalidName {
                what: "namespace",
                text: namespace,
                rule: "lower-case letters, digits and '-', at most 63, not starting or ending with '-'",
            });
        }
        if !is_dns_subdomain(&name) {
            return Err(InvalidName {
                what: "subscription name",
                text: name,
                rule: "lower-case letters, digits, '-' and '.', at most 253, each part starting and ending with a letter or digit",
            });
        }
        Ok(Self {
            namespace: namespace.into(),
            name: name.into(),
        })
    }

    /// The Subscription's namespace.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The Subscription's name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for UnitKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

impl fmt::Debug for UnitKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl FromStr for UnitKey {
    type Err = InvalidName;
    fn from_str(text: &str) -> Result<Self, InvalidName> {
        match text.split_once('/') {
            Some((namespace, name)) => Self::new(namespace, name),
            None => Err(InvalidName {
                what: "unit",
                text: text.to_owned(),
                rule: "namespace/name",
            }),
        }
    }
}

impl Serialize for UnitKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for UnitKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

/// The group of an `apiVersion` that is given whole; empty for the core group.
pub fn group_of(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

/// Which object: group, kind, namespace and name, without the version, since one object answers under
/// every served version. Written `group/Kind/namespace/name`, both `group` and `namespace` possibly empty.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ObjectKey {
    /// API group; empty for the core group.
    pub group: String,
    /// Kind, as written in the manifest.
    pub kind: String,
    /// Namespace; empty for cluster-scoped objects and where the manifest names none.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl ObjectKey {
    /// The key of an object whose `apiVersion` is given whole (`apps/v1`, `v1`).
    pub fn new(api_version: &str, kind: &str, namespace: &str, name: &str) -> Self {
        Self {
            group: group_of(api_version).to_owned(),
            kind: kind.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }

    /// Whether these words name it. Any version of its group does, and without a namespace any namespace.
    pub fn is_named(&self, api_version: &str, kind: &str, namespace: &str, name: &str) -> bool {
        self.kind == kind
            && self.name == name
            && self.group == group_of(api_version)
            && (namespace.is_empty() || self.namespace == namespace)
    }

    /// Whether it is a Secret, whose values are nowhere repeated.
    pub fn is_secret(&self) -> bool {
        self.group.is_empty() && self.kind == "Secret"
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}/{}", self.group, self.kind, self.namespace, self.name)
    }
}

impl FromStr for ObjectKey {
    type Err = InvalidName;
    fn from_str(text: &str) -> Result<Self, InvalidName> {
        let mut parts = text.splitn(4, '/');
        match (parts.next(), parts.next(), parts.next(), parts.next()) {
            (Some(group), Some(kind), Some(namespace), Some(name)) if !kind.is_empty() && !name.is_empty() => {
                Ok(Self {
                    group: group.to_owned(),
                    kind: kind.to_owned(),
                    namespace: namespace.to_owned(),
                    name: name.to_owned(),
                })
            }
            _ => Err(InvalidName {
                what: "object key",
                text: text.to_owned(),
                rule: "group/Kind/namespace/name",
            }),
        }
    }
}

impl Serialize for ObjectKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ObjectKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}
