//! One document of a file: a declaration of the fleet, an object to deliver, or neither.

use std::cell::OnceCell;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::declaration::{Declaration, DeclarationKey};
use super::fields::{Judge, Problem};
use super::kinds::{self, AccessKind, Kind, OwnKind};
use super::object::{Head, list_items, object_key, original, plain_object};
use crate::describe::is_encrypted;
use crate::finding::Finding;
use crate::fleet::ManifestObject;
use crate::model::OverrideFeed;
use crate::name::UnitKey;
use crate::yaml::{Document, Note, Places, locate};

/// What a document turned out to be.
#[derive(Clone, Debug)]
pub(super) enum Item {
    /// A declaration of the fleet.
    Declared {
        key: DeclarationKey,
        line: u32,
        declaration: Box<Declaration>,
    },
    /// An object to deliver.
    Object(Arc<ManifestObject>),
    /// No object: an Error where a path feed selects it, and nobody's business elsewhere.
    Neither(Box<Finding>),
}

/// What stands in the folder of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Folder {
    /// Anything.
    Any,
    /// Declarations and nothing else.
    Declarations,
    /// Roles and bindings of people, beside declarations.
    Access,
}

/// What one document gives.
#[derive(Debug, Default)]
pub(super) struct Reading {
    pub(super) items: Vec<Item>,
    pub(super) findings: Vec<Finding>,
    /// Declarations with errors.
    pub(super) broken: Vec<Broken>,
}

/// A declaration with errors: its last good form is wanted.
#[derive(Clone, Debug)]
pub(super) struct Broken {
    /// `None` where not even the name could be read.
    pub(super) key: Option<DeclarationKey>,
    /// The object that a broken override would have changed.
    pub(super) target: Option<OverrideFeed>,
    /// Its first error.
    pub(super) error: Finding,
}

/// A document with the file around it.
struct Source<'a> {
    file: &'a Arc<str>,
    text: &'a str,
    document: &'a Document,
    folder: Folder,
    places: OnceCell<Places>,
}

impl Source<'_> {
    fn places(&self) -> &Places {
        self.places.get_or_init(|| locate(self.text, self.document))
    }

    fn line_of(&self, field: &str, line: u32) -> u32 {
        self.places().find(field).map_or(line, |(line, _)| line)
    }
}

const IN_A_LIST: &str = "an encrypted object inside a list cannot be delivered";
const OF_ITS_OWN: &str = "encrypt each object as its own document";

/// Part of a document: the whole, or one item of a list.
struct Part<'a> {
    value: &'a Value,
    /// Field path inside the document; empty for the whole.
    outer: String,
    line: u32,
    /// What items of a typed list inherit: `apiVersion` and `kind`.
    inherited: Option<(String, String)>,
}

/// Reads one document of a file in such a folder.
pub(super) fn read(file: &Arc<str>, text: &str, document: Document, folder: Folder) -> Reading {
    let mut reading = Reading::default();
    let secret = may_hold_secrets(&document.value);
    let note = |note: &Note| unquoted(file, note, secret);
    reading.findings.extend(document.notes.iter().map(note));
    let source = Source {
        file,
        text,
        document: &document,
        folder,
        places: OnceCell::new(),
    };
    // A document that is one object, as nearly all are, gives its value away instead of a copy.
    if folder != Folder::Access
        && let Some(object) = plain_object(text, &document)
    {
        let Document { line, value, .. } = document;
        reading
            .items
            .push(Item::Object(Arc::new(object.finish(file, line, value))));
        return reading;
    }
    let part = Part {
        value: &document.value,
        outer: String::new(),
        line: document.line,
        inherited: None,
    };
    read_part(&source, &part, &mut reading);
    reading
}

/// Whether its values are not to be repeated: a Secret, or a list, whose items may be Secrets.
fn may_hold_secrets(value: &Value) -> bool {
    let kind = value.get("kind").and_then(Value::as_str).unwrap_or_default();
    kind == "Secret" || kind.ends_with("List")
}

fn unquoted(file: &Arc<str>, note: &Note, secret: bool) -> Finding {
    let message = if secret {
        "this value stands without quotes and is read as a number or boolean".to_owned()
    } else {
        format!("{:?} stands without quotes and is read as {}", note.text, note.value)
    };
    Finding::warning("UnquotedNumber", message)
        .at(&**file, note.line)
        .field(note.field.as_str())
        .hint("put it in quotes if text is meant")
}

