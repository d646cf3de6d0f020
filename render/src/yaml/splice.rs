//! A list in somebody's file loses and gets items, and every other byte of the file stays as it is.
//!
//! In: a text, one of its documents, and which list of it. Out: the text as it should be, or nothing where it is
//! written in a way that cannot be kept. What comes out was read again, and says what was asked for.

use std::ops::Range;

use serde_json::{Value, json};

use super::outline::{Inside, Outline};
use super::read::read;
use super::write::write;

/// A list of maps or texts below the top of a document, such as `spec.taints`.
#[derive(Clone, Copy, Debug)]
pub struct ListAt<'a> {
    /// Line of the document's first key, from 1.
    pub line: u32,
    /// The field of the document.
    pub outer: &'a str,
    /// The field of that.
    pub list: &'a str,
}

/// What a list gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// A map of texts, in the order in which it is written.
    Map(Vec<(&'a str, &'a str)>),
    /// A text.
    Text(&'a str),
}

/// The text without some items of a list, given by their indexes, and with others at its end. The list, and the map
/// around it, are made where they are missing, and go with their last item.
pub fn splice(text: &str, at: ListAt<'_>, without: &[usize], with: &[Item<'_>]) -> Option<String> {
    let mut without = without.to_vec();
    without.sort_unstable();
    let removals = without.iter().rev().map(|index| Step::Remove(*index));
    let mut steps = removals.chain(with.iter().map(Step::Add));
    steps.try_fold(text.to_owned(), |text, step| checked(&text, at, step))
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Remove(usize),
    Add(&'a Item<'a>),
}

/// One step; `None` unless the outcome says exactly what it should.
fn checked(text: &str, at: ListAt<'_>, step: Step<'_>) -> Option<String> {
    let mut before = read(text).ok()?;
    let document = before.iter_mut().find(|document| document.line == at.line)?;
    let span = document.span.clone();
    let part = &text[span.clone()];
    let (place, insert) = match step {
        Step::Add(item) => addition(part, at, item)?,
        Step::Remove(index) => (removal(part, at, index)?, String::new()),
    };
    // Lines end as those of the file do.
    let insert = match text.contains("\r\n") {
        true => insert.replace('\n', "\r\n"),
        false => insert,
    };
    let mut edited = text.to_owned();
    edited.replace_range(span.start + place.start..span.start + place.end, &insert);
    apply(&mut document.value, at, step)?;
    let mut after = read(&edited).ok()?;
    let document = after.iter_mut().find(|document| document.line == at.line)?;
    drop_empty(&mut document.value, at);
    let says = |documents: Vec<super::Document>| documents.into_iter().map(|document| document.value);
    says(before).eq(says(after)).then_some(edited)
}

/// What a step does to what the document says.
fn apply(document: &mut Value, at: ListAt<'_>, step: Step<'_>) -> Option<()> {
    drop_empty(document, at);
    let map = document.as_object_mut()?.entry(at.outer).or_insert_with(|| json!({}));
    let items = map.as_object_mut()?.entry(at.list).or_insert_with(|| json!([]));
    let items = items.as_array_mut()?;
    match step {
        Step::Add(Item::Text(text)) => items.push(json!(text)),
        Step::Add(Item::Map(pairs)) => items.push(
            pairs
                .iter()
                .map(|(key, value)| ((*key).to_owned(), json!(value)))
                .collect(),
        ),
        Step::Remove(index) if index < items.len() => drop(items.remove(index)),
        Step::Remove(_) => return None,
    }
    drop_empty(document, at);
    Some(())
}

/// A list without items, and a map without fields, say the same as none.
fn drop_empty(document: &mut Value, at: ListAt<'_>) {
    let is_empty = |value: &Value| value.is_null() || *value == json!([]) || *value == json!({});
    let Some(document) = document.as_object_mut() else {
        return;
    };
    if let Some(map) = document.get_mut(at.outer).and_then(Value::as_object_mut)
        && map.get(at.list).is_some_and(is_empty)
    {
        map.remove(at.list);
    }
    if document.get(at.outer).is_some_and(is_empty) {
        document.remove(at.outer);
    }
}

