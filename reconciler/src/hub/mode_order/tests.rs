use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use render::model::SyncMode;
use render::{ClusterName, Revision};

use super::*;
use crate::hub::repository::fixture::Fixture;
use crate::hub::session::news::{is_news, news};
use crate::wire::{Intake, list_digest};

const MODES: [SyncMode; 3] = [SyncMode::Dual, SyncMode::Pull, SyncMode::Push];

/// A commit of a made-up history.
#[derive(Clone, Copy)]
struct Commit {
    parent: Option<usize>,
    /// The head that it takes the place of.
    accepts: Option<usize>,
    mode: SyncMode,
}

/// Commits in the order in which they were made; the last one is the head.
#[derive(Clone, Default)]
struct History(Arc<Mutex<Vec<Commit>>>);

fn id(commit: usize) -> Revision {
    Revision::parse(format!("{:040x}", commit + 1)).expect("forty hex digits")
}

fn commit(id: &Revision) -> usize {
    usize::from_str_radix(id.as_str(), 16).expect("it is a number") - 1
}

fn order(comes_after: bool) -> Order {
    if comes_after { Order::After } else { Order::NotAfter }
}

impl History {
    fn commits(&self) -> Vec<Commit> {
        self.0.lock().expect("nobody panicked").clone()
    }

    fn head(&self) -> usize {
        self.commits().len() - 1
    }

    fn push(&self, commit: Commit) {
        self.0.lock().expect("nobody panicked").push(commit);
    }

    fn comes_after(&self, own: usize, held: usize) -> bool {
        let commits = self.commits();
        let ancestors = |from: usize| std::iter::successors(Some(from), |at| commits[*at].parent).collect::<Vec<_>>();
        let accepted = ancestors(own).into_iter().filter_map(|at| commits[at].accepts);
        ancestors(own).contains(&held) || accepted.into_iter().any(|head| ancestors(head).contains(&held))
    }
}

/// A hub, the streams between it and the agent, and what was said on them.
struct Hub {
    order: ModeOrder,
    at: usize,
    newest: Arc<Envelope>,
    told: Option<Arc<Envelope>>,
    heard: Option<Held>,
    words: VecDeque<Arc<Envelope>>,
    reports: VecDeque<Option<Held>>,
}

fn word(mode: SyncMode, at: usize) -> Arc<Envelope> {
    Arc::new(Envelope {
        version: Envelope::VERSION,
        cluster: ClusterName::parse("oslo").expect("a valid name"),
        lineage: id(0),
        sequence: 1,
        released: id(0),
        units: BTreeMap::new(),
        list: list_digest(&BTreeMap::new(), false),
        orphan: false,
        orphaned: BTreeMap::new(),
        mode,
        mode_source: Some(id(at)),
        mode_instead: None,
        lineage_grant: None,
    })
}

impl Hub {
    fn new(history: &History) -> Self {
        let judge = history.clone();
        Self {
            order: ModeOrder::by(move |pair| Ok(order(judge.comes_after(commit(&pair.own), commit(&pair.held))))),
            at: 0,
            newest: word(history.commits()[0].mode, 0),
            told: None,
            heard: None,
            words: VecDeque::new(),
            reports: VecDeque::new(),
        }
    }

    /// What the engine does where the cluster goes by another mode, or its file says another one.
    async fn look(&mut self, history: &History) {
        let mode = history.commits()[self.at].mode;
        if self.heard.as_ref().is_some_and(|held| held.mode != mode) || self.newest.mode != mode {
            self.newest = word(mode, self.at);
        }
        let before = (self.told.as_deref(), self.heard.as_ref());
        if let Some(envelope) = news(&self.order, Arc::clone(&self.newest), before).await {
            self.words.push_back(Arc::clone(&envelope));
            self.told = Some(envelope);
        }
    }

    async fn fetch(&mut self, history: &History) {
        if history.comes_after(history.head(), self.at) {
            self.at = history.head();
        }
        self.look(history).await;
    }

    async fn hear(&mut self, history: &History) {
        if let Some(held) = self.reports.pop_front() {
            self.heard = held;
            self.look(history).await;
        }
    }

