//! Which values of a document are encrypted, by its own rule.

use regex::{Regex, RegexBuilder};

use super::SopsError;
use super::metadata::Metadata;
use crate::limits::SOPS_RULE_BYTES_MAX;

/// The suffix that SOPS assumes where a document has no rule.
const DEFAULT_SUFFIX: &str = "_unencrypted";

/// The one rule of a document.
pub(super) enum Rule {
    /// A path with such a key is not encrypted.
    UnencryptedSuffix(String),
    /// Only a path with such a key is.
    EncryptedSuffix(String),
    /// A path with a matching key is not.
    UnencryptedRegex(Regex),
    /// Only a path with a matching key is.
    EncryptedRegex(Regex),
    /// Comments say it, which are not read: what has the form of an encrypted value must be one.
    Comments,
}

/// What a document says of its values.
pub(super) struct Rules {
    rule: Rule,
    /// Whether the MAC is over encrypted values alone.
    pub(super) mac_only_encrypted: bool,
}

impl Rules {
    pub(super) fn new(metadata: &Metadata) -> Result<Self, SopsError> {
        let rule = match metadata.rules.as_slice() {
            [] => Rule::UnencryptedSuffix(DEFAULT_SUFFIX.to_owned()),
            [(name, text)] => rule(name, text)?,
            [(first, _), (second, _), ..] => {
                return Err(SopsError::Rule(format!("{first} and {second} at once")));
            }
        };
        let mac_only_encrypted = metadata.mac_only_encrypted;
        if mac_only_encrypted && matches!(rule, Rule::Comments) {
            // A value that lost its comment would leave the MAC without a trace.
            return Err(SopsError::Rule(
                "mac_only_encrypted with a rule for comments".to_owned(),
            ));
        }
        Ok(Self {
            rule,
            mac_only_encrypted,
        })
    }

    /// Whether the value at this path is encrypted; `text` is what stands there, when it is text.
    pub(super) fn is_encrypted(&self, path: &[String], text: Option<&str>) -> bool {
        let any = |matches: &dyn Fn(&str) -> bool| path.iter().any(|key| matches(key));
        match &self.rule {
            Rule::UnencryptedSuffix(suffix) => !any(&|key| key.ends_with(suffix.as_str())),
            Rule::EncryptedSuffix(suffix) => any(&|key| key.ends_with(suffix.as_str())),
            Rule::UnencryptedRegex(regex) => !any(&|key| regex.is_match(key)),
            Rule::EncryptedRegex(regex) => any(&|key| regex.is_match(key)),
            Rule::Comments => text.is_some_and(|text| text.starts_with(super::value::PREFIX)),
        }
    }
}

fn rule(name: &str, text: &str) -> Result<Rule, SopsError> {
    Ok(match name {
        "unencrypted_suffix" => Rule::UnencryptedSuffix(text.to_owned()),
        "encrypted_suffix" => Rule::EncryptedSuffix(text.to_owned()),
        "unencrypted_regex" => Rule::UnencryptedRegex(regex(name, text)?),
        "encrypted_regex" => Rule::EncryptedRegex(regex(name, text)?),
        _ => Rule::Comments,
    })
}

fn regex(name: &str, text: &str) -> Result<Regex, SopsError> {
    let built = RegexBuilder::new(text).size_limit(SOPS_RULE_BYTES_MAX).build();
    built.map_err(|_| SopsError::Rule(format!("{name} is no regular expression")))
}
