//! Plans as they are read, as golden files.

use std::fs;
use std::path::Path;
use std::process::Command;

use clap::Parser as _;
use render::plan::Change;

use super::*;

/// A clone in a folder of its own.
struct Clone(tempfile::TempDir);

impl Clone {
    fn new() -> Self {
        let clone = Self(tempfile::tempdir().expect("a temporary folder can be made"));
        clone.git(&["init", "--quiet", "--initial-branch=main"]);
        clone
    }

    fn git(&self, arguments: &[&str]) {
        let mut command = Command::new("git");
        command.current_dir(self.0.path()).args(arguments);
        for role in ["AUTHOR", "COMMITTER"] {
            // The same commit whenever a test runs: its id stands in the golden files.
            command.env(format!("GIT_{role}_NAME"), "Ada");
            command.env(format!("GIT_{role}_EMAIL"), "ada@example.com");
            command.env(format!("GIT_{role}_DATE"), "1700000000 +0000");
        }
        command
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_SYSTEM", "/dev/null");
        let output = command.output().expect("git starts");
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().expect("a file is in a folder")).expect("it is writable");
        fs::write(path, text).expect("it is writable");
    }

    fn commit(&self) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message", "a change"]);
    }

    fn shown(&self, from: &str, to: &str) -> Shown {
        let arguments = self.arguments(&["--from", from, "--to", to]);
        compare::shown(&arguments.revisions, &Rooms::unknown()).expect("both revisions can be read")
    }

    fn arguments(&self, more: &[&str]) -> PlanArguments {
        #[derive(clap::Parser)]
        struct Alone {
            #[command(flatten)]
            arguments: PlanArguments,
        }
        let folder = self.0.path().display().to_string();
        let arguments = [&["plan", "--repository", &folder][..], more].concat();
        let alone = Alone::try_parse_from(arguments).expect("the arguments are right");
        alone.arguments
    }
}

fn cluster(name: &str, env: &str) -> String {
    format!(
        "apiVersion: fleet.flotilla.dev/v1alpha1\nkind: ManagedCluster\nmetadata: {{name: {name}, labels: {{env: {env}}}}}\n"
    )
}

fn subscription(name: &str, env: &str) -> String {
    format!(
        "apiVersion: fleet.flotilla.dev/v1alpha1\nkind: Subscription\nmetadata: {{name: {name}, namespace: shop}}\n\
         spec:\n  subscribers: [{{clusterAffinity: {{matchLabels: {{env: {env}}}}}}}]\n  feeds: [{{path: 'feeds/{name}/**'}}]\n"
    )
}

fn object(kind: &str, name: &str, data: &str) -> String {
    format!("apiVersion: v1\nkind: {kind}\nmetadata: {{name: {name}, namespace: shop}}\n{data}\n")
}

/// Twelve clusters, and a change that changes, adds, removes, moves and breaks something.
fn story() -> Clone {
    let clone = Clone::new();
    clone.write(
        "fleet.yaml",
        "apiVersion: fleet.flotilla.dev/v1alpha1\nkind: Fleet\nmetadata: {name: fleet}\nspec: {plaintextSecrets: warn}\n",
    );
    for index in 0..12 {
        clone.write(
            &format!("clusters/c{index:02}.yaml"),
            &cluster(&format!("c{index:02}"), "prod"),
        );
    }
    clone.write("clusters/t.yaml", &cluster("t", "test"));
    for (name, env) in [("web", "prod"), ("old", "test"), ("broken", "prod"), ("moved", "prod")] {
        clone.write(&format!("subscriptions/{name}.yaml"), &subscription(name, env));
    }
    clone.write(
        "feeds/web/a.yaml",
        &object("ConfigMap", "a", "data: {colour: red, gone: \"1\"}"),
    );
    clone.write("feeds/web/b.yaml", &object("ConfigMap", "b", "data: {}"));
    clone.write(
        "feeds/web/s.yaml",
        &object("Secret", "s", "stringData: {password: hunter1}"),
    );
    clone.write("feeds/old/o.yaml", &object("ConfigMap", "o", "data: {}"));
    clone.write("feeds/broken/x.yaml", &object("ConfigMap", "x", "data: {}"));
    clone.write("feeds/moved/m.yaml", &object("ConfigMap", "m", "data: {}"));
    clone.commit();
    clone.write(
        "feeds/web/a.yaml",
        &object("ConfigMap", "a", "data: {colour: blue, \"```\": new}"),
    );
    clone.git(&["rm", "--quiet", "feeds/web/b.yaml", "subscriptions/old.yaml"]);
    clone.write(
        "feeds/web/s.yaml",
        &object("Secret", "s", "stringData: {password: hunter2}"),
    );
    clone.write("feeds/web/new.yaml", &object("ConfigMap", "new", "data: {}"));
    clone.write("feeds/broken/x.yaml", "kind: [\n");
    clone.write("subscriptions/moved.yaml", &subscription("moved", "test"));
    clone.write(
        "localizations/c03.yaml",
        "apiVersion: fleet.flotilla.dev/v1alpha1\nkind: Localization\nmetadata: {name: tint, namespace: c03}\nspec:\n  \
         feed: {apiVersion: v1, kind: ConfigMap, namespace: shop, name: a}\n  overrides:\n    \
         - {name: tint, type: MergePatch, value: 'data: {colour: green}'}\n",
    );
    clone.commit();
    clone
}

