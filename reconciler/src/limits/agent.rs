//! The agent: its journal, its tunnels, and what it lends of its API server.

use std::time::Duration;

use super::apply::APPLY_CONCURRENCY;

/// How long the clock is trusted to go on as it went.
pub const CLOCK_LOOK: Duration = Duration::from_secs(60);

/// How often an agent notes that a hub is there, or for how long none was: a write each time, and what an absence may seem
/// longer than it is after an agent was killed.
pub const ABSENCE_NOTED: Duration = Duration::from_secs(300);

/// Between two of these notes at least, however often a tunnel is lost and found.
pub const ABSENCE_NOTE_GAP: Duration = Duration::from_secs(60);

/// The first wait after a journal could not be read or written, and the longest one.
pub const JOURNAL_RETRY_FIRST: Duration = Duration::from_millis(500);
/// See [`JOURNAL_RETRY_FIRST`].
pub const JOURNAL_RETRY_MAX: Duration = Duration::from_secs(30);

/// Bytes of one part of a journal in Secrets: a Secret may have 1 MiB, a request 1.5 MiB with its bytes in base64.
pub const JOURNAL_PART_BYTES: usize = 512 << 10;

/// Bytes of a journal in Secrets, compressed: manifests compress to a tenth, so that this is more than one unit may be,
/// and a small part of what etcd holds.
pub const JOURNAL_BYTES_MAX: usize = 64 << 20;

/// Parts of a journal that are read or written at a time: a thousand units are there in seconds, and the API server has
/// other callers.
pub const JOURNAL_CONCURRENCY: usize = 8;

/// How often a journal in Secrets is read anew that another agent of this cluster wrote meanwhile.
pub const JOURNAL_READ_TRIES: u32 = 5;

/// How long a hub that says nothing more waits to hear that what it said is journalled.
pub const JOURNAL_PATIENCE: Duration = Duration::from_secs(5);

/// How long the hub may take to accept the report stream.
pub const REPORT_OPEN_TIMEOUT: Duration = Duration::from_secs(10);

/// Questions of a doctor about rights that are open at once: an API server answers each from memory.
pub const DOCTOR_QUESTIONS_MAX: usize = 8;

/// Kinds and namespaces of the feeds whose rights a doctor asks for: six questions about each, answered within seconds.
pub const DOCTOR_PLACES_MAX: usize = 100;

/// Missing rights that a doctor names: more is no sentence.
pub const DOCTOR_RIGHTS_SHOWN_MAX: usize = 12;

/// Seconds by which a clock may be off before a person is told: certificates and reports are not that exact.
pub const CLOCK_SKEW_SECONDS_MAX: i64 = 30;

/// Addresses of hubs that an agent dials, those it was told of included.
pub const HUB_LINES_MAX: usize = 4;

/// So many failures in a row, some minutes of them, end an agent's dialling of an address that a hub told of.
pub const LEARNED_FAILURES_MAX: u32 = 10;

/// Tunnels to different hubs that an agent wants, where hubs tell of several: the end of one hub costs no dial.
pub const HUB_TUNNELS_WANTED: usize = 2;

/// How often an agent looks whether this machine has another address: a laptop or a node that moved is back within it.
pub const ADDRESS_LOOK: Duration = Duration::from_secs(5);

/// Bytes of the message that says for whom the hub asks: its name, its groups and a number.
pub const CALLER_BYTES_MAX: usize = 64 << 10;

/// Groups of one caller. Identity providers give tens; each is a header, and an API server takes 1 MiB of them.
pub const CALLER_GROUPS_MAX: usize = 256;

/// Characters of a caller's name, or of one of its groups.
pub const CALLER_NAME_CHARS_MAX: usize = 1_024;

/// How long the hub may take to say for whom it asks, and then to send the head of its request: both are written as
/// soon as a stream is open.
pub const GATE_HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// Bytes of a request's head: names of a path, and the few headers that go on.
pub const GATE_HEAD_BYTES_MAX: usize = 64 << 10;

/// Bytes of a body that the hub's applier sends: an API server takes no more than 3 MiB.
pub const GATE_BODY_BYTES_MAX: usize = 3 << 20;

/// Bytes of a body that a person sends: a question about their rights, of some hundred bytes, or what goes through a proxy
/// of the API server. As much as the hub lets through.
pub const GATE_PERSON_BODY_BYTES_MAX: usize = 64 << 10;

/// Bytes of all bodies of people at once, of the 128 MiB that an agent's pod gets. More wait.
pub const GATE_BODIES_BYTES_MAX: usize = 4 << 20;

/// Bytes of all bodies of the hub's applier at once: as many as it has requests. More wait.
pub const GATE_PUSH_BODIES_BYTES_MAX: usize = APPLY_CONCURRENCY * GATE_BODY_BYTES_MAX;

/// How long an API server may take to begin its answer. It gives itself 60 seconds, and says so when they are over.
pub const GATE_ANSWER_TIMEOUT: Duration = Duration::from_secs(70);

/// How long an agent that ends, and a hub that leaves another one, waits for the audit lines of its streams, all of which end
/// with it.
pub const GATE_END_TIMEOUT: Duration = Duration::from_secs(2);

/// Bytes of an answer that are gathered before they are passed on: one frame of the tunnel.
pub const GATE_PIECE_BYTES: usize = 32 << 10;

/// How often an agent looks for an answer's first piece before its head goes on without it; others have their turn between two
/// looks.
pub const GATE_FIRST_LOOKS: u32 = 3;

/// Requests of the hub that an agent has under way, watches and logs among them. The applier needs the API server too,
/// and each costs a connection and some 100 KiB while it lasts.
pub const GATE_REQUESTS_MAX: usize = 256;

/// Streams of people that wait for another request at an agent, beside those requests. Each costs some 20 KiB, and no hub
/// keeps more than half of them.
pub const GATE_KEPT_MAX: usize = 128;

/// Streams that the hub's applier has under way, beside those of people: its requests, and a watch of each kind that it
/// applies.
pub const GATE_PUSH_STREAMS_MAX: usize = 256;

/// How long counts of an agent rest before they are reported by themselves: a hub that is refused again and again does not
/// get a report of each.
pub const COUNTS_REST: Duration = Duration::from_secs(10);

/// Addresses of one name that are tried: a name has one or two for each of IPv4 and IPv6.
pub const DIAL_ADDRESSES_MAX: usize = 8;
