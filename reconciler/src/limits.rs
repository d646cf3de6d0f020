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

/// How long a pass waits for a new CustomResourceDefinition to be established, which takes tens of
/// milliseconds. Beyond it the other objects go on, and its custom resources follow in a later pass.
pub const CRD_ESTABLISHED_TIMEOUT: Duration = Duration::from_secs(5);

/// Entries of one inventory shard: at about 280 bytes each, a shard is some 280 KiB. etcd would take five
/// times that, but a shard is written whole whenever one of its entries changes.
pub const INVENTORY_SHARD_ENTRIES_MAX: usize = 1_000;

/// Objects named one by one in a unit's result; the rest is counted.
pub const WORST_OBJECTS_MAX: usize = 5;

/// Characters of an API server's message in a report.
pub const RESULT_MESSAGE_CHARS_MAX: usize = 512;

/// The lease that makes one applier per cluster: a holder that died is replaced after this long.
pub const LEASE_DURATION: Duration = Duration::from_secs(15);

/// How often the holder renews it.
pub const LEASE_RENEW: Duration = Duration::from_secs(5);

/// How often somebody who waits for the lease looks whether it is free.
pub const LEASE_RETRY: Duration = Duration::from_secs(2);

/// How long giving the lease back may take at shutdown; a successor otherwise waits LEASE_DURATION.
pub const LEASE_RELEASE_TIMEOUT: Duration = Duration::from_secs(2);

/// Opening a connection to an API server.
pub const API_CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The first wait after a pass that left something undone, and the longest one.
pub const APPLY_RETRY_FIRST: Duration = Duration::from_millis(500);
/// See [`APPLY_RETRY_FIRST`].
pub const APPLY_RETRY_MAX: Duration = Duration::from_secs(30);

/// How long a pass waits until an object that is made anew is gone. Pods of a Job and orphans of a StatefulSet
/// take a second; beyond it the other objects go on, and this one is made in a later pass.
pub const REPLACE_GONE_TIMEOUT: Duration = Duration::from_secs(10);

/// How often the ownership of earlier tools is taken over while others write the object; then a later pass does.
pub const MIGRATION_TRIES: usize = 3;

/// How long a stage waits for an answer while nothing else moves; then the next stage begins, so that one
/// hanging webhook does not hold up a whole cluster.
pub const STAGE_PATIENCE: Duration = Duration::from_secs(2);

/// The first wait before an object that is not Current is looked at again, and the longest one.
pub const LOOK_FIRST: Duration = Duration::from_millis(500);
/// See [`LOOK_FIRST`].
pub const LOOK_MAX: Duration = Duration::from_secs(5);

/// How long an object may take to become healthy where its unit says nothing: an image is pulled and a probe passes
/// within it, and whoever waits for the unit hears of a broken one while still at the desk.
pub const HEALTH_TIMEOUT: Duration = Duration::from_secs(300);

/// How long a custom resource without any status is waited for before it counts as one that nobody reports on:
/// controllers write their first words within a second or two of seeing an object.
pub const STATUS_GRACE: Duration = Duration::from_secs(5);

/// What watches have said and nobody has read yet; a full queue makes them wait.
pub const WATCH_EVENTS_MAX: usize = 256;

/// Namespaces of a kind that are watched one by one. Each watch is a connection, or a stream of one; with
/// more of them a single watch over all namespaces costs less, though it also tells of others' objects.
pub const WATCH_NAMESPACES_MAX: usize = 4;

/// How long a watch lasts before it begins again where it was. A line that died without a word is noticed when its
/// watch should have ended and did not, so this bounds for how long a change by hand can go unseen. Shorter costs one
/// small request per watch each time.
pub const WATCH_LASTS: Duration = Duration::from_secs(60);

/// Objects of one page while a watch begins. A page of whole objects is held at a time, ours and others' alike: 100
/// of 20 KiB are 2 MiB per watch.
pub const WATCH_PAGE_OBJECTS: u32 = 100;