#[track_caller]
fn golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("src/cli/plan/golden")
        .join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::create_dir_all(path.parent().expect("a file is in a folder")).expect("the golden folder is writable");
        fs::write(&path, text).expect("the golden file is writable");
    }
    let expected = fs::read_to_string(&path).expect("the golden file is there; UPDATE_GOLDEN=1 writes it");
    assert_eq!(text, expected, "{name} differs; UPDATE_GOLDEN=1 rewrites it");
}

#[test]
fn a_plan_reads_well_in_every_form() {
    let shown = story().shown("HEAD~1", "HEAD");
    golden("plan.txt", &text::text(&shown, false));
    golden("plan-coloured.txt", &text::text(&shown, true));
    golden("plan.md", &markdown::markdown(&shown));
    let json = serde_json::to_value(&shown).expect("a plan is JSON");
    golden("plan.json", &output::json(&json));
    for form in [text::text(&shown, true), markdown::markdown(&shown), json.to_string()] {
        assert!(!form.contains("hunter"), "no value of a Secret is told: {form}");
    }
}

#[test]
fn what_a_suspension_keeps_from_clusters_is_said_at_its_unit() {
    let clone = Clone::new();
    for name in ["a", "b"] {
        clone.write(&format!("clusters/{name}.yaml"), &cluster(name, "prod"));
    }
    for name in ["web", "api"] {
        clone.write(&format!("subscriptions/{name}.yaml"), &subscription(name, "prod"));
        clone.write(
            &format!("feeds/{name}/a.yaml"),
            &object("ConfigMap", name, "data: {x: \"1\"}"),
        );
    }
    clone.commit();
    for name in ["web", "api"] {
        clone.write(
            &format!("feeds/{name}/a.yaml"),
            &object("ConfigMap", name, "data: {x: \"2\"}"),
        );
    }
    let held = |name: &str, spec: &str| {
        let text = format!(
            "apiVersion: fleet.flotilla.dev/v1alpha1\nkind: Suspension\nmetadata: {{name: {name}}}\nspec: {spec}\n"
        );
        clone.write(&format!("policies/{name}.yaml"), &text);
    };
    held(
        "web",
        "{subscription: {namespace: shop, name: web}, reason: \"fair\\e[2J\"}",
    );
    held("b", "{subscription: {namespace: shop, name: api}, clusters: [b]}");
    held("over", "{clusterAffinity: {}, until: 2020-01-01T00:00:00Z}");
    clone.commit();
    let shown = clone.shown("HEAD~1", "HEAD");
    let text = text::text(&shown, false);
    let markdown = markdown::markdown(&shown);
    for line in ["held by policies/web.yaml:1 (fair", "held on b by policies/b.yaml:1"] {
        assert!(text.contains(&format!("\n  {line}")), "{line} is not in {text}");
        assert!(markdown.contains(&format!("\n# {line}")), "{line} is not in {markdown}");
    }
    assert!(!text.contains("over.yaml"), "its time is over: {text}");
    assert!(!text.contains('\u{1b}'), "{text:?}");
    let json = serde_json::to_value(&shown).expect("a plan is JSON");
    assert_eq!(json["units"][0]["held"][0]["clusters"], json!(["b"]), "{json:#}");
}

