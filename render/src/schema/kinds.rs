//! The kinds, field by field. One list of like things.

use serde_json::{Value, json};

use super::SourceKind;
use super::fields::{boolean, choice, filled_text, integer, list, object, object_feed, refused, selector, text};
use crate::model::TaintEffect;

/// The largest number of Kubernetes' own integers.
const INT32_MAX: i64 = i32::MAX as i64;

/// What a taint does.
const EFFECTS: &[&str] = &[
    TaintEffect::NoSchedule.as_str(),
    TaintEffect::PreferNoSchedule.as_str(),
    TaintEffect::NoExecute.as_str(),
];

/// Every kind of a fleet repository.
pub const SOURCE_KINDS: &[SourceKind] = &[
    SourceKind {
        kind: "Fleet",
        plural: "fleets",
        short: &[],
        namespaced: false,
        description: "How a fleet repository wants to be treated: one for each, in fleet.yaml.",
        needs_spec: false,
        spec: fleet,
    },
    SourceKind {
        kind: "ManagedCluster",
        plural: "managedclusters",
        short: &["mcls"],
        namespaced: true,
        description: "A registered cluster: its file is its registration.",
        needs_spec: false,
        spec: managed_cluster,
    },
    SourceKind {
        kind: "Subscription",
        plural: "subscriptions",
        short: &["sub", "subs"],
        namespaced: true,
        description: "A unit: which manifests go to which clusters, and how replicas are shared out.",
        needs_spec: true,
        spec: subscription,
    },
    SourceKind {
        kind: "Localization",
        plural: "localizations",
        short: &["loc", "local"],
        namespaced: true,
        description: "What differs on the cluster whose namespace it stands in.",
        needs_spec: true,
        spec: localization,
    },
    SourceKind {
        kind: "Globalization",
        plural: "globalizations",
        short: &["glob", "global"],
        namespaced: false,
        description: "What differs on every cluster that matches.",
        needs_spec: true,
        spec: globalization,
    },
    SourceKind {
        kind: "Suspension",
        plural: "suspensions",
        short: &[],
        namespaced: false,
        description: "What keeps its older revision until the file is removed, or until a time.",
        needs_spec: true,
        spec: suspension,
    },
    SourceKind {
        kind: "PruneBudget",
        plural: "prunebudgets",
        short: &[],
        namespaced: false,
        description: "How many objects one commit may take away.",
        needs_spec: true,
        spec: prune_budget,
    },
    SourceKind {
        kind: "HealthRule",
        plural: "healthrules",
        short: &[],
        namespaced: false,
        description: "How the health of a kind is judged, in every unit that has it.",
        needs_spec: true,
        spec: health_check,
    },
    SourceKind {
        kind: "HelmChart",
        plural: "helmcharts",
        short: &["chart"],
        namespaced: true,
        description: "A chart to deliver.",
        needs_spec: true,
        spec: helm_chart,
    },
];

fn fleet() -> Value {
    let render = object(
        "How decisions are kept.",
        &[],
        [(
            "mode",
            choice(
                "commits: on a branch of the repository. objects: also in a hub cluster.",
                &["commits", "objects"],
            ),
        )],
    );
    object(
        "How this repository wants to be treated.",
        &[],
        [
            (
                "approval",
                choice(
                    "none: what main says is released. required: a person merges first.",
                    &["none", "required"],
                ),
            ),
            ("render", render),
            (
                "offline",
                object(
                    "What a cluster does that hears of no hub.",
                    &[],
                    [(
                        "enforceFor",
                        text("How long it goes on writing, as 720h; without it, for ever. Nothing is removed then."),
                    )],
                ),
            ),
            ("scheduling", fleet_scheduling()),
            (
                "policies",
                object(
                    "How objects are applied, in all clusters.",
                    &[],
                    [(
                        "applySetLabels",
                        boolean(
                            "Whether objects carry the labels of ApplySets (KEP-3659). Flotilla decides nothing by them.",
                        ),
                    )],
                ),
            ),
            (
                "plaintextSecrets",
                choice(
                    "Whether a Secret in plain text is an Error or a Warning.",
                    &["refuse", "warn"],
                ),
            ),
            (
                "lineage",
                text("The root commit of released that agents may change over to, after its history was lost."),
            ),
        ],
    )
}

