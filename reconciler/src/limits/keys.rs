//! Keys of hubs and agents that are replaced.

use std::time::Duration;

/// Keys of one hub: two while one takes the other's place, and room for a person who does not clear up at once.
pub const HUB_KEYS_MAX: usize = 8;

/// How often a hub looks at the files of its own keys: a person waits for it, and it reads a few hundred bytes.
pub const HUB_KEY_FILES_LOOK: Duration = Duration::from_secs(2);

/// Keys of hubs that an agent asks a hub about: those of a few hubs, each with two.
pub const HUBS_ASKED_ABOUT_MAX: usize = 16;

/// Sets of hubs' keys that an agent keeps: more than it dials hubs.
pub const HUB_KEY_SETS_MAX: usize = 16;

/// Keys of hubs of which an agent notes, and a hub tells, since when they are known: those of all sets, and as many that a person
/// gave; 160 bytes each.
pub const HUB_KEYS_KNOWN_MAX: usize = 2 * HUB_KEYS_MAX * HUB_KEY_SETS_MAX;

/// Bytes of a message about keys: eight keys with their signatures take 1,400.
pub const KEY_MESSAGE_BYTES_MAX: usize = 4 << 10;

/// How long either side of a `keys` stream may take for its next message, but for the last one.
pub const KEY_STEP_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a hub rests before it asks another one for its keys again that answered nothing, or no more: an older one refuses it
/// each time.
pub const PEER_KEYS_REST: Duration = Duration::from_secs(60);

/// How long wishes of agents for another key are gathered before their files are proposed: the agents of a rollout come
/// within seconds of each other, and whoever comes later moves a branch that somebody may be reading.
pub const KEY_WISHES_GATHERED_SECONDS: i64 = 20;

/// How often a wish for another key counts as said anew while its tunnel stands.
pub const KEY_WISH_REPEATED: Duration = Duration::from_secs(600);

/// A wish that nobody said for so long stands in no other one's way: three repetitions were missed, and a person who starts
/// an agent with yet another key waits for as long.
pub const KEY_WISH_FORGOTTEN_SECONDS: i64 = 1_800;

/// Different wishes of one cluster that are remembered: two are enough to propose none.
pub const KEY_WISHES_OF_CLUSTER_MAX: usize = 4;

/// Closed changes of keys that are remembered for one cluster: a person closed each of them.
pub const KEY_CLOSINGS_OF_CLUSTER_MAX: usize = 16;
