//! Drift, from a person's `kubectl` to what `flotilla drift` says of it, and to the commit that accepts it.

use std::collections::BTreeMap;

use flotilla_tests::{ControlPlane, Flotilla, Output, eventually, pool, wait};
use serde_json::Value;

use super::still::{assert_objects_unchanged, objects};
use super::support::*;

/// A value of a Secret, and what somebody makes of it.
const WORDS: [&str; 2] = ["open-sesame-4711", "close-sesame-1174"];

const CREW: (&str, &str) = ("shop", "deployment/crew");

const IMAGE: &str = "/spec/template/spec/containers/0/image";

const DEPLOYMENT: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {namespace: shop, name: crew}
spec:
  replicas: 2
  selector: {matchLabels: {app: crew}}
  template:
    metadata: {labels: {app: crew}}
    spec: {containers: [{name: sailor, image: 'sailor.example/sailor:1'}]}
";

const SETTINGS: &str = "\
apiVersion: v1
kind: ConfigMap
metadata: {namespace: shop, name: settings, labels: {team: shop}}
data: {text: plain}
";

fn drift(fleet: &Fleet, arguments: &[&str]) -> Output {
    Flotilla::run(&[&["drift"], arguments, &["--server", &fleet.api()]].concat())
}

/// A fleet whose unit `shop/web` is kept in a mode, in every cluster.
#[track_caller]
fn start(mode: &str, more: &[(&str, &str)]) -> Fleet {
    let fleet = Fleet::start();
    let web = format!("{}  drift: {{mode: {mode}}}\n", subscription("shop", "web"));
    let files = [
        ("subscriptions/shop/web.yaml", web.as_str()),
        ("feeds/web/namespace.yaml", &namespace("shop")),
        ("feeds/web/crew.yaml", DEPLOYMENT),
        ("feeds/web/settings.yaml", SETTINGS),
    ];
    fleet.push("Open the shop", &[&files, more].concat());
    for cluster in pool::NAMES {
        fleet.until_field(cluster, CREW, "/status/readyReplicas", 2);
    }
    fleet.until_text(&pool::NAMES, ("shop", "settings"), "plain");
    fleet
}

/// Waits until a command says something, with this exit code.
#[track_caller]
fn until(fleet: &Fleet, arguments: &[&str], code: i32, fits: impl Fn(&str) -> bool) -> Output {
    eventually(LIMIT, &format!("drift {arguments:?} ends with {code}"), || {
        let output = drift(fleet, arguments);
        let found = output.code() == Some(code) && fits(&output.stdout);
        if found { Ok(output) } else { Err(format!("{output:?}")) }
    })
}

fn encoded(word: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(word)
}

#[track_caller]
fn change_by_hand(cluster: &ControlPlane) {
    let kubectl = |arguments: &[&str]| cluster.kubectl(&[&["-n", "shop"], arguments].concat()).expect_ok();
    kubectl(&["set", "image", "deployment/crew", "sailor=sailor.example/sailor:2"]);
    kubectl(&["scale", "deployment/crew", "--replicas=3"]);
    kubectl(&["label", "--overwrite", "configmap/settings", "team=harbour"]);
}

/// What the released ref has for each of these clusters.
fn released(fleet: &Fleet, clusters: &[&str]) -> BTreeMap<String, String> {
    let text = Flotilla::run(&["get", "placements", "-o", "json", "--server", &fleet.api()]).expect_ok();
    let list: Value = serde_json::from_str(&text).expect("JSON");
    let items = list["items"].as_array().expect("a list has items").iter();
    let digests = items.map(|item| {
        let cluster = item["spec"]["cluster"].as_str().expect("it is on a cluster").to_owned();
        (cluster, item["spec"].to_string())
    });
    digests
        .filter(|(cluster, _)| clusters.contains(&cluster.as_str()))
        .collect()
}

