//! A fleet for tests: cluster oslo, of which ada may read pods, run commands, and reach one address.

use render::load::load;
use render::{Fleet, Previous, SourceTree};
use tunnel::PublicKey;

/// With oslo in this sync mode, and its agent's key where it has one.
pub(super) fn fleet(mode: &str, key: Option<&PublicKey>) -> Fleet {
    let file = |path: &str, text: String| (path.to_owned(), text.into_bytes());
    let keys = key.map_or_else(String::new, |key| format!("'{key}'"));
    let cluster = format!(
        "{{apiVersion: fleet.flotilla.dev/v1alpha1, kind: ManagedCluster, metadata: {{name: oslo}}, \
         spec: {{syncMode: {mode}, publicKeys: [{keys}]}}}}"
    );
    let group = "apiVersion: rbac.authorization.k8s.io/v1";
    let role = format!(
        "{{{group}, kind: ClusterRole, metadata: {{name: all}}, rules: [\
         {{apiGroups: [''], resources: [pods, pods/log], verbs: [get, list, watch]}}, \
         {{apiGroups: [''], resources: [pods/exec], verbs: [create]}}, \
         {{nonResourceURLs: [/dial/10.0.0.1:80], verbs: [get]}}]}}"
    );
    let binding = format!(
        "{{{group}, kind: ClusterRoleBinding, metadata: {{name: ada}}, subjects: [{{kind: User, name: ada, \
         apiGroup: rbac.authorization.k8s.io}}], roleRef: {{kind: ClusterRole, name: all, \
         apiGroup: rbac.authorization.k8s.io}}}}"
    );
    let files = [
        file("clusters/oslo.yaml", cluster),
        file("access/role.yaml", role),
        file("access/binding.yaml", binding),
    ];
    let revision = "1".repeat(40).parse().expect("forty hex digits");
    load(&SourceTree::from_files(revision, files), &Previous::default()).0
}
