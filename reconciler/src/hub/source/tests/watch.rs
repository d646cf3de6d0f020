use std::time::Duration;

use tokio::sync::watch::Receiver;
use tokio_util::sync::CancellationToken;

use crate::hub::repository::fixture::Fixture;
use crate::hub::source::{Look, RefWatch, WatchState};

/// Far more than a look takes, so that a busy machine does not fail a test.
const PATIENCE: Duration = Duration::from_secs(20);

/// Longer than any test, so that only an event can be the cause of a look.
const NEVER: Duration = Duration::from_secs(3_600);

fn start(fixture: &Fixture, poll: Duration) -> (Receiver<Look>, CancellationToken) {
    let (watch, looks) = RefWatch::new(fixture.path(), poll);
    let shutdown = CancellationToken::new();
    tokio::spawn(watch.run(shutdown.clone()));
    (looks, shutdown)
}

async fn until(looks: &mut Receiver<Look>, wanted: impl FnMut(&Look) -> bool) -> Look {
    tokio::time::timeout(PATIENCE, looks.wait_for(wanted))
        .await
        .expect("a look in time")
        .expect("the watch runs")
        .clone()
}

/// Waits until no look has come for longer than the second look takes.
async fn quiet(looks: &mut Receiver<Look>) -> u64 {
    loop {
        looks.mark_unchanged();
        if tokio::time::timeout(Duration::from_millis(300), looks.changed())
            .await
            .is_err()
        {
            return looks.borrow().count;
        }
    }
}

#[tokio::test]
async fn a_moved_ref_is_a_reason_to_look_at_once() {
    let fixture = Fixture::new();
    fixture.commit("one");
    let (mut looks, _shutdown) = start(&fixture, NEVER);
    until(&mut looks, |look| look.state == WatchState::Watching).await;
    let before = quiet(&mut looks).await;
    let head = fixture.head();
    let ref_file = fixture.file(".git/refs/heads/main");
    let begin = std::time::Instant::now();
    let lock = fixture.file(".git/refs/heads/main.lock");
    std::fs::write(&lock, format!("{head}\n")).expect("written");
    std::fs::rename(lock, ref_file).expect("renamed");
    until(&mut looks, |look| look.count > before).await;
    println!("a look {:?} after a ref moved", begin.elapsed());
}

#[tokio::test]
async fn packing_refs_and_new_folders_of_refs_are_seen() {
    let fixture = Fixture::new();
    fixture.commit("one");
    let (mut looks, _shutdown) = start(&fixture, NEVER);
    until(&mut looks, |look| look.state == WatchState::Watching).await;
    for arguments in [
        ["pack-refs", "--all"].as_slice(),
        &["branch", "team/a/b"],
        &["branch", "-D", "team/a/b"],
    ] {
        let before = quiet(&mut looks).await;
        fixture.git(arguments);
        until(&mut looks, |look| look.count > before).await;
    }
}

#[tokio::test]
async fn reading_refs_and_working_elsewhere_is_no_reason_to_look() {
    let fixture = Fixture::new();
    fixture.commit("one");
    let (mut looks, _shutdown) = start(&fixture, NEVER);
    until(&mut looks, |look| look.state == WatchState::Watching).await;
    let before = quiet(&mut looks).await;
    fixture.git(&["log", "--all"]);
    fixture.write("a.yaml", "a");
    fixture.git(&["hash-object", "-w", "a.yaml"]);
    assert_eq!(
        quiet(&mut looks).await,
        before,
        "a look that causes itself would never end"
    );
}

#[tokio::test]
async fn a_folder_that_goes_away_is_a_state_and_comes_back() {
    let fixture = Fixture::new();
    fixture.commit("one");
    let (mut looks, _shutdown) = start(&fixture, Duration::from_millis(50));
    until(&mut looks, |look| look.state == WatchState::Watching).await;
    std::fs::rename(fixture.file(".git"), fixture.file("away")).expect("renamed");
    until(&mut looks, |look| look.state == WatchState::Gone).await;
    fixture.git(&["init", "--quiet", "--initial-branch=main", "."]);
    until(&mut looks, |look| look.state == WatchState::Watching).await;
}

#[tokio::test]
async fn shutdown_ends_the_watch() {
    let fixture = Fixture::new();
    let (watch, mut looks) = RefWatch::new(fixture.path(), NEVER);
    let shutdown = CancellationToken::new();
    let running = tokio::spawn(watch.run(shutdown.clone()));
    until(&mut looks, |look| look.count > 0).await;
    shutdown.cancel();
    tokio::time::timeout(PATIENCE, running)
        .await
        .expect("it ends")
        .expect("without a panic");
}