/// How long what nodes have left rests after it was told: a rollout of a hundred pods is one report, and a decision is a
/// few seconds late at most.
pub const CAPACITY_PAUSE: Duration = Duration::from_secs(2);

/// How often an object is judged anew since somebody wrote it meanwhile, before what is ours is forced on whatever is
/// there: a controller writes a few times while a rollout goes on.
pub const FORCED_TRIES_MAX: usize = 4;

/// How long a watch counts as failing after an error: a little longer than its waits between tries can be.
pub const WATCH_FAILURE_COUNTS: Duration = Duration::from_secs(40);

/// How long unchanged objects rest before they are looked at again while a watch fails.
pub const RESYNC_UNWATCHED: Duration = Duration::from_secs(30);

/// How long a report waits after the last one when watches see something new. A report is made of all units, and a
/// hundred changes a second must not make a hundred of them.
pub const REPORT_PAUSE: Duration = Duration::from_millis(100);

/// Objects that somebody changed of which it is remembered who owns which field, at some 3 KiB each. Of more at once
/// only that they changed is known, and the log says less.
pub const DRIFT_TOUCHES_KEPT_WHOLE: usize = 256;

/// Objects that differ and are left whose fields are kept; of more, one field each. At 5 KiB each these are 1 MiB.
pub const DRIFT_KEPT_WHOLE: usize = 200;

/// Fields of one object that are told.
pub const DRIFT_FIELDS_MAX: usize = 10;

/// Objects of one unit in one cluster whose fields are told; all are counted. With ten fields of two values each a
/// unit's report stays below 100 KiB.
pub const DRIFT_OBJECTS_MAX: usize = 10;

/// Bytes of a value that is told; of a longer one only the path is.
pub const DRIFT_VALUE_CHARS_MAX: usize = 256;

/// So many corrections of one object within [`FIGHT_WINDOW`] are a fight: a person who tries something is slower.
pub const FIGHT_CORRECTIONS: usize = 5;
/// See [`FIGHT_CORRECTIONS`].
pub const FIGHT_WINDOW: Duration = Duration::from_secs(60);

/// The first wait of an object that is fought over, and the longest one: a little more than a minute, so that a fight
/// costs less than a write a minute.
pub const FIGHT_WAIT_FIRST: Duration = Duration::from_secs(2);
/// See [`FIGHT_WAIT_FIRST`].
pub const FIGHT_WAIT_MAX: Duration = Duration::from_secs(65);

/// After so long without a change by others a fight is over. It must be longer than the longest wait.
pub const FIGHT_CALM: Duration = Duration::from_secs(180);

/// Objects of one list request.
pub const LIST_PAGE_OBJECTS: u32 = 500;

/// How long a whole unchanged delivery rests before its objects are looked at again. Watches tell of changes at once;
/// this finds what a watch may have missed.
pub const RESYNC: Duration = Duration::from_secs(300);

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

/// How long an object may be on its way out before what holds it is named. Controllers clean up within seconds, and a
/// load balancer or a volume within a few minutes.
pub const FINALIZER_PATIENCE: Duration = Duration::from_secs(5 * 60);

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
/// How long a write rests at most that fails again and again, as on a full disk.
pub const WRITE_RETRY_MAX: Duration = Duration::from_secs(30);

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

/// How long agents, people and other hubs have to be told that the hub ends, and their streams to be done with: a little
/// more than [`DRAIN_TIMEOUT`], and less than the 30 s that Kubernetes gives a pod.
pub const GOODBYE_TIMEOUT: Duration = Duration::from_secs(27);

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

/// Characters of `git`'s error output in a message.
pub const GIT_STDERR_CHARS_MAX: usize = 512;

/// Bytes of `git`'s error output that are kept: the last ones, which say why it ended.
pub const GIT_STDERR_BYTES_MAX: usize = 16 << 10;

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

/// Callers at the hub's door for people at once: 200 people with a kubectl that follows five things each.
pub const DOOR_CONNECTIONS_MAX: usize = 1_024;

