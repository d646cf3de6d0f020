//! One list of like things: the requests that define the subset.

use serde_json::{Value, json};

/// Requests in a namespace of the script's name.
pub(super) struct Script {
    pub name: &'static str,
    pub steps: Vec<Step>,
}

/// One request. `$ns`, `$rv`, `$uid`, `$continue` and `$name` stand for what the answers before brought.
#[derive(Clone, Default)]
pub(super) struct Step {
    pub method: &'static str,
    pub path: String,
    pub content_type: Option<&'static str>,
    pub accept: Option<&'static str>,
    pub body: Option<Value>,
    /// What of an answer counts: pointers, or `same-version`, `names`, `managers`.
    pub look: &'static [&'static str],
    /// Asked again until this is so.
    pub until: Option<(&'static str, Value)>,
    pub watch: bool,
    /// Of a refusal, only code and reason count: the words are the server's own.
    pub vague: bool,
    /// Its answer's version, UID and name are not kept.
    pub quiet: bool,
}

impl Step {
    fn new(method: &'static str, path: &str) -> Self {
        Self {
            method,
            path: path.to_owned(),
            ..Self::default()
        }
    }

    fn with(method: &'static str, path: &str, media: &'static str, body: Value) -> Self {
        Self {
            content_type: Some(media),
            body: Some(body),
            ..Self::new(method, path)
        }
    }

    pub(super) fn post(path: &str, body: Value) -> Self {
        Self::with("POST", path, "application/json", body)
    }

    fn look(self, look: &'static [&'static str]) -> Self {
        Self { look, ..self }
    }

    fn until(self, pointer: &'static str, value: Value) -> Self {
        Self {
            until: Some((pointer, value)),
            ..self
        }
    }

    fn quiet(self) -> Self {
        Self { quiet: true, ..self }
    }

    fn vague(self) -> Self {
        Self { vague: true, ..self }
    }
}

fn get(path: &str) -> Step {
    Step::new("GET", path)
}

fn delete(path: &str) -> Step {
    Step::new("DELETE", path)
}

fn delete_with(path: &str, options: Value) -> Step {
    Step::with("DELETE", path, "application/json", options)
}

fn put(path: &str, body: Value) -> Step {
    Step::with("PUT", path, "application/json", body)
}

fn merge(path: &str, body: Value) -> Step {
    Step::with("PATCH", path, "application/merge-patch+json", body)
}

fn apply(path: &str, body: Value) -> Step {
    Step::with("PATCH", path, "application/apply-patch+yaml", body)
}

fn watch(path: &str) -> Step {
    Step {
        watch: true,
        ..get(path)
    }
}