fn managed_cluster() -> Value {
    let taint = object(
        "Keeps units away that do not tolerate it.",
        &["key", "effect"],
        [
            ("key", filled_text("Key.")),
            ("value", text("Value.")),
            ("timeAdded", text("Not read.")),
            (
                "effect",
                choice("NoSchedule leaves what is there, NoExecute removes it.", EFFECTS),
            ),
        ],
    );
    let key = json!({ "type": "string", "pattern": "^ed25519:[A-Za-z0-9+/]{43}=$" });
    object(
        "Who it is, and how it is reached.",
        &[],
        [
            ("clusterId", text("Its id in Clusternet; its name where there is none.")),
            (
                "clusterType",
                text("What sort of cluster it is, as its file says; nothing is decided on it."),
            ),
            (
                "clusterInitBaseName",
                text("Without effect: what a cluster starts with is a Subscription."),
            ),
            (
                "kubeconfigContext",
                text("A context of the hub's --kubeconfig, for a cluster without an agent."),
            ),
            (
                "syncMode",
                choice(
                    "Dual and Pull: its agent applies, and in Pull the hub reaches nothing. Push: the hub does.",
                    &["Dual", "Pull", "Push"],
                ),
            ),
            (
                "publicKeys",
                list("Keys of its agent, as `flotilla agent join` prints them.", key),
            ),
            ("taints", list("Taints, as on nodes.", taint)),
            (
                "capacity",
                choice(
                    "Whether its nodes are all it has, or it adds some by itself.",
                    &["nodes", "elastic"],
                ),
            ),
            (
                "maxCapacity",
                json!({
                    "type": "object",
                    "description": "What an elastic cluster has in all when it has grown: cpu, memory, pods and others.",
                    "additionalProperties": { "x-kubernetes-int-or-string": true },
                }),
            ),
            (
                "predictor",
                object(
                    "Who is asked how many replicas fit, as Clusternet asks its predictors.",
                    &["url"],
                    [
                        (
                            "url",
                            text("https:// or http://, a host, and perhaps a path before /replicas/predict."),
                        ),
                        ("timeout", text("How long it may take: 20s without it, 60s at most.")),
                    ],
                ),
            ),
            (
                "deletionPolicy",
                choice(
                    "What becomes of its objects when its file is removed; Orphan without it.",
                    &["Delete", "Orphan"],
                ),
            ),
            (
                "drift",
                object("Counts before what Subscriptions say.", &[], [("mode", drift_mode())]),
            ),
        ],
    )
}