/// How long callers are still let in by a hub that was told to end, and how long one that has come may take to ask: what
/// stands before the hub sends people elsewhere a moment after that.
pub const DOOR_CLOSES_AFTER: Duration = Duration::from_secs(2);

/// How long the TLS handshake of a person's connection may take.
pub const DOOR_HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Of all callers, those who have not logged in yet: a TLS handshake costs about half a millisecond of a core, and others have
/// three quarters of the places for themselves.
pub const DOOR_NEWCOMERS_MAX: usize = 256;

/// How long a connection may last, after its TLS handshake, without a login that counts. kubectl sends one at once; a slow
/// OIDC provider may take 20 seconds to verify it by.
pub const DOOR_NEWCOMER_MAX: Duration = Duration::from_secs(30);

/// How long a person's machine may be silent until it is asked whether it is there, and how long between two such questions.
pub const DOOR_KEEPALIVE: Duration = Duration::from_secs(30);

/// Questions without an answer after which it is gone: two minutes in all.
pub const DOOR_KEEPALIVES: u32 = 3;

/// How long a person's connection may rest without a request. kubectl opens another one by itself.
pub const DOOR_IDLE_MAX: Duration = Duration::from_secs(120);

/// Requests on one HTTP/2 connection at once: `kubectl get` of many kinds asks some dozens side by side.
pub const DOOR_STREAMS_MAX: u32 = 250;

/// Bytes of the body of a request at the door. Only questions about oneself have one, of some hundred bytes each; 800 at
/// one cluster are 50 MiB, here and at its agent.
pub const DOOR_BODY_BYTES_MAX: usize = 64 << 10;

/// Bytes of an object that is refused and read for its name alone. Whose is larger is told less.
pub const DOOR_WRITTEN_BYTES_MAX: usize = 16 << 10;

/// Objects that are read so at once; JSON takes some ten times its bytes. Whoever comes beyond is told less.
pub const DOOR_WRITTEN_MAX: usize = 64;

/// Bytes that a caller may send ahead over HTTP/2, of a request and of all together: no body is longer.
pub const DOOR_WINDOW_BYTES: u32 = 64 << 10;

/// How long the body of a request may take to come.
pub const DOOR_BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a cluster may take to begin its answer: as long as an API server gives a request.
pub const DOOR_HEAD_TIMEOUT: Duration = Duration::from_secs(60);

/// How long a request waits for a cluster whose agent dials again.
pub const DOOR_RECONNECT_PATIENCE: Duration = Duration::from_secs(3);

/// A cluster that was away for so long is not waited for: by then its agent dials once or twice a minute, and each of
/// kubectl's requests would wait anew.
pub const DOOR_RECONNECT_HOPE: Duration = Duration::from_secs(35);

/// Requests to one cluster at once; its tunnel takes 1,000 streams, and the hub's own have to find place.
pub const DOOR_REQUESTS_OF_CLUSTER_MAX: usize = 800;

/// Of these, of one person: a few kubectls and a program that watches every kind. The agent takes 256 of everybody.
pub const DOOR_REQUESTS_OF_PERSON_MAX: usize = 100;

/// Requests that wait for a place at one cluster, and how long.
pub const DOOR_WAITING_OF_CLUSTER_MAX: usize = 200;
/// See [`DOOR_WAITING_OF_CLUSTER_MAX`].
pub const DOOR_WAITING_TIMEOUT: Duration = Duration::from_secs(10);

/// Streams to one cluster that its agent has not answered yet: three quarters of what a tunnel takes.
pub const DOOR_OPENING_OF_CLUSTER_MAX: usize = 75;

/// Bytes of a file that the door reads: certificates, and static tokens, of which there are not many.
pub const DOOR_FILE_BYTES_MAX: u64 = 1 << 20;

/// How often the door's files are looked at. They are small, and a revoked token has to be gone soon.
pub const DOOR_FILES_LOOK: Duration = Duration::from_secs(2);

