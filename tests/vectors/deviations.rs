//! Where our answer is another than upstream's, and why ours is right.

/// One vector that we answer differently.
pub(super) struct Deviation {
    pub(super) id: &'static str,
    /// Our answer, as JSON.
    pub(super) ours: &'static str,
    pub(super) because: &'static str,
}

const NO_STATUS: &str =
    "replicas are a function of the commit: nothing is compared with a status, so none can be stale";
const ONE_KEY: &str = "an object answers under every version of its group, and two groups may have one kind";
const NO_SCORE: &str =
    "every match gets the unit, here as upstream; a soft taint is told as a reason and not as a number";

const OWN_TIES: &str = "of equal fractions the first name would always get more: a hash of unit and cluster decides";
const NEWCOMERS: &str = "a cluster that matches has what is not divided from its first day on";
const EVERY_CLUSTER: &str =
    "one pure plan looks at every cluster: a sample that turns would choose otherwise each time";
const ONE_SCORE: &str =
    "no score of upstream's own profile is normalized that way round, and there are no plugins here";

/// Sorted by id.
pub(super) const ALL: &[Deviation] = &[
    Deviation {
        id: "capacity-node-derived-03",
        ours: r#"{"max_replicas": 0}"#,
        because: "a node that is too full takes nothing, and says nothing about the other nodes of its cluster",
    },
    Deviation {
        id: "dynamic-assign-01",
        ours: r#"{"bindingClusters": ["c1", "c2", "c3"], "replicas": {"apps/v1/Deployment/default/f1": [2, 5, 1],
                 "apps/v1/Deployment/default/f3": [1, 1, 1], "v1/Service/default/f2": []}}"#,
        because: OWN_TIES,
    },
    Deviation {
        id: "dynamic-assign-02",
        ours: r#"{"bindingClusters": ["c1", "c2", "c3"], "replicas": {"apps/v1/Deployment/default/f1": [2, 5, 1],
                 "apps/v1/Deployment/default/f3": [2, 3, 4], "v1/Service/default/f2": []}}"#,
        because: OWN_TIES,
    },
    Deviation {
        id: "dynamic-assign-06",
        ours: r#"{"bindingClusters": ["c1", "c2", "c3", "c4"], "replicas": {
                 "apps/v1/Deployment/default/f1": [2, 5, 0, 1], "apps/v1/Deployment/default/f3": [0, 0, 1, 0],
                 "v1/Service/default/f2": []}}"#,
        because: OWN_TIES,
    },
    Deviation {
        id: "dynamic-assign-07",
        ours: r#"{"bindingClusters": ["c1", "c2", "c3", "c4"], "replicas": {
                 "apps/v1/Deployment/default/f1": [1, 3, 0, 0], "apps/v1/Deployment/default/f3": [1, 1, 1, 0],
                 "v1/Service/default/f2": []}}"#,
        because: NEWCOMERS,
    },
    Deviation {
        id: "dynamic-assign-08",
        ours: r#"{"bindingClusters": ["c1", "c2", "c3", "c4"], "replicas": {
                 "apps/v1/Deployment/default/f1": [1, 3, 0, 0], "apps/v1/Deployment/default/f3": [1, 1, 1, 0],
                 "v1/Service/default/f2": [], "v1/Service/default/f4": []}}"#,
        because: NEWCOMERS,
    },
    Deviation {
        id: "feed-changed-01",
        ours: r#"{"replicas": {"apps/v1/Deployment/default/deploy": 3, "apps/v1/StatefulSet/default/sts": 2}}"#,
        because: NO_STATUS,
    },
    Deviation {
        id: "feed-changed-04",
        ours: r#"{"replicas": {"apps/v1/Deployment/default/deploy": 3, "apps/v1/StatefulSet/default/sts": 1}}"#,
        because: NO_STATUS,
    },
    Deviation {
        id: "feed-changed-05",
        ours: r#"{"replicas": {"apps/v1/Deployment/default/deploy": 2, "apps/v1/StatefulSet/default/sts": 2}}"#,
        because: NO_STATUS,
    },
    Deviation {
        id: "feed-format-01",
        ours: r#"{"text": "/Guess//what"}"#,
        because: ONE_KEY,
    },
    Deviation {
        id: "feed-key-derived-01",
        ours: r#"{"key": "apps/Deployment/bar/my-nginx"}"#,
        because: ONE_KEY,
    },
    Deviation {
        id: "override-03",
        ours: r#"{"error": true}"#,
        because: "the chart's name and target never differ by cluster; upstream drops such a patch in silence, we say so",
    },
    Deviation {
        id: "override-derived-01",
        ours: r#"{"error": true}"#,
        because: "a patch whose path is missing is a mistake to tell, and not one to drop in silence with its good half",
    },
    Deviation {
        id: "queue-02",
        ours: r#"{"pop": ["hps", "lps"]}"#,
        because: "what found no room waits nowhere: each plan serves the higher priority first",
    },
    Deviation {
        id: "queue-03",
        ours: "null",
        because: "a plan that changes nothing is no attempt: nothing is counted or tried again, and the next one looks anew",
    },
    Deviation {
        id: "sampling-derived-05",
        ours: r#"{"clusters_to_find": 5000}"#,
        because: EVERY_CLUSTER,
    },
    Deviation {
        id: "sampling-derived-06",
        ours: r#"{"clusters_to_find": 6000}"#,
        because: EVERY_CLUSTER,
    },
    Deviation {
        id: "score-normalize-05",
        ours: "null",
        because: ONE_SCORE,
    },
    Deviation {
        id: "score-normalize-06",
        ours: "null",
        because: ONE_SCORE,
    },
    Deviation {
        id: "spec-hash-01",
        ours: r#"{"hash": "sha256"}"#,
        because: "32 bits of FNV over a debug print collide; a placement has a SHA-256 of all that was looked at",
    },
    Deviation {
        id: "static-divide-derived-03",
        ours: r#"{"replicas": [23, 35, 42]}"#,
        because: "the exact shares are 22.6, 35.5 and 41.9: what is left goes to the largest fractions, not weights",
    },
    Deviation {
        id: "static-divide-derived-08",
        ours: r#"{"error": "NoWeight"}"#,
        because: "weights of 0 cannot divide; upstream then runs the whole number on every cluster",
    },
    Deviation {
        id: "sync-mode-derived-04",
        ours: r#"{"deployed_by_hub": false, "deployed_by_agent": true}"#,
        because: "in Dual the agent applies, so that it goes on while the hub is away; a flag of the agent decides nothing",
    },
    Deviation {
        id: "taint-score-01",
        ours: r#"{"placed": 2, "told": 1}"#,
        because: NO_SCORE,
    },
    Deviation {
        id: "taint-score-03",
        ours: r#"{"placed": 3, "told": 2}"#,
        because: NO_SCORE,
    },
    Deviation {
        id: "taint-score-05",
        ours: r#"{"placed": 2, "told": 1}"#,
        because: NO_SCORE,
    },
    Deviation {
        id: "trim-04",
        ours: r#"{"spec": {"selector": {"matchLabels": {}}, "template": {"metadata": {"labels": {}}}}}"#,
        because: "the server adds job-name under both of its names: one that is kept refuses a Job of another name",
    },
];