fn config_map(name: &str, data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

const MAPS: &str = "/api/v1/namespaces/$ns/configmaps";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/$ns/deployments";

fn map(name: &str) -> String {
    format!("{MAPS}/{name}")
}

fn applied(name: &str, manager: &str) -> String {
    format!("{MAPS}/{name}?fieldManager={manager}")
}

/// Every script, in the order in which they are played.
pub(super) fn scripts() -> Vec<Script> {
    let script = |name, steps| Script { name, steps };
    vec![
        script("creation", creation()),
        script("replacement", replacement()),
        script("fields", fields()),
        script("patches", patches()),
        script("apply", apply_config_maps()),
        script("apply-lists", apply_lists()),
        script("deletion", deletion()),
        script("lists", lists()),
        script("watches", watches()),
        script("dry-run", dry_run()),
        script("forms", forms()),
        script("custom", custom()),
        script("namespaces", namespaces()),
        script("owners", owners()),
        script("rest", rest()),
    ]
}

fn creation() -> Vec<Step> {
    let one = || config_map("one", json!({"a": "1"}));
    vec![
        Step::post(MAPS, one()).look(&[
            "/kind",
            "/apiVersion",
            "/metadata/namespace",
            "/metadata/generation",
            "/data",
            "managers",
        ]),
        Step::post(MAPS, one()),
        get(&map("one")).look(&["/data", "same-version"]),
        get(&map("nothing")),
        Step::post(MAPS, config_map("Bad_Name", json!({}))).vague(),
        Step::post(MAPS, json!({"metadata": {}})).vague(),
        Step::post(MAPS, json!({"metadata": {"generateName": "made-"}})).look(&["/metadata/generateName"]),
        Step::post(MAPS, json!({"metadata": {"name": "x", "namespace": "other"}})),
        Step::post(
            MAPS,
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x"}}),
        )
        .vague(),
        Step::post(MAPS, json!({"metadata": {"name": "x", "resourceVersion": "5"}})).vague(),
        Step::post("/api/v1/namespaces/nowhere/configmaps", one()),
        get("/api/v1/nothing").vague(),
        get("/apis/nothing.example.org/v1/things").vague(),
        Step::post(
            "/api/v1/namespaces/$ns/secrets",
            json!({"metadata": {"name": "s"}, "stringData": {"a": "b"}}),
        )
        .look(&["/type", "/data", "/stringData"]),
    ]
}

fn replacement() -> Vec<Step> {
    vec![
        Step::post(MAPS, config_map("one", json!({"a": "1"}))),
        put(
            &map("one"),
            json!({"metadata": {"name": "one", "resourceVersion": "$rv"}, "data": {"a": "2"}}),
        )
        .look(&["/data", "managers"]),
        put(
            &map("one"),
            json!({"metadata": {"name": "one", "resourceVersion": "1"}, "data": {"a": "3"}}),
        ),
        put(&map("one"), json!({"metadata": {"name": "one"}, "data": {"a": "2"}})).look(&["same-version"]),
        put(
            &map("one"),
            json!({"metadata": {"name": "one", "uid": "other"}, "data": {"a": "2"}}),
        )
        .vague(),
        put(&map("one"), json!({"metadata": {"name": "two"}, "data": {}})).vague(),
        put(&map("two"), config_map("two", json!({}))),
        put(
            &map("one"),
            json!({"metadata": {"name": "one"}, "data": {"a": "2"}, "immutable": true}),
        )
        .look(&["/immutable"]),
        put(
            &map("one"),
            json!({"metadata": {"name": "one"}, "data": {"a": "3"}, "immutable": true}),
        )
        .vague(),
    ]
}

fn fields() -> Vec<Step> {
    let misspelt =
        |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "dta": {"a": "b"}});
    let strict = format!("{MAPS}?fieldValidation=Strict");
    vec![
        Step::post(&strict, misspelt("strict")),
        Step::post(&format!("{MAPS}?fieldValidation=Warn"), misspelt("warn")).look(&["/dta"]),
        Step::post(&format!("{MAPS}?fieldValidation=Ignore"), misspelt("ignore")).look(&["/dta"]),
        Step::post(MAPS, config_map("typed", json!({"a": 1}))).vague(),
        Step::post(
            DEPLOYMENTS,
            json!({"metadata": {"name": "x"}, "spec": {"replicas": "many"}}),
        )
        .vague(),
        Step::post(DEPLOYMENTS, json!({"metadata": {"name": "x"}, "spec": {}})).vague(),
    ]
}

