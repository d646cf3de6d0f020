//! `add`: what a real API server says decides, and what is written is what the hub reads.

use super::{FILES, Work};

/// Runs `add` of this text on stdin's place, a file beside the clone.
fn file(text: &str) -> String {
    let path = flotilla_tests::scratch::folder("manifests").join("in.yaml");
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

const MENU: &str =
    "# for the bar\napiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: default, name: menu}\ndata: {tea: green}\n";

#[test]
fn what_an_api_server_takes_is_committed_with_its_subscription() {
    let clusters = flotilla_tests::three_clusters();
    let kubeconfig = clusters[0].kubeconfig().display().to_string();
    let work = Work::new();
    let role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: 'bar:read'}\nrules: []\n";
    let widgets = "apiVersion: v1\nkind: Namespace\nmetadata: {name: bar}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: bar, name: later}\n";
    let from = file(&format!("{MENU}---\n{role}---\n{widgets}"));
    let command = [
        "add",
        "-f",
        &from,
        "--to",
        "shop/bar",
        "--select",
        "tier=bar",
        "--kubeconfig",
        &kubeconfig,
    ];
    let output = work.run(&command);
    assert!(output.stderr.contains("its namespace comes with it"), "{output:?}");
    output.expect_ok();
    let changed = work.changed();
    assert!(
        changed[0].starts_with("A feeds/bar/clusterroles.bar_read-"),
        "{changed:?}"
    );
    assert_eq!(
        changed[1..],
        [
            "A feeds/bar/configmaps.bar.later.yaml",
            "A feeds/bar/configmaps.default.menu.yaml",
            "A feeds/bar/namespaces.bar.yaml",
            "A subscriptions/shop/bar.yaml"
        ]
    );
    assert_eq!(
        work.git(&["show", "HEAD:feeds/bar/configmaps.default.menu.yaml"]) + "\n",
        MENU,
        "comments as well"
    );
    let plan = work.run(&["plan", "-o", "json"]).stdout;
    assert!(!plan.contains("\"severity\": \"Error\""), "{plan}");
    let head = work.head();
    let again = work.run(&command);
    assert!(again.stderr.contains("there is nothing to do"), "{again:?}");
    assert_eq!(work.head(), head);
    for cluster in clusters.iter() {
        assert!(!cluster.has("default", "configmap/menu"), "a dry run changes nothing");
    }
}

#[test]
fn what_an_api_server_refuses_is_told_in_its_own_words() {
    let clusters = flotilla_tests::three_clusters();
    let kubeconfig = clusters[0].kubeconfig().display().to_string();
    let work = Work::new();
    let add = |text: &str, words: &str| {
        let from = file(&format!("{MENU}---\n{text}"));
        work.refuses(
            &["add", "-f", &from, "--to", "shop/web", "--kubeconfig", &kubeconfig],
            words,
        );
        work.refuses(
            &["add", "-f", &from, "--to", "shop/web", "--kubeconfig", &kubeconfig],
            "error: the API server refuses 1 object, so nothing was added",
        );
    };
    let deployment =
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {namespace: default, name: d}\nspec:\n  replicas: 1\n";
    add(deployment, "spec.selector: Required value");
    add(
        &deployment.replace("replicas", "replica"),
        ".spec.replica: field not declared in schema",
    );
    add(
        "apiVersion: x.io/v1\nkind: Widget\nmetadata: {name: w}\n",
        "the cluster does not serve kind Widget of x.io/v1",
    );
    add(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: gone, name: x}\n",
        "namespaces \"gone\" not found",
    );
    let secret =
        "apiVersion: v1\nkind: Secret\nmetadata: {namespace: default, name: s}\ndata: {password: not-base64!}\n";
    let from = file(secret);
    let output = work.run(&["add", "-f", &from, "--to", "shop/web", "--kubeconfig", &kubeconfig]);
    assert_eq!(output.code(), Some(1));
    assert!(
        !output.stderr.contains("not-base64"),
        "no value of a Secret is told: {output:?}"
    );
}

