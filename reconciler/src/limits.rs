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

/// Files of one source revision: a fleet of 1,000 units with 100 files each, doubled.
pub const TREE_FILES_MAX: usize = 200_000;

/// Bytes read for one source revision. Files are at most 8 MiB each; 1 GiB of manifests is far beyond any
/// fleet and still fits beside its plan in a hub of 4 GiB.
pub const TREE_BYTES_MAX: u64 = 1 << 30;

/// Nesting of folders in a source revision; Linux paths end at 4,096 bytes, people at 20 levels.
pub const TREE_DEPTH_MAX: usize = 128;

/// Commits searched for the last good content of a file, or for the trailer that accepts a rewrite.
pub const HISTORY_COMMITS_MAX: usize = 1_000;

/// Decoded Git objects kept while one repository is read: 10,000 manifests of 3 KiB.
pub const OBJECT_CACHE_BYTES: usize = 32 << 20;

/// How often refs are looked at when no event said so; a lost event costs at most this much.
pub const REFS_POLL: Duration = Duration::from_secs(10);

/// A lock file of a ref this old belongs to a process that died: Git holds one for milliseconds.
pub const REF_LOCK_STALE: Duration = Duration::from_secs(60);

/// Commits of the state repository whose placements are kept decoded: rendered, released, and what is
/// about to follow each. With 1,000 units on 100 clusters each takes some 40 MiB.
pub const PUBLISHED_CACHE_COMMITS: usize = 4;

/// One `git` command for housekeeping; packing 1,000 commits takes seconds.
pub const GIT_COMMAND_TIMEOUT: Duration = Duration::from_secs(600);