/// Where an item is put in, and as what.
fn addition(text: &str, at: ListAt<'_>, item: &Item<'_>) -> Option<(Range<usize>, String)> {
    let words = Words {
        is_json: text.trim_start().starts_with('{'),
    };
    let root = Outline::of(text)?;
    let list = |indent: usize| words.below(at.list, indent, &words.block(item, indent + 2));
    let Some((outer, map)) = root.field(at.outer) else {
        return Some(match root.flow {
            true => {
                let fields = words.pair(at.list, &format!("[{}]", words.flow(item)));
                first(&root, &words.pair(at.outer, &format!("{{{fields}}}")))
            }
            false => {
                let indent = column(text, root.start)?;
                after_line(text, root.end, &words.below(at.outer, indent, &list(indent + 2)))
            }
        });
    };
    let Some((key, items)) = map.field(at.list) else {
        return match (&map.inside, map.flow) {
            (Inside::Fields(_), true) => Some(first(map, &words.pair(at.list, &format!("[{}]", words.flow(item))))),
            (Inside::Fields(_), false) => Some(after_line(text, outer, &list(column(text, map.start)?))),
            (Inside::Nothing, _) => Some(after_line(text, outer, &list(column(text, outer)? + 2))),
            _ => None,
        };
    };
    match &items.inside {
        Inside::Nothing => {
            let indent = column(text, key)? + 2;
            Some(after_line(text, key, &words.block(item, indent)))
        }
        Inside::Items(found) if items.flow => Some(match found.last() {
            Some(last) => (last.end..last.end, format!(", {}", words.flow(item))),
            None => (items.start + 1..items.start + 1, words.flow(item)),
        }),
        Inside::Items(found) => {
            let dash = dash(text, found.first()?)?;
            Some(after_line(
                text,
                found.last()?.end,
                &words.block(item, column(text, dash)?),
            ))
        }
        Inside::Fields(_) | Inside::Scalar => None,
    }
}

/// The part of the text that an item is.
fn removal(text: &str, at: ListAt<'_>, index: usize) -> Option<Range<usize>> {
    let root = Outline::of(text)?;
    let (outer, map) = root.field(at.outer)?;
    let (_, items) = map.field(at.list)?;
    let (Inside::Items(found), Inside::Fields(fields)) = (&items.inside, &map.inside) else {
        return None;
    };
    let item = found.get(index)?;
    if found.len() > 1 {
        return match items.flow {
            true => among(found.iter().map(|item| item.start..item.end), index),
            false => Some(lines(text, dash(text, item)?, item.end)),
        };
    }
    let place = fields.iter().position(|(name, ..)| name == at.list)?;
    let (_, start, list) = fields.get(place)?;
    match map.flow {
        true => among(fields.iter().map(|(_, start, value)| *start..value.end), place),
        false if fields.len() == 1 => Some(lines(text, outer, list.end)),
        false => Some(lines(text, *start, list.end)),
    }
}

/// One of several parts that commas divide, with the comma that goes with it.
fn among(parts: impl Iterator<Item = Range<usize>>, index: usize) -> Option<Range<usize>> {
    let parts: Vec<_> = parts.collect();
    let own = parts.get(index)?;
    let before = index.checked_sub(1).and_then(|before| parts.get(before));
    Some(match (parts.get(index + 1), before) {
        (Some(next), _) => own.start..next.start,
        (None, Some(before)) => before.end..own.end,
        (None, None) => own.clone(),
    })
}

/// Where the first field of a map in braces is put in.
fn first(map: &Outline, pair: &str) -> (Range<usize>, String) {
    let place = map.start + 1;
    let is_empty = matches!(&map.inside, Inside::Fields(fields) if fields.is_empty());
    let comma = if is_empty { "" } else { ", " };
    (place..place, format!("{pair}{comma}"))
}

/// Where lines are put in after the line that has this place.
fn after_line(text: &str, place: usize, insert: &str) -> (Range<usize>, String) {
    let end = line_end(text, place);
    let is_open = !text[..end].ends_with('\n');
    (end..end, format!("{}{insert}", if is_open { "\n" } else { "" }))
}

/// The whole lines from one place to another.
fn lines(text: &str, start: usize, end: usize) -> Range<usize> {
    line_start(text, start)..line_end(text, end)
}