#[test]
fn what_moves_stays_or_cannot_change_is_told_as_that() {
    let clone = Clone::new();
    clone.write("clusters/a.yaml", &cluster("a", "prod"));
    let job = |image: &str| {
        format!(
            "apiVersion: batch/v1\nkind: Job\nmetadata: {{name: j, namespace: shop}}\n\
             spec: {{template: {{spec: {{restartPolicy: Never, containers: [{{name: j, image: {image}}}]}}}}}}\n"
        )
    };
    for (name, more) in [
        ("first", ""),
        ("orphan", "  deletionPolicy: Orphan\n"),
        ("frozen", "  drift: {mode: Freeze}\n"),
        ("anew", "  replace: WhenImmutable\n"),
        ("stays", ""),
    ] {
        let text = subscription(name, "prod") + more;
        clone.write(&format!("subscriptions/{name}.yaml"), &text);
    }
    clone.write("feeds/first/a.yaml", &object("ConfigMap", "a", "data: {x: \"1\"}"));
    clone.write("feeds/orphan/o.yaml", &object("ConfigMap", "o", "data: {}"));
    for (name, namespace) in [("frozen", "cold"), ("anew", "new"), ("stays", "old")] {
        clone.write(
            &format!("feeds/{name}/j.yaml"),
            &job("web:1").replace("namespace: shop", &format!("namespace: {namespace}")),
        );
    }
    clone.commit();
    clone.git(&["mv", "subscriptions/first.yaml", "subscriptions/second.yaml"]);
    clone.write(
        "subscriptions/second.yaml",
        &subscription("first", "prod").replace("name: first", "name: second"),
    );
    clone.git(&["rm", "--quiet", "subscriptions/orphan.yaml"]);
    for (name, namespace) in [("frozen", "cold"), ("anew", "new"), ("stays", "old")] {
        clone.write(
            &format!("feeds/{name}/j.yaml"),
            &job("web:2").replace("namespace: shop", &format!("namespace: {namespace}")),
        );
    }
    clone.commit();
    let shown = clone.shown("HEAD~1", "HEAD");
    golden("settled.txt", &text::text(&shown, false));
    let findings: Vec<_> = shown
        .findings
        .iter()
        .map(|finding| in_sight(finding).to_string())
        .collect();
    golden("settled-findings.txt", &(findings.join("\n") + "\n"));
    let json = serde_json::to_value(&shown).expect("a plan is JSON");
    assert_eq!(
        json["summary"]["removedObjects"],
        json!(0),
        "nothing is removed: {json:#}"
    );
    let drift = |unit: &str| {
        let units = json["units"].as_array().expect("units are listed");
        let unit = units.iter().find(|found| found["unit"] == unit).expect("it changes");
        unit["groups"][0]["drift"].clone()
    };
    assert_eq!(
        (drift("shop/frozen"), drift("shop/anew")),
        (json!("Freeze"), json!("Correct"))
    );
}

#[test]
fn what_changes_inside_a_chart_is_marked_as_predicted_or_said_to_be_unknown() {
    let clone = Clone::new();
    clone.write("clusters/a.yaml", &cluster("a", "prod"));
    clone.write("subscriptions/web.yaml", &subscription("web", "prod"));
    let chart = |replicas: u64| {
        format!(
            "apiVersion: fleet.flotilla.dev/v1alpha1\nkind: HelmChart\nmetadata: {{name: web, namespace: shop}}\nspec: {{repo: 'https://x', \
             chart: web, version: 1.0.0, targetNamespace: shop, values: {{replicas: {replicas}}}}}\n"
        )
    };
    clone.write("feeds/web/chart.yaml", &chart(1));
    clone.commit();
    clone.write("feeds/web/chart.yaml", &chart(2));
    clone.commit();
    let mut shown = clone.shown("HEAD~1", "HEAD");
    let arguments = clone.arguments(&["--server", "unix:/nowhere/flotilla.sock"]);
    let charts = std::mem::take(&mut shown.charts);
    let asked = wait_for(predicted::ask(
        &Questions::new(&arguments.server),
        arguments.helm,
        &charts,
    ));
    let mut alone = asked.expect("a runtime can be made").remove(&shown.units[0].unit);
    shown.units[0].predicted = alone.take().expect("the chart changes");
    let text = text::text(&shown, false);
    let line = "  ~ on a: chart web is not predicted: no hub answers at unix:/nowhere/flotilla.sock";
    assert!(text.contains(line), "{text}");
    let key = |name: &str| render::ObjectKey::new("v1", "ConfigMap", "shop", name);
    let change = |name: &str, change| render::plan::ObjectChange {
        object: key(name),
        change,
    };
    shown.units[0].predicted[0] = render::plan::PredictedChange {
        not_predicted: String::new(),
        objects: vec![change("gone", Change::Removed), change("new", Change::Added)],
        ..shown.units[0].predicted[0].clone()
    };
    let text = text::text(&shown, false);
    let lines = "  ~ on a: chart web is predicted to change\n      - ConfigMap shop/gone (predicted)\n      + ConfigMap shop/new (predicted)\n";
    assert!(text.contains(lines), "{text}");
    assert_eq!(
        shown.summary.removed_objects, 0,
        "what is only predicted counts nowhere"
    );
    let json = serde_json::to_value(&shown).expect("a plan is JSON");
    assert_eq!(
        json["units"][0]["predicted"][0]["objects"][0]["change"],
        json!("removed"),
        "{json:#}"
    );
}

