//! What goes or stays behind with what a plan removes: only the clusters know, and the hub asks them.
//!
//! In: objects that leave clusters. Out: an answer for each cluster, or why there is none. It changes no byte of a plan.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::{StreamExt as _, stream};
use render::describe::is_chart;
use render::{ClusterName, ObjectKey};
use serde::Serialize;

use super::lines::{named, object_name};
use super::summary::counted;
use crate::cli::client::{GROUP, Questions, encoded};
use crate::cli::output::visible;
use crate::limits::DEPENDANTS_ASKED_MAX;
use crate::wire::{ClaimVolume, Counted, Dependants, ObjectDependants};

/// Clusters that are asked for one plan; a person reads no more, and the rest have the same as a rule.
const CLUSTERS_ASKED_MAX: usize = 20;

/// Clusters that are asked at a time.
pub(super) const CLUSTERS_AT_ONCE: usize = 4;

/// Bytes of the objects of one question, so that its URL stays below what the hub reads.
const QUESTION_BYTES_MAX: usize = 16 << 10;

/// Cluster → what leaves it.
pub(in crate::cli) type Removals = BTreeMap<ClusterName, BTreeSet<ObjectKey>>;

/// What one cluster says.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::cli) struct ClusterDependants {
    pub(super) cluster: ClusterName,
    /// Why nothing is known; then there is nothing else.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) not_looked_at: String,
    #[serde(flatten)]
    pub(super) found: Dependants,
}

/// Asks the clusters, a few at a time; a hub that does not answer is not asked again.
pub(in crate::cli) async fn ask(hub: &Questions<'_>, removals: &Removals) -> Vec<ClusterDependants> {
    let wanted = removals.iter().map(|(cluster, objects)| (cluster, asked(objects)));
    let wanted = wanted.filter(|(_, (objects, _))| !objects.is_empty()).enumerate();
    let answers = wanted.map(|(at, (cluster, (objects, left)))| async move {
        let answer = match at < CLUSTERS_ASKED_MAX {
            true => of_cluster(hub, cluster, &objects).await,
            false => Err(format!("only the first {CLUSTERS_ASKED_MAX} clusters are asked")),
        };
        told(cluster, answer, left)
    });
    stream::iter(answers).buffered(CLUSTERS_AT_ONCE).collect().await
}

fn told(cluster: &ClusterName, answer: Result<Dependants, String>, left: usize) -> ClusterDependants {
    let (mut found, not_looked_at) = match answer {
        Ok(found) => (found, String::new()),
        Err(why) => (Dependants::default(), why),
    };
    if left > 0 && not_looked_at.is_empty() {
        let left = counted(left, "more removed object was", "more removed objects were");
        found.notes.push(format!("{left} not asked about"));
    }
    found.objects.retain(|object| !object.is_empty());
    ClusterDependants {
        cluster: cluster.clone(),
        not_looked_at,
        found,
    }
}

/// The objects of one question, those first with which most may go, and how many are left out.
fn asked(objects: &BTreeSet<ObjectKey>) -> (Vec<&ObjectKey>, usize) {
    let rank = |key: &ObjectKey| match key.kind.as_str() {
        "Namespace" => 0,
        "CustomResourceDefinition" => 1,
        "PersistentVolumeClaim" | "StatefulSet" => 2,
        "ConfigMap" | "Secret" | "ServiceAccount" | "Service" => 4,
        _ => 3,
    };
    let mut all: Vec<_> = objects.iter().filter(|key| !is_chart(key)).collect();
    all.sort_by_key(|key| rank(key));
    let mut bytes = 0;
    let fits = |key: &&&ObjectKey| {
        bytes += parameter(key).len();
        bytes <= QUESTION_BYTES_MAX
    };
    let taken: Vec<_> = all
        .iter()
        .take_while(fits)
        .take(DEPENDANTS_ASKED_MAX)
        .copied()
        .collect();
    let left = all.len() - taken.len();
    (taken, left)
}

fn parameter(key: &ObjectKey) -> String {
    format!("object={}", encoded(&key.to_string()))
}

async fn of_cluster(hub: &Questions<'_>, cluster: &ClusterName, objects: &[&ObjectKey]) -> Result<Dependants, String> {
    let parameters: Vec<_> = objects.iter().map(|key| parameter(key)).collect();
    let path = format!(
        "{GROUP}/managedclusters/{}/dependants?{}",
        encoded(cluster.as_str()),
        parameters.join("&")
    );
    let answer = hub.value(&path).await?;
    serde_json::from_value(answer).map_err(|error| format!("the hub's answer was not understood: {error}"))
}

