//! Every limit of this crate, with its number and reason.

use std::time::Duration;

/// Bytes of one message on a deliver or report stream: a unit's content is at most a few thousand objects
/// of etcd's 1.5 MiB, and in practice below 8 MiB; 64 MiB bounds what a broken peer can make us hold.
pub const MESSAGE_BYTES_MAX: usize = 64 << 20;

/// Requests to one API server at a time while applying. Eight keep it busy (a bare loop gains nothing
/// from more) and leave room for its other callers.
pub const APPLY_CONCURRENCY: usize = 8;

/// One request to an API server, watches aside.
pub const API_REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a new CustomResourceDefinition may take until it is established.
pub const CRD_ESTABLISHED_TIMEOUT: Duration = Duration::from_secs(30);

/// Entries of one inventory shard: at about 200 bytes each, a shard stays below 600 KiB, less than half of
/// what etcd takes.
pub const INVENTORY_SHARD_ENTRIES_MAX: usize = 3_000;

/// Objects named one by one in a unit's result; the rest is counted.
pub const WORST_OBJECTS_MAX: usize = 5;

/// Characters of an API server's message in a report.
pub const RESULT_MESSAGE_CHARS_MAX: usize = 512;

/// The lease that makes one applier per cluster: a holder that died is replaced after this long.
pub const LEASE_DURATION: Duration = Duration::from_secs(15);

/// How often the holder renews it.
pub const LEASE_RENEW: Duration = Duration::from_secs(5);

/// How long a whole unchanged delivery rests before its objects are looked at again. Watching every
/// object comes with drift correction; until then this bounds how long a change by hand lasts.
pub const RESYNC: Duration = Duration::from_secs(300);
