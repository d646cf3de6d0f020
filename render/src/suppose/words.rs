//! Suppositions as people type them.

use super::{ObjectWords, Scale, Supposition};
use crate::model::{Taint, TaintEffect};
use crate::name::{ClusterName, UnitKey, wrong_label_key, wrong_label_value};
use crate::nearest;

/// Words that say nothing that can be supposed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} {why}")]
pub struct Unreadable {
    text: String,
    why: String,
}

fn refuse<T>(text: &str, why: impl Into<String>) -> Result<T, Unreadable> {
    Err(Unreadable {
        text: text.to_owned(),
        why: why.into(),
    })
}

fn cluster(text: &str) -> Result<ClusterName, Unreadable> {
    ClusterName::parse(text).or_else(|_| refuse(text, "is no name of a cluster"))
}

impl Supposition {
    /// A cluster that is lost.
    pub fn lost(name: &str) -> Result<Self, Unreadable> {
        cluster(name).map(Self::Lost)
    }

    /// `KEY=VALUE`, or `KEY-` for none of it, as `kubectl label` has it.
    pub fn label(name: &str, text: &str) -> Result<Self, Unreadable> {
        let (key, value) = match (text.split_once('='), text.strip_suffix('-')) {
            (Some((key, value)), _) => (key, Some(value.to_owned())),
            (None, Some(key)) => (key, None),
            (None, None) => return refuse(text, "is neither KEY=VALUE nor KEY-"),
        };
        if let Some(rule) = wrong_label_key(key) {
            return refuse(text, format!("has a key that is none: {rule}"));
        }
        if let Some(rule) = value.as_deref().and_then(wrong_label_value) {
            return refuse(text, format!("has a value that is none: {rule}"));
        }
        Ok(Self::Label(cluster(name)?, key.to_owned(), value))
    }

    /// `KEY=VALUE:EFFECT` or `KEY:EFFECT`; with `-` at the end, or as `KEY-`, for none of it, as `kubectl taint` has it.
    pub fn taint(name: &str, text: &str) -> Result<Self, Unreadable> {
        let (words, gone) = match text.strip_suffix('-') {
            Some(words) => (words, true),
            None => (text, false),
        };
        let (pair, effect) = match words.rsplit_once(':') {
            Some((pair, word)) => (pair, Some(effect(text, word)?)),
            None => (words, None),
        };
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        if let Some(rule) = wrong_label_key(key) {
            return refuse(text, format!("has a key that is none: {rule}"));
        }
        if let Some(rule) = wrong_label_value(value) {
            return refuse(text, format!("has a value that is none: {rule}"));
        }
        let (name, key, value) = (cluster(name)?, key.to_owned(), value.to_owned());
        match effect {
            effect if gone => Ok(Self::Untainted(name, key, effect)),
            Some(effect) => Ok(Self::Tainted(name, Taint { key, value, effect })),
            None => refuse(
                text,
                "has no effect: KEY=VALUE:NoSchedule, :PreferNoSchedule or :NoExecute",
            ),
        }
    }

    /// `NAMESPACE/NAME[/KIND[/NAMESPACE]/OBJECT]=+20`, `-3` or `30`.
    pub fn scale(text: &str) -> Result<Self, Unreadable> {
        const FORM: &str = "is not NAMESPACE/NAME[/KIND/OBJECT]=+20, -3 or 30";
        let Some((words, number)) = text.rsplit_once('=') else {
            return refuse(text, FORM);
        };
        let (sign, digits) = match (number.strip_prefix('+'), number.strip_prefix('-')) {
            (Some(digits), _) => (Scale::More as fn(u64) -> Scale, digits),
            (None, Some(digits)) => (Scale::Fewer as fn(u64) -> Scale, digits),
            (None, None) => (Scale::To as fn(u64) -> Scale, number),
        };
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let count = digits
            .parse()
            .ok()
            .filter(|count| is_number && i32::try_from(*count).is_ok());
        let Some(count) = count else {
            return refuse(
                text,
                format!("asks for {number:?} replicas, which is no whole number up to 2147483647"),
            );
        };
        let parts: Vec<&str> = words.split('/').collect();
        let object = |kind: &str, namespace: Option<&str>, name: &str| ObjectWords {
            kind: kind.to_owned(),
            namespace: namespace.map(str::to_owned),
            name: name.to_owned(),
        };
        let (namespace, name, object) = match parts.as_slice() {
            [namespace, name] => (*namespace, *name, None),
            [namespace, name, kind, of] => (*namespace, *name, Some(object(kind, None, of))),
            [namespace, name, kind, within, of] => (*namespace, *name, Some(object(kind, Some(within), of))),
            _ => return refuse(text, FORM),
        };
        match UnitKey::new(namespace, name) {
            Ok(unit) => Ok(Self::Scale(unit, object, sign(count))),
            Err(error) => refuse(text, format!("names no subscription: {error}")),
        }
    }
}

fn effect(text: &str, word: &str) -> Result<TaintEffect, Unreadable> {
    if let Some((_, effect)) = TaintEffect::WORDS.iter().find(|(known, _)| *known == word) {
        return Ok(*effect);
    }
    let known = TaintEffect::WORDS.map(|(known, _)| known);
    let (list, hint) = (known.join(", "), nearest::hint(word, known));
    refuse(text, format!("has an effect {word:?}, which is none of {list}{hint}"))
}
