//! What a Subscription and a Fleet say of scheduling.

use super::super::fields::Fields;
use super::apply::duration;
use super::{labels, selector};
use crate::model::{
    Bounds, Choice, DeclaredReplicas, Dividing, Failover, PlacementApproval, Placing, Preference, Scheduling,
    SchedulingPolicy, SchedulingSpec, SpreadConstraint, Strategy, SubGroup, Subscriber, Unsatisfiable,
};
use crate::selector::LabelSelector;

const INT32_MAX: i64 = i32::MAX as i64;

const STRATEGIES: &[(&str, Strategy)] = &[("Spread", Strategy::Spread), ("Binpack", Strategy::Binpack)];

const UNSATISFIABLE: &[(&str, Unsatisfiable)] = &[
    ("DoNotSchedule", Unsatisfiable::DoNotSchedule),
    ("ScheduleAnyway", Unsatisfiable::ScheduleAnyway),
];

/// A number that counts something.
fn count(fields: &mut Fields<'_>, name: &'static str, least: i64) -> Option<u64> {
    fields
        .integer(name, least..=INT32_MAX)
        .and_then(|count| u64::try_from(count).ok())
}

/// Reads what the spec of a Subscription says beside its subscribers.
pub(super) fn read(fields: &mut Fields<'_>) -> (Scheduling, Placing) {
    if fields
        .text("schedulerName")
        .is_some_and(|name| !matches!(name, "" | "default"))
    {
        fields.unsupported("schedulerName", "there is one scheduler, named default");
    }
    let priorities = i64::from(i32::MIN)..=INT32_MAX;
    let policies = [("PreemptLowerPriority", true), ("PreemptNever", false)];
    let own = [
        ("flotilla", SchedulingPolicy::Flotilla),
        ("clusternet", SchedulingPolicy::Clusternet),
    ];
    let ours = fields.judge().ours;
    let mut placing = Placing {
        policy: fields.choice("schedulingPolicy", &own).unwrap_or_default(),
        by_sub_group: fields.boolean("schedulingBySubGroup").unwrap_or_default(),
        priority: fields
            .integer("priority", priorities)
            .and_then(|priority| i32::try_from(priority).ok())
            .unwrap_or_default(),
        // Clusternet fills this in for everybody and never does it, so that it is nobody's wish there.
        preempts: fields
            .choice("preemptionPolicy", &policies)
            .is_some_and(|preempts| preempts && ours),
        ..Placing::default()
    };
    let declared = fields.objects("replicaPaths").unwrap_or_default();
    placing.replica_paths = declared.into_iter().filter_map(replica_path).collect();
    if let Some(clusters) = fields.object("clusters") {
        placing.clusters = choice(clusters);
    }
    let strategies = [("Replication", false), ("Dividing", true)];
    let divides = fields.choice("schedulingStrategy", &strategies).unwrap_or(false);
    let Some(dividing) = fields.object("dividingScheduling") else {
        let scheduling = if divides {
            Scheduling::Dividing(Dividing::Static)
        } else {
            Scheduling::Replication
        };
        return (scheduling, placing);
    };
    let found = read_dividing(dividing, &mut placing);
    if !divides {
        let message = "has no effect with the strategy Replication";
        fields.warning("dividingScheduling", "NoEffect", message);
        return (Scheduling::Replication, placing);
    }
    (Scheduling::Dividing(found), placing)
}

fn read_dividing(mut fields: Fields<'_>, placing: &mut Placing) -> Dividing {
    let is_dynamic = fields.choice("type", &[("Static", false), ("Dynamic", true)]) == Some(true);
    let mut strategy = Strategy::Spread;
    if let Some(mut dynamic) = fields.object("dynamicDividing") {
        strategy = dynamic.choice("strategy", STRATEGIES).unwrap_or(strategy);
        let found = clusternet_choice(&mut dynamic);
        if is_dynamic {
            placing.clusters = merged(&dynamic, std::mem::take(&mut placing.clusters), found);
        } else {
            let path = dynamic.path("strategy");
            let message = "has no effect with the type Static";
            dynamic
                .judge()
                .say(crate::Severity::Warning, "NoEffect", path, message, "");
        }
        dynamic.finish();
    }
    fields.finish();
    if is_dynamic {
        Dividing::Dynamic(strategy)
    } else {
        Dividing::Static
    }
}