fn subscription() -> Value {
    let mut affinity = selector("Labels that a cluster must have; {} matches every cluster, null none.");
    affinity["nullable"] = json!(true);
    let subscriber = object(
        "Chooses clusters by their labels.",
        &["clusterAffinity"],
        [
            ("clusterAffinity", affinity),
            (
                "subGroupStrategy",
                object(
                    "How many of its clusters are taken, with schedulingBySubGroup.",
                    &[],
                    [
                        (
                            "minClusters",
                            integer("With fewer, the last placement stays.", 0, INT32_MAX),
                        ),
                        (
                            "maxClusters",
                            integer("The best so many; minClusters by default.", 1, INT32_MAX),
                        ),
                    ],
                ),
            ),
            (
                "replicas",
                object(
                    "How many replicas of each divided object a cluster may have.",
                    &[],
                    [
                        (
                            "min",
                            integer("Fewer only where it has no room for them.", 0, INT32_MAX),
                        ),
                        ("max", integer("Never more.", 0, INT32_MAX)),
                    ],
                ),
            ),
            ("weight", integer("Its part when replicas are divided.", 0, INT32_MAX)),
        ],
    );
    object(
        "What goes where.",
        &["subscribers", "feeds"],
        [
            (
                "subscribers",
                list("A cluster is chosen when any of them matches.", subscriber),
            ),
            (
                "clusterTolerations",
                list("Taints that do not keep the unit away.", toleration()),
            ),
            (
                "schedulingStrategy",
                choice(
                    "Replication: each cluster gets all. Dividing: they share the replicas.",
                    &["Replication", "Dividing"],
                ),
            ),
            ("dividingScheduling", dividing()),
            (
                "schedulingPolicy",
                choice("Whose arithmetic divides replicas.", &["flotilla", "clusternet"]),
            ),
            ("clusters", clusters()),
            (
                "replicaPaths",
                list("Where kinds say their replicas that are not built in.", replica_path()),
            ),
            ("feeds", list("What is delivered, in this order.", feed())),
            ("dependsOn", list("Units that must be healthy first.", dependency())),
            (
                "replace",
                choice(
                    "Whether an object is made anew when a field that cannot change should change.",
                    &["Never", "WhenImmutable"],
                ),
            ),
            (
                "timeout",
                filled_text("How long an object may take to become healthy, as 10m; 5m by default."),
            ),
            (
                "healthChecks",
                list(
                    "How kinds are judged that report health in their own way.",
                    health_check(),
                ),
            ),
            ("drift", drift()),
            (
                "deletionPolicy",
                choice(
                    "What becomes of the objects when the unit leaves a cluster.",
                    &["Delete", "Orphan"],
                ),
            ),
            (
                "decryption",
                object(
                    "How encrypted documents are read.",
                    &["secret"],
                    [(
                        "secret",
                        filled_text("The Secret with age keys, in the cluster, in namespace flotilla-system."),
                    )],
                ),
            ),
            ("schedulerName", text("default, or nothing.")),
            (
                "schedulingBySubGroup",
                boolean("Whether each subscriber takes some clusters of its own."),
            ),
            (
                "priority",
                integer(
                    "The higher is served first; 0 by default.",
                    i64::from(i32::MIN),
                    INT32_MAX,
                ),
            ),
            (
                "preemptionPolicy",
                choice(
                    "Whether it may take the room of a lower priority, where the fleet allows that; never by default.",
                    &["PreemptLowerPriority", "PreemptNever"],
                ),
            ),
        ],
    )
}

fn dependency() -> Value {
    object(
        "A unit that must be healthy first.",
        &["name"],
        [
            ("namespace", text("Its namespace; this unit's by default.")),
            ("name", filled_text("Its name.")),
            (
                "clusters",
                choice(
                    "Same: on the cluster in question. All: on every cluster that has it.",
                    &["Same", "All"],
                ),
            ),
        ],
    )
}

fn health_check() -> Value {
    object(
        "How a kind is judged: CEL over object.",
        &["apiVersion", "kind", "current"],
        [
            (
                "apiVersion",
                filled_text("Group and version, of which only the group decides."),
            ),
            ("kind", filled_text("Kind.")),
            ("current", filled_text("True when it is as it should be.")),
            ("inProgress", text("True while it is on its way.")),
            (
                "failed",
                text("True when it will not become current by itself; looked at first."),
            ),
        ],
    )
}

fn drift_mode() -> Value {
    choice(
        "Correct: put right at once. Report: said and left. Freeze: nothing is changed, also not by Git.",
        &["Correct", "Report", "Freeze"],
    )
}

fn drift() -> Value {
    let rule = object(
        "Fields that are made once and then left to others.",
        &[],
        [
            (
                "apiVersion",
                text("Group and version, of which only the group decides."),
            ),
            ("kind", text("Kind; none is any.")),
            ("namespace", text("Namespace; none is any.")),
            ("name", text("Name; none is any.")),
            (
                "paths",
                list("JSON pointers of the fields.", json!({ "type": "string" })),
            ),
            (
                "managers",
                list("Field managers whose fields are theirs.", json!({ "type": "string" })),
            ),
        ],
    );
    object(
        "What is done about fields that somebody else changed.",
        &[],
        [
            ("mode", drift_mode()),
            ("ignore", list("What is left to others.", rule)),
        ],
    )
}

