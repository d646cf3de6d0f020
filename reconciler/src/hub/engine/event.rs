//! What the engine hears and what it wants done. Closed lists, matched without a wildcard by the shell.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use render::chart::Capabilities;
use render::describe::Description;
use render::guard::Holdings;
use render::model::Approval;
use render::published::{Departure, Orphaned};
use render::schedule::Reports;
use render::{ClusterName, Digest, Finding, Fleet, Plan, Published, Revision, UnitKey};
use tunnel::PublicKey;

use super::state::{Proposed, StateCommit};
use crate::hub::knocks::Knock;
use crate::hub::publish::{Elsewhere, Followed, KeysAsked, Registrations, SourceCommit};
use crate::wire::Report;

/// Something happened; the engine looks at its own pace.
#[derive(Debug)]
pub enum Event {
    /// The source branch was looked at.
    SourceSeen {
        /// Where it stands.
        head: Head,
        /// What its relation was judged by. Judged by something else than counts now, it is looked at again.
        judged_by: JudgedBy,
        /// Whether the accepted commit builds on the newest one that the state repository names, or nobody here can say.
        covered: bool,
    },
    /// `rendered` and `released` were looked at.
    StateSeen(StateRefs),
    /// A plan is ready.
    Planned(Box<Planned>),
    /// Predictions of charts that a plan did not wait for are made.
    Predicted,
    /// Predictors answered, or failed to, after a plan that did not wait for them.
    RoomPredicted,
    /// Contents that were asked for: their objects, or that they cannot be read.
    Weighed {
        /// By digest.
        holdings: BTreeMap<Digest, Option<Arc<Holdings>>>,
    },
    /// A plan could not be made: the revision could not be read. Nothing may be concluded from it.
    PlanFailed {
        /// What was to be planned.
        revision: Revision,
        /// Why.
        message: String,
    },
    /// `rendered` stands at this commit now.
    RenderedWritten(StateCommit),
    /// A proposal waits now; `None` where the base says all of it already.
    Proposed {
        /// It.
        proposal: Option<Proposed>,
        /// Branches of proposals that people put commits on, which stay.
        kept: Vec<String>,
    },
    /// Proposals that waited for nothing are gone.
    Withdrawn {
        /// As it was asked for.
        open: bool,
        /// As in `Proposed`.
        kept: Vec<String>,
    },
    /// `released` stands at this commit now.
    ReleasedWritten(StateCommit),
    /// A hub that restarts knows this commit of source by now.
    Followed(Revision),
    /// A ref was not where the write expected it, or a remote did not take it.
    WriteRefused,
    /// The repository could not be written.
    WriteFailed {
        /// Why, and what a person does about it.
        message: String,
    },
    /// A commit that clusters hold, or that `released` stood at, is not in the state repository.
    AdoptionFailed {
        /// The commit.
        commit: Revision,
        /// Why.
        message: String,
    },
    /// The remote was asked, or something was pushed to it.
    RemoteSeen(RemoteSeen),
    /// A cluster's tunnel stands, or its API server answers the hub.
    Connected {
        /// Which.
        cluster: ClusterName,
        /// Its session; the highest one counts.
        epoch: u64,
    },
    /// That session ended.
    Disconnected {
        /// Which.
        cluster: ClusterName,
        /// Its session.
        epoch: u64,
    },
    /// A cluster said how it fares.
    Reported {
        /// What it said.
        report: Box<Report>,
    },
    /// Another hub told of the clusters that are connected to it.
    PeerTold {
        /// Which hub.
        peer: String,
        /// All of them, and since when.
        clusters: BTreeMap<ClusterName, i64>,
        /// What some of them said since the last time.
        reports: Vec<Report>,
        /// Whose agents ask there for registration; `None` where it has not told.
        joining: Option<BTreeMap<ClusterName, PublicKey>>,
        /// Which other keys agents there wish; they were proven.
        wishes: Vec<(ClusterName, super::KeyWish)>,
    },
    /// Another hub is not heard of any more, or was waited for long enough.
    PeerLost {
        /// Which.
        peer: String,
    },
    /// Who asks to be let in and is not.
    Knocked {
        /// All of them, as far as they are listed.
        knocks: Vec<Knock>,
    },
    /// Which agents ask for registration with a token: cluster → key.
    Joining {
        /// All of them.
        wanted: BTreeMap<ClusterName, PublicKey>,
    },
    /// The branches that register clusters are these.
    RegistrationsProposed {
        /// What was asked for.
        wanted: BTreeMap<ClusterName, PublicKey>,
        /// What was known of other hubs.
        elsewhere: Elsewhere,
        /// What is there.
        registrations: Registrations,
    },
    /// An agent that has two keys wants one to take the other's place.
    KeyWished {
        /// Whose.
        cluster: ClusterName,
        /// Which.
        wish: super::KeyWish,
    },
    /// The branch that replaces keys is this.
    KeysProposed {
        /// What was asked for, and of which commit of source.
        done: super::KeysDone,
        /// Its short name; `None` where nothing is to be replaced.
        branch: Option<String>,
        /// Clusters whose files only a person can change, and how.
        by_hand: BTreeMap<ClusterName, String>,
        /// Clusters of whose changes a person closed the proposal.
        closed: BTreeSet<ClusterName>,
    },
    /// Keys that agents wish and that the deny list has.
    KeysDenied {
        /// Which.
        keys: BTreeSet<PublicKey>,
    },
    /// Clusters had long enough to say what they hold.
    GraceOver,
    /// How far the objects in a hub cluster have come, where the fleet has any.
    ObjectsSeen {
        /// As it is shown.
        condition: Option<super::Condition>,
    },
    /// The time of [`super::next_time`] came.
    TimeCame,
}