#[test]
fn a_plan_without_changes_says_so() {
    let shown = story().shown("HEAD~1", "HEAD~1");
    let text = text::text(&shown, false);
    assert!(text.starts_with("Nothing changes; 1 warning.\n"), "{text}");
    let markdown = markdown::markdown(&shown);
    assert!(markdown.contains("**Nothing changes; 1 warning.**"), "{markdown}");
}

#[test]
fn a_comment_never_outgrows_its_place() {
    let clone = Clone::new();
    clone.write("clusters/a.yaml", &cluster("a", "prod"));
    clone.commit();
    for index in 0..400 {
        let name = format!("unit-{index:03}");
        clone.write(&format!("subscriptions/{name}.yaml"), &subscription(&name, "prod"));
        let data: String = (0..5)
            .map(|field| format!("---\n{}", object("ConfigMap", &format!("{name}-{field}"), "")))
            .collect();
        clone.write(&format!("feeds/{name}/a.yaml"), &data);
    }
    clone.commit();
    let text = markdown::markdown(&clone.shown("HEAD~1", "HEAD"));
    assert!(text.len() <= markdown::BYTES_MAX, "{}", text.len());
    assert!(
        text.contains("400 units change on 1 cluster"),
        "the summary counts all: {}",
        &text[..200]
    );
    assert!(text.contains("more units do not fit here"), "and the rest is counted");
    assert_eq!(text.matches("<details>").count(), text.matches("</details>").count());
}

#[test]
fn nothing_that_a_file_says_steers_the_reviewers_terminal() {
    let nasty = "a\u{1b}[2J\nb\u{9b}\u{202e}";
    let finding = Finding::error("X", nasty).at(nasty, 1).field(nasty).hint(nasty);
    let told = in_sight(&finding).to_string();
    let steers = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
    assert!(!told.chars().any(steers), "{told:?}");
    let clone = Clone::new();
    clone.write("clusters/a.yaml", &cluster("a", "prod"));
    clone.write("subscriptions/web.yaml", &subscription("web", "prod"));
    clone.write("feeds/web/a.yaml", &object("ConfigMap", "a", "data: {x: \"1\"}"));
    clone.commit();
    clone.write(
        "feeds/web/a.yaml",
        &object("ConfigMap", "a", "data: {x: \"a\\e[2J\\u202eb\", \"k\\e\": \"2\"}"),
    );
    clone.commit();
    let shown = clone.shown("HEAD~1", "HEAD");
    for form in [text::text(&shown, false), markdown::markdown(&shown)] {
        assert!(form.contains("/data/x"), "{form}");
        assert!(!form.chars().any(steers), "{form:?}");
    }
}

#[test]
fn what_is_not_committed_is_said_not_to_be_planned() {
    let clone = Clone::new();
    clone.write("a.yaml", "a: 1\n");
    clone.commit();
    let newest = clone.arguments(&[]);
    assert_eq!(newest.revisions.not_committed(), None);
    clone.write("a.yaml", "a: 2\n");
    assert_eq!(
        newest.revisions.not_committed().as_deref(),
        Some("1 file is not committed and is not in this plan")
    );
    clone.write("new/b.yaml", "b: 1\n");
    clone.write("new/c.yaml", "c: 1\n");
    assert_eq!(
        newest.revisions.not_committed().as_deref(),
        Some("3 files are not committed and are not in this plan")
    );
    assert_eq!(
        clone.arguments(&["--to", "main"]).revisions.not_committed(),
        None,
        "a revision was asked for"
    );
    clone.git(&["config", "core.bare", "true"]);
    assert_eq!(
        newest.revisions.not_committed(),
        None,
        "without a work tree there is none"
    );
}