    /// The agent dials anew, and says what it holds.
    fn restart(&mut self, held: Option<&Held>) {
        (self.told, self.heard) = (None, None);
        self.words.clear();
        self.reports = VecDeque::from([held.cloned()]);
    }
}

/// The agent hears one word, and tells both hubs what came of it.
fn take(agent: &mut Intake, hubs: &mut [Hub; 2], from: usize) {
    let Some(envelope) = hubs[from].words.pop_front() else {
        return;
    };
    let before = agent.held().cloned();
    agent.envelope(&envelope, |_, _| false).expect("it is of this lineage");
    let after = agent.held().cloned();
    let source = |held: &Option<Held>| held.as_ref().and_then(|held| held.mode_source.as_ref()).map(commit);
    assert!(
        source(&after) >= source(&before),
        "it goes back from {before:?} to {after:?}"
    );
    if before != after {
        for hub in hubs {
            hub.reports.push_back(after.clone());
        }
    }
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

async fn interleave(seed: u64) {
    let mut dice = Dice(seed);
    let history = History::default();
    let mode = |dice: &mut Dice| MODES[dice.below(3)];
    history.push(Commit {
        parent: None,
        accepts: None,
        mode: mode(&mut dice),
    });
    let mut hubs = [Hub::new(&history), Hub::new(&history)];
    let mut agent = Intake::new(ClusterName::parse("oslo").expect("a valid name"), None);
    hubs.iter_mut().for_each(|hub| hub.restart(None));
    for _ in 0..150 {
        let at = dice.below(2);
        match dice.below(12) {
            0 => {
                let (head, mode) = (history.head(), mode(&mut dice));
                history.push(Commit {
                    parent: Some(head),
                    accepts: None,
                    mode,
                });
            }
            1 if dice.below(3) == 0 => {
                let (head, mode) = (history.head(), mode(&mut dice));
                // What an earlier rewrite accepted is kept, as people have to.
                let parent = history.commits()[head]
                    .parent
                    .filter(|_| history.commits()[head].accepts.is_none());
                history.push(Commit {
                    parent: parent.or(Some(head)),
                    accepts: Some(head),
                    mode,
                });
            }
            2 => hubs[at].fetch(&history).await,
            3 => hubs[at].restart(agent.held()),
            4..=7 => hubs[at].hear(&history).await,
            _ => take(&mut agent, &mut hubs, at),
        }
    }
    // In the end both have seen everything, and everything is heard.
    for _ in 0..20 {
        for at in 0..2 {
            hubs[at].fetch(&history).await;
            while !hubs[at].reports.is_empty() {
                hubs[at].hear(&history).await;
            }
            while !hubs[at].words.is_empty() {
                take(&mut agent, &mut hubs, at);
            }
        }
    }
    let is_quiet = hubs.iter().all(|hub| hub.words.is_empty() && hub.reports.is_empty());
    assert!(is_quiet, "they come to rest");
    assert_eq!(
        agent.mode(),
        history.commits()[history.head()].mode,
        "the newest mode counts, seed {seed}"
    );
}

#[tokio::test]
async fn however_the_words_of_two_hubs_cross_the_newest_mode_counts_and_none_goes_back() {
    for seed in 1..=150_u64 {
        interleave(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)).await;
    }
}