fn read_part(source: &Source<'_>, part: &Part<'_>, reading: &mut Reading) {
    let Some(map) = part.value.as_object() else {
        let found = if part.value.is_array() {
            "a list"
        } else {
            "a single value"
        };
        return reading.neither(
            source,
            part,
            "NotAnObject",
            format!("a manifest is a map, and this is {found}"),
            "",
        );
    };
    let (Some(api_version), Some(kind)) = (inherit(map, "apiVersion", part), inherit(map, "kind", part)) else {
        return reading.neither(
            source,
            part,
            "NotAnObject",
            missing_type(map),
            "leave it out with the feed's exclude or a .flotillaignore",
        );
    };
    if let Some(items) = list_items(map, &kind) {
        return read_list(source, part, (&api_version, &kind), items, reading);
    }
    let found = kinds::kind_of(&api_version, &kind);
    if source.folder == Folder::Access && matches!(found, Kind::Object | Kind::Chart) {
        return read_access(source, part, map, (&api_version, &kind), reading);
    }
    match found {
        Kind::Own(own) => read_own(own, source, part, map, kinds::is_ours(&api_version), reading),
        Kind::Unknown => unknown(source, part, &api_version, &kind, reading),
        Kind::Object if source.folder == Folder::Declarations && kinds::is_own_name(&kind) => {
            unknown(source, part, &api_version, &kind, reading)
        }
        Kind::Unused => {
            let (message, hint) = kinds::unused(&api_version, &kind, source.file, map);
            let finding = Finding::warning("UnusedKind", message).at(&**source.file, part.line);
            reading.findings.push(finding.hint(hint));
        }
        Kind::Chart => match check_chart(source, part, map, kinds::is_ours(&api_version), reading) {
            Some(error) => reading.items.push(Item::Neither(Box::new(error))),
            None => read_object(source, part, map, &api_version, &kind, reading),
        },
        Kind::Object => read_object(source, part, map, &api_version, &kind, reading),
    }
}

/// An object below `access/`: a role or binding, or a mistake.
fn read_access(
    source: &Source<'_>,
    part: &Part<'_>,
    map: &Map<String, Value>,
    (api_version, kind): (&str, &str),
    reading: &mut Reading,
) {
    if let Some(kind) = AccessKind::of(api_version, kind) {
        return read_own(OwnKind::Access(kind), source, part, map, true, reading);
    }
    let message =
        format!("{kind} of {api_version} is neither a role nor a binding, and below access/ nothing else is read");
    let error = Finding::error("NotAccess", message).hint(AccessKind::meant(kind));
    reading.undeclared(source, part, error);
}

fn unknown(source: &Source<'_>, part: &Part<'_>, api_version: &str, kind: &str, reading: &mut Reading) {
    let message = format!("{kind} of {api_version} is not known to this version");
    let error = Finding::error("UnknownKind", message).hint(kinds::meant(api_version, kind));
    reading.undeclared(source, part, error);
}

/// `apiVersion` or `kind`, from the document or from the list around it.
fn inherit(map: &Map<String, Value>, name: &str, part: &Part<'_>) -> Option<String> {
    let own = map.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    if own.is_some() || map.contains_key(name) {
        return own.map(str::to_owned);
    }
    let (api_version, kind) = part.inherited.as_ref()?;
    Some(if name == "kind" {
        kind.clone()
    } else {
        api_version.clone()
    })
}

fn missing_type(map: &Map<String, Value>) -> String {
    let wrong = |name: &str| match map.get(name) {
        None | Some(Value::Null) => Some(format!("{name} is missing")),
        Some(Value::String(text)) if text.is_empty() => Some(format!("{name} is empty")),
        Some(Value::String(_)) => None,
        Some(_) => Some(format!("{name} is not text")),
    };
    let parts: Vec<_> = ["apiVersion", "kind"].into_iter().filter_map(wrong).collect();
    parts.join(" and ")
}

fn read_list(
    source: &Source<'_>,
    part: &Part<'_>,
    (api_version, kind): (&str, &str),
    items: &[Value],
    reading: &mut Reading,
) {
    if part.value.get("sops").is_some() {
        let message = "an encrypted list cannot be taken apart";
        return reading.neither(source, part, "NotAnObject", message, OF_ITS_OWN);
    }
    let item_kind = kind.strip_suffix("List").filter(|kind| !kind.is_empty());
    for (index, value) in items.iter().enumerate() {
        let outer = match part.outer.as_str() {
            "" => format!("items[{index}]"),
            outer => format!("{outer}.items[{index}]"),
        };
        let item = Part {
            value,
            line: source.line_of(&outer, part.line),
            outer,
            inherited: item_kind.map(|kind| (api_version.to_owned(), kind.to_owned())),
        };
        read_part(source, &item, reading);
    }
}

