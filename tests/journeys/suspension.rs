//! A suspension: what it names keeps its older revision until it is resumed, or until its time.

use flotilla_tests::{Flotilla, eventually, pool};

use super::still::{pass, until_connected};
use super::support::*;

const ALL: &[&str] = &pool::NAMES;

/// Runs a command in the work clone, as Ada, and pushes what it commits.
#[track_caller]
pub(super) fn act(fleet: &Fleet, arguments: &[&str]) -> String {
    let work = fleet.repository.work().display().to_string();
    fleet.repository.git(&["config", "user.name", "Ada"]);
    fleet.repository.git(&["config", "user.email", "ada@example.com"]);
    fleet.repository.git(&["branch", "--set-upstream-to=origin/main"]);
    let output = Flotilla::run(&[arguments, &["-C", &work, "--push"]].concat());
    output.expect_ok().trim().to_owned()
}

fn greet(fleet: &Fleet, text: &str) -> String {
    fleet.push(
        "Greet otherwise",
        &[("feeds/web/greeting.yaml", &config_map(GREETING.0, GREETING.1, text))],
    )
}

/// The condition Suspended of shop/web, as the hub says it.
fn suspended(fleet: &Fleet) -> Option<String> {
    let shown = Flotilla::run(&[
        "get",
        "subscriptions",
        "web",
        "-n",
        "shop",
        "-o",
        "json",
        "--server",
        &fleet.api(),
    ]);
    let shown: serde_json::Value = serde_json::from_str(&shown.stdout).ok()?;
    let conditions = shown["status"]["conditions"].as_array()?;
    let found = conditions.iter().find(|condition| condition["type"] == "Suspended")?;
    Some(found["message"].as_str()?.to_owned())
}

#[track_caller]
fn until_suspended(fleet: &Fleet, expected: Option<&str>) {
    eventually(LIMIT, "the hub says what is suspended", || {
        let found = suspended(fleet);
        (found.as_deref() == expected).then_some(()).ok_or(format!("{found:?}"))
    });
}

#[test]
fn what_is_suspended_keeps_its_revision_over_a_restart_until_it_is_resumed() {
    let mut fleet = Fleet::start_in_use();
    act(&fleet, &["suspend", "shop/web", "--reason", "fair"]);
    until_suspended(&fleet, Some("by policies/suspend-shop-web.yaml:1 (fair)"));
    greet(&fleet, "good evening");
    // The neighbour moves on, and shows that the push was released as far as it may be.
    fleet.push(
        "Rule",
        &[("feeds/office/rules.yaml", &config_map(RULES.0, RULES.1, "some"))],
    );
    fleet.until_text(ALL, RULES, "some");
    for cluster in ALL {
        assert_eq!(
            fleet.text(cluster, GREETING).as_deref(),
            Some("hello"),
            "{cluster} keeps the older one"
        );
    }
    assert_verified(&fleet.repository);
    let status = Flotilla::run(&["status", "--server", &fleet.api()]);
    assert!(status.stdout.contains("Suspended"), "{status:?}");
    assert!(
        status
            .stdout
            .contains("suspended by policies/suspend-shop-web.yaml:1 (fair)"),
        "{status:?}"
    );

    fleet.kill_hub();
    fleet.start_hub(&[]);
    until_connected(&fleet);
    pass(std::time::Duration::from_secs(2));
    for cluster in ALL {
        assert_eq!(
            fleet.text(cluster, GREETING).as_deref(),
            Some("hello"),
            "{cluster} keeps it over the restart"
        );
    }
    let resumed = act(&fleet, &["resume", "shop/web"]);
    let work = fleet.repository.work().display().to_string();
    let ready = Flotilla::run(&[
        "reconcile",
        "shop/web",
        "-C",
        &work,
        "--within",
        "60",
        "--server",
        &fleet.api(),
    ]);
    assert_eq!(ready.expect_ok().trim(), format!("shop/web is ready at {resumed}"));
    for cluster in ALL {
        assert_eq!(
            fleet.text(cluster, GREETING).as_deref(),
            Some("good evening"),
            "{cluster} has it by then"
        );
    }
    until_suspended(&fleet, None);
    assert_verified(&fleet.repository);
}

#[test]
fn a_suspended_cluster_is_left_alone_and_its_suspension_ends_at_its_time() {
    let fleet = Fleet::start_in_use();
    let output =
        flotilla_tests::Output::of(std::process::Command::new("date").args(["-u", "-d", "+8 seconds", "+%FT%TZ"]));
    let until = output.expect_ok().trim().to_owned();
    act(&fleet, &["suspend", "--cluster", "bogota", "--until", &until]);
    greet(&fleet, "good night");
    fleet.until_text(&["amsterdam", "colombo"], GREETING, "good night");
    // A new unit is not delivered there either.
    fleet.push(
        "Open a bar",
        &[
            ("subscriptions/shop/bar.yaml", &subscription("shop", "bar")),
            ("feeds/bar/menu.yaml", &config_map("shop", "menu", "tea")),
        ],
    );
    fleet.until_text(&["amsterdam", "colombo"], ("shop", "menu"), "tea");
    assert_eq!(fleet.text("bogota", ("shop", "menu")), None);
    assert_eq!(fleet.text("bogota", GREETING).as_deref(), Some("hello"));
    // Nobody pushes: the hub wakes by itself.
    fleet.until_text(&["bogota"], GREETING, "good night");
    fleet.until_text(&["bogota"], ("shop", "menu"), "tea");
}

