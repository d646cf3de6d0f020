//! What is recorded of units that leave.

use render::load::LoadMemo;
use render::plan::Memo;
use render::published::{Cause, RENDER_VERSION, ReleaseRecord};

use super::*;
use crate::hub::planner::{load_revision, plan_fleet};
use crate::hub::repository::fixture::Fixture;

const UNIT: &str = "subscriptions/a.yaml";

fn cluster(name: &str) -> ClusterName {
    ClusterName::parse(name).expect("a valid cluster")
}

fn unit() -> UnitKey {
    "t/a".parse().expect("a valid unit")
}

fn subscription(policy: &str, affinity: &str) -> String {
    format!(
        "apiVersion: fleet.flotilla.dev/v1alpha1\nkind: Subscription\nmetadata: {{namespace: t, name: a}}\n\
         spec: {{subscribers: [{{clusterAffinity: {affinity}}}], feeds: [{{path: feeds/**}}], deletionPolicy: {policy}}}\n"
    )
}

fn commit(fixture: &Fixture, message: &str) -> Revision {
    Revision::parse(fixture.commit(message)).expect("git prints a commit")
}

/// A repository whose clusters bergen and oslo have unit t/a, which says Delete.
fn began(fixture: &Fixture) -> Revision {
    for name in ["bergen", "oslo"] {
        let file = format!(
            "apiVersion: fleet.flotilla.dev/v1alpha1\nkind: ManagedCluster\nmetadata: {{name: {name}, labels: {{site: {name}}}}}\n"
        );
        fixture.write(&format!("clusters/{name}.yaml"), file);
    }
    fixture.write(UNIT, subscription("Delete", "{}"));
    fixture.write(
        "feeds/a.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: t}\n",
    );
    commit(fixture, "begin")
}

/// A decision on `at`, and the words in it.
fn decided(source: &Source, at: &Revision, previous: &Published, let_go: &[(UnitKey, ClusterName)]) -> Published {
    let (fleet, found) = load_revision(source, at, &mut LoadMemo::default()).expect("it is readable");
    let fleet = Arc::new(fleet);
    let (plan, _) = plan_fleet(&fleet, found, Arc::new(previous.clone()), 0, &mut Memo::default());
    let leaving = Leaving {
        source,
        fleet: &fleet,
        previous,
        decided: previous.record.as_ref().map(|record| &record.source),
        units: &plan.units,
        accepted: None,
        departed: &BTreeMap::new(),
        holdings: &|digest| {
            let content = plan.contents.get(digest)?;
            Some(Arc::new(Holdings::of(content)))
        },
        let_go: &let_go.iter().cloned().collect(),
    };
    let (orphaned, _) = leaving.orphaned().expect("it is readable");
    let record = ReleaseRecord {
        cause: Cause::SourceCommit,
        source: at.clone(),
        sequence: None,
        rendered: None,
        departed: BTreeMap::new(),
        orphaned,
        render_version: RENDER_VERSION,
    };
    Published {
        record: Some(record),
        units: plan.units,
    }
}

fn words(published: &Published) -> Vec<String> {
    let record = published.record.as_ref().expect("it is a decision");
    let pairs = record.orphaned.iter();
    pairs
        .flat_map(|(unit, clusters)| clusters.keys().map(move |cluster| format!("{unit} {cluster}")))
        .collect()
}

#[test]
fn the_newest_word_of_a_unit_that_leaves_is_recorded_whatever_was_decided_of_it() {
    let fixture = Fixture::new();
    let began = began(&fixture);
    // The word is a commit of its own, and nothing was decided by it.
    fixture.write(UNIT, subscription("Orphan", "{}"));
    commit(&fixture, "say so");
    fixture.git(&["rm", "--quiet", UNIT]);
    let removed = commit(&fixture, "remove");
    let source = Source::open(fixture.path(), "main").expect("it opens");
    let before = decided(&source, &began, &Published::default(), &[]);
    assert_eq!(words(&before), Vec::<String>::new(), "what is there needs no word");
    let left = decided(&source, &removed, &before, &[]);
    assert!(left.units.is_empty());
    assert_eq!(words(&left), ["t/a bergen", "t/a oslo"]);
    // It is kept while other things are decided, cluster by cluster until that has nothing of it.
    fixture.write("note", "x");
    let later = commit(&fixture, "later");
    assert_eq!(words(&decided(&source, &later, &left, &[])), ["t/a bergen", "t/a oslo"]);
    let one = decided(&source, &later, &left, &[(unit(), cluster("bergen"))]);
    assert_eq!(words(&one), ["t/a oslo"]);
    // What comes back has its own word again.
    fixture.write(UNIT, subscription("Delete", "{}"));
    let back = commit(&fixture, "back");
    let back = decided(&source, &back, &one, &[]);
    assert_eq!(words(&back), Vec::<String>::new());
    fixture.git(&["rm", "--quiet", UNIT]);
    let again = commit(&fixture, "and away");
    assert_eq!(words(&decided(&source, &again, &back, &[])), Vec::<String>::new());
}