fn patches() -> Vec<Step> {
    let json_patch =
        |operation: Value| Step::with("PATCH", &map("one"), "application/json-patch+json", json!([operation]));
    let strategic = |body: Value| {
        Step::with(
            "PATCH",
            &format!("{DEPLOYMENTS}/web"),
            "application/strategic-merge-patch+json",
            body,
        )
    };
    let containers = |containers: Value| json!({"spec": {"template": {"spec": {"containers": containers}}}});
    const IMAGES: &[&str] = &[
        "/spec/template/spec/containers/*/name",
        "/spec/template/spec/containers/*/image",
    ];
    vec![
        Step::post(MAPS, config_map("one", json!({"a": "1", "b": "1"}))),
        merge(&map("one"), json!({"data": {"a": null, "c": "3"}})).look(&["/data"]),
        merge(&map("one"), json!({"data": {"c": "3"}})).look(&["same-version"]),
        merge(
            &map("one"),
            json!({"metadata": {"resourceVersion": "1"}, "data": {"d": "1"}}),
        ),
        merge(&map("two"), json!({"data": {"d": "1"}})),
        json_patch(json!({"op": "add", "path": "/data/e", "value": "5"})).look(&["/data"]),
        json_patch(json!({"op": "test", "path": "/data/e", "value": "6"})).vague(),
        json_patch(json!({"op": "remove", "path": "/data/nothing"})).vague(),
        Step::with("PATCH", &map("one"), "text/plain", json!({})).vague(),
        Step::post(
            DEPLOYMENTS,
            deployment(
                "web",
                json!([{"name": "a", "image": "a:1"}, {"name": "b", "image": "b:1"}]),
            ),
        ),
        strategic(containers(json!([{"name": "b", "image": "b:2"}]))).look(IMAGES),
        strategic(containers(
            json!([{"name": "a", "$patch": "delete"}, {"name": "c", "image": "c:1"}]),
        ))
        .look(IMAGES),
        strategic(json!({"metadata": {"labels": {"x": "y"}, "annotations": null}})).look(&["/metadata/labels"]),
    ]
}

fn deployment(name: &str, containers: Value) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}},
            "spec": {"containers": containers}}}})
}

fn apply_config_maps() -> Vec<Step> {
    let map = |data: Value| config_map("one", data);
    vec![
        apply(&super::scripts::map("one"), map(json!({"a": "1"}))).vague(),
        apply(&applied("one", "x"), map(json!({"a": "1", "b": "1"}))).look(&["/data", "managers"]),
        apply(&applied("one", "x"), map(json!({"a": "1", "b": "1"}))).look(&["same-version"]),
        apply(&applied("one", "y"), map(json!({"a": "1", "c": "1"}))).look(&["/data", "managers"]),
        apply(&applied("one", "y"), map(json!({"a": "2", "b": "2"}))),
        apply(&applied("one", "z"), map(json!({"b": "2"}))),
        apply(&format!("{}&force=true", applied("one", "y")), map(json!({"a": "2"}))).look(&["/data", "managers"]),
        apply(&applied("one", "x"), config_map("one", json!({}))).look(&["/data", "managers"]),
        merge(&super::scripts::map("one"), json!({"data": {"a": "3"}})).look(&["managers"]),
        apply(&applied("one", "y"), map(json!({"a": "2"}))),
        merge(&super::scripts::map("one"), json!({"metadata": {"managedFields": [{}]}})).look(&["managers"]),
        apply(&applied("one", "x"), json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}, "dta": {}})),
        apply(&applied("one", "x"), config_map("one", json!({"a": 1}))).vague(),
        apply(&applied("one", "x"), json!({"metadata": {"name": "one"}})).vague(),
        apply(&applied("one", "x"), json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one", "managedFields": [{"manager": "a"}]}})).vague(),
        apply(&applied("new", "x"), json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "new", "uid": "u"}})).vague(),
    ]
}

fn apply_lists() -> Vec<Step> {
    let path = |manager: &str| format!("{DEPLOYMENTS}/web?fieldManager={manager}");
    const LOOK: &[&str] = &[
        "/spec/template/spec/containers/*/name",
        "/spec/template/spec/containers/*/env",
        "/metadata/generation",
        "managers",
    ];
    let env = |env: Value| deployment("web", json!([{"name": "a", "image": "a:1", "env": env}]));
    let partial = |container: Value| {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
            "spec": {"template": {"spec": {"containers": [container]}}}})
    };
    vec![
        apply(
            &path("x"),
            env(json!([{"name": "A", "value": "1"}, {"name": "B", "value": "1"}])),
        )
        .look(LOOK),
        apply(
            &path("x"),
            env(json!([{"name": "A", "value": "1"}, {"name": "B", "value": "1"}])),
        )
        .look(&["/metadata/generation"]),
        apply(
            &path("y"),
            partial(json!({"name": "a", "env": [{"name": "C", "value": "1"}]})),
        )
        .look(LOOK),
        apply(
            &path("y"),
            partial(json!({"name": "a", "env": [{"name": "A", "value": "2"}]})),
        ),
        apply(&path("x"), env(json!([{"name": "B", "value": "1"}]))).look(LOOK),
        apply(
            &path("y"),
            partial(json!({"name": "b", "image": "b:1", "ports": [{"containerPort": 80}]})),
        )
        .look(LOOK),
        apply(&path("y"), partial(json!({"name": "b"}))).vague(),
        apply(
            &path("y"),
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}}),
        )
        .look(LOOK),
    ]
}

