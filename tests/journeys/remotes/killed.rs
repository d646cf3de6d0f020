//! A hub that is killed in the middle of a fetch or a push.

use std::time::{Duration, Instant};

use super::super::still::pass;
use super::support::{Hub, greet, repository, until_released};

#[test]
fn a_hub_killed_while_it_fetches_recovers_with_no_hands() {
    let kills = if std::env::var_os("FLOTILLA_LONG").is_some() {
        50
    } else {
        8
    };
    let (repository, mut hub) = (repository(), Hub::new());
    let url = format!("file://{}", repository.bare().display());
    let started = Instant::now();
    hub.start(&url, &[]);
    until_released(&repository, &repository.head("main").expect("it was pushed"));
    let usual = started.elapsed();
    for kill in 0..kills {
        let commit = greet(&repository, &format!("hello {kill}"));
        hub.start(&url, &[]);
        // At another point of its start each time.
        pass(
            usual
                .mul_f64(f64::from(kill) / f64::from(kills))
                .min(Duration::from_secs(2)),
        );
        hub.kill();
        hub.start(&url, &[]);
        until_released(&repository, &commit);
    }
    // Nothing was released twice, and every sequence is one more.
    let released = repository.commits("flotilla/released");
    assert!(released <= kills as usize + 1, "{released} commits for {kills} changes");
}
