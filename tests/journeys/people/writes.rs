//! What writes: every verb of kubectl that would change something is refused, and says where the change belongs.

use std::fs;

use super::super::support::config_map;
use super::office::Office;

#[test]
fn every_write_of_kubectl_is_refused_and_names_the_file() {
    let office = Office::open(&[]);
    office.pod_with_a_log();
    fs::write(
        office.folder.join("greeting.yaml"),
        config_map("shop", "greeting", "bye"),
    )
    .unwrap();
    fs::write(office.folder.join("other.yaml"), config_map("shop", "other", "bye")).unwrap();
    let (greeting, other) = (office.path("greeting.yaml"), office.path("other.yaml"));
    let version = || {
        office.cluster.get("shop", "configmap/greeting").expect("it is there")["metadata"]["resourceVersion"].clone()
    };
    let before = version();
    let managed = "feeds/web/greeting.yaml, line 1, and unit shop/web";
    let map = ["configmap", "greeting", "-n", "shop"];
    let of_map = |verb: &[&'static str], more: &[&'static str]| [verb, &map, more].concat();
    let mut wrong = Vec::new();
    for (arguments, words) in [
        (vec!["apply", "-f", &greeting], managed),
        (vec!["apply", "--server-side", "-f", &greeting], managed),
        (
            vec!["apply", "--server-side", "--dry-run=server", "-f", &greeting],
            managed,
        ),
        (vec!["create", "-f", &greeting], managed),
        (
            vec!["create", "-f", &other],
            "nothing of the fleet manages configmaps shop/other in paris",
        ),
        (
            vec!["create", "configmap", "other", "-n", "shop", "--dry-run=server"],
            "only reads",
        ),
        (vec!["replace", "-f", &greeting], managed),
        (vec!["diff", "-f", &greeting], managed),
        (of_map(&["edit"], &[]), managed),
        (
            of_map(&["patch"], &["--type=merge", "-p", "{\"data\": {\"text\": \"bye\"}}"]),
            managed,
        ),
        (of_map(&["label"], &["a=b"]), managed),
        (of_map(&["annotate"], &["a=b"]), managed),
        (of_map(&["delete"], &["--wait=false"]), managed),
        (vec!["delete", "configmaps", "--all", "-n", "shop"], "only reads"),
        (
            vec!["scale", "deployment", "none", "--replicas=2", "-n", "shop"],
            "deployments",
        ),
        (vec!["exec", "teller", "-n", "shop", "--", "ls"], "--allow-interactive"),
        (
            vec!["port-forward", "pod/teller", "0:80", "-n", "shop"],
            "--allow-interactive",
        ),
        (vec!["cp", &greeting, "shop/teller:/tmp/x"], "--allow-interactive"),
        (vec!["create", "token", "default", "-n", "shop"], "only reads"),
        (
            vec!["taint", "node", "scribe", "a=b:NoSchedule"],
            "nothing of the fleet manages nodes scribe in paris",
        ),
        (
            vec!["auth", "can-i", "--list", "--as", "admin"],
            "not taken from outside",
        ),
    ] {
        let refused = office.kubectl("ada", &arguments);
        let told = format!("{}{}", refused.stdout, refused.stderr);
        if refused.code() == Some(0) || !told.contains(words) {
            wrong.push(format!("{arguments:?} ends with {:?} and says {told}", refused.code()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(version(), before, "nothing was written");
    assert!(!office.cluster.has("shop", "configmap/other"));
}
