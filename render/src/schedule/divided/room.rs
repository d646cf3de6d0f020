//! Replicas divided by the room that clusters have.

use std::sync::Arc;

use super::judged::Query;
use super::seats::{compatible, fullest_first};
use super::sentence::{Numbers, Sentence};
use super::taking::{Gains, taken_text};
use super::{Division, Member};
use crate::by_object::ByObject;
use crate::capacity::PodRequirements;
use crate::finding::Finding;
use crate::model::Strategy;
use crate::name::{ClusterName, ObjectKey};
use crate::published::Evidence;
use crate::schedule::candidates::Chosen;
use crate::schedule::known::Known;
use crate::schedule::ledger::Asking;
use crate::schedule::parting;
use crate::schedule::predictions::Judged;
use crate::schedule::share::{Room, Rule, Seat, Seats, Shares, share};
use crate::shared::Shared;

/// A cluster while an object's replicas are shared out.
pub(super) struct Row<'a, 'b> {
    pub(super) name: &'a ClusterName,
    pub(super) chosen: &'a Chosen<'b>,
    pub(super) requirements: Shared<PodRequirements>,
    /// What it has, before it gives to others.
    had: u64,
    /// And after that.
    pub(super) left: u64,
    pub(super) judged: Judged,
    /// How many leave, since no node takes them.
    leaving: u64,
}

impl<'a, 'b> Division<'a, 'b> {
    pub(super) fn by_room(&mut self, object: &ObjectKey, wanted: u64, strategy: Strategy) -> Result<(), Box<Finding>> {
        let mut rows = self.rows(object);
        let seats = self.seats(object, wanted, &mut rows)?;
        let rule = match strategy {
            Strategy::Spread => Rule::Spread,
            Strategy::Binpack => Rule::Binpack,
        };
        self.fill((object, wanted, rule), &rows, seats);
        Ok(())
    }

    fn rows(&self, object: &ObjectKey) -> Vec<Row<'a, 'b>> {
        let mut last: Option<(&Member<'_, '_>, Shared<PodRequirements>)> = None;
        let mut rows = Vec::with_capacity(self.members.len());
        for (name, member) in &self.members {
            let requirements = match last {
                Some((before, requirements)) if before.asks_the_same(member) => requirements,
                _ => member.requirements(object),
            };
            last = Some((member, requirements.clone()));
            let had = self.had(name, object);
            rows.push(Row {
                name,
                chosen: member.chosen,
                requirements,
                had,
                left: self.left((name, object), had),
                judged: Judged::without((Room::Unbounded, Shared::default())),
                leaving: 0,
            });
        }
        rows
    }

