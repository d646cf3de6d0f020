//! A hub as a whole, with a door for people and one for other hubs.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use tunnel::SecretKey;

use super::*;
use crate::audit::AuditTo;
use crate::hub::door::{DoorOptions, Identity};
use crate::hub::options::OnRewrite;
use crate::hub::peers::PeerOptions;
use crate::hub::publish::StateRefs;
use crate::hub::repository::fixture::Fixture;
use crate::hub::serve::Listen;

const SOON: Duration = Duration::from_secs(60);

/// How often this process has a file open.
fn opened(path: &Path) -> usize {
    let files = std::fs::read_dir("/proc/self/fd").expect("it is readable");
    files
        .filter_map(|file| std::fs::read_link(file.ok()?.path()).ok())
        .filter(|file| file == path)
        .count()
}

#[tokio::test]
async fn a_hub_opens_its_audit_log_once_for_people_and_for_other_hubs() {
    let (fixture, folder) = (Fixture::new(), tempfile::tempdir().expect("a folder"));
    fixture.commit("source");
    let folder = folder.path().canonicalize().expect("it is there");
    let audit = folder.join("audit");
    let here: SocketAddr = "127.0.0.1:0".parse().expect("an address");
    let options = HubOptions {
        peers: PeerOptions {
            listen: Some(here),
            ..PeerOptions::default()
        },
        source: fixture.path().to_owned(),
        remote: None,
        branch: "main".to_owned(),
        state: None,
        refs: StateRefs::default(),
        on_rewrite: OnRewrite::Hold,
        new_lineage: true,
        recovery_grace: SOON,
        poll: SOON,
        listen: here,
        allowance: tunnel::Allowance::default(),
        listen_plain: None,
        api: Listen::Unix(folder.join("api")),
        key: Arc::new(SecretKey::generate().expect("there is randomness")),
        other_keys: Vec::new(),
        key_files: Vec::new(),
        earlier_managers: Vec::new(),
        deny_file: None,
        tokens: folder.join("tokens"),
        kubeconfig: None,
        helm: "helm".into(),
        objects: None,
        door: Some(DoorOptions {
            address: here,
            identity: Identity::Own {
                key: folder.join("ca.key"),
                names: vec!["localhost".to_owned()],
            },
            client_authority: None,
            tokens: None,
            oidc: None,
            interactive: false,
            audit: Some(AuditTo::File(audit.clone())),
        }),
    };
    let (state, stop) = (SharedState::default(), CancellationToken::new());
    let before = state.read().expect("nobody panicked").version;
    let hub = tokio::spawn(run_with(options, Arc::clone(&state), stop.clone()));
    // Once it heard something, all of it is there.
    let runs = async {
        while state.read().expect("nobody panicked").version == before {
            assert!(!hub.is_finished(), "it goes on");
            tokio::task::yield_now().await;
        }
    };
    timeout(SOON, runs).await.expect("it runs");
    assert_eq!(opened(&audit), 1);
    stop.cancel();
    let ended = timeout(SOON, hub).await.expect("it ends").expect("without a panic");
    assert!(ended.is_ok(), "{ended:?}");
}
