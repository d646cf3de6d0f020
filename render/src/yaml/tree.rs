//! One document as a tree in its own order, for whoever computes something over it as it stands.
//!
//! Scalars are read by YAML 1.2's table of words, as the tools that sign documents read them: `yes` and `off`
//! are text. Aliases, and tags other than that of text, are refused: no tool writes them that needs this.

use granit_parser::{Event, ScalarStyle, Span, Tag};
use serde_json::Value;

use super::YamlError;
use super::read::{parser, scan_error};
use super::scalar::{self, Scalar};
use super::text::small;
use super::value::is_text_tag;
use crate::limits::DEPTH_MAX;

/// A node of a document.
#[derive(Clone, PartialEq)]
pub enum Node {
    /// Keys and values in the order in which they stand; each key once.
    Mapping(Vec<(String, Node)>),
    /// Items in order.
    Sequence(Vec<Node>),
    /// Text, a number, a boolean or null.
    Scalar(Value),
}

impl Node {
    /// The value of a key; `None` also where this is no mapping.
    pub fn get(&self, key: &str) -> Option<&Node> {
        match self {
            Self::Mapping(entries) => entries.iter().find(|(name, _)| name == key).map(|(_, node)| node),
            Self::Sequence(_) | Self::Scalar(_) => None,
        }
    }

    /// What it says, when it is text.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Scalar(Value::String(text)) => Some(text),
            Self::Mapping(_) | Self::Sequence(_) | Self::Scalar(_) => None,
        }
    }
}

/// Reads the one document of a text.
///
/// # Errors
///
/// The first mistake, also where there is no document or more than one.
pub fn read_tree(text: &str) -> Result<Node, YamlError> {
    let mut builder = Builder::default();
    let mut documents = 0;
    for event in parser(text) {
        let (event, span) = event.map_err(|error| scan_error(&error))?;
        if matches!(event, Event::DocumentStart(..)) {
            documents += 1;
        }
        if documents > 1 {
            return Err(at(span, "more than one document"));
        }
        builder.event(event, span)?;
    }
    builder.root.ok_or_else(|| YamlError::new(1, 1, "no document"))
}

/// A collection that is not closed yet.
enum Open {
    Mapping {
        entries: Vec<(String, Node)>,
        key: Option<String>,
    },
    Sequence(Vec<Node>),
}

#[derive(Default)]
struct Builder {
    open: Vec<Open>,
    root: Option<Node>,
}

impl Builder {
    fn event(&mut self, event: Event<'_>, span: Span) -> Result<(), YamlError> {
        match event {
            Event::Scalar(text, style, _, tag) => self.scalar(&text, style, tag.as_deref(), span),
            Event::SequenceStart(..) => self.begin(Open::Sequence(Vec::new()), span),
            Event::MappingStart(..) => {
                let (entries, key) = (Vec::new(), None);
                self.begin(Open::Mapping { entries, key }, span)
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let node = match self.open.pop() {
                    Some(Open::Mapping { entries, .. }) => Node::Mapping(entries),
                    Some(Open::Sequence(items)) => Node::Sequence(items),
                    None => return Ok(()),
                };
                self.place(node);
                Ok(())
            }
            Event::Alias(_) => Err(at(span, "an alias, which is not read here")),
            _ => Ok(()),
        }
    }

    fn begin(&mut self, open: Open, span: Span) -> Result<(), YamlError> {
        if self.awaits_key() {
            return Err(at(span, "a map or list is no key"));
        }
        if self.open.len() >= DEPTH_MAX {
            return Err(at(span, format!("nested deeper than {DEPTH_MAX} levels")));
        }
        self.open.push(open);
        Ok(())
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle, tag: Option<&Tag>, span: Span) -> Result<(), YamlError> {
        if tag.is_some_and(|tag| !is_text_tag(tag)) {
            return Err(at(span, "a tag, which is not read here"));
        }
        let awaits_key = self.awaits_key();
        if let Some(Open::Mapping { entries, key }) = self.open.last_mut()
            && awaits_key
        {
            if entries.iter().any(|(name, _)| name == text) {
                return Err(at(span, format!("the key {text:?} stands twice in one map")));
            }
            *key = Some(text.to_owned());
            return Ok(());
        }
        let value = if style == ScalarStyle::Plain && tag.is_none() {
            resolve(text).map_err(|error| at(span, error.to_string()))?
        } else {
            Value::String(text.to_owned())
        };
        self.place(Node::Scalar(value));
        Ok(())
    }

    fn place(&mut self, node: Node) {
        match self.open.last_mut() {
            None => self.root = Some(node),
            Some(Open::Sequence(items)) => items.push(node),
            Some(Open::Mapping { entries, key }) => entries.extend(key.take().map(|key| (key, node))),
        }
    }

    fn awaits_key(&self) -> bool {
        matches!(self.open.last(), Some(Open::Mapping { key: None, .. }))
    }
}

/// As kubectl reads it, but for the words that are booleans in YAML 1.1 alone.
fn resolve(text: &str) -> Result<Value, scalar::Unreadable> {
    let resolved = scalar::resolve(text)?;
    let is_old_word = matches!(resolved, Scalar::Bool(_)) && !matches!(text.as_bytes()[0], b't' | b'T' | b'f' | b'F');
    Ok(if is_old_word {
        Value::String(text.to_owned())
    } else {
        resolved.into_value(text)
    })
}

fn at(span: Span, message: impl Into<String>) -> YamlError {
    YamlError::new(small(span.start.line()), small(span.start.col() + 1), message)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn value(node: &Node) -> Value {
        match node {
            Node::Mapping(entries) => entries.iter().map(|(key, node)| json!([key, value(node)])).collect(),
            Node::Sequence(items) => json!({"items": items.iter().map(value).collect::<Vec<_>>()}),
            Node::Scalar(scalar) => scalar.clone(),
        }
    }

    #[test]
    fn a_tree_keeps_the_order_and_reads_yes_as_text() {
        let text = "# above\nz: yes\na: [1, 'two', true, 1.5, ~, [], {}]\nm:\n  y: |\n    one\n    two\n  b: \"\"\n";
        let tree = read_tree(text).expect("it is YAML");
        let expected = json!([
            ["z", "yes"],
            ["a", {"items": [1, "two", true, 1.5, null, {"items": []}, []]}],
            ["m", [["y", "one\ntwo\n"], ["b", ""]]],
        ]);
        assert_eq!(value(&tree), expected);
        assert_eq!(tree.get("z").and_then(Node::text), Some("yes"));
        let json = read_tree(r#"{"b": "x\/y", "a": -7}"#).expect("JSON is YAML");
        assert_eq!(value(&json), json!([["b", "x/y"], ["a", -7]]));
    }

    #[track_caller]
    fn check_refused(text: &str, message: &str) {
        let error = read_tree(text).err().expect("it is refused");
        assert!(error.message.contains(message), "{error}");
    }

    #[test]
    fn what_has_no_order_or_no_form_of_its_own_is_refused() {
        check_refused("a: &x 1\nb: *x\n", "an alias");
        check_refused("a: !!binary AA==\n", "a tag");
        check_refused("a: 1\na: 2\n", "stands twice");
        check_refused("? [a]\n: b\n", "no key");
        check_refused("a: 1\n---\nb: 1\n", "more than one document");
        check_refused("# nothing\n", "no document");
        check_refused(&format!("{}{}", "[".repeat(70), "]".repeat(70)), "nested deeper");
    }
}
