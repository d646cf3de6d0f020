//! A cluster that is drained, and opened again, while its replicas are in use.

use flotilla_tests::{Flotilla, eventually, pool};

use super::capacity::{DEPLOYMENT, SUBSCRIPTION, of_crew};
use super::support::*;
use super::suspension::act;

/// Waits until every cluster has so many replicas, all ready, and gives the fewest that were ready meanwhile.
#[track_caller]
fn until_replicas(fleet: &Fleet, expected: [u64; 3]) -> u64 {
    let mut least = u64::MAX;
    eventually(LIMIT * 3, &format!("replicas are {expected:?}"), || {
        // Bogota, which loses, is looked at first: what the others have by then, they had before.
        let [colombo, amsterdam, bogota] = {
            let bogota = of_crew(fleet, "bogota").unwrap_or_default();
            let [amsterdam, colombo] = ["amsterdam", "colombo"].map(|name| of_crew(fleet, name).unwrap_or_default());
            [colombo, amsterdam, bogota]
        };
        let found = [amsterdam, bogota, colombo];
        least = least.min(found.iter().map(|(told, ready)| ready.min(told)).sum());
        match found == expected.map(|count| (count, count)) {
            true => Ok(()),
            false => Err(format!("{found:?}")),
        }
    });
    least
}

/// The cluster's line of `flotilla get clusters`.
fn line(fleet: &Fleet, cluster: &str) -> String {
    let shown = Flotilla::run(&["get", "clusters", "--server", &fleet.api()]).stdout;
    let found = shown.lines().find(|line| line.contains(cluster));
    found.unwrap_or_default().to_owned()
}

#[track_caller]
fn until_line(fleet: &Fleet, cluster: &str, is_disabled: bool) {
    eventually(LIMIT, "the hub says whether it is in use", || {
        let line = line(fleet, cluster);
        let found = line.contains("SchedulingDisabled");
        (found == is_disabled && !line.is_empty()).then_some(()).ok_or(line)
    });
}

#[test]
fn a_drained_cluster_is_emptied_after_the_others_are_ready_and_gets_nothing_back_by_itself() {
    assert_eq!(pool::NAMES, ["amsterdam", "bogota", "colombo"]);
    let fleet = Fleet::start();
    fleet.push(
        "Open the harbour",
        &[
            ("subscriptions/sea/harbour.yaml", SUBSCRIPTION),
            ("feeds/harbour/namespace.yaml", &namespace("harbour")),
            (
                "feeds/harbour/crew.yaml",
                &DEPLOYMENT.replace("replicas: 30", "replicas: 6"),
            ),
        ],
    );
    until_replicas(&fleet, [2, 2, 2]);

    act(&fleet, &["drain", "bogota", "--reason", "repair"]);
    let least = until_replicas(&fleet, [3, 0, 3]);
    assert_eq!(least, 6, "all six are ready at any time");
    eventually(LIMIT, "nothing of it is left in bogota", || {
        let found = of_crew(&fleet, "bogota");
        found.is_none().then_some(()).ok_or(format!("{found:?}"))
    });
    until_line(&fleet, "bogota", true);
    assert_verified(&fleet.repository);

    act(&fleet, &["uncordon", "bogota"]);
    until_line(&fleet, "bogota", false);
    eventually(LIMIT, "bogota has the unit again, and none of its replicas", || {
        let found = of_crew(&fleet, "bogota");
        (found == Some((0, 0))).then_some(()).ok_or(format!("{found:?}"))
    });
    assert_eq!(until_replicas(&fleet, [3, 0, 3]), 6, "what left stays where it is");
}
