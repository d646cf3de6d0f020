//! The URL of a cluster in Clusternet's kubeconfigs.

use reconciler::hub::clusternet_id;
use serde_json::{Value, json};

use super::fleet::text;

/// Upstream's URL, where our door takes it as that cluster's.
pub(super) fn proxy_url(input: &Value) -> Value {
    let (parent, id) = (text(&input["parentURL"]), text(&input["clusterID"]));
    let path = format!("/apis/proxies.clusternet.io/v1alpha1/sockets/{id}/proxy/direct");
    let is_ours = clusternet_id(&path).as_ref() == Some(&id);
    let url = format!("{}{path}", parent.trim_end_matches('/'));
    json!({ "url": is_ours.then_some(url) })
}
