//! A hub for tests whose effects are done at once, in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use render::guard::Holdings;
use render::model::{Approval, Cluster, FleetSpec, Predictor, SyncMode};
use render::plan::deltas;
use render::predictor::Question;
use render::published::{Placement, UnitPlacement, Variant};
use render::{ClusterName, Digest, Fleet, ObjectKey, Plan, Published, Revision, UnitKey, VariantName};

use super::super::*;
use crate::hub::publish::Followed;
use crate::wire::{Held, Report};

pub(super) fn revision(digit: char) -> Revision {
    Revision::parse(digit.to_string().repeat(40)).expect("forty hex digits")
}

pub(super) fn cluster(name: &str) -> ClusterName {
    ClusterName::parse(name).expect("a valid cluster")
}

pub(super) fn fleet(digit: char, clusters: &[&str]) -> Arc<Fleet> {
    let declared = |name: &&str| {
        let name = cluster(name);
        let cluster = Cluster {
            drift: None,
            name: name.clone(),
            namespace: name.to_string(),
            labels: BTreeMap::new(),
            cluster_id: String::new(),
            taints: Vec::new(),
            sync_mode: SyncMode::Dual,
            public_keys: Vec::new(),
            kubeconfig_context: None,
            cluster_type: String::new(),
            elastic: None,
            predictor: None,
            deletion: render::model::DeletionPolicy::Orphan,
            file: "clusters.yaml".into(),
            line: 1,
        };
        (name, cluster)
    };
    Arc::new(Fleet {
        revision: revision(digit),
        spec: FleetSpec::default(),
        clusters: clusters.iter().map(declared).collect(),
        units: BTreeMap::new(),
        overrides: Vec::new(),
        of_nothing: Vec::new(),
        suspensions: Vec::new(),
        prune_budgets: Vec::new(),
        access: std::sync::Arc::default(),
        unreadable: Vec::new(),
    })
}

/// What stands for a signature here.
pub(super) fn sealed(bytes: &[u8]) -> Vec<u8> {
    [b"sealed ", bytes].concat()
}

/// One unit with this content on these clusters.
pub(super) fn units(digit: char, content: &str, clusters: &[&str]) -> BTreeMap<UnitKey, UnitPlacement> {
    let default = VariantName::default_variant();
    let variant = Variant {
        digest: Digest::of_bytes(content.as_bytes()),
        revision: revision(digit),
        overrides: Vec::new(),
    };
    let placement = Placement {
        variant: default.clone(),
        replicas: Default::default(),
        drift: Default::default(),
        revision: revision(digit),
        reasons: Default::default(),
        inputs: Digest::of_bytes(b""),
        capacity: None,
        leaves_at: None,
    };
    let unit = UnitPlacement {
        variants: BTreeMap::from([(default, variant)]),
        clusters: clusters.iter().map(|name| (cluster(name), placement.clone())).collect(),
        ..UnitPlacement::default()
    };
    BTreeMap::from([("shop/web".parse().expect("a valid unit"), unit)])
}