/// Failed logins that a place has at once, each of which is forgiven after [`LOGIN_FAILURE_FORGIVEN`]. Ten a minute find no
/// token, and who mistypes a kubeconfig is not shut out for long.
pub const LOGIN_FAILURES_AT_ONCE: u32 = 10;
/// See [`LOGIN_FAILURES_AT_ONCE`].
pub const LOGIN_FAILURE_FORGIVEN: Duration = Duration::from_secs(6);

/// How long a login waits for others of its place that are looked at: an ID token may need the provider's keys first.
pub const LOGIN_TURN_TIMEOUT: Duration = Duration::from_secs(15);

/// Characters of a static token that is taken: with fewer it is found by guessing, however slowly.
pub const TOKEN_CHARS_MIN: usize = 16;

/// Places whose failed logins are remembered, at 50 bytes each.
pub const LOGIN_FAILURE_PLACES_MAX: usize = 4_096;

/// Bytes of what an OIDC provider says of itself, and of its keys.
pub const OIDC_ANSWER_BYTES_MAX: usize = 256 << 10;

/// How long an OIDC provider may take for one answer.
pub const OIDC_ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// How old a provider's keys may be before they are fetched again.
pub const OIDC_KEYS_REST: Duration = Duration::from_secs(300);

/// A token of a key that is not known may have keys fetched at once, no more often than this.
pub const OIDC_KEYS_REST_MIN: Duration = Duration::from_secs(10);

/// How long an ID token logs somebody in at most, whatever it says: a month. Providers give hours.
pub const ID_TOKEN_SECONDS_MAX: u64 = 30 * 24 * 3_600;

/// Audit lines that wait to be written, at some 500 bytes each, at a hub as at an agent, whose memory is small.
pub const AUDIT_LINES_MAX: usize = 4_096;

/// How often it is asked again whether a caller may have the answer that is on its way: a watch or a log may last for days.
pub const DOOR_JUDGED_AGAIN: Duration = Duration::from_secs(5);

/// How long a caller may read nothing of an answer before its connection ends. A person who reads a log in a pager has as long
/// for a page; a program that hangs holds places of its person's.
pub const DOOR_UNREAD_MAX: Duration = Duration::from_secs(600);

/// Watches of one person and the same objects within this time are one audit line, and so are requests of nobody from one
/// address: a client that lists and watches anew again and again would write nothing else.
pub const AUDIT_ALIKE_REST: Duration = Duration::from_secs(60);

/// Kinds of such lines that are remembered, with one line each, of some 500 bytes and a path of 2 KiB at most.
pub const AUDIT_ALIKE_MAX: usize = 4_096;

/// How often what was left out is looked at.
pub const AUDIT_LOOK: Duration = Duration::from_secs(10);

/// An answer that lasts longer has an audit line before it ends.
pub const AUDIT_BEGUN_AFTER: Duration = Duration::from_secs(10);

/// How often it is tried again to write an audit line that could not be written.
pub const AUDIT_RETRY: Duration = Duration::from_secs(1);

/// How long a request waits for room in the audit log, and the line of what has ended.
pub const AUDIT_ROOM_TIMEOUT: Duration = Duration::from_secs(5);

/// Removed objects that are remembered, so that a watch that was cut hears of them. An older watch lists
/// again.
pub const GONE_OBJECTS_MAX: usize = 1_024;

/// Bytes of a body of `POST /reconcile`, which is thrown away: Git hosts send up to some MiB for a push of many commits.
pub const RECONCILE_BODY_BYTES_MAX: usize = 8 << 20;

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

/// After a failed accept (too many open files) the listener rests this long.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

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

/// How long an agent may take to accept a deliver stream, and to say what it holds before it is told.
pub const SESSION_STEP_TIMEOUT: Duration = Duration::from_secs(10);

/// Replies that wait to be looked at: an agent answers an envelope with two, so a full queue is a peer that
/// does not play by the rules, and pushes back.
pub const REPLIES_MAX: usize = 16;

/// How long an agent has to read why its session ends.
pub const SESSION_CLOSE_TIMEOUT: Duration = Duration::from_millis(500);

