//! Builds the value of one document from the parser's events: anchors, merge keys, limits, repeated keys.

use std::collections::BTreeMap;

use granit_parser::{Event, ScalarStyle, Span, Tag};
use serde_json::{Map, Value};

use super::YamlError;
use super::scalar::{self, Scalar};
use super::text::small;
use super::value::{is_merge_tag, merge, tagged, weight};
use crate::limits::{ALIAS_BYTES_MAX, DEPTH_MAX};

/// A plain scalar that was read as a number though its text may have been meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Line, from 1.
    pub line: u32,
    /// Field path.
    pub field: String,
    /// The scalar as written.
    pub text: String,
    /// What it became.
    pub value: String,
}

/// Told of every node's place.
pub(super) trait Recorder {
    fn place(&mut self, frames: &[Frame], line: u32, column: u32);
}

/// Records nothing.
impl Recorder for () {
    fn place(&mut self, _frames: &[Frame], _line: u32, _column: u32) {}
}

/// A collection that is not closed yet.
pub(super) enum Frame {
    Sequence {
        items: Vec<Value>,
        anchor: usize,
    },
    Mapping {
        map: Map<String, Value>,
        key: Key,
        merges: Vec<Value>,
        anchor: usize,
    },
}

/// What a mapping waits for.
pub(super) enum Key {
    /// A key.
    Absent,
    /// The value of this key.
    Named(String),
    /// The value of a merge key.
    Merge,
}

struct Anchored {
    value: Value,
    bytes: usize,
    height: usize,
}

/// The state of one document.
pub(super) struct Builder<'r, R> {
    frames: Vec<Frame>,
    anchors: BTreeMap<usize, Anchored>,
    alias_bytes: usize,
    root: Option<Value>,
    pub(super) notes: Vec<Note>,
    recorder: &'r mut R,
}

impl<'r, R: Recorder> Builder<'r, R> {
    pub(super) fn new(recorder: &'r mut R) -> Self {
        Self {
            frames: Vec::new(),
            anchors: BTreeMap::new(),
            alias_bytes: 0,
            root: None,
            notes: Vec::new(),
            recorder,
        }
    }

    /// The document's value; `None` when it held nothing.
    pub(super) fn finish(self) -> (Option<Value>, Vec<Note>) {
        (self.root, self.notes)
    }

