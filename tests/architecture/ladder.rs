//! Who may use whom.

use std::collections::BTreeSet;

use super::sources;
use super::workspace::{self, list, members, reachable, text};

/// Every edge between our crates that may exist. Another one is the most serious kind of change: its own
/// commit, its own reason, and an entry in ARCHITECTURE.md.
const EDGES: [(&str, &[&str]); 7] = [
    ("edge", &["render"]),
    ("harness", &["reconciler", "render", "tunnel"]),
    ("pedia", &["render"]),
    ("reconciler", &["render", "tunnel"]),
    ("render", &[]),
    ("tests", &["edge", "harness", "pedia", "reconciler", "render", "tunnel"]),
    ("tunnel", &[]),
];

/// What must not reach a crate, not even through others.
const FORBIDDEN: [(&str, &[&str]); 6] = [
    (
        "render",
        &[
            "tokio",
            "tracing",
            "gix",
            "kube",
            "kube-client",
            "kube-runtime",
            "axum",
            "sqlx",
            "notify",
            "rand",
        ],
    ),
    ("tunnel", &["kube", "kube-client", "kube-core", "gix", "axum", "sqlx"]),
    ("reconciler", &["sqlx"]),
    ("pedia", &["gix"]),
    ("edge", &["gix", "sqlx"]),
    ("harness", &["sqlx"]),
];

#[test]
fn every_edge_between_crates_is_an_allowed_one() {
    let members = members();
    assert_eq!(
        members.keys().copied().collect::<Vec<_>>(),
        workspace::CRATES,
        "the ladder knows every crate"
    );
    for (member, allowed) in EDGES {
        for dependency in list(&members[member]["dependencies"]) {
            let Some(used) = workspace::crate_of(text(&dependency["name"])) else {
                continue;
            };
            assert!(allowed.contains(&used), "{member} must not use {used}");
            assert_eq!(dependency["rename"], used, "{member} names {used} by its folder");
        }
    }
}

#[test]
fn no_forbidden_package_reaches_a_crate() {
    for (member, forbidden) in FORBIDDEN {
        let reached = reachable(member);
        assert!(
            reached.len() > 1,
            "{member} uses something, so that its graph was really read"
        );
        let broken: BTreeSet<_> = forbidden.iter().filter(|package| reached.contains(*package)).collect();
        assert!(
            broken.is_empty(),
            "{member} must not depend on {broken:?}, not even through others"
        );
    }
}

#[test]
fn hub_and_agent_never_use_each_other() {
    for (path, text) in sources::shipped("reconciler") {
        let other = match path.split('/').nth(2) {
            Some("hub" | "hub.rs") => "crate::agent",
            Some("agent" | "agent.rs") => "crate::hub",
            _ => continue,
        };
        assert!(
            !text.contains(other),
            "{path} must not name {other}: what both need stands beside them"
        );
    }
}

#[test]
fn edge_uses_only_the_rules_of_render_that_it_shares() {
    for (path, text) in sources::shipped("edge") {
        for (at, _) in text.match_indices("render::") {
            let used = &text[at + "render::".len()..];
            assert!(
                used.starts_with("access") || used.starts_with("selector"),
                "{path} uses more of render than that"
            );
        }
    }
}
