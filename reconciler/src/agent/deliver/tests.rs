use std::collections::BTreeMap;

use render::describe::{Content, DescribedObject, Description, key_of};
use render::{ClusterName, Revision};
use serde_json::json;
use tokio::time::timeout;

use super::super::journal::Journal;
use super::*;
use crate::computing::tests::is_elsewhere;
use crate::wire::{ContentRequest, Deliver, DeliverReply, EnvelopeUnit, list_digest, read_message, write_message};

fn content(text: &str) -> Description {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"text": text}});
    let key = key_of(&object).expect("the object names itself");
    let content = Content::Plain {
        object: Arc::new(object),
    };
    Description::new(vec![DescribedObject {
        key,
        content,
        provenance: Vec::new(),
    }])
    .expect("one key")
}

fn envelope(sequence: u64, content: &Description) -> Envelope {
    let revision = Revision::parse("a".repeat(40)).expect("forty hex digits");
    let unit = EnvelopeUnit {
        digest: content.digest,
        revision: revision.clone(),
        replicas: Default::default(),
        drift: Default::default(),
        gates: Vec::new(),
    };
    let units = BTreeMap::from([("shop/web".parse().expect("a valid unit"), unit)]);
    Envelope {
        version: Envelope::VERSION,
        cluster: cluster(),
        lineage: revision.clone(),
        sequence,
        released: revision,
        list: list_digest(&units, false),
        units,
        orphan: false,
        orphaned: Default::default(),
        mode: Default::default(),
        mode_source: None,
        mode_instead: None,
        lineage_grant: None,
    }
}

fn cluster() -> ClusterName {
    ClusterName::parse("edge").expect("a valid cluster")
}

/// Opens what was left in a folder. Other tests of this binary start processes, and between its fork and
/// its exec such a process has our lock too, so a locked journal is tried again.
async fn opened(folder: &std::path::Path) -> Journal {
    let mut opened = Journal::open(folder, "agent");
    for _ in 0..100 {
        if !matches!(opened, Err(JournalError::InUse { .. })) {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        opened = Journal::open(folder, "agent");
    }
    opened.expect("the journal opens")
}

async fn holdings(folder: &std::path::Path) -> Holdings {
    let journal = opened(folder).await;
    let kept = Store::read(&journal).await.expect("the journal is readable");
    holding(kept, Arc::new(journal))
}

fn holding(kept: Kept, store: Arc<dyn Store>) -> Holdings {
    let (_, notes) = watch::channel(None);
    Holdings::new(cluster(), kept, store, Vec::new(), notes)
}

/// Sends messages to an agent and says what it answered.
async fn converse(holdings: &Holdings, messages: Vec<Deliver>) -> Vec<DeliverReply> {
    let (near, mut far) = tokio::io::duplex(1 << 16);
    let (served, replies) = tokio::join!(serve(holdings, near), async {
        for message in &messages {
            write_message(&mut far, message).await.expect("the agent reads");
        }
        tokio::io::AsyncWriteExt::shutdown(&mut far)
            .await
            .expect("the stream closes");
        let mut replies = Vec::new();
        while let Ok(Some(reply)) = read_message::<_, DeliverReply>(&mut far).await {
            replies.push(reply);
        }
        replies
    });
    served.expect("the stream ends well");
    replies
}

#[tokio::test]
async fn an_agent_that_restarts_without_its_hub_has_what_it_took() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let one = content("one");
    let first = holdings(folder.path()).await;
    let messages = vec![
        Deliver::Envelope {
            envelope: envelope(7, &one),
        },
        Deliver::content(&one),
    ];
    let replies = converse(&first, messages).await;
    let need = DeliverReply::Need(ContentRequest {
        digests: vec![one.digest],
    });
    assert_eq!(replies, [need, DeliverReply::Taken { sequence: 7 }]);
    let second = Journal::open(folder.path(), "other");
    assert!(
        matches!(second, Err(JournalError::InUse { .. })),
        "one agent at a time: {second:?}"
    );
    drop(first);
    let restarted = holdings(folder.path()).await;
    let desired = restarted.desired().borrow().clone().expect("the journal had it");
    assert_eq!(desired.held.sequence, 7);
    assert_eq!(
        desired
            .units
            .values()
            .map(|unit| unit.description.digest)
            .collect::<Vec<_>>(),
        [one.digest]
    );
}