/// Clusternet's fields of the same meaning. What is said in `spec.clusters` as well is said twice.
fn clusternet_choice(fields: &mut Fields<'_>) -> Choice {
    let (min, max) = (count(fields, "minClusters", 0), count(fields, "maxClusters", 0));
    let preferred = fields.objects("preferredClusters").unwrap_or_default();
    let spread = fields.objects("topologySpreadConstraints").unwrap_or_default();
    bounded(fields, ("minClusters", min), ("maxClusters", max));
    Choice {
        min,
        max,
        preferred: preferred
            .into_iter()
            .filter_map(|fields| preference(fields, preferred_labels))
            .collect(),
        spread: spread.into_iter().filter_map(clusternet_spread).collect(),
    }
}

fn merged(fields: &Fields<'_>, ours: Choice, theirs: Choice) -> Choice {
    if ours == Choice::default() {
        return theirs;
    }
    if theirs != Choice::default() {
        let message = "says what spec.clusters says too";
        fields.error("", "FieldInvalid", message, "keep one of the two");
    }
    ours
}

fn choice(mut fields: Fields<'_>) -> Choice {
    let (min, max) = (count(&mut fields, "min", 0), count(&mut fields, "max", 0));
    bounded(&fields, ("min", min), ("max", max));
    let preferred = fields.objects("preferred").unwrap_or_default();
    let spread = fields.objects("spread").unwrap_or_default();
    let choice = Choice {
        min,
        max,
        preferred: preferred
            .into_iter()
            .filter_map(|fields| preference(fields, selector::read))
            .collect(),
        spread: spread.into_iter().filter_map(constraint).collect(),
    };
    fields.finish();
    choice
}

/// Refuses a least above the most, and a most of nothing.
fn bounded(fields: &Fields<'_>, (least, min): (&str, Option<u64>), (most, max): (&str, Option<u64>)) {
    match (min, max) {
        (_, Some(0)) => {
            fields.error(
                most,
                "FieldInvalid",
                "of 0 leaves nothing",
                "remove it, or the Subscription",
            );
        }
        (Some(min), Some(max)) if min > max => {
            let message = format!("of {min} is above {most}, which is {max}");
            fields.error(least, "FieldInvalid", message, at_most(max, most));
        }
        _ => {}
    }
}

fn at_most(number: u64, most: &str) -> String {
    format!("write {number} or less, or a greater {most}")
}

/// `labels` reads which clusters are meant.
fn preference(mut fields: Fields<'_>, labels: fn(Fields<'_>) -> LabelSelector) -> Option<Preference> {
    let weight = fields.integer("weight", 1..=100);
    fields.require("weight");
    let preference = fields.object("preference").map(labels);
    fields.require("preference");
    fields.finish();
    Some(Preference {
        weight: u64::try_from(weight?).ok()?,
        preference: preference?,
    })
}

/// Clusternet's form is that of node terms, whose `matchFields` no cluster has.
fn preferred_labels(mut fields: Fields<'_>) -> LabelSelector {
    if fields.written("matchFields").is_some_and(|value| !value.is_null()) {
        fields.unsupported("matchFields", "clusters have labels, and no fields to match");
    }
    selector::read(fields)
}

fn constraint(mut fields: Fields<'_>) -> Option<SpreadConstraint> {
    let topology_key = topology_key(&mut fields);
    let (min_groups, max_groups) = (count(&mut fields, "minGroups", 1), count(&mut fields, "maxGroups", 1));
    bounded(&fields, ("minGroups", min_groups), ("maxGroups", max_groups));
    let max_skew = count(&mut fields, "maxSkew", 1);
    let when_unsatisfiable = fields.choice("whenUnsatisfiable", UNSATISFIABLE).unwrap_or_default();
    fields.finish();
    Some(SpreadConstraint {
        topology_key: topology_key?,
        min_groups,
        max_groups,
        max_skew,
        when_unsatisfiable,
    })
}

