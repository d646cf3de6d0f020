//! The door for people, and audit logs.

use std::time::Duration;

use super::GATE_KEPT_MAX;

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

/// Bytes of the body of a request at the door: of a question about oneself, which has some hundred, and of what is sent through
/// a proxy of an API server. 800 at one cluster are 50 MiB here, of which its agent holds a part at a time.
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

/// How long a stream to a cluster stays for the next request of the same person: what a client asks in a row. Less than
/// its agent waits for a request's head.
pub const DOOR_KEPT_FOR: Duration = Duration::from_secs(2);

/// How often it is looked for those that stayed so long. A tunnel that is left waits for them.
pub const DOOR_KEPT_LOOK: Duration = Duration::from_secs(1);

/// Streams that stay so, to one cluster: half of those that its agent keeps, which may know two hubs.
pub const DOOR_KEPT_OF_CLUSTER_MAX: usize = GATE_KEPT_MAX / 2;

/// And to all clusters: some 20 KiB each.
pub const DOOR_KEPT_MAX: usize = 1_024;

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
