//! Clusters whose file is gone while they have something: what the decision says of them, read from Git.

use std::collections::{BTreeMap, BTreeSet};

use render::published::Departure;
use render::{ClusterName, Finding, Fleet, Published, Revision, UnitKey};

use super::last_word::LastWords;
use super::planner::load_declaring;
use super::source::{Source, SourceError};

/// What a file that declares a cluster has in it.
const KIND: &[u8] = b"ManagedCluster";

/// The trailer that drops the record of a cluster whose file is gone; its value is the cluster's name.
pub const FORGET_CLUSTER: &str = "Forget-Cluster";

/// What a decision says of clusters whose file is gone.
#[derive(Clone, Debug, Default)]
pub struct Departed {
    /// Those that are known when they come back.
    pub clusters: BTreeMap<ClusterName, Departure>,
    /// Those that were, and are away for too long.
    pub expired: BTreeSet<ClusterName>,
}

/// The clusters that a decision on `fleet` says to be gone: those that were before and did not come back, and those
/// that have something and are declared no more. `accepted` is the newest revision that was planned before, where that
/// is known.
pub fn departed(
    source: &Source,
    fleet: &Fleet,
    previous: &Published,
    accepted: Option<&Revision>,
) -> Result<Departed, SourceError> {
    let Some(record) = &previous.record else {
        return Ok(Departed::default());
    };
    let head = &fleet.revision;
    let now = source.commit_seconds(head).unwrap_or_default();
    let forgotten = forgotten(source, head, &record.source)?;
    let is_gone = |name: &ClusterName| !fleet.clusters.contains_key(name) && !forgotten.contains(name);
    let is_young = |departed: &Departure| now.saturating_sub(departed.since) < Departure::SECONDS_MAX;
    let known = record.departed.iter().filter(|(name, _)| is_gone(name));
    let (young, old): (Vec<_>, Vec<_>) = known.partition(|(_, departed)| is_young(departed));
    let expired = old.into_iter().map(|(name, _)| name.clone()).collect();
    let mut departed: BTreeMap<ClusterName, Departure> = young
        .into_iter()
        .map(|(name, departed)| (name.clone(), departed.clone()))
        .collect();
    let mut leaving: BTreeMap<&ClusterName, BTreeSet<&UnitKey>> = BTreeMap::new();
    for (unit, placement) in &previous.units {
        for name in placement.clusters.keys().filter(|name| is_gone(name)) {
            if !departed.contains_key(name) {
                leaving.entry(name).or_default().insert(unit);
            }
        }
    }
    let words = LastWords {
        source,
        head,
        decided: &record.source,
        accepted,
        kind: KIND,
    };
    let policy = |fleet: &Fleet, name: &ClusterName| Some(fleet.clusters.get(name)?.deletion);
    for (name, declared) in words.find(leaving.keys().map(|name| (*name).clone()).collect(), policy)? {
        let (Some(cluster), Some(units)) = (declared.clusters.get(&name), leaving.get(&name)) else {
            continue;
        };
        let departure = Departure {
            public_keys: cluster.public_keys.clone(),
            kubeconfig_context: cluster.kubeconfig_context.clone(),
            deletion_policy: cluster.deletion,
            source: head.clone(),
            since: now,
            units: units.iter().map(|unit| (*unit).clone()).collect(),
        };
        departed.insert(name, departure);
    }
    Ok(Departed {
        clusters: departed,
        expired,
    })
}

/// The clusters that commits since `decided` give up. One that is registered in that very commit is not given up by it:
/// its file may go at any later time, and then it is cleaned up as that file said.
fn forgotten(source: &Source, head: &Revision, decided: &Revision) -> Result<BTreeSet<ClusterName>, SourceError> {
    let mut named: BTreeMap<Revision, BTreeSet<ClusterName>> = BTreeMap::new();
    for (revision, value) in source.trailer_values(head, Some(decided), FORGET_CLUSTER)? {
        let name = ClusterName::parse(value.trim()).ok();
        named.entry(revision).or_default().extend(name);
    }
    let mut forgotten = BTreeSet::new();
    for (revision, names) in named {
        let registered = load_declaring(source, &revision, KIND)?.clusters;
        forgotten.extend(names.into_iter().filter(|name| !registered.contains_key(name)));
    }
    Ok(forgotten)
}