fn topology_key(fields: &mut Fields<'_>) -> Option<String> {
    let key = fields.required_text("topologyKey").map(str::to_owned);
    if let Some(problem) = key.as_deref().and_then(labels::wrong_key) {
        fields.error("topologyKey", "FieldInvalid", problem, "");
    }
    key
}

/// The form that pods have it in.
fn clusternet_spread(mut fields: Fields<'_>) -> Option<SpreadConstraint> {
    let topology_key = topology_key(&mut fields);
    let max_skew = count(&mut fields, "maxSkew", 1);
    fields.require("maxSkew");
    let min_groups = count(&mut fields, "minDomains", 1);
    let when_unsatisfiable = fields.choice("whenUnsatisfiable", UNSATISFIABLE);
    fields.require("whenUnsatisfiable");
    for name in [
        "labelSelector",
        "matchLabelKeys",
        "nodeAffinityPolicy",
        "nodeTaintsPolicy",
    ] {
        if fields.written(name).is_some_and(|value| !value.is_null()) {
            fields.warning(
                name,
                "NoEffect",
                "has no effect: what is spread are the replicas of one object",
            );
        }
    }
    fields.finish();
    Some(SpreadConstraint {
        topology_key: topology_key?,
        min_groups,
        max_groups: None,
        max_skew,
        when_unsatisfiable: when_unsatisfiable?,
    })
}

/// `min` and `max` of something.
pub(super) fn bounds(fields: &mut Fields<'_>, name: &'static str) -> Bounds {
    let Some(mut fields) = fields.object(name) else {
        return Bounds::default();
    };
    let (min, max) = (count(&mut fields, "min", 0), count(&mut fields, "max", 0));
    if let (Some(least), Some(most)) = (min, max)
        && least > most
    {
        fields.error(
            "min",
            "FieldInvalid",
            format!("of {least} is above max, which is {most}"),
            at_most(most, "max"),
        );
    }
    fields.finish();
    Bounds { min, max }
}

/// `subGroupStrategy` of a subscriber.
pub(super) fn sub_group(mut fields: Fields<'_>) -> SubGroup {
    let (min, max) = (
        count(&mut fields, "minClusters", 0),
        count(&mut fields, "maxClusters", 0),
    );
    bounded(&fields, ("minClusters", min), ("maxClusters", max));
    fields.finish();
    SubGroup {
        min_clusters: min.unwrap_or_default(),
        max_clusters: max,
    }
}

fn replica_path(mut fields: Fields<'_>) -> Option<DeclaredReplicas> {
    let api_version = fields.required_text("apiVersion").map(str::to_owned);
    let kind = fields.required_text("kind").map(str::to_owned);
    let replicas = fields.required_text("replicas").map(str::to_owned);
    let template = fields
        .text("template")
        .filter(|text| !text.is_empty())
        .map(str::to_owned);
    for (name, pointer) in [("replicas", replicas.as_ref()), ("template", template.as_ref())] {
        if pointer.is_some_and(|pointer| !pointer.starts_with('/')) {
            fields.error(
                name,
                "FieldInvalid",
                "is no JSON pointer",
                "it begins with a slash, as /spec/size",
            );
        }
    }
    fields.finish();
    Some(DeclaredReplicas {
        api_version: api_version?,
        kind: kind?,
        replicas: replicas?,
        template,
    })
}