/// What a look at source is judged by.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct JudgedBy {
    /// The accepted commit.
    pub accepted: Option<Revision>,
    /// The newest commit that the state repository names, which another hub may have seen first: that `rendered` was made
    /// from, or a later one that is followed.
    pub named: Option<Revision>,
}

/// Where the source branch stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Head {
    /// At a commit.
    At {
        /// The commit.
        revision: Revision,
        /// How it stands to the accepted one.
        relation: Relation,
    },
    /// The branch does not exist.
    BranchMissing {
        /// Its name.
        branch: String,
    },
    /// The repository could not be read; that is not an empty one.
    Unreadable {
        /// Why.
        message: String,
    },
}

/// What became of an exchange with the remote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RemoteSeen {
    /// It was asked where its refs stand, and what was new was fetched.
    Reached(Option<Trouble>),
    /// Something was pushed to it.
    Pushed(Option<Trouble>),
}

/// Why an exchange with the remote failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// A CamelCase word for tools.
    pub reason: &'static str,
    /// Which remote, why, and what to do.
    pub message: String,
}

/// How a head stands to the accepted commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// The same, a descendant, or nothing was accepted yet.
    Follows,
    /// The accepted commit is not in its history.
    Rewritten,
    /// It follows, and what another hub has rendered is made from a commit that builds on it: a copy is older here.
    Behind,
    /// As `Rewritten`, and a commit on the new history accepts that, or the process was told to follow.
    RewriteAccepted,
}

/// Where the two state refs stand.
#[derive(Debug)]
pub struct StateRefs {
    /// [`super::State::writes`] when the look began. A look that a write overtook says nothing.
    pub writes: u64,
    /// `rendered`.
    pub rendered: StateHead,
    /// `released`.
    pub released: StateHead,
    /// Whether the branch of the proposal that waits was removed.
    pub proposal_gone: bool,
    /// The same of the branch that replaces keys of agents.
    pub keys_gone: bool,
    /// Where it was: what another hub proposes in its place, of the same commit of source.
    pub proposed_instead: Option<Proposed>,
    /// What is noted of the commit of source that is followed.
    pub followed: Result<Option<Noted>, NoteUnclear>,
}

/// Why nobody can say which commit of source is followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoteUnclear {
    /// It, and what a person does about it.
    pub message: String,
    /// The commits of which more history is to be fetched; none where the state repository says nothing that is readable.
    pub sought: Vec<Revision>,
}

/// The note of which commit of source is followed, as a look found it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Noted {
    /// The commit.
    pub source: Revision,
    /// Whether it is newer than the one that `rendered` was made from.
    pub counts: bool,
    /// Whether it counts, and the accepted commit builds on it.
    pub is_left_behind: bool,
}

/// Where a state ref stands.
#[derive(Debug)]
pub enum StateHead {
    /// There is none.
    Missing,
    /// It could not be read.
    Unreadable(String),
    /// At a commit that was read whole and is no state of the fleet.
    Malformed {
        /// The commit.
        commit: Revision,
        /// What is wrong, with its file.
        message: String,
        /// The commit where the hub last knew the ref.
        last: Option<Box<StateCommit>>,
        /// As in `At`.
        forward: bool,
    },
    /// At a commit.
    At {
        /// The commit with what it says.
        commit: Box<StateCommit>,
        /// Whether it descends from where the hub last knew it, or is that.
        forward: bool,
    },
}

impl StateHead {
    /// The commit that it is at.
    pub(super) fn commit(&self) -> Option<&Revision> {
        match self {
            Self::Missing | Self::Unreadable(_) => None,
            Self::Malformed { commit, .. } => Some(commit),
            Self::At { commit, .. } => Some(&commit.commit),
        }
    }
}