fn toleration() -> Value {
    let effects: Vec<&str> = EFFECTS.iter().copied().chain([""]).collect();
    object(
        "A taint that does not keep the unit away.",
        &[],
        [
            ("key", text("The taint's key; none with Exists tolerates all.")),
            (
                "operator",
                choice("Equal, which is the default, or Exists.", &["Equal", "Exists"]),
            ),
            ("value", text("The taint's value, for Equal.")),
            ("effect", choice("The taint's effect; none is any.", &effects)),
            (
                "tolerationSeconds",
                integer(
                    "For so many seconds, with NoExecute; without, for good.",
                    i64::MIN,
                    i64::MAX,
                ),
            ),
        ],
    )
}

/// What may move placements, beside commits.
fn fleet_scheduling() -> Value {
    let budget = object(
        "How many clusters are moved away from by themselves.",
        &["clusters", "per"],
        [
            ("clusters", integer("At most so many.", 1, INT32_MAX)),
            ("per", filled_text("In so long, as 1h.")),
        ],
    );
    let failover = object(
        "When clusters that are silent lose their replicas to others; never by default.",
        &["after", "budget"],
        [
            ("after", filled_text("After so long a silence, as 5m.")),
            (
                "returnAfter",
                filled_text("How long one that came back must be heard; 10m by default."),
            ),
            ("budget", budget),
        ],
    );
    object(
        "What may move placements, beside commits.",
        &[],
        [
            (
                "placementApproval",
                choice(
                    "Who merges what no commit caused, with approval: required.",
                    &["propose", "withinBounds", "automatic"],
                ),
            ),
            (
                "preemption",
                choice("Whether a higher priority may take room.", &["never", "lowerPriority"]),
            ),
            ("failover", failover),
            (
                "moveTimeout",
                filled_text(
                    "How long a cluster that gets fewer replicas waits for those that get more; for ever by default.",
                ),
            ),
        ],
    )
}

/// Which of the clusters that match are taken.
fn clusters() -> Value {
    let constraint = object(
        "Clusters in groups, one for each value of a label.",
        &["topologyKey"],
        [
            (
                "topologyKey",
                filled_text("The clusters' label; those without it are left out."),
            ),
            (
                "minGroups",
                integer("With fewer groups, the last placement stays.", 1, INT32_MAX),
            ),
            ("maxGroups", integer("The best so many groups.", 1, INT32_MAX)),
            (
                "maxSkew",
                integer(
                    "By how many replicas groups may differ, where they are divided by room.",
                    1,
                    INT32_MAX,
                ),
            ),
            (
                "whenUnsatisfiable",
                choice("What becomes of other replicas.", &["DoNotSchedule", "ScheduleAnyway"]),
            ),
        ],
    );
    object(
        "Which of the clusters that match are taken; all by default.",
        &[],
        [
            ("min", integer("With fewer, the last placement stays.", 0, INT32_MAX)),
            ("max", integer("The best so many.", 1, INT32_MAX)),
            ("preferred", list("Clusters that are better than others.", preference())),
            ("spread", list("Over which label they are spread.", constraint)),
        ],
    )
}

fn preference() -> Value {
    object(
        "Clusters that are better than others.",
        &["weight", "preference"],
        [
            ("weight", integer("By how much.", 1, 100)),
            ("preference", selector("Which.")),
        ],
    )
}

fn replica_path() -> Value {
    object(
        "Where a kind says its replicas.",
        &["apiVersion", "kind", "replicas"],
        [
            (
                "apiVersion",
                filled_text("Its group and version; any version of the group is meant."),
            ),
            ("kind", filled_text("The kind.")),
            ("replicas", filled_text("JSON pointer of the number, as /spec/size.")),
            ("template", text("JSON pointer of the pod template, where it has one.")),
        ],
    )
}

