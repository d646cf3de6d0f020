//! States for tests, reached as the hub reaches them: by events.

use std::collections::BTreeMap;
use std::sync::Arc;

use render::model::{
    Approval, Cluster, Feed, FleetSpec, Scheduling, Subscriber, Subscription, SuspendedClusters, Suspension, SyncMode,
};
use render::published::{Placement, UnitPlacement, Variant};
use render::selector::LabelSelector;
use render::{
    Base, ClusterName, Digest, Finding, Fleet, ObjectKey, Plan, Published, Revision, Unit, UnitKey, VariantName,
};

use crate::hub::engine::{
    Effect, Event, Head, Planned, Relation, State, StateCommit, StateHead, StateRefs, Write, step,
};
use crate::wire::{Counts, Health, Held, ObjectResult, ObjectState, Report, UnitReport, UnitState};

pub(crate) fn revision(digit: char) -> Revision {
    Revision::parse(digit.to_string().repeat(40)).expect("forty hex digits")
}

pub(crate) fn cluster(name: &str) -> ClusterName {
    ClusterName::parse(name).expect("a valid cluster")
}

pub(crate) fn unit(key: &str) -> UnitKey {
    key.parse().expect("a valid unit")
}

/// A hub with the unit shop/web on some of its clusters.
pub(crate) struct World {
    pub(crate) state: State,
    commits: u32,
}

impl World {
    /// A hub that looked at its refs and found none.
    pub(crate) fn new() -> Self {
        let mut state = State::with_new_lineage(true);
        state.branch = "main".to_owned();
        let mut world = Self { state, commits: 0 };
        world.hear(Event::StateSeen(StateRefs {
            writes: world.state.writes,
            rendered: StateHead::Missing,
            released: StateHead::Missing,
            proposal_gone: false,
            keys_gone: false,
            proposed_instead: None,
            followed: Ok(None),
        }));
        world
    }

    /// That the source branch was just seen there.
    pub(crate) fn seen(&self, head: Head) -> Event {
        Event::SourceSeen {
            head,
            judged_by: self.state.judged_by(),
            covered: true,
        }
    }

    /// A push that gives shop/web this content on `placed`, out of `clusters`.
    pub(crate) fn push(&mut self, digit: char, clusters: &[&str], placed: &[&str]) {
        self.push_with(digit, clusters, units(digit, placed), Vec::new());
    }

    /// What was planned declares a Suspension of a unit on a cluster as well.
    pub(crate) fn suspend(&mut self, held: &str, on: &str) {
        let mut fleet = self.state.fleet.as_deref().cloned().expect("it was planned");
        fleet.suspensions.push(Arc::new(Suspension {
            objects: Vec::new(),
            name: "held".to_owned(),
            unit: Some(unit(held)),
            clusters: Some(SuspendedClusters {
                names: vec![cluster(on)],
                selector: None,
            }),
            reason: "frozen".to_owned(),
            until: None,
            file: "policies/held.yaml".into(),
            line: 1,
        }));
        self.state.fleet = Some(Arc::new(fleet));
    }

    /// A push with findings, whose plan keeps these units.
    pub(crate) fn push_with(
        &mut self,
        digit: char,
        clusters: &[&str],
        units: BTreeMap<UnitKey, UnitPlacement>,
        findings: Vec<Finding>,
    ) {
        let revision = revision(digit);
        let seen = self.seen(Head::At {
            revision,
            relation: Relation::Follows,
        });
        let effects = step(&mut self.state, seen, 0);
        assert!(
            matches!(effects.as_slice(), [Effect::Plan { .. }]),
            "a push is planned: {effects:?}"
        );
        let base = self.state.rendered.as_ref().map(|rendered| rendered.commit.clone());
        let plan = Plan {
            units,
            ..Plan::default()
        };
        let planned = Planned {
            departed: Default::default(),
            orphaned: Default::default(),
            fleet: fleet(digit, clusters),
            plan,
            findings,
            base,
            gate: Approval::None,
            commits: Vec::new(),
        };
        self.hear(Event::Planned(Box::new(planned)));
    }

    pub(crate) fn hear(&mut self, event: Event) {
        self.hear_at(event, 0);
    }

    fn hear_at(&mut self, event: Event, now: i64) {
        let effects = step(&mut self.state, event, now);
        for effect in effects {
            if let Effect::Write(Write::Rendered { next, .. }) = effect {
                let commit = self.commit(next, None);
                self.hear(Event::RenderedWritten(commit));
            } else if let Effect::Write(Write::Released { next, .. }) = effect {
                let commit = self.commit(next, Some('f'));
                self.hear(Event::ReleasedWritten(commit));
            } else if let Effect::Write(Write::Withdraw { open, .. }) = effect {
                self.hear(Event::Withdrawn { open, kept: Vec::new() });
            }
        }
    }

    fn commit(&mut self, next: Published, lineage: Option<char>) -> StateCommit {
        self.commits += 1;
        let commit = Revision::parse(format!("{:040x}", self.commits)).expect("forty hex digits");
        let lineage = lineage.map_or_else(|| commit.clone(), revision);
        StateCommit {
            commit,
            lineage,
            published: Arc::new(next),
        }
    }

    /// Puts an object into the Base of shop/web.
    pub(crate) fn give_object(&mut self, key: ObjectKey, value: serde_json::Value) {
        let object = render::ManifestObject {
            key,
            api_version: "v1".to_owned(),
            file: "feeds/web/a.yaml".into(),
            line: 1,
            digest: Digest::of_value(&value),
            value: Arc::new(value),
            original: None,
            chart: None,
        };
        let mut fleet = Fleet::clone(self.state.fleet.as_ref().expect("a fleet was pushed"));
        let declared = fleet.units.get_mut(&unit("shop/web")).expect("it is declared");
        declared.base = Arc::new(Base::new(vec![Arc::new(object)]));
        self.state.fleet = Some(Arc::new(fleet));
    }