#[test]
fn a_plan_keeps_what_the_newest_word_keeps_as_the_hub_does() {
    let clone = Clone::new();
    clone.write("clusters/a.yaml", &cluster("a", "prod"));
    clone.write("feeds/web/a.yaml", &object("ConfigMap", "a", "data: {}"));
    clone.write("subscriptions/web.yaml", &subscription("web", "prod"));
    clone.commit();
    let orphan = subscription("web", "prod") + "  deletionPolicy: Orphan\n";
    clone.write("subscriptions/web.yaml", &orphan);
    clone.commit();
    clone.git(&["rm", "--quiet", "subscriptions/web.yaml"]);
    clone.commit();
    clone.write("note", "more");
    clone.commit();
    let told = |from: &str| {
        let shown = clone.shown(from, "HEAD");
        let groups = shown.units.iter().flat_map(|unit| &unit.groups);
        let changes = groups.flat_map(|group| &group.objects);
        changes.map(|change| change.change.clone()).collect::<Vec<_>>()
    };
    let kept = Change::Kept("deletionPolicy: Orphan".to_owned());
    assert_eq!(told("HEAD~3"), std::slice::from_ref(&kept), "the word was said since");
    assert_eq!(told("HEAD~2"), [kept], "and before");
    clone.git(&["checkout", "--quiet", "HEAD~3"]);
    clone.git(&["rm", "--quiet", "subscriptions/web.yaml"]);
    clone.commit();
    assert_eq!(told("HEAD~1"), [Change::Removed], "nobody said so");
}

#[tokio::test]
async fn a_hub_that_does_not_answer_is_not_asked_for_each_cluster() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port is free");
    let address = listener.local_addr().expect("it is bound");
    let asked = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = std::sync::Arc::clone(&asked);
    let stranger = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let (mut reads, mut writes) = stream.into_split();
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nno";
            let answered = tokio::io::AsyncWriteExt::write_all(&mut writes, answer).await;
            answered.expect("it is listened to");
            tokio::io::copy(&mut reads, &mut tokio::io::sink()).await.ok();
        }
    });
    let clone = story();
    let arguments = clone.arguments(&["--server", &format!("http://{address}")]);
    let mut removals = Removals::new();
    for at in 0..12 {
        let name = render::ClusterName::parse(format!("c{at:02}")).expect("a valid name");
        let object = render::ObjectKey::new("v1", "ConfigMap", "shop", "a");
        removals.insert(name, [object].into());
    }
    let hub = Questions::new(&arguments.server);
    let told = dependants::ask(&hub, &removals).await;
    assert_eq!(told.len(), 12);
    for cluster in &told {
        let why = &cluster.not_looked_at;
        assert!(why.contains("is no hub's read-only API"), "{why}");
    }
    let before = asked.load(std::sync::atomic::Ordering::Relaxed);
    assert!(
        (1..=dependants::CLUSTERS_AT_ONCE).contains(&before),
        "{before} questions"
    );
    assert!(hub.value("/").await.is_err());
    let after = asked.load(std::sync::atomic::Ordering::Relaxed);
    assert_eq!(after, before, "nor for what comes next");
    stranger.abort();
}

