//! The line of a declaration's field, worked out only for what is at fault.

use std::collections::BTreeMap;

use super::catalog::Catalog;
use crate::yaml::{self, Places};

/// Lines of fields, by file; each file is read at most once more.
#[derive(Debug)]
pub(super) struct Lines<'a> {
    catalog: &'a Catalog<'a>,
    /// File → line of a document → places.
    files: BTreeMap<String, BTreeMap<u32, Places>>,
}

impl<'a> Lines<'a> {
    pub(super) fn new(catalog: &'a Catalog<'a>) -> Self {
        Self {
            catalog,
            files: BTreeMap::new(),
        }
    }

    /// The line of a field of the document that starts on `line`; `line` itself where it cannot be told.
    pub(super) fn find(&mut self, file: &str, line: u32, field: &str) -> u32 {
        if !self.files.contains_key(file) {
            let places = self.places(file);
            self.files.insert(file.to_owned(), places);
        }
        let places = self.files.get(file).and_then(|documents| documents.get(&line));
        places
            .and_then(|places| places.find(field))
            .map_or(line, |(line, _)| line)
    }

    fn places(&self, file: &str) -> BTreeMap<u32, Places> {
        let source = self.catalog.source(file);
        let text = source.and_then(|source| yaml::decode(&source.bytes).ok());
        let Some(text) = text else {
            return BTreeMap::new();
        };
        let documents = yaml::read(&text).unwrap_or_default();
        let places = documents
            .iter()
            .map(|document| (document.line, yaml::locate(&text, document)));
        places.collect()
    }
}
