//! How agents come in at the hub, and what tunnels carry for it.

use std::time::Duration;

use super::apply::APPLY_CONCURRENCY;

/// Bytes of one message on a deliver or report stream: a unit's content is at most a few thousand objects
/// of etcd's 1.5 MiB, and in practice below 8 MiB; 64 MiB bounds what a broken peer can make us hold.
pub const MESSAGE_BYTES_MAX: usize = 64 << 20;

/// Bytes of a message that is still decoded where it was read, which takes a millisecond or two; what is longer is decoded on
/// a thread of its own.
pub const DECODED_BESIDE_BYTES: usize = 256 << 10;

/// Of the places of a listener, so many parts are one network's that nobody knows (of IPv6: one /48).
pub const PLACES_OF_STRANGER: usize = 8;

/// And so many one network's from which somebody proved who they are: an office, or a site's agents behind one address.
pub const PLACES_OF_KNOWN: usize = 4;

/// And so many parts are for such networks alone.
pub const PLACES_RESERVED: usize = 4;

/// Networks that are known, at 50 bytes each, and after what time without a proof one is a stranger again: a weekend.
pub const KNOWN_NETWORKS_MAX: usize = 16_384;
/// See [`KNOWN_NETWORKS_MAX`].
pub const KNOWN_NETWORK_FORGOTTEN: Duration = Duration::from_secs(72 * 3_600);

/// Handshakes at a time: each costs a few signatures, and a storm of agents must not starve the tunnels
/// that stand. The rest wait for their turn.
pub const HANDSHAKES_MAX: usize = 64;

/// Beside these, of agents behind a server that ends TLS, which is one address for all of them.
pub const HANDSHAKES_OF_PLAIN_MAX: usize = 32;

/// Of such agents, those that wait.
pub const HANDSHAKES_QUEUED_OF_PLAIN_MAX: usize = 500;

/// Agents that wait for their handshake; more are sent away at once, and come back later. A waiting socket costs some
/// 10 KiB of the kernel's.
pub const HANDSHAKES_QUEUED_MAX: usize = 1_000;

/// Agents that are told at a time to come back later, and how long each may take to read it.
pub const TURNED_AWAY_MAX: usize = 64;
/// See [`TURNED_AWAY_MAX`].
pub const TURNED_AWAY_TIMEOUT: Duration = Duration::from_secs(1);

/// How long an agent waits for its handshake before it is sent away: it has given up by then.
pub const HANDSHAKE_QUEUE_TIMEOUT: Duration = Duration::from_secs(10);

/// Handshakes per second that a hub counts on before it has measured any: the tame rate of a storm.
pub const HANDSHAKES_PER_SECOND_MIN: f64 = 50.0;

/// How long streams of a tunnel may go on that is left for another one, or whose hub ends.
pub const DRAIN_TIMEOUT: Duration = Duration::from_secs(25);

/// How long they may where the agent itself has a newer tunnel to the same hub, by another key or address: as long as an
/// API server lets a watch stand. Nobody has to leave, and the older one costs what its streams cost.
pub const REPLACED_DRAIN_TIMEOUT: Duration = Duration::from_secs(3_600);

/// How often it is looked at whether the streams of such a tunnel have ended.
pub const DRAIN_LOOK: Duration = Duration::from_millis(100);

/// After a failed accept (too many open files) the listener rests this long.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// How long an agent may take to accept a deliver stream, and to say what it holds before it is told.
pub const SESSION_STEP_TIMEOUT: Duration = Duration::from_secs(10);

/// Replies that wait to be looked at: an agent answers an envelope with two, so a full queue is a peer that
/// does not play by the rules, and pushes back.
pub const REPLIES_MAX: usize = 16;

/// How long an agent has to read why its session ends.
pub const SESSION_CLOSE_TIMEOUT: Duration = Duration::from_millis(500);

/// How long a stream to an API server rests before it is closed, while the hub applies through a tunnel, and how many rest:
/// as many as an applier has requests at a time.
pub const PUSH_STREAM_IDLE: Duration = Duration::from_secs(30);

/// See [`PUSH_STREAM_IDLE`].
pub const PUSH_STREAMS_IDLE_MAX: usize = APPLY_CONCURRENCY;

/// How often it is looked for those that rested so long.
pub const PUSH_STREAM_LOOK: Duration = Duration::from_secs(15);

/// How long the end of a session waits for the hub's applier to give its Lease back, and how long a new mode that is not Push is
/// held back for it.
pub const PUSH_END_TIMEOUT: Duration = Duration::from_secs(5);

/// Callers that are not let in and that are listed. A person looks at a screen of them; a flood of made-up names costs
/// 50 KiB.
pub const KNOCKS_MAX: usize = 100;

/// After so long without a word a caller is listed no more: an agent that is refused dials once a minute.
pub const KNOCK_FORGOTTEN_SECONDS: i64 = 600;

/// How often what callers did is told, so that a thousand of them a second are one event.
pub const KNOCKS_TOLD: Duration = Duration::from_secs(1);

/// How often the log says that one agent, or an address, is turned away for the same reason.
pub const TURNED_AWAY_SAID_EVERY: Duration = Duration::from_secs(60);

/// Reasons with agents or addresses of which the log says so one by one; the rest of a minute is one line for each reason. An
/// entry has less than 200 bytes.
pub const TURNED_AWAY_SAID_MAX: usize = 1_024;

/// Names of which the log says within a minute that one network's agents gave them and proved nothing; whatever other names come from
/// there are counted with the network. A site behind one address has a few clusters, and names cost nothing to make up.
pub const TURNED_AWAY_NAMES_OF_NETWORK_MAX: usize = 16;

/// Instances of one cluster's agents that a newer one took the place of and that are remembered: more than a person
/// copies.
pub const REPLACED_INSTANCES_MAX: usize = 8;

/// How long a bootstrap token counts at most: it travels by chat and mail.
pub const TOKEN_LIFE_MAX: Duration = Duration::from_secs(3_600);

/// Bootstrap tokens at a time: a fleet of 2,000 clusters that joins at once, twice.
pub const TOKENS_MAX: usize = 4_000;

/// Bytes of the file of tokens: so many at 300 bytes, and room for another form.
pub const TOKENS_FILE_BYTES_MAX: u64 = 4 << 20;

/// How long an agent that used its token is remembered while nobody merges its file: a holiday.
pub const TOKEN_USED_KEPT_SECONDS: i64 = 14 * 24 * 3_600;

/// Bytes of a deny list: ten thousand keys.
pub const DENY_FILE_BYTES_MAX: u64 = 1 << 20;

/// How often the deny list is looked at: with a second it reaches live tunnels well within five.
pub const DENY_LOOK: Duration = Duration::from_secs(1);
