//! Names, labels and annotations: Clusternet's, by which its tooling selects, and our own.

use render::model::Cluster;
use render::{ClusterName, Digest, UnitKey};

/// Says who made an object, as Clusternet's programs do.
pub(super) const CREATED_BY: &str = "clusternet.io/created-by";
pub(super) const CONFIG_KIND: &str = "apps.clusternet.io/config.kind";
pub(super) const CONFIG_NAME: &str = "apps.clusternet.io/config.name";
pub(super) const CONFIG_NAMESPACE: &str = "apps.clusternet.io/config.namespace";
pub(super) const CONFIG_UID: &str = "apps.clusternet.io/config.uid";
pub(super) const SUBS_NAME: &str = "apps.clusternet.io/subs.name";
pub(super) const SUBS_NAMESPACE: &str = "apps.clusternet.io/subs.namespace";
pub(super) const SUBS_UID: &str = "apps.clusternet.io/subs.uid";

/// Label of every object that is written here; what lacks it is nobody's of ours.
pub(super) const MODE: &str = "fleet.flotilla.dev/mode";
/// Its value.
pub(super) const OBJECTS: &str = "objects";

/// Digest of what was written, so that a hub that starts knows what need not be written again.
pub(super) const WRITTEN: &str = "fleet.flotilla.dev/written";
/// The UID that the API server gave to it: a copy of the object has another one.
pub(super) const RECORDED_UID: &str = "fleet.flotilla.dev/uid";
/// Lineage of the release that it was written with.
pub(super) const LINEAGE: &str = "fleet.flotilla.dev/lineage";
/// Sequence of that release.
pub(super) const SEQUENCE: &str = "fleet.flotilla.dev/sequence";
/// How many manifests of a Description are referenced by digest.
pub(super) const REFERENCED: &str = "fleet.flotilla.dev/referenced";
/// In the place of a manifest: digest of the content that has it.
pub(super) const CONTENT_DIGEST: &str = "fleet.flotilla.dev/content-digest";
/// And its file in the released ref.
pub(super) const CONTENT_PATH: &str = "fleet.flotilla.dev/content-path";
/// Why it is referenced.
pub(super) const CONTENT_REASON: &str = "fleet.flotilla.dev/content-reason";
/// How many feeds a list leaves out.
pub(super) const FEEDS_LEFT_OUT: &str = "fleet.flotilla.dev/feeds-left-out";
/// The variant of a Base or Description.
pub(super) const VARIANT: &str = "fleet.flotilla.dev/variant";
/// The source commit since which it is as it is.
pub(super) const REVISION: &str = "fleet.flotilla.dev/revision";
/// Digest of the variant.
pub(super) const VARIANT_DIGEST: &str = "fleet.flotilla.dev/digest";

/// Bytes of a label's value, as Kubernetes has it.
pub(super) const LABEL_VALUE_BYTES_MAX: usize = 63;

/// Bytes of a Subscription's name in the names that are made from it: names end at 253, and a digest, a
/// deployer and a number follow.
const STEM_BYTES_MAX: usize = 200;

/// The name of a Base: the Subscription's, and a few digits that tell units and clusters apart. Clusternet
/// draws those digits; ours are the same whenever they are made.
pub(super) fn base(unit: &UnitKey, cluster: &ClusterName) -> String {
    let digest = Digest::of_bytes(format!("{unit}\n{cluster}").as_bytes()).short(8);
    let stem: String = unit.name().chars().take(STEM_BYTES_MAX).collect();
    format!("{}-{digest}", stem.trim_end_matches(['-', '.']))
}

/// The name of a Description. The first keeps the name that Clusternet gives it; the others are numbered.
pub(super) fn description(base: &str, deployer: &str, index: usize) -> String {
    let deployer = deployer.to_ascii_lowercase();
    match index {
        0 => format!("{base}-{deployer}"),
        more => format!("{base}-{deployer}-{}", more + 1),
    }
}

/// A cluster's id: the declared one where it is a UUID, which Clusternet's schema demands, else one that is
/// made from the name.
pub(super) fn cluster_id(cluster: &Cluster) -> String {
    if is_uuid(&cluster.cluster_id) {
        return cluster.cluster_id.clone();
    }
    Digest::of_bytes(format!("cluster/{}", cluster.name).as_bytes()).uuid()
}

fn is_uuid(text: &str) -> bool {
    let parts: Vec<_> = text.split('-').collect();
    let is_hex = |part: &str| part.bytes().all(|byte| byte.is_ascii_hexdigit());
    let lengths: Vec<_> = parts.iter().map(|part| part.len()).collect();
    lengths == [8, 4, 4, 4, 12] && parts.into_iter().all(is_hex)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(key: &str) -> UnitKey {
        key.parse().expect("a valid unit")
    }

    #[test]
    fn a_name_is_the_same_whenever_it_is_made_and_differs_between_units_and_clusters() {
        let cluster = |name: &str| ClusterName::parse(name).expect("a valid cluster");
        let name = base(&unit("shop/web"), &cluster("paris"));
        assert_eq!(name, base(&unit("shop/web"), &cluster("paris")));
        assert_ne!(name, base(&unit("team/web"), &cluster("paris")));
        assert_ne!(name, base(&unit("shop/web"), &cluster("oslo")));
        assert!(name.starts_with("web-"), "{name}");
        let long = base(&unit(&format!("shop/{}", "a.".repeat(120) + "a")), &cluster("paris"));
        assert!(description(&long, "Generic", 9_999).len() <= 253, "{long}");
        assert!(!long.contains(".-"), "{long}");
    }

    #[test]
    fn the_first_description_has_the_name_that_clusternet_gives_it() {
        assert_eq!(description("web-0", "Generic", 0), "web-0-generic");
        assert_eq!(description("web-0", "Generic", 1), "web-0-generic-2");
        assert_eq!(description("web-0", "Helm", 0), "web-0-helm");
    }

    #[test]
    fn only_a_uuid_is_taken_for_an_id() {
        assert!(is_uuid("dc91021d-2361-4f6d-a404-7c33b9e01118"));
        assert!(!is_uuid("dc91021d"));
        assert!(!is_uuid(""));
    }
}