fn dividing() -> Value {
    let constraint = object(
        "As pods have it: how evenly replicas are spread over the values of a cluster label.",
        &["maxSkew", "topologyKey", "whenUnsatisfiable"],
        [
            (
                "maxSkew",
                integer("By how many replicas groups may differ.", 1, INT32_MAX),
            ),
            ("topologyKey", filled_text("The clusters' label.")),
            (
                "whenUnsatisfiable",
                choice("What becomes of other replicas.", &["DoNotSchedule", "ScheduleAnyway"]),
            ),
            (
                "minDomains",
                integer("With fewer groups, the last placement stays.", 1, INT32_MAX),
            ),
            ("labelSelector", refused("Without effect.")),
            ("matchLabelKeys", refused("Without effect.")),
            ("nodeAffinityPolicy", refused("Without effect.")),
            ("nodeTaintsPolicy", refused("Without effect.")),
        ],
    );
    let mut preferred = preference();
    preferred["properties"]["preference"]["properties"]["matchFields"] = refused("Refused: clusters have no fields.");
    let dynamic = object(
        "How room is used; the rest is what spec.clusters says too.",
        &[],
        [
            (
                "strategy",
                choice(
                    "Spread: in proportion to the room of each. Binpack: one cluster after the other.",
                    &["Spread", "Binpack"],
                ),
            ),
            (
                "topologySpreadConstraints",
                list("As spec.clusters.spread.", constraint),
            ),
            ("preferredClusters", list("As spec.clusters.preferred.", preferred)),
            ("minClusters", integer("As spec.clusters.min.", 0, INT32_MAX)),
            ("maxClusters", integer("As spec.clusters.max.", 1, INT32_MAX)),
        ],
    );
    object(
        "How replicas are divided.",
        &[],
        [
            (
                "type",
                choice(
                    "Static: by the subscribers' weights. Dynamic: by the room that clusters have.",
                    &["Static", "Dynamic"],
                ),
            ),
            ("dynamicDividing", dynamic),
        ],
    )
}

fn feed() -> Value {
    object(
        "One of three: path, selector, or the name of one object.",
        &[],
        [
            (
                "path",
                filled_text("Files by path or glob from the root of the repository."),
            ),
            (
                "exclude",
                list("Globs that path leaves out.", json!({ "type": "string" })),
            ),
            ("selector", selector("Objects by their labels; may not be empty.")),
            (
                "apiVersion",
                text("Group and version of one object, or to narrow a selector."),
            ),
            ("kind", text("Kind of one object, or to narrow a selector.")),
            ("namespace", text("Namespace of one object, or to narrow a selector.")),
            ("name", text("Name of one object.")),
        ],
    )
}

fn localization() -> Value {
    overrides(None)
}

fn globalization() -> Value {
    overrides(Some(selector("The clusters that it is for; every one without it.")))
}

fn overrides(affinity: Option<Value>) -> Value {
    let step = object(
        "One change.",
        &["type", "value"],
        [
            ("name", text("For messages.")),
            (
                "type",
                choice(
                    "How value is meant: on the object, on the text inside a field of it, or as values of a chart.",
                    &["Helm", "JSONPatch", "MergePatch", "FieldJSONPatch", "FieldMergePatch"],
                ),
            ),
            ("value", text("The patch, as YAML or JSON text.")),
            (
                "overrideChart",
                boolean("Helm only: change the HelmChart object and not its values."),
            ),
            (
                "fieldPath",
                text("Field types only: the path of the field, as /data/server.conf."),
            ),
            (
                "fieldFormat",
                choice("Field types only: what the field's text is.", &["YAML", "JSON"]),
            ),
        ],
    );
    let fields = [
        (
            "overridePolicy",
            choice("Both mean: with this commit.", &["ApplyNow", "ApplyLater"]),
        ),
        (
            "priority",
            integer("The higher one applies later, and so wins; 500 by default.", 0, 1000),
        ),
        ("feed", object_feed("The one object that is changed.")),
        ("overrides", list("Changes, in this order.", step)),
    ];
    let affinity = affinity.map(|affinity| ("clusterAffinity", affinity));
    object(
        "What is changed, and how.",
        &["feed"],
        fields.into_iter().chain(affinity),
    )
}

