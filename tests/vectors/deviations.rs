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
const TAINTS_IN_GIT: &str = "a cluster's taints are what its file says; no controller edits them";
const ONE_KEY: &str = "an object answers under every version of its group, and two groups may have one kind";
const NO_SCORE: &str =
    "every match gets the unit, here as upstream; a soft taint is told as a reason and not as a number";

/// Sorted by id.
pub(super) const ALL: &[Deviation] = &[
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
        id: "static-weight-order-01",
        ours: "null",
        because: "weights are not ordered: fractions decide who gets what is left",
    },
    Deviation {
        id: "taint-add-01",
        ours: "null",
        because: TAINTS_IN_GIT,
    },
    Deviation {
        id: "taint-add-02",
        ours: "null",
        because: TAINTS_IN_GIT,
    },
    Deviation {
        id: "taint-add-03",
        ours: "null",
        because: TAINTS_IN_GIT,
    },
    Deviation {
        id: "taint-remove-03",
        ours: "null",
        because: TAINTS_IN_GIT,
    },
    Deviation {
        id: "taint-remove-04",
        ours: "null",
        because: TAINTS_IN_GIT,
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