    /// A seat for each row, which is told what was found out.
    fn seats(
        &mut self,
        object: &ObjectKey,
        wanted: u64,
        rows: &mut [Row<'a, 'b>],
    ) -> Result<Seats<&'a ClusterName>, Box<Finding>> {
        let begins = |row: &Row<'_, '_>| {
            let share = self.begin.share((row.name, object), (row.left, 0), Room::Unbounded);
            // What is above a bound leaves, and is to find room elsewhere.
            let most = self.bounds(row.name, row.chosen)?.max;
            Ok::<_, Box<Finding>>(share.min(most.unwrap_or(u64::MAX)))
        };
        let begins: Vec<u64> = rows.iter().map(begins).collect::<Result<_, _>>()?;
        let all: u64 = begins.iter().sum();
        // With the number that is placed nothing moves, so that nobody needs to count.
        let moves = self.begin.is_rebalance() || rows.iter().zip(&begins).any(|(row, begins)| *begins > row.left);
        let mut query = Query {
            object,
            wanted,
            counts: moves || all != wanted,
            grows: moves || all < wanted,
            words: Known::default(),
        };
        let mut seats = Vec::with_capacity(rows.len());
        for row in rows {
            row.judged = self.judged(&mut query, row);
            let mut room = row.judged.room;
            let bounds = self.bounds(row.name, row.chosen)?;
            let least = bounds.min.unwrap_or_default();
            let pending = self.pending(row.name, object).min(row.left.saturating_sub(least));
            let begins = self.begin.share((row.name, object), (row.left, pending), room);
            if let (Room::Replicas(most), true) = (room, begins < row.left && self.moves_pending()) {
                // Whatever is counted: what waits there in vain finds no place there.
                room = Room::Replicas(most.min(begins));
                row.leaving = row.left - begins;
            }
            seats.push(self.seat((row.chosen, 0), bounds, (begins, room)));
        }
        Ok(self.members.with(seats))
    }

    /// Shares the replicas out, promises them, and says why.
    fn fill(
        &mut self,
        (object, wanted, rule): (&ObjectKey, u64, Rule),
        rows: &[Row<'a, 'b>],
        mut seats: Seats<&'a ClusterName>,
    ) {
        if rule == Rule::Binpack {
            fullest_first(&mut seats);
        }
        let compatible = self.is_compatible().then(|| compatible(wanted, rule, &seats)).flatten();
        let ours = || share(&self.subscription.key, wanted, rule, self.skew(), &seats);
        let mut shares = compatible.unwrap_or_else(ours);
        stay(&mut shares, rows);
        self.scheduled.by_room |= shares.by_room;
        let gains = match self.preempts && shares.unplaced > 0 {
            true => self.take((object, wanted, rule), rows, &mut seats, &mut shares),
            false => Gains::new(),
        };
        let mut tell = Tell::of(object, wanted);
        for (place, row) in rows.iter().enumerate() {
            let share = shares.replicas.at(place).copied().unwrap_or_default();
            let Some(seat) = seats.at(place) else { continue };
            self.promise(object, row, share);
            let sentence = self.sentence(object, row, (share, seat), &gains);
            let report = self.context.seen_at(row.chosen.place).and_then(|seen| seen.report);
            let prediction = row.judged.prediction;
            let Some(member) = self.members.at_mut(place) else {
                continue;
            };
            let assignment = &mut member.assignment;
            assignment.reasons = tell.reasons(Sentence {
                before: assignment.reasons.clone(),
                ..sentence
            });
            tell.replicas.set(&mut assignment.replicas, share);
            if let Room::Replicas(room) = seat.room {
                let evidence = assignment.capacity.get_or_insert_with(|| Evidence {
                    at: report
                        .map(|report| report.at)
                        .or(prediction.map(|said| said.at))
                        .unwrap_or_default(),
                    sequence: report.and_then(|report| report.capacity.sequence),
                    room: ByObject::default(),
                });
                tell.rooms.set(&mut evidence.room, room);
            }
        }
        self.leave_unplaced((object, wanted), &seats, &shares, || {
            let rows = rows.iter().filter(|row| !row.judged.text.is_empty());
            let why: Vec<String> = rows.map(|row| format!("{} {}", row.name, *row.judged.text)).collect();
            why.join("; ")
        });
    }

    fn promise(&mut self, object: &ObjectKey, row: &Row<'_, '_>, share: u64) {
        let more = share.saturating_sub(row.left);
        let asking = Asking {
            unit: &self.subscription.key,
            object,
            requirements: &row.requirements,
        };
        self.ledger
            .promise(&self.context.books(), row.chosen.cluster, asking, more);
        if let Some(prediction) = row.judged.prediction {
            self.ledger.predicted.add(row.name, more, prediction.said);
        }
    }

    fn sentence(
        &mut self,
        object: &ObjectKey,
        row: &Row<'_, '_>,
        (share, seat): (u64, &Seat),
        gains: &Gains,
    ) -> Sentence {
        let mut gone = match row.leaving {
            0 => String::new(),
            leaving => format!(", of which no node takes {leaving}"),
        };
        let gains = gains.get(row.name).map(|gone| taken_text(gone));
        for text in self.give(row.name, object).into_iter().chain(gains) {
            gone.push_str(&format!(", {text}"));
        }
        let more = share.saturating_sub(row.left);
        Sentence {
            share,
            had: row.had,
            least: seat.least,
            most: seat.most,
            fits: seat.room,
            gone,
            room: row.judged.text.clone(),
            begin: self.begin.reason(row.name, object, share),
            taken_over: parting::taken_over(self.parting, (self.previous, object), more),
            before: Shared::default(),
        }
    }
}

/// What is told of one object in many clusters.
struct Tell<'t> {
    object: &'t ObjectKey,
    wanted: u64,
    sentences: Known<Sentence, Shared<Vec<String>>>,
    replicas: Numbers,
    rooms: Numbers,
}

impl<'t> Tell<'t> {
    fn of(object: &'t ObjectKey, wanted: u64) -> Self {
        let key = Arc::new(object.clone());
        Self {
            object,
            wanted,
            sentences: Known::default(),
            replicas: Numbers::of(&key),
            rooms: Numbers::of(&key),
        }
    }

    fn reasons(&mut self, sentence: Sentence) -> Shared<Vec<String>> {
        let reasons = |sentence: &Sentence| sentence.reasons(self.object, self.wanted);
        self.sentences.answer(&sentence, reasons)
    }
}

/// What was to leave and found no better place stays.
fn stay(shares: &mut Shares<&ClusterName>, rows: &[Row<'_, '_>]) {
    for (share, row) in shares.replicas.values_mut().zip(rows) {
        let back = shares.unplaced.min(row.leaving);
        shares.unplaced -= back;
        *share += back;
    }
}