/// Changes the text of a ConfigMap by hand.
#[track_caller]
fn change_by_hand(fleet: &Fleet, cluster: &str, (namespace, name): (&str, &str), text: &str) {
    let patch = format!("{{\"data\": {{\"text\": \"{text}\"}}}}");
    let arguments = [
        "patch",
        "configmap",
        name,
        "-n",
        namespace,
        "--type=merge",
        "-p",
        &patch,
    ];
    fleet.cluster(cluster).kubectl(&arguments).expect_ok();
}

/// What a placement of shop/web says of its objects.
fn objects(fleet: &Fleet, cluster: &str) -> serde_json::Value {
    let name = format!("web.{cluster}");
    let shown = Flotilla::run(&[
        "get",
        "placements",
        &name,
        "-n",
        "shop",
        "-o",
        "json",
        "--server",
        &fleet.api(),
    ]);
    let shown: serde_json::Value = serde_json::from_str(&shown.stdout).unwrap_or_default();
    shown["status"]["objects"].clone()
}

#[track_caller]
fn until_objects(fleet: &Fleet, cluster: &str, suspended: u64, behind: Option<u64>) {
    eventually(LIMIT, "the placement counts what is suspended", || {
        let found = objects(fleet, cluster);
        let fits = found["suspended"].as_u64() == Some(suspended) && found["behind"].as_u64() == behind;
        fits.then_some(()).ok_or(format!("{found}"))
    });
}

#[test]
fn a_suspended_object_is_left_alone_while_the_rest_follows_until_it_is_resumed() {
    let mut fleet = Fleet::start_in_use();
    let object = ["--object", "ConfigMap/greeting", "-n", "shop"];
    act(&fleet, &[&["suspend"][..], &object, &["--reason", "audit"]].concat());
    let by = "suspended by Suspension object.configmap.shop.greeting (audit)";
    until_suspended(
        &fleet,
        Some(&format!("1 of 3 objects, such as ConfigMap shop/greeting: {by}")),
    );
    until_objects(&fleet, "amsterdam", 1, None);

    // Changed in Git, and by hand: nothing happens to it, and everything else follows.
    fleet.push(
        "Greet and part otherwise",
        &[
            (
                "feeds/web/greeting.yaml",
                &config_map(GREETING.0, GREETING.1, "good evening"),
            ),
            ("feeds/web/farewell.yaml", &config_map(FAREWELL.0, FAREWELL.1, "adieu")),
        ],
    );
    fleet.until_text(ALL, FAREWELL, "adieu");
    change_by_hand(&fleet, "amsterdam", GREETING, "mine");
    change_by_hand(&fleet, "amsterdam", FAREWELL, "mine");
    fleet.until_text(&["amsterdam"], FAREWELL, "adieu");
    until_objects(&fleet, "amsterdam", 1, Some(1));
    let explained = Flotilla::run(&["explain", "shop/web", "--server", &fleet.api()]).expect_ok();
    for words in [
        "suspended: 1 of 3 objects, 1 of them not as Git says",
        "ConfigMap shop/greeting is Suspended: ",
        by,
    ] {
        assert!(explained.contains(words), "{words} is not in:\n{explained}");
    }
    let work = fleet.repository.work().display().to_string();
    let reconcile = [
        "reconcile",
        "shop/web",
        "-C",
        &work,
        "--within",
        "60",
        "--server",
        &fleet.api(),
    ];
    let ready = Flotilla::run(&reconcile).expect_ok();
    assert!(ready.contains("; left as they are: 1 of 3 objects"), "{ready}");

    fleet.kill_hub();
    fleet.kill_agent("amsterdam");
    fleet.start_hub(&[]);
    fleet.start_agent("amsterdam");
    until_connected(&fleet);
    fleet.push(
        "Part again",
        &[("feeds/web/farewell.yaml", &config_map(FAREWELL.0, FAREWELL.1, "ciao"))],
    );
    fleet.until_text(ALL, FAREWELL, "ciao");
    pass(std::time::Duration::from_secs(2));
    let texts: Vec<_> = ALL.iter().map(|cluster| fleet.text(cluster, GREETING)).collect();
    let expected = ["mine", "hello", "hello"].map(|text| Some(text.to_owned()));
    assert_eq!(texts, expected, "it is left as it is, over the restarts as well");
    assert_verified(&fleet.repository);

    act(&fleet, &[&["resume"][..], &object].concat());
    fleet.until_text(ALL, GREETING, "good evening");
    until_suspended(&fleet, None);
    until_objects(&fleet, "amsterdam", 0, None);
}
