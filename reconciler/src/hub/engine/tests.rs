mod approval;
mod previews;

use std::collections::BTreeMap;

use render::model::{Approval, Cluster, FleetSpec, SyncMode};
use render::published::{Placement, UnitPlacement, Variant};
use render::{ClusterName, Digest, Fleet, Plan, UnitKey, VariantName};

use super::*;
use crate::wire::{Held, LineageGrant, Report};

fn revision(digit: char) -> Revision {
    Revision::parse(digit.to_string().repeat(40)).expect("forty hex digits")
}

fn cluster(name: &str) -> ClusterName {
    ClusterName::parse(name).expect("a valid cluster")
}

fn fleet(digit: char, clusters: &[&str]) -> Arc<Fleet> {
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
        unreadable: Vec::new(),
    })
}

/// What stands for a signature here.
fn sealed(bytes: &[u8]) -> Vec<u8> {
    [b"sealed ", bytes].concat()
}

/// One unit with this content on these clusters.
fn units(digit: char, content: &str, clusters: &[&str]) -> BTreeMap<UnitKey, UnitPlacement> {
    let default = VariantName::default_variant();
    let variant = Variant {
        digest: Digest::of_bytes(content.as_bytes()),
        revision: revision(digit),
        overrides: Vec::new(),
    };
    let placement = Placement {
        variant: default.clone(),
        replicas: BTreeMap::new(),
        drift: Default::default(),
        revision: revision(digit),
        reasons: Vec::new(),
        inputs: Digest::of_bytes(b""),
    };
    let unit = UnitPlacement {
        depends_on: Default::default(),
        removed_after: Vec::new(),
        variants: BTreeMap::from([(default, variant)]),
        clusters: clusters.iter().map(|name| (cluster(name), placement.clone())).collect(),
    };
    BTreeMap::from([("shop/web".parse().expect("a valid unit"), unit)])
}

/// A hub whose shell is this struct: it does what the engine asks, in memory.
struct World {
    state: State,
    /// What planning a revision gives: clusters and content.
    source: BTreeMap<Revision, (Arc<Fleet>, BTreeMap<UnitKey, UnitPlacement>)>,
    rendered: Option<StateCommit>,
    released: Option<StateCommit>,
    known: BTreeMap<Revision, StateCommit>,
    sent: Vec<(ClusterName, u64)>,
    disconnected: Vec<ClusterName>,
    proposal: Option<Published>,
    /// Whether open ones were withdrawn too, each time.
    withdrawn: Vec<bool>,
    gate: Approval,
    /// Nothing can be written.
    full: bool,
    plans: usize,
    commits: u32,
}