#[tokio::test]
async fn a_mode_is_taken_without_a_new_sequence_and_outlives_a_restart() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let one = content("one");
    let first = holdings(folder.path()).await;
    let dual = envelope(7, &one);
    let push = Envelope {
        mode: SyncMode::Push,
        ..dual.clone()
    };
    let messages = vec![Deliver::Envelope { envelope: dual.clone() }, Deliver::content(&one)];
    converse(&first, messages).await;
    assert_eq!(*first.mode().borrow(), SyncMode::Dual);
    let told = converse(&first, vec![Deliver::Envelope { envelope: push }]).await;
    assert_eq!(told, [DeliverReply::Taken { sequence: 7 }], "once it is journalled");
    assert_eq!(*first.mode().borrow(), SyncMode::Push);
    drop(first);
    let restarted = holdings(folder.path()).await;
    assert_eq!(*restarted.mode().borrow(), SyncMode::Push, "also without a hub");
    let held = restarted
        .desired()
        .borrow()
        .clone()
        .expect("the journal had it")
        .held
        .clone();
    assert_eq!(
        (held.sequence, held.mode),
        (7, SyncMode::Push),
        "and that is what the hub hears"
    );
    let older = Envelope {
        mode: SyncMode::Pull,
        ..envelope(6, &one)
    };
    converse(&restarted, vec![Deliver::Envelope { envelope: older }]).await;
    assert_eq!(*restarted.mode().borrow(), SyncMode::Push, "old news changes no mode");
}

/// The digests that an agent applies, as far as it has their contents.
fn applied(holdings: &Holdings) -> (u64, Vec<Digest>) {
    let desired = holdings.desired().borrow().clone().expect("it holds something");
    let digests = desired.units.values().map(|unit| unit.description.digest);
    (desired.held.sequence, digests.collect())
}

#[tokio::test]
async fn a_mode_outlives_an_agent_that_ends_before_the_contents_told_with_it_come() {
    let (one, two) = (content("one"), content("two"));
    let said = |sequence, content, mode, digit: &str| Envelope {
        mode,
        mode_source: Some(Revision::parse(digit.repeat(40)).expect("forty hex digits")),
        ..envelope(sequence, content)
    };
    for (before, mode) in [
        (SyncMode::Dual, SyncMode::Pull),
        (SyncMode::Dual, SyncMode::Push),
        (SyncMode::Push, SyncMode::Dual),
        (SyncMode::Push, SyncMode::Pull),
    ] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let first = holdings(folder.path()).await;
        let envelope = said(7, &one, before, "a");
        converse(&first, vec![Deliver::Envelope { envelope }, Deliver::content(&one)]).await;
        let mut recorded = first.recorded();
        recorded.mark_unchanged();
        let mut envelope = said(8, &two, mode, "b");
        envelope.mode_instead = Some(Revision::parse("a".repeat(40)).expect("forty hex digits"));
        first.shared.take(&envelope).await.expect("it is believed");
        assert_eq!(*first.mode().borrow(), mode, "the gate does not wait");
        let written = timeout(std::time::Duration::from_secs(60), recorded.changed()).await;
        written.expect("in time").expect("it is written down");
        // It is killed.
        drop(first);
        let restarted = holdings(folder.path()).await;
        assert_eq!(*restarted.mode().borrow(), mode, "{before:?}, then {mode:?}");
        assert_eq!(applied(&restarted), (7, vec![one.digest]), "what it had goes on");
        let again = vec![Deliver::Envelope { envelope }, Deliver::content(&two)];
        converse(&restarted, again).await;
        assert_eq!(
            (applied(&restarted), *restarted.mode().borrow()),
            ((8, vec![two.digest]), mode)
        );
    }
}

/// A place where another agent of this cluster kept something.
#[derive(Debug)]
struct Beside(std::sync::Mutex<Option<Kept>>);

impl Store for Beside {
    fn read(&self) -> BoxFuture<'_, Result<Kept, JournalError>> {
        Box::pin(async { Ok(Kept::default()) })
    }

    fn read_newer(&self) -> BoxFuture<'_, Result<Option<Kept>, JournalError>> {
        Box::pin(async { Ok(self.0.lock().expect("nobody panicked").take()) })
    }

    fn write(&self, _: Kept) -> BoxFuture<'_, Result<(), JournalError>> {
        Box::pin(async { Ok(()) })
    }
}