/// What goes together, and what has no effect.
pub(super) fn check(fields: &Fields<'_>, scheduling: Scheduling, placing: &Placing, subscribers: &[Subscriber]) {
    let divides = scheduling != Scheduling::Replication;
    if placing.preempts && (!scheduling.is_by_room() || placing.policy == SchedulingPolicy::Clusternet) {
        let message = "has no effect: only what is divided by room, by our own rules, takes the room of others";
        fields.warning("preemptionPolicy", "NoEffect", message);
    }
    let is_compatible = divides && placing.policy == SchedulingPolicy::Clusternet;
    let has_skew = placing.clusters.spread.iter().any(|spread| spread.max_skew.is_some());
    if is_compatible && scheduling.is_by_room() && has_skew {
        let message = "maxSkew has no effect on replicas: Clusternet's arithmetic does not spread them evenly";
        fields.warning("clusters.spread", "NoEffect", message);
    }
    if placing.clusters.spread.len() > 1 {
        let message = "names more than one label to spread over";
        fields.error(
            "clusters.spread",
            "NotSupported",
            message,
            "keep the one that matters most",
        );
    }
    for (index, subscriber) in subscribers.iter().enumerate() {
        let at = |name: &str| format!("subscribers[{index}].{name}");
        if placing.by_sub_group && subscriber.sub_group.is_none() {
            let message = "is missing, which schedulingBySubGroup asks of every subscriber";
            fields.error(
                &at("subGroupStrategy"),
                "FieldMissing",
                message,
                "for example {minClusters: 1}",
            );
        }
        if !placing.by_sub_group && subscriber.sub_group.is_some() {
            fields.warning(
                &at("subGroupStrategy"),
                "NoEffect",
                "has no effect without schedulingBySubGroup",
            );
        }
        // Not a warning: whoever approves what is within bounds relies on them.
        if is_compatible && !subscriber.replicas.is_default() {
            fields.error(
                &at("replicas"),
                "NotSupported",
                "cannot be kept by Clusternet's arithmetic, which knows no bounds",
                "leave it out, or schedulingPolicy",
            );
        }
        if !divides && !subscriber.replicas.is_default() {
            fields.warning(
                &at("replicas"),
                "NoEffect",
                "has no effect with the strategy Replication",
            );
        }
    }
    let groups = subscribers.iter().map_while(|subscriber| subscriber.sub_group);
    let is_whole = groups.clone().count() == subscribers.len() && !subscribers.is_empty();
    let takes = |group: SubGroup| group.max_clusters.unwrap_or(group.min_clusters);
    if placing.by_sub_group && is_whole && groups.map(takes).sum::<u64>() == 0 {
        let message = "of 0 for every subscriber takes no cluster";
        fields.error(
            "subscribers[0].subGroupStrategy.minClusters",
            "FieldInvalid",
            message,
            "give one of them 1 or more",
        );
    }
}

/// `spec.scheduling` of a Fleet.
pub(super) fn of_fleet(mut fields: Fields<'_>) -> SchedulingSpec {
    let approvals = [
        ("propose", PlacementApproval::Propose),
        ("withinBounds", PlacementApproval::WithinBounds),
        ("automatic", PlacementApproval::Automatic),
    ];
    let placement_approval = fields.choice("placementApproval", &approvals).unwrap_or_default();
    let preemption = fields.choice("preemption", &[("never", false), ("lowerPriority", true)]);
    let failover = fields.object("failover").and_then(failover);
    let move_timeout_seconds = duration(&mut fields, "moveTimeout");
    fields.finish();
    SchedulingSpec {
        placement_approval,
        preemption: preemption.unwrap_or_default(),
        failover,
        move_timeout_seconds,
    }
}

/// Ten minutes of being heard, before a cluster that came back is given anything.
const RETURN_SECONDS: u64 = 600;

fn failover(mut fields: Fields<'_>) -> Option<Failover> {
    let after = duration(&mut fields, "after");
    fields.require("after");
    let return_after = duration(&mut fields, "returnAfter");
    let budget = fields.object("budget").map(|mut budget| {
        let clusters = budget.integer("clusters", 1..=INT32_MAX);
        budget.require("clusters");
        let per = duration(&mut budget, "per");
        budget.require("per");
        budget.finish();
        (clusters, per)
    });
    if budget.is_none() {
        let message = "is missing: clusters that are moved away from by themselves are counted";
        fields.error("budget", "FieldMissing", message, "for example {clusters: 1, per: 1h}");
    }
    fields.finish();
    let (clusters, per) = budget?;
    Some(Failover {
        after_seconds: after?,
        clusters_max: u64::try_from(clusters?).ok()?,
        per_seconds: per?,
        return_seconds: return_after.unwrap_or(RETURN_SECONDS),
    })
}
