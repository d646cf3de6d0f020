//! `/metrics`: numbers about the fleet, made from the state at each scrape. Label values are words of our
//! own enums, never names of clusters or units, so that their number is fixed.

mod tunnel;

use ::tunnel::meters::Meters;
use ::tunnel::pool::Pool;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder, text::encode};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::hub::engine::State;
use crate::hub::observe::Observation;
use crate::hub::tally::Counts;
use crate::wire::{AgentCounts, Corrections};

/// The content type of what [`text`] gives.
pub(super) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct InState {
    state: Word,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfSeverity {
    severity: Word,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfCorrection {
    owner: Word,
    cause: Word,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfAnswer {
    class: Word,
    code: Word,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfReason {
    reason: Word,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfClass {
    class: Word,
}

/// A word of one of our enums.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Word(&'static str);

impl EncodeLabelValue for Word {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), std::fmt::Error> {
        EncodeLabelValue::encode(&self.0, encoder)
    }
}

/// All metrics as text; `with_keys` agents keep all of the hub's keys.
pub(super) fn text(state: &State, door: &Counts, with_keys: usize) -> Result<String, std::fmt::Error> {
    let observation = Observation::new(state);
    let view = observation.fleet();
    let mut registry = Registry::with_prefix("flotilla");
    let clusters = family(
        &mut registry,
        "clusters",
        "Registered clusters by whether they are connected",
    );
    for (session, clusters_there) in &view.clusters {
        clusters
            .get_or_create(&InState {
                state: Word(session.as_str()),
            })
            .set(number(*clusters_there));
    }
    let units = family(&mut registry, "units", "Units by whether they are ready");
    let counts = view.units;
    for (word, count) in [
        ("Ready", counts.ready),
        ("NotReady", counts.not_ready),
        ("Unknown", counts.unknown),
    ] {
        units.get_or_create(&InState { state: Word(word) }).set(number(count));
    }
    let findings = family(
        &mut registry,
        "findings",
        "Findings of the accepted revision by severity",
    );
    let counts = view.findings;
    for (word, count) in [
        ("Error", counts.errors),
        ("Warning", counts.warnings),
        ("Info", counts.infos),
    ] {
        findings
            .get_or_create(&OfSeverity { severity: Word(word) })
            .set(number(count));
    }
    let sequence = i64::try_from(view.sequence.unwrap_or_default()).unwrap_or(i64::MAX);
    gauge(
        &mut registry,
        "released_sequence",
        "Sequence of the newest release",
        sequence,
    );
    let followed = i64::from(observation.is_source_followed());
    gauge(
        &mut registry,
        "source_followed",
        "1 while the source branch can be read and followed",
        followed,
    );
    let (alone, since) = observation.oldest_alone().unwrap_or_default();
    gauge(
        &mut registry,
        "away_sequence",
        "Lowest sequence that a cluster that is away goes on enforcing, 0 while none is",
        i64::try_from(alone).unwrap_or(i64::MAX),
    );
    gauge(
        &mut registry,
        "away_since_seconds",
        "Since when the cluster is away that is so for the longest time, in seconds since 1970, 0 while none is",
        since,
    );
    let recovering = i64::from(observation.is_recovering());
    gauge(
        &mut registry,
        "recovering",
        "1 while the hub holds still until it knows what clusters hold",
        recovering,
    );
    gauge(
        &mut registry,
        "clusters_with_hub_keys",
        "Clusters that are connected and whose agents keep all of the hub's keys",
        number(with_keys),
    );
    corrected(&mut registry, &state.corrections);
    of_agents(&mut registry, &state.agents);
    asked(&mut registry, door);
    tunnel::register(&mut registry, &Meters::of_process(), &Pool::of_process());
    let mut out = String::new();
    encode(&mut out, &registry)?;
    Ok(out)
}

fn corrected(registry: &mut Registry, corrections: &Corrections) {
    let family = Family::<OfCorrection, Counter>::default();
    let help = "Objects of units and releases that were put right after somebody changed or removed them";
    registry.register("drift_corrected", help, family.clone());
    for (owner, cause, count) in [
        ("Unit", "Changed", corrections.unit_changed),
        ("Unit", "Removed", corrections.unit_removed),
        ("Release", "Changed", corrections.release_changed),
        ("Release", "Removed", corrections.release_removed),
    ] {
        let labels = OfCorrection {
            owner: Word(owner),
            cause: Word(cause),
        };
        family.get_or_create(&labels).inc_by(count);
    }
}

fn of_agents(registry: &mut Registry, counted: &AgentCounts) {
    let left = Family::<OfReason, Counter>::default();
    registry.register(
        "agent_tunnels_left",
        "Tunnels that agents left for the next one",
        left.clone(),
    );
    for (reason, count) in [
        ("Asked", counted.left_asked),
        ("Dead", counted.left_dead),
        ("Cut", counted.left_cut),
        ("Woken", counted.left_woken),
    ] {
        left.get_or_create(&OfReason { reason: Word(reason) }).inc_by(count);
    }
    let refused = Family::<OfClass, Counter>::default();
    let help = "Streams of hubs that the policies of agents refused";
    registry.register("agent_refusals", help, refused.clone());
    for (class, count) in [
        ("read", counted.refused_read),
        ("interactive", counted.refused_interactive),
        ("push", counted.refused_push),
        ("dial", counted.refused_dial),
        ("look", counted.refused_look),
        ("other", counted.refused_other),
    ] {
        refused.get_or_create(&OfClass { class: Word(class) }).inc_by(count);
    }
    let lost: Counter = Counter::default();
    lost.inc_by(counted.audit_lines_lost);
    let help = "Lines of the audit logs of agents that could not be written";
    registry.register("agent_audit_lines_lost", help, lost);
}

fn asked(registry: &mut Registry, door: &Counts) {
    let answers = Family::<OfAnswer, Counter>::default();
    let help = "Answers of the door for people, by class of request and of the answer's code";
    registry.register("door_answers", help, answers.clone());
    for ((class, code), count) in &door.answers {
        let labels = OfAnswer {
            class: Word(class),
            code: Word(code),
        };
        answers.get_or_create(&labels).inc_by(*count);
    }
    let logins = Family::<OfReason, Counter>::default();
    registry.register(
        "door_failed_logins",
        "Logins at the door for people that failed",
        logins.clone(),
    );
    for (reason, count) in &door.failed_logins {
        logins.get_or_create(&OfReason { reason: Word(reason) }).inc_by(*count);
    }
    let limited = Family::<OfReason, Counter>::default();
    let help = "Requests at the door for people that were refused by a limit";
    registry.register("door_limit_refusals", help, limited.clone());
    for (reason, count) in &door.limited {
        limited.get_or_create(&OfReason { reason: Word(reason) }).inc_by(*count);
    }
    let lost: Counter = Counter::default();
    lost.inc_by(door.audit_lines_lost);
    let help = "Lines of the hub's audit log that could not be written";
    registry.register("door_audit_lines_lost", help, lost);
    let turned_away: Counter = Counter::default();
    turned_away.inc_by(door.turned_away);
    let help = "Connections that found no place at the door for people";
    registry.register("door_turned_away", help, turned_away);
    gauge(
        registry,
        "door_certificate_expiry_seconds",
        "When the first certificate of the door's chain ends, in seconds since 1970, 0 without a door",
        door.certificate_ends.unwrap_or_default(),
    );
}

fn family<Label>(registry: &mut Registry, name: &str, help: &str) -> Family<Label, Gauge>
where
    Label: EncodeLabelSet + Clone + std::hash::Hash + Eq + std::fmt::Debug + Send + Sync + 'static,
{
    let family = Family::<Label, Gauge>::default();
    registry.register(name, help, family.clone());
    family
}

fn gauge(registry: &mut Registry, name: &str, help: &str, value: i64) {
    let gauge: Gauge = Gauge::default();
    gauge.set(value);
    registry.register(name, help, gauge);
}

fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
