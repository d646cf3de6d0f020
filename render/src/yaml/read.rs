//! Splits a text into documents and reads each.

use std::fmt;
use std::ops::Range;

use granit_parser::{Event, Options, Parser, Span};
use serde_json::Value;

use super::YamlError;
use super::build::{Builder, Note, Recorder};
use super::text::small;
use crate::limits::{DEPTH_MAX, DOCUMENTS_MAX};

/// One document of a file; empty ones are left out.
#[derive(Clone, PartialEq)]
pub struct Document {
    /// Line of its first key, from 1.
    pub line: u32,
    /// What it says.
    pub value: Value,
    /// The document's own text in the file, from after its separator to the next one.
    pub span: Range<usize>,
    /// Line on which `span` starts, from 1.
    pub first_line: u32,
    /// Numbers that may have been meant as text.
    pub notes: Vec<Note>,
}

/// Without what it says, which may be a Secret.
impl fmt::Debug for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Document")
            .field("line", &self.line)
            .finish_non_exhaustive()
    }
}

/// Reads every document of a text: YAML, or JSON values one after the other.
///
/// The first mistake is the answer for the whole text: what stands after it cannot be trusted to be whole.
pub fn read(text: &str) -> Result<Vec<Document>, YamlError> {
    match json_values(text) {
        Some(spans) => read_json(text, spans),
        None => read_with(text, 1, &mut ()),
    }
}

/// JSON values one after the other are no YAML, so each is read as a document of its own.
fn read_json(text: &str, spans: Vec<Range<usize>>) -> Result<Vec<Document>, YamlError> {
    let mut documents = Vec::with_capacity(spans.len());
    let mut line = 1;
    let mut counted = 0;
    for span in spans {
        line += small(newlines(&text[counted..span.start]));
        counted = span.start;
        for mut document in read_with(&text[span.clone()], line, &mut ())? {
            document.span = span.clone();
            document.first_line = line;
            documents.push(document);
        }
    }
    Ok(documents)
}

/// Where the JSON values of a text stand; `None` when it is not JSON alone.
fn json_values(text: &str) -> Option<Vec<Range<usize>>> {
    if !text.trim_start().starts_with('{') {
        return None;
    }
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<serde::de::IgnoredAny>();
    let mut spans = Vec::new();
    loop {
        let start = stream.byte_offset();
        match stream.next() {
            Some(Ok(_)) => spans.push(skip_blanks(text, start)..stream.byte_offset()),
            Some(Err(_)) => return None,
            None => return Some(spans),
        }
    }
}

fn skip_blanks(text: &str, start: usize) -> usize {
    let rest = &text[start..];
    start + (rest.len() - rest.trim_start().len())
}

fn newlines(text: &str) -> usize {
    text.bytes().filter(|byte| *byte == b'\n').count()
}

pub(super) fn parser(text: &str) -> Parser<'_, granit_parser::StrInput<'_>> {
    let mut options = Options::default();
    options.set_emit_comments(false);
    // Above our own limit, which names it; below what the parser's own stack could mind.
    options.block_nesting_limit = 2 * DEPTH_MAX;
    options.flow_nesting_limit = 2 * DEPTH_MAX;
    Parser::new_from_str_with_options(text, options)
}

/// As [`read`], for YAML whose first line is `first_line` of its file.
pub(super) fn read_with<R: Recorder>(
    text: &str,
    first_line: u32,
    recorder: &mut R,
) -> Result<Vec<Document>, YamlError> {
    let shift = |mut error: YamlError| {
        error.line += first_line - 1;
        error
    };
    let mut documents = Vec::new();
    let mut open: Option<Open<'_, R>> = None;
    for event in parser(text) {
        let (event, span) = event.map_err(|error| shift(scan_error(&error)))?;
        let span = Span::new(moved(span.start, first_line), moved(span.end, first_line));
        match event {
            Event::DocumentStart(explicit, _) => open = Some(Open::new(text, explicit, span, &mut *recorder)),
            Event::DocumentEnd => {
                if let Some(document) = open.take().and_then(|open| open.finish(text, span)) {
                    documents.push(document);
                }
                if documents.len() > DOCUMENTS_MAX {
                    return Err(YamlError::new(
                        small(span.start.line()),
                        1,
                        format!("more than {DOCUMENTS_MAX} documents"),
                    ));
                }
            }
            event => {
                if let Some(open) = &mut open {
                    open.event(event, span)?;
                }
            }
        }
    }
    Ok(documents)
}

fn moved(marker: granit_parser::Marker, first_line: u32) -> granit_parser::Marker {
    if first_line == 1 {
        return marker;
    }
    let line = marker.line() + first_line as usize - 1;
    granit_parser::Marker::new(marker.index(), line, marker.col()).with_byte_offset(marker.byte_offset())
}

pub(super) fn scan_error(error: &granit_parser::ScanError) -> YamlError {
    let marker = error.marker();
    let info = error.info();
    let message = if info.contains("unknown anchor") {
        // The name is not told: it may be a password that begins with a star and lacks its quotes.
        "unknown anchor; anchors end with their document, and text that begins with * needs quotes"
    } else {
        info.lines().next().unwrap_or("not YAML")
    };
    YamlError::new(small(marker.line()), small(marker.col() + 1), message)
}

fn is_comment(line: &str) -> bool {
    let line = line.trim();
    line.is_empty() || line.starts_with('#')
}

/// A document that is not closed yet.
struct Open<'r, R> {
    builder: Builder<'r, R>,
    start: usize,
    start_line: u32,
    line: Option<u32>,
}

impl<'r, R: Recorder> Open<'r, R> {
    fn new(text: &str, explicit: bool, span: Span, recorder: &'r mut R) -> Self {
        let end = span.end.byte_offset().unwrap_or(0);
        let rest_of_line = text[end..].split_inclusive('\n').next().unwrap_or("");
        let rest = rest_of_line.trim();
        let (start, start_line) = if explicit && (rest.is_empty() || rest.starts_with('#')) {
            (end + rest_of_line.len(), span.end.line() + 1)
        } else if explicit || !text[..end].lines().all(is_comment) {
            (end, span.end.line())
        } else {
            // Comments above the first document belong to it.
            (0, span.end.line() - newlines(&text[..end]))
        };
        Self {
            builder: Builder::new(recorder),
            start,
            start_line: small(start_line),
            line: None,
        }
    }

    fn event(&mut self, event: Event<'_>, span: Span) -> Result<(), YamlError> {
        self.line.get_or_insert(small(span.start.line()));
        self.builder.event(event, span)
    }

    fn finish(self, text: &str, end: Span) -> Option<Document> {
        let (value, notes) = self.builder.finish();
        let value = value.filter(|value| !value.is_null())?;
        let end = end.start.byte_offset().unwrap_or(text.len()).max(self.start);
        Some(Document {
            line: self.line.unwrap_or(self.start_line),
            value,
            span: self.start..end,
            first_line: self.start_line,
            notes,
        })
    }
}