/// All of it in lines, each with how deep it stands: clusters of which the same is to be said are told together.
pub(in crate::cli) fn lines(clusters: &[ClusterDependants]) -> Vec<(usize, String)> {
    let mut told: Vec<(Vec<String>, Vec<&str>)> = Vec::new();
    for cluster in clusters {
        let body = cluster_lines(cluster);
        match told.iter_mut().find(|(known, _)| *known == body) {
            Some((_, names)) => names.push(cluster.cluster.as_str()),
            None => told.push((body, vec![cluster.cluster.as_str()])),
        }
    }
    let mut lines = Vec::new();
    for (body, names) in told {
        let place = format!("on {}", named(&names));
        match body.as_slice() {
            [one] if one.starts_with("not looked at: ") || one == NOTHING => lines.push((0, format!("{place}: {one}"))),
            _ => {
                lines.push((0, place));
                lines.extend(body.into_iter().map(|line| (1, line)));
            }
        }
    }
    lines
}

const NOTHING: &str = "nothing else goes with it";

fn cluster_lines(cluster: &ClusterDependants) -> Vec<String> {
    if !cluster.not_looked_at.is_empty() {
        return vec![visible(&format!("not looked at: {}", cluster.not_looked_at))];
    }
    let mut lines: Vec<_> = cluster.found.objects.iter().flat_map(object_lines).collect();
    if lines.is_empty() {
        lines.push(NOTHING.to_owned());
    }
    lines.extend(cluster.found.notes.iter().map(|note| visible(&format!("note: {note}"))));
    lines
}

fn object_lines(found: &ObjectDependants) -> Vec<String> {
    let name = match found.object.parse::<ObjectKey>() {
        Ok(key) => object_name(&key),
        Err(_) => visible(&found.object),
    };
    let mut lines = Vec::new();
    let mut say = |words: String| lines.push(visible(&format!("{name}: {words}")));
    if !found.goes.is_empty() {
        say(format!("{} with it", go(&found.goes)));
    }
    if let Some(custom) = &found.custom_resources {
        say(format!(
            "{} with it, which are of its kind",
            go(std::slice::from_ref(custom))
        ));
    }
    if !found.strangers.is_empty() {
        say(format!("{} with it, which no unit has", go(&found.strangers)));
    }
    if !found.stays.is_empty() {
        let verb = if total(&found.stays) == 1 { "stays" } else { "stay" };
        say(format!("{} {verb}, for another owner", list(&found.stays)));
    }
    for volume in &found.volumes {
        say(fate(volume));
    }
    if !found.finalizers.is_empty() {
        say(format!(
            "is gone once its finalizers are done: {}",
            found.finalizers.join(", ")
        ));
    }
    lines
}

/// `1 ReplicaSet (a) and 2 Pods (b, c) go`.
fn go(found: &[Counted]) -> String {
    let verb = if total(found) == 1 { "goes" } else { "go" };
    format!("{} {verb}", list(found))
}

fn total(found: &[Counted]) -> usize {
    found.iter().map(|counted| counted.count).sum()
}

fn list(found: &[Counted]) -> String {
    let parts: Vec<_> = found.iter().map(count).collect();
    match parts.as_slice() {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        _ => parts.concat(),
    }
}

fn count(Counted { kind, count, names }: &Counted) -> String {
    if names.is_empty() {
        return format!("{count} {kind}");
    }
    let more = match count.saturating_sub(names.len()) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{count} {kind} ({}{more})", names.join(", "))
}

