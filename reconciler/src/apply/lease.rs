//! One applier per cluster: a Lease in that cluster, held by whoever applies there.
//!
//! The holder renews it, and stops writing by itself well before another may take it over. Every write of
//! the Lease names the resource version that was read, so that of two who try only one succeeds. Nothing
//! here compares clocks of two machines: a Lease is free when it did not change for its duration, as seen
//! by whoever waits.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::Client;
use kube::api::{Api, ObjectMeta, PostParams};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::request::{RequestError, bounded};
use super::{ApplierOptions, FIELD_MANAGER};
use crate::limits::{LEASE_DURATION, LEASE_RELEASE_TIMEOUT, LEASE_RENEW, LEASE_RETRY};

/// The Lease's name, in Flotilla's own namespace.
pub(super) const NAME: &str = "flotilla-applier";

/// Where the Lease stands, as this process sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LeaseState {
    /// Not asked yet.
    Asking,
    /// Somebody else holds it.
    Waiting {
        /// Their identity.
        holder: String,
    },
    /// The API server did not say.
    Trouble(String),
    /// It is ours until then.
    Held {
        /// From here on, nothing may be written.
        until: Instant,
    },
}

impl LeaseState {
    /// Whether this process may write now.
    pub(super) fn is_held(&self) -> bool {
        matches!(self, Self::Held { until } if Instant::now() < *until)
    }
}

/// Keeps trying to hold the Lease until `stop`, then gives it back.
pub(super) async fn keep(
    client: Client,
    options: ApplierOptions,
    state: watch::Sender<LeaseState>,
    stop: CancellationToken,
) {
    let mut keeper = Keeper::new(client, options);
    loop {
        let before = state.borrow().clone();
        let next = tokio::select! {
            biased;
            () = stop.cancelled() => break,
            next = keeper.step(&before) => next,
        };
        let pause = if matches!(next, LeaseState::Held { .. }) {
            LEASE_RENEW
        } else {
            LEASE_RETRY
        };
        keeper.tell(&state, next);
        tokio::select! {
            biased;
            () = stop.cancelled() => break,
            () = tokio::time::sleep(pause) => {}
        }
    }
    state.send_replace(LeaseState::Asking);
    // Whoever waits need not wait for the whole duration. If it fails, they do.
    drop(tokio::time::timeout(LEASE_RELEASE_TIMEOUT, keeper.release()).await);
}

struct Keeper {
    leases: Api<Lease>,
    namespaces: Api<Namespace>,
    options: ApplierOptions,
    /// The Lease as we wrote it, while it is ours.
    ours: Option<Lease>,
    /// What somebody else's Lease looked like, and since when it does.
    seen: Option<(Option<String>, Instant)>,
}

impl Keeper {
    fn new(client: Client, options: ApplierOptions) -> Self {
        Self {
            leases: Api::namespaced(client.clone(), &options.namespace),
            namespaces: Api::all(client),
            options,
            ours: None,
            seen: None,
        }
    }

    fn tell(&self, state: &watch::Sender<LeaseState>, next: LeaseState) {
        let held = |state: &LeaseState| matches!(state, LeaseState::Held { .. });
        match (held(&state.borrow()), &next) {
            (false, LeaseState::Held { .. }) => info!("Took the applier lease."),
            (true, LeaseState::Waiting { holder }) => warn!(peer = holder, "Lost the applier lease."),
            (false, LeaseState::Waiting { holder }) if *state.borrow() != next => {
                warn!(peer = holder, "Found the applier lease held by another.");
            }
            (_, LeaseState::Trouble(error)) if *state.borrow() != next => {
                warn!(error, "Could not ask for the applier lease.");
            }
            _ => {}
        }
        state.send_if_modified(|state| {
            let changed = *state != next;
            *state = next;
            changed
        });
    }

    /// Renews the Lease, takes it, or finds out who has it.
    async fn step(&mut self, before: &LeaseState) -> LeaseState {
        // Counted from before the request: the API server may take it long before its answer arrives.
        let until = Instant::now() + LEASE_DURATION * 2 / 3;
        match self.try_hold().await {
            Ok(None) => LeaseState::Held { until },
            Ok(Some(holder)) => LeaseState::Waiting { holder },
            // While the last renewal holds, one failed request is no news.
            Err(_) if before.is_held() => before.clone(),
            Err(error) => LeaseState::Trouble(error.line()),
        }
    }

    /// `None` when it is ours now, or else who holds it.
    async fn try_hold(&mut self) -> Result<Option<String>, RequestError> {
        if let Some(ours) = self.ours.take() {
            match self.write(ours.clone()).await {
                Ok(()) => return Ok(None),
                Err(error) if error.code() == Some(409) || error.is_not_found() => {}
                Err(error) => {
                    self.ours = Some(ours);
                    return Err(error);
                }
            }
            // Somebody wrote it since. Unless it still says exactly what we wrote, it is not ours.
            let found = bounded(self.leases.get_opt(NAME)).await?;
            let renewed = |lease: &Lease| lease.spec.as_ref().and_then(|spec| spec.renew_time.clone());
            if let Some(found) = &found
                && holder(found) == Some(&self.options.holder)
                && renewed(found) == renewed(&ours)
            {
                return self.write(found.clone()).await.map(|()| None);
            }
            return Ok(Some(found.as_ref().and_then(holder).unwrap_or("nobody").to_owned()));
        }
        match bounded(self.leases.get_opt(NAME)).await? {
            None => self.create().await.map(|()| None),
            Some(found) if self.is_free(&found) => self.take(found).await,
            Some(found) => Ok(Some(holder(&found).unwrap_or_default().to_owned())),
        }
    }

