//! The file of tokens, looked at now and then: what agents used here goes into it, and who asks for registration comes out.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use render::ClusterName;
use tunnel::PublicKey;

use super::blocking::blocking;
use super::registry::Registry;
use super::tokens::TokenFile;

/// Looks at the file.
pub(super) struct Joining {
    path: PathBuf,
    last: Option<BTreeMap<ClusterName, PublicKey>>,
    failing: String,
}

impl Joining {
    pub(super) fn new(path: PathBuf) -> Self {
        Self {
            path,
            last: None,
            failing: String::new(),
        }
    }

    /// Who asks for registration, where that is other than at the last look. A hub without tokens leaves no file.
    pub(super) async fn look(&mut self, registry: &Arc<Registry>) -> Option<BTreeMap<ClusterName, PublicKey>> {
        let (path, registry) = (self.path.clone(), Arc::clone(registry));
        let is_begun = self.last.is_some();
        let looked = blocking(move || {
            let is_there = is_begun || path.exists();
            is_there.then(|| registry.sync_tokens(&TokenFile::new(path)))
        });
        match looked.await? {
            Ok(wanted) => {
                self.failing.clear();
                let is_new = self.last.as_ref() != Some(&wanted);
                self.last = Some(wanted.clone());
                is_new.then_some(wanted)
            }
            Err(error) => {
                let words = crate::fault::line(&error);
                if words != self.failing {
                    tracing::error!(
                        error = words,
                        "Could not use the file of bootstrap tokens; none is taken."
                    );
                    self.failing = words;
                }
                None
            }
        }
    }
}
