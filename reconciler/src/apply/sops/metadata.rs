//! What a document says of its own encryption.

use render::yaml::Node;
use serde_json::Value;

use super::SopsError;

/// Kinds of keys that SOPS knows beside age's, as its section and people name them.
const OTHER_KEYS: [(&str, &str); 6] = [
    ("pgp", "PGP"),
    ("kms", "AWS KMS"),
    ("gcp_kms", "GCP KMS"),
    ("azure_kv", "Azure Key Vault"),
    ("hc_vault", "Vault"),
    ("hckms", "Huawei Cloud KMS"),
];

/// The names of the rules, in the order of [`Metadata::rules`].
pub(super) const RULES: [&str; 6] = [
    "unencrypted_suffix",
    "encrypted_suffix",
    "unencrypted_regex",
    "encrypted_regex",
    "unencrypted_comment_regex",
    "encrypted_comment_regex",
];

/// The section of a document.
pub(super) struct Metadata {
    /// The data key, once for each age recipient.
    pub(super) age: Vec<AgeKey>,
    /// Each rule that is given: its name and text.
    pub(super) rules: Vec<(&'static str, String)>,
    /// Whether the MAC is over encrypted values alone.
    pub(super) mac_only_encrypted: bool,
    /// The MAC, encrypted.
    pub(super) mac: String,
    /// When it was made, which the MAC is bound to.
    pub(super) last_modified: String,
}

/// The data key for one recipient.
pub(super) struct AgeKey {
    pub(super) recipient: String,
    /// An armored age file.
    pub(super) encrypted: String,
}

impl Metadata {
    pub(super) fn read(section: &Node) -> Result<Self, SopsError> {
        let text = |name: &'static str| {
            let found = section.get(name).and_then(Node::text);
            found.map(str::to_owned).ok_or(SopsError::Metadata(name))
        };
        if !is_empty(section.get("key_groups")) || is_positive(section.get("shamir_threshold")) {
            return Err(SopsError::KeyGroups);
        }
        let age = age_keys(section.get("age"))?;
        if age.is_empty() {
            return Err(SopsError::NoAgeRecipient(others(section)));
        }
        let given = RULES.into_iter().filter_map(|name| {
            let rule = section.get(name)?;
            match rule {
                Node::Scalar(Value::Null) => None,
                _ => match rule.text() {
                    Some("") => None,
                    Some(text) => Some(Ok((name, text.to_owned()))),
                    None => Some(Err(SopsError::Metadata(name))),
                },
            }
        });
        let rules = given.collect::<Result<_, _>>()?;
        let mac_only_encrypted = match section.get("mac_only_encrypted") {
            None | Some(Node::Scalar(Value::Null | Value::Bool(false))) => false,
            Some(Node::Scalar(Value::Bool(true))) => true,
            Some(_) => return Err(SopsError::Metadata("mac_only_encrypted")),
        };
        Ok(Self {
            age,
            rules,
            mac_only_encrypted,
            mac: text("mac")?,
            last_modified: text("lastmodified")?,
        })
    }

    /// The recipients, for a message.
    pub(super) fn recipients(&self) -> String {
        let names: Vec<_> = self.age.iter().map(|key| key.recipient.as_str()).collect();
        names.join(", ")
    }
}

fn age_keys(node: Option<&Node>) -> Result<Vec<AgeKey>, SopsError> {
    const DAMAGED: SopsError = SopsError::Metadata("age");
    let items = match node {
        None | Some(Node::Scalar(Value::Null)) => return Ok(Vec::new()),
        Some(Node::Sequence(items)) => items,
        Some(_) => return Err(DAMAGED),
    };
    let read = |item: &Node| {
        let text = |name: &str| item.get(name).and_then(Node::text).map(str::to_owned);
        Some(AgeKey {
            recipient: text("recipient")?,
            encrypted: text("enc")?,
        })
    };
    items.iter().map(|item| read(item).ok_or(DAMAGED)).collect()
}

fn others(section: &Node) -> String {
    let given = OTHER_KEYS.iter().filter(|(name, _)| !is_empty(section.get(name)));
    let names: Vec<_> = given.map(|(_, name)| *name).collect();
    if names.is_empty() {
        "nobody".to_owned()
    } else {
        names.join(" and ")
    }
}

fn is_empty(node: Option<&Node>) -> bool {
    match node {
        None | Some(Node::Scalar(Value::Null)) => true,
        Some(Node::Sequence(items)) => items.is_empty(),
        Some(Node::Mapping(entries)) => entries.is_empty(),
        Some(Node::Scalar(_)) => false,
    }
}

fn is_positive(node: Option<&Node>) -> bool {
    match node {
        Some(Node::Scalar(Value::Number(number))) => number.as_u64() != Some(0),
        None | Some(_) => false,
    }
}