#[test]
fn a_finding_names_all_of_its_clusters_and_text_the_first_few() {
    let clone = Clone::new();
    for name in ["a", "b", "c", "d", "e", "f", "g"] {
        clone.write(&format!("clusters/{name}.yaml"), &cluster(name, "prod"));
    }
    let job = |image: &str| {
        format!(
            "apiVersion: batch/v1\nkind: Job\nmetadata: {{name: j, namespace: shop}}\nspec: {{template: {{spec: {{containers: \
             [{{name: j, image: {image}}}]}}}}}}\n"
        )
    };
    // Two variants: the same is refused of both.
    clone.write(
        "localizations/b.yaml",
        "apiVersion: fleet.flotilla.dev/v1alpha1\nkind: Localization\nmetadata: {name: b, namespace: b}\nspec:\n  \
         feed: {apiVersion: batch/v1, kind: Job, namespace: shop, name: j}\n  \
         overrides: [{name: b, type: MergePatch, value: '{\"metadata\": {\"labels\": {\"b\": \"b\"}}}'}]\n",
    );
    clone.write("subscriptions/web.yaml", &subscription("web", "prod"));
    clone.write("feeds/web/j.yaml", &job("web:1"));
    clone.commit();
    clone.write("feeds/web/j.yaml", &job("web:2"));
    clone.commit();
    let shown = clone.shown("HEAD~1", "HEAD");
    let refused = |finding: &&Finding| finding.reason == "ImmutableField";
    let found: Vec<_> = shown.findings.iter().filter(refused).collect();
    assert_eq!(found.len(), 1, "{:?}", shown.findings);
    let also: Vec<_> = found[0].also_on.iter().map(ToString::to_string).collect();
    assert_eq!(also, ["b", "c", "d", "e", "f", "g"]);
    for name in ["a", "d", "g"] {
        assert!(found[0].concerns(&render::ClusterName::parse(name).expect("a valid name")));
    }
    let text = once(&shown.findings);
    let lines: Vec<_> = text
        .iter()
        .filter(refused)
        .map(|finding| finding.message.as_str())
        .collect();
    assert!(
        matches!(lines.as_slice(), [one] if one.ends_with("(clusters a, b, c, d, e and 2 more)")),
        "{lines:?}"
    );
}

/// Two nodes of four cores in a; what b has is not known.
fn capacity() -> String {
    let amounts = json!({ "cpu": 4_000, "memory": 1_u64 << 40, "pods": 110 });
    let nodes = json!([{ "count": 2, "allocatable": amounts, "free": amounts }]);
    json!({ "clusters": { "a": { "capacity": { "version": 1, "nodes": nodes }, "at": 1_700_000_000 } } }).to_string()
}

#[test]
fn a_plan_by_recorded_room_shows_who_gets_what_and_what_finds_no_place() {
    let clone = Clone::new();
    for name in ["a", "b"] {
        clone.write(&format!("clusters/{name}.yaml"), &cluster(name, "prod"));
    }
    let divided =
        "  schedulingStrategy: Dividing\n  dividingScheduling: {type: Dynamic, dynamicDividing: {strategy: Spread}}\n";
    clone.write("subscriptions/web.yaml", &(subscription("web", "prod") + divided));
    let deployment = |replicas: u64| {
        format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web, namespace: shop}}\nspec:\n  replicas: {replicas}\n  \
             template: {{spec: {{containers: [{{name: web, resources: {{requests: {{cpu: 1}}}}}}]}}}}\n"
        )
    };
    clone.write("feeds/web/web.yaml", &deployment(6));
    clone.commit();
    clone.write("feeds/web/web.yaml", &deployment(11));
    clone.commit();
    let file = clone.0.path().join("capacity.json");
    fs::write(&file, capacity()).expect("it is writable");
    let arguments = clone.arguments(&["--from", "HEAD~1", "--reports", &file.display().to_string()]);
    let rooms = Rooms::new(&arguments.rooms, None);
    let shown = compare::shown(&arguments.revisions, &rooms).expect("both revisions can be read");
    golden("room.txt", &text::text(&shown, false));
    let told: Vec<_> = shown.findings.iter().map(|finding| finding.reason.as_str()).collect();
    assert_eq!(told, ["Unplaced"], "{:?}", shown.findings);
    let json = serde_json::to_value(&shown).expect("a plan is JSON");
    let unplaced = &json["units"][0]["unplaced"]["apps/Deployment/shop/web"];
    assert_eq!(
        *unplaced,
        json!({ "from": null, "to": { "replicas": 3, "of": 11 } }),
        "{json:#}"
    );

    // Nobody knows: nothing is placed by room, and the numbers say so.
    clone.write("feeds/web/web.yaml", &deployment(12));
    clone.commit();
    let text = text::text(&clone.shown("HEAD~1", "HEAD"), false);
    assert!(
        text.contains("unplaced of Deployment web: 11 of 11 -> 12 of 12"),
        "{text}"
    );
}

