//! Logs that are followed, side by side.

use std::time::Duration;

use flotilla_tests::eventually;

use super::super::support::LIMIT;
use super::office::Office;

/// Logs at once.
const LOGS: usize = 20;

#[test]
fn of_twenty_logs_nineteen_are_ended_and_the_last_has_no_gap() {
    let office = Office::open(&[]);
    office.pod_with_a_log();
    let follow = |number: usize| office.follow(&format!("log-{number}"), &["logs", "-f", "teller", "-n", "shop"]);
    let mut logs: Vec<_> = (0..LOGS).map(follow).collect();
    for log in &logs {
        eventually(LIMIT, "each log begins", || {
            let text = log.log();
            text.contains("line 5\n").then_some(()).ok_or(text)
        });
    }
    let last = logs.pop().expect("there are twenty");
    for mut log in logs {
        log.kill();
        flotilla_tests::wait::pause(Duration::from_millis(100));
    }
    let seen = last.log().lines().count();
    eventually(LIMIT, "the last one goes on", || {
        let more = last.log().lines().count();
        (more > seen + 100).then_some(()).ok_or(format!("{more} lines"))
    });
    let text = last.log();
    // The newest line may be written in part.
    let lines: Vec<_> = text.lines().collect();
    for (number, line) in lines.iter().take(lines.len() - 1).enumerate() {
        assert_eq!(
            *line,
            format!("line {number}"),
            "nothing is missing, and nothing came twice"
        );
    }
}
