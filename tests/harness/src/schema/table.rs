//! The built-in types, from the table that the contract tests compare with a real API server's documents.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::{Field, ListRule, Object, Patch, Scalar, Shape};

/// One line per type, and one per field below it: name, shape, and what else counts.
const TEXT: &str = include_str!("types.txt");

static TABLE: LazyLock<Table> = LazyLock::new(Table::read);

struct Table {
    by_name: BTreeMap<&'static str, usize>,
    shapes: Vec<Shape>,
}

/// The shape of a built-in type.
pub(crate) fn builtin(name: &str) -> Shape {
    Shape::Named {
        index: builtin_index(name),
        atomic: false,
    }
}

/// Where a built-in type stands.
fn builtin_index(name: &str) -> usize {
    *TABLE.by_name.get(name).expect("the tables of kinds and types agree")
}

/// All built-in types by name.
pub(crate) fn builtins() -> impl Iterator<Item = (&'static str, &'static Shape)> {
    TABLE.by_name.iter().map(|(name, index)| (*name, &TABLE.shapes[*index]))
}

pub(super) fn by_index(index: usize) -> &'static Shape {
    &TABLE.shapes[index]
}

/// The name of the type at a place.
pub(super) fn name_of(index: usize) -> &'static str {
    let found = TABLE.by_name.iter().find(|(_, at)| **at == index);
    found.map(|(name, _)| *name).expect("a place in the table has a name")
}

impl Table {
    fn read() -> Self {
        let headers = TEXT.lines().filter(|line| !line.starts_with(' '));
        let by_name: BTreeMap<_, _> = headers
            .enumerate()
            .map(|(index, line)| (line.trim_end_matches('!'), index))
            .collect();
        let mut shapes = Vec::with_capacity(by_name.len());
        for line in TEXT.lines() {
            match line.strip_prefix("  ") {
                None => shapes.push(Shape::Object(Object {
                    atomic: line.ends_with('!'),
                    ..Object::default()
                })),
                Some(field) => {
                    if let Some(Shape::Object(object)) = shapes.last_mut() {
                        add_field(object, field, &by_name);
                    }
                }
            }
        }
        Self { by_name, shapes }
    }
}

fn add_field(object: &mut Object, line: &'static str, names: &BTreeMap<&'static str, usize>) {
    let mut words = line.split(' ');
    let (Some(name), Some(shape)) = (words.next(), words.next()) else {
        return;
    };
    if name == "*" {
        object.open = true;
        return;
    }
    let mut field = Field {
        shape: shape_of(shape, names),
        required: false,
        patch: Patch::default(),
        default: None,
    };
    for word in words {
        match word.split_once('=') {
            None => field.required |= word == "required",
            Some(("patch", strategies)) => {
                field.patch.merge = strategies.split(',').any(|strategy| strategy == "merge");
                field.patch.retain_keys = strategies.split(',').any(|strategy| strategy == "retainKeys");
            }
            Some(("key", key)) => field.patch.key = Some(key.into()),
            Some((_, default)) => field.default = serde_json::from_str(default).ok(),
        }
    }
    object.fields.insert(name.into(), field);
}

fn shape_of(text: &str, names: &BTreeMap<&'static str, usize>) -> Shape {
    if let Some(rest) = text.strip_prefix('#') {
        let name = rest.trim_end_matches('!');
        return Shape::Named {
            index: *names.get(name).expect("a type that the table names is in it"),
            atomic: rest.ends_with('!'),
        };
    }
    if let Some(rest) = text.strip_prefix('[') {
        let (of, rule) = rest.rsplit_once(']').expect("a list in the table is closed");
        let rule = match rule {
            "" => ListRule::Atomic,
            "set" => ListRule::Set,
            keys => {
                let keys = keys.trim_start_matches("map(").trim_end_matches(')');
                ListRule::Keys(keys.split(',').map(Into::into).collect())
            }
        };
        let of = Box::new(shape_of(of, names));
        return Shape::List { of, rule };
    }
    if let Some(rest) = text.strip_prefix('{') {
        let (of, mark) = rest.rsplit_once('}').expect("a map in the table is closed");
        return Shape::Map {
            of: Box::new(shape_of(of, names)),
            atomic: mark == "!",
        };
    }
    match text {
        "s" => Shape::Scalar(Scalar::String),
        "y" => Shape::Scalar(Scalar::Bytes),
        "t" => Shape::Scalar(Scalar::Time),
        "i" => Shape::Scalar(Scalar::Integer),
        "n" => Shape::Scalar(Scalar::Number),
        "b" => Shape::Scalar(Scalar::Boolean),
        "x" => Shape::Scalar(Scalar::IntOrString),
        "q" => Shape::Scalar(Scalar::Quantity),
        _ => Shape::Any,
    }
}
