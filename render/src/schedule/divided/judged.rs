//! How much room a cluster has for an object of a unit, in words too.

use super::Division;
use super::room::Row;
use crate::capacity::Fit;
use crate::model::Cluster;
use crate::name::{ClusterName, ObjectKey};
use crate::predictor::Question;
use crate::schedule::begin::Begin;
use crate::schedule::known::Known;
use crate::schedule::ledger::Asking;
use crate::schedule::predictions::{Judged, prediction};
use crate::schedule::share::Room;
use crate::schedule::taints::{self, Verdict};
use crate::shared::Shared;

/// One object, while clusters are asked what room they have for it.
pub(super) struct Query<'q> {
    pub(super) object: &'q ObjectKey,
    pub(super) wanted: u64,
    /// Whether anybody needs to count.
    pub(super) counts: bool,
    /// Whether replicas are to be added.
    pub(super) grows: bool,
    /// What was counted, and whether more is asked than can be counted → that in words.
    pub(super) words: Known<(Fit, bool), Shared<String>>,
}

impl Division<'_, '_> {
    pub(super) fn judged(&mut self, query: &mut Query<'_>, row: &Row<'_, '_>) -> Judged {
        if !query.counts {
            return Judged::without((Room::Unbounded, Shared::default()));
        }
        let mut judged = match &row.chosen.still {
            Some(still) => Judged::without((Room::Frozen, format!("no more: {}", still.why).into())),
            None => {
                let own = self.room(query, row);
                self.predicted(query, row, own)
            }
        };
        if let Some((room, text)) = self.behind(row.chosen.cluster, row.left, judged.room) {
            (judged.room, judged.text) = (room, text);
        }
        judged
    }

    /// Why a cluster gets no more where a taint keeps out what is new: more replicas would be.
    pub(super) fn kept_out(&self, cluster: &Cluster) -> Option<String> {
        match taints::verdict(&cluster.taints, &self.subscription.tolerations) {
            Verdict::KeepOut(taint) => Some(format!("no more: taint {}", taints::text(taint))),
            _ => None,
        }
    }

    /// How much room a cluster has by what it reports.
    fn room(&mut self, query: &mut Query<'_>, row: &Row<'_, '_>) -> (Room, Shared<String>) {
        let cluster = row.chosen.cluster;
        if let Some(why) = self.kept_out(cluster) {
            return (Room::Frozen, why.into());
        }
        let asking = Asking {
            unit: &self.subscription.key,
            object: query.object,
            requirements: &row.requirements,
        };
        match self.ledger.room(&self.context.books(), cluster, asking, query.wanted) {
            Err(why) => (Room::Frozen, format!("no more: {why}").into()),
            Ok(fit) => {
                let room = Room::Replicas(fit.replicas);
                let (wanted, question) = (query.wanted, (fit, row.requirements.asks_more));
                let text = query
                    .words
                    .answer(&question, |(fit, asks_more)| text_of(fit, wanted, *asks_more).into());
                (room, text)
            }
        }
    }

    /// The same with what the cluster's predictor says, which is asked only where replicas are to be added.
    fn predicted(&mut self, query: &Query<'_>, row: &Row<'_, '_>, own: (Room, Shared<String>)) -> Judged {
        let cluster = row.chosen.cluster;
        let Some(question) = Question::about(cluster, &row.requirements) else {
            return Judged::without(own);
        };
        let reports = self.context.reports;
        if !query.grows {
            return Judged::not_asked(reports.clusters.contains_key(&cluster.name), own);
        }
        let prediction = prediction(reports, &self.ledger.predicted, &question, self.context.now);
        self.scheduled.questions.push(question);
        Judged::least((cluster, reports), own, row.left, prediction)
    }

    pub(super) fn moves_pending(&self) -> bool {
        matches!(self.begin, Begin::WithoutPending(_))
    }

    /// How many replicas a cluster says no node takes, where they are to be moved.
    pub(super) fn pending(&self, cluster: &ClusterName, object: &ObjectKey) -> u64 {
        if !self.moves_pending() {
            return 0;
        }
        let report = self.context.reports.of(cluster).ok();
        let said = report.and_then(|report| {
            let place = report.capacity.workload(&self.subscription.key, object)?;
            Some(report.capacity.workloads[place].unschedulable)
        });
        said.unwrap_or_default()
    }
}

fn text_of(fit: &Fit, wanted: u64, asks_more: bool) -> String {
    let refused = fit
        .refused
        .iter()
        .map(|(reason, nodes)| format!("{nodes} of its nodes: {reason}"));
    let refused: Vec<_> = refused.collect();
    let mut text = format!("has room for {}", fit.replicas);
    if fit.replicas < wanted && !refused.is_empty() {
        text.push_str(&format!(" ({})", refused.join(", ")));
    }
    if asks_more {
        text.push_str(" at most");
    }
    text
}
