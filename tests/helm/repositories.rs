//! Charts of repositories and registries: who sees a password, what is verified, and what is kept.

use std::fs;

use flotilla_tests::{ControlPlane, scratch};
use reconciler::wire::ObjectState;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::applier::*;
use super::charts;
use super::servers::{NAME, PASSWORD, Page, Registry, Server, archive};

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A Secret `login` in namespace `default`.
fn login(cluster: &ControlPlane, authority: Option<&str>) {
    let mut secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"},
        "stringData": {"username": NAME, "password": PASSWORD}});
    if let Some(authority) = authority {
        secret["stringData"]["ca.crt"] = authority.into();
    }
    cluster.apply(&secret.to_string());
}

fn with_login(repo: &str) -> Value {
    json!({"repo": repo, "chart": "web", "version": "1.0.0",
        "chartPullSecret": {"name": "login", "namespace": "default"}})
}

#[test]
fn a_password_goes_to_its_own_scheme_host_and_port_alone() {
    let cluster = cluster("helm-password");
    login(&cluster, None);
    let bytes = fs::read(archive(&charts::settings())).unwrap();
    let digest = sha256(&bytes);
    let (private, elsewhere) = (Server::plain(true), Server::plain(false));
    elsewhere.page("/web-1.0.0.tgz", Page::Bytes(bytes.clone()));
    let mut applier = Applier::start(&cluster, "helm-password");

    // Another port of the same host, named by the index itself.
    private.index(&elsewhere.url("/web-1.0.0.tgz"), &digest);
    applier.deliver(&[(
        "shop/web",
        vec![remote_chart("web", with_login(&private.url("/charts")))],
    )]);
    applier.until_well("shop/web");

    // The same place, reached by a redirect of the repository.
    private.index("web-1.0.0.tgz", &digest);
    private.page("/charts/web-1.0.0.tgz", Page::Redirect(elsewhere.url("/web-1.0.0.tgz")));
    let redirected = remote_chart("redirected", with_login(&private.url("/charts")));
    applier.deliver(&[("shop/web", vec![redirected])]);
    applier.until_well("shop/web");

    let seen = elsewhere.seen();
    assert_eq!(seen.len(), 2, "{seen:?}");
    assert!(
        seen.iter().all(|(_, authorization)| authorization.is_none()),
        "{seen:?}"
    );
    let asked = private.seen();
    assert!(
        asked.iter().all(|(_, authorization)| authorization.is_some()),
        "it has a login: {asked:?}"
    );
    applier.stop();
}

#[test]
fn another_archive_than_the_index_names_is_not_installed() {
    let cluster = cluster("helm-digest");
    let server = Server::plain(false);
    server.index("web-1.0.0.tgz", &sha256(b"the one that was published"));
    server.page(
        "/charts/web-1.0.0.tgz",
        Page::Bytes(fs::read(archive(&charts::settings())).unwrap()),
    );
    let mut applier = Applier::start(&cluster, "helm-digest");
    let chart = remote_chart(
        "web",
        json!({"repo": server.url("/charts"), "chart": "web", "version": "1.0.0"}),
    );
    applier.deliver(&[("shop/web", vec![chart])]);
    applier.until_told("web", ObjectState::Failed, "the repository says");
    assert!(history(&cluster, "web").is_empty());
    applier.stop();
}

#[test]
fn a_repository_is_verified_and_never_left_for_one_that_is_not() {
    let cluster = cluster("helm-tls");
    let bytes = fs::read(archive(&charts::settings())).unwrap();
    let (server, plain) = (Server::tls(true), Server::plain(false));
    server.index("web-1.0.0.tgz", &sha256(&bytes));
    server.page("/charts/web-1.0.0.tgz", Page::Redirect(plain.url("/web-1.0.0.tgz")));
    plain.page("/web-1.0.0.tgz", Page::Bytes(bytes.clone()));
    login(&cluster, None);
    let mut applier = Applier::start(&cluster, "helm-tls");
    applier.deliver(&[(
        "shop/web",
        vec![remote_chart("web", with_login(&server.url("/charts")))],
    )]);
    applier.until_told("web", ObjectState::Failed, "failed to fetch");
    assert!(server.seen().is_empty(), "who cannot be trusted is told nothing");

    login(&cluster, Some(&server.authority));
    applier.until_told("web", ObjectState::Failed, "which is not encrypted");
    assert!(plain.seen().is_empty());

    server.page("/charts/web-1.0.0.tgz", Page::Bytes(bytes));
    applier.until_well("shop/web");
    applier.stop();
}

#[test]
fn a_chart_comes_out_of_a_private_registry() {
    let cluster = cluster("helm-registry");
    let registry = Registry::start();
    registry.push(&archive(&charts::settings()));
    login(&cluster, Some(&registry.authority));
    let mut applier = Applier::start(&cluster, "helm-registry");
    let newest = json!({"repo": registry.url(), "chart": "web",
        "chartPullSecret": {"name": "login", "namespace": "default"}});
    let charts = vec![
        remote_chart("web", with_login(&registry.url())),
        remote_chart("newest", newest),
    ];
    applier.deliver(&[("shop/web", charts)]);
    applier.until_well("shop/web");
    assert_eq!(history(&cluster, "newest"), [(1, "deployed".to_owned())]);

    let mut absent = with_login(&registry.url());
    absent["version"] = "2.0.0".into();
    let mut unknown = with_login(&registry.url());
    unknown["chartPullSecret"] = Value::Null;
    applier.deliver(&[(
        "shop/web",
        vec![remote_chart("absent", absent), remote_chart("unknown", unknown)],
    )]);
    applier.until_told("absent", ObjectState::Failed, "404");
    applier.until_told("unknown", ObjectState::Failed, "failed to fetch");
    applier.stop();
}

#[test]
fn without_network_a_chart_is_installed_from_what_was_kept() {
    let cluster = cluster("helm-offline");
    let bytes = fs::read(archive(&charts::settings())).unwrap();
    let server = Server::plain(false);
    server.index("web-1.0.0.tgz", &sha256(&bytes));
    server.page("/charts/web-1.0.0.tgz", Page::Bytes(bytes));
    let repo = server.url("/charts");
    let chart = |version: &str| remote_chart("web", json!({"repo": repo, "chart": "web", "version": version}));
    let folder = scratch::folder("kept");
    let mut applier = Applier::start_with(&cluster, "helm-offline", 0, Some(folder.clone()));
    for version in ["1.0.0", ""] {
        applier.deliver(&[("shop/web", vec![chart(version)])]);
        applier.until_well("shop/web");
    }
    applier.deliver(&[]);
    applier.until_gone("shop/web");
    let sequence = applier.sequence();
    applier.stop();
    drop(server);

    let mut applier = Applier::start_with(&cluster, "helm-offline-again", sequence, Some(folder.clone()));
    for version in ["1.0.0", ""] {
        applier.deliver(&[("shop/web", vec![chart(version)])]);
        applier.until_well("shop/web");
        applier.deliver(&[]);
        applier.until_gone("shop/web");
    }
    applier.stop();
    let left = fs::read_dir(folder.join("runs")).unwrap().count();
    assert_eq!(left, 0, "no run leaves its files behind");
}
