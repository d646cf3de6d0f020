//! `accept-rewrite`: what it shows, what it asks, and that the hub believes what it wrote.

use super::{Hub, Work};

/// Replaces the newest commit by another and pushes that. Returns both.
fn rewrite(work: &Work) -> (String, String) {
    work.repository.write(
        "feeds/web/extra.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: shop, name: extra}\n",
    );
    let old = work.repository.commit("Add extra");
    work.repository.push();
    work.git(&["reset", "--quiet", "--hard", "HEAD~1"]);
    work.repository.write(
        "feeds/web/other.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: shop, name: other}\n",
    );
    (old, work.repository.commit("Add other"))
}

#[test]
fn a_rewritten_history_is_shown_accepted_and_followed() {
    let work = Work::new();
    let hub = Hub::start(&work);
    let (old, _) = rewrite(&work);
    let server = ["--server", &hub.api];
    hub.until_accepted(&work, &old);
    work.repository.force_push();
    hub.until(&work, "HistoryRewritten");
    work.git(&["fetch", "--quiet"]);
    work.git(&["branch", "--set-upstream-to=origin/main"]);

    let stuck = work.run(&[&["reconcile", "--wait"][..], &server].concat());
    assert_eq!(stuck.code(), Some(1));
    assert!(stuck.stderr.contains("flotilla accept-rewrite"), "{stuck:?}");

    work.refuses(
        &[&["accept-rewrite"][..], &server].concat(),
        "nobody is here to be asked",
    );
    let shown = work.run(&[&["accept-rewrite", "--dry-run"][..], &server].concat());
    for words in [
        "Lost: 1 commit\n",
        "Add extra",
        "Gained: 1 commit\n",
        "Add other",
        "The plan: 1 unit changes on 1 cluster",
    ] {
        assert!(shown.stderr.contains(words), "{words:?} is not in {}", shown.stderr);
    }
    work.run(&[&["accept-rewrite", "--yes", "--push"][..], &server].concat())
        .expect_ok();
    assert_eq!(
        work.git(&["log", "-1", "--format=%(trailers:key=Accept-Rewrite,valueonly)"]),
        old
    );
    assert_eq!(work.changed(), [] as [String; 0], "it changes no file");
    let done = work
        .run(&[&["reconcile", "--wait", "--within", "60"][..], &server].concat())
        .expect_ok();
    assert_eq!(done.trim(), format!("{} is accepted", work.head()));
    let again = work.run(&[&["accept-rewrite"][..], &server].concat());
    assert!(again.stderr.contains("there is nothing to accept"), "{again:?}");
    assert_eq!(again.code(), Some(0));
}

#[test]
fn without_a_hub_the_old_head_is_named() {
    let work = Work::new();
    let first = work.head();
    let (old, new) = rewrite(&work);
    work.refuses(
        &["accept-rewrite", "--yes", "--old", &first],
        "so its history is not rewritten",
    );
    work.refuses(
        &["accept-rewrite", "--yes", "--old", &new],
        "so its history is not rewritten",
    );
    let nobody = format!("http://127.0.0.1:{}", flotilla_tests::ports::free());
    let output = work.run(&["accept-rewrite", "--yes", "--server", &nobody]);
    assert_eq!(output.code(), Some(69));
    assert!(
        output
            .stderr
            .contains("name the head that was accepted before with --old"),
        "{output:?}"
    );
    work.run(&["accept-rewrite", "--yes", "--old", &old]).expect_ok();
    assert!(
        work.git(&["log", "-1", "--format=%B"])
            .ends_with(&format!("Accept-Rewrite: {old}"))
    );
    let unknown = "0123456789012345678901234567890123456789";
    let output = work.run(&["accept-rewrite", "--dry-run", "--old", unknown]);
    assert!(
        output
            .stderr
            .contains("is not in this clone, so what is lost cannot be shown"),
        "{output:?}"
    );
}

#[test]
fn what_is_accepted_is_what_the_hub_sees() {
    let work = Work::new();
    let hub = Hub::start(&work);
    let (old, _) = rewrite(&work);
    hub.until_accepted(&work, &old);
    work.repository.force_push();
    hub.until(&work, "HistoryRewritten");
    work.git(&["reset", "--quiet", "--hard", "HEAD~1"]);
    let server = ["--server", &hub.api];
    work.refuses(
        &[&["accept-rewrite", "--yes"][..], &server].concat(),
        "on which HEAD does not build",
    );
    work.git(&["switch", "--quiet", "--create", "other"]);
    work.refuses(
        &[&["accept-rewrite", "--yes"][..], &server].concat(),
        "the hub follows main, and other is checked out here",
    );
}