    pub(super) fn event(&mut self, event: Event<'_>, span: Span) -> Result<(), YamlError> {
        let place = Place::of(span);
        match event {
            Event::Scalar(text, style, anchor, tag) => self.scalar(&text, style, anchor, tag.as_deref(), place),
            Event::SequenceStart(_, anchor, _) => {
                let items = Vec::new();
                self.open(Frame::Sequence { items, anchor }, place)
            }
            Event::MappingStart(_, anchor, _) => {
                let (map, key, merges) = (Map::new(), Key::Absent, Vec::new());
                let frame = Frame::Mapping {
                    map,
                    key,
                    merges,
                    anchor,
                };
                self.open(frame, place)
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(place),
            Event::Alias(anchor) => self.alias(anchor, place),
            _ => Ok(()),
        }
    }

    fn open(&mut self, frame: Frame, place: Place) -> Result<(), YamlError> {
        if self.awaits_key() {
            return Err(place.error("a map or list is no key"));
        }
        self.place_item(place);
        if self.frames.len() >= DEPTH_MAX {
            return Err(place.error(format!("nested deeper than {DEPTH_MAX} levels")));
        }
        self.frames.push(frame);
        Ok(())
    }

    fn close(&mut self, place: Place) -> Result<(), YamlError> {
        let (value, anchor) = match self.frames.pop() {
            Some(Frame::Sequence { items, anchor }) => (Value::Array(items), anchor),
            Some(Frame::Mapping {
                mut map,
                merges,
                anchor,
                ..
            }) => {
                merge(&mut map, merges).map_err(|message| place.error(message))?;
                (Value::Object(map), anchor)
            }
            None => return Ok(()),
        };
        self.value(value, anchor, place)
    }

    fn scalar(
        &mut self,
        text: &str,
        style: ScalarStyle,
        anchor: usize,
        tag: Option<&Tag>,
        place: Place,
    ) -> Result<(), YamlError> {
        let plain = style == ScalarStyle::Plain && tag.is_none();
        if self.awaits_key() {
            return self.key(text, plain, anchor, tag, place);
        }
        self.place_item(place);
        let value = match tag {
            None if !plain => Value::String(text.to_owned()),
            None => {
                let scalar = scalar::resolve(text).map_err(|error| place.error(error.to_string()))?;
                if matches!(scalar, Scalar::Number(_)) && scalar::is_misleading(text) {
                    self.note(text, &scalar, place);
                }
                scalar.into_value(text)
            }
            Some(tag) => tagged(text, tag).map_err(|message| place.error(message))?,
        };
        self.value(value, anchor, place)
    }

    fn key(
        &mut self,
        text: &str,
        plain: bool,
        anchor: usize,
        tag: Option<&Tag>,
        place: Place,
    ) -> Result<(), YamlError> {
        let is_merge = text == "<<" && (plain || tag.is_some_and(is_merge_tag));
        if is_merge {
            self.set_key(Key::Merge);
            return Ok(());
        }
        let name = if plain {
            let scalar = scalar::resolve(text).map_err(|error| place.error(error.to_string()))?;
            let name = scalar::key_text(&scalar, text).ok_or_else(|| place.error("null is no key"))?;
            if name != text && !matches!(text, "True" | "TRUE" | "False" | "FALSE") {
                self.note(text, &scalar, place);
            }
            name
        } else {
            text.to_owned()
        };
        if anchor > 0 {
            self.define(anchor, Value::String(name.clone()), place)?;
        }
        if let Some(Frame::Mapping { map, .. }) = self.frames.last()
            && map.contains_key(&name)
        {
            return Err(place.error(format!("the key {name:?} stands twice in one map")));
        }
        self.set_key(Key::Named(name));
        self.recorder.place(&self.frames, place.line, place.column);
        Ok(())
    }

    fn alias(&mut self, anchor: usize, place: Place) -> Result<(), YamlError> {
        let Some(anchored) = self.anchors.get(&anchor) else {
            return Err(place.error("an alias stands inside the node that it names"));
        };
        self.alias_bytes += anchored.bytes;
        if self.alias_bytes > ALIAS_BYTES_MAX {
            return Err(place.error(format!("aliases expand to more than {ALIAS_BYTES_MAX} bytes")));
        }
        if self.frames.len() + anchored.height > DEPTH_MAX {
            return Err(place.error(format!("nested deeper than {DEPTH_MAX} levels")));
        }
        if self.awaits_key() {
            let Value::String(text) = &anchored.value else {
                return Err(place.error("only text may be a key by alias"));
            };
            let text = text.clone();
            return self.key(&text, false, 0, None, place);
        }
        let value = anchored.value.clone();
        self.place_item(place);
        self.value(value, 0, place)
    }

    /// Puts a finished value where it belongs.
    fn value(&mut self, value: Value, anchor: usize, place: Place) -> Result<(), YamlError> {
        if anchor > 0 {
            self.define(anchor, value.clone(), place)?;
        }
        match self.frames.last_mut() {
            None => self.root = Some(value),
            Some(Frame::Sequence { items, .. }) => items.push(value),
            Some(Frame::Mapping { map, key, merges, .. }) => match std::mem::replace(key, Key::Absent) {
                Key::Named(name) => {
                    map.insert(name, value);
                }
                Key::Merge => merges.push(value),
                Key::Absent => {}
            },
        }
        Ok(())
    }

    /// Keeps an anchored value. Its copy counts against the same limit as its uses, since anchors nest.
    fn define(&mut self, anchor: usize, value: Value, place: Place) -> Result<(), YamlError> {
        let (bytes, height) = weight(&value);
        self.alias_bytes += bytes;
        if self.alias_bytes > ALIAS_BYTES_MAX {
            return Err(place.error(format!("aliases expand to more than {ALIAS_BYTES_MAX} bytes")));
        }
        self.anchors.insert(anchor, Anchored { value, bytes, height });
        Ok(())
    }

    fn awaits_key(&self) -> bool {
        matches!(self.frames.last(), Some(Frame::Mapping { key: Key::Absent, .. }))
    }

    fn set_key(&mut self, new: Key) {
        if let Some(Frame::Mapping { key, .. }) = self.frames.last_mut() {
            *key = new;
        }
    }

    /// Records the place of a list's item; that of a map's value is its key's.
    fn place_item(&mut self, place: Place) {
        if !matches!(self.frames.last(), Some(Frame::Mapping { .. })) {
            self.recorder.place(&self.frames, place.line, place.column);
        }
    }

    fn note(&mut self, text: &str, scalar: &Scalar, place: Place) {
        let value = match scalar.clone().into_value(text) {
            Value::Bool(value) => format!("the boolean {value}"),
            value => format!("the number {value}"),
        };
        let field = field_path(&self.frames);
        self.notes.push(Note {
            line: place.line,
            field,
            text: text.to_owned(),
            value,
        });
    }
}

/// The field path of the node that is read now: `spec.feeds[0].name`.
pub(super) fn field_path(frames: &[Frame]) -> String {
    let mut path = String::new();
    for frame in frames {
        match frame {
            Frame::Sequence { items, .. } => path.push_str(&format!("[{}]", items.len())),
            Frame::Mapping { key, .. } => {
                let name = match key {
                    Key::Named(name) => name,
                    Key::Merge => "<<",
                    Key::Absent => continue,
                };
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(name);
            }
        }
    }
    path
}

/// Where an event starts.
#[derive(Clone, Copy)]
struct Place {
    line: u32,
    column: u32,
}

impl Place {
    fn of(span: Span) -> Self {
        Self {
            line: small(span.start.line()),
            column: small(span.start.col() + 1),
        }
    }

    fn error(self, message: impl Into<String>) -> YamlError {
        YamlError::new(self.line, self.column, message)
    }
}
