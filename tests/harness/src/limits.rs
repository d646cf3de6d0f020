//! Every limit of the in-memory API server, with its reason.

use std::time::Duration;

/// Bytes of a request's body: the real API server's limit for objects, and a little for the envelope.
pub(crate) const BODY_BYTES_MAX: usize = 3 << 20;

/// Events that a cluster remembers for watches: several times the objects of a simulated cluster, and each
/// costs about a hundred bytes beside the object that it shares.
pub(crate) const WATCH_WINDOW_EVENTS: usize = 1_024;

/// Events that are turned into JSON at once for one watch: it holds what its reader has not taken.
pub(crate) const WATCH_BATCH_EVENTS_MAX: usize = 64;

/// How long a watch lasts when its caller says nothing; real servers choose 30 to 60 minutes.
pub(crate) const WATCH_DEFAULT: Duration = Duration::from_secs(1_800);

/// The longest that a caller may ask for.
pub(crate) const WATCH_MAX: Duration = Duration::from_secs(3_600);

/// How often a quiet watch hears where it stands, if it wants to; about as often as from a real server.
pub(crate) const BOOKMARK_EVERY: Duration = Duration::from_secs(60);

/// Rounds in which a cluster's controllers settle after one write. Each round follows from a change that the
/// round before made; more than a few of them are a loop.
pub(crate) const SETTLE_ROUNDS_MAX: usize = 64;

/// Connections of one served cluster: a person, some scripts and their watches.
pub(crate) const CONNECTIONS_MAX: usize = 256;

/// How long a caller may take to send its headers.
pub(crate) const HEADER_TIMEOUT: Duration = Duration::from_secs(30);

/// How long callers have to read their last answers at shutdown.
pub(crate) const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

/// Faults that are set at once on one cluster: a test sets a handful.
pub(crate) const FAULTS_MAX: usize = 64;
