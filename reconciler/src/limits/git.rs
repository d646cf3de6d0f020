//! Git: source, history, remotes and copies of them.

use std::time::Duration;

/// Files of one source revision: a fleet of 1,000 units with 100 files each, doubled.
pub const TREE_FILES_MAX: usize = 200_000;

/// Bytes of all files of one source revision. Files are at most 8 MiB each; 1 GiB of manifests is far beyond any
/// fleet and still fits beside its plan in a hub of 4 GiB.
pub const TREE_BYTES_MAX: u64 = 1 << 30;

/// Source trees kept as read: the accepted one, the one planned now, and two to compare with.
pub const TREES_CACHED_MAX: usize = 4;

/// Nesting of folders in a source revision; Linux paths end at 4,096 bytes, people at 20 levels.
pub const TREE_DEPTH_MAX: usize = 128;

/// Heads whose history was rewritten and that a hub remembers, to know that a mode told of one of them is over: more than
/// people rewrite while a hub runs.
pub const REWRITES_REMEMBERED_MAX: usize = 16;

/// Pairs of source commits of which a hub remembers whether one comes after the other: clusters that were told their modes by
/// as many commits ask for a walk once. An entry has less than 200 bytes.
pub const MODE_ORDERS_MAX: usize = 256;

/// How long an answer counts that more history, another head or another try may change: a walk a minute costs nothing.
pub const MODE_ORDER_TRUSTED: Duration = Duration::from_secs(60);

/// Commits at a time of which a remote is asked for more history, since agents name them: those of a fleet whose clusters were
/// told their modes by as many commits. More are asked for when these are done.
pub const SOUGHT_MAX: usize = 64;

/// How often at most a remote is asked for more history because agents named commits; it may be all of it.
pub const SOUGHT_PAUSE: Duration = Duration::from_secs(300);

/// After what time a commit that was not found is looked for again.
pub const SOUGHT_AGAIN: Duration = Duration::from_secs(3_600);

/// Commits searched for the last good content of a file, or for the trailer that accepts a rewrite.
pub const HISTORY_COMMITS_MAX: usize = 1_000;

/// Commits of `released` in which an older placement is looked for: a week of a decision every 20 minutes. Each is a
/// few objects to read, and only where a unit asks for something else than before.
pub const MEMORY_COMMITS_MAX: usize = 500;

/// Decoded Git objects kept while one repository is read: 10,000 manifests of 3 KiB.
pub const OBJECT_CACHE_BYTES: usize = 32 << 20;

/// How often refs are looked at when no event said so; a lost event costs at most this much.
pub const REFS_POLL: Duration = Duration::from_secs(10);

/// A lock file of a ref this old belongs to a process that died: Git and the hub hold one for milliseconds.
/// Until then a hub that was killed while it held one writes nothing after its restart.
pub const REF_LOCK_STALE: Duration = Duration::from_secs(5);

/// Commits of the state repository whose placements are kept decoded: rendered, released, and what is
/// about to follow each. With 1,000 units on 100 clusters each takes some 40 MiB.
pub const PUBLISHED_CACHE_COMMITS: usize = 4;

/// Pairs of folder and digest remembered as proven: 1,000 units with 100 variants each.
pub const PROVEN_MAX: usize = 100_000;

/// One `git` command for housekeeping; packing 1,000 commits takes seconds.
pub const GIT_COMMAND_TIMEOUT: Duration = Duration::from_secs(600);

/// Bytes that `git` prints for us: the refs of a remote, at 60 to 200 bytes each, of which a fleet has tens.
pub const GIT_OUTPUT_BYTES_MAX: u64 = 8 << 20;

/// One exchange with a remote: a first fetch of a large repository over a slow line takes minutes. A flag may
/// say otherwise.
pub const REMOTE_TIMEOUT: Duration = Duration::from_secs(600);

/// How often a remote is asked where its refs stand, which is one small request. A webhook makes it faster, and
/// a flag may say otherwise.
pub const REMOTE_POLL: Duration = Duration::from_secs(30);

/// Between two questions to a remote, however many webhooks call.
pub const REMOTE_GAP: Duration = Duration::from_millis(500);

/// The longest wait before a remote that failed is asked again.
pub const REMOTE_RETRY_MAX: Duration = Duration::from_secs(300);

/// The first wait after a push that was refused or not answered, and the longest one.
pub const PUSH_RETRY_FIRST: Duration = Duration::from_millis(500);
/// See [`PUSH_RETRY_FIRST`].
pub const PUSH_RETRY_MAX: Duration = Duration::from_secs(60);

/// Commits of a remote source's history that are fetched: as far as the last good content of a file is looked
/// for, so that it is found as in a whole clone. More follows where ancestry needs it.
pub const SOURCE_DEPTH: u32 = 1_001;

/// Between two lines that say how far a fetch is.
pub const FETCH_PROGRESS_LOGGED: Duration = Duration::from_secs(5);

/// Between two times that a copy is fetched anew for being damaged. A disk that damages it at once, or a server
/// that sends damage, must not be asked for everything in a loop.
pub const COPY_REMAKE_PAUSE: Duration = Duration::from_secs(3_600);

/// How long a hub waits for the one before it to let go of the copy; a second one that runs is told of then.
pub const COPY_LOCK_WAIT: Duration = Duration::from_secs(2);

/// Fetches and pushes between two times that a copy is packed: each leaves a pack or some loose objects.
pub const MOVES_PER_HOUSEKEEPING: u32 = 50;

/// First parents that are asked for their gate after a restart: more than anybody pushes while no decision
/// is made, and each costs a look at one tree.
pub const GATE_COMMITS_MAX: usize = 100;

/// Commits that are searched for what a file said last before it went: as many as the above, for the same reasons.
pub const LAST_WORD_COMMITS_MAX: usize = 100;

/// Commits of `released` between two runs of housekeeping: a thousand of them pack from megabytes to less
/// than one.
pub const RELEASES_PER_HOUSEKEEPING: u64 = 500;

/// Commits whose times are remembered: one a change, about 100 bytes each.
pub const COMMIT_TIMES_MAX: usize = 65_536;

/// Commits of source that are searched for the one that brought a cluster's key: some years of a busy fleet, and about a
/// second for the first look of a hub. Of an older key the age is not known.
pub const KEY_COMMITS_MAX: usize = 10_000;

/// How long who asks for clusters waits for the age of keys that nobody asked for before. In most histories it is known by then;
/// otherwise it is told as unknown, and with the next answer.
pub const KEY_AGES_PATIENCE: Duration = Duration::from_millis(200);

/// Files that went in one commit that are looked into for a cluster's file that moved: a person moves fewer.
pub const FILE_MOVES_MAX: usize = 256;

/// Characters of `git`'s error output in a message.
pub const GIT_STDERR_CHARS_MAX: usize = 512;

/// Bytes of `git`'s error output that are kept: the last ones, which say why it ended.
pub const GIT_STDERR_BYTES_MAX: usize = 16 << 10;

/// Bytes of a credentials file: two lines, and whatever somebody remarks.
pub const CREDENTIALS_BYTES_MAX: u64 = 64 << 10;

/// Folders that are looked through for what is left in a copy: refs lie at most some deep, objects two.
pub const COPY_DEPTH_MAX: usize = 12;

/// Characters of the words of a Git server in a message.
pub const GIT_WORDS_CHARS_MAX: usize = 300;
