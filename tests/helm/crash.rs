//! What a crash in the middle of an upgrade leaves, and that it is mended.

use std::fs;
use std::process::Command;

use flotilla_tests::{ControlPlane, eventually, wait};
use serde_json::json;

use super::applier::*;
use super::charts;

#[test]
fn an_upgrade_that_was_killed_in_the_middle_is_mended() {
    let cluster = cluster("helm-killed");
    let mut applier = Applier::start(&cluster, "helm-killed");
    let chart = |block: bool, colour: &str| {
        let values = json!({"block": block, "colour": colour});
        folder_chart("web", &charts::blocking(), json!({"values": values}))
    };
    applier.deliver(&[("shop/web", vec![chart(false, "blue")])]);
    applier.until_well("shop/web");
    applier.deliver(&[("shop/web", vec![chart(true, "red")])]);
    until_pending(&cluster, "pending-upgrade");
    let sequence = applier.sequence();
    kill_helm(&cluster);
    applier.crash();

    let mut applier = Applier::start_with(&cluster, "helm-killed", sequence, None);
    applier.deliver(&[("shop/web", vec![chart(false, "green")])]);
    applier.until_well("shop/web");
    let settings = cluster.get("shop", "configmap/web-settings").unwrap();
    assert_eq!(settings["data"]["colour"], "green");
    let now = history(&cluster, "web");
    assert_eq!(
        now.last().map(|(_, status)| status.as_str()),
        Some("deployed"),
        "helm's lock is open: {now:?}"
    );
    applier.stop();
}

#[test]
fn an_install_that_was_killed_in_the_middle_is_made_whole() {
    let cluster = cluster("helm-killed-first");
    let mut applier = Applier::start(&cluster, "helm-killed-first");
    let chart = |block: bool| folder_chart("web", &charts::blocking(), json!({"values": {"block": block}}));
    applier.deliver(&[("shop/web", vec![chart(true)])]);
    until_pending(&cluster, "pending-install");
    let sequence = applier.sequence();
    kill_helm(&cluster);
    applier.crash();

    let mut applier = Applier::start_with(&cluster, "helm-killed-first", sequence, None);
    applier.deliver(&[("shop/web", vec![chart(false)])]);
    applier.until_well("shop/web");
    assert_eq!(
        history(&cluster, "web").last().map(|(_, status)| status.as_str()),
        Some("deployed")
    );
    applier.stop();
}

#[test]
fn an_uninstall_that_was_killed_in_the_middle_is_finished() {
    let cluster = cluster("helm-killed-last");
    let mut applier = Applier::start(&cluster, "helm-killed-last");
    let values = json!({"values": {"block": true, "hook": "pre-delete"}});
    applier.deliver(&[("shop/web", vec![folder_chart("web", &charts::blocking(), values)])]);
    applier.until_well("shop/web");
    applier.deliver(&[]);
    until_pending(&cluster, "uninstalling");
    let sequence = applier.sequence();
    kill_helm(&cluster);
    applier.crash();

    let mut applier = Applier::start_with(&cluster, "helm-killed-last", sequence, None);
    applier.deliver(&[]);
    // Nobody runs pods here: the hook is done when somebody says so.
    let done = json!({"status": {"phase": "Succeeded"}}).to_string();
    eventually(wait::LONG, "the release is gone", || {
        let pods = cluster.kubectl(&["-n", "shop", "get", "pods", "-l", "job-name=web-block", "-o", "name"]);
        for pod in pods.stdout.lines() {
            let _gone_meanwhile = cluster.kubectl(&[
                "-n",
                "shop",
                "patch",
                pod,
                "--subresource=status",
                "--type=merge",
                "-p",
                &done,
            ]);
        }
        match history(&cluster, "web") {
            releases if releases.is_empty() => Ok(()),
            releases => Err(format!("{releases:?}, {}", pods.stdout)),
        }
    });
    applier.until_gone("shop/web");
    assert!(!cluster.has("shop", "configmap/web-settings"), "nothing of it is left");
    applier.stop();
}

#[track_caller]
fn until_pending(cluster: &ControlPlane, status: &str) {
    eventually(wait::LONG, "helm waits for its hook", || {
        let now = history(cluster, "web");
        match now.last() {
            Some((_, last)) if last == status && cluster.has("shop", "job/web-block") => Ok(()),
            _ => Err(format!("{now:?}")),
        }
    });
}

/// Kills every helm that waits for the hook of this cluster's release, as the kernel does when memory is short.
#[track_caller]
fn kill_helm(cluster: &ControlPlane) {
    let processes = fs::read_dir("/proc").expect("this is Linux").flatten();
    let ours = processes.filter_map(|process| {
        let id: u32 = process.file_name().to_str()?.parse().ok()?;
        let line = fs::read(process.path().join("cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        let parent = fs::read_to_string(process.path().join("status")).ok()?;
        let is_child = parent.contains(&format!("PPid:\t{}\n", std::process::id()));
        let is_release = ["upgrade web", "install web"].iter().any(|words| line.contains(words));
        (is_child && is_release && line.contains("--namespace=shop")).then_some(id)
    });
    let ours: Vec<_> = ours.collect();
    assert!(!ours.is_empty(), "helm runs against {}", cluster.name());
    for id in ours {
        let killed = Command::new("kill")
            .args(["-9", &id.to_string()])
            .status()
            .expect("kill starts");
        assert!(killed.success());
    }
}