/// Bytes of a credentials file: two lines, and whatever somebody remarks.
pub const CREDENTIALS_BYTES_MAX: u64 = 64 << 10;

/// Folders that are looked through for what is left in a copy: refs lie at most some deep, objects two.
pub const COPY_DEPTH_MAX: usize = 12;

/// Characters of the words of a Git server in a message.
pub const GIT_WORDS_CHARS_MAX: usize = 300;

/// Age identities tried for a document: a rotation has two, and a team's Secret a few.
pub const AGE_IDENTITIES_MAX: usize = 64;

/// Bytes of a file of age identities: one line each, with comments.
pub const AGE_KEY_FILE_BYTES_MAX: u64 = 64 << 10;

/// Bytes that the compiled rule of a SOPS document may take; `^(data|stringData)$` takes a few hundred.
pub const SOPS_RULE_BYTES_MAX: usize = 1 << 20;

/// Processes of helm at a time: each takes some 100 MiB for a chart of ordinary size, and an agent runs on
/// small machines.
pub const HELM_PROCESSES_MAX: usize = 2;

/// Of [`HELM_PROCESSES_MAX`], those that may wait for hooks, so that one that hangs leaves room for others.
pub const HELM_LONG_PROCESSES_MAX: usize = 1;

/// One run of helm, and how long a release's objects may take to be healthy, where the HelmChart says nothing:
/// Helm's own default.
pub const HELM_TIMEOUT: Duration = Duration::from_secs(300);

/// The longest time that a HelmChart may ask for: a run holds one of two places.
pub const HELM_TIMEOUT_MAX: Duration = Duration::from_secs(3_600);

/// Tries of one content: more would only repeat what failed.
pub const HELM_ATTEMPTS: u32 = 3;

/// The wait after the first try that failed; each further one is four times longer.
pub const HELM_RETRY_FIRST: Duration = Duration::from_secs(10);

/// How long a content that failed too often rests, unless something changes.
pub const HELM_REST: Duration = Duration::from_secs(3_600);

/// Bytes of helm's output that are used: a manifest is at most what fits a Secret of 1 MiB, unpacked.
pub const HELM_OUTPUT_BYTES_MAX: usize = 16 << 20;

/// Bytes of helm's error output that are kept: the last ones, which say why it ended.
pub const HELM_STDERR_BYTES_MAX: usize = 16 << 10;

/// Connections of helm to its loopback address: client-go keeps a few open.
pub const HELM_CONNECTIONS_MAX: usize = 32;

/// Bytes of one request of helm: an API server takes at most 3 MiB.
pub const HELM_REQUEST_BYTES_MAX: usize = 4 << 20;

/// Bytes of a chart's archive: Helm's own releases cannot hold more than 1 MiB of it; the rest is files that
/// a chart carries along.
pub const CHART_BYTES_MAX: usize = 32 << 20;

/// Bytes of a repository's index: the largest public ones are some 25 MiB.
pub const CHART_INDEX_BYTES_MAX: usize = 64 << 20;

/// Bytes of the part of an index that is about one chart, which is read into memory: a thousand versions.
pub const CHART_ENTRY_BYTES_MAX: usize = 8 << 20;

/// Bytes of a registry's answers other than charts: manifests, tokens, pages of tags.
pub const REGISTRY_ANSWER_BYTES_MAX: usize = 4 << 20;

/// Pages of a registry's tags that are read for the newest version.
pub const REGISTRY_PAGES_MAX: usize = 20;

/// Redirects that are followed for one file.
pub const CHART_REDIRECTS_MAX: usize = 5;

/// One exchange with a chart repository, its body included.
pub const CHART_FETCH_TIMEOUT: Duration = Duration::from_secs(120);

/// The first wait after a chart could not be fetched, and the longest one: it is tried for ever, since the
/// network comes back without telling.
pub const CHART_RETRY_FIRST: Duration = Duration::from_secs(5);
/// See [`CHART_RETRY_FIRST`].
pub const CHART_RETRY_MAX: Duration = Duration::from_secs(300);

