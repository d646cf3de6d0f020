//! The built `flotilla-edge`, run as people run it.
#![expect(clippy::unwrap_used, reason = "tests: a value that is not there is a failure")]

use std::process::{Command, Output};

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_flotilla-edge"))
        .args(arguments)
        .output()
        .unwrap()
}

#[test]
fn help_says_what_it_will_do_and_that_it_does_not_yet() {
    let output = run(&["--help"]);
    assert_eq!(output.status.code(), Some(0));
    let help = String::from_utf8(output.stdout).unwrap();
    assert!(help.contains("This version has the door alone"), "{help}");
}

#[test]
fn without_help_it_refuses_and_says_where_to_look() {
    for arguments in [&[][..], &["serve"]] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(64), "{arguments:?}");
        assert!(output.stdout.is_empty(), "data alone goes to standard output");
        assert!(
            String::from_utf8(output.stderr).unwrap().contains("--help"),
            "{arguments:?}"
        );
    }
}
