//! Whoever of two hubs dies at whatever step, every cluster gets what was pushed, once.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use flotilla_tests::{eventually, pool};

use super::super::support::{GREETING, LIMIT, config_map};
use super::pair::Two;

/// Stops a push of a ref by a hub, before the ref moves or when it has, says which processes are waiting, and goes on or
/// refuses as a file says.
const HOOK: &str = r#"#!/bin/sh
here="$(dirname "$0")"
[ -e "$here/stop-at-$(basename "$0")" ] || exit 0
grep -q "$(cat "$here/stop-at-$(basename "$0")")" || exit 0
mkdir "$here/stopping" 2>/dev/null || exit 0
process=$PPID
while [ "$process" -gt 1 ]; do
    echo "$process"
    process=$(cut -d' ' -f4 "/proc/$process/stat")
done > "$here/stopped.part"
mv "$here/stopped.part" "$here/stopped"
while [ ! -e "$here/then" ]; do sleep 0.05; done
[ "$(cat "$here/then")" = go ]
"#;

fn read(file: &Path) -> Result<String, String> {
    fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))
}

#[test]
fn either_hub_may_be_killed_at_any_step_of_a_decision_and_nothing_is_lost_or_decided_twice() {
    let mut two = Two::start();
    for api in two.apis() {
        eventually(LIMIT, "both hubs know of every cluster", || {
            match two.connected(&api)? {
                3 => Ok(()),
                other => Err(format!("{other} are connected to {api}")),
            }
        });
    }
    let hooks = two.fleet.repository.bare().join("hooks");
    fs::create_dir_all(&hooks).unwrap();
    for hook in ["pre-receive", "post-receive"] {
        fs::write(hooks.join(hook), HOOK).unwrap();
        fs::set_permissions(hooks.join(hook), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let mut pushed = 0;
    // Where nothing can be refused any more, the ref has moved and nobody was told of it.
    let before = |step| [("pre-receive", step, "go"), ("pre-receive", step, "refuse")];
    let told_to_nobody = ("post-receive", "flotilla/released", "go");
    let [rendered, released] = ["flotilla/rendered", "flotilla/released"].map(before);
    for (hook, step, outcome) in rendered.into_iter().chain(released).chain([told_to_nobody]) {
        for name in ["then", "stopped"] {
            let _none = fs::remove_file(hooks.join(name));
        }
        let _none = fs::remove_dir(hooks.join("stopping"));
        let stop_at = hooks.join(format!("stop-at-{hook}"));
        fs::write(&stop_at, step).unwrap();
        pushed += 1;
        let text = format!("hello {pushed}");
        let file = config_map(GREETING.0, GREETING.1, &text);
        two.fleet.push("Greet otherwise", &[("feeds/web/greeting.yaml", &file)]);
        let waiting = eventually(LIMIT, "a hub pushes", || read(&hooks.join("stopped")));
        let waiting = waiting.lines().filter_map(|line| line.parse().ok()).collect();
        let was_first = two.kill(&waiting);
        fs::remove_file(&stop_at).unwrap();
        fs::write(hooks.join("then"), outcome).unwrap();
        // Whoever is left goes on alone, for the clusters that know it.
        let left: &[&str] = if was_first {
            &["colombo"]
        } else {
            &["amsterdam", "bogota"]
        };
        two.fleet.until_text(left, GREETING, &text);
        if was_first {
            two.start_first()
        } else {
            two.start_second()
        }
        two.fleet.until_text(&pool::NAMES, GREETING, &text);
    }
    let repository = &two.fleet.repository;
    repository.git_bare(&["fsck", "--strict"]).expect_ok();
    let lines = |reference: &str, form: &str| -> Vec<String> {
        let log = repository.git_bare(&["log", "--reverse", &format!("--format={form}"), reference]);
        log.expect_ok().lines().map(str::to_owned).collect()
    };
    let parents = lines("flotilla/released", "%P");
    assert!(
        parents.iter().skip(1).all(|parents| parents.split(' ').count() == 1),
        "it is a line"
    );
    for (at, subject) in lines("flotilla/released", "%s").iter().enumerate() {
        let sequence = format!("Release {} ", at + 1);
        assert!(
            subject.starts_with(&sequence),
            "no sequence is left out or there twice: {subject}"
        );
    }
    let rendered = lines("flotilla/rendered", "%s");
    let each: BTreeSet<_> = rendered.iter().collect();
    assert_eq!(each.len(), rendered.len(), "each push is decided on once: {rendered:?}");
    let logs = two.fleet.logs() + &two.logs()[1];
    for alarm in ["Envelope was refused", "Refused envelope", "put back"] {
        assert!(!logs.contains(alarm), "{alarm}\n{logs}");
    }
}