fn read_own(
    kind: OwnKind,
    source: &Source<'_>,
    part: &Part<'_>,
    map: &Map<String, Value>,
    ours: bool,
    reading: &mut Reading,
) {
    let judge = Judge::new(ours);
    let line_of = |field: &str| {
        let dot = if part.outer.is_empty() { "" } else { "." };
        source.line_of(&format!("{}{dot}{field}", part.outer), part.line)
    };
    let place = kinds::Place {
        file: source.file,
        line: part.line,
        line_of: &line_of,
    };
    let read = kinds::read(kind, map, &place, &judge);
    let unit = match &read.declaration {
        Some(Declaration::Unit(unit)) => Some(unit.subscription.key.clone()),
        _ => None,
    };
    let findings = reading.judge(source, part, judge, unit.as_ref());
    let errors: Vec<_> = findings.into_iter().filter(Finding::is_error).collect();
    match (read.key, read.declaration) {
        // A Subscription with errors stays a unit, so that what is published of it stays too.
        (Some(key), Some(Declaration::Unit(mut unit))) => {
            unit.problems = errors;
            reading.declared(key, part.line, Declaration::Unit(unit));
        }
        (Some(key), Some(declaration)) if errors.is_empty() => reading.declared(key, part.line, declaration),
        (key, declaration) => {
            let target = match declaration {
                Some(Declaration::Override(declared)) => Some(declared.feed.clone()),
                _ => None,
            };
            let error = errors.into_iter().next().unwrap_or_else(|| unnamed(source, part));
            reading.broken.push(Broken { key, target, error });
        }
    }
}

fn unnamed(source: &Source<'_>, part: &Part<'_>) -> Finding {
    Finding::error("FieldMissing", "the declaration cannot be read").at(&**source.file, part.line)
}

/// Says what is wrong with a chart; its first error makes it none that could be delivered.
fn check_chart(
    source: &Source<'_>,
    part: &Part<'_>,
    map: &Map<String, Value>,
    ours: bool,
    reading: &mut Reading,
) -> Option<Finding> {
    let judge = Judge::new(ours);
    kinds::check_chart(map, &judge);
    let findings = reading.judge(source, part, judge, None);
    findings.into_iter().find(Finding::is_error)
}

fn read_object(
    source: &Source<'_>,
    part: &Part<'_>,
    map: &Map<String, Value>,
    api_version: &str,
    kind: &str,
    reading: &mut Reading,
) {
    let key = match object_key(map, api_version, kind) {
        Ok(key) => key,
        Err((reason, message)) => {
            let hint = if reason == "GenerateName" {
                "give it a name: a unit must know what it delivered"
            } else {
                ""
            };
            return reading.neither(source, part, reason, message, hint);
        }
    };
    if is_encrypted(part.value) && !part.outer.is_empty() {
        // Its own text, which is what travels, cannot be cut out of the list around it.
        return reading.neither(source, part, "NotAnObject", IN_A_LIST, OF_ITS_OWN);
    }
    let mut value = part.value.clone();
    if let (Value::Object(map), true) = (&mut value, part.inherited.is_some()) {
        map.insert("apiVersion".to_owned(), Value::from(api_version));
        map.insert("kind".to_owned(), Value::from(kind));
    }
    let head = Head {
        key,
        api_version: api_version.to_owned(),
        original: original(source.text, source.document),
    };
    let object = head.finish(source.file, part.line, value);
    reading.items.push(Item::Object(Arc::new(object)));
}

impl Reading {
    fn declared(&mut self, key: DeclarationKey, line: u32, declaration: Declaration) {
        let declaration = Box::new(declaration);
        self.items.push(Item::Declared { key, line, declaration });
    }

    /// Whatever it declared before, it did not take back: a misspelt kind removes nothing.
    fn undeclared(&mut self, source: &Source<'_>, part: &Part<'_>, error: Finding) {
        let error = error.at(&**source.file, part.line);
        self.findings.push(error.clone());
        let (key, target) = (None, None);
        self.broken.push(Broken { key, target, error });
    }

    fn neither(&mut self, source: &Source<'_>, part: &Part<'_>, reason: &str, message: impl Into<String>, hint: &str) {
        let field = match reason {
            "GenerateName" => "metadata.generateName",
            "NameMissing" | "NameInvalid" => "metadata.name",
            _ => "",
        };
        let finding = Finding::error(reason, message)
            .at(&**source.file, part.line)
            .field(field)
            .hint(hint);
        self.items.push(Item::Neither(Box::new(finding)));
    }

    /// Turns a judge's problems into findings, and gives them back.
    fn judge(&mut self, source: &Source<'_>, part: &Part<'_>, judge: Judge, unit: Option<&UnitKey>) -> Vec<Finding> {
        let problems = judge.into_problems();
        if problems.is_empty() {
            return Vec::new();
        }
        let place = |problem: Problem| problem.finding(source.file, source.places(), &part.outer, part.line);
        let tag = |finding: Finding| match unit {
            Some(unit) => finding.unit(unit),
            None => finding,
        };
        let findings: Vec<_> = problems.into_iter().map(place).map(tag).collect();
        self.findings.extend(findings.iter().cloned());
        findings
    }
}
