//! What an agent opens at its hub: reports, a question for the hub's keys, and its wish for another one of its own.

use std::net::IpAddr;
use std::sync::Arc;

use render::ClusterName;
use tokio::io::AsyncRead;
use tokio::sync::watch;
use tunnel::Responder;

use super::Sessions;
use crate::hub::engine::Event;
use crate::hub::{keys, push};
use crate::key_wish::Within;
use crate::wire::{Envelope, FramingError, Held, Report, read_message};

impl Sessions {
    /// Hears reports on a stream that an agent opened.
    pub(super) async fn opened(
        &self,
        of: (&ClusterName, u64),
        responder: Responder,
        told: &watch::Receiver<Option<Arc<Envelope>>>,
        said: &watch::Sender<Option<Held>>,
    ) {
        let Ok(stream) = responder.accept() else { return };
        if let Err(error) = self.reports(of, stream, told, said).await {
            tracing::debug!(cluster = %of.0, error = &error as &dyn std::error::Error, "Lost report stream.");
        }
    }

    /// Says the hub's keys on a stream that an agent opened.
    pub(super) async fn keys(&self, (cluster, epoch): (&ClusterName, u64), responder: Responder) {
        let Ok(stream) = responder.accept() else { return };
        let kept = || self.connections.has_keys(cluster, epoch);
        if let Err(error) = keys::tell(&self.keys, &self.registry, stream, kept).await {
            let error = &error as &dyn std::error::Error;
            tracing::debug!(cluster = %cluster, error, "Lost keys stream.");
        }
    }

    /// Hears which key is to take the place of an agent's own.
    pub(super) async fn wishes(&self, (within, from): (Within<'_>, Option<IpAddr>), responder: Responder) {
        let Ok(stream) = responder.accept() else { return };
        if let Err(error) = keys::hear_wish((within, from), &self.registry, &self.events, stream).await {
            let error = &error as &dyn std::error::Error;
            tracing::debug!(cluster = %within.cluster, error, "Lost an agent's wish for another key.");
        }
    }

    async fn reports<S>(
        &self,
        (cluster, epoch): (&ClusterName, u64),
        stream: S,
        told: &watch::Receiver<Option<Arc<Envelope>>>,
        said: &watch::Sender<Option<Held>>,
    ) -> Result<(), FramingError>
    where
        S: AsyncRead,
    {
        let mut stream = Box::pin(stream);
        while let Some(report) = read_message::<_, Report>(&mut stream).await? {
            if report.cluster != *cluster {
                tracing::warn!(cluster = %cluster, named = %report.cluster, "Dropped a report in another name.");
                continue;
            }
            said.send_replace(report.held.clone());
            // An agent that stands by has no results; the hub's own applier reports.
            if push::speaks(&told.borrow(), &report.held) {
                continue;
            }
            self.dispatch.waits(cluster, epoch, report.waits_for_lease);
            let _sent = self
                .events
                .send(Event::Reported {
                    report: Box::new(report),
                })
                .await;
        }
        Ok(())
    }
}