fn deletion() -> Vec<Step> {
    vec![
        Step::post(MAPS, config_map("one", json!({}))),
        delete_with(&map("one"), json!({"preconditions": {"uid": "other"}})).vague(),
        delete_with(&map("one"), json!({"preconditions": {"resourceVersion": "1"}})).vague(),
        delete_with(
            &map("one"),
            json!({"preconditions": {"uid": "$uid", "resourceVersion": "$rv"}}),
        ),
        delete(&map("one")),
        Step::post(
            MAPS,
            json!({"metadata": {"name": "held", "finalizers": ["example.org/hold"]}}),
        ),
        delete(&map("held")).look(&["/kind", "/metadata/finalizers", "/metadata/deletionGracePeriodSeconds"]),
        delete(&map("held")).look(&["/kind"]),
        Step::post(MAPS, json!({"metadata": {"name": "held"}})),
        merge(&map("held"), json!({"metadata": {"finalizers": []}})).look(&["/metadata/name"]),
        get(&map("held")),
        Step::post(MAPS, json!({"metadata": {"name": "a", "labels": {"app": "web"}}})),
        Step::post(MAPS, json!({"metadata": {"name": "b", "labels": {"app": "api"}}})),
        delete(&format!("{MAPS}?labelSelector=app%3Dweb")).look(&["/kind", "names"]),
        get(MAPS).look(&["names"]),
    ]
}

fn lists() -> Vec<Step> {
    let made = |name: &str, app: &str| Step::post(MAPS, json!({"metadata": {"name": name, "labels": {"app": app}}}));
    let list = |query: &str| get(&format!("{MAPS}?{query}"));
    vec![
        made("a", "web"),
        made("b", "web"),
        made("c", "api"),
        get(MAPS).look(&["/kind", "/apiVersion", "names", "/items/0/kind"]),
        list("labelSelector=app%3Dweb").look(&["names"]),
        list("labelSelector=app%20in%20(api,x)").look(&["names"]),
        list("labelSelector=app!%3Dweb,app").look(&["names"]),
        list("labelSelector=a%20b").vague(),
        list("fieldSelector=metadata.name%3Db").look(&["names"]),
        list("fieldSelector=data.a%3Db").vague(),
        list("labelSelector=app&limit=2").look(&["names", "/metadata/remainingItemCount"]),
        delete(&map("c")),
        list("labelSelector=app&limit=2&continue=$continue").look(&["names"]),
        list("continue=nonsense").vague(),
        list("resourceVersion=nonsense").vague(),
        list("resourceVersion=99999999").vague(),
        list("resourceVersionMatch=Exact").vague(),
        list("resourceVersion=0&resourceVersionMatch=NotOlderThan").look(&["names"]),
        get("/api/v1/namespaces/nowhere/configmaps").look(&["/kind", "names"]),
    ]
}

fn watches() -> Vec<Step> {
    let made = |name: &str, app: &str| Step::post(MAPS, json!({"metadata": {"name": name, "labels": {"app": app}}}));
    let followed = |query: &str| watch(&format!("{MAPS}?watch=true&timeoutSeconds=2&{query}"));
    let label = |name: &str, app: &str| merge(&map(name), json!({"metadata": {"labels": {"app": app}}}));
    vec![
        made("a", "web"),
        get(&map("a")),
        followed("resourceVersion=$rv&labelSelector=app%3Dnothing"),
        followed("fieldSelector=metadata.name%3Da"),
        followed("sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&labelSelector=app"),
        get(&format!("{MAPS}?watch=true&timeoutSeconds=1&sendInitialEvents=true")).vague(),
        get(&map("a")),
        // The watch below begins before these.
        label("a", "api").quiet(),
        made("b", "web").quiet(),
        label("a", "other").quiet(),
        merge(&map("a"), json!({"metadata": {"labels": {"app": null}}})).quiet(),
        delete(&map("b")).quiet(),
        followed("resourceVersion=$rv&labelSelector=app"),
        followed("resourceVersion=$rv&fieldSelector=metadata.name%3Db"),
        followed("resourceVersion=$rv&labelSelector=app%3Dapi"),
    ]
}