#[tokio::test]
async fn a_mode_that_another_agent_kept_is_taken_over_unless_a_hub_said_this_one_since() {
    let one = content("one");
    let said = |mode, digit: &str| Envelope {
        mode,
        mode_source: Some(Revision::parse(digit.repeat(40)).expect("forty hex digits")),
        ..envelope(7, &one)
    };
    let kept = |mode, digit| Kept {
        held: Some(said(mode, digit).held()),
        ..Kept::default()
    };
    for (told, expected) in [
        (None, SyncMode::Pull),
        // A hub that lags says nothing against what the other agent kept.
        (Some("a"), SyncMode::Pull),
        (Some("b"), SyncMode::Dual),
    ] {
        let beside = Beside(std::sync::Mutex::new(Some(kept(SyncMode::Pull, "c"))));
        let waits = holding(kept(SyncMode::Dual, "b"), Arc::new(beside));
        if let Some(digit) = told {
            let envelope = said(SyncMode::Dual, digit);
            converse(&waits, vec![Deliver::Envelope { envelope }]).await;
        }
        waits.prepare().await.expect("the journal is readable");
        assert_eq!(*waits.mode().borrow(), expected, "told {told:?}");
    }
}

#[tokio::test]
async fn old_repeated_and_tampered_envelopes_change_nothing() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (one, two) = (content("one"), content("two"));
    let holdings = holdings(folder.path()).await;
    let taken = vec![
        Deliver::Envelope {
            envelope: envelope(7, &one),
        },
        Deliver::content(&one),
    ];
    converse(&holdings, taken).await;
    let mut tampered = envelope(8, &two);
    tampered.list = envelope(8, &one).list;
    let refused = vec![
        Deliver::Envelope {
            envelope: envelope(6, &two),
        },
        Deliver::Envelope {
            envelope: envelope(7, &two),
        },
        Deliver::Envelope { envelope: tampered },
    ];
    let replies = converse(&holdings, refused).await;
    assert_eq!(replies.len(), 3);
    assert!(
        replies
            .iter()
            .all(|reply| matches!(reply, DeliverReply::Refused { .. })),
        "{replies:?}"
    );
    let repeated = converse(
        &holdings,
        vec![Deliver::Envelope {
            envelope: envelope(7, &one),
        }],
    )
    .await;
    assert_eq!(repeated, [DeliverReply::Taken { sequence: 7 }]);
    let desired = holdings.desired().borrow().clone().expect("it was taken");
    assert_eq!(
        desired.units.values().next().map(|unit| unit.description.digest),
        Some(one.digest)
    );
}

#[tokio::test]
async fn a_content_that_is_not_its_digest_is_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (one, two) = (content("one"), content("two"));
    let holdings = holdings(folder.path()).await;
    let Deliver::Content { description, .. } = Deliver::content(&two) else {
        unreachable!("a content")
    };
    let smuggled = Deliver::Content {
        digest: one.digest,
        description,
    };
    converse(
        &holdings,
        vec![
            Deliver::Envelope {
                envelope: envelope(7, &one),
            },
            smuggled,
        ],
    )
    .await;
    let desired = holdings.desired().borrow().clone().expect("the envelope was taken");
    assert!(desired.units.is_empty(), "its unit waits for the true content");
    let again = Deliver::Envelope {
        envelope: envelope(7, &one),
    };
    converse(&holdings, vec![again, Deliver::content(&one)]).await;
    let desired = holdings.desired().borrow().clone().expect("the envelope was taken");
    assert_eq!(desired.units.len(), 1, "and has it when that comes");
}

#[tokio::test]
async fn a_damaged_journal_is_an_error_and_a_damaged_content_is_asked_for_again() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let one = content("one");
    let first = holdings(folder.path()).await;
    converse(
        &first,
        vec![
            Deliver::Envelope {
                envelope: envelope(7, &one),
            },
            Deliver::content(&one),
        ],
    )
    .await;
    drop(first);
    let path = folder
        .path()
        .join("contents")
        .join(format!("{}.json", one.digest.short(64)));
    std::fs::write(&path, b"{}").expect("the content is overwritten");
    let again = converse(
        &holdings(folder.path()).await,
        vec![Deliver::Envelope {
            envelope: envelope(7, &one),
        }],
    )
    .await;
    let need = DeliverReply::Need(ContentRequest {
        digests: vec![one.digest],
    });
    assert_eq!(again, [need.clone(), need, DeliverReply::Taken { sequence: 7 }]);
    std::fs::write(folder.path().join("held.json"), b"{").expect("the list is overwritten");
    let journal = opened(folder.path()).await;
    assert!(matches!(journal.read().await, Err(JournalError::Damaged { .. })));
}

