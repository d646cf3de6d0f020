//! Where each field of a document stands. Asked for only where a field is at fault, by reading once more.

use std::collections::BTreeMap;

use super::Document;
use super::build::{Frame, Recorder, field_path};
use super::read::read_with;

/// Field path → line and column.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places {
    places: BTreeMap<String, (u32, u32)>,
}

impl Recorder for Places {
    fn place(&mut self, frames: &[Frame], line: u32, column: u32) {
        self.places.entry(field_path(frames)).or_insert((line, column));
    }
}

impl Places {
    /// Line and column, both from 1, of a field such as `spec.feeds[0].name`: of its key, or of the nearest
    /// field around it that is written. `None` for an empty document.
    pub(crate) fn find(&self, field: &str) -> Option<(u32, u32)> {
        let mut field = field;
        loop {
            if let Some(place) = self.places.get(field) {
                return Some(*place);
            }
            field = field
                .rfind(['.', '['])
                .map(|end| &field[..end])
                .filter(|_| !field.is_empty())?;
        }
    }
}

/// The places of one document of a text that [`super::read()`] accepted.
pub(crate) fn locate(text: &str, document: &Document) -> Places {
    let mut places = Places::default();
    let part = &text[document.span.clone()];
    // The document was read before, so an error here would only mean fewer places.
    let _ = read_with(part, document.first_line, &mut places);
    if let Some(first) = places.places.values().min().copied() {
        places.places.insert(String::new(), first);
    }
    places
}
