//! What the hub decides and writes: events, proposals, objects for Clusternet.

use std::time::Duration;

/// Effects that the hub performs before others have their turn on its thread: envelopes of some thousand units at most, a few
/// milliseconds.
pub const EFFECTS_PER_TURN: usize = 32;

/// Encoded bytes of the manifests in one Description. etcd refuses a request above 1.5 MiB; half a MiB is left
/// for names, labels and the record of who owns which field.
pub const OBJECT_RAW_BYTES_MAX: usize = 1 << 20;

/// Feeds that one Base or Subscription lists, of some 200 bytes each: half a MiB. The rest is counted.
pub const OBJECT_FEEDS_MAX: usize = 2_500;

/// Objects of one page when a hub cluster is listed: a page of the largest Bases is 50 MiB.
pub const OBJECTS_PAGE: u32 = 100;

/// As [`OBJECTS_PAGE`], of Descriptions: a page of the largest is 25 MiB.
pub const DESCRIPTIONS_PAGE: u32 = 25;

/// Statuses written to a hub cluster in one batch, and the pause between two batches: a fleet that changes
/// all the time costs its API server at most 200 requests a second, and each object at most one.
pub const OBJECT_STATUSES_MAX: usize = 200;
/// See [`OBJECT_STATUSES_MAX`].
pub const OBJECTS_REST: Duration = Duration::from_secs(1);

/// How long a cluster may be silent after the hub's start before its status says so: agents are back within
/// some seconds, and two statuses for each would be written for nothing.
pub const OBJECTS_SILENCE: Duration = Duration::from_secs(60);

/// Objects of a hub cluster that one condition names; the rest is counted.
pub const OBJECTS_NAMED_MAX: usize = 3;

/// Units that a proposal's message names for each thing that happens to them; a reviewer of more reads the diff.
pub const PROPOSAL_UNITS_MAX: usize = 50;

/// Clusters that it names for each unit.
pub const PROPOSAL_CLUSTERS_MAX: usize = 10;

/// Objects that it names for each unit.
pub const PROPOSAL_OBJECTS_MAX: usize = 20;

/// Commits of source that it names.
pub const PROPOSAL_COMMITS_MAX: usize = 20;

/// Events that wait for the engine. A step takes microseconds, so a full queue is a storm of reports, and
/// pushes back on whoever sends them.
pub const EVENTS_MAX: usize = 1_024;

/// How long a refused write rests before its refs are looked at again.
pub const WRITE_RETRY: Duration = Duration::from_millis(500);
/// How long the note of which commit is followed rests after it was refused, in seconds: whatever else waits has its turn.
pub const FOLLOW_RETRY_SECONDS: i64 = 60;
/// How long a write rests at most that fails again and again, as on a full disk.
pub const WRITE_RETRY_MAX: Duration = Duration::from_secs(30);

/// How long agents, people and other hubs have to be told that the hub ends, and their streams to be done with: a little
/// more than [`DRAIN_TIMEOUT`](super::DRAIN_TIMEOUT), and less than the 30 s that Kubernetes gives a pod.
pub const GOODBYE_TIMEOUT: Duration = Duration::from_secs(27);

/// The pause before a kubeconfig that could not be used is tried again.
pub const KUBECONFIG_RETRY: Duration = Duration::from_secs(5);

/// The pause before a cluster that could not be reached is tried again.
pub const CLUSTER_RETRY: Duration = Duration::from_secs(5);

/// How long the API server of a cluster without an agent may take to say that it is there. One that answers later is of
/// no use to an applier either.
pub const PULSE_TIMEOUT: Duration = Duration::from_secs(10);

/// Answers in a row that such an API server may miss before it counts as away. With three, one that is started anew is
/// not taken for lost, and one that is gone is known within [`CLUSTER_RETRY`] and [`PULSE_TIMEOUT`] times three.
pub const PULSE_MISSES: u32 = 3;

/// Words about units that left clusters with their objects staying, each for one unit and one cluster, in
/// `release.yaml`. Each is a line of some 30 bytes, so that the file has 600 KiB at most; beyond it the oldest is
/// forgotten.
pub const ORPHANED_MAX: usize = 20_000;
