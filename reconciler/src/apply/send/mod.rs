//! One object to the API server: a server-side apply, and what came of it.
//!
//! In: a [`Task`]. Out: [`Sent`]. The first apply never forces. When the API server names fields that others
//! own, the live object is read, `ownership` decides about each of them, and the object is applied again: what
//! is ours by force, and only on what was read; what is not without it. What is forced is decided there, not here.

mod adopt;
mod replace;
mod seen;

use std::sync::Arc;

use kube::Client;
use kube::api::{Api, DynamicObject, Patch, PatchParams, ValidationDirective};
use kube::core::Status;
use render::model::{DriftMode, IgnoreRule, Replace};
use render::{ObjectKey, UnitKey};
use serde_json::{Value, json};

use super::discovery::ServedKind;
use super::inventory::Entry;
use super::ownership::{self, Cause, Claim, Last, Owners, Path, Ruling, Why};
use super::request::{RequestError, bounded};
use super::session::{Before, Outcome};
use super::{FIELD_MANAGER, message};
use crate::limits::FORCED_TRIES_MAX;
use crate::wire::ObjectState;

pub(super) use seen::Seen;

/// An object to send, and what is known of it.
pub(super) struct Task {
    /// Where.
    pub client: Client,
    /// What it is.
    pub kind: Arc<ServedKind>,
    /// Its key in the cluster.
    pub key: ObjectKey,
    /// The unit that it comes with.
    pub unit: UnitKey,
    /// What is sent when nothing is in dispute.
    pub object: Value,
    /// Its digest, as the inventory notes it.
    pub digest: String,
    /// What the inventory remembers of it.
    pub entry: Option<Entry>,
    /// What was applied before, where it is still known; whether it came to be is the inventory's to say.
    pub before: Option<Before>,
    /// What is done about fields that others changed.
    pub drift: DriftMode,
    /// Whether it may be deleted and made anew, as its unit says.
    pub replace: Replace,
    /// The rules of its unit that are about it.
    pub rules: Vec<IgnoreRule>,
    /// Whether an autoscaler of the delivery targets it.
    pub scaled: bool,
    /// Field managers that count as earlier tools, beside those that do anyway.
    pub earlier: Arc<[String]>,
}

/// What came of an object that was sent.
pub(super) enum Sent {
    /// It is there, as it was sent.
    Applied(Box<Applied>),
    /// It was refused; others may well be taken.
    Refused(Outcome),
    /// The API server is of no use right now.
    Stopped(RequestError),
}

impl Sent {
    /// Without values of the object in the words of a refusal, whatever its kind: it was encrypted.
    pub(super) fn without_values(self, object: &Value) -> Self {
        match self {
            Self::Refused(outcome) => Self::Refused(Outcome {
                message: message::without_values(&outcome.message, object),
                ..outcome
            }),
            sent @ (Self::Applied(_) | Self::Stopped(_)) => sent,
        }
    }
}

/// An object that is there.
pub(super) struct Applied {
    /// What it shows.
    pub seen: Seen,
    /// Applied, or Conflict where fields of it were left to others.
    pub outcome: Outcome,
    /// Fields without which it was applied, since others own them.
    pub refused: Vec<String>,
    /// Whether it was there before, and nobody's.
    pub adopted: bool,
}

/// What fields are forced on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Forcing {
    /// The object as it was seen, and no other.
    AsSeen,
    /// Whatever is there.
    Always,
}

/// Sends an object.
pub(super) async fn send(task: Task) -> Sent {
    match task.send().await {
        Ok(sent) => sent,
        Err(error) => task.refused(error),
    }
}

impl Task {
    async fn send(&self) -> Result<Sent, RequestError> {
        for _ in 0..FORCED_TRIES_MAX {
            match self.attempt(Forcing::AsSeen).await {
                Err(RequestError::Refused(status)) if is_stale(&status) => {}
                other => return other,
            }
        }
        // Somebody writes all the time: what is ours has to come back all the same.
        self.attempt(Forcing::Always).await
    }

