//! What files said last of something that a revision declares no more, read from Git.
//!
//! In: a revision, what it is compared with, and what is asked for. Out: for each, the fleet of the commit that declares
//! it last, on the way by which it went: a branch that takes it away and is merged has its own last word, and the branch
//! that it is merged into may still say something older.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use render::model::DeletionPolicy;
use render::{Fleet, Revision};

use super::planner::load_declaring;
use super::source::{Source, SourceError};
use crate::limits::LAST_WORD_COMMITS_MAX;

/// A question for last words.
pub(super) struct LastWords<'a> {
    pub(super) source: &'a Source,
    /// What declares it no more.
    pub(super) head: &'a Revision,
    /// What was decided on. Nothing older is a newer word, but of what that decision held back.
    pub(super) decided: &'a Revision,
    /// The newest revision that was planned before, where that is known.
    pub(super) accepted: Option<&'a Revision>,
    /// What a file that declares it has in it.
    pub(super) kind: &'a [u8],
}

impl LastWords<'_> {
    /// The answers; what was declared nowhere that is looked at has none. `policy` says what a fleet says of one, if it
    /// declares it.
    pub(super) fn find<K: Ord + Clone>(
        &self,
        wanted: BTreeSet<K>,
        policy: impl Fn(&Fleet, &K) -> Option<DeletionPolicy>,
    ) -> Result<BTreeMap<K, Arc<Fleet>>, SourceError> {
        let mut search = Search {
            source: self.source,
            kind: self.kind,
            policy,
            fleets: BTreeMap::new(),
            found: BTreeMap::new(),
            spare: BTreeMap::new(),
        };
        search.back(self.head, Some(self.decided), &wanted)?;
        // Where history was pushed or rewritten otherwise.
        for revision in self.accepted.into_iter().chain([self.decided]) {
            for key in search.left(&wanted) {
                let fleet = search.fleet(revision)?;
                if (search.policy)(&fleet, &key).is_some() {
                    search.found.insert(key, fleet);
                }
            }
        }
        // What a decision held back had gone before it.
        let held = search.left(&wanted);
        search.back(self.decided, None, &held)?;
        let mut all = search.spare;
        all.append(&mut search.found);
        Ok(all)
    }
}

struct Search<'a, K, P> {
    source: &'a Source,
    kind: &'a [u8],
    policy: P,
    fleets: BTreeMap<Revision, Arc<Fleet>>,
    found: BTreeMap<K, Arc<Fleet>>,
    /// Of a merge that took something away which one side had: what that side says, unless the other side knows more.
    spare: BTreeMap<K, Arc<Fleet>>,
}

impl<K: Ord + Clone, P: Fn(&Fleet, &K) -> Option<DeletionPolicy>> Search<'_, K, P> {
    /// What has no answer yet.
    fn left(&self, wanted: &BTreeSet<K>) -> BTreeSet<K> {
        let is_left = |key: &&K| !self.found.contains_key(key) && !self.spare.contains_key(key);
        wanted.iter().filter(is_left).cloned().collect()
    }

    /// Goes back from a commit by every way on which something is lacking, and not beyond `until`.
    fn back(&mut self, from: &Revision, until: Option<&Revision>, wanted: &BTreeSet<K>) -> Result<(), SourceError> {
        if wanted.is_empty() {
            return Ok(());
        }
        let among = self.source.commits_since(from, until, LAST_WORD_COMMITS_MAX)?;
        let among: BTreeSet<_> = among.into_iter().collect();
        let mut open = VecDeque::from([(from.clone(), wanted.clone())]);
        let mut seen: BTreeSet<(Revision, K)> = BTreeSet::new();
        while let Some((at, lacking)) = open.pop_front() {
            let lacking: Vec<_> = lacking
                .into_iter()
                .filter(|key| !self.found.contains_key(key) && seen.insert((at.clone(), key.clone())))
                .collect();
            if lacking.is_empty() {
                continue;
            }
            let parents = self.source.parents(&at)?;
            let mut further: BTreeMap<&Revision, BTreeSet<K>> = BTreeMap::new();
            for key in lacking {
                for parent in self.before(&parents, &key)? {
                    further.entry(parent).or_default().insert(key.clone());
                }
            }
            // In the order of the parents; an order of ids would be none.
            let ways = parents.iter().filter(|parent| among.contains(*parent));
            for parent in ways {
                let lacking = further.remove(parent).unwrap_or_default();
                open.push_back((parent.clone(), lacking));
            }
        }
        Ok(())
    }

    /// Takes the word of the parents of a commit that lacks something; gives those that lack it too, where it went
    /// earlier.
    fn before<'p>(&mut self, parents: &'p [Revision], key: &K) -> Result<Vec<&'p Revision>, SourceError> {
        let (mut declaring, mut lacking) = (Vec::new(), Vec::new());
        for parent in parents {
            let fleet = self.fleet(parent)?;
            match (self.policy)(&fleet, key) {
                Some(policy) => declaring.push((parent, fleet, policy)),
                None => lacking.push(parent),
            }
        }
        // Between words that disagree, the one that keeps.
        declaring.sort_by_key(|(.., policy)| *policy != DeletionPolicy::Orphan);
        for (parent, fleet, policy) in declaring {
            if lacking.is_empty() {
                self.found.entry(key.clone()).or_insert(fleet);
            } else if policy == DeletionPolicy::Orphan && self.is_said_since(parent, &lacking, key)? {
                self.found.insert(key.clone(), fleet);
                return Ok(Vec::new());
            } else {
                self.spare.entry(key.clone()).or_insert(fleet);
            }
        }
        Ok(lacking)
    }

    /// Whether a side of a merge says something else than where the sides parted.
    fn is_said_since(&mut self, side: &Revision, others: &[&Revision], key: &K) -> Result<bool, SourceError> {
        let now = self.fleet(side)?;
        for other in others {
            let Some(base) = self.source.merge_base(side, other)? else {
                continue;
            };
            let before = self.fleet(&base)?;
            if (self.policy)(&before, key) != (self.policy)(&now, key) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn fleet(&mut self, revision: &Revision) -> Result<Arc<Fleet>, SourceError> {
        if let Some(known) = self.fleets.get(revision) {
            return Ok(Arc::clone(known));
        }
        let fleet = Arc::new(load_declaring(self.source, revision, self.kind)?);
        self.fleets.insert(revision.clone(), Arc::clone(&fleet));
        Ok(fleet)
    }
}
