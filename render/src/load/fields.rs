//! Reads a declaration's fields one by one, and keeps what is wrong with each instead of stopping.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use serde_json::{Map, Value};

use crate::finding::{Finding, Severity};
use crate::nearest::nearest;
use crate::yaml::Places;

/// What is wrong with one field; its file and line are added when the document is done.
#[derive(Clone, Debug)]
pub(super) struct Problem {
    pub(super) severity: Severity,
    pub(super) reason: &'static str,
    pub(super) field: String,
    pub(super) message: String,
    pub(super) hint: String,
}

impl Problem {
    pub(super) fn finding(self, file: &str, places: &Places, outer: &str, line: u32) -> Finding {
        let place = format!("{outer}{}{}", if outer.is_empty() { "" } else { "." }, self.field);
        let line = places.find(&place).map_or(line, |(line, _)| line);
        Finding::new(self.severity, self.reason, self.message)
            .at(file, line)
            .field(self.field)
            .hint(self.hint)
    }
}

/// Where problems go, and how hard unknown fields are judged.
#[derive(Debug)]
pub(super) struct Judge {
    /// Unknown fields are an Error in our group and a Warning in Clusternet's.
    pub(super) ours: bool,
    problems: RefCell<Vec<Problem>>,
}

impl Judge {
    pub(super) fn new(ours: bool) -> Self {
        Self {
            ours,
            problems: RefCell::new(Vec::new()),
        }
    }

    pub(super) fn into_problems(self) -> Vec<Problem> {
        self.problems.into_inner()
    }

    pub(super) fn say(
        &self,
        severity: Severity,
        reason: &'static str,
        field: String,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.problems.borrow_mut().push(Problem {
            severity,
            reason,
            field,
            message: message.into(),
            hint: hint.into(),
        });
    }
}

/// One map of a declaration. Each reading method takes a field once; [`Fields::finish`] reports the rest.
/// A null counts as absent, as it does for Kubernetes.
pub(super) struct Fields<'a> {
    map: &'a Map<String, Value>,
    path: String,
    judge: &'a Judge,
    taken: Vec<&'a str>,
    /// Every field that was asked for, written or not: all that may stand here.
    asked: Vec<&'static str>,
}

impl<'a> Fields<'a> {
    pub(super) fn new(map: &'a Map<String, Value>, path: impl Into<String>, judge: &'a Judge) -> Self {
        Self {
            map,
            path: path.into(),
            judge,
            taken: Vec::new(),
            asked: Vec::new(),
        }
    }

