//! The read-only API.

use std::time::Duration;

/// Watches of the hub's API at once: pedia, a few people and their scripts. Each costs a connection and a list of pointers.
pub const API_WATCHES_MAX: usize = 64;

/// Of these, of one person at the door: a `kubectl get -w` for each kind, and some to spare.
pub const API_WATCHES_OF_PERSON_MAX: usize = 16;

/// Answers of the hub's API that people at the door have at once, watches aside: some kilobytes each, and of a long list what
/// is on its way. Whoever comes beyond is told to come again.
pub const API_REQUESTS_MAX: usize = 256;

/// Of these, of one person: kubectl asks a dozen at once while it discovers kinds.
pub const API_REQUESTS_OF_PERSON_MAX: usize = 32;

/// Objects of a list or a watch that are written at a time: some 100 KiB, so that no answer is ever whole in memory.
pub const API_BATCH: usize = 64;

/// Explanations that are made at a time: each is a core for some tens of milliseconds, and a megabyte of a thousand clusters.
pub const EXPLANATIONS_MAX: usize = 4;

/// Of these, of one person.
pub const EXPLANATIONS_OF_PERSON_MAX: usize = 2;

/// Metrics that are written at a time: two Prometheus servers, and a person who looks.
pub const SCRAPES_MAX: usize = 4;

/// Of these, of one person.
pub const SCRAPES_OF_PERSON_MAX: usize = 2;

/// How long one answer of the hub's API may take to be made; a watch's first byte counts.
pub const API_ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// Characters of a selector; a person's are below a hundred.
pub const SELECTOR_CHARS_MAX: usize = 4_096;

/// How long a watch of the hub's API lasts at most, whatever it asks for.
pub const API_WATCH_MAX: Duration = Duration::from_secs(3_600);

/// Callers of the hub's API at once: every watch has its own connection, and each person or script one more. The next one
/// waits in the kernel's queue.
pub const API_CONNECTIONS_MAX: usize = 128;

/// Bytes of the line and the headers of a request to the hub's API together.
pub const API_HEADER_BYTES_MAX: usize = 32 << 10;

/// How long a caller of the hub's API may take to send the headers, and how long a connection may rest between two requests.
pub const API_HEADER_TIMEOUT: Duration = Duration::from_secs(30);

/// A connection to the hub's API lasts no longer than the longest watch and a little: one whose caller reads no more would
/// stay for ever otherwise.
pub const API_CONNECTION_MAX: Duration = API_WATCH_MAX.saturating_add(Duration::from_secs(60));

/// How long callers have to read their last answers when the hub ends.
pub const API_DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

/// Removed objects that are remembered, so that a watch that was cut hears of them. An older watch lists
/// again.
pub const GONE_OBJECTS_MAX: usize = 1_024;

/// Bytes of a body of `POST /reconcile`, which is thrown away: Git hosts send up to some MiB for a push of many commits.
pub const RECONCILE_BODY_BYTES_MAX: usize = 8 << 20;

/// Bytes of a file of authorities: those of a whole system take some 250 KiB.
pub const AUTHORITIES_BYTES_MAX: u64 = 4 << 20;

/// How long an agent may take to answer a ping: its API server has five seconds of it.
pub const PING_ANSWER_TIMEOUT: Duration = Duration::from_secs(8);

/// Pings of one request, and pings that an agent answers at a time.
pub const PINGS_MAX: usize = 10;

/// Pings of one person at once, each of which is forgiven after [`PING_OF_PERSON_EVERY`]: two requests of the most, and then
/// one a second, as `ping` does.
pub const PINGS_OF_PERSON_MAX: u32 = 20;
/// See [`PINGS_OF_PERSON_MAX`].
pub const PING_OF_PERSON_EVERY: Duration = Duration::from_secs(1);

/// Pings of everybody at once, and one of them is forgiven after so long: each is a stream, and a request to an API server.
pub const PINGS_OF_ALL_MAX: u32 = 100;
/// See [`PINGS_OF_ALL_MAX`].
pub const PING_OF_ALL_EVERY: Duration = Duration::from_millis(20);

/// People whose pings are remembered, at 100 bytes each.
pub const PINGS_PEOPLE_MAX: usize = 1_024;
