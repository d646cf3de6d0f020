//! `fleet-bench` speaks the form that its readers expect. What it measures is not judged here.

use std::process::Command;

use flotilla_tests::Output;
use serde_json::Value;

fn fleet_bench(arguments: &[&str]) -> Output {
    Output::of(Command::new(env!("CARGO_BIN_EXE_fleet-bench")).args(arguments))
}

#[test]
fn every_figure_is_one_line_of_json() {
    let lines = fleet_bench(&["machine"]).expect_ok();
    let figures: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(figures.len(), 1, "{lines}");
    assert_eq!(
        (&figures[0]["bench"], &figures[0]["figure"]),
        (&"machine".into(), &"calibration".into())
    );
    assert!(figures[0]["value"].as_f64().is_some_and(|value| value > 0.0), "{lines}");
    assert_eq!(figures[0]["unit"], "ms");
}

#[test]
fn an_unknown_bench_is_wrong_usage() {
    for arguments in [&["no-such-bench"][..], &[]] {
        let output = fleet_bench(arguments);
        assert_eq!(output.code(), Some(64), "{arguments:?}");
        assert!(output.stdout.is_empty(), "figures alone go to standard output");
        assert!(!output.stderr.is_empty(), "the reason goes to standard error");
    }
}