/// A Warning for each of them: what is left on a cluster that nobody sees is never left without a word.
pub fn findings(departed: &Departed) -> Vec<Finding> {
    let finding = |(name, departed): (&ClusterName, &Departure)| {
        let units = match departed.units.as_slice() {
            [one] => format!("its unit {one}"),
            units => format!("its {} units", units.len()),
        };
        let message = format!(
            "cluster {name} is registered no more: what it has of {units} {}",
            departed.outcome()
        );
        Finding::warning("ClusterLeft", message)
            .hint(format!(
                "to keep the cluster, put its file back; spec.deletionPolicy says what becomes of its objects before the file is removed; it is remembered until {}, or until flotilla forget {name}",
                render::time::rfc3339(departed.since.saturating_add(Departure::SECONDS_MAX)),
            ))
            .cluster(name)
    };
    let forgotten = |name: &ClusterName| {
        let days = Departure::SECONDS_MAX / (24 * 60 * 60);
        let message = format!(
            "cluster {name} is away for more than {days} days and is forgotten: what it has stays there, and its agent is a stranger now"
        );
        Finding::warning("ClusterForgotten", message)
            .hint("to clean it up all the same, register it again with its old key, and remove its file when it has nothing more")
            .cluster(name)
    };
    let forgotten = departed.expired.iter().map(forgotten);
    departed.clusters.iter().map(finding).chain(forgotten).collect()
}

#[cfg(test)]
mod tests {
    use render::load::LoadMemo;
    use render::model::DeletionPolicy;
    use render::published::{Cause, RENDER_VERSION, ReleaseRecord};

    use super::*;
    use crate::hub::planner::{load_revision, plan_fleet};
    use crate::hub::repository::fixture::Fixture;

    const KEY: &str = "ed25519:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";

    fn cluster(policy: &str) -> String {
        format!(
            "apiVersion: fleet.flotilla.dev/v1alpha1\nkind: ManagedCluster\nmetadata: {{name: oslo}}\nspec: {{publicKeys: ['{KEY}']{policy}}}\n"
        )
    }

    fn commit(fixture: &Fixture, message: &str) -> Revision {
        Revision::parse(fixture.commit(message)).expect("git prints a commit")
    }

    /// A repository with cluster oslo, which has unit t/a.
    fn began(fixture: &Fixture) -> Revision {
        fixture.write("clusters/oslo.yaml", cluster(""));
        fixture.write(
            "subscriptions/a.yaml",
            "apiVersion: fleet.flotilla.dev/v1alpha1\nkind: Subscription\nmetadata: {namespace: t, name: a}\n\
             spec: {subscribers: [{clusterAffinity: {}}], feeds: [{path: feeds/**}]}\n",
        );
        fixture.write(
            "feeds/a.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: t}\n",
        );
        commit(fixture, "begin")
    }

    fn published(source: &Source, at: &Revision, departed: BTreeMap<ClusterName, Departure>) -> Published {
        let (fleet, found) = load_revision(source, at, &mut LoadMemo::default()).expect("it is readable");
        let fleet = std::sync::Arc::new(fleet);
        let memo = &mut render::Memo::default();
        let (plan, _) = plan_fleet(&fleet, found, Default::default(), 0, memo);
        let record = ReleaseRecord {
            cause: Cause::SourceCommit,
            source: at.clone(),
            sequence: None,
            rendered: None,
            departed,
            orphaned: BTreeMap::new(),
            render_version: RENDER_VERSION,
        };
        Published {
            record: Some(record),
            units: plan.units,
        }
    }

    fn gone(source: &Source, at: &Revision, previous: &Published) -> BTreeMap<ClusterName, Departure> {
        let (fleet, _) = load_revision(source, at, &mut LoadMemo::default()).expect("it is readable");
        let found = departed(source, &fleet, previous, None).expect("it is readable");
        found.clusters
    }