fn dry_run() -> Vec<Step> {
    vec![
        Step::post(&format!("{MAPS}?dryRun=All"), config_map("one", json!({"a": "1"}))).look(&["/data"]),
        get(&map("one")),
        Step::post(MAPS, config_map("one", json!({"a": "1"}))),
        merge(&format!("{}?dryRun=All", map("one")), json!({"data": {"a": "2"}})).look(&["/data"]),
        apply(
            &format!("{}&dryRun=All", applied("two", "x")),
            config_map("two", json!({"a": "1"})),
        )
        .look(&["/data"]),
        delete(&format!("{}?dryRun=All", map("one"))).look(&["/kind"]),
        get(MAPS).look(&["names"]),
        get(&map("one")).look(&["/data"]),
        Step::post(&format!("{MAPS}?dryRun=some"), config_map("x", json!({}))).vague(),
    ]
}

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
const METADATA: &str = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";

fn forms() -> Vec<Step> {
    let in_form = |accept, path: &str| Step {
        accept: Some(accept),
        ..get(path)
    };
    const COLUMNS: &[&str] = &["/kind", "/columnDefinitions/*/name", "/columnDefinitions/*/priority"];
    let service = json!({"metadata": {"name": "web"}, "spec": {"ports": [{"name": "a", "port": 80}, {"name": "b", "port": 443, "protocol": "UDP"}], "clusterIP": "None", "selector": {"a": "b"}}});
    let columns = |path: &str| in_form(TABLE, path).look(COLUMNS);
    let in_namespace = |group: &str, plural: &str| columns(&format!("/apis/{group}/namespaces/$ns/{plural}"));
    let core = |plural: &str| columns(&format!("/api/v1/namespaces/$ns/{plural}"));
    vec![
        Step::post(MAPS, config_map("one", json!({"a": "1", "b": "2"}))),
        in_form(TABLE, &format!("{MAPS}?fieldSelector=metadata.name%3Done")).look(&[
            "/kind",
            "/columnDefinitions/*/name",
            "/rows/0/cells/0",
            "/rows/0/cells/1",
            "/rows/0/object/kind",
        ]),
        in_form(TABLE, &format!("{}?includeObject=None", map("one"))).look(&["/kind", "/rows/0/object"]),
        in_form(METADATA, &map("one")).look(&["/kind", "/apiVersion", "/metadata/name", "/data"]),
        in_form(METADATA_LIST, &format!("{MAPS}?fieldSelector=metadata.name%3Done")).look(&[
            "/kind",
            "/items/*/metadata/name",
            "/items/0/kind",
        ]),
        in_form("application/xml", &map("one")).vague(),
        Step::post("/api/v1/namespaces/$ns/services", service).look(&["/spec/type", "/spec/ports"]),
        in_form(TABLE, "/api/v1/namespaces/$ns/services").look(&[
            "/rows/0/cells/0",
            "/rows/0/cells/1",
            "/rows/0/cells/2",
            "/rows/0/cells/3",
            "/rows/0/cells/4",
        ]),
        core("pods"),
        core("services"),
        core("secrets"),
        core("serviceaccounts"),
        core("persistentvolumeclaims"),
        columns("/api/v1/namespaces"),
        columns("/api/v1/nodes"),
        in_namespace("apps/v1", "deployments"),
        in_namespace("apps/v1", "statefulsets"),
        in_namespace("apps/v1", "daemonsets"),
        in_namespace("apps/v1", "replicasets"),
        in_namespace("batch/v1", "jobs"),
        in_namespace("batch/v1", "cronjobs"),
        in_namespace("networking.k8s.io/v1", "ingresses"),
        in_namespace("networking.k8s.io/v1", "networkpolicies"),
        in_namespace("policy/v1", "poddisruptionbudgets"),
        in_namespace("autoscaling/v2", "horizontalpodautoscalers"),
        in_namespace("coordination.k8s.io/v1", "leases"),
        in_namespace("rbac.authorization.k8s.io/v1", "roles"),
        in_namespace("rbac.authorization.k8s.io/v1", "rolebindings"),
        core("events"),
    ]
}

