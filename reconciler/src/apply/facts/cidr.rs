//! Where a cluster's pods and Services have their addresses: as the control plane was told, else as it says itself.
//!
//! The flags of the control plane's own pods come first, since they are what counts; a hosted control plane shows none,
//! and then the objects say it.

use std::collections::BTreeSet;

use serde_json::Value;

/// Flag of kube-apiserver and kube-controller-manager.
const SERVICE_FLAG: &str = "--service-cluster-ip-range=";

/// Flag of kube-controller-manager.
const POD_FLAG: &str = "--cluster-cidr=";

/// Objects that may say it, each as its API server has it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sources<'a> {
    /// Pods of the control plane.
    pub pods: &'a [Value],
    /// Some nodes.
    pub nodes: &'a [Value],
    /// ServiceCIDRs.
    pub service_cidrs: &'a [Value],
}

impl Sources<'_> {
    /// Where Services have their addresses.
    pub fn services(&self) -> Vec<String> {
        let flag = self.flag(SERVICE_FLAG);
        if !flag.is_empty() {
            return flag;
        }
        let texts = self
            .service_cidrs
            .iter()
            .flat_map(|object| texts(object, "/spec/cidrs"));
        unique(texts)
    }

    /// Where pods have theirs. A node has a part of it, so that those are listed where no flag says the whole.
    pub fn pods(&self) -> Vec<String> {
        let flag = self.flag(POD_FLAG);
        if !flag.is_empty() {
            return flag;
        }
        let of_node = |node: &Value| {
            let one = node.pointer("/spec/podCIDR").and_then(Value::as_str).map(str::to_owned);
            let all = texts(node, "/spec/podCIDRs");
            if all.is_empty() { one.into_iter().collect() } else { all }
        };
        unique(self.nodes.iter().flat_map(of_node))
    }

    /// What the first pod that has a flag says of it; a flag may stand in the command or in its arguments.
    fn flag(&self, flag: &str) -> Vec<String> {
        let containers = self.pods.iter().flat_map(|pod| {
            let containers = pod.pointer("/spec/containers").and_then(Value::as_array);
            containers.into_iter().flatten()
        });
        let mut words = containers.flat_map(|container| {
            let mut words = texts(container, "/command");
            words.extend(texts(container, "/args"));
            words
        });
        let found = words.find_map(|word| word.strip_prefix(flag).map(str::to_owned));
        let ranges = found.iter().flat_map(|value| value.split(','));
        let ranges = ranges.map(str::trim).filter(|range| !range.is_empty());
        ranges.map(str::to_owned).collect()
    }
}

fn texts(object: &Value, pointer: &str) -> Vec<String> {
    let items = object.pointer(pointer).and_then(Value::as_array);
    let texts = items.into_iter().flatten().filter_map(Value::as_str);
    texts.map(str::to_owned).collect()
}

fn unique(texts: impl Iterator<Item = String>) -> Vec<String> {
    texts.collect::<BTreeSet<_>>().into_iter().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(field: &str, words: &[&str]) -> Value {
        json!({ "spec": { "containers": [{ field: words }] } })
    }

    #[test]
    fn flags_of_the_control_plane_count_before_what_objects_say() {
        let pods = [
            pod(
                "command",
                &["kube-apiserver", "--service-cluster-ip-range=10.0.0.0/16,fd00::/108"],
            ),
            pod("args", &["--cluster-cidr=10.244.0.0/16"]),
        ];
        let nodes = [json!({ "spec": { "podCIDR": "10.1.0.0/24" } })];
        let ranges = [json!({ "spec": { "cidrs": ["10.96.0.0/12"] } })];
        let all = Sources {
            pods: &pods,
            nodes: &nodes,
            service_cidrs: &ranges,
        };
        assert_eq!(all.services(), ["10.0.0.0/16", "fd00::/108"]);
        assert_eq!(all.pods(), ["10.244.0.0/16"]);
        let hosted = Sources { pods: &[], ..all };
        assert_eq!(hosted.services(), ["10.96.0.0/12"]);
        assert_eq!(hosted.pods(), ["10.1.0.0/24"]);
    }

    #[test]
    fn both_families_of_a_node_are_listed_and_each_range_once() {
        let node = |ranges: &[&str]| json!({ "spec": { "podCIDR": ranges[0], "podCIDRs": ranges } });
        let nodes = [
            node(&["10.2.0.0/24", "fd00:2::/64"]),
            node(&["10.1.0.0/24"]),
            node(&["10.1.0.0/24"]),
        ];
        let sources = Sources {
            nodes: &nodes,
            ..Sources::default()
        };
        assert_eq!(sources.pods(), ["10.1.0.0/24", "10.2.0.0/24", "fd00:2::/64"]);
        assert!(sources.services().is_empty(), "nobody says it, and nothing is made up");
    }
}
