//! Objects that change hands while the unit that gets them has to wait: whoever has them keeps them until then, or they
//! would be removed and made anew later.
//!
//! Contents are told by what is known of them ([`super::Observed::holdings`]). One that is not known yet is asked for,
//! and one that cannot be read gives nothing away.

use std::collections::{BTreeMap, BTreeSet};

use super::order::needed_everywhere;
use super::{Change, Look, WaitReason};
use crate::digest::Digest;
use crate::guard::Holdings;
use crate::name::{ClusterName, ObjectKey, UnitKey};

/// Holds back whoever would lose an object to a unit that does not get it now. Gives the contents that have to be known
/// to say more.
pub(super) fn settle<'a>(look: &Look<'a>, changes: &mut [Change<'a>]) -> BTreeSet<Digest> {
    let mut settling = Settling {
        look,
        gained: BTreeMap::new(),
        loses: BTreeMap::new(),
        unknown: BTreeSet::new(),
    };
    // A giver that is held may be somebody's taker. Nobody is held twice, and whoever waited for health and goes
    // together does so once.
    loop {
        let Steps { together, holds } = settling.steps(changes);
        if together.is_empty() && holds.is_empty() {
            return settling.unknown;
        }
        if together.is_empty() {
            for (giver, taker) in holds {
                let other = changes[taker].unit.clone();
                let on = changes[giver].cluster.clone();
                changes[giver].wait = Some((other, on, WaitReason::HandsOver));
            }
            continue;
        }
        together.into_iter().for_each(|taker| changes[taker].wait = None);
        // Whoever was held for them, or for who was held for them, is looked at anew.
        let held = changes.iter_mut().filter(|change| change.is_held());
        held.for_each(|change| change.wait = None);
    }
}

#[derive(Default)]
struct Steps {
    /// Takers that wait for nothing but what waits for them: all go at once, and the appliers keep their order.
    together: Vec<usize>,
    /// Givers that wait for a taker.
    holds: Vec<(usize, usize)>,
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
    unknown: BTreeSet<Digest>,
}

impl<'l, 'a> Settling<'l, 'a> {
    fn steps(&mut self, changes: &[Change<'a>]) -> Steps {
        let mut givers: BTreeMap<&ClusterName, Vec<usize>> = BTreeMap::new();
        for (index, change) in changes.iter().enumerate() {
            if (!change.is_stalled() || change.is_held()) && change.loses_content() {
                givers.entry(change.cluster).or_default().push(index);
            }
        }
        let mut losing: Vec<(usize, Vec<usize>)> = Vec::new();
        for (taker, taking) in changes.iter().enumerate() {
            let Some(givers) = givers.get(taking.cluster).filter(|_| taking.is_stalled()) else {
                continue;
            };
            if matches!(self.gained(taking), Knowledge::Nothing | Knowledge::NotYet) {
                continue;
            }
            let others = givers.iter().copied().filter(|giver| *giver != taker);
            losing.push((
                taker,
                others.filter(|giver| self.loses(&changes[*giver], taking)).collect(),
            ));
        }
        let mut ways = Ways::new(self.look);
        for (taker, givers) in &losing {
            for giver in givers {
                ways.hand_over(&changes[*giver], &changes[*taker]);
            }
        }
        let mut steps = Steps::default();
        let mut held = BTreeSet::new();
        for (taker, givers) in losing {
            if givers
                .iter()
                .any(|giver| ways.goes_with(&changes[taker], &changes[*giver]))
            {
                steps.together.push(taker);
                continue;
            }
            let new = givers.into_iter().filter(|giver| !changes[*giver].is_stalled());
            let new = new.filter(|giver| held.insert(*giver));
            steps.holds.extend(new.map(|giver| (giver, taker)));
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
}

/// Who waits for whom: units for what they need everywhere and is not healthy, and givers for takers.
struct Ways<'l, 'a> {
    look: &'l Look<'a>,
    /// Giver → takers that are stalled.
    takers: BTreeMap<&'a UnitKey, BTreeSet<&'a UnitKey>>,
    /// Givers of a taker that is suspended, which nobody can release.
    stuck: BTreeSet<&'a UnitKey>,
    waits_for: BTreeMap<&'a UnitKey, Vec<&'a UnitKey>>,
    together: BTreeMap<(&'a UnitKey, &'a UnitKey), bool>,
}

impl<'l, 'a> Ways<'l, 'a> {
    fn new(look: &'l Look<'a>) -> Self {
        Self {
            look,
            takers: BTreeMap::new(),
            stuck: BTreeSet::new(),
            waits_for: BTreeMap::new(),
            together: BTreeMap::new(),
        }
    }

    fn hand_over(&mut self, giving: &Change<'a>, taking: &Change<'a>) {
        self.takers.entry(giving.unit).or_default().insert(taking.unit);
        if taking.suspended {
            self.stuck.insert(giving.unit);
        }
    }

    /// Whether a unit would be released, were it not for the giver and those that wait for the giver themselves.
    fn goes_with(&mut self, taking: &Change<'a>, giving: &Change<'a>) -> bool {
        let waits_for_health = matches!(taking.wait, Some((.., WaitReason::NotHealthy | WaitReason::Failed)));
        if taking.suspended || !waits_for_health {
            return false;
        }
        let (taker, giver) = (taking.unit, giving.unit);
        if let Some(known) = self.together.get(&(taker, giver)) {
            return *known;
        }
        let (mut seen, mut open) = (BTreeSet::from([taker]), vec![taker]);
        let mut goes = true;
        while let Some(at) = open.pop().filter(|_| goes) {
            let others = self.waits_for(at);
            // Each has to come back to the giver, or it is waited for from outside.
            goes = !self.stuck.contains(at) && others.iter().all(|other| self.reaches(other, giver));
            open.extend(others.into_iter().filter(|other| seen.insert(other)));
        }
        self.together.insert((taker, giver), goes);
        goes
    }

    fn reaches(&mut self, unit: &'a UnitKey, other: &UnitKey) -> bool {
        let (mut seen, mut open) = (BTreeSet::from([unit]), vec![unit]);
        while let Some(at) = open.pop() {
            if at == other {
                return true;
            }
            open.extend(self.waits_for(at).into_iter().filter(|next| seen.insert(next)));
        }
        false
    }

    fn waits_for(&mut self, unit: &'a UnitKey) -> Vec<&'a UnitKey> {
        if let Some(known) = self.waits_for.get(unit) {
            return known.clone();
        }
        let look = self.look;
        let needed = look.target.units.get(unit).into_iter().flat_map(needed_everywhere);
        let lacking = needed.filter(|needed| look.comes_after(std::iter::once(*needed)).is_some());
        let takers = self.takers.get(unit).into_iter().flatten().copied();
        let all: Vec<_> = lacking.chain(takers).collect();
        self.waits_for.insert(unit, all.clone());
        all
    }
}
