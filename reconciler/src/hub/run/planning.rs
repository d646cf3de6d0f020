//! Plans, with predictions of charts for as long as one may wait for them.

use std::sync::Arc;

use render::chart::Previews;
use render::plan::Reports;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use super::looking::suspect;
use super::turn::Hub;
use crate::hub::blocking::blocking;
use crate::hub::clock::seconds;
use crate::hub::engine::{Effect, Event, Planned};
use crate::hub::keeper::chain;
use crate::hub::planner::Known;
use crate::hub::repository::RepositoryError;
use crate::hub::source::SourceError;
use crate::limits::{PREDICTION_PATIENCE, PREVIEW_PATIENCE};
use crate::telemetry::elapsed_ms;

impl Hub {
    /// Plans, has charts predicted, and plans again with what is known then. A chart that takes longer than others
    /// should wait stays as it was, and is planned when it is predicted.
    pub(super) fn plan(&self, effect: Effect) {
        let Effect::Plan {
            revision,
            base,
            previous,
            accepted,
            let_go,
            capabilities,
            reports,
            rebalanced,
            decided,
        } = effect
        else {
            return;
        };
        let (planner, predictor) = (Arc::clone(&self.planner), Arc::clone(&self.predictor));
        let predictors = Arc::clone(&self.predictors);
        let (remote, events) = (self.remote.clone(), self.events.clone());
        self.watch_over(async move {
            let started = Instant::now();
            let plan = |previews: Previews| {
                let (planner, revision, base) = (Arc::clone(&planner), revision.clone(), base.clone());
                let (previous, accepted, let_go) = (Arc::clone(&previous), accepted.clone(), let_go.clone());
                let now = seconds();
                let reports = Reports {
                    predicted: predictors.answers(now),
                    ..reports.clone()
                };
                let rebalanced = rebalanced.clone();
                blocking(move || {
                    let known = Known {
                        base,
                        previous,
                        accepted: accepted.as_ref(),
                        let_go,
                        previews,
                        reports,
                        now,
                        rebalanced,
                        decided,
                    };
                    planner.plan(&revision, known)
                })
            };
            let mut planned = plan(predictor.previews(capabilities.clone())).await;
            let (mut making, mut asking) = (JoinSet::new(), JoinSet::new());
            if let Ok(Planned { plan: first, .. }) = &mut planned {
                for (key, question) in predictors.take_up(first.questions.clone(), seconds()) {
                    asking.spawn(Arc::clone(&predictors).ask(key, question));
                }
                for (key, request) in predictor.take_up(std::mem::take(&mut first.pending)) {
                    let predictor = Arc::clone(&predictor);
                    making.spawn(async move { predictor.make(key, &request).await });
                }
            }
            if !making.is_empty() || !asking.is_empty() {
                let patience = (started + PREVIEW_PATIENCE, started + PREDICTION_PATIENCE);
                let made = async { while let Ok(Some(_)) = timeout_at(patience.0, making.join_next()).await {} };
                let asked = async { while let Ok(Some(_)) = timeout_at(patience.1, asking.join_next()).await {} };
                tokio::join!(made, asked);
                planned = plan(predictor.previews(capabilities)).await;
            }
            tracing::debug!(%revision, elapsed_ms = elapsed_ms(started), "Planned revision.");
            let event = planned.map_or_else(
                |error| {
                    suspect(remote.as_deref(), is_damage(&error));
                    Event::PlanFailed {
                        revision,
                        message: chain(&error),
                    }
                },
                |planned| Event::Planned(Box::new(planned)),
            );
            // The engine is gone only when the hub is ending.
            let _sent = events.send(event).await;
            let made = async {
                if !making.is_empty() {
                    while making.join_next().await.is_some() {}
                    let _sent = events.send(Event::Predicted).await;
                }
            };
            let asked = async {
                if !asking.is_empty() {
                    while asking.join_next().await.is_some() {}
                    let _sent = events.send(Event::RoomPredicted).await;
                }
            };
            tokio::join!(made, asked);
        });
    }
}

/// Whether a source was there and could not be read; of one that is only too large, a new copy would say the same.
fn is_damage(error: &SourceError) -> bool {
    matches!(error, SourceError::Unreadable(cause) if !matches!(cause, RepositoryError::TooMuch { .. }))
}