fn custom() -> Vec<Step> {
    const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    const BOATS: &str = "/apis/sea.example.org/v1/namespaces/$ns/boats";
    let definition = json!({"metadata": {"name": "boats.sea.example.org"}, "spec": {"group": "sea.example.org", "scope": "Namespaced",
        "names": {"kind": "Boat", "plural": "boats", "shortNames": ["bt"]}, "versions": [{"name": "v1", "served": true, "storage": true,
            "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.oars", "statusReplicasPath": ".status.oars"}},
            "additionalPrinterColumns": [{"name": "Oars", "type": "integer", "jsonPath": ".spec.oars"}],
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                "spec": {"type": "object", "required": ["hull"], "properties": {"hull": {"type": "string"}, "oars": {"type": "integer", "default": 2},
                    "crew": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                        "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "rank": {"type": "string"}}}},
                    "cargo": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}},
                "status": {"type": "object", "properties": {"oars": {"type": "integer"}, "afloat": {"type": "boolean"}}}}}}}]}});
    let boat = |spec: Value| json!({"apiVersion": "sea.example.org/v1", "kind": "Boat", "metadata": {"name": "one"}, "spec": spec});
    let one = format!("{BOATS}/one");
    let by = |manager: &str| format!("{BOATS}/one?fieldManager={manager}");
    let crew = |crew: Value| boat(json!({"hull": "oak", "crew": crew}));
    vec![
        Step::post(DEFINITIONS, definition).look(&["/spec/names", "/metadata/generation"]),
        get(&format!("{DEFINITIONS}/boats.sea.example.org")).until("/status/conditions/1/status", json!("True")).look(&["/status/conditions/*/type", "/status/storedVersions"]),
        get("/apis/sea.example.org/v1").until("/resources/0/name", json!("boats")).look(&["/resources/*/name", "/resources/0/shortNames", "/resources/0/kind"]),
        Step::post(BOATS, boat(json!({"hull": "oak", "sails": 3, "cargo": {"anything": [1]}}))).look(&["/spec", "/metadata/generation"]),
        Step::post(&format!("{BOATS}?fieldValidation=Strict"), boat(json!({"hull": "oak", "sails": 3}))),
        Step::post(BOATS, json!({"apiVersion": "sea.example.org/v1", "kind": "Boat", "metadata": {"name": "two"}, "spec": {}})).vague(),
        Step::post(BOATS, json!({"apiVersion": "sea.example.org/v1", "kind": "Boat", "metadata": {"name": "two"}, "spec": {"hull": 1}})).vague(),
        merge(&one, json!({"spec": {"oars": 4}, "status": {"afloat": true}})).look(&["/spec/oars", "/status", "/metadata/generation"]),
        merge(&format!("{one}/status"), json!({"spec": {"oars": 9}, "status": {"afloat": true, "oars": 4}})).look(&["/spec/oars", "/status", "/metadata/generation", "managers"]),
        get(&format!("{one}/scale")).look(&["/kind", "/spec", "/status"]),
        merge(&format!("{one}/scale"), json!({"spec": {"replicas": 6}})).look(&["/spec"]),
        get(&one).look(&["/spec/oars", "/metadata/generation"]),
        Step { accept: Some(TABLE), ..get(BOATS) }.look(&["/columnDefinitions/*/name", "/rows/*/cells"]),
        Step::with("PATCH", &one, "application/strategic-merge-patch+json", json!({})).vague(),
        apply(&by("x"), crew(json!([{"name": "ann", "rank": "captain"}]))).look(&["/spec/crew", "managers"]),
        apply(&by("y"), crew(json!([{"name": "bob"}]))).look(&["/spec/crew", "managers"]),
        apply(&by("x"), crew(json!([]))).look(&["/spec/crew"]),
        apply(&by("x"), boat(json!({"hull": "oak", "sails": 3}))),
        get(&format!("{BOATS}?fieldSelector=spec.hull%3Doak")).vague(),
        delete(&format!("{DEFINITIONS}/boats.sea.example.org")).look(&["/kind"]),
        get(&one).until("code", json!(404)).vague(),
    ]
}

