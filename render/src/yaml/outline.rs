//! Where the parts of a document stand, in bytes. What they say is elsewhere.

use granit_parser::{Event, Span, StructureStyle};

use super::read::parser;
use crate::limits::DEPTH_MAX;

/// A node, from its first byte to after its last.
pub(super) struct Outline {
    pub(super) start: usize,
    pub(super) end: usize,
    /// Whether it is written in braces or brackets.
    pub(super) flow: bool,
    pub(super) inside: Inside,
}

pub(super) enum Inside {
    /// Key, where the key begins, and value.
    Fields(Vec<(String, usize, Outline)>),
    Items(Vec<Outline>),
    Scalar,
    /// Nothing is written there.
    Nothing,
}

impl Outline {
    /// The one document of a text. Anchors, aliases and tags are not followed: there is no outline of what has them.
    pub(super) fn of(text: &str) -> Option<Self> {
        let mut builder = Builder::default();
        for event in parser(text) {
            let (event, span) = event.ok()?;
            builder.event(event, span)?;
        }
        builder.root
    }

    /// A field, with the place of its key.
    pub(super) fn field(&self, name: &str) -> Option<(usize, &Self)> {
        let Inside::Fields(fields) = &self.inside else {
            return None;
        };
        let found = fields.iter().find(|(key, ..)| key == name);
        found.map(|(_, start, value)| (*start, value))
    }

    fn last_end(&self) -> Option<usize> {
        match &self.inside {
            Inside::Fields(fields) => fields.last().map(|(.., value)| value.end),
            Inside::Items(items) => items.last().map(|item| item.end),
            Inside::Scalar | Inside::Nothing => None,
        }
    }
}

#[derive(Default)]
struct Builder {
    open: Vec<(Outline, Option<(String, usize)>)>,
    root: Option<Outline>,
}

impl Builder {
    fn event(&mut self, event: Event<'_>, span: Span) -> Option<()> {
        let (start, end) = (span.start.byte_offset()?, span.end.byte_offset()?);
        match event {
            Event::MappingStart(style, 0, None) => self.begin(start, style, Inside::Fields(Vec::new())),
            Event::SequenceStart(style, 0, None) => self.begin(start, style, Inside::Items(Vec::new())),
            Event::MappingEnd | Event::SequenceEnd => {
                let (mut node, _) = self.open.pop()?;
                // A block ends where what follows begins, which is none of it.
                node.end = match node.flow {
                    true => end,
                    false => node.last_end().unwrap_or(node.start),
                };
                self.place(node)
            }
            Event::Scalar(text, _, 0, None) => {
                if let Some((
                    Outline {
                        inside: Inside::Fields(_),
                        ..
                    },
                    key @ None,
                )) = self.open.last_mut()
                {
                    *key = Some((text.into_owned(), start));
                    return Some(());
                }
                let inside = if start == end { Inside::Nothing } else { Inside::Scalar };
                self.place(Outline {
                    start,
                    end,
                    flow: false,
                    inside,
                })
            }
            Event::MappingStart(..) | Event::SequenceStart(..) | Event::Scalar(..) | Event::Alias(_) => None,
            _ => Some(()),
        }
    }

    fn begin(&mut self, start: usize, style: StructureStyle, inside: Inside) -> Option<()> {
        let flow = style == StructureStyle::Flow;
        let node = Outline {
            start,
            end: start,
            flow,
            inside,
        };
        (self.open.len() < DEPTH_MAX).then(|| self.open.push((node, None)))
    }

    fn place(&mut self, node: Outline) -> Option<()> {
        match self.open.last_mut() {
            None => self.root = Some(node),
            Some((
                Outline {
                    inside: Inside::Items(items),
                    ..
                },
                _,
            )) => items.push(node),
            Some((
                Outline {
                    inside: Inside::Fields(fields),
                    ..
                },
                key,
            )) => {
                let (name, start) = key.take()?;
                fields.push((name, start, node));
            }
            Some(_) => return None,
        }
        Some(())
    }
}