/// A plan with what it was made from.
#[derive(Debug)]
pub struct Planned {
    /// What the revision says.
    pub fleet: Arc<Fleet>,
    /// The plan.
    pub plan: Plan,
    /// Load's findings and the plan's, sorted.
    pub findings: Vec<Finding>,
    /// The commit of `rendered` it was planned on.
    pub base: Option<Revision>,
    /// Whether a person has to merge it, as the revisions accepted before say.
    pub gate: Approval,
    /// Where a person has to: the commits since the last decision, for those who review it.
    pub commits: Vec<SourceCommit>,
    /// Clusters whose file is gone.
    pub departed: BTreeMap<ClusterName, Departure>,
    /// Units that left clusters and whose objects stay there.
    pub orphaned: Orphaned,
}

/// Something to do. Safe to do twice.
#[derive(Debug)]
pub enum Effect {
    /// Look where the source branch stands.
    LookAtSource,
    /// Look where `rendered` and `released` stand.
    LookAtState,
    /// Look everywhere, and at the remote first where the refs are its own.
    LookAgain,
    /// Load and plan a revision.
    Plan {
        /// Which.
        revision: Revision,
        /// The commit of `rendered` that `previous` stands for.
        base: Option<Revision>,
        /// What is published now.
        previous: Arc<Published>,
        /// The newest revision that was planned before, which has a say in the gate.
        accepted: Option<Revision>,
        /// Units that left with their objects staying, and of which a cluster said that it has nothing any more.
        let_go: BTreeSet<(UnitKey, ClusterName)>,
        /// What clusters said of themselves, for charts.
        capabilities: BTreeMap<ClusterName, Arc<Capabilities>>,
        /// What they said of the room they have.
        reports: Reports,
        /// Units whose words to place them anew found nothing to move, up to a revision.
        rebalanced: BTreeMap<UnitKey, Revision>,
        /// Whether the revision was decided on before, so that no source commit asks for this plan.
        decided: bool,
    },
    /// Say which objects contents of what is published have.
    Weigh {
        /// Which contents.
        contents: BTreeSet<Digest>,
    },
    /// Write to the state repository.
    Write(Write),
    /// Tell a cluster what it should have.
    Dispatch(ClusterName),
    /// End a cluster's tunnel or applier; its objects stay.
    Disconnect(ClusterName),
    /// The registered clusters, their keys or contexts changed.
    Register,
}

/// One compare-and-swap write.
#[derive(Debug)]
pub enum Write {
    /// A new commit of `rendered`.
    Rendered {
        /// Where the ref must stand.
        parent: Option<Revision>,
        /// What it says.
        next: Published,
        /// Contents that are not in the parent.
        contents: BTreeMap<Digest, Arc<Description>>,
    },
    /// A proposal to become the next commit of `rendered`, for a person to merge.
    Proposal {
        /// The commit of `rendered` it stands on.
        base: Revision,
        /// What it says.
        next: Published,
        /// Contents that are not in the base.
        contents: BTreeMap<Digest, Arc<Description>>,
        /// Commits of source that it carries.
        commits: Vec<SourceCommit>,
    },
    /// Remove the proposals that are merged, or that stand on another commit than `rendered`.
    Withdraw {
        /// Where `rendered` stands.
        rendered: Revision,
        /// Remove those that stand on it as well: nothing is to be decided.
        open: bool,
    },
    /// The branches that register clusters.
    Registrations {
        /// The commit of source that new ones stand on.
        source: Revision,
        /// All that this hub is asked for.
        wanted: BTreeMap<ClusterName, PublicKey>,
        /// What is known of other hubs, whose branches stay.
        elsewhere: Elsewhere,
    },
    /// The branch that replaces keys of agents.
    AgentKeys {
        /// Whose files they are.
        fleet: Arc<Fleet>,
        /// All changes that there are to be, and the commit of source that they stand on.
        done: super::KeysDone,
        /// What is known of who asks.
        asked: KeysAsked,
    },
    /// Remember which commit of source is followed.
    Follow {
        /// The commit that must be noted by then.
        found: Option<Revision>,
        /// It.
        followed: Followed,
    },
    /// A new commit of `released`.
    Released {
        /// Where the ref must stand.
        parent: Option<Revision>,
        /// What it says.
        next: Published,
    },
    /// Put `rendered` back to a commit; where that one is gone, to a new commit that says what `released`
    /// says.
    AdoptRendered {
        /// Where the ref must stand.
        found: Option<Revision>,
        /// Where it goes.
        commit: Revision,
    },
    /// Put `released` to a commit that exists.
    AdoptReleased {
        /// Where the ref must stand.
        found: Option<Revision>,
        /// Where it goes.
        commit: Revision,
    },
}
