//! What holds for the fleet as a whole, in words.

use super::event::{Head, Relation};
use super::recovery::Recovery;
use super::remote::RemoteState;
use super::state::State;

/// One thing that is so, in kstatus' form.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// What it is about.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Whether it holds.
    pub status: &'static str,
    /// A CamelCase word for tools.
    pub reason: &'static str,
    /// A sentence for people.
    pub message: String,
}

impl State {
    /// What holds for the fleet as a whole.
    pub fn conditions(&self) -> Vec<Condition> {
        let remote = self.remote.iter().flat_map(RemoteState::conditions);
        remote
            .chain([self.source_condition(), self.state_condition()])
            .collect()
    }

    fn source_condition(&self) -> Condition {
        let kind = "SourceVerified";
        let not = |reason, message| Condition {
            kind,
            status: "False",
            reason,
            message,
        };
        if let (Some((failed, message)), Some(Head::At { revision, .. })) = (&self.plan_failed, &self.source)
            && failed == revision
        {
            return not("Unreadable", format!("{revision}: {message}"));
        }
        match &self.source {
            None => Condition {
                kind,
                status: "Unknown",
                reason: "NotLookedYet",
                message: "source was not looked at yet".to_owned(),
            },
            Some(Head::BranchMissing { branch }) => not(
                "BranchMissing",
                format!("branch {branch} does not exist; nothing changes until it does"),
            ),
            Some(Head::Unreadable { message }) => not("Unreadable", message.clone()),
            Some(Head::At {
                revision,
                relation: Relation::Rewritten,
            }) => {
                let old = self
                    .accepted_or_published()
                    .map(|old| old.to_string())
                    .unwrap_or_default();
                not(
                    "HistoryRewritten",
                    format!(
                        "{revision} does not descend from {old}, which was accepted; a commit with the trailer Accept-Rewrite: {old} lets it through"
                    ),
                )
            }
            Some(Head::At { revision, .. }) => Condition {
                kind,
                status: "True",
                reason: "Read",
                message: format!("at {revision}"),
            },
        }
    }

    fn state_condition(&self) -> Condition {
        let kind = "StateKept";
        let not = |reason, message| Condition {
            kind,
            status: "False",
            reason,
            message,
        };
        if let Some(message) = &self.state_unreadable {
            return not("Unreadable", message.clone());
        }
        if let Some(message) = &self.malformed {
            let rendered = &self.rendered_ref;
            let remedy = format!(
                "correct the file, or take the commit back with git revert, and push to {rendered}; until then nothing is rendered, proposed or released"
            );
            return not(
                "RenderedMalformed",
                format!("{rendered} cannot be followed: {message}; {remedy}"),
            );
        }
        match &self.recovery {
            Some(Recovery::WaitForReports) => not("Recovering", "released is missing, and clusters have not said yet what they hold; nothing is scheduled or pruned until they do".to_owned()),
            Some(Recovery::Adopt { commit }) => not("Recovering", format!("clusters hold {commit}, which is being adopted")),
            Some(Recovery::Lost { commit, message }) => not("Recovering", format!("clusters hold {commit}, and it could not be adopted: {message}; restore the state repository from its backup, or start the hub with --new-lineage and name the new root in spec.lineage of fleet.yaml")),
            None | Some(Recovery::Seek { .. }) if self.write_failed.is_some() => {
                let why = self.write_failed.clone().unwrap_or_default();
                not("WriteFailed", format!("what was decided could not be written: {why}; it is tried again"))
            }
            None | Some(Recovery::Seek { .. }) => {
                let message = self.restored.clone().unwrap_or_else(|| "rendered and released stand where this hub left them".to_owned());
                Condition { kind, status: "True", reason: "Kept", message }
            }
        }
    }
}