/// Archives of charts that an agent keeps, and their bytes together: those of the releases of a cluster and
/// the ones before them. The oldest go first.
pub const CHARTS_KEPT_MAX: usize = 64;
/// See [`CHARTS_KEPT_MAX`].
pub const CHARTS_KEPT_BYTES_MAX: u64 = 128 << 20;

/// News of releases that wait to be taken in; a full queue makes the releases wait.
pub const RELEASE_NEWS_MAX: usize = 64;

/// Objects of one release that are looked at and kept right; the largest charts have some hundreds.
pub const RELEASE_OBJECTS_MAX: usize = 2_000;

/// Objects of one release that are asked for at a time: releases run beside the pass, and leave it its share.
pub const HELM_LOOK_CONCURRENCY: usize = 4;

/// How long a release whose objects are well rests before they are looked at again.
pub const RELEASE_LOOK: Duration = Duration::from_secs(60);

/// How long the kinds that a cluster serves are believed, when a release lacks one of them.
pub const KINDS_REST: Duration = Duration::from_secs(10);

/// One run of helm for a prediction: it waits for nothing, and a chart that takes longer is not predicted.
pub const PREVIEW_TIMEOUT: Duration = Duration::from_secs(20);

/// Runs for one prediction: a chart may bring objects of kinds that only their operator's chart defines, and each run
/// names all that are not found.
pub const PREVIEW_TRIES_MAX: usize = 3;

/// Characters of helm's words in a finding.
pub const PREVIEW_WORDS_MAX: usize = 600;

/// Predictions that are remembered: of 500 charts on clusters of four versions, some KiB each.
pub const PREVIEWS_MAX: usize = 2_000;

/// How long a plan waits for predictions before what is known is decided; a chart whose prediction comes later is a
/// decision of its own.
pub const PREVIEW_PATIENCE: Duration = Duration::from_secs(10);

/// Kinds that a cluster may say it serves: with the definitions of some twenty operators there are about 600.
pub const API_VERSIONS_MAX: usize = 4_000;

/// Words about units that left clusters with their objects staying, each for one unit and one cluster, in
/// `release.yaml`. Each is a line of some 30 bytes, so that the file has 600 KiB at most; beyond it the oldest is
/// forgotten.
pub const ORPHANED_MAX: usize = 20_000;

/// Clusters for which `flotilla plan` predicts charts: one request to the hub each, and most have one version.
pub const PLAN_PREDICTED_CLUSTERS_MAX: usize = 20;

/// Predictions of one `flotilla plan`: each is two runs of helm, of about a second.
pub const PLAN_PREVIEWS_MAX: usize = 50;

/// How long `flotilla plan` predicts; what is not done by then is said.
pub const PLAN_PREVIEWS_TIMEOUT: Duration = Duration::from_secs(60);

/// Objects of one question about what goes with them: what a person reads before a push, and 10 KiB in a URL.
pub const DEPENDANTS_ASKED_MAX: usize = 50;

/// Objects whose owners are looked at for one question, by their metadata: some 2 KiB each on their way, a page at a
/// time, and 200 bytes each while they are compared.
pub const DEPENDANTS_LOOKED_MAX: usize = 20_000;

/// Names that are told of the objects of one kind; the rest is counted.
pub const DEPENDANTS_NAMED_MAX: usize = 3;

/// Kinds that are told one by one of what goes or stays with one object.
pub const DEPENDANTS_KINDS_MAX: usize = 20;

/// Claims of one question whose volumes are looked up: two requests each.
pub const DEPENDANTS_CLAIMS_MAX: usize = 50;

/// How long a cluster looks for one answer; what it did not get to by then is said.
pub const DEPENDANTS_TIMEOUT: Duration = Duration::from_secs(20);

/// How long the hub waits for that answer: a tunnel and a slow cluster more than the cluster's own limit, and less than
/// an answer of the API may take.
pub const DEPENDANTS_ANSWER_TIMEOUT: Duration = Duration::from_secs(25);

