//! What clusters are told of `access/`: the hub itself asks nobody, and clusters wait for a merge.

use super::Gated;

const RIGHTS: &str = "apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: readers}
subjects: [{kind: Group, name: sre}]
roleRef: {kind: ClusterRole, name: view}
";

const PLACEMENT: &str = "placements/flotilla-access/all.yaml";

#[test]
fn a_right_in_clusters_comes_and_goes_with_a_merge_and_every_byte_of_it_is_verified() {
    let gated = Gated::start();
    gated
        .repository
        .push_files("Let people read", &[("access/readers.yaml", RIGHTS)]);
    let branch = gated.until_proposed("Let people read");
    gated.assert_still(2, std::slice::from_ref(&branch), "it waits");
    let released = || gated.repository.read("flotilla/released", PLACEMENT);
    assert_eq!(released(), None);
    gated.fast_forward(&branch);
    gated.until_sequence(3);
    assert!(released().is_some_and(|text| text.contains("oslo")));
    let bare = gated.repository.bare().display().to_string();
    let verified = flotilla_tests::Flotilla::run(&["verify", "--repository", &bare]).expect_ok();
    assert!(verified.starts_with("OK "), "{verified}");

    gated.repository.remove("access/readers.yaml");
    gated.repository.commit("Nobody reads");
    gated.repository.push();
    let branch = gated.until_proposed("Nobody reads");
    assert!(released().is_some(), "clusters keep what they were told");
    gated.fast_forward(&branch);
    gated.until_sequence(4);
    assert_eq!(released(), None);
}
