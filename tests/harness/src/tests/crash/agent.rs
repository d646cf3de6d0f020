//! One process of an agent: its journal on the disk in memory, its applier, and the streams of its hub.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use reconciler::agent::{Absence, Files, Holdings, Journal, SecretJournal, Store, serve};
use reconciler::apply::{self, ApplierOptions, ApplyReport, Prepare, Tenure};
use reconciler::wire::{Deliver, DeliverReply, read_message, write_message};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::disk::Disk;
use super::story::units;
use super::switch::Switch;
use super::witness::{Ledger, Witness};
use crate::ApiServer;
use crate::tests::applier::{RESYNC, cluster, delivery};

/// The name of a journal in the cluster.
pub(super) const JOURNAL: &str = "flotilla-journal";

/// Bytes on their way between hub and agent.
const STREAM_BYTES: usize = 1 << 16;

/// Where agents of one story keep their journal.
pub(super) enum Place {
    Disk(Disk),
    Cluster,
}

/// The journal on a disk; `None` when the process ended while it opened it.
fn journal(files: Arc<dyn Files>, name: &str, switch: &Switch) -> Option<Journal> {
    match Journal::open_on(files, "/var/agent", name) {
        Ok(journal) => Some(journal),
        Err(error) if switch.is_dead() => {
            drop(error);
            None
        }
        Err(error) => panic!("a journal opens after whatever happened: {error:?}"),
    }
}

fn secrets(client: kube::Client, tenure: Tenure) -> SecretJournal {
    SecretJournal::new(client, "flotilla-system", JOURNAL, cluster(), tenure)
}

/// A running agent.
pub(super) struct Agent {
    holdings: Arc<Holdings>,
    applier: JoinHandle<Result<(), apply::ApplyError>>,
    stop: CancellationToken,
    pub(super) switch: Arc<Switch>,
    ledger: Arc<Mutex<Ledger>>,
}

impl Agent {
    /// Starts one; `None` when its process ended while it opened its journal. `name` is the process's.
    pub(super) async fn start(
        name: &str,
        server: &ApiServer,
        place: &Place,
        switch: Arc<Switch>,
        ledger: &Arc<Mutex<Ledger>>,
    ) -> Option<Self> {
        let client = Witness::client(server, &switch, ledger);
        let tenure = Tenure::default();
        let (store, holder): (Arc<dyn Store>, _) = match place {
            Place::Disk(disk) => {
                let journal = journal(disk.mount(&switch), name, &switch)?;
                let holder = journal.holder().to_owned();
                (Arc::new(journal), holder)
            }
            // Whoever follows is another pod.
            Place::Cluster => (Arc::new(secrets(client.clone(), tenure.clone())), name.to_owned()),
        };
        let kept = store
            .read()
            .await
            .expect("a journal reads back after whatever happened");
        let held = kept.held.as_ref().map_or(0, |held| held.sequence);
        let taken = ledger.lock().unwrap_or_else(PoisonError::into_inner).taken as u64;
        assert!(
            held >= taken,
            "the journal holds {held}, and {taken} was said to be taken"
        );
        if let Some(envelope) = &kept.held {
            let missing: Vec<_> = envelope
                .digests()
                .filter(|digest| !kept.contents.contains_key(digest))
                .collect();
            assert!(
                missing.is_empty(),
                "envelope {held} stands without its contents {missing:?}"
            );
        }
        let noted = Absence { since: 1, lasted: 0 };
        let (_, notes) = watch::channel(Some(noted));
        let holdings = Arc::new(Holdings::new(cluster(), kept, store, Vec::new(), notes));
        let options = ApplierOptions {
            resync: RESYNC,
            tenure,
            prepare: Some(Arc::clone(&holdings) as Arc<dyn Prepare>),
            ..ApplierOptions::new(cluster(), holder)
        };
        let stop = CancellationToken::new();
        let (report, _) = watch::channel(ApplyReport::default());
        let running = apply::run(client, options, holdings.desired(), report, stop.clone());
        Some(Self {
            holdings,
            applier: tokio::spawn(running),
            stop,
            switch,
            ledger: Arc::clone(ledger),
        })
    }

    /// What it holds.
    pub(super) fn held(&self) -> usize {
        let desired = self.holdings.desired();
        let held = desired.borrow().as_ref().map_or(0, |desired| desired.held.sequence);
        usize::try_from(held).unwrap_or_default()
    }

    /// Sends it a delivery, as the hub does, and waits until it is taken with all its contents.
    pub(super) async fn take(&self, number: usize) {
        let say = {
            let mut ledger = self.ledger.lock().unwrap_or_else(PoisonError::into_inner);
            ledger.sent.insert(number);
            ledger.says[number - 1].clone()
        };
        let (envelope, contents) = delivery(number as u64, &units(&say));
        let contents: BTreeMap<_, _> = contents.into_iter().map(|content| (content.digest, content)).collect();
        let (near, mut far) = tokio::io::duplex(STREAM_BYTES);
        let holdings = Arc::clone(&self.holdings);
        let serving = tokio::spawn(async move { serve(&holdings, near).await });
        write_message(&mut far, &Deliver::Envelope { envelope })
            .await
            .expect("the agent reads");
        loop {
            match read_message::<_, DeliverReply>(&mut far)
                .await
                .expect("the agent answers")
            {
                Some(DeliverReply::Need(request)) => {
                    for digest in request.digests {
                        // What a list before this one names no hub sends any more; and what is missing from the beginning is
                        // asked for twice.
                        let Some(content) = contents.get(&digest) else { continue };
                        write_message(&mut far, &Deliver::content(content))
                            .await
                            .expect("the agent reads");
                    }
                }
                Some(DeliverReply::Taken { sequence }) => {
                    let mut ledger = self.ledger.lock().unwrap_or_else(PoisonError::into_inner);
                    ledger.taken = ledger.taken.max(usize::try_from(sequence).unwrap_or_default());
                    break;
                }
                Some(DeliverReply::Refused { refusal, .. }) => panic!("a newer delivery is refused: {refusal:?}"),
                None => return,
            }
        }
        tokio::io::AsyncWriteExt::shutdown(&mut far)
            .await
            .expect("the stream closes");
        drop(serving.await);
    }

    /// Ends it, as a signal or a power cut would: nobody hears of it.
    pub(super) async fn end(self) {
        self.switch.kill();
        self.applier.abort();
        drop(self.applier.await);
    }

    /// Ends it in good order.
    pub(super) async fn stop(self) {
        self.stop.cancel();
        let ended = tokio::time::timeout(Duration::from_secs(60), self.applier).await;
        ended
            .expect("it ends")
            .expect("it does not panic")
            .expect("it ends well");
    }
}