/// A hub whose shell is this struct: it does what the engine asks, in memory.
pub(super) struct World {
    pub(super) state: State,
    /// What planning a revision gives: clusters and content.
    pub(super) source: BTreeMap<Revision, (Arc<Fleet>, BTreeMap<UnitKey, UnitPlacement>)>,
    pub(super) rendered: Option<StateCommit>,
    pub(super) released: Option<StateCommit>,
    pub(super) known: BTreeMap<Revision, StateCommit>,
    pub(super) sent: Vec<(ClusterName, u64)>,
    pub(super) disconnected: Vec<ClusterName>,
    pub(super) proposal: Option<Published>,
    /// Whether open ones were withdrawn too, each time.
    pub(super) withdrawn: Vec<bool>,
    pub(super) gate: Approval,
    /// Nothing can be written.
    pub(super) full: bool,
    pub(super) plans: usize,
    /// Seconds since 1970.
    pub(super) now: i64,
    /// The units of every plan of which room decides something.
    pub(super) by_room: BTreeSet<UnitKey>,
    /// Whether every plan asks a predictor.
    pub(super) asks: bool,
    /// When time alone decides something, as every plan says.
    pub(super) again_at: Option<i64>,
    /// Whether no commit asked for the last plan of the newest revision.
    /// Whether that revision was decided on by then.
    pub(super) decided: bool,
    /// Units that commits ask to place anew, where that word is not over.
    pub(super) rebalanced: BTreeSet<UnitKey>,
    /// What the newest plan was told of rooms.
    pub(super) reports: render::schedule::Reports,
    pub(super) commits: u32,
    /// What a plan says of units that left and stay.
    pub(super) orphaned: render::published::Orphaned,
    /// What contents have, where it matters.
    pub(super) objects: BTreeMap<Digest, Vec<ObjectKey>>,
    /// The note of which commit is followed, and how often it was written.
    pub(super) note: (Option<Followed>, usize),
    /// No note can be written.
    pub(super) note_refused: bool,
}

impl World {
    pub(super) fn new() -> Self {
        Self {
            state: State::default(),
            source: BTreeMap::new(),
            rendered: None,
            released: None,
            known: BTreeMap::new(),
            sent: Vec::new(),
            disconnected: Vec::new(),
            proposal: None,
            withdrawn: Vec::new(),
            gate: Approval::None,
            full: false,
            plans: 0,
            now: 0,
            by_room: BTreeSet::new(),
            asks: false,
            again_at: None,
            decided: false,
            rebalanced: BTreeSet::new(),
            reports: render::schedule::Reports::default(),
            commits: 0,
            orphaned: BTreeMap::new(),
            objects: BTreeMap::new(),
            note: (None, 0),
            note_refused: false,
        }
    }

    /// A hub process that starts on the same repositories.
    pub(super) fn restarted(self) -> Self {
        Self {
            state: State::default(),
            sent: Vec::new(),
            ..self
        }
    }

    pub(super) fn push(&mut self, digit: char, clusters: &[&str], content: &str) {
        let planned = (fleet(digit, clusters), units(digit, content, clusters));
        self.source.insert(revision(digit), planned);
        self.see(digit, Relation::Follows);
    }

    pub(super) fn see(&mut self, digit: char, relation: Relation) {
        self.see_head(Head::At {
            revision: revision(digit),
            relation,
        });
    }

    pub(super) fn see_head(&mut self, head: Head) {
        let judged_by = self.state.judged_by();
        self.hear(Event::SourceSeen {
            head,
            // The digits of revisions say which is newer.
            covered: judged_by.accepted >= judged_by.named,
            judged_by,
        });
    }

    pub(super) fn look(&mut self) {
        let refs = self.refs();
        self.hear(Event::StateSeen(refs));
    }

    pub(super) fn refs(&self) -> StateRefs {
        let head = |commit: &Option<StateCommit>, known: Option<&StateCommit>| match commit {
            None => StateHead::Missing,
            Some(commit) => {
                let forward = known.is_none_or(|known| known.commit <= commit.commit);
                StateHead::At {
                    commit: Box::new(commit.clone()),
                    forward,
                }
            }
        };
        StateRefs {
            writes: self.state.writes,
            rendered: head(&self.rendered, self.state.rendered.as_ref()),
            released: head(&self.released, self.state.released.as_ref()),
            proposal_gone: false,
            keys_gone: false,
            proposed_instead: None,
            followed: Ok(self.followed()),
        }
    }

    /// What is noted.
    fn followed(&self) -> Option<Noted> {
        let rendered = self.rendered.as_ref();
        let from = rendered.and_then(|rendered| Some(rendered.published.record.as_ref()?.source.clone()));
        let source = self.note.0.as_ref()?.source.clone();
        // The digits of revisions say which is newer.
        let counts = from.as_ref() < Some(&source);
        Some(Noted {
            is_left_behind: counts && self.state.accepted.as_ref() > Some(&source),
            counts,
            source,
        })
    }

