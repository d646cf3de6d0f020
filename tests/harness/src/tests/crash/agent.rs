//! One process of an agent: its journal on the disk in memory, its applier, and the streams of its hub.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use reconciler::agent::{Files, Holdings, Journal, serve};
use reconciler::apply::{self, ApplierOptions, ApplyReport};
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

/// Bytes on their way between hub and agent.
const STREAM_BYTES: usize = 1 << 16;

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
    pub(super) fn start(
        name: &str,
        server: &ApiServer,
        disk: &Disk,
        switch: Arc<Switch>,
        ledger: &Arc<Mutex<Ledger>>,
    ) -> Option<Self> {
        let files: Arc<dyn Files> = disk.mount(&switch);
        let journal = match Journal::open_on(files, "/var/agent", name) {
            Ok(journal) => journal,
            Err(error) if switch.is_dead() => {
                drop(error);
                return None;
            }
            Err(error) => panic!("a journal opens after whatever happened: {error:?}"),
        };
        let intake = journal
            .read(cluster())
            .expect("a journal reads back after whatever happened");
        let held = intake.held().map_or(0, |held| held.sequence);
        let taken = ledger.lock().unwrap_or_else(PoisonError::into_inner).taken as u64;
        assert!(
            held >= taken,
            "the journal holds {held}, and {taken} was said to be taken"
        );
        let client = Witness::client(server, &switch, ledger);
        let options = ApplierOptions {
            resync: RESYNC,
            ..ApplierOptions::new(cluster(), journal.holder().to_owned())
        };
        let holdings = Arc::new(Holdings::new(intake, journal, Vec::new()));
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
        let mut contents: BTreeMap<_, _> = contents.into_iter().map(|content| (content.digest, content)).collect();
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
                        let content = contents.remove(&digest).expect("it asks for what was named");
                        write_message(&mut far, &Deliver::content(&content))
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
