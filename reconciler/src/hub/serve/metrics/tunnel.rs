//! What the tunnels of this process did, held and refused. No cluster and no target is named.

use prometheus_client::encoding::{EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use tunnel::frame::Kind;
use tunnel::meters::{Direction, Handshake, HandshakeStep, Limit, Meters, Times, WaitsFor};
use tunnel::pool::Pool;
use tunnel::{GoAwayReason, OpenCode};

use super::{OfReason, Word, gauge};

#[derive(Clone, Debug, PartialEq, Eq, Hash, prometheus_client::encoding::EncodeLabelSet)]
struct OfResult {
    result: Word,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, prometheus_client::encoding::EncodeLabelSet)]
struct OfLimit {
    limit: Word,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, prometheus_client::encoding::EncodeLabelSet)]
struct WaitingFor {
    waits_for: Word,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, prometheus_client::encoding::EncodeLabelSet)]
struct InDirection {
    direction: Word,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, prometheus_client::encoding::EncodeLabelSet)]
struct OfFrame {
    direction: Word,
    kind: Word,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, prometheus_client::encoding::EncodeLabelSet)]
struct OfGoAway {
    direction: Word,
    reason: Word,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, prometheus_client::encoding::EncodeLabelSet)]
struct OfStep {
    step: Word,
}

/// Both ways, and their names.
const DIRECTIONS: [(Direction, Word); 2] = [(Direction::In, Word("In")), (Direction::Out, Word("Out"))];

/// Adds all of it.
pub(super) fn register(registry: &mut Registry, meters: &Meters, pool: &Pool) {
    held(registry, meters, pool);
    moved(registry, meters);
    answered(registry, meters);
    let refusals = counters(registry, "tunnel_limit_refusals", "What a limit of tunnels refused");
    for limit in Limit::ALL {
        let labels = OfLimit {
            limit: Word(limit.name()),
        };
        refusals.get_or_create(&labels).inc_by(meters.refusals(limit));
    }
    for (name, help, times) in [
        (
            "tunnel_rtt_seconds",
            "Round trips of tunnels, as pings measured them",
            meters.rtts(),
        ),
        (
            "tunnel_open_seconds",
            "Time until a stream that was asked for was granted or refused",
            meters.open_times(),
        ),
    ] {
        registry.register(name, help, Histogram(times));
    }
    let steps = HandshakeStep::ALL.map(|step| {
        let word = Word(step.name());
        (OfStep { step: word }, Histogram(meters.handshake_times(step)))
    });
    let help = "Time that steps of connections took to become tunnels, or not to";
    registry.register("tunnel_handshake_seconds", help, Steps(steps));
}

fn held(registry: &mut Registry, meters: &Meters, pool: &Pool) {
    for (name, help, value) in [
        ("tunnel_sessions", "Tunnels that are up", meters.tunnels()),
        (
            "tunnel_streams",
            "Streams that are open or being opened",
            meters.streams(),
        ),
        (
            "tunnel_queued_bytes",
            "Bytes that were written to streams and wait for their turn",
            meters.queued_bytes(),
        ),
        (
            "tunnel_window_bytes",
            "Bytes that peers may send before they are read, in all tunnels",
            pool.used(),
        ),
        (
            "tunnel_window_bytes_max",
            "Bytes that they may be allowed at most",
            pool.bytes_max(),
        ),
    ] {
        gauge(registry, name, help, i64::try_from(value).unwrap_or(i64::MAX));
    }
    let waiting = Family::<WaitingFor, Gauge>::default();
    let help = "Streams whose writer waits for credit of the peer, or for the connection";
    registry.register("tunnel_streams_blocked", help, waiting.clone());
    for waits_for in WaitsFor::ALL {
        let labels = WaitingFor {
            waits_for: Word(waits_for.name()),
        };
        let count = i64::try_from(meters.waiting(waits_for)).unwrap_or(i64::MAX);
        waiting.get_or_create(&labels).set(count);
    }
}

fn moved(registry: &mut Registry, meters: &Meters) {
    let bytes = counters(registry, "tunnel_stream_bytes", "Bytes of streams, seen from the hub");
    let frames = counters(
        registry,
        "tunnel_frames",
        "Frames after the handshake, seen from the hub",
    );
    for (direction, word) in DIRECTIONS {
        let labels = InDirection {
            direction: word.clone(),
        };
        bytes.get_or_create(&labels).inc_by(meters.bytes(direction));
        for kind in Kind::ALL {
            let labels = OfFrame {
                direction: word.clone(),
                kind: Word(kind.name()),
            };
            frames.get_or_create(&labels).inc_by(meters.frames(direction, kind));
        }
    }
}

fn answered(registry: &mut Registry, meters: &Meters) {
    let handshakes = counters(
        registry,
        "tunnel_handshakes",
        "Connections of agents, by what became of them",
    );
    for end in Handshake::ALL {
        let labels = OfResult {
            result: Word(end.name()),
        };
        handshakes.get_or_create(&labels).inc_by(meters.handshakes(end));
    }
    let opens = counters(
        registry,
        "tunnel_opens",
        "Streams that the hub asked for, by the answer",
    );
    for code in std::iter::once(None).chain(OpenCode::ALL.map(Some)) {
        let result = Word(code.map_or("Granted", OpenCode::name));
        opens.get_or_create(&OfResult { result }).inc_by(meters.opens(code));
    }
    let go_aways = counters(registry, "tunnel_goaways", "Tunnels that one side wanted to end");
    let closes = counters(registry, "tunnel_closes", "Tunnels that are over, by why");
    for (direction, word) in DIRECTIONS {
        for reason in GoAwayReason::ALL {
            let labels = OfGoAway {
                direction: word.clone(),
                reason: Word(reason.name()),
            };
            go_aways
                .get_or_create(&labels)
                .inc_by(meters.go_aways(direction, reason));
        }
    }
    for end in tunnel::meters::End::ALL {
        let reason = Word(end.name());
        closes.get_or_create(&OfReason { reason }).inc_by(meters.ends(end));
    }
}

fn counters<Label>(registry: &mut Registry, name: &str, help: &str) -> Family<Label, Counter>
where
    Label: prometheus_client::encoding::EncodeLabelSet
        + Clone
        + std::hash::Hash
        + Eq
        + std::fmt::Debug
        + Send
        + Sync
        + 'static,
{
    let family = Family::<Label, Counter>::default();
    registry.register(name, help, family.clone());
    family
}

/// Times that were sorted into buckets already.
#[derive(Debug)]
struct Histogram(Times);

impl EncodeMetric for Histogram {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), std::fmt::Error> {
        let Self(times) = self;
        let count = times.buckets.iter().map(|(_, count)| count).sum();
        encoder.encode_histogram::<NoLabelSet>(times.sum.as_secs_f64(), count, &times.buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Histogram
    }
}

/// Times of each step.
#[derive(Debug)]
struct Steps([(OfStep, Histogram); HandshakeStep::ALL.len()]);

impl EncodeMetric for Steps {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), std::fmt::Error> {
        for (step, times) in &self.0 {
            times.encode(encoder.encode_family(step)?)?;
        }
        Ok(())
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Histogram
    }
}