    /// The commit that is noted.
    pub(super) fn noted(&self) -> Option<&Revision> {
        self.note.0.as_ref().map(|note| &note.source)
    }

    pub(super) fn hear(&mut self, event: Event) {
        let mut effects = std::collections::VecDeque::from(step(&mut self.state, event, self.now));
        for _ in 0..1_000 {
            let Some(effect) = effects.pop_front() else { return };
            if let Some(event) = self.perform(effect) {
                effects.extend(step(&mut self.state, event, self.now));
            }
        }
        panic!("the engine never comes to rest");
    }

    pub(super) fn perform(&mut self, effect: Effect) -> Option<Event> {
        match effect {
            Effect::LookAtSource | Effect::LookAtState | Effect::Register => None,
            Effect::LookAgain => Some(Event::StateSeen(self.refs())),
            Effect::Plan {
                revision,
                base,
                reports,
                rebalanced,
                decided,
                ..
            } => {
                self.plans += 1;
                self.reports = reports;
                if self.state.source_to_plan().as_ref() == Some(&revision) {
                    self.decided = decided;
                }
                let (fleet, units) = self.source[&revision].clone();
                let is_over = |unit: &&UnitKey| rebalanced.get(*unit) == Some(&revision);
                let plan = Plan {
                    units,
                    by_room: self.by_room.clone(),
                    questions: self.questions(),
                    again_at: self.again_at,
                    rebalanced: self.rebalanced.iter().filter(|unit| !is_over(unit)).cloned().collect(),
                    ..Plan::default()
                };
                Some(Event::Planned(Box::new(Planned {
                    departed: Default::default(),
                    orphaned: self.orphaned.clone(),
                    fleet,
                    plan,
                    findings: Vec::new(),
                    base,
                    gate: self.gate,
                    commits: Vec::new(),
                })))
            }
            Effect::Weigh { contents } => {
                let known = contents.into_iter().map(|digest| {
                    let objects = self.objects.get(&digest).cloned().unwrap_or_default();
                    let holdings = Holdings { objects, orphan: false };
                    (digest, Some(Arc::new(holdings)))
                });
                Some(Event::Weighed {
                    holdings: known.collect(),
                })
            }
            Effect::Write(write) => Some(self.write(write)),
            Effect::Dispatch(cluster) => {
                if let Some(envelope) = self.state.envelope(&cluster) {
                    self.sent.push((cluster, envelope.sequence));
                }
                None
            }
            Effect::Disconnect(cluster) => {
                self.disconnected.push(cluster);
                None
            }
        }
    }

    fn questions(&self) -> BTreeMap<(ClusterName, Digest), Question> {
        let question = Question {
            cluster: cluster("a"),
            cluster_id: "a".to_owned(),
            predictor: Predictor {
                url: "https://predictor.example.com".to_owned(),
                timeout_seconds: 20,
            },
            body: Default::default(),
        };
        let asked = self.asks.then(|| ((cluster("a"), question.key()), question));
        asked.into_iter().collect()
    }

