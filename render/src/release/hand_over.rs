//! Objects that change hands while the unit that gets them has to wait: whoever has them keeps them until then, or they
//! would be removed and made anew later.
//!
//! Contents are told by what is known of them ([`super::Observed::holdings`]). One that is not known yet is asked for,
//! and one that cannot be read gives nothing away.

use std::collections::{BTreeMap, BTreeSet};

use super::{Change, Look, WaitReason, needed_everywhere};
use crate::digest::Digest;
use crate::guard::Holdings;
use crate::name::{ClusterName, ObjectKey, UnitKey};
use crate::published::Published;

/// Holds back whoever would lose an object to a unit that does not get it now. Gives the contents that have to be known
/// to say more.
pub(super) fn settle<'a>(look: &Look<'a>, changes: &mut [Change<'a>]) -> BTreeSet<Digest> {
    let mut settling = Settling {
        look,
        gained: BTreeMap::new(),
        loses: BTreeMap::new(),
        together: BTreeMap::new(),
        unknown: BTreeSet::new(),
    };
    // A giver that is held may be somebody's taker. Nobody is held twice, and who was is not let go again.
    loop {
        let steps = settling.steps(changes);
        if steps.is_empty() {
            return settling.unknown;
        }
        for step in steps {
            match step {
                Step::Hold { giver, taker } => {
                    let other = changes[taker].unit.clone();
                    let on = changes[giver].cluster.clone();
                    changes[giver].wait = Some((other, on, WaitReason::HandsOver));
                }
                Step::Together { taker } => changes[taker].wait = None,
            }
        }
    }
}

enum Step {
    /// The giver waits for the taker.
    Hold { giver: usize, taker: usize },
    /// The taker waits for nothing but the giver: both go at once, and the applier there keeps their order.
    Together { taker: usize },
}

/// Content that a share of a unit gets, and content that it has.
type Contents = (Option<Digest>, Option<Digest>);

/// Objects that a share gets; or that nobody can say yet, or ever.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Knowledge {
    Some,
    Nothing,
    NotYet,
    Never,
}

struct Settling<'l, 'a> {
    look: &'l Look<'a>,
    // What was found out, by contents and units: clusters are many, and mostly alike.
    gained: BTreeMap<Contents, (Knowledge, Vec<&'l ObjectKey>)>,
    loses: BTreeMap<(Contents, Contents), bool>,
    together: BTreeMap<(&'a UnitKey, &'a UnitKey), bool>,
    unknown: BTreeSet<Digest>,
}

impl<'l, 'a> Settling<'l, 'a> {
    fn steps(&mut self, changes: &[Change<'a>]) -> Vec<Step> {
        let mut givers: BTreeMap<&ClusterName, Vec<usize>> = BTreeMap::new();
        for (index, change) in changes.iter().enumerate() {
            if !change.is_stalled() && change.loses_content() {
                givers.entry(change.cluster).or_default().push(index);
            }
        }
        let mut steps = Vec::new();
        let mut held = BTreeSet::new();
        for (taker, taking) in changes.iter().enumerate() {
            let Some(givers) = givers.get(taking.cluster).filter(|_| taking.is_stalled()) else {
                continue;
            };
            if matches!(self.gained(taking), Knowledge::Nothing | Knowledge::NotYet) {
                continue;
            }
            let losing: Vec<_> = givers
                .iter()
                .copied()
                .filter(|giver| self.loses(&changes[*giver], taking))
                .collect();
            if losing.iter().any(|giver| self.goes_with(taking, &changes[*giver])) {
                steps.push(Step::Together { taker });
            } else {
                let new = losing.into_iter().filter(|giver| held.insert(*giver));
                steps.extend(new.map(|giver| Step::Hold { giver, taker }));
            }
        }
        steps
    }

    /// What a content has: `Err` while it is not known, `Ok(None)` where it cannot be read.
    fn holdings(&mut self, digest: &Digest) -> Result<Option<&'l Holdings>, ()> {
        match self.look.observed.holdings.get(digest) {
            Some(known) => Ok(known.as_deref()),
            None => {
                self.unknown.insert(*digest);
                Err(())
            }
        }
    }