#[test]
fn the_api_server_is_that_of_kubectl_unless_another_is_named() {
    let work = Work::new();
    let from = file(MENU);
    let home = flotilla_tests::scratch::folder("home");
    let add = |more: &[(&str, &str)]| {
        let mut command = flotilla_tests::flotilla::flotilla();
        command.current_dir(work.repository.work()).env_remove("KUBECONFIG");
        command.env("HOME", &home).envs(more.iter().copied());
        flotilla_tests::Output::of(command.args(["add", "-f", &from, "--to", "shop/web"]))
    };
    let none = add(&[]);
    assert_eq!(none.code(), Some(1), "{none:?}");
    let path = home.join(".kube/config").display().to_string();
    assert!(
        none.stderr.contains(&format!("failed to read kubeconfig {path}: ")),
        "{none:?}"
    );
    assert!(none.stderr.contains("or ask no API server with --no-check"), "{none:?}");
    std::fs::create_dir_all(home.join(".kube")).unwrap();
    let closed = format!("http://127.0.0.1:{}", flotilla_tests::ports::free());
    let kubeconfig = format!(
        "{{apiVersion: v1, kind: Config, current-context: a, clusters: [{{name: a, cluster: {{server: '{closed}'}}}}], \
         users: [{{name: a, user: {{}}}}], contexts: [{{name: a, context: {{cluster: a, user: a}}}}]}}\n"
    );
    std::fs::write(&path, kubeconfig).unwrap();
    for away in [add(&[]), add(&[("KUBECONFIG", &path)])] {
        assert_eq!(away.code(), Some(1), "{away:?}");
        assert!(away.stderr.contains("failed to ask the API server"), "{away:?}");
        assert!(away.stderr.contains("ask no API server with --no-check"), "{away:?}");
    }
}

#[test]
fn a_live_object_is_trimmed_and_replaces_its_own_file() {
    let work = Work::new();
    let live = r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "shop", "name": "greeting",
        "uid": "0b5a", "resourceVersion": "7"}, "data": {"a": "b"}}"#;
    work.run(&["add", "--no-check", "-f", &file(live), "--into", "feeds/other"])
        .expect_ok();
    let written = work.git(&["show", "HEAD:feeds/other/configmaps.shop.greeting.yaml"]);
    assert_eq!(
        written,
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: greeting\n  namespace: shop\ndata:\n  a: b"
    );
    work.run(&[
        "add",
        "--no-check",
        "-f",
        &file(&live.replace("\"b\"", "\"c\"")),
        "--into",
        "feeds/other",
    ])
    .expect_ok();
    assert_eq!(work.changed(), ["M feeds/other/configmaps.shop.greeting.yaml"]);
}

#[test]
fn what_would_hold_a_unit_is_refused() {
    let work = Work::new();
    let to = ["add", "--no-check", "--to", "shop/web", "-f"];
    let add = |text: &str, words: &str| work.refuses(&[&to[..], &[&file(text)]].concat(), words);
    add(FILES[3].1, "the fleet would have new errors, so nothing was added");
    add(
        "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {password: hunter2}\n",
        "the values of Secret s stand in plain text",
    );
    add(FILES[0].1, "Fleet is a declaration of the fleet and no object");
    add("a: {", "the manifests cannot be read");
    add(&format!("{MENU}---\n{MENU}"), "is there twice");
    add("# nothing\n", "there is no manifest in what -f names");
    let usage = work.run(&["add", "--no-check", "-f", "x.yaml"]);
    assert_eq!(usage.code(), Some(64), "it does not say where: {usage:?}");
    work.refuses(
        &["add", "--no-check", "-f", &file(MENU), "--into", "../out"],
        "leads out of",
    );
}

#[test]
fn a_subscription_that_is_there_is_never_rewritten() {
    let work = Work::new();
    let folder = flotilla_tests::scratch::folder("folder");
    std::fs::create_dir(folder.join("below")).unwrap();
    std::fs::write(folder.join("below/menu.yml"), MENU).unwrap();
    std::fs::write(folder.join("README.md"), "no manifest").unwrap();
    let folder = folder.display().to_string();
    let covered = work.run(&["add", "--no-check", "-f", &folder, "--to", "shop/web"]);
    assert!(!covered.stderr.contains("add these lines"), "{covered:?}");
    covered.expect_ok();
    assert_eq!(work.changed(), ["A feeds/web/configmaps.default.menu.yaml"]);
    let other = MENU.replace("menu", "card");
    let told = work.run(&[
        "add",
        "--no-check",
        "-f",
        &file(&other),
        "--to",
        "shop/web",
        "--into",
        "feeds/bar",
    ]);
    assert!(
        told.stderr
            .contains("add these lines to spec.feeds in subscriptions/shop/web.yaml:\n\n    - path: feeds/bar/**\n"),
        "{told:?}"
    );
    assert_eq!(work.changed(), ["A feeds/bar/configmaps.default.card.yaml"]);
}