    pub(super) fn write(&mut self, write: Write) -> Event {
        let at = |commit: &Option<StateCommit>| commit.as_ref().map(|commit| commit.commit.clone());
        match write {
            _ if self.full => Event::WriteRefused,
            Write::Follow { .. } if self.note_refused => Event::WriteRefused,
            Write::Rendered { parent, next, .. } if parent == at(&self.rendered) => {
                let commit = self.commit(next, self.rendered.clone());
                self.rendered = Some(commit.clone());
                Event::RenderedWritten(commit)
            }
            Write::Proposal { base, next, .. } if Some(&base) == at(&self.rendered).as_ref() => {
                let changed = deltas(&self.units(), &next.units).into_iter().map(|delta| delta.unit);
                let proposed = Proposed {
                    branch: "refs/heads/flotilla/proposed/0123".to_owned(),
                    source: next.record.as_ref().map(|record| record.source.clone()),
                    units: changed.collect(),
                };
                self.proposal = Some(next);
                Event::Proposed {
                    proposal: Some(proposed),
                    kept: Vec::new(),
                }
            }
            Write::Withdraw { rendered, open } if Some(&rendered) == at(&self.rendered).as_ref() => {
                self.withdrawn.push(open);
                Event::Withdrawn { open, kept: Vec::new() }
            }
            Write::Follow { found, followed } if found.as_ref() == self.noted() => {
                let source = followed.source.clone();
                self.note = (Some(followed), self.note.1 + 1);
                Event::Followed(source)
            }
            Write::Released { parent, next } if parent == at(&self.released) => {
                let commit = self.commit(next, self.released.clone());
                self.released = Some(commit.clone());
                Event::ReleasedWritten(commit)
            }
            Write::AdoptRendered { found, commit } if found == at(&self.rendered) => match self.known.get(&commit) {
                Some(known) => {
                    self.rendered = Some(known.clone());
                    Event::RenderedWritten(known.clone())
                }
                None => Event::AdoptionFailed {
                    commit,
                    message: "it is gone".to_owned(),
                },
            },
            Write::AdoptReleased { found, commit } if found == at(&self.released) => match self.known.get(&commit) {
                Some(known) => {
                    self.released = Some(known.clone());
                    Event::ReleasedWritten(known.clone())
                }
                None => Event::AdoptionFailed {
                    commit,
                    message: "it is gone".to_owned(),
                },
            },
            _ => Event::WriteRefused,
        }
    }

    pub(super) fn units(&self) -> BTreeMap<UnitKey, UnitPlacement> {
        let rendered = self.rendered.as_ref();
        rendered
            .map(|rendered| rendered.published.units.clone())
            .unwrap_or_default()
    }

    pub(super) fn commit(&mut self, next: Published, parent: Option<StateCommit>) -> StateCommit {
        self.commits += 1;
        let commit = Revision::parse(format!("{:040x}", self.commits)).expect("forty hex digits");
        let lineage = parent.map_or_else(|| commit.clone(), |parent| parent.lineage);
        let commit = StateCommit {
            commit,
            lineage,
            published: Arc::new(next),
        };
        self.known.insert(commit.commit.clone(), commit.clone());
        commit
    }

    pub(super) fn report(&mut self, name: &str, held: Option<&StateCommit>) {
        let held = held.map(|commit| Held {
            lineage: commit.lineage.clone(),
            sequence: commit
                .published
                .record
                .as_ref()
                .and_then(|record| record.sequence)
                .expect("it is released"),
            list: Digest::of_bytes(b"list"),
            released: commit.commit.clone(),
            orphan: false,
            orphaned: Default::default(),
            mode: Default::default(),
            mode_source: None,
            units: BTreeMap::new(),
        });
        self.report_held(name, held);
    }

    pub(super) fn report_held(&mut self, name: &str, held: Option<Held>) {
        let report = Report {
            without_hub_since: None,
            applied_sequence: None,
            capacity: None,
            capacity_unknown: String::new(),
            version: Report::VERSION,
            held_read: true,
            cluster: cluster(name),
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
        };
        self.hear(Event::Reported {
            report: Box::new(report),
        });
    }

    pub(super) fn reason(&self, kind: &str) -> &'static str {
        let conditions = self.state.conditions();
        conditions
            .iter()
            .find(|condition| condition.kind == kind)
            .map_or("", |condition| condition.reason)
    }

    pub(super) fn sequence(&self) -> Option<u64> {
        self.released.as_ref()?.published.record.as_ref()?.sequence
    }
}

/// A fleet of clusters a and b that has been released once.
pub(super) fn settled() -> World {
    let mut world = World::new();
    world.look();
    world.push('1', &["a", "b"], "one");
    world.report("a", None);
    world.report("b", None);
    assert_eq!(world.sequence(), Some(1), "the first release is sequence 1");
    world
}
