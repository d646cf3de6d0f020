//! A reader that goes away, and a machine without tools.

use std::io::Read as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use flotilla_tests::eventually;
use flotilla_tests::flotilla::{binary, flotilla};

use crate::kubectl::Hub;

/// Runs a command whose reader takes one byte and goes, and gives its exit code and what it said.
fn cut(mut command: Command) -> (Option<i32>, String) {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut stdout = child.stdout.take().expect("it is piped");
    let _first = stdout.read(&mut [0; 1]);
    drop(stdout);
    let status = eventually(Duration::from_secs(30), "the end", || {
        child
            .try_wait()
            .expect("a child can be asked")
            .ok_or_else(|| "it runs".to_owned())
    });
    let mut said = String::new();
    let read = child.stderr.take().map(|mut stderr| stderr.read_to_string(&mut said));
    assert!(read.is_some_and(|read| read.is_ok()));
    (status.code(), said)
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let hub = Hub::start();
    let work = hub.repository.work().display().to_string();
    let server = ["--server", &hub.server];
    let commands: [&[&str]; 8] = [
        &["--help"],
        &["get", "--help"],
        &["get", "all", "-o", "json", server[0], server[1]],
        &["get", "all", server[0], server[1]],
        &["get", "sub", "-o", "yaml", server[0], server[1]],
        &["status", server[0], server[1]],
        &["plan", "--repository", &work],
        &["plan", "--repository", &work, "-o", "json"],
    ];
    for arguments in commands {
        let mut command = flotilla();
        command.args(arguments);
        let (code, said) = cut(command);
        assert!(!said.contains("panicked"), "{arguments:?}: {said}");
        assert!(code.is_some_and(|code| code < 3), "{arguments:?}: {code:?} {said}");
    }
    // Also where nobody reads what is said beside the data.
    let mut command = Command::new("sh");
    let line = format!(
        "'{}' get nothing {} 2>&1 >/dev/null | true",
        binary("flotilla").display(),
        server.join(" ")
    );
    command.args(["-c", &line]);
    assert_eq!(cut(command).0, Some(0));
}

#[test]
fn no_tool_is_needed_to_look() {
    let hub = Hub::start();
    let work = hub.repository.work().display().to_string();
    let bare = |arguments: &[&str]| {
        let mut command = Command::new(binary("flotilla"));
        command.env_clear().env("PATH", "/nonexistent").args(arguments);
        flotilla_tests::Output::of(&mut command)
    };
    hub.repository.git(&["fetch", "--quiet"]);
    let plan = bare(&["plan", "--repository", &work]);
    assert_eq!(plan.code(), Some(0), "{plan:?}");
    hub.repository.write(
        "feeds/web.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: new, namespace: shop}\n",
    );
    hub.repository.commit("another");
    let plan = bare(&["plan", "--repository", &work]);
    assert_eq!(plan.code(), Some(1), "{plan:?}");
    assert!(plan.stdout.contains("new"), "{plan:?}");
    let get = bare(&["get", "sub", "--server", &hub.server]);
    assert_eq!(get.code(), Some(0), "{get:?}");
    let sibling = bare(&["pedia", "--no-such-flag"]);
    assert!(sibling.code().is_some_and(|code| code > 0), "{sibling:?}");
}

#[test]
fn long_work_is_told_on_a_terminal_alone() {
    let hub = Hub::start();
    let work = hub.repository.work().display().to_string();
    let plan = format!("'{}' plan --repository '{work}'", binary("flotilla").display());
    // `script` gives the command a terminal.
    let on_terminal = Command::new("script")
        .args(["--quiet", "--command", &plan, "/dev/null"])
        .stdin(Stdio::null())
        .output()
        .expect("script is part of every Linux");
    let said = String::from_utf8_lossy(&on_terminal.stdout).into_owned();
    assert!(said.contains("planning HEAD"), "{said}");
    let elsewhere = Command::new("sh")
        .args(["-c", &plan])
        .output()
        .expect("a shell is there");
    let said = String::from_utf8_lossy(&elsewhere.stderr).into_owned();
    assert!(!said.contains("planning HEAD"), "{said}");
}

#[test]
fn an_answer_that_cannot_be_written_is_no_success() {
    let hub = Hub::start();
    for what in ["get all -o json", "status"] {
        let line = format!(
            "'{}' {what} --server {} >/dev/full",
            binary("flotilla").display(),
            hub.server
        );
        let output = Command::new("sh")
            .args(["-c", &line])
            .output()
            .expect("a shell is there");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{what}: {said}");
        assert!(said.contains("No space left"), "{what}: {said}");
    }
}

#[test]
fn a_clone_that_is_named_and_not_there_is_wrong_usage() {
    let hub = Hub::start();
    let mut command = flotilla();
    command.args(["reconcile", "--wait", "-C", "/nowhere", "--server", &hub.server]);
    let output = command.output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(64), "{said}");
    assert!(said.contains("/nowhere is no folder"), "{said}");
}