#[test]
fn what_is_left_as_it_is_is_shown_and_a_commit_of_its_export_accepts_it() {
    let warn = FLEET.replace("{approval: none}", "{approval: none, plaintextSecrets: warn}");
    let secret = format!(
        "apiVersion: v1\nkind: Secret\nmetadata: {{namespace: shop, name: safe}}\nstringData: {{word: {}}}\n",
        WORDS[0]
    );
    let fleet = start("Report", &[("fleet.yaml", &warn), ("feeds/web/safe.yaml", &secret)]);
    let none = until(&fleet, &["shop/web"], 0, str::is_empty);
    assert_eq!(none.stderr, "No drift found.\n");

    let bogota = fleet.cluster("bogota");
    change_by_hand(bogota);
    let change_word = |word: &str| {
        let patch = format!(r#"{{"data":{{"word":"{}"}}}}"#, encoded(word));
        bogota
            .kubectl(&["-n", "shop", "patch", "secret", "safe", "--type=merge", "-p", &patch])
            .expect_ok();
    };
    change_word(WORDS[1]);
    what_is_shown(&fleet);

    // What can be told is accepted by a commit; the Secret is not.
    let others = ["amsterdam", "colombo"];
    let before = released(&fleet, &others);
    assert_eq!(before.len(), 2);
    let still: Vec<_> = others.map(|name| versions(fleet.cluster(name), "configmaps")).into();
    let folder = fleet
        .repository
        .work()
        .join("localizations/bogota")
        .display()
        .to_string();
    let export = ["export", "shop/web", "--cluster", "bogota"];
    let printed = drift(&fleet, &export);
    let written = drift(&fleet, &[&export[..], &["--write", &folder]].concat());
    written.clone().expect_ok();
    let file = "localizations/bogota/shop-web-accepted.yaml";
    let text = std::fs::read_to_string(fleet.repository.work().join(file)).expect("it wrote the file");
    assert_eq!(text, printed.clone().expect_ok());
    assert_eq!(text.matches("kind: Localization\n").count(), 2, "{text}");
    for words in [
        "namespace: bogota\n",
        "name: web-configmap-shop-settings-accepted\n",
        "name: web-deployment-shop-crew-accepted\n",
        IMAGE,
        "/spec/replicas",
        "/metadata/labels/team",
    ] {
        assert!(text.contains(words), "{words:?} is missing in {text}");
    }
    assert_eq!(text.matches("path").count(), 3, "nothing else is accepted: {text}");
    let note = "note: /data/word of Secret shop/safe is not accepted: its value is not told, since it is a Secret's or too long\n";
    assert_eq!(printed.stderr, note);
    assert!(written.stderr.starts_with(&format!("{note}Wrote ")), "{written:?}");
    let again = drift(&fleet, &[&export[..], &["--write", &folder]].concat());
    assert_eq!(again.code(), Some(2), "{again:?}");
    assert!(again.stderr.contains("is there already"), "{again:?}");
    let commit = fleet.push("Accept what bogota has", &[]);
    fleet.until_released(&commit);
    let name = "placement.fleet.flotilla.dev/web.bogota\n";
    until(&fleet, &["-o", "json"], 1, |text| {
        !text.contains("Deployment") && text.contains("Secret")
    });
    assert_eq!(drift(&fleet, &["-o", "name"]).stdout, name);
    change_word(WORDS[0]);
    until(&fleet, &[], 0, str::is_empty);
    assert_eq!(
        plan_json(&fleet.repository)["findings"]
            .to_string()
            .matches("Error")
            .count(),
        0
    );

    fleet.until_field("bogota", CREW, "/spec/replicas", 3);
    fleet.until_field("bogota", CREW, IMAGE, "sailor.example/sailor:2");
    let settings = ("shop", "configmap/settings");
    fleet.until_field("bogota", settings, "/metadata/labels/team", "harbour");
    assert_eq!(released(&fleet, &others), before, "no other cluster gets anything else");
    let now: Vec<_> = others.map(|name| versions(fleet.cluster(name), "configmaps")).into();
    assert_eq!(now, still, "nothing is written elsewhere");
    assert_verified(&fleet.repository);
    let logs = fleet.logs();
    for word in WORDS {
        assert!(!logs.contains(word) && !logs.contains(&encoded(word)), "{logs}");
    }
}

const TABLE: &str = "\
UNIT       CLUSTER   OBJECT                    FIELD                                    WANTED                    FOUND
shop/web   bogota    ConfigMap shop/settings   /metadata/labels/team                    shop                      harbour
shop/web   bogota    Secret shop/safe          /data/word                               (not shown)               (not shown)
shop/web   bogota    Deployment shop/crew      /spec/replicas                           2                         3
shop/web   bogota    Deployment shop/crew      /spec/template/spec/containers/0/image   sailor.example/sailor:1   sailor.example/sailor:2
";

const WIDE: &str = "\
UNIT       CLUSTER   OBJECT                    FIELD                                    WANTED                    FOUND                     MANAGER
shop/web   bogota    ConfigMap shop/settings   /metadata/labels/team                    shop                      harbour                   kubectl-label
shop/web   bogota    Secret shop/safe          /data/word                               (not shown)               (not shown)               kubectl-patch
shop/web   bogota    Deployment shop/crew      /spec/replicas                           2                         3                         kubectl
shop/web   bogota    Deployment shop/crew      /spec/template/spec/containers/0/image   sailor.example/sailor:1   sailor.example/sailor:2   kubectl-set
";

/// Every form, its exit code, and what a Secret's values are not found in.
#[track_caller]
fn what_is_shown(fleet: &Fleet) {
    let all = |text: &str| {
        ["Deployment", "ConfigMap", "Secret", "/spec/replicas", IMAGE]
            .iter()
            .all(|word| text.contains(word))
    };
    let table = until(fleet, &[], 1, all);
    assert_eq!((table.stdout.as_str(), table.stderr.as_str()), (TABLE, ""));
    assert_eq!(drift(fleet, &["shop/web", "-o", "wide"]).stdout, WIDE);
    let json = drift(fleet, &["shop/web", "--cluster", "bogota", "-o", "json"]);
    let value: Value = serde_json::from_str(&json.stdout).unwrap_or_else(|error| panic!("{error}: {json:?}"));
    let item = &value["items"][0];
    assert_eq!(
        (&item["subscription"], &item["cluster"], &item["drifted"]),
        (&"web".into(), &"bogota".into(), &3.into())
    );
    let yaml = drift(fleet, &["-o", "yaml"]);
    assert!(yaml.stdout.starts_with("items:\n"), "{yaml:?}");
    let name = drift(fleet, &["-o", "name"]);
    assert_eq!(name.stdout, "placement.fleet.flotilla.dev/web.bogota\n");
    for output in [&json, &yaml, &name] {
        assert_eq!(output.code(), Some(1), "{output:?}");
    }
    for narrowed in [&["--cluster", "amsterdam"][..], &["shop/web", "--cluster", "colombo"]] {
        let output = drift(fleet, narrowed);
        assert_eq!(
            (output.code(), output.stderr.as_str()),
            (Some(0), "No drift found.\n"),
            "{output:?}"
        );
    }
    for (arguments, said) in [
        (
            &["shop/wbe"][..],
            "error: subscription shop/wbe not found\nhint: `flotilla get subscriptions` lists those that there are\n",
        ),
        (
            &["shop/web", "--cluster", "paris"],
            "error: cluster paris not found\nhint: `flotilla get managedclusters` lists those that there are\n",
        ),
        (
            &["export", "shop/wbe", "--cluster", "bogota"],
            "error: subscription shop/wbe not found\nhint: `flotilla get subscriptions` lists those that there are\n",
        ),
    ] {
        let output = drift(fleet, arguments);
        assert_eq!(
            (output.code(), output.stdout.as_str(), output.stderr.as_str()),
            (Some(2), "", said)
        );
    }
    let get = |form| Flotilla::run(&["get", "all", "-o", form, "--server", &fleet.api()]).expect_ok();
    eventually(LIMIT, "what is left is no reason not to be ready, and is told", || {
        let status = Flotilla::run(&["status", "--server", &fleet.api()]).stdout;
        let told = status.contains("3 of 4 objects differ; ConfigMap shop/settings in /metadata/labels/team");
        told.then_some(()).ok_or(status)
    });
    let placements: Value = serde_json::from_str(&get("json")).expect("JSON");
    let items = placements["items"].as_array().expect("a list has items");
    let of = |kind: &str| {
        let items = items.iter().filter(|item| item["kind"] == kind);
        let conditions = items.flat_map(|item| item["status"]["conditions"].as_array().into_iter().flatten());
        conditions
            .filter(|condition| condition["type"] == "Drifted")
            .cloned()
            .collect::<Vec<_>>()
    };
    for kind in ["Placement", "Subscription"] {
        let [drifted] = &of(kind)[..] else {
            panic!("one {kind} is Drifted: {placements:#}")
        };
        assert_eq!(
            (&drifted["status"], &drifted["reason"]),
            (&"True".into(), &"FieldsDiffer".into())
        );
        let message = drifted["message"].as_str().unwrap_or_default();
        assert!(message.contains("in /metadata/labels/team"), "{drifted:#}");
    }
    let shown = [table, json, yaml].map(|output| output.stdout).concat() + &get("json") + &get("yaml");
    for word in WORDS {
        assert!(
            !shown.contains(word) && !shown.contains(&encoded(word)),
            "a value of a Secret: {shown}"
        );
    }
}

/// The agent's lines about what it put right.
fn corrections(fleet: &Fleet) -> Vec<String> {
    let lines = fleet.logs();
    let lines = lines.lines().filter(|line| line.contains("Corrected drift."));
    lines.map(str::to_owned).collect()
}

#[track_caller]
fn until_corrected(fleet: &Fleet, words: &[&str]) {
    eventually(LIMIT, &format!("the agent logs {words:?}"), || {
        let lines = corrections(fleet);
        let found = lines.iter().any(|line| words.iter().all(|word| line.contains(word)));
        found.then_some(()).ok_or(lines.join("\n"))
    });
}

/// What we last wrote to an object: its generation, and the time of our entry.
fn our_last_write(cluster: &ControlPlane, resource: &str) -> Result<String, String> {
    let text = cluster
        .kubectl(&["-n", "shop", "get", resource, "-o", "json", "--show-managed-fields"])
        .ok()?;
    let object: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let mut entries = object["metadata"]["managedFields"].as_array().into_iter().flatten();
    let ours = entries.find(|entry| entry["manager"] == "flotilla");
    Ok(format!("{} {ours:?}", object["metadata"]["generation"]))
}

#[test]
fn what_a_person_changes_is_undone_at_once_logged_and_then_nothing_is_written_any_more() {
    let fleet = start("Correct", &[]);
    let cluster = fleet.cluster("bogota");
    let kubectl = |arguments: &[&str]| cluster.kubectl(&[&["-n", "shop"], arguments].concat()).expect_ok();
    assert_eq!(corrections(&fleet), [""; 0]);
    let settings = ("shop", "configmap/settings");

    kubectl(&["set", "image", "deployment/crew", "sailor=sailor.example/sailor:2"]);
    fleet.until_field("bogota", CREW, IMAGE, "sailor.example/sailor:1");
    until_corrected(&fleet, &["Deployment", "shop", "crew", "kubectl-set", IMAGE]);
    kubectl(&["scale", "deployment/crew", "--replicas=3"]);
    fleet.until_field("bogota", CREW, "/spec/replicas", 2);
    until_corrected(&fleet, &["Deployment", "shop", "crew", "/spec/replicas"]);
    kubectl(&["label", "--overwrite", "configmap/settings", "team=harbour"]);
    fleet.until_field("bogota", settings, "/metadata/labels/team", "shop");
    until_corrected(
        &fleet,
        &["ConfigMap", "settings", "kubectl-label", "/metadata/labels/team"],
    );
    kubectl(&["delete", "configmap/settings"]);
    fleet.until_text(&["bogota"], ("shop", "settings"), "plain");
    eventually(LIMIT, "four corrections are logged", || {
        let lines = corrections(&fleet);
        (lines.len() == 4).then_some(()).ok_or(lines.join("\n"))
    });

    let resources = ["deployment/crew", "configmap/settings"];
    let writes = || resources.map(|resource| our_last_write(cluster, resource).unwrap_or_default());
    let (before, objects_before) = (writes(), objects(&fleet));
    wait::throughout(std::time::Duration::from_secs(3), "nobody writes", || {
        let now = writes();
        (now == before).then_some(()).ok_or(format!("{now:?}"))
    });
    assert_objects_unchanged(&fleet, &objects_before, "nothing is written");
    assert_eq!(corrections(&fleet).len(), 4);
    let none = drift(&fleet, &[]);
    assert_eq!(none.code(), Some(0), "what was put right is no difference: {none:?}");
    what_is_refused_is_not_said_to_be_put_right(&fleet);
}

/// A field that Git claims and somebody else has stays theirs; only what else is changed is put right, and logged.
#[track_caller]
fn what_is_refused_is_not_said_to_be_put_right(fleet: &Fleet) {
    let cluster = fleet.cluster("bogota");
    let patch = |patch: &str| {
        cluster
            .kubectl(&[
                "-n",
                "shop",
                "patch",
                "configmap",
                "settings",
                "--type=merge",
                "-p",
                patch,
            ])
            .expect_ok();
    };
    patch(r#"{"data":{"theirs":"1"}}"#);
    let claimed = SETTINGS.replace("{text: plain}", "{text: claimed, theirs: '2'}");
    fleet.push("Claim a field", &[("feeds/web/settings.yaml", &claimed)]);
    fleet.until_text(&["bogota"], ("shop", "settings"), "claimed");
    eventually(LIMIT, "the conflict is told", || {
        let shown = Flotilla::run(&["get", "placements", "-o", "json", "--server", &fleet.api()]).stdout;
        shown.contains("FieldConflict").then_some(()).ok_or(shown)
    });
    let before = corrections(fleet);
    assert_eq!(before.len(), 4, "a conflict is no correction: {before:#?}");
    patch(r#"{"data":{"text":"mine"}}"#);
    fleet.until_text(&["bogota"], ("shop", "settings"), "claimed");
    until_corrected(fleet, &["/data/text"]);
    let after = corrections(fleet);
    assert_eq!(after.len(), 5, "{after:#?}");
    assert!(
        !after[4].contains("/data/theirs") && !after.concat().contains("/data/theirs"),
        "{after:#?}"
    );
    assert_eq!(
        cluster.get("shop", "configmap/settings").expect("it is there")["data"]["theirs"],
        "1"
    );
}