    #[test]
    fn a_cluster_whose_file_goes_is_remembered_with_what_the_file_said_last() {
        let fixture = Fixture::new();
        let began = began(&fixture);
        // The word is a commit of its own, and nothing was decided by it.
        fixture.write("clusters/oslo.yaml", cluster(", deletionPolicy: Delete"));
        commit(&fixture, "say so");
        fixture.git(&["rm", "--quiet", "clusters/oslo.yaml"]);
        commit(&fixture, "remove");
        fixture.write("more", "x");
        let removed = commit(&fixture, "and push more with it");
        let source = Source::open(fixture.path(), "main").expect("it opens");
        let before = published(&source, &began, BTreeMap::new());
        let found = gone(&source, &removed, &before);
        let oslo = ClusterName::parse("oslo").expect("a valid cluster");
        let departure = &found[&oslo];
        assert_eq!(departure.deletion_policy, DeletionPolicy::Delete);
        assert_eq!(departure.public_keys, [KEY]);
        assert_eq!(departure.units, ["t/a".parse().expect("a valid unit")]);
        assert_eq!(departure.source, removed);
        let told = &findings(&Departed {
            clusters: found.clone(),
            expired: BTreeSet::new(),
        })[0];
        assert_eq!(
            told.message,
            "cluster oslo is registered no more: what it has of its unit t/a is removed when it comes back"
        );
        // It stays known while other things are decided, until its file comes back.
        fixture.write("note", "x");
        let later = commit(&fixture, "later");
        let nothing = published(&source, &removed, found.clone());
        assert_eq!(gone(&source, &later, &nothing), found);
        fixture.write("clusters/oslo.yaml", cluster(""));
        let back = commit(&fixture, "back");
        assert_eq!(gone(&source, &back, &nothing), BTreeMap::new());
    }

    #[test]
    fn a_cluster_that_had_nothing_or_is_away_for_too_long_is_forgotten() {
        let fixture = Fixture::new();
        let began = began(&fixture);
        fixture.git(&["rm", "--quiet", "clusters/oslo.yaml"]);
        let removed = commit(&fixture, "remove");
        let source = Source::open(fixture.path(), "main").expect("it opens");
        let mut before = published(&source, &began, BTreeMap::new());
        let mut found = gone(&source, &removed, &before);
        before.units.clear();
        assert_eq!(gone(&source, &removed, &before), BTreeMap::new());
        found
            .values_mut()
            .for_each(|departed| departed.since -= Departure::SECONDS_MAX);
        let old = published(&source, &removed, found);
        assert_eq!(gone(&source, &removed, &old), BTreeMap::new());
        let (fleet, _) = load_revision(&source, &removed, &mut LoadMemo::default()).expect("it is readable");
        let found = departed(&source, &fleet, &old, None).expect("it is readable");
        let told = findings(&found);
        assert_eq!(told.len(), 1);
        assert_eq!(told[0].reason, "ClusterForgotten");
        assert!(
            told[0]
                .message
                .starts_with("cluster oslo is away for more than 90 days"),
            "{told:?}"
        );
    }

    #[test]
    fn a_cluster_that_is_registered_is_not_forgotten_beforehand() {
        let fixture = Fixture::new();
        let began = began(&fixture);
        fixture.write("note", "x");
        commit(&fixture, "too early\n\nForget-Cluster: oslo");
        fixture.git(&["rm", "--quiet", "clusters/oslo.yaml"]);
        let removed = commit(&fixture, "remove");
        let source = Source::open(fixture.path(), "main").expect("it opens");
        let before = published(&source, &began, BTreeMap::new());
        assert_eq!(
            gone(&source, &removed, &before).len(),
            1,
            "it is cleaned up as its file said"
        );
        fixture.write("note", "y");
        let forgotten = commit(&fixture, "in time\n\nForget-Cluster: oslo");
        assert_eq!(gone(&source, &forgotten, &before), BTreeMap::new());
    }

    #[test]
    fn a_cluster_is_forgotten_when_a_commit_says_so_and_no_other_is() {
        let fixture = Fixture::new();
        let began = began(&fixture);
        let before = |source: &Source| published(source, &began, BTreeMap::new());
        fixture.git(&["rm", "--quiet", "clusters/oslo.yaml"]);
        let removed = commit(&fixture, "remove\n\nForget-Cluster: bergen");
        let source = Source::open(fixture.path(), "main").expect("it opens");
        let found = gone(&source, &removed, &before(&source));
        assert_eq!(found.len(), 1, "another one is named");
        let known = published(&source, &removed, found);
        fixture.write("note", "x");
        let forgotten = commit(&fixture, "give it up\n\nForget-Cluster: oslo");
        assert_eq!(gone(&source, &forgotten, &known), BTreeMap::new());
        assert_eq!(
            gone(&source, &forgotten, &before(&source)),
            BTreeMap::new(),
            "also where it leaves by the same decision"
        );
        fixture.write("note", "y");
        let later = commit(&fixture, "later");
        let decided = published(&source, &forgotten, BTreeMap::new());
        assert_eq!(gone(&source, &later, &decided), BTreeMap::new(), "and stays forgotten");
    }
}