#[test]
fn a_word_that_nobody_committed_yet_shows_what_it_would_move() {
    let clone = Clone::new();
    let divided = "  schedulingStrategy: Dividing\n  dividingScheduling: {type: Dynamic}\n";
    clone.write("subscriptions/web.yaml", &(subscription("web", "prod") + divided));
    clone.write(
        "feeds/web/web.yaml",
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: shop}\nspec: {replicas: 6, template: {spec: {containers: [{name: web}]}}}\n",
    );
    clone.write("clusters/a.yaml", &cluster("a", "prod"));
    clone.commit();
    clone.write("clusters/b.yaml", &cluster("b", "prod"));
    clone.commit();
    let one: serde_json::Value = serde_json::from_str(&capacity()).expect("it is JSON");
    let both = json!({ "clusters": { "a": one["clusters"]["a"], "b": one["clusters"]["a"] } });
    let file = clone.0.path().join("capacity.json");
    fs::write(&file, both.to_string()).expect("it is writable");
    let arguments = clone.arguments(&["--from", "HEAD~1", "--reports", &file.display().to_string()]);
    let rooms = Rooms::new(&arguments.rooms, None);
    let text = |words: &[&str]| {
        let words = words.iter().map(|text| RebalanceWord::parse(text).expect("it is one"));
        let words: Vec<_> = words.collect();
        compare::shown_with(&arguments.revisions, &rooms, &words).map(|shown| text::text(&shown, false))
    };
    let usual = text(&[]).expect("it is readable");
    assert!(
        !usual.contains("6 -> 3"),
        "a cluster that joins gets nothing by itself: {usual}"
    );
    let moved = text(&["shop/*"]).expect("it is readable");
    assert!(moved.contains("6 -> 3"), "{moved}");
    let unknown = text(&["shop/wep"]).expect_err("no unit is named so");
    assert_eq!(unknown.to_string(), "no unit is shop/wep; hint: did you mean shop/web?");
}

#[test]
fn a_record_is_looked_at_as_of_its_time() {
    let clone = Clone::new();
    clone.write("clusters/a.yaml", &cluster("a", "prod"));
    clone.write("subscriptions/web.yaml", &subscription("web", "prod"));
    clone.write("feeds/web/a.yaml", &object("ConfigMap", "a", "data: {}"));
    clone.write(
        "policies/night.yaml",
        "apiVersion: fleet.flotilla.dev/v1alpha1\nkind: Suspension\nmetadata: {name: night}\nspec: {clusters: [a], until: 2023-11-15T00:00:00Z}\n",
    );
    clone.commit();
    let file = clone.0.path().join("capacity.json");
    let mut record: serde_json::Value = serde_json::from_str(&capacity()).expect("it is JSON");
    record["at"] = json!(1_700_000_000);
    fs::write(&file, record.to_string()).expect("it is writable");
    let arguments = clone.arguments(&["--reports", &file.display().to_string()]);
    let is_held = |rooms: &Rooms<'_>| {
        let shown = compare::shown(&arguments.revisions, rooms).expect("it can be read");
        !shown.units[0].held.is_empty()
    };
    assert!(is_held(&Rooms::new(&arguments.rooms, None)), "on 2023-11-14 it was");
    assert!(!is_held(&Rooms::unknown()), "and it is no more");
}

#[test]
fn a_unit_that_is_divided_no_longer_or_from_now_on_shows_the_replicas_that_each_cluster_has_and_gets() {
    let clone = Clone::new();
    for name in ["a", "b"] {
        clone.write(&format!("clusters/{name}.yaml"), &cluster(name, "prod"));
    }
    let divided = "  schedulingStrategy: Dividing\n  dividingScheduling: {type: Static}\n";
    let whole = subscription("web", "prod");
    let deployment = |replicas: u64| {
        format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web, namespace: shop}}\nspec: {{replicas: {replicas}}}\n"
        )
    };
    clone.write("subscriptions/web.yaml", &(whole.clone() + divided));
    clone.write("feeds/web/web.yaml", &deployment(10));
    clone.commit();
    clone.write("subscriptions/web.yaml", &whole);
    clone.commit();
    let shown = clone.shown("HEAD~1", "HEAD");
    let said = text::text(&shown, false);
    assert!(said.contains("~ /spec/replicas: 5 -> 10"), "{said}");
    let json = serde_json::to_value(&shown).expect("a plan is JSON");
    let objects = &json["units"][0]["groups"][0]["objects"];
    assert_eq!(objects.as_array().map(Vec::len), Some(1), "{json:#}");
    clone.write("subscriptions/web.yaml", &(whole + divided));
    clone.write("feeds/web/web.yaml", &deployment(8));
    clone.commit();
    let said = text::text(&clone.shown("HEAD~1", "HEAD"), false);
    assert!(said.contains("~ /spec/replicas: 10 -> 4"), "{said}");
    assert!(!said.contains("10 -> 8") && !said.contains("none ->"), "{said}");
}
