//! What a release's task takes back: a revision, an install that failed, a half-made revision, the whole release.

use std::time::Duration;

use tracing::{info, warn};

use super::decide::{Step, decide_removal};
use super::live::{self, Live, LiveRevision};
use super::news::Told;
use super::run::{Run, RunError};
use super::task::{Task, unknown};
use super::wanted::{Place, Wanted};
use crate::apply::message;
use crate::fault::line;
use crate::limits::{HELM_TIMEOUT, RELEASE_LOOK};
use crate::wire::ObjectState;

impl Task {
    pub(super) async fn rollback(&mut self, wanted: &Wanted, number: u64) -> Duration {
        let words = format!("helm goes back to revision {number}");
        self.tell(ObjectState::Waiting, unknown(), self.because(words)).await;
        let rolled = async {
            let run = Run::prepare(&self.shared.means, &wanted.place, wanted.timeout()).await?;
            run.rollback(number, wanted).await
        };
        let rolled = rolled.await;
        self.undone(rolled, "Rolled back a release.").await
    }

    pub(super) async fn uninstall(&mut self, wanted: &Wanted) -> Duration {
        let words = self.because("helm takes it away to install it anew".to_owned());
        self.tell(ObjectState::Waiting, unknown(), words).await;
        let uninstalled = async {
            let run = Run::prepare(&self.shared.means, &wanted.place, wanted.timeout()).await?;
            run.uninstall(wanted.order.disable_hooks).await
        };
        let uninstalled = uninstalled.await;
        self.undone(uninstalled, "Took away a failed install.").await
    }

    async fn undone(&mut self, outcome: Result<(), RunError>, done: &'static str) -> Duration {
        match outcome {
            Ok(()) => {
                info!(object = %self.chart, "{done}");
                self.memory.tries.unhealthy = false;
                Duration::ZERO
            }
            Err(error) => {
                let words = self.because(message::shorten(&line(&error)));
                self.tell(ObjectState::Failed, unknown(), words).await;
                self.memory.fetches.wait()
            }
        }
    }

    pub(super) async fn forget(&mut self, wanted: &Wanted, latest: &LiveRevision) -> Duration {
        match live::forget(&self.shared.means.client, &wanted.place, latest).await {
            Ok(()) => {
                info!(object = %self.chart, "Forgot a half-made revision.");
                Duration::ZERO
            }
            Err(error) => self.unreachable(&error.line()).await,
        }
    }

    /// One step towards no release.
    pub(super) async fn remove(&mut self, place: &Place) -> Duration {
        self.memory.objects = None;
        let live = match Live::read(&self.shared.means.client, place).await {
            Ok(live) => live,
            Err(error) => return self.unreachable(&error.line()).await,
        };
        let owner = super::wanted::owner(&self.chart);
        match decide_removal(&owner, &live) {
            Step::Nothing => {
                self.tell_told(Told {
                    content: String::new(),
                    state: ObjectState::Removing,
                    verdict: unknown(),
                    message: "it is gone".to_owned(),
                    gone: true,
                    drift: Vec::new(),
                    more: 0,
                })
                .await;
                RELEASE_LOOK
            }
            Step::GiveUp(words) => {
                self.tell(ObjectState::Kept, unknown(), words).await;
                RELEASE_LOOK
            }
            _ => {
                self.tell(ObjectState::Removing, unknown(), "helm uninstalls it".to_owned())
                    .await;
                let uninstalled = async {
                    let run = Run::prepare(&self.shared.means, place, HELM_TIMEOUT).await?;
                    run.uninstall(false).await
                };
                match uninstalled.await {
                    Ok(()) => {
                        info!(object = %self.chart, "Uninstalled a release.");
                        Duration::ZERO
                    }
                    Err(error) => {
                        let words = message::shorten(&line(&error));
                        warn!(object = %self.chart, error = words, "Failed to uninstall a release.");
                        self.tell(ObjectState::Removing, unknown(), words).await;
                        self.memory.fetches.wait()
                    }
                }
            }
        }
    }
}