    pub(crate) fn connect(&mut self, name: &str) {
        self.hear(Event::Connected {
            cluster: cluster(name),
            epoch: 1,
        });
    }

    /// Two hours after 1970 began.
    pub(crate) fn disconnect(&mut self, name: &str) {
        let event = Event::Disconnected {
            cluster: cluster(name),
            epoch: 1,
        };
        self.hear_at(event, 7_200);
    }

    /// The cluster takes what it is told, and says this of shop/web.
    pub(crate) fn report(&mut self, name: &str, state: UnitState, health: Health) {
        self.report_with(name, |report| report.units = result(report, state, health));
    }

    /// A report of what the cluster is told now, changed by `edit`.
    pub(crate) fn report_with(&mut self, name: &str, edit: impl FnOnce(&mut Report)) {
        let held = self.state.envelope(&cluster(name)).map(|envelope| envelope.held());
        let mut report = Report {
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
            kubernetes_version: Some("v1.36.1".to_owned()),
            api_versions: Vec::new(),
            trouble: String::new(),
            waits_for_lease: false,
            facts: None,
            nodes: None,
            corrections: crate::wire::Corrections::default(),
            hub_keys_known: Default::default(),
            agent: crate::wire::AgentCounts::default(),
        };
        edit(&mut report);
        self.hear(Event::Reported {
            report: Box::new(report),
        });
    }
}

/// What a cluster says of shop/web: two objects, of which the Deployment is as given.
pub(crate) fn result(report: &Report, state: UnitState, health: Health) -> BTreeMap<UnitKey, UnitReport> {
    let key = unit("shop/web");
    let held = |held: &Held| Some(held.units.get(&key)?.digest);
    let failed = usize::from(state == UnitState::Failed);
    let current = usize::from(health == Health::Current);
    let worst = ObjectResult {
        object: ObjectKey::new("apps/v1", "Deployment", "shop", "web"),
        state: if failed == 1 {
            ObjectState::Failed
        } else {
            ObjectState::Applied
        },
        health,
        message: "0 of 3 replicas".to_owned(),
    };
    let report = UnitReport {
        digest: report.held.as_ref().and_then(held),
        state,
        health,
        counts: Counts {
            objects: 2,
            applied: 2 - failed,
            failed,
            current: 1 + current,
            ..Counts::default()
        },
        message: String::new(),
        worst: vec![worst],
        drift: Vec::new(),
    };
    BTreeMap::from([(key, report)])
}

/// shop/web with a content of its own per digit, on these clusters.
pub(crate) fn units(digit: char, placed: &[&str]) -> BTreeMap<UnitKey, UnitPlacement> {
    let default = VariantName::default_variant();
    let variant = Variant {
        digest: Digest::of_bytes(&[digit as u8]),
        revision: revision(digit),
        overrides: Vec::new(),
    };
    let placement = Placement {
        variant: default.clone(),
        replicas: Default::default(),
        drift: Default::default(),
        revision: revision(digit),
        reasons: vec!["matches subscriber 1".to_owned()].into(),
        inputs: Digest::of_bytes(b""),
        capacity: None,
        leaves_at: None,
    };
    if placed.is_empty() {
        return BTreeMap::new();
    }
    let unit_placement = UnitPlacement {
        variants: BTreeMap::from([(default, variant)]),
        clusters: placed.iter().map(|name| (cluster(name), placement.clone())).collect(),
        ..UnitPlacement::default()
    };
    BTreeMap::from([(unit("shop/web"), unit_placement)])
}

fn fleet(digit: char, clusters: &[&str]) -> Arc<Fleet> {
    let subscription = Subscription {
        apply: Default::default(),
        drift: None,
        key: unit("shop/web"),
        scheduling: Scheduling::Replication,
        placing: Default::default(),
        subscribers: vec![Subscriber {
            cluster_affinity: Some(LabelSelector::default()),
            weight: None,
            replicas: Default::default(),
            sub_group: None,
        }],
        tolerations: Vec::new(),
        feeds: vec![Feed::Path {
            path: "feeds/web/**".to_owned(),
            exclude: Vec::new(),
        }],
        file: "subscriptions/web.yaml".into(),
        line: 1,
    };
    let declared = Unit {
        subscription: Arc::new(subscription),
        base: Arc::new(Base::empty()),
        blocked: Vec::new(),
    };
    Arc::new(Fleet {
        revision: revision(digit),
        spec: FleetSpec::default(),
        clusters: clusters.iter().map(|name| (cluster(name), registered(name))).collect(),
        units: BTreeMap::from([(unit("shop/web"), declared)]),
        overrides: Vec::new(),
        of_nothing: Vec::new(),
        suspensions: Vec::new(),
        prune_budgets: Vec::new(),
        access: Arc::default(),
        unreadable: Vec::new(),
    })
}

fn registered(name: &str) -> Cluster {
    Cluster {
        drift: None,
        name: cluster(name),
        namespace: name.to_owned(),
        labels: BTreeMap::from([("env".to_owned(), "prod".to_owned())]),
        cluster_id: String::new(),
        taints: Vec::new(),
        sync_mode: SyncMode::Dual,
        public_keys: Vec::new(),
        kubeconfig_context: None,
        cluster_type: String::new(),
        elastic: None,
        predictor: None,
        deletion: render::model::DeletionPolicy::Orphan,
        file: format!("clusters/{name}.yaml").into(),
        line: 1,
    }
}