impl World {
    fn new() -> Self {
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
            commits: 0,
        }
    }

    /// A hub process that starts on the same repositories.
    fn restarted(self) -> Self {
        Self {
            state: State::default(),
            sent: Vec::new(),
            ..self
        }
    }

    fn push(&mut self, digit: char, clusters: &[&str], content: &str) {
        let planned = (fleet(digit, clusters), units(digit, content, clusters));
        self.source.insert(revision(digit), planned);
        self.see(digit, Relation::Follows);
    }

    fn see(&mut self, digit: char, relation: Relation) {
        self.see_head(Head::At {
            revision: revision(digit),
            relation,
        });
    }

    fn see_head(&mut self, head: Head) {
        let judged_by = self.state.accepted_or_published();
        self.hear(Event::SourceSeen { head, judged_by });
    }

    fn look(&mut self) {
        let refs = self.refs();
        self.hear(Event::StateSeen(refs));
    }

    fn refs(&self) -> StateRefs {
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
        }
    }

    fn hear(&mut self, event: Event) {
        let mut effects = std::collections::VecDeque::from(step(&mut self.state, event, 0));
        for _ in 0..1_000 {
            let Some(effect) = effects.pop_front() else { return };
            if let Some(event) = self.perform(effect) {
                effects.extend(step(&mut self.state, event, 0));
            }
        }
        panic!("the engine never comes to rest");
    }

    fn perform(&mut self, effect: Effect) -> Option<Event> {
        match effect {
            Effect::LookAtSource | Effect::LookAtState | Effect::Register => None,
            Effect::Plan { revision, base, .. } => {
                self.plans += 1;
                let (fleet, units) = self.source[&revision].clone();
                let plan = Plan {
                    units,
                    ..Plan::default()
                };
                Some(Event::Planned(Box::new(Planned {
                    departed: Default::default(),
                    fleet,
                    plan,
                    findings: Vec::new(),
                    base,
                    gate: self.gate,
                    commits: Vec::new(),
                })))
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

    fn write(&mut self, write: Write) -> Event {
        let at = |commit: &Option<StateCommit>| commit.as_ref().map(|commit| commit.commit.clone());
        match write {
            _ if self.full => Event::WriteRefused,
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

    fn units(&self) -> BTreeMap<UnitKey, UnitPlacement> {
        let rendered = self.rendered.as_ref();
        rendered
            .map(|rendered| rendered.published.units.clone())
            .unwrap_or_default()
    }

    fn commit(&mut self, next: Published, parent: Option<StateCommit>) -> StateCommit {
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

    fn report(&mut self, name: &str, held: Option<&StateCommit>) {
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
            units: BTreeMap::new(),
        });
        let report = Report {
            without_hub_since: None,
            version: Report::VERSION,
            held_read: true,
            cluster: cluster(name),
            held,
            refused: None,
            units: BTreeMap::new(),
            kubernetes_version: None,
            api_versions: Vec::new(),
            trouble: String::new(),
        };
        self.hear(Event::Reported {
            report: Box::new(report),
        });
    }

    fn reason(&self, kind: &str) -> &'static str {
        let conditions = self.state.conditions();
        conditions
            .iter()
            .find(|condition| condition.kind == kind)
            .map_or("", |condition| condition.reason)
    }

    fn sequence(&self) -> Option<u64> {
        self.released.as_ref()?.published.record.as_ref()?.sequence
    }
}

/// A fleet of clusters a and b that has been released once.
fn settled() -> World {
    let mut world = World::new();
    world.look();
    world.push('1', &["a", "b"], "one");
    world.report("a", None);
    world.report("b", None);
    assert_eq!(world.sequence(), Some(1), "the first release is sequence 1");
    world
}

#[test]
fn a_push_is_planned_rendered_released_and_sent() {
    let mut world = settled();
    world.sent.clear();
    world.push('2', &["a", "b"], "two");
    assert_eq!(world.sent, [(cluster("a"), 2), (cluster("b"), 2)]);
    assert_eq!(
        world.released.as_ref().map(|commit| &commit.published.units),
        Some(&units('2', "two", &["a", "b"]))
    );
}

#[test]
fn a_push_that_changes_nothing_writes_nothing() {
    let mut world = settled();
    let commits = world.commits;
    world
        .source
        .insert(revision('2'), (fleet('2', &["a", "b"]), units('1', "one", &["a", "b"])));
    world.see('2', Relation::Follows);
    assert_eq!(world.commits, commits);
    assert_eq!(
        world.state.accepted,
        Some(revision('2')),
        "and is accepted all the same"
    );
}

#[test]
fn what_moves_during_a_plan_is_one_next_decision() {
    let mut world = settled();
    for digit in ['2', '3', '4'] {
        world.source.insert(
            revision(digit),
            (fleet(digit, &["a", "b"]), units('2', "two", &["a", "b"])),
        );
    }
    let judged_by = world.state.accepted_or_published();
    let head = |digit| Event::SourceSeen {
        head: Head::At {
            revision: revision(digit),
            relation: Relation::Follows,
        },
        judged_by: judged_by.clone(),
    };
    let effects = step(&mut world.state, head('2'), 0);
    assert!(matches!(effects.as_slice(), [Effect::Plan { .. }]), "{effects:?}");
    assert!(step(&mut world.state, head('3'), 0).is_empty(), "a plan is running");
    assert!(step(&mut world.state, head('4'), 0).is_empty(), "it still is");
    let plans = world.plans;
    let planned = world.perform(effects.into_iter().next().expect("one effect"));
    world.hear(planned.expect("a plan comes back"));
    assert_eq!(world.plans, plans + 2, "revision 2, then 4, and never 3");
    assert_eq!(world.state.accepted, Some(revision('4')));
}

#[test]
fn unreadable_is_not_empty() {
    let mut world = settled();
    let (commits, plans) = (world.commits, world.plans);
    world.see_head(Head::Unreadable {
        message: "disk".to_owned(),
    });
    assert_eq!(world.reason("SourceVerified"), "Unreadable");
    world.see_head(Head::BranchMissing {
        branch: "main".to_owned(),
    });
    assert_eq!(world.reason("SourceVerified"), "BranchMissing");
    let unreadable = StateRefs {
        writes: world.state.writes,
        rendered: StateHead::Unreadable("disk".to_owned()),
        released: StateHead::Missing,
        proposal_gone: false,
    };
    world.hear(Event::StateSeen(unreadable));
    assert_eq!(world.reason("StateKept"), "Unreadable");
    assert_eq!((world.commits, world.plans), (commits, plans));
}

#[test]
fn a_write_that_fails_is_said_until_one_succeeds() {
    let mut world = settled();
    world.hear(Event::WriteFailed {
        message: "the disk is full".to_owned(),
    });
    assert_eq!(world.reason("StateKept"), "WriteFailed");
    let again = world.released.clone().expect("something is released");
    world.hear(Event::ReleasedWritten(again));
    assert_eq!(world.reason("StateKept"), "Kept");
}

#[test]
fn observed_state_is_never_a_commit() {
    let mut world = settled();
    let (commits, released) = (world.commits, world.released.clone());
    world.hear(Event::Connected {
        cluster: cluster("a"),
        epoch: 1,
    });
    for held in [None, released.as_ref()] {
        world.report("a", held);
        world.report("b", held);
    }
    world.hear(Event::Disconnected {
        cluster: cluster("a"),
        epoch: 1,
    });
    world.hear(Event::GraceOver);
    assert_eq!(world.commits, commits, "whatever clusters say or do is no decision");
}

#[test]
fn a_silent_cluster_keeps_what_it_has() {
    let mut world = settled();
    world.report("a", world.released.clone().as_ref());
    world.hear(Event::Connected {
        cluster: cluster("b"),
        epoch: 1,
    });
    world.hear(Event::Disconnected {
        cluster: cluster("b"),
        epoch: 1,
    });
    world.hear(Event::GraceOver);
    world.push('2', &["a", "b"], "two");
    let released = world.released.clone().expect("it was released");
    assert_eq!(
        released.published.units,
        units('2', "two", &["a", "b"]),
        "silence takes nothing away from b, and gives nothing of it to a"
    );
    assert!(world.disconnected.is_empty());
    world.sent.clear();
    world.hear(Event::Connected {
        cluster: cluster("b"),
        epoch: 2,
    });
    assert_eq!(world.sent, [(cluster("b"), 2)], "back again it gets the newest alone");
}

#[test]
fn a_rewritten_history_is_held_until_it_is_accepted() {
    let mut world = settled();
    let commits = world.commits;
    world.source.insert(revision('9'), (fleet('9', &[]), BTreeMap::new()));
    world.see('9', Relation::Rewritten);
    assert_eq!(
        (world.commits, world.reason("SourceVerified")),
        (commits, "HistoryRewritten")
    );
    world.see('9', Relation::RewriteAccepted);
    assert_eq!(world.reason("SourceVerified"), "Read");
    assert!(world.commits > commits);
}

#[test]
fn a_decision_that_could_not_be_written_is_written_when_it_can_be() {
    for gate in [Approval::None, Approval::Required] {
        let mut world = settled();
        world.gate = gate;
        world.full = true;
        world.push('2', &["a", "b"], "newer");
        world.look();
        assert_eq!(
            (world.commits, world.proposal.is_some()),
            (2, false),
            "nothing came of it"
        );
        world.full = false;
        world.look();
        assert!(
            world.commits == 4 || world.proposal.is_some(),
            "it came without another push"
        );
    }
}

#[test]
fn a_hub_that_starts_before_a_held_source_knows_its_clusters() {
    for held in [
        Head::At {
            revision: revision('9'),
            relation: Relation::Rewritten,
        },
        Head::BranchMissing {
            branch: "main".to_owned(),
        },
    ] {
        let mut world = settled().restarted();
        let commits = world.commits;
        world.look();
        world.see_head(held);
        world.hear(Event::Connected {
            cluster: cluster("a"),
            epoch: 9,
        });
        assert_eq!(
            (world.commits, world.sent.len()),
            (commits, 1),
            "nothing is written, and a is told"
        );
        assert_ne!(world.reason("SourceVerified"), "Read");
        world.push('3', &["a"], "newer");
        assert!(world.commits > commits, "a source that may be followed again is");
    }
}

#[test]
fn a_removed_cluster_is_disconnected_and_never_told_of_it() {
    let mut world = settled();
    world.hear(Event::Connected {
        cluster: cluster("b"),
        epoch: 1,
    });
    world.sent.clear();
    world.push('2', &["a"], "one");
    assert_eq!(world.disconnected, [cluster("b")]);
    assert!(
        world.sent.iter().all(|(name, _)| *name == cluster("a")),
        "{:?}",
        world.sent
    );
    world.hear(Event::Connected {
        cluster: cluster("b"),
        epoch: 2,
    });
    assert_eq!(
        world.disconnected,
        [cluster("b"), cluster("b")],
        "it may not come back by itself"
    );
}

#[test]
fn a_missing_released_is_no_first_run_while_a_cluster_holds_something() {
    let world = settled();
    let released = world.released.clone().expect("it was released");
    let mut world = world.restarted();
    world.released = None;
    world.look();
    world.push('2', &["a", "b"], "two");
    assert_eq!(
        (world.reason("StateKept"), world.sequence()),
        ("Recovering", None),
        "clusters have not spoken yet"
    );
    world.report("a", Some(&released));
    assert_eq!(world.sequence(), Some(2), "it goes on where the cluster stands");
    assert_eq!(
        world.released.as_ref().map(|commit| &commit.lineage),
        Some(&released.lineage)
    );
    assert_eq!(world.reason("StateKept"), "Kept");
}

#[test]
fn a_missing_released_is_a_first_run_when_every_cluster_holds_nothing_or_time_is_up() {
    let mut world = World::new();
    world.look();
    world.push('1', &["a", "b"], "one");
    assert_eq!(world.sequence(), None);
    world.report("a", None);
    assert_eq!(world.sequence(), None, "b has not spoken yet");
    world.hear(Event::GraceOver);
    assert_eq!(world.sequence(), Some(1));
}

#[test]
fn a_lost_commit_holds_the_hub_still() {
    let world = settled();
    let released = world.released.clone().expect("it was released");
    let mut world = world.restarted();
    (world.released, world.rendered) = (None, None);
    world.known.clear();
    world.look();
    world.push('2', &["a"], "two");
    let commits = world.commits;
    world.report("a", Some(&released));
    world.hear(Event::GraceOver);
    assert_eq!((world.commits, world.reason("StateKept")), (commits, "Recovering"));
    assert!(world.state.envelope(&cluster("a")).is_none());
}

#[test]
fn a_new_lineage_is_granted_once_fleet_yaml_names_it() {
    let mut world = settled();
    let lineage = world.released.as_ref().expect("it was released").lineage.clone();
    let grant = |world: &World| world.state.lineage_grant(&cluster("a"), sealed);
    assert_eq!(grant(&world), None, "no lineage is named");
    for (digit, named, granted) in [('2', revision('e'), false), ('3', lineage.clone(), true)] {
        let mut fleet = Fleet::clone(&fleet(digit, &["a", "b"]));
        fleet.spec.lineage = Some(named);
        let planned = (Arc::new(fleet), units('1', "one", &["a", "b"]));
        world.source.insert(revision(digit), planned);
        world.sent.clear();
        world.see(digit, Relation::Follows);
        assert_eq!(
            world.sent.len(),
            2,
            "both clusters are told, though nothing was released"
        );
        let expected = granted.then(|| LineageGrant::new(&cluster("a"), lineage.clone(), sealed));
        assert_eq!(grant(&world), expected);
    }
}

#[test]
fn a_sequence_that_a_cluster_holds_with_another_list_is_not_told_again() {
    let mut world = settled();
    let (rendered, released) = (world.rendered.clone(), world.released.clone());
    world.push('2', &["a", "b"], "two");
    let held = world.released.clone().expect("it was released");
    let mut world = world.restarted();
    (world.rendered, world.released) = (rendered, released);
    world.look();
    world.push('3', &["a", "b"], "three");
    assert_eq!(world.sequence(), Some(2), "the hub does not know that it was rewound");
    for _ in 0..2 {
        world.report("a", Some(&held));
        assert_eq!(world.sequence(), Some(3), "what it told nobody believes");
    }
    assert_eq!(
        world.released.as_ref().map(|commit| &commit.published.units),
        Some(&units('3', "three", &["a", "b"]))
    );
}

#[test]
fn what_another_hub_released_is_adopted_and_told_and_not_put_back() {
    let mut world = settled();
    let first = world.released.clone();
    // Another hub on the same repository releases the next one.
    let mut other = settled();
    other.push('2', &["a", "b"], "two");
    let further = (other.rendered.clone(), other.released.clone());
    (world.rendered, world.released) = further.clone();
    world.known.extend(other.known);
    world.sent.clear();
    world.look();
    let commit = |released: &Option<StateCommit>| released.as_ref().map(|commit| commit.commit.clone());
    assert_eq!(commit(&world.released), commit(&further.1), "it is not put back");
    assert_eq!(world.state.released_sequence(), Some(2));
    assert_eq!(world.sent.len(), 2, "both clusters are told");
    // A commit on top that counts on nothing is no hub's.
    let mut other = further.1.clone().expect("it was released");
    other.commit = revision('f');
    world.released = Some(other);
    world.look();
    assert_eq!(commit(&world.released), commit(&further.1), "it is put back");
    assert_ne!(commit(&world.released), commit(&first));
}

#[test]
fn a_released_that_is_restored_later_is_adopted() {
    let world = settled();
    let (rendered, released) = (world.rendered.clone(), world.released.clone());
    let mut world = world.restarted();
    (world.rendered, world.released) = (None, None);
    world.look();
    (world.rendered, world.released) = (rendered, released.clone());
    world.look();
    assert_eq!(
        world.state.released.as_ref().map(|commit| &commit.commit),
        released.as_ref().map(|commit| &commit.commit)
    );
    world.push('2', &["a", "b"], "two");
    assert_eq!(world.sequence(), Some(2), "and what is pushed then is released");
}

#[test]
fn a_ref_that_was_rewound_or_removed_under_the_hub_is_put_back() {
    let mut world = settled();
    let first = world.released.clone();
    world.push('2', &["a", "b"], "two");
    let (rendered, released) = (world.rendered.clone(), world.released.clone());
    let same = |a: &Option<StateCommit>, b: &Option<StateCommit>| {
        a.as_ref().map(|commit| &commit.commit) == b.as_ref().map(|commit| &commit.commit)
    };
    for broken in [None, first] {
        world.released = broken;
        world.look();
        assert!(same(&world.released, &released), "{:?}", world.released);
    }
    world.rendered = None;
    world.look();
    assert!(same(&world.rendered, &rendered), "{:?}", world.rendered);
    assert!(world.state.restored.is_some(), "it is said");
    world.push('3', &["a", "b"], "three");
    assert_eq!(
        (world.sequence(), &world.state.restored),
        (Some(3), &None),
        "and over with the next release"
    );
}

#[test]
fn a_rendered_that_a_person_moved_forward_is_released() {
    let mut world = settled();
    let merged = Published {
        record: Some(record(&revision('1'))),
        units: units('1', "merged", &["a", "b"]),
    };
    let parent = world.rendered.clone();
    world.rendered = Some(world.commit(merged, parent));
    // Source stands still, and so does its plan, which is what rendered says now.
    world.source.insert(
        revision('1'),
        (fleet('1', &["a", "b"]), units('1', "merged", &["a", "b"])),
    );
    world.look();
    assert_eq!(
        world.released.as_ref().map(|commit| &commit.published.units),
        Some(&units('1', "merged", &["a", "b"]))
    );
}

#[test]
fn a_gated_decision_is_proposed_and_released_only_when_a_person_merged_it() {
    let mut world = settled();
    world.gate = Approval::Required;
    let (rendered, released) = (world.rendered.clone(), world.released.clone());
    world.push('2', &["a", "b"], "two");
    let commit = |commit: &Option<StateCommit>| commit.as_ref().map(|commit| commit.commit.clone());
    assert_eq!(
        commit(&world.rendered),
        commit(&rendered),
        "the hub does not move rendered"
    );
    assert_eq!(commit(&world.released), commit(&released), "and releases nothing");
    assert!(world.state.proposed.is_some());
    let proposal = world.proposal.take().expect("it was proposed");
    world.rendered = Some(world.commit(proposal, rendered));
    world.look();
    assert_eq!(world.sequence(), Some(2));
    assert_eq!(
        world.released.as_ref().map(|commit| &commit.published.units),
        Some(&units('2', "two", &["a", "b"]))
    );
    assert_eq!(world.state.proposed, None);
}

#[test]
fn a_first_run_under_approval_delivers_nothing_before_a_merge() {
    let mut world = World::new();
    world.gate = Approval::Required;
    world.look();
    world.push('1', &["a"], "one");
    world.report("a", None);
    assert!(
        world
            .rendered
            .as_ref()
            .is_some_and(|commit| commit.published.units.is_empty())
    );
    assert!(
        world
            .released
            .as_ref()
            .is_none_or(|commit| commit.published.units.is_empty())
    );
    assert_eq!(
        world.proposal.as_ref().map(|proposal| &proposal.units),
        Some(&units('1', "one", &["a"]))
    );
}

#[test]
fn a_look_that_was_overtaken_says_nothing() {
    let mut world = settled();
    let (writes, rendered) = (world.state.writes, world.rendered.clone().expect("it was rendered"));
    let judged_by = world.state.accepted_or_published();
    world.push('2', &["a", "b"], "two");
    let commits = world.commits;
    let stale = StateRefs {
        writes,
        rendered: StateHead::At {
            commit: Box::new(rendered),
            forward: true,
        },
        released: StateHead::Missing,
        proposal_gone: false,
    };
    let effects = step(&mut world.state, Event::StateSeen(stale), 0);
    assert!(matches!(effects.as_slice(), [Effect::LookAtState]), "{effects:?}");
    let head = Head::At {
        revision: revision('1'),
        relation: Relation::Follows,
    };
    let effects = step(&mut world.state, Event::SourceSeen { head, judged_by }, 0);
    assert!(matches!(effects.as_slice(), [Effect::LookAtSource]), "{effects:?}");
    assert_eq!((world.commits, world.sequence()), (commits, Some(2)));
}

#[test]
fn a_look_beside_a_write_puts_nothing_back_and_is_repeated() {
    let mut world = settled();
    world
        .source
        .insert(revision('2'), (fleet('2', &["a"]), units('2', "two", &["a"])));
    let head = Head::At {
        revision: revision('2'),
        relation: Relation::Follows,
    };
    let judged_by = world.state.accepted_or_published();
    let mut effects = step(&mut world.state, Event::SourceSeen { head, judged_by }, 0);
    // Both refs are written in turn, and each write is done before its outcome is heard.
    for _ in 0..3 {
        let work = |effect: &Effect| matches!(effect, Effect::Plan { .. } | Effect::Write(_));
        let at = effects
            .iter()
            .position(work)
            .expect("a push leads to a plan and two writes");
        let done = world.perform(effects.remove(at)).expect("work has an outcome");
        if world.state.writing {
            let refs = world.refs();
            let overlapped = step(&mut world.state, Event::StateSeen(refs), 0);
            assert!(overlapped.is_empty(), "{overlapped:?}");
        }
        effects = step(&mut world.state, done, 0);
    }
    assert!(
        matches!(effects.last(), Some(Effect::LookAtState)),
        "it is looked at again: {effects:?}"
    );
    assert_eq!((world.sequence(), &world.state.restored), (Some(2), &None));
}

#[test]
fn the_newest_session_of_a_cluster_counts() {
    let mut world = settled();
    world.hear(Event::Connected {
        cluster: cluster("a"),
        epoch: 5,
    });
    world.hear(Event::Connected {
        cluster: cluster("a"),
        epoch: 7,
    });
    world.hear(Event::Disconnected {
        cluster: cluster("a"),
        epoch: 5,
    });
    assert_eq!(world.state.clusters[&cluster("a")].epoch, Some(7));
}

/// The fleet of a revision in which unit shop/web is suspended.
fn suspended_fleet(digit: char, until: Option<i64>) -> Arc<Fleet> {
    let mut fleet = Fleet::clone(&fleet(digit, &["a", "b"]));
    fleet.suspensions = vec![Arc::new(render::model::Suspension {
        objects: Vec::new(),
        name: "held".to_owned(),
        unit: Some("shop/web".parse().expect("a valid unit")),
        clusters: None,
        reason: String::new(),
        until,
        file: "policies/held.yaml".into(),
        line: 1,
    })];
    Arc::new(fleet)
}

/// A settled hub that accepted a Suspension and then a revision with new content.
fn suspended(until: Option<i64>) -> World {
    let mut world = settled();
    for (digit, content) in [('2', "one"), ('3', "two")] {
        let planned = (suspended_fleet(digit, until), units(digit, content, &["a", "b"]));
        world.source.insert(revision(digit), planned);
        world.see(digit, Relation::Follows);
    }
    assert_eq!(world.sequence(), Some(1), "what is suspended is not released");
    assert_eq!(
        world.rendered.as_ref().map(|commit| &commit.published.units),
        Some(&units('3', "two", &["a", "b"])),
        "while rendered moves on"
    );
    world
}

#[test]
fn what_is_suspended_is_rendered_and_not_released_until_it_is_resumed() {
    let mut world = suspended(None);
    assert_eq!(next_time(&world.state), None);
    world.push('4', &["a", "b"], "two");
    assert_eq!(world.sequence(), Some(2));
    assert_eq!(
        world.released.as_ref().map(|commit| &commit.published.units),
        world.rendered.as_ref().map(|commit| &commit.published.units)
    );
}

#[test]
fn a_suspension_outlives_the_hub() {
    let mut world = suspended(None).restarted();
    world.look();
    assert_eq!(
        world.sequence(),
        Some(1),
        "nothing is released before it is known what is suspended"
    );
    world.see('3', Relation::Follows);
    assert_eq!(world.sequence(), Some(1));
    world.push('4', &["a", "b"], "two");
    assert_eq!(world.sequence(), Some(2));
}

#[test]
fn a_suspension_that_ends_by_itself_wakes_the_engine() {
    let mut world = suspended(Some(100));
    assert_eq!(next_time(&world.state), Some(100));
    let early = step(&mut world.state, Event::TimeCame, 99);
    assert!(early.is_empty(), "{early:?}");
    let effects = step(&mut world.state, Event::TimeCame, 100);
    assert!(
        matches!(effects.as_slice(), [Effect::Write(Write::Released { .. })]),
        "{effects:?}"
    );
    assert_eq!(next_time(&world.state), None);
}
