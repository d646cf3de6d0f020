//! `cordon`, `drain` and `uncordon`: what they write into a cluster's file, and what they leave as it is.

use super::Work;

const PARIS: &str = "# Both by the river.
apiVersion: fleet.flotilla.dev/v1alpha1
kind: ManagedCluster
metadata: {name: paris}
spec:
  # As its owner calls it.
  clusterId: seine # for now
---
apiVersion: fleet.flotilla.dev/v1alpha1
kind: ManagedCluster
metadata: {name: rouen}
spec: {taints: [{key: gpu, effect: NoSchedule}]}
";

fn two_more() -> Work {
    let work = Work::new();
    work.repository.write("sites/west/river.yaml", PARIS);
    work.repository.commit("Register two more");
    work
}

#[test]
fn a_drained_cluster_is_as_it_was_once_it_is_uncordoned() {
    let work = two_more();
    let tree = work.git(&["rev-parse", "HEAD^{tree}"]);
    work.run(&["drain", "paris", "rouen", "--reason", "repair"]).expect_ok();
    assert_eq!(work.changed(), ["M sites/west/river.yaml"]);
    let text = work.git(&["show", "HEAD:sites/west/river.yaml"]);
    let expected = PARIS
        .replace(
            "spec:\n",
            "spec:
  taints:
    - key: fleet.flotilla.dev/cordoned
      value: repair
      effect: NoSchedule
    - key: fleet.flotilla.dev/drained
      value: repair
      effect: NoExecute
",
        )
        .replace(
            "NoSchedule}]",
            "NoSchedule}, {key: fleet.flotilla.dev/cordoned, value: repair, effect: NoSchedule}, \
             {key: fleet.flotilla.dev/drained, value: repair, effect: NoExecute}]",
        );
    assert_eq!(text + "\n", expected);
    let plan = work.run(&["plan", "-o", "json"]);
    assert!(
        plan.stdout.contains("\"findings\": []"),
        "the hub will read it: {plan:?}"
    );
    work.run(&["uncordon", "rouen", "paris"]).expect_ok();
    assert_eq!(work.git(&["rev-parse", "HEAD^{tree}"]), tree, "nothing is left of it");
    assert_eq!(
        work.git(&["log", "--format=%s", "-2"]),
        "Uncordon paris, rouen\nDrain paris, rouen"
    );
}

#[test]
fn what_is_so_already_is_no_commit() {
    let work = two_more();
    let again = |arguments: &[&str], words: &str| {
        let head = work.head();
        let output = work.run(arguments);
        assert!(output.stderr.contains(words), "{output:?}");
        assert_eq!((output.code(), work.head()), (Some(0), head));
    };
    again(&["uncordon", "oslo"], "oslo is open already; there is nothing to do.");
    work.run(&["cordon", "oslo"]).expect_ok();
    again(&["cordon", "oslo"], "oslo is cordoned already");
    work.run(&["drain", "oslo"]).expect_ok();
    again(&["cordon", "oslo"], "oslo is cordoned already");
    again(&["drain", "oslo"], "oslo is drained already");
    work.run(&["drain", "oslo", "paris"]).expect_ok();
    assert_eq!(
        work.git(&["log", "--format=%s", "-1"]),
        "Drain paris",
        "only what changes is named"
    );
}

#[test]
fn a_dry_run_shows_the_diff_and_changes_nothing() {
    let work = two_more();
    let head = work.head();
    let output = work.run(&["drain", "oslo", "--dry-run"]);
    assert_eq!(output.code(), Some(0), "{output:?}");
    assert!(
        output.stdout.contains("+    - key: fleet.flotilla.dev/drained"),
        "{output:?}"
    );
    assert_eq!(work.head(), head);
    assert_eq!(work.git(&["status", "--porcelain"]), "");
}

#[test]
fn a_dry_run_refuses_what_the_real_one_does() {
    let work = two_more();
    let text = format!("{PARIS}# not committed\n");
    work.repository.write("sites/west/river.yaml", &text);
    for mode in [&["--dry-run"][..], &[]] {
        work.refuses(
            &[&["drain", "paris"][..], mode].concat(),
            "sites/west/river.yaml has changes that are not committed",
        );
    }
}

#[test]
fn a_drain_says_what_the_plan_makes_of_it() {
    let work = two_more();
    let output = work.run(&["drain", "oslo"]);
    assert_eq!(output.code(), Some(0), "{output:?}");
    assert!(output.stderr.contains("The plan: "), "{output:?}");
}

#[test]
fn what_cannot_be_drained_is_refused_in_words() {
    let work = two_more();
    work.refuses(
        &["drain", "pariss"],
        "there is no cluster pariss; there are: oslo, paris, rouen\nhint: did you mean paris?",
    );
    work.refuses(&["cordon", "oslo", "lyon"], "there is no cluster lyon");
    let usage = work.run(&["drain"]);
    assert_eq!(usage.code(), Some(64), "{usage:?}");
    let reason = work.run(&["drain", "oslo", "--reason", "new roof"]);
    assert_eq!(reason.code(), Some(64), "{reason:?}");
    assert!(
        reason.stderr.contains("the value of a taint: letters, digits"),
        "{reason:?}"
    );
    work.repository
        .write("sites/west/river.yaml", PARIS.replace("for now", "for good"));
    work.refuses(
        &["drain", "paris"],
        "sites/west/river.yaml has changes that are not committed",
    );
    work.git(&["checkout", "-q", "--", "."]);
    let anchored = PARIS.replace("spec: {taints: [", "spec: {taints: &ours [");
    work.repository.write("sites/west/river.yaml", anchored);
    work.repository.commit("Name the list");
    work.refuses(
        &["cordon", "rouen"],
        "sites/west/river.yaml:9 is written in a way that cannot be edited without touching the rest; put into its \
         spec.taints: {key: \"fleet.flotilla.dev/cordoned\", effect: \"NoSchedule\"}",
    );
}