fn line_start(text: &str, place: usize) -> usize {
    text[..place].rfind('\n').map_or(0, |newline| newline + 1)
}

fn line_end(text: &str, place: usize) -> usize {
    text[place..]
        .find('\n')
        .map_or(text.len(), |newline| place + newline + 1)
}

/// How far something is indented; `None` where something else stands before it.
fn column(text: &str, place: usize) -> Option<usize> {
    let before = &text[line_start(text, place)..place];
    before.bytes().all(|byte| byte == b' ').then_some(before.len())
}

/// The dash before an item.
fn dash(text: &str, item: &Outline) -> Option<usize> {
    let start = line_start(text, item.start);
    let before = text[start..item.start].trim_end_matches(' ');
    before.ends_with('-').then(|| start + before.len() - 1)
}

/// How texts and maps are written in this document.
struct Words {
    is_json: bool,
}

impl Words {
    fn text(&self, text: &str) -> String {
        match self.is_json {
            true => json!(text).to_string(),
            false => write(&json!(text)).trim_end().to_owned(),
        }
    }

    fn pair(&self, key: &str, value: &str) -> String {
        format!("{}: {value}", self.text(key))
    }

    fn flow(&self, item: &Item<'_>) -> String {
        match item {
            Item::Text(text) => self.text(text),
            Item::Map(pairs) => {
                let pairs = pairs.iter().map(|(key, value)| self.pair(key, &self.text(value)));
                format!("{{{}}}", pairs.collect::<Vec<_>>().join(", "))
            }
        }
    }

    fn block(&self, item: &Item<'_>, indent: usize) -> String {
        let pairs = match item {
            Item::Text(text) => return format!("{:indent$}- {}\n", "", self.text(text)),
            Item::Map(pairs) => pairs,
        };
        let lines = pairs.iter().enumerate().map(|(index, (key, value))| {
            let dash = if index == 0 { "- " } else { "  " };
            format!("{:indent$}{dash}{}\n", "", self.pair(key, &self.text(value)))
        });
        lines.collect()
    }

