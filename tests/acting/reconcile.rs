//! `reconcile`: what it waits for, and what it says when that does not come.

use super::{Hub, Work};

#[test]
fn it_asks_and_goes_or_waits_for_the_newest_commit() {
    let work = Work::new();
    let hub = Hub::start(&work);
    let server = ["--server", &hub.api];
    let asked = work.run(&[&["reconcile"][..], &server].concat());
    assert_eq!(
        (asked.code(), asked.stderr.as_str()),
        (Some(0), "The hub looks at its repositories now.\n")
    );
    let done = work.run(&[&["reconcile", "--wait"][..], &server].concat()).expect_ok();
    assert_eq!(done.trim(), format!("{} is accepted", work.head()));

    work.git(&["branch", "--set-upstream-to=origin/main"]);
    work.repository.write("notes.txt", "one");
    let head = work.repository.commit("Note");
    work.refuses(
        &[&["reconcile", "--wait"][..], &server].concat(),
        &format!("{head} is not pushed; git push"),
    );
    work.repository.push();
    let done = work
        .run(&[&["reconcile", "--wait", "--within", "60"][..], &server].concat())
        .expect_ok();
    assert_eq!(done.trim(), format!("{head} is accepted"));
    let elsewhere = flotilla_tests::scratch::folder("elsewhere").display().to_string();
    let done = work
        .run(&[&["reconcile", "--wait", "-C", &elsewhere][..], &server].concat())
        .expect_ok();
    assert_eq!(
        done.trim(),
        format!("{head} is accepted"),
        "without a clone, what the hub sees"
    );
}

#[test]
fn it_says_what_holds_a_unit_that_does_not_become_ready() {
    let work = Work::new();
    let hub = Hub::start(&work);
    let run = |more: &[&str]| work.run(&[&["reconcile", "--server", &hub.api], more].concat());
    let late = run(&["shop/web", "--within", "2"]);
    assert_eq!(late.code(), Some(1));
    assert!(
        late.stderr.contains("error: not within 2 s: shop/web: Applied"),
        "nobody serves oslo: {late:?}"
    );
    let missing = run(&["shop/wbe"]);
    assert!(
        missing.stderr.contains("there is no Subscription shop/wbe at"),
        "{missing:?}"
    );
    work.run(&["suspend", "shop/web"]).expect_ok();
    work.repository.write(
        "feeds/web/greeting.yaml",
        format!("{}data: {{a: b}}\n", super::FILES[3].1),
    );
    work.repository.commit("Greet otherwise");
    work.repository.push();
    let held = run(&["shop/web", "--within", "60"]);
    assert_eq!(held.code(), Some(1));
    assert!(
        held.stderr
            .contains("error: shop/web: Released: suspended by policies/suspend-shop-web.yaml:1"),
        "{held:?}"
    );
    let nobody = format!("http://127.0.0.1:{}", flotilla_tests::ports::free());
    let output = work.run(&["reconcile", "--server", &nobody]);
    assert_eq!(output.code(), Some(69), "{output:?}");
}