    /// Finds out what a share gets that it does not have now.
    fn gained(&mut self, taking: &Change<'_>) -> Knowledge {
        let contents = taking.contents();
        if let Some((knowledge, _)) = self.gained.get(&contents) {
            return *knowledge;
        }
        let (Some(to), from) = contents else {
            return Knowledge::Nothing;
        };
        let gets = self.holdings(&to);
        let has = from.map(|from| self.holdings(&from)).transpose();
        let (knowledge, objects) = match (gets, has) {
            (Err(()), _) | (_, Err(())) => (Knowledge::NotYet, Vec::new()),
            (Ok(None), _) | (_, Ok(Some(None))) => (Knowledge::Never, Vec::new()),
            (Ok(Some(gets)), Ok(has)) => {
                let has = has.flatten();
                let is_new = |object: &&ObjectKey| !has.is_some_and(|has| has.contains(object));
                let objects: Vec<_> = gets.objects.iter().filter(is_new).collect();
                match objects.is_empty() {
                    true => (Knowledge::Nothing, objects),
                    false => (Knowledge::Some, objects),
                }
            }
        };
        self.gained.insert(contents, (knowledge, objects));
        knowledge
    }

    /// Whether one share would lose an object that another one gets. Where nobody will ever know, it may.
    fn loses(&mut self, giving: &Change<'_>, taking: &Change<'_>) -> bool {
        let (given, taken) = (giving.contents(), taking.contents());
        if let Some(known) = self.loses.get(&(given, taken)) {
            return *known;
        }
        let (to, Some(from)) = given else { return false };
        let has = self.holdings(&from);
        let keeps = to.map(|to| self.holdings(&to)).transpose();
        let loses = match (has, keeps, self.gained.get(&taken)) {
            (Err(()), ..) | (_, Err(()), _) => return false,
            (Ok(None), ..) | (_, Ok(Some(None)), _) | (.., Some((Knowledge::Never, _)) | None) => true,
            (Ok(Some(has)), Ok(keeps), Some((_, gained))) => {
                let keeps = keeps.flatten();
                let goes =
                    |object: &ObjectKey| has.contains(object) && !keeps.is_some_and(|keeps| keeps.contains(object));
                gained.iter().any(|object| goes(object))
            }
        };
        self.loses.insert((given, taken), loses);
        loses
    }

    /// Whether a unit would be released, were it not for the giver and those that wait for the giver themselves.
    fn goes_with(&mut self, taking: &Change<'a>, giving: &Change<'a>) -> bool {
        let waits_for_health = matches!(taking.wait, Some((.., WaitReason::NotHealthy | WaitReason::Failed)));
        if taking.suspended || !waits_for_health {
            return false;
        }
        let look = self.look;
        let (taker, giver) = (taking.unit, giving.unit);
        *self.together.entry((taker, giver)).or_insert_with(|| {
            let wanted = look.target.units.get(taker);
            wanted.is_some_and(|wanted| {
                let others = needed_everywhere(wanted).filter(|needed| !reaches(look.target, needed, giver));
                look.comes_after(others).is_none()
            })
        })
    }
}

/// Whether a unit is another one, or needs it everywhere.
fn reaches(target: &Published, unit: &UnitKey, other: &UnitKey) -> bool {
    let (mut seen, mut open) = (BTreeSet::from([unit]), vec![unit]);
    while let Some(at) = open.pop() {
        if at == other {
            return true;
        }
        let needs = target.units.get(at).into_iter().flat_map(needed_everywhere);
        open.extend(needs.filter(|needed| seen.insert(*needed)));
    }
    false
}
