//! Two hubs on one state repository, each killed and slowed down wherever it may be.

use std::collections::VecDeque;

use super::*;
use crate::wire::Held;

const CLUSTERS: [&str; 2] = ["a", "b"];
/// Revisions by their digit, each newer than the one before it.
const REVISIONS: [char; 9] = ['1', '2', '3', '4', '5', '6', '7', '8', '9'];

/// What hubs share, and what clusters hold.
struct Shared {
    /// How many revisions were pushed.
    pushed: usize,
    rendered: Vec<StateCommit>,
    released: Vec<StateCommit>,
    held: BTreeMap<ClusterName, Option<StateCommit>>,
    followed: Option<Revision>,
}

/// What waits to be done, or to be heard.
enum Work {
    Do(Box<Effect>),
    Hear(Box<Event>),
}

struct Hub {
    state: State,
    work: VecDeque<Work>,
    /// How many revisions its copy of source has.
    copy: usize,
}

/// Numbers that are the same on every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit as u64).expect("it is small")
    }
}

fn sequence(commit: &StateCommit) -> u64 {
    let record = commit.published.record.as_ref();
    record.and_then(|record| record.sequence).expect("it is released")
}

fn from(commit: &StateCommit) -> &Revision {
    &commit.published.record.as_ref().expect("it is a decision").source
}

impl Shared {
    fn head(pushed: usize) -> Revision {
        revision(REVISIONS[pushed - 1])
    }

    /// What is noted, as a hub finds it that accepted this commit.
    fn followed(&self, accepted: Option<&Revision>) -> Option<Noted> {
        let source = self.followed.clone()?;
        let counts = self.rendered.last().is_none_or(|last| *from(last) < source);
        Some(Noted {
            is_left_behind: counts && accepted > Some(&source),
            counts,
            source,
        })
    }

    fn commit(&self, next: Published, parent: Option<&StateCommit>) -> StateCommit {
        let number = self.rendered.len() + self.released.len() + 1;
        let commit = Revision::parse(format!("{number:040x}")).expect("forty hex digits");
        StateCommit {
            lineage: parent.map_or_else(|| commit.clone(), |parent| parent.lineage.clone()),
            commit,
            published: Arc::new(next),
        }
    }

    fn write(&mut self, write: Write) -> Event {
        let is_at =
            |commits: &[StateCommit], at: &Option<Revision>| commits.last().map(|last| &last.commit) == at.as_ref();
        match write {
            Write::Rendered { parent, next, .. } if is_at(&self.rendered, &parent) => {
                let commit = self.commit(next, self.rendered.last());
                if let Some(last) = self.rendered.last() {
                    assert!(from(&commit) > from(last), "no decision is taken back, or made twice");
                }
                self.rendered.push(commit.clone());
                Event::RenderedWritten(commit)
            }
            Write::Released { parent, next } if is_at(&self.released, &parent) => {
                let commit = self.commit(next, self.released.last());
                assert_eq!(
                    sequence(&commit),
                    self.released.len() as u64 + 1,
                    "sequences leave nothing out"
                );
                self.released.push(commit.clone());
                Event::ReleasedWritten(commit)
            }
            Write::AdoptReleased { commit, .. } => match self.released.last().filter(|last| last.commit == commit) {
                Some(last) => Event::ReleasedWritten(last.clone()),
                None => Event::WriteRefused,
            },
            Write::Withdraw { open, .. } => Event::Withdrawn { open, kept: Vec::new() },
            Write::Follow { found, followed } if found == self.followed => {
                let source = followed.source.clone();
                assert!(self.followed.as_ref() < Some(&source), "no note is taken back");
                self.followed = Some(source.clone());
                Event::Followed(source)
            }
            Write::AdoptRendered { .. }
            | Write::Proposal { .. }
            | Write::Registrations { .. }
            | Write::AgentKeys { .. } => panic!("nobody asks for that here"),
            Write::Rendered { .. } | Write::Released { .. } | Write::Follow { .. } => Event::WriteRefused,
        }
    }

    /// A cluster hears an envelope: what is older than it holds, it refuses.
    fn tell(&mut self, cluster: &ClusterName, state: &State) {
        let Some(envelope) = state.envelope(cluster) else {
            return;
        };
        let held = self.held.entry(cluster.clone()).or_default();
        if held.as_ref().is_none_or(|held| sequence(held) < envelope.sequence) {
            *held = self
                .released
                .iter()
                .find(|commit| commit.commit == envelope.released)
                .cloned();
        }
    }