/// What becomes of the data of a claim that goes.
fn fate(volume: &ClaimVolume) -> String {
    let ClaimVolume {
        claim,
        volume,
        reclaim_policy,
    } = volume;
    let fate = match (volume.as_str(), reclaim_policy.as_str()) {
        ("", _) => return format!("claim {claim} is bound to no volume"),
        (_, "Delete") => "which is deleted with its data",
        (_, "Retain") => "which stays with its data, bound to nobody",
        (_, "Recycle") => "whose data is deleted",
        _ => "of which nothing more is known",
    };
    let policy = match reclaim_policy.as_str() {
        "" => String::new(),
        policy => format!(" (reclaim policy {policy})"),
    };
    format!("claim {claim} is bound to volume {volume}{policy}, {fate}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(kind: &str, count: usize, names: &[&str]) -> Counted {
        Counted {
            kind: kind.to_owned(),
            count,
            names: names.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    fn said(name: &str, answer: Result<Dependants, &str>) -> ClusterDependants {
        let cluster = ClusterName::parse(name).expect("a valid name");
        told(&cluster, answer.map_err(str::to_owned), 0)
    }

    #[test]
    fn dependants_read_as_sentences_and_alike_clusters_are_told_together() {
        let volume = |policy: &str| ClaimVolume {
            claim: "shop/data".to_owned(),
            volume: "pv-1".to_owned(),
            reclaim_policy: policy.to_owned(),
        };
        let found = Dependants {
            objects: vec![
                ObjectDependants {
                    object: "apps/Deployment/shop/web".to_owned(),
                    goes: vec![counted("Pod", 5, &["a", "b", "c"]), counted("ReplicaSet", 1, &["a"])],
                    stays: vec![counted("Secret", 1, &["s"])],
                    ..ObjectDependants::default()
                },
                ObjectDependants {
                    object: "/PersistentVolumeClaim/shop/data".to_owned(),
                    finalizers: vec!["kubernetes.io/pvc-protection".to_owned()],
                    volumes: vec![volume("Delete"), volume("Retain")],
                    ..ObjectDependants::default()
                },
                ObjectDependants {
                    object: "/Namespace//shop\u{1b}[2J".to_owned(),
                    strangers: vec![counted("ConfigMap", 1, &["theirs"])],
                    ..ObjectDependants::default()
                },
                ObjectDependants {
                    object: "/ConfigMap/shop/plain".to_owned(),
                    ..ObjectDependants::default()
                },
            ],
            notes: vec!["only the first 20000 objects were looked at".to_owned()],
        };
        let away = "cluster c is not connected";
        let clusters = [
            said("a", Ok(found.clone())),
            said("b", Ok(found)),
            said("c", Err(away)),
            said("d", Ok(Dependants::default())),
        ];
        let text: Vec<_> = lines(&clusters)
            .into_iter()
            .map(|(depth, line)| format!("{:width$}{line}", "", width = depth * 2))
            .collect();
        let expected = "\
on a, b
  Deployment shop/web: 5 Pod (a, b, c and 2 more) and 1 ReplicaSet (a) go with it
  Deployment shop/web: 1 Secret (s) stays, for another owner
  PersistentVolumeClaim shop/data: claim shop/data is bound to volume pv-1 (reclaim policy Delete), which is deleted with its data
  PersistentVolumeClaim shop/data: claim shop/data is bound to volume pv-1 (reclaim policy Retain), which stays with its data, bound to nobody
  PersistentVolumeClaim shop/data: is gone once its finalizers are done: kubernetes.io/pvc-protection
  Namespace shop\\u{1b}[2J: 1 ConfigMap (theirs) goes with it, which no unit has
  note: only the first 20000 objects were looked at
on c: not looked at: cluster c is not connected
on d: nothing else goes with it";
        assert_eq!(text.join("\n"), expected);
    }

    #[test]
    fn a_question_is_bounded_and_asks_first_for_what_takes_most_along() {
        let key = |kind: &str, name: &str| ObjectKey::new("v1", kind, "shop", name);
        let mut objects: BTreeSet<_> = (0..DEPENDANTS_ASKED_MAX)
            .map(|at| key("ConfigMap", &format!("c{at}")))
            .collect();
        objects.extend([key("Namespace", "shop"), key("PersistentVolumeClaim", "data")]);
        objects.insert(ObjectKey::new(
            "fleet.flotilla.dev/v1alpha1",
            "HelmChart",
            "shop",
            "chart",
        ));
        let (asked_for, left) = asked(&objects);
        let kinds: Vec<_> = asked_for.iter().map(|key| key.kind.as_str()).take(3).collect();
        assert_eq!(kinds, ["Namespace", "PersistentVolumeClaim", "ConfigMap"]);
        assert_eq!((asked_for.len(), left), (DEPENDANTS_ASKED_MAX, 2));
        let long: BTreeSet<_> = (0..DEPENDANTS_ASKED_MAX)
            .map(|at| key("ConfigMap", &format!("{at}{}", "x".repeat(1_000))))
            .collect();
        let (asked_for, left) = asked(&long);
        assert!((1..20).contains(&asked_for.len()) && left > 0, "{}", asked_for.len());
    }
}