    fn below(&self, key: &str, indent: usize, lines: &str) -> String {
        format!("{:indent$}{}:\n{lines}", "", self.text(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items<'a>() -> [Item<'a>; 2] {
        [
            Item::Map(vec![("key", "x/cordoned"), ("effect", "NoSchedule")]),
            Item::Map(vec![("key", "x/drained"), ("value", "12"), ("effect", "NoExecute")]),
        ]
    }

    fn at<'a>(line: u32) -> ListAt<'a> {
        ListAt {
            line,
            outer: "spec",
            list: "taints",
        }
    }

    /// Both items are added, and are gone again from behind.
    #[track_caller]
    fn check(before: &str, expected: &str) {
        let line = read(before).expect("it is YAML")[0].line;
        let after = splice(before, at(line), &[], &items()).expect("it can be edited");
        assert_eq!(after, expected);
        let own = |value: &Value| value["key"].as_str().is_some_and(|key| key.starts_with("x/"));
        let value = &read(&after).expect("it is YAML")[0].value;
        let taints = value["spec"]["taints"].as_array().expect("a list").iter();
        let places: Vec<_> = taints
            .enumerate()
            .filter(|(_, taint)| own(taint))
            .map(|(index, _)| index)
            .collect();
        let again = splice(&after, at(line), &places, &[]).expect("it can be edited");
        assert_eq!(again, before, "nothing is left of it");
    }

    const ADDED: &str = "    - key: x/cordoned
      effect: NoSchedule
    - key: x/drained
      value: \"12\"
      effect: NoExecute
";
    const FLOW: &str = "{key: x/cordoned, effect: NoSchedule}, {key: x/drained, value: \"12\", effect: NoExecute}";

    #[test]
    fn a_list_is_made_where_there_is_none_and_goes_with_its_last_item() {
        check(
            "# top\nkind: C\n",
            &format!("# top\nkind: C\nspec:\n  taints:\n{ADDED}"),
        );
        check(
            "kind: C\nspec: # why\n  # first\n  id: a\nlast: b\n",
            &format!("kind: C\nspec: # why\n  taints:\n{ADDED}  # first\n  id: a\nlast: b\n"),
        );
        check(
            "kind: C\nspec: {id: a} # one\n",
            &format!("kind: C\nspec: {{taints: [{FLOW}], id: a}} # one\n"),
        );
        check("{\"kind\": \"C\", \"spec\": {}}", &{
            let flow = "{\"key\": \"x/cordoned\", \"effect\": \"NoSchedule\"}, {\"key\": \"x/drained\", \"value\": \"12\", \"effect\": \"NoExecute\"}";
            format!("{{\"kind\": \"C\", \"spec\": {{\"taints\": [{flow}]}}}}")
        });
    }

    #[test]
    fn new_lines_end_as_the_others_do() {
        let crlf = |text: &str| text.replace('\n', "\r\n");
        check(
            &crlf("kind: C\nspec:\n  id: a\n"),
            &crlf(&format!("kind: C\nspec:\n  taints:\n{ADDED}  id: a\n")),
        );
    }

    #[test]
    fn items_come_after_those_that_are_there_as_they_are_indented() {
        check(
            "kind: C\nspec:\n  taints:\n    # own\n    - {key: y, effect: NoSchedule} # why\n  id: a\n",
            &format!(
                "kind: C\nspec:\n  taints:\n    # own\n    - {{key: y, effect: NoSchedule}} # why\n{ADDED}  id: a\n"
            ),
        );
        let flush = ADDED.replace("    -", "  -").replace("      ", "    ");
        check(
            "kind: C\nspec:\n  taints:\n  - key: y\n    effect: NoSchedule\n",
            &format!("kind: C\nspec:\n  taints:\n  - key: y\n    effect: NoSchedule\n{flush}"),
        );
        check(
            "kind: C\nspec:\n  taints: [{key: y, effect: NoSchedule}]\n",
            &format!("kind: C\nspec:\n  taints: [{{key: y, effect: NoSchedule}}, {FLOW}]\n"),
        );
    }

    #[test]
    fn a_list_of_texts_loses_and_gets_texts() {
        let at = ListAt {
            line: 1,
            outer: "spec",
            list: "publicKeys",
        };
        let swap = |text: &str| splice(text, at, &[0], &[Item::Text("b: 2")]);
        for (before, after) in [
            (
                "kind: C\nspec:\n  publicKeys: # two\n    - a # first\n    - c\n  id: x\n",
                "kind: C\nspec:\n  publicKeys: # two\n    - c\n    - \"b: 2\"\n  id: x\n",
            ),
            (
                "kind: C\nspec: {publicKeys: ['a', c]}\n",
                "kind: C\nspec: {publicKeys: [c, \"b: 2\"]}\n",
            ),
        ] {
            assert_eq!(swap(before).as_deref(), Some(after));
        }
    }

    #[test]
    fn a_last_line_without_its_end_gets_one() {
        let after = splice("kind: C", at(1), &[], &items()[..1]).expect("it can be edited");
        assert!(after.starts_with("kind: C\nspec:\n  taints:\n    - key"), "{after}");
    }

    #[test]
    fn only_the_document_that_is_meant_is_edited() {
        let text = "kind: A\n---\nkind: B # second\n---\nkind: C\n";
        let after = splice(text, at(3), &[], &items()[..1]).expect("it can be edited");
        assert_eq!(
            after,
            "kind: A\n---\nkind: B # second\nspec:\n  taints:\n    - key: x/cordoned\n      effect: NoSchedule\n---\nkind: C\n"
        );
    }

    #[test]
    fn what_cannot_be_edited_without_touching_the_rest_is_left_alone() {
        for text in [
            "kind: C\nspec: &all {id: a}\nother: *all\n",
            "kind: C\nspec:\n  taints: none\n",
            "kind: C\nspec: ~\n",
            "{kind: C, spec: {}}",
        ] {
            assert_eq!(splice(text, at(1), &[], &items()), None, "{text}");
        }
        assert_eq!(splice("kind: C\n", at(1), &[0], &[]), None, "there is no such item");
        assert_eq!(splice("kind: C\n", at(7), &[], &items()), None, "nor such a document");
    }
}