fn suspension() -> Value {
    let named_object = object(
        "One object.",
        &["apiVersion", "kind", "name"],
        [
            ("apiVersion", filled_text("Its apiVersion; only the group decides.")),
            ("kind", filled_text("Its kind.")),
            ("namespace", text("Its namespace.")),
            ("name", filled_text("Its name.")),
        ],
    );
    let unit = object(
        "One unit; every one without it.",
        &["namespace", "name"],
        [
            ("namespace", filled_text("Its namespace.")),
            ("name", filled_text("Its name.")),
        ],
    );
    object(
        "What is suspended: subscription, clusters, clusterAffinity or objects must say it.",
        &[],
        [
            ("subscription", unit),
            ("clusters", list("Clusters by name.", json!({ "type": "string" }))),
            (
                "clusterAffinity",
                selector("Clusters by their labels; {} is the whole fleet."),
            ),
            (
                "objects",
                list(
                    "Single objects that are left as they are; without them, the unit as a whole keeps its revision.",
                    named_object,
                ),
            ),
            ("reason", text("Why, for people.")),
            (
                "until",
                text("When it ends, as 2026-12-01T09:00:00Z; without it, when the file is removed."),
            ),
        ],
    )
}

fn prune_budget() -> Value {
    let unit = object(
        "One unit; every one without it.",
        &["namespace", "name"],
        [
            ("namespace", filled_text("Its namespace.")),
            ("name", filled_text("Its name.")),
        ],
    );
    object(
        "How much may go: maxObjects or maxPercent must say it.",
        &[],
        [
            (
                "maxObjects",
                integer(
                    "Objects, each counted once for every cluster that it leaves.",
                    0,
                    INT32_MAX,
                ),
            ),
            ("maxPercent", integer("The same, of a hundred that are there.", 0, 100)),
            ("subscription", unit),
            ("clusters", list("Clusters by name.", json!({ "type": "string" }))),
            (
                "clusterAffinity",
                selector("Clusters by their labels; without both, every cluster."),
            ),
        ],
    )
}

fn helm_chart() -> Value {
    let secret = object(
        "The Secret with the login of repo.",
        &[],
        [("name", text("Name.")), ("namespace", text("Namespace."))],
    );
    object(
        "Which chart, from where, and how it is installed: path, or repo and chart.",
        &["targetNamespace"],
        [
            (
                "path",
                filled_text("The folder of a chart in this repository, from its root."),
            ),
            (
                "repo",
                json!({ "type": "string", "description": "Where it comes from.", "pattern": "^(https?|oci)://" }),
            ),
            ("chart", filled_text("Its name.")),
            ("version", text("Its version; none is the newest.")),
            (
                "digest",
                json!({
                    "type": "string",
                    "description": "SHA-256 of the chart's archive; another one is not installed.",
                    "pattern": "^(sha256:)?[0-9a-f]{64}$",
                }),
            ),
            ("targetNamespace", filled_text("Where it is installed.")),
            (
                "releaseName",
                json!({
                    "type": "string",
                    "description": "The release's name; that of the HelmChart without it.",
                    "maxLength": 53,
                }),
            ),
            (
                "values",
                json!({
                    "type": "object",
                    "description": "Values over the chart's own; overrides of type Helm come over these.",
                    "x-kubernetes-preserve-unknown-fields": true,
                }),
            ),
            ("overrides", refused("A field of HelmRelease; values is meant.")),
            ("chartPullSecret", secret),
            (
                "crds",
                choice(
                    "The chart's crds/: left alone, made once, or made and replaced at each upgrade.",
                    &["Skip", "Create", "CreateReplace"],
                ),
            ),
            (
                "historyMax",
                integer("Revisions of the release that are kept; 5 by default.", 1, 100),
            ),
            ("timeoutSeconds", integer("How long Helm may wait.", 0, INT32_MAX)),
            ("atomic", boolean("Helm's --atomic at install.")),
            ("createNamespace", boolean("Helm's --create-namespace.")),
            ("disableHooks", boolean("Helm's --no-hooks.")),
            ("force", boolean("Helm's --force.")),
            ("plainHTTP", boolean("Helm's --plain-http.")),
            ("replace", boolean("Helm's --replace.")),
            ("replaceCRDs", boolean("As crds: CreateReplace.")),
            ("skipCRDs", boolean("As crds: Skip.")),
            ("upgradeAtomic", boolean("Helm's --atomic at upgrade.")),
            ("wait", boolean("Helm's --wait.")),
            ("waitForJob", boolean("Helm's --wait-for-jobs.")),
        ],
    )
}