    pub(super) fn judge(&self) -> &'a Judge {
        self.judge
    }

    /// The path of this map.
    pub(super) fn here(&self) -> &str {
        &self.path
    }

    /// The path of a field of this map.
    pub(super) fn path(&self, name: &str) -> String {
        if self.path.is_empty() {
            name.to_owned()
        } else {
            format!("{}.{name}", self.path)
        }
    }

    /// The field's value, null included.
    pub(super) fn written(&mut self, name: &'static str) -> Option<&'a Value> {
        #[cfg(test)]
        asked::note(&self.path(name));
        self.asked.push(name);
        let (key, value) = self.map.get_key_value(name)?;
        self.taken.push(key);
        Some(value)
    }

    /// The field's value, which stays to be read.
    pub(super) fn peek(&self, name: &str) -> Option<&'a Value> {
        self.map.get(name)
    }

    fn value(&mut self, name: &'static str) -> Option<&'a Value> {
        self.written(name).filter(|value| !value.is_null())
    }

    pub(super) fn text(&mut self, name: &'static str) -> Option<&'a str> {
        let value = self.value(name)?;
        let text = value.as_str();
        if text.is_none() {
            self.wrong_type(name, "text", value);
        }
        text
    }

    /// A text that people write as a number: the hint says how it is written.
    pub(super) fn text_as(&mut self, name: &'static str, hint: impl Fn(u64) -> String) -> Option<&'a str> {
        match self.value(name)?.as_u64().filter(|number| *number > 0) {
            Some(number) => {
                self.error(name, "FieldType", "must be text, not a number", hint(number));
                None
            }
            None => self.text(name),
        }
    }

    pub(super) fn required_text(&mut self, name: &'static str) -> Option<&'a str> {
        match self.text(name) {
            Some("") => {
                self.error(name, "FieldInvalid", "must not be empty", "");
                None
            }
            None => {
                self.require(name);
                None
            }
            text => text,
        }
    }

    pub(super) fn boolean(&mut self, name: &'static str) -> Option<bool> {
        let value = self.value(name)?;
        if !value.is_boolean() {
            self.wrong_type(name, "true or false", value);
        }
        value.as_bool()
    }

    pub(super) fn integer(&mut self, name: &'static str, range: RangeInclusive<i64>) -> Option<i64> {
        let value = self.value(name)?;
        // A number that is too large for the type is whole all the same.
        let Some(given) = value.as_f64().filter(|given| given.fract() == 0.0) else {
            self.wrong_type(name, WHOLE, value);
            return None;
        };
        let number = value.as_i64().filter(|number| range.contains(number));
        if number.is_none() {
            let message = format!("must be from {} to {}, not {value}", range.start(), range.end());
            let hint = match given < 0.0 || value.as_i64().is_some_and(|number| number < *range.start()) {
                true => format!("write {} or more", range.start()),
                false => format!("write {} or less", range.end()),
            };
            self.error(name, "FieldInvalid", message, hint);
        }
        number
    }

    /// One of some words.
    pub(super) fn choice<T: Copy>(&mut self, name: &'static str, words: &[(&str, T)]) -> Option<T> {
        let value = self.value(name)?;
        let found = words.iter().find(|(word, _)| value.as_str() == Some(word));
        if found.is_none() {
            let known: Vec<_> = words.iter().map(|(word, _)| *word).collect();
            let given = value
                .as_str()
                .map_or_else(|| called(value).to_owned(), |text| format!("{text:?}"));
            let message = format!("must be one of {}, not {given}", known.join(", "));
            let near = value.as_str().and_then(|text| nearest(text, known.iter().copied()));
            let hint = near.map_or_else(String::new, |near| format!("did you mean {near}?"));
            self.error(name, "FieldInvalid", message, hint);
        }
        found.map(|(_, value)| *value)
    }

    pub(super) fn object(&mut self, name: &'static str) -> Option<Fields<'a>> {
        let value = self.value(name)?;
        let Some(map) = value.as_object() else {
            self.wrong_type(name, "a map", value);
            return None;
        };
        Some(Fields::new(map, self.path(name), self.judge))
    }

    /// A map whose fields are somebody else's to know.
    pub(super) fn any_map(&mut self, name: &'static str) {
        if let Some(value) = self.value(name)
            && !value.is_object()
        {
            self.wrong_type(name, "a map", value);
        }
    }

    pub(super) fn list(&mut self, name: &'static str) -> Option<&'a [Value]> {
        let value = self.value(name)?;
        let Some(items) = value.as_array() else {
            self.wrong_type(name, "a list", value);
            return None;
        };
        Some(items)
    }

    /// A list of maps; items of another type are reported and left out.
    pub(super) fn objects(&mut self, name: &'static str) -> Option<Vec<Fields<'a>>> {
        let items = self.list(name)?;
        let mut objects = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let name = format!("{name}[{index}]");
            match item.as_object() {
                Some(map) => objects.push(Fields::new(map, self.path(&name), self.judge)),
                None => self.wrong_type(&name, "a map", item),
            }
        }
        Some(objects)
    }

    /// A list of texts; items of another type are reported and left out.
    pub(super) fn texts(&mut self, name: &'static str) -> Option<Vec<String>> {
        let items = self.list(name)?;
        let mut texts = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            match item.as_str() {
                Some(text) => texts.push(text.to_owned()),
                None => self.wrong_type(&format!("{name}[{index}]"), "text", item),
            }
        }
        Some(texts)
    }

    /// A map from text to text, such as labels.
    pub(super) fn text_map(&mut self, name: &'static str) -> BTreeMap<String, String> {
        let Some(value) = self.value(name) else {
            return BTreeMap::new();
        };
        let Some(map) = value.as_object() else {
            self.wrong_type(name, "a map", value);
            return BTreeMap::new();
        };
        let mut texts = BTreeMap::new();
        for (key, value) in map {
            match value.as_str() {
                Some(text) => drop(texts.insert(key.clone(), text.to_owned())),
                None => self.wrong_type(&format!("{name}.{key}"), "text", value),
            }
        }
        texts
    }

    /// Takes fields that are known and not read; whether one of them is written.
    pub(super) fn known(&mut self, names: &[&'static str]) -> bool {
        let asked = self.asked.len();
        // Counted, since a search would stop at the first and leave the others as unknown fields.
        let found = names.iter().filter(|name| self.value(name).is_some()).count();
        // Nobody means a field that is not read.
        self.asked.truncate(asked);
        found > 0
    }

    /// Whether one of these fields is written, whatever it says.
    pub(super) fn is_written(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.map.contains_key(*name))
    }

    /// Whether a field is written that nobody took.
    pub(super) fn has_unknown(&self) -> bool {
        self.map.keys().any(|key| !self.taken.contains(&key.as_str()))
    }

    /// Reports every field that nobody took.
    pub(super) fn finish(self) {
        for key in self.map.keys() {
            if self.taken.contains(&key.as_str()) {
                continue;
            }
            let severity = if self.judge.ours {
                Severity::Error
            } else {
                Severity::Warning
            };
            let message = format!("unknown field {key:?}");
            let hint = self.meant(key);
            self.judge.say(severity, "UnknownField", self.path(key), message, hint);
        }
    }

    /// What a field that nobody took may have been meant to be.
    fn meant(&self, key: &str) -> String {
        let mut known: Vec<_> = self.asked.clone();
        known.sort_unstable();
        known.dedup();
        match nearest(key, known.iter().copied()) {
            Some(near) => format!("did you mean {near}?"),
            None => format!("known here are {}", known.join(", ")),
        }
    }

    /// Reports a field that is absent or null. One with a wrong value was reported when it was read.
    pub(super) fn require(&self, name: &str) {
        if self.map.get(name).is_none_or(Value::is_null) {
            self.missing(name);
        }
    }

    pub(super) fn missing(&self, name: &str) {
        self.error(name, "FieldMissing", format!("{name} is missing"), "");
    }

    pub(super) fn error(&self, name: &str, reason: &'static str, message: impl Into<String>, hint: impl Into<String>) {
        let path = if name.is_empty() {
            self.path.clone()
        } else {
            self.path(name)
        };
        self.judge.say(Severity::Error, reason, path, message, hint);
    }

    /// What other tools accept and this version does not do.
    pub(super) fn unsupported(&self, name: &str, message: impl Into<String>) {
        self.error(name, "NotSupported", message, "");
    }

    pub(super) fn warning(&self, name: &str, reason: &'static str, message: impl Into<String>) {
        self.judge.say(Severity::Warning, reason, self.path(name), message, "");
    }

    /// A warning with what may have been meant.
    pub(super) fn doubt(&self, name: &str, reason: &'static str, message: impl Into<String>, hint: impl Into<String>) {
        self.judge
            .say(Severity::Warning, reason, self.path(name), message, hint);
    }

    fn wrong_type(&self, name: &str, wanted: &str, found: &Value) {
        let in_quotes = wanted == "text" && matches!(found, Value::Bool(_) | Value::Number(_));
        let hint = match wanted {
            WHOLE if found.as_str().is_some_and(|text| text.parse::<i64>().is_ok()) => "write it without quotes",
            WHOLE => "write a number without a fraction",
            _ if in_quotes => "put it in quotes if text is meant",
            "a list" => "begin each item with a dash",
            _ => "",
        };
        let found = called(found);
        self.error(name, "FieldType", format!("must be {wanted}, not {found}"), hint);
    }
}

const WHOLE: &str = "a whole number";

/// How people call a value's type.
fn called(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    }
}

/// Which fields are asked for, whether they are written or not: all that load knows of.
#[cfg(test)]
pub(super) mod asked {
    use std::cell::RefCell;
    use std::collections::BTreeSet;

    thread_local! {
        static ASKED: RefCell<BTreeSet<String>> = const { RefCell::new(BTreeSet::new()) };
    }

    /// Notes a field by its path, with every position of a list as one.
    pub(super) fn note(path: &str) {
        let mut kept = String::new();
        let mut inside = false;
        for c in path.chars() {
            inside = (inside || c == '[') && c != ']';
            if !inside || c == '[' {
                kept.push(c);
            }
        }
        ASKED.with_borrow_mut(|asked| asked.insert(kept));
    }

    /// The fields that were asked for on this thread since the last time.
    pub(in crate::load) fn take() -> BTreeSet<String> {
        ASKED.take()
    }
}
