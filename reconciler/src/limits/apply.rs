//! The applier: passes, watches, health, drift, leases.

use std::time::Duration;

use super::GATE_REQUESTS_MAX;

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

/// How long a connection to an API server waits for the next request: less than the 90 seconds of the API server, which ends
/// it then, perhaps while somebody asks.
pub const API_IDLE_FOR: Duration = Duration::from_secs(60);

/// How often it is looked for those that waited so long.
pub const API_IDLE_LOOK: Duration = Duration::from_secs(30);

/// Connections that wait so, for each credential: as many as an agent takes requests of people, so that a wave of them that
/// comes again makes none anew.
pub const API_IDLE_MAX: usize = GATE_REQUESTS_MAX;

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

/// How long an object may be on its way out before what holds it is named. Controllers clean up within seconds, and a
/// load balancer or a volume within a few minutes.
pub const FINALIZER_PATIENCE: Duration = Duration::from_secs(5 * 60);

/// Age identities tried for a document: a rotation has two, and a team's Secret a few.
pub const AGE_IDENTITIES_MAX: usize = 64;

/// Bytes of a file of age identities: one line each, with comments.
pub const AGE_KEY_FILE_BYTES_MAX: u64 = 64 << 10;

/// Bytes that the compiled rule of a SOPS document may take; `^(data|stringData)$` takes a few hundred.
pub const SOPS_RULE_BYTES_MAX: usize = 1 << 20;

/// Kinds that a cluster may say it serves: with the definitions of some twenty operators there are about 600.
pub const API_VERSIONS_MAX: usize = 4_000;

/// How often a cluster is asked what it is: six small requests, and health is as old as this at most.
pub const FACTS_LOOK: Duration = Duration::from_secs(60);

/// How often what an API server's client was made of is looked at: a certificate or an address that moved is followed well
/// within a minute, for a few small files that are read.
pub const CLIENT_LOOK: Duration = Duration::from_secs(15);
