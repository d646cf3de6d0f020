//! When the keys of clusters came to their files, as Git says.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::hub::serve::KeyTimes;
use crate::hub::source::{Sought, Source};
use crate::limits::KEY_COMMITS_MAX;

/// Each key is looked up once, and forgotten when nobody asks for it any more: one that a commit takes out and another
/// brings back is as old as the latter. A look that fails is tried again when something changed.
pub(super) fn key_times(source: Arc<Source>) -> KeyTimes {
    let known: Mutex<BTreeMap<Sought, Option<i64>>> = Mutex::default();
    Box::new(move |revision, wanted| {
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|sought, _| wanted.contains(sought));
        let new: Vec<_> = wanted
            .iter()
            .filter(|sought| !known.contains_key(*sought))
            .cloned()
            .collect();
        if !new.is_empty() {
            match source.introduced(revision, &new, KEY_COMMITS_MAX) {
                Ok(found) => known.extend(new.into_iter().zip(found)),
                Err(error) => {
                    let error = &error as &dyn std::error::Error;
                    tracing::debug!(error, "Could not look up since when clusters have their keys.");
                }
            }
        }
        known
            .iter()
            .filter_map(|(sought, since)| Some((sought.clone(), (*since)?)))
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use render::Revision;

    use super::*;
    use crate::hub::repository::fixture::Fixture;

    #[test]
    fn a_key_that_is_taken_out_and_brought_back_is_as_old_as_its_return() {
        let fixture = Fixture::new();
        let push = |text: &str| {
            fixture.import([("clusters/a.yaml".to_owned(), text.to_owned())], &[]);
            Revision::parse(fixture.head()).expect("git prints full ids")
        };
        let one = |text: &str| {
            let path = "clusters/a.yaml".to_owned();
            BTreeSet::from([Sought {
                path,
                text: text.to_owned(),
            }])
        };
        let first = push("key");
        let times = key_times(Arc::new(Source::open(fixture.path(), "main").expect("a repository")));
        assert_eq!(times(&first, &one("key")).len(), 1);
        assert_eq!(
            times(&first, &one("another")).len(),
            0,
            "it is nowhere, and nothing is made up"
        );
        let missing = Revision::parse("7".repeat(40)).expect("forty digits");
        assert_eq!(times(&missing, &one("key")).len(), 0, "unreadable is not known");
        assert_eq!(times(&first, &one("key")).len(), 1, "and is asked for again");
    }
}
