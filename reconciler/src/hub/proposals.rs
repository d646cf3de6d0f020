//! Proposals, as the engine asks for them: one that waits, and none that waits for nothing. Blocks.

use std::collections::BTreeMap;
use std::sync::Arc;

use render::describe::Description;
use render::plan::{ObjectChange, changes, deltas};
use render::{ClusterName, Digest, Published, Revision};
use tunnel::PublicKey;

use super::engine::{Event, Proposed};
use super::keeper::Keeper;
use super::publish::{
    CommitId, Elsewhere, Proposal, SourceCommit, Standing, StateError, StateRef, Summary, UnitSummary, message,
};
use crate::registration::cluster_file;

/// The file of a cluster whose agent asks for registration. Labels are a person's to add.
pub(super) fn proposed_file(cluster: &ClusterName, key: &PublicKey) -> String {
    cluster_file(cluster, key, &[], "Dual")
}

impl Keeper {
    /// Proposes, and withdraws the proposals that this one takes the place of.
    pub(super) fn propose(
        &self,
        base: &Revision,
        next: Published,
        contents: &BTreeMap<Digest, Arc<Description>>,
        commits: Vec<SourceCommit>,
        seconds: i64,
    ) -> Result<Event, StateError> {
        let repository = self.repository();
        let base = self.known(base)?;
        let record = next.record.as_ref().ok_or(StateError::NoRecord)?;
        let summary = self.summary(base, &next, contents, commits)?;
        let message = message(&summary.subject(), &summary.body(), record);
        let decision = self.decision(StateRef::Rendered, next, contents, message, seconds)?;
        let proposal = repository.propose(base, &decision.borrowed())?;
        let kept = repository.withdraw_all(base, proposal.as_ref(), true)?;
        Ok(Event::Proposed {
            proposal: proposal.map(|proposal| self.proposed(base, proposal)).transpose()?,
            kept,
        })
    }

    /// The hub's own proposal that took the place of one that is gone; `None` where nobody proposes that commit of source.
    pub(super) fn proposed_instead(&self, rendered: &Revision, gone: &Proposed) -> Option<Proposed> {
        let base = self.known(rendered).ok()?;
        let proposals = self.repository().proposals().ok()?.into_iter();
        let mut ours = proposals.filter(|proposal| {
            let standing = self.repository().standing(proposal);
            standing.is_ok_and(|standing| standing == Standing::Ours { base })
        });
        ours.find_map(|proposal| {
            let proposed = self.proposed(base, proposal).ok()?;
            (proposed.source == gone.source).then_some(proposed)
        })
    }

    /// Withdraws what waits for nothing.
    pub(super) fn withdraw(&self, rendered: &Revision, open: bool) -> Result<Event, StateError> {
        let kept = self.repository().withdraw_all(self.known(rendered)?, None, open)?;
        Ok(Event::Withdrawn { open, kept })
    }

    /// Proposes the files of clusters whose agents ask for registration, and withdraws those that nobody asks for any more.
    pub(super) fn register(
        &self,
        source: &Revision,
        (wanted, elsewhere): (BTreeMap<ClusterName, PublicKey>, Elsewhere),
        seconds: i64,
    ) -> Result<Event, StateError> {
        let files = wanted
            .iter()
            .map(|(cluster, key)| (cluster.clone(), proposed_file(cluster, key)));
        let registrations =
            self.repository()
                .propose_registrations(source, &files.collect(), (&self.marks(), &elsewhere), seconds)?;
        Ok(Event::RegistrationsProposed {
            wanted,
            elsewhere,
            registrations,
        })
    }

    /// What a proposal's branch says, which may be an older commit of source than was planned, or more than the
    /// hub put there.
    fn proposed(&self, base: CommitId, proposal: Proposal) -> Result<Proposed, StateError> {
        let says = |commit| self.repository().published_at(commit);
        let before = says(base)?;
        // A person's commits on top may be no state of the fleet. They are judged when they are merged.
        let after = match says(proposal.commit) {
            Err(error) if error.is_malformed() => Arc::clone(&before),
            after => after?,
        };
        let units = deltas(&before.units, &after.units);
        Ok(Proposed {
            branch: proposal.branch,
            source: after.record.as_ref().map(|record| record.source.clone()),
            units: units.into_iter().map(|delta| delta.unit).collect(),
        })
    }

    fn summary(
        &self,
        base: CommitId,
        next: &Published,
        contents: &BTreeMap<Digest, Arc<Description>>,
        commits: Vec<SourceCommit>,
    ) -> Result<Summary, StateError> {
        let repository = self.repository();
        let before = repository.published_at(base)?;
        let content = |digest: Option<Digest>| match digest {
            None => Ok(None),
            Some(digest) => match contents.get(&digest) {
                Some(content) => Ok(Some(Arc::clone(content))),
                None => repository.content(base, &digest).map(|content| Some(Arc::new(content))),
            },
        };
        let objects = |from: Option<Digest>, to: Option<Digest>| -> Result<Vec<ObjectChange>, StateError> {
            match (from, to) {
                // Said by the unit's name alone.
                (None, _) | (_, None) => Ok(Vec::new()),
                (from, to) => Ok(changes(content(from)?.as_deref(), content(to)?.as_deref())),
            }
        };
        let units = deltas(&before.units, &next.units).into_iter();
        let rendered = repository.ref_name(StateRef::Rendered);
        Ok(Summary {
            units: units
                .map(|delta| UnitSummary::new(delta, objects))
                .collect::<Result<_, _>>()?,
            commits,
            rendered: rendered.strip_prefix("refs/heads/").unwrap_or(rendered).to_owned(),
        })
    }
}