    async fn attempt(&self, forcing: Forcing) -> Result<Sent, RequestError> {
        let live = if self.needs_live() { self.live().await? } else { None };
        let shape = match &live {
            Some(live) if self.is_left_alone(live) => return Ok(self.as_found(live)),
            Some(live) => self.shape(live, Vec::new()),
            None => self.object.clone(),
        };
        match self.apply(&shape, false).await {
            Ok(live) => self.applied(live, &[]).await,
            Err(RequestError::Refused(status)) => self.answer(*status, forcing).await,
            Err(error) => Err(error),
        }
    }

    /// What to do about a refusal.
    async fn answer(&self, status: Status, forcing: Forcing) -> Result<Sent, RequestError> {
        let causes = ownership::causes(&status);
        if !causes.is_empty() {
            return self.settle(causes, forcing).await;
        }
        match ownership::immutable(&status) {
            Some(immutable) => self.replace(&immutable).await,
            None => Err(RequestError::Refused(Box::new(status))),
        }
    }

    /// Applies again, after each field in dispute was decided about.
    async fn settle(&self, causes: Vec<Cause>, forcing: Forcing) -> Result<Sent, RequestError> {
        let Some(live) = self.live().await? else {
            let made = self.apply(&self.object, false).await?;
            return self.applied(made, &[]).await;
        };
        let owners = Owners::of(&live.metadata);
        let last = self.last(&live, &causes);
        let claim = Claim {
            manifest: &self.object,
            owners,
            last: &last,
            drift: self.drift,
            rules: &self.rules,
            scaled: self.scaled,
        };
        let mut force = false;
        let mut left = Vec::new();
        let mut refused = Vec::new();
        for cause in &causes {
            match claim.rule(cause) {
                (Ruling::Force, _) => force = true,
                (Ruling::Leave(why), Some(path)) => {
                    if why == Why::Refused {
                        refused.push(cause.clone());
                    }
                    left.push(path);
                }
                // What cannot be left out keeps the whole object from being applied.
                (Ruling::Leave(_), None) => return Ok(Sent::Refused(self.conflict(&ownership::words(&causes)))),
            }
        }
        let mut shape = self.shape(&live, left);
        if force && forcing == Forcing::AsSeen {
            // Whatever somebody writes from now on was not judged: it must not be overwritten unseen.
            shape["metadata"]["resourceVersion"] = json!(live.metadata.resource_version);
        }
        match self.apply(&shape, force).await {
            Ok(live) => self.applied(live, &refused).await,
            // It went away meanwhile, and is made anew.
            Err(RequestError::Refused(status)) if force && status.code == 404 => {
                let made = self.apply(&self.object, false).await?;
                self.applied(made, &[]).await
            }
            Err(RequestError::Refused(status)) => match ownership::causes(&status) {
                again if !again.is_empty() => Ok(Sent::Refused(self.conflict(&ownership::words(&again)))),
                _ => match ownership::immutable(&status) {
                    Some(immutable) => self.replace(&immutable).await,
                    None => Err(RequestError::Refused(status)),
                },
            },
            Err(error) => Err(error),
        }
    }

    /// What is known of what was applied last.
    fn last(&self, live: &DynamicObject, disputed: &[Cause]) -> Last {
        let entry = self.entry.as_ref().filter(|entry| is_same(entry, live));
        let Some(applied) = entry.and_then(|entry| entry.applied.as_deref()) else {
            let has_ours = Owners::of(&live.metadata).ours().is_some();
            return if has_ours { Last::Unknown } else { Last::Never };
        };
        if let Some(refused) = ownership::refused_before(&self.digest, disputed, applied) {
            return Last::Same(refused);
        }
        match &self.before {
            Some(before) if before.digest == applied => Last::Older(before.object.clone(), before.refused.clone()),
            _ => Last::Unknown,
        }
    }

    /// Whether something is left to others that only the live object tells.
    fn needs_live(&self) -> bool {
        let is_scaled = self.scaled && self.object.pointer(ownership::REPLICAS).is_some();
        let is_watched_only = self.drift == DriftMode::Report && self.entry.is_some();
        is_scaled || is_watched_only || self.rules.iter().any(|rule| !rule.paths.is_empty())
    }