#[tokio::test]
async fn contents_that_a_cut_link_left_out_are_asked_for_without_a_new_list() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let one = content("one");
    let need = DeliverReply::Need(ContentRequest {
        digests: vec![one.digest],
    });
    let envelope = envelope(7, &one);
    let agent = holdings(folder.path()).await;
    // The link is cut before the content comes.
    converse(&agent, vec![Deliver::Envelope { envelope }]).await;
    assert_eq!(applied(&agent), (7, Vec::new()));
    drop(agent);
    let restarted = holdings(folder.path()).await;
    assert_eq!(converse(&restarted, vec![Deliver::content(&one)]).await, [need]);
    assert_eq!(applied(&restarted), (7, vec![one.digest]));
    assert_eq!(converse(&restarted, Vec::new()).await, [], "nothing is missing");
}

#[tokio::test]
async fn what_an_agent_that_was_killed_left_half_taken_does_not_stay_for_good() {
    let folder = tempfile::tempdir().expect("a folder");
    let (one, two) = (content("1"), content("2"));
    let contents = folder.path().join("contents");
    let path = |content: &Description| contents.join(format!("{}.json", content.digest.short(64)));
    let stray = [contents.join("cut.new"), path(&content("3"))];
    let kept = |content: &Description| Kept {
        held: Some(envelope(7, content).held()),
        contents: [(content.digest, Arc::new(content.clone()))].into(),
        ..Kept::default()
    };
    opened(folder.path())
        .await
        .write(kept(&one))
        .await
        .expect("it is written");
    // As a process leaves it that ends before it writes the envelope; of the second not all is there.
    for path in &stray {
        std::fs::write(path, b"{").expect("it is left behind");
    }
    std::fs::write(path(&two), b"{").expect("it is left behind");
    let journal = opened(folder.path()).await;
    let read = journal.read().await.expect("it reads back");
    assert_eq!(read.contents.keys().collect::<Vec<_>>(), [&one.digest]);
    journal.write(kept(&two)).await.expect("it is written");
    let left = std::fs::read_dir(&contents).expect("it is listed");
    let left: Vec<_> = left.map(|entry| entry.expect("an entry").path()).collect();
    assert_eq!(left, [path(&two)]);
    drop(journal);
    let read = opened(folder.path()).await.read().await.expect("it reads back");
    assert_eq!(read.contents.keys().collect::<Vec<_>>(), [&two.digest], "it is whole");
}

#[test]
fn a_journal_whose_identity_is_damaged_is_not_an_agents() {
    let folder = tempfile::tempdir().expect("a folder");
    drop(Journal::open(folder.path(), "agent").expect("opens"));
    let path = folder.path().join("holder");
    // By an empty one nobody holds the Lease that the agent believes to have.
    for damaged in [b"".as_slice(), b" \n", b"\0\0\0\0", b"agent-\xff"] {
        std::fs::write(&path, damaged).expect("it is overwritten");
        let opened = Journal::open(folder.path(), "agent");
        assert!(
            matches!(opened, Err(JournalError::Damaged { .. } | JournalError::InUse { .. })),
            "{damaged:?}: {opened:?}"
        );
        assert_eq!(std::fs::read(&path).expect("it is left"), damaged);
    }
}

#[test]
fn nobody_else_on_the_machine_reads_what_was_delivered() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().expect("a folder");
    let contents = folder.path().join("contents");
    std::fs::create_dir(&contents).expect("as an older version left it");
    drop(Journal::open(folder.path(), "agent").expect("opens"));
    let mode = std::fs::metadata(&contents).expect("is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn a_content_is_checked_beside_those_who_wait_for_sockets() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let content = content("web");
    let bytes = content.to_json();
    let digest = content.digest;
    let taking = async {
        let holdings = holdings(folder.path()).await;
        let taken = holdings.shared.take(&envelope(1, &content)).await;
        assert!(taken.is_ok(), "{taken:?}");
        holdings
    };
    let checking = |holdings: Holdings| async move {
        assert_eq!(holdings.shared.missing().await, [digest]);
        holdings.shared.content(digest, bytes).await;
        assert!(holdings.shared.missing().await.is_empty(), "it is what its digest says");
    };
    assert!(is_elsewhere(taking, checking));
}
