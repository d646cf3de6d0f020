//! Other hubs over the same state.

use std::time::Duration;

use super::sessions::PLACES_OF_STRANGER;

/// Connections to each other hub: a lost packet holds up a quarter of the streams, and one connection carries 1,000.
pub const PEER_CONNECTIONS: usize = 4;

/// How often it is looked whether another hub is to be told something: whoever asks a cluster that just moved waits as
/// long.
pub const PEER_TICK: Duration = Duration::from_secs(1);

/// After so long another hub is told everything anew, so that nothing that was missed is missed for good.
pub const PEER_RESYNC: Duration = Duration::from_secs(60);

/// Another hub that told nothing for so long is not there: it missed two resyncs and a half.
pub const PEER_SILENCE: Duration = Duration::from_secs(150);

/// How long a hub that starts waits for another one to tell who is connected there, before it counts clusters as silent:
/// as long as a failover waits at least where nobody says otherwise.
pub const PEER_PATIENCE: Duration = Duration::from_secs(300);

/// How long a hub that starts waits for others before it lets agents in: a hub that is there says in a second where it is,
/// and one that is gone has its connection refused; only one that hangs costs this.
pub const PEER_FIRST_WORD_TIMEOUT: Duration = Duration::from_secs(5);

/// How long another hub is waited for that is asked what it knows of a cluster's tunnel: it has it in memory.
pub const PEER_ANSWER_TIMEOUT: Duration = Duration::from_secs(3);

/// Such an answer: two texts of errors, and what is counted.
pub const TUNNEL_WORD_BYTES_MAX: usize = 16 << 10;

/// Clusters that another hub may tell of, as many as one state has.
pub const PEER_CLUSTERS_MAX: usize = 20_000;

/// Addresses for agents that another hub may name: by name, by IPv4 and by IPv6, and one that it shares. HELLO has place for
/// those of four hubs.
pub const PEER_ENDPOINTS_MAX: usize = 4;

/// Characters of the name of an agent's process, as another hub tells it.
pub const PEER_INSTANCE_CHARS_MAX: usize = 64;

/// For how long two agents with one identity, at two hubs, may be one that was started anew: its old tunnel counts as dead
/// by then, and some seconds are for clocks that differ.
pub const TWIN_PATIENCE_SECONDS: i64 = 60;

/// Bytes of the first line of a request that comes from another hub: a path of 2 KiB, and a query with long selectors.
pub const HOP_LINE_BYTES_MAX: u64 = 16 << 10;

/// Handshakes of other hubs at once: each opens four connections, and they are few. An eighth is those of one.
pub const PEER_HANDSHAKES_MAX: usize = PEER_CONNECTIONS * PLACES_OF_STRANGER;

/// Wishes that another hub may tell of: one for each cluster of a fleet that replaces all keys at once.
pub const PEER_WISHES_MAX: usize = PEER_CLUSTERS_MAX;