#[tokio::test]
async fn a_hub_that_lags_says_no_mode_and_another_one_is_asked_once_for_all_clusters() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let order = ModeOrder::by(move |pair| {
        count.fetch_add(1, Ordering::Relaxed);
        Ok(self::order(commit(&pair.own) > commit(&pair.held)))
    });
    let held = word(SyncMode::Pull, 5).held();
    let lagging = order.placed(word(SyncMode::Dual, 4), Some(&held)).await;
    assert_eq!(lagging.mode_instead, None);
    assert!(!is_news(&lagging, None, Some(&held)), "it says nothing of it");
    let ahead = order.placed(word(SyncMode::Dual, 6), Some(&held)).await;
    assert_eq!(ahead.mode_instead, Some(id(5)));
    assert!(is_news(&ahead, None, Some(&held)));
    for _ in 0..100 {
        order.placed(word(SyncMode::Dual, 6), Some(&held)).await;
    }
    assert_eq!(asked.load(Ordering::Relaxed), 2, "history is read once for two commits");
    let quiet = news(&order, word(SyncMode::Pull, 7), (None, Some(&held))).await;
    assert_eq!(quiet, None, "it is held in this mode");
    assert_eq!(
        asked.load(Ordering::Relaxed),
        2,
        "and no history is read to say nothing"
    );
    for at in 10..10 + 2 * MODE_ORDERS_MAX {
        order.placed(word(SyncMode::Dual, at), Some(&held)).await;
    }
    assert_eq!(
        order.known.lock().await.len(),
        MODE_ORDERS_MAX,
        "and no more is remembered"
    );
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_may_be_another_one_later_counts_for_a_minute_and_until_more_history_came() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let order = ModeOrder::by(move |pair| {
        count.fetch_add(1, Ordering::Relaxed);
        match commit(&pair.held) {
            0 => Err(SourceError::BranchName { name: String::new() }),
            1 => Ok(Order::AfterForNow),
            _ => Ok(Order::Untold),
        }
    });
    for held in 0..3 {
        let pair = Pair {
            own: id(5),
            held: id(held),
        };
        asked.store(0, Ordering::Relaxed);
        for _ in 0..3 {
            assert_eq!(order.comes_after(&pair).await, held == 1);
        }
        assert_eq!(asked.load(Ordering::Relaxed), 1);
        order.deepen();
        assert_eq!(order.comes_after(&pair).await, held == 1);
        assert_eq!(asked.load(Ordering::Relaxed), 2, "more history came");
        tokio::time::advance(MODE_ORDER_TRUSTED).await;
        assert_eq!(order.comes_after(&pair).await, held == 1);
        assert_eq!(asked.load(Ordering::Relaxed), 3, "a minute later");
    }
}

#[track_caller]
fn check(source: &Source, left: &[&str], (own, held): (&str, &str), expected: Order) {
    let parsed = |text: &str| Revision::parse(text).expect("a commit");
    let left: Vec<_> = left.iter().map(|left| parsed(left)).collect();
    let pair = Pair {
        own: parsed(own),
        held: parsed(held),
    };
    assert_eq!(
        comes_after(source, &left, &pair).expect("it can be read"),
        expected,
        "{pair:?}"
    );
}

#[test]
fn a_commit_comes_after_those_that_it_builds_on_and_after_a_history_that_somebody_gave_up() {
    let fixture = Fixture::new();
    let (first, second, third) = (fixture.commit("one"), fixture.commit("two"), fixture.commit("three"));
    let source = || Source::open(fixture.file("."), "main").expect("it opens");
    check(&source(), &[], (&third, &first), Order::After);
    check(&source(), &[], (&second, &third), Order::NotAfter);
    check(&source(), &[], (&third, &"e".repeat(40)), Order::NotAfter);
    // Somebody pushes another history over it.
    fixture.git(&["reset", "--quiet", "--hard", &first]);
    let other = fixture.commit("another two");
    check(&source(), &[], (&other, &first), Order::After);
    check(&source(), &[], (&other, &second), Order::NotAfter);
    // A hub that was there and was told to follow knows that it left; so does everybody once a commit says it.
    check(&source(), &[&third], (&other, &second), Order::AfterForNow);
    check(&source(), &[&third], (&other, &"e".repeat(40)), Order::NotAfter);
    // Where the source is back at what was left, a hub that was told to follow and lags says nothing against it.
    fixture.git(&["reset", "--quiet", "--hard", &third]);
    check(&source(), &[&third], (&other, &second), Order::Untold);
    fixture.git(&["reset", "--quiet", "--hard", &other]);
    let accepted = fixture.commit(&format!("mean it\n\nAccept-Rewrite: {third}"));
    check(&source(), &[], (&accepted, &second), Order::After);
    let gone = "e".repeat(40);
    let accepted = fixture.commit(&format!("mean that too\n\nAccept-Rewrite: {gone}"));
    check(&source(), &[], (&accepted, &gone), Order::After);
}