    /// Whether all that differs is what others did, which is only to be reported.
    fn is_left_alone(&self, live: &DynamicObject) -> bool {
        let entry = self.entry.as_ref().filter(|entry| is_same(entry, live));
        let applied = entry.and_then(|entry| entry.applied.as_deref());
        self.drift == DriftMode::Report && applied == Some(self.digest.as_str())
    }

    fn as_found(&self, live: &DynamicObject) -> Sent {
        Sent::Applied(Box::new(Applied {
            seen: Seen::object(&self.kind.typed(live.clone())),
            outcome: Outcome::applied(),
            refused: Vec::new(),
            adopted: false,
        }))
    }

    /// What is sent to a live object: without what rules, autoscalers and decisions leave to others.
    fn shape(&self, live: &DynamicObject, mut left: Vec<Path>) -> Value {
        let owners = Owners::of(&live.metadata);
        left.extend(ownership::left_by_rules(&self.object, owners, &self.rules));
        if self.scaled {
            left.extend(ownership::locate(".spec.replicas", &self.object));
        }
        if left.is_empty() {
            return self.object.clone();
        }
        let live = serde_json::to_value(live).unwrap_or_default();
        ownership::leave_out(&self.object, &live, owners, &left)
    }

    async fn applied(&self, live: DynamicObject, refused: &[Cause]) -> Result<Sent, RequestError> {
        let (live, adopted) = self.take_over(live).await?;
        let outcome = if refused.is_empty() {
            Outcome::applied()
        } else {
            self.conflict(&format!(
                "{}, which keeps its value, since it was not applied from Git before; the rest is applied",
                ownership::words(refused)
            ))
        };
        Ok(Sent::Applied(Box::new(Applied {
            seen: Seen::object(&live),
            outcome,
            refused: refused.iter().map(|cause| cause.field.clone()).collect(),
            adopted,
        })))
    }

    fn conflict(&self, words: &str) -> Outcome {
        // It names managers and fields, never a value; a Secret's too.
        Outcome::new(ObjectState::Conflict, message::shorten(words))
    }

    /// What a request that came to nothing means for the object.
    fn refused(&self, error: RequestError) -> Sent {
        if error.is_general() {
            return Sent::Stopped(error);
        }
        let (state, words) = match &error {
            RequestError::Refused(status) if is_terminating(status) => (
                ObjectState::Waiting,
                format!(
                    "namespace {} is being deleted; it is applied when that is gone",
                    self.key.namespace
                ),
            ),
            // Its namespace or its kind is not there.
            RequestError::Refused(status) if status.code == 404 => (ObjectState::Waiting, status.message.clone()),
            RequestError::Refused(status) => (ObjectState::Failed, status.message.clone()),
            error => (ObjectState::Failed, error.line()),
        };
        Sent::Refused(Outcome::new(state, message::about(&self.key, &self.object, &words)))
    }

    fn api(&self) -> Api<DynamicObject> {
        self.kind.api(&self.client, &self.key.namespace)
    }

    async fn live(&self) -> Result<Option<DynamicObject>, RequestError> {
        bounded(self.api().get_opt(&self.key.name)).await
    }

    async fn apply(&self, object: &Value, force: bool) -> Result<DynamicObject, RequestError> {
        let params = PatchParams { force, ..params() };
        bounded(self.api().patch(&self.key.name, &params, &Patch::Apply(object))).await
    }
}

fn params() -> PatchParams {
    PatchParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        // As kubectl does: a misspelt field is refused and not dropped.
        field_validation: Some(ValidationDirective::Strict),
        ..PatchParams::default()
    }
}

/// Whether an object was written since it was read.
fn is_stale(status: &Status) -> bool {
    status.code == 409 && status.reason == "Conflict" && ownership::causes(status).is_empty()
}

/// Whether a live object is the one that the inventory means.
fn is_same(entry: &Entry, live: &DynamicObject) -> bool {
    entry.uid.is_some() && entry.uid == live.metadata.uid
}

fn is_terminating(status: &Status) -> bool {
    let causes = status.details.as_ref().map(|details| details.causes.as_slice());
    let is_cause = |reason: &str| reason == "NamespaceTerminating";
    status.code == 403 && causes.unwrap_or_default().iter().any(|cause| is_cause(&cause.reason))
}
