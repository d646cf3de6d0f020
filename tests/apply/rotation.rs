//! A credential that is replaced while an agent runs.

use std::fs;

use flotilla_tests::{eventually, scratch, wait};
use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{Api, DeleteParams};
use reconciler::apply::ApiServer;
use serde_json::json;

use super::delivery::deployment;
use super::journalled::Journalled;
use super::served::Served;

#[test]
fn a_rotated_token_is_read_again_and_what_changed_meanwhile_is_put_right() {
    let served = Served::start();
    let token = scratch::folder("token").join("token");
    fs::write(&token, "first").expect("the scratch folder is writable");
    served.server.faults().rotate_token("first");
    let agent = Journalled::new("rotated", &served.kubeconfig(&json!({"tokenFile": token})));
    agent.take(1, &[("shop/web", vec![deployment("default", "web", 1)])]);
    let mut process = agent.start();
    let uid = |token: &str| {
        let kubeconfig = served.kubeconfig(&json!({"token": token}));
        served.runtime.block_on(async {
            let client = ApiServer::from_kubeconfig(&kubeconfig, None)
                .await
                .map_err(|error| error.to_string())?
                .client;
            let api: Api<Deployment> = Api::namespaced(client, "default");
            let found = api.get("web").await.map_err(|error| error.to_string())?;
            Ok::<_, String>((found.metadata.uid, api))
        })
    };
    let (before, _) = eventually(wait::LONG, "it is applied", || {
        process.assert_running();
        uid("first")
    });
    fs::write(&token, "second").expect("the scratch folder is writable");
    served.server.faults().rotate_token("second");
    let (_, api) = uid("second").expect("the new token is known");
    served
        .runtime
        .block_on(api.delete("web", &DeleteParams::default()))
        .expect("it is removed by hand");
    // A token's file is read once a minute.
    eventually(wait::LONG, "it is there again", || {
        process.assert_running();
        let (now, _) = uid("second")?;
        if now == before {
            Err("it is the same".to_owned())
        } else {
            Ok(())
        }
    });
}