#[test]
fn the_newest_word_counts_whatever_is_pushed_with_it_or_merged() {
    let fixture = Fixture::new();
    let began = began(&fixture);
    let branch = fixture.git(&["symbolic-ref", "--short", "HEAD"]);
    let branch = branch.trim();
    let say = |policy: &str| {
        fixture.write(UNIT, subscription(policy, "{}"));
        commit(&fixture, policy)
    };
    let remove = || {
        fixture.git(&["rm", "--quiet", UNIT]);
        commit(&fixture, "remove")
    };
    let note = |name: &str| {
        fixture.write(name, "x");
        commit(&fixture, name)
    };
    // On a branch of a revision: a word and the removal; then the revision goes on, and they are merged.
    let merged = |from: &Revision, word: &str| {
        fixture.git(&["checkout", "--quiet", "-B", "side", from.as_str()]);
        say(word);
        remove();
        fixture.git(&["checkout", "--quiet", branch]);
        fixture.git(&["reset", "--quiet", "--hard", from.as_str()]);
        note("main goes on");
        fixture.git(&["merge", "--quiet", "--no-ff", "--no-edit", "side"]);
        Revision::parse(fixture.head()).expect("git prints a commit")
    };
    let source = Source::open(fixture.path(), branch).expect("it opens");
    let before = decided(&source, &began, &Published::default(), &[]);
    let words_at = |before: &Published, at: &Revision| words(&decided(&source, at, before, &[]));
    let both = ["t/a bergen", "t/a oslo"];

    say("Orphan");
    remove();
    let later = note("later");
    assert_eq!(words_at(&before, &later), both, "three commits at once");
    fixture.git(&["reset", "--quiet", "--hard", began.as_str()]);
    say("Orphan");
    say("Delete");
    remove();
    let withdrawn = note("later");
    assert_eq!(words_at(&before, &withdrawn), [""; 0], "the word was taken back");

    let merge = merged(&began, "Orphan");
    assert_eq!(words_at(&before, &merge), both, "a branch has its own word");
    assert_eq!(words_at(&before, &note("and on")), both, "also below a merge");
    fixture.git(&["reset", "--quiet", "--hard", began.as_str()]);
    let orphan = say("Orphan");
    let stays = decided(&source, &orphan, &before, &[]);
    let merge = merged(&orphan, "Delete");
    assert_eq!(
        words_at(&stays, &merge),
        [""; 0],
        "what the other side said before is older"
    );

    // A decision that kept it all the same, as a budget does, is no end of the way.
    fixture.git(&["reset", "--quiet", "--hard", began.as_str()]);
    say("Orphan");
    let mut held = before.clone();
    if let Some(record) = &mut held.record {
        record.source = remove();
    }
    assert_eq!(words_at(&held, &note("allowed")), both, "it was held in between");

    // One side removes it while the other says that its objects stay: somebody settled that conflict.
    fixture.git(&["checkout", "--quiet", "-B", "side", began.as_str()]);
    let side = remove();
    fixture.git(&["checkout", "--quiet", branch]);
    fixture.git(&["reset", "--quiet", "--hard", began.as_str()]);
    let main = say("Orphan");
    let tree = format!("{side}^{{tree}}");
    let ends = [
        "commit-tree",
        &tree,
        "-p",
        main.as_str(),
        "-p",
        side.as_str(),
        "-m",
        "merge",
    ];
    let merge = fixture.git(&ends);
    let merge = Revision::parse(merge.trim()).expect("git prints a commit");
    assert_eq!(
        words_at(&before, &merge),
        both,
        "nothing goes that somebody wants to stay"
    );
}

#[test]
fn a_unit_that_leaves_one_cluster_and_stays_elsewhere_goes_by_what_it_says_now() {
    let fixture = Fixture::new();
    let began = began(&fixture);
    fixture.write(UNIT, subscription("Orphan", "{matchLabels: {site: oslo}}"));
    let narrowed = commit(&fixture, "narrow");
    let source = Source::open(fixture.path(), "main").expect("it opens");
    let before = decided(&source, &began, &Published::default(), &[]);
    let left = decided(&source, &narrowed, &before, &[]);
    assert_eq!(words(&left), ["t/a bergen"]);
    // A cluster that is registered no more and is not known either has no word.
    fixture.git(&["rm", "--quiet", "clusters/bergen.yaml"]);
    let without = commit(&fixture, "without bergen");
    assert_eq!(words(&decided(&source, &without, &left, &[])), Vec::<String>::new());
}

#[test]
fn words_are_bounded_and_the_oldest_goes_first() {
    let mut orphaned = Orphaned::new();
    for (since, name) in [(3, "c"), (1, "a"), (2, "b")] {
        orphaned.entry(unit()).or_default().insert(cluster(name), since);
    }
    assert_eq!(bound(&mut orphaned, 3), 0);
    assert_eq!(bound(&mut orphaned, 2), 1);
    let left: Vec<_> = orphaned[&unit()].keys().map(ToString::to_string).collect();
    assert_eq!(left, ["b", "c"]);
}
