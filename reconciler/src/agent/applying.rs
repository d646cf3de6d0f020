//! Whether this agent applies: as the mode says that the hub told last, and as the journal says where no hub is heard.
//!
//! In mode Push the hub's applier does, through this agent; then it gives the Lease back and stands by, ready to take it
//! again with what it holds. Nobody starts before the other's Lease is free, so that two never apply.

use kube::Client;
use render::model::SyncMode;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::deliver::Holdings;
use crate::apply::{self, ApplierOptions, ApplyError, ApplyReport};
use crate::limits::JOURNAL_PATIENCE;

/// Applies while it is this agent's to do, until shutdown.
pub(super) async fn run(
    client: Client,
    options: ApplierOptions,
    holdings: &Holdings,
    applied: watch::Sender<ApplyReport>,
    shutdown: CancellationToken,
) -> Result<(), ApplyError> {
    let mut mode = holdings.mode();
    loop {
        let begins = mode.wait_for(|mode| mode.agent_applies());
        match shutdown.run_until_cancelled(begins).await {
            Some(Ok(_)) => {}
            Some(Err(_)) | None => return Ok(()),
        }
        let stop = shutdown.child_token();
        let mut applying = Box::pin(apply::run(
            client.clone(),
            options.clone(),
            holdings.desired(),
            applied.clone(),
            stop.clone(),
        ));
        tokio::select! {
            biased;
            ended = &mut applying => return ended,
            () = left(&mut mode, holdings) => {}
        }
        tracing::info!("Leaves applying to the hub.");
        stop.cancel();
        applying.await?;
        applied.send_replace(ApplyReport::default());
    }
}

/// Waits until the agent applies no more, and that stands in the journal where it may: one in the cluster is written by
/// whoever holds the Lease.
async fn left(mode: &mut watch::Receiver<SyncMode>, holdings: &Holdings) {
    if mode.wait_for(|mode| !mode.agent_applies()).await.is_err() {
        return std::future::pending().await;
    }
    let mut recorded = holdings.recorded();
    let stands = recorded.wait_for(|mark| mark.as_ref().is_some_and(|mark| !mark.mode.agent_applies()));
    let _stands = timeout(JOURNAL_PATIENCE, stands).await;
}