    fn report(&self, cluster: &ClusterName) -> Event {
        let held = self.held.get(cluster).cloned().flatten();
        let held = held.map(|commit| Held {
            lineage: commit.lineage.clone(),
            sequence: sequence(&commit),
            list: Digest::of_bytes(b"list"),
            released: commit.commit.clone(),
            mode: Default::default(),
            mode_source: None,
            orphan: false,
            orphaned: Default::default(),
            units: BTreeMap::new(),
        });
        Event::Reported {
            report: Box::new(report(cluster.clone(), held)),
        }
    }
}

pub(super) fn report(cluster: ClusterName, held: Option<Held>) -> Report {
    Report {
        without_hub_since: None,
        applied_sequence: None,
        capacity: None,
        capacity_unknown: String::new(),
        version: Report::VERSION,
        held_read: true,
        cluster,
        held,
        refused: None,
        units: BTreeMap::new(),
        kubernetes_version: None,
        api_versions: Vec::new(),
        trouble: String::new(),
        waits_for_lease: false,
        facts: None,
        nodes: None,
        corrections: crate::wire::Corrections::default(),
        hub_keys_known: Default::default(),
        agent: crate::wire::AgentCounts::default(),
    }
}

impl Hub {
    fn start(shared: &Shared) -> Self {
        let mut hub = Self {
            state: State::default(),
            work: VecDeque::new(),
            copy: shared.pushed,
        };
        hub.poll(shared);
        hub
    }

    /// It looks at all there is.
    fn poll(&mut self, shared: &Shared) {
        self.copy = shared.pushed;
        let looks = [Effect::LookAtState, Effect::LookAtSource];
        self.work.extend(looks.map(|look| Work::Do(Box::new(look))));
    }

    /// Does one thing that waits, whichever: looks and plans end in no order, and events are heard in theirs.
    fn work(&mut self, place: usize, shared: &mut Shared) {
        let is_heard = |work: &Work| matches!(work, Work::Hear(_));
        let first = self.work.iter().position(is_heard).unwrap_or_default();
        let place = match self.work.get(place) {
            Some(Work::Hear(_)) => first,
            _ => place,
        };
        match self.work.remove(place) {
            Some(Work::Do(effect)) => {
                if let Some(event) = self.perform(*effect, shared) {
                    self.work.push_back(Work::Hear(Box::new(event)));
                }
            }
            Some(Work::Hear(event)) => {
                let effects = step(&mut self.state, *event, 0);
                self.work
                    .extend(effects.into_iter().map(|effect| Work::Do(Box::new(effect))));
                assert!(!self.state.is_recovering(), "it is no alarm that another hub was first");
                assert_eq!(self.state.restored, None, "nothing is put back");
                let condition = self.state.conditions().into_iter().find(|it| it.status == "False");
                assert_eq!(condition, None, "nothing is wrong");
            }
            None => {}
        }
    }

    fn perform(&mut self, effect: Effect, shared: &mut Shared) -> Option<Event> {
        match effect {
            Effect::LookAtSource => Some(self.look_at_source(shared)),
            Effect::LookAtState | Effect::LookAgain => Some(Event::StateSeen(self.refs(shared))),
            Effect::Register | Effect::Disconnect(_) => None,
            Effect::Plan { revision, base, .. } => {
                let digit = revision.as_str().chars().next().expect("it has digits");
                let content = digit.to_string();
                Some(Event::Planned(Box::new(Planned {
                    fleet: fleet(digit, &CLUSTERS),
                    plan: render::Plan {
                        units: units(digit, &content, &CLUSTERS),
                        ..render::Plan::default()
                    },
                    findings: Vec::new(),
                    base,
                    gate: Approval::None,
                    commits: Vec::new(),
                    departed: Default::default(),
                    orphaned: Default::default(),
                })))
            }
            Effect::Weigh { contents } => {
                let unknown = |digest| (digest, None);
                Some(Event::Weighed {
                    holdings: contents.into_iter().map(unknown).collect(),
                })
            }
            Effect::Write(write) => Some(shared.write(write)),
            Effect::Dispatch(cluster) => {
                shared.tell(&cluster, &self.state);
                None
            }
        }
    }