    /// Whether nobody holds it: it is given back, says that we do, or did not change for its duration.
    fn is_free(&mut self, lease: &Lease) -> bool {
        let holder = holder(lease).unwrap_or_default();
        if holder.is_empty() || holder == self.options.holder {
            return true;
        }
        let version = lease.metadata.resource_version.clone();
        let seconds = lease.spec.as_ref().and_then(|spec| spec.lease_duration_seconds);
        let duration = seconds
            .and_then(|seconds| u64::try_from(seconds).ok())
            .map(Duration::from_secs);
        match &self.seen {
            Some((seen, since)) if *seen == version => since.elapsed() >= duration.unwrap_or(LEASE_DURATION),
            _ => {
                self.seen = Some((version, Instant::now()));
                false
            }
        }
    }

    async fn take(&mut self, found: Lease) -> Result<Option<String>, RequestError> {
        match self.write(found).await {
            Ok(()) => Ok(None),
            Err(error) if error.code() == Some(409) => Ok(Some("somebody who was quicker".to_owned())),
            Err(error) => Err(error),
        }
    }

    async fn create(&mut self) -> Result<(), RequestError> {
        let lease = Lease {
            metadata: ObjectMeta {
                name: Some(NAME.to_owned()),
                ..ObjectMeta::default()
            },
            spec: None,
        };
        match self.write(lease.clone()).await {
            Err(error) if error.is_not_found() => {
                self.create_namespace().await?;
                self.write(lease).await
            }
            written => written,
        }
    }

    async fn create_namespace(&self) -> Result<(), RequestError> {
        let namespace = Namespace {
            metadata: ObjectMeta {
                name: Some(self.options.namespace.clone()),
                ..ObjectMeta::default()
            },
            ..Namespace::default()
        };
        match bounded(self.namespaces.create(&params(), &namespace)).await {
            Ok(_) => Ok(()),
            Err(error) if error.code() == Some(409) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Writes a Lease with us as its holder, now.
    async fn write(&mut self, mut lease: Lease) -> Result<(), RequestError> {
        let now = MicroTime(jiff::Timestamp::now());
        let before = lease.spec.take().unwrap_or_default();
        let kept = before.holder_identity.as_deref() == Some(&self.options.holder);
        lease.spec = Some(LeaseSpec {
            holder_identity: Some(self.options.holder.clone()),
            lease_duration_seconds: i32::try_from(LEASE_DURATION.as_secs()).ok(),
            acquire_time: before.acquire_time.filter(|_| kept).or_else(|| Some(now.clone())),
            renew_time: Some(now),
            lease_transitions: Some(before.lease_transitions.unwrap_or(0) + i32::from(!kept)),
            ..LeaseSpec::default()
        });
        let written = if lease.metadata.resource_version.is_some() {
            bounded(self.leases.replace(NAME, &params(), &lease)).await?
        } else {
            bounded(self.leases.create(&params(), &lease)).await?
        };
        self.ours = Some(written);
        self.seen = None;
        Ok(())
    }

    async fn release(&mut self) {
        let Some(mut lease) = self.ours.take() else { return };
        if let Some(spec) = &mut lease.spec {
            spec.holder_identity = Some(String::new());
        }
        if let Err(error) = bounded(self.leases.replace(NAME, &params(), &lease)).await {
            warn!(error = error.line(), "Failed to give the applier lease back.");
        }
    }
}

fn holder(lease: &Lease) -> Option<&str> {
    lease.spec.as_ref()?.holder_identity.as_deref()
}

fn params() -> PostParams {
    PostParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..PostParams::default()
    }
}

#[cfg(test)]
mod tests {
    use render::ClusterName;

    use super::*;

    fn keeper() -> Keeper {
        let service = tower::service_fn(|_: http::Request<kube::client::Body>| async {
            Err::<http::Response<kube::client::Body>, _>(std::io::Error::other("no server"))
        });
        let options = ApplierOptions::new(ClusterName::parse("c1").expect("a valid name"), "us".to_owned());
        Keeper::new(Client::new(service, "default"), options)
    }

    fn lease(holder: &str, version: &str) -> Lease {
        Lease {
            metadata: ObjectMeta {
                resource_version: Some(version.to_owned()),
                ..ObjectMeta::default()
            },
            spec: Some(LeaseSpec {
                holder_identity: Some(holder.to_owned()),
                lease_duration_seconds: Some(15),
                ..LeaseSpec::default()
            }),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_is_free_when_it_did_not_change_for_its_duration() {
        let mut keeper = keeper();
        assert!(!keeper.is_free(&lease("them", "1")));
        tokio::time::advance(Duration::from_secs(14)).await;
        assert!(!keeper.is_free(&lease("them", "1")));
        assert!(!keeper.is_free(&lease("them", "2")), "a renewal starts the wait again");
        tokio::time::advance(Duration::from_secs(14)).await;
        assert!(!keeper.is_free(&lease("them", "2")));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(keeper.is_free(&lease("them", "2")));
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_that_was_given_back_or_is_our_own_is_free_at_once() {
        let mut keeper = keeper();
        assert!(keeper.is_free(&lease("", "1")));
        assert!(keeper.is_free(&lease("us", "1")));
    }

    #[tokio::test(start_paused = true)]
    async fn a_holder_stops_writing_before_another_may_take_over() {
        let held = LeaseState::Held {
            until: Instant::now() + LEASE_DURATION * 2 / 3,
        };
        assert!(held.is_held());
        let mut keeper = keeper();
        tokio::time::advance(LEASE_RENEW).await;
        assert_eq!(keeper.step(&held).await, held, "one failed renewal is no news");
        tokio::time::advance(LEASE_RENEW).await;
        assert!(!held.is_held(), "and then it is over");
        assert!(matches!(keeper.step(&held).await, LeaseState::Trouble(_)));
    }
}