fn namespaces() -> Vec<Step> {
    const GOING: &str = "/api/v1/namespaces/going";
    let inside = |name: &str| json!({"metadata": {"name": name, "finalizers": ["example.org/hold"]}});
    vec![
        Step::post("/api/v1/namespaces", json!({"metadata": {"name": "going"}})).look(&[
            "/metadata/labels",
            "/spec/finalizers",
            "/status/phase",
        ]),
        Step::post(&format!("{GOING}/configmaps"), inside("held")),
        delete(GOING).look(&["/kind", "/status/phase"]),
        Step::post(&format!("{GOING}/configmaps"), inside("late")),
        get(&format!("{GOING}/configmaps/held"))
            .until("/metadata/deletionGracePeriodSeconds", json!(0))
            .look(&["/metadata/finalizers"]),
        merge(
            &format!("{GOING}/configmaps/held"),
            json!({"metadata": {"finalizers": null}}),
        )
        .look(&["/metadata/name"]),
        get(GOING).until("code", json!(404)),
    ]
}

fn owners() -> Vec<Step> {
    let owned = |name: &str, uid: &str| json!({"metadata": {"name": name, "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid}]}});
    vec![
        Step::post(MAPS, config_map("owner", json!({}))),
        Step::post(MAPS, owned("owned", "$uid")),
        get(&map("owner")),
        delete_with(&map("owner"), json!({"propagationPolicy": "Background"})),
        get(&map("owned")).until("code", json!(404)),
        Step::post(MAPS, config_map("owner", json!({}))),
        Step::post(MAPS, owned("kept", "$uid")),
        delete_with(&map("owner"), json!({"propagationPolicy": "Orphan"})).look(&["/kind"]),
        get(&map("owner")).until("code", json!(404)),
        get(&map("kept")).look(&["/metadata/ownerReferences"]),
    ]
}

fn rest() -> Vec<Step> {
    let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}});
    const POLICIES: &str = "/apis/networking.k8s.io/v1/namespaces/$ns/networkpolicies";
    let policy = |types: Value| json!({"metadata": {"name": "p"}, "spec": {"podSelector": {}, "policyTypes": types}});
    vec![
        get("/readyz"),
        get("/api").look(&["/kind", "/versions"]),
        get("/apis/apps").look(&["/kind", "/preferredVersion/groupVersion"]),
        Step::post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review).look(&["/status/allowed"]),
        Step::post(POLICIES, policy(json!(["Ingress"]))).look(&["/metadata/generation"]),
        put(&format!("{POLICIES}/p"), policy(json!(["Egress"]))).look(&["/metadata/generation"]),
        merge(&format!("{POLICIES}/p"), json!({"metadata": {"labels": {"a": "b"}}})).look(&["/metadata/generation"]),
        Step::post(DEPLOYMENTS, deployment("web", json!([{"name": "a", "image": "a:1"}]))),
        get(&format!("{DEPLOYMENTS}/web/scale")).look(&["/kind", "/spec/replicas", "/status/selector"]),
        merge(
            &format!("{DEPLOYMENTS}/web"),
            json!({"spec": {"selector": {"matchLabels": {"a": "c"}}}}),
        )
        .vague(),
        get(&format!("{DEPLOYMENTS}/web/nothing")).vague(),
        Step::new("POST", "/api/v1/namespaces/$ns").vague(),
    ]
}