    fn look_at_source(&mut self, shared: &Shared) -> Event {
        let judged_by = self.state.judged_by();
        // Before it was reached, nobody looks at a copy; then it is as new as what was published by then.
        if self.state.accepted.is_none() {
            self.copy = shared.pushed;
        }
        let head = Shared::head(self.copy);
        let (accepted, newer) = (&judged_by.accepted, &judged_by.named);
        let newer = newer.as_ref().filter(|newer| Some(*newer) > accepted.as_ref());
        let relation = match newer {
            Some(newer) if *newer > head => Relation::Behind,
            _ => Relation::Follows,
        };
        Event::SourceSeen {
            head: Head::At {
                revision: head,
                relation,
            },
            covered: newer.is_none(),
            judged_by,
        }
    }

    fn refs(&self, shared: &Shared) -> StateRefs {
        let head = |commits: &[StateCommit], known: &Option<StateCommit>| match commits.last() {
            None => StateHead::Missing,
            Some(commit) => StateHead::At {
                commit: Box::new(commit.clone()),
                forward: known.as_ref().is_none_or(|known| known.commit <= commit.commit),
            },
        };
        StateRefs {
            writes: self.state.writes,
            rendered: head(&shared.rendered, &self.state.rendered),
            released: head(&shared.released, &self.state.released),
            proposal_gone: false,
            keys_gone: false,
            proposed_instead: None,
            followed: Ok(shared.followed(self.state.accepted.as_ref())),
        }
    }
}

/// Everything that waits is done, in its order, until nothing is left.
fn settle(hubs: &mut [Hub; 2], shared: &mut Shared) {
    for epoch in 1..=20 {
        for hub in hubs.iter_mut() {
            hub.poll(shared);
            for name in CLUSTERS {
                // Agents dial a hub again that was killed.
                let cluster = cluster(name);
                let connected = Event::Connected {
                    cluster: cluster.clone(),
                    epoch,
                };
                hub.work.push_back(Work::Hear(Box::new(connected)));
                hub.work.push_back(Work::Hear(Box::new(shared.report(&cluster))));
            }
            for _ in 0..1_000 {
                hub.work(0, shared);
            }
            assert!(hub.work.is_empty(), "a hub never comes to rest");
        }
    }
}

fn check(seed: u64) {
    let mut dice = Dice(seed);
    let mut shared = Shared {
        pushed: 1,
        rendered: Vec::new(),
        released: Vec::new(),
        held: BTreeMap::new(),
        followed: None,
    };
    // What clusters hold is known from the beginning, so that a first hub does not wait for it.
    let mut hubs = [(); 2].map(|()| Hub::start(&shared));
    for hub in &mut hubs {
        hub.state = State::with_new_lineage(true);
    }
    for _ in 0..400 {
        let at = dice.below(2);
        let hub = &mut hubs[at];
        match dice.below(40) {
            0 if shared.pushed < REVISIONS.len() => shared.pushed += 1,
            1 if !shared.released.is_empty() => *hub = Hub::start(&shared),
            2 => hub.poll(&shared),
            3 => {
                let heard = shared.report(&cluster(CLUSTERS[dice.below(2)]));
                hub.work.push_back(Work::Hear(Box::new(heard)));
            }
            _ => {
                let reach = hub.work.len().clamp(1, 3);
                hub.work(dice.below(reach), &mut shared);
            }
        }
    }
    settle(&mut hubs, &mut shared);
    let newest = shared.released.last().expect("something was released").clone();
    assert_eq!(
        *from(&newest),
        Shared::head(shared.pushed),
        "what was pushed last is released"
    );
    assert!(shared.rendered.len() <= shared.pushed, "each push is decided on once");
    for hub in &hubs {
        let known = hub.state.released.as_ref().map(|commit| &commit.commit);
        assert_eq!(known, Some(&newest.commit), "both hubs tell the same");
    }
    for name in CLUSTERS {
        let held = shared.held[&cluster(name)].as_ref();
        assert_eq!(
            held.map(|held| &held.commit),
            Some(&newest.commit),
            "{name} has the newest"
        );
    }
}

#[test]
fn two_hubs_that_die_at_any_step_take_nothing_back_and_decide_everything_once() {
    for seed in 1..=200_u64 {
        check(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    }
}
