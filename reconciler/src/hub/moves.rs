//! What moves placements beside the fleet's files: words of commits since the last decision, and how units were placed
//! when they asked for the same as now.

use std::collections::{BTreeMap, BTreeSet};

use render::plan::{Memo, plan};
use render::schedule::{Rebalance, RebalanceWord};
use render::{Finding, Fleet, Plan, Revision, Snapshot, UnitKey};

use super::keeper::chain;
use super::publish::{StateError, StateRepository};
use super::source::{Source, SourceError};

/// The trailer that has units placed by today's room although they were placed for the same before; its value is
/// `true`.
const RESCHEDULE: &str = "Reschedule";

/// Units to be placed anew.
#[derive(Clone, Debug, Default)]
pub struct Words {
    /// Unit → what of it.
    pub rebalance: BTreeMap<UnitKey, Rebalance>,
    /// Words that name nothing.
    pub findings: Vec<Finding>,
}

impl Words {
    /// Reads the words of the commits that `fleet` builds on since the newest decision. A word that found nothing to
    /// move is over as well: `done` says up to which revision, by unit. Before anything was decided there is nothing to
    /// place anew.
    pub fn read(
        source: &Source,
        fleet: &Fleet,
        since: Option<&Revision>,
        done: &BTreeMap<UnitKey, Revision>,
    ) -> Result<Self, SourceError> {
        let mut words = Self::default();
        let head = &fleet.revision;
        if since.is_none() {
            return Ok(words);
        }
        let said = source.trailer_values(head, since, RebalanceWord::TRAILER)?;
        let mut newer: BTreeMap<&Revision, BTreeSet<Revision>> = BTreeMap::new();
        for (commit, text) in said {
            let word = RebalanceWord::parse(&text);
            let named = fleet
                .units
                .keys()
                .filter(|unit| word.as_ref().is_some_and(|word| word.names(unit)));
            let named: Vec<&UnitKey> = named.collect();
            let Some(word) = word.filter(|_| !named.is_empty()) else {
                words.findings.push(names_nothing(&commit, &text));
                continue;
            };
            for unit in named {
                if let Some(done) = done.get(unit) {
                    if !newer.contains_key(done) {
                        let since = source.trailer_values(head, Some(done), RebalanceWord::TRAILER)?;
                        newer.insert(done, since.into_iter().map(|(commit, _)| commit).collect());
                    }
                    if !newer[done].contains(&commit) {
                        continue;
                    }
                }
                words.say(unit, word.what());
            }
        }
        let said = source.trailer_values(head, since, RESCHEDULE)?;
        let unclear = said.iter().filter(|(_, text)| !is_word(text));
        words
            .findings
            .extend(unclear.map(|(commit, text)| unclear_word(commit, text)));
        Ok(words)
    }

    /// Adds a word that no commit says yet. Whether it names a unit.
    pub fn add(&mut self, fleet: &Fleet, word: &RebalanceWord) -> bool {
        let named: Vec<&UnitKey> = fleet.units.keys().filter(|unit| word.names(unit)).collect();
        for unit in &named {
            self.say(unit, word.what());
        }
        !named.is_empty()
    }

    /// All of a unit is more than what waits.
    fn say(&mut self, unit: &UnitKey, what: Rebalance) {
        let of_unit = self.rebalance.entry(unit.clone()).or_insert(what);
        if what == Rebalance::All {
            *of_unit = Rebalance::All;
        }
    }
}

/// Whether it says that units are placed by today's room, or that they are not.
fn is_word(text: &str) -> bool {
    ["true", "false"].iter().any(|word| text.eq_ignore_ascii_case(word))
}

fn unclear_word(commit: &Revision, text: &str) -> Finding {
    let message = format!(
        "the commit {} says {RESCHEDULE}: {text}, which is neither true nor false, and is not followed",
        commit.short()
    );
    Finding::warning("RescheduleUnclear", message)
        .hint("write Reschedule: true in a new commit to have today's room decide")
}

fn names_nothing(commit: &Revision, text: &str) -> Finding {
    let message = format!(
        "the commit {} says {}: {text}, which names no unit",
        commit.short(),
        RebalanceWord::TRAILER
    );
    Finding::warning("RebalanceOfNothing", message)
        .hint("it is named as namespace/name, or namespace/* for all of a namespace; flotilla rebalance writes it")
}

/// Where it is looked for how units were placed before.
#[derive(Clone, Copy, Debug)]
pub struct Memories<'a> {
    /// Whose commits may say that today's room counts.
    pub source: &'a Source,
    /// The revision that the newest decision was made from.
    pub since: Option<&'a Revision>,
    /// What was released.
    pub state: &'a StateRepository,
}

impl Memories<'_> {
    /// Plans a snapshot, and again where units ask for what they asked for before. What cannot be read is told: by the
    /// usual rules they are placed all the same.
    pub fn plan(self, snapshot: &mut Snapshot, memo: &mut Memo) -> Result<(Plan, Option<Finding>), SourceError> {
        let first = plan(snapshot, memo);
        if first.recalls.is_empty() || self.reschedules(&snapshot.revision)? {
            return Ok((first, None));
        }
        match self.state.remembered(&first.recalls) {
            Ok(found) if found.is_empty() => Ok((first, None)),
            Ok(found) => {
                snapshot.moves.remembered = found;
                Ok((plan(snapshot, memo), None))
            }
            Err(error) => {
                let trouble = unreadable(first.recalls.keys(), &error);
                Ok((first, Some(trouble)))
            }
        }
    }

    fn reschedules(self, head: &Revision) -> Result<bool, SourceError> {
        let words = self.source.trailer_values(head, self.since, RESCHEDULE)?;
        Ok(words.iter().any(|(_, word)| word.eq_ignore_ascii_case("true")))
    }
}

fn unreadable<'a>(units: impl Iterator<Item = &'a UnitKey>, error: &StateError) -> Finding {
    let units: Vec<_> = units.map(ToString::to_string).collect();
    let message = format!(
        "how {} were placed before could not be read, and they are placed anew: {}",
        units.join(", "),
        chain(error)
    );
    Finding::warning("HistoryUnreadable", message).hint("git fsck in the state repository says what it lacks")
}

#[cfg(test)]
mod tests;