/// Questions that the hub asks at a time, in all clusters.
pub const DEPENDANTS_QUESTIONS_MAX: usize = 8;

/// Questions of people that wait for those: each waits some seconds and holds its request.
pub const DEPENDANTS_QUESTIONS_WAITING_MAX: usize = 32;

/// Of these, of one person: a plan asks four clusters at a time.
pub const DEPENDANTS_QUESTIONS_OF_PERSON_MAX: usize = 8;

/// Requests of one question to an API server at a time: half of what the applier may send, which goes on meanwhile.
pub const DEPENDANTS_CONCURRENCY: usize = 4;

/// Bytes of a predictor's answer: a number, and one for each value of a topology, of which there are some hundred.
pub const PREDICTION_BYTES_MAX: usize = 64 << 10;

/// Predictors that are asked at once: each takes a socket, and has a timeout of its own.
pub const PREDICTIONS_AT_ONCE_MAX: usize = 32;

/// Answers of predictors that are remembered: of a thousand clusters with ten templates each, in 1 MiB.
pub const PREDICTIONS_MAX: usize = 10_000;

/// How long a plan waits for predictors before what is known is decided; who answers later is looked at then.
pub const PREDICTION_PATIENCE: Duration = Duration::from_secs(5);

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

/// Bytes of a body that a person sends: a question about their rights, of some hundred bytes.
pub const GATE_REVIEW_BYTES_MAX: usize = 64 << 10;

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

/// Streams that the hub's applier has under way, beside those of people: its requests, and a watch of each kind that it
/// applies.
pub const GATE_PUSH_STREAMS_MAX: usize = 256;

/// How long counts of an agent rest before they are reported by themselves: a hub that is refused again and again does not
/// get a report of each.
pub const COUNTS_REST: Duration = Duration::from_secs(10);

/// Addresses of one name that are tried: a name has one or two for each of IPv4 and IPv6.
pub const DIAL_ADDRESSES_MAX: usize = 8;

/// How long a stream to an API server rests before it is closed, while the hub applies through a tunnel, and how many rest:
/// as many as an applier has requests at a time.
pub const PUSH_STREAM_IDLE: Duration = Duration::from_secs(30);
/// See [`PUSH_STREAM_IDLE`].
pub const PUSH_STREAMS_IDLE_MAX: usize = APPLY_CONCURRENCY;

/// How long the end of a session waits for the hub's applier to give its Lease back.
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

/// How often a cluster is asked what it is: six small requests, and health is as old as this at most.
pub const FACTS_LOOK: Duration = Duration::from_secs(60);

/// How often what an API server's client was made of is looked at: a certificate or an address that moved is followed well
/// within a minute, for a few small files that are read.
pub const CLIENT_LOOK: Duration = Duration::from_secs(15);

/// Keys of one hub: two while one takes the other's place, and room for a person who does not clear up at once.
pub const HUB_KEYS_MAX: usize = 8;

/// How often a hub looks at the files of its own keys: a person waits for it, and it reads a few hundred bytes.
pub const HUB_KEY_FILES_LOOK: Duration = Duration::from_secs(2);

/// Keys of hubs that an agent asks a hub about: those of a few hubs, each with two.
pub const HUBS_ASKED_ABOUT_MAX: usize = 16;

/// Sets of hubs' keys that an agent keeps: more than it dials hubs.
pub const HUB_KEY_SETS_MAX: usize = 16;

/// Bytes of a message about keys: eight keys with their signatures take 1,400.
pub const KEY_MESSAGE_BYTES_MAX: usize = 4 << 10;

/// How long either side of a `keys` stream may take for its next message, but for the last one.
pub const KEY_STEP_TIMEOUT: Duration = Duration::from_secs(10);

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

/// Wishes that another hub may tell of: one for each cluster of a fleet that replaces all keys at once.
pub const PEER_WISHES_MAX: usize = PEER_CLUSTERS_MAX;

/// Closed changes of keys that are remembered for one cluster: a person closed each of them.
pub const KEY_CLOSINGS_OF_CLUSTER_MAX: usize = 16;
