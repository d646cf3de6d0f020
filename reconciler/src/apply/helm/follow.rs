//! Which objects of releases are watched, and what watches say of them, handed to the task of their release.

use std::collections::BTreeMap;

use render::ObjectKey;

use super::Releases;
use super::objects::Followed;
use super::touched::Sight;
use crate::apply::watch::{OwnedKeys, Scope, Sighting};

/// The objects of all releases.
#[derive(Default)]
pub(super) struct Follows(BTreeMap<ObjectKey, Object>);

struct Object {
    followed: Followed,
    /// The HelmChart whose release has it.
    chart: ObjectKey,
}

impl Follows {
    /// The release of a HelmChart has exactly these.
    pub(super) fn put(&mut self, chart: &ObjectKey, objects: Vec<Followed>) {
        self.0.retain(|_, object| object.chart != *chart);
        self.0.extend(objects.into_iter().map(|followed| {
            let chart = chart.clone();
            (followed.key.clone(), Object { followed, chart })
        }));
    }

    /// Keeps those of the releases of such HelmCharts.
    pub(super) fn retain(&mut self, keep: impl Fn(&ObjectKey) -> bool) {
        self.0.retain(|_, object| keep(&object.chart));
    }
}

impl Releases {
    /// What is to be watched.
    pub(in crate::apply) fn followed(&self) -> impl Iterator<Item = &Followed> {
        self.follows.0.values().map(|object| &object.followed)
    }

    /// A watch saw an object.
    pub(in crate::apply) fn sighted(&self, sighting: &Sighting) {
        let seen = &sighting.seen;
        self.tell(&sighting.key, || {
            Sight::told(seen.uid.clone(), seen.resource_version.clone(), &sighting.managed)
        });
    }

    /// A watch saw that an object is gone.
    pub(in crate::apply) fn lost(&self, key: &ObjectKey) {
        self.tell(key, Sight::default);
    }

    /// A watch told of all that there is in a scope.
    pub(in crate::apply) fn listed(&self, scope: &Scope, told: &OwnedKeys) {
        let missing = self.follows.0.keys();
        let missing = missing.filter(|key| scope.contains(key) && !told.contains(key));
        missing.for_each(|key| self.lost(key));
    }

    /// The objects of these releases are watched from now on.
    pub(super) fn are_watched<'a>(&self, charts: impl IntoIterator<Item = &'a ObjectKey>) {
        let running = charts.into_iter().filter_map(|chart| self.running.get(chart));
        running.for_each(|running| running.touches.watched());
    }

    /// Watches do not tell everything: all are compared.
    pub(in crate::apply) fn doubt(&self) {
        self.running.values().for_each(|running| running.touches.watched());
    }

    fn tell(&self, key: &ObjectKey, sight: impl FnOnce() -> Sight) {
        let chart = self.follows.0.get(key).map(|object| &object.chart);
        if let Some(running) = chart.and_then(|chart| self.running.get(chart)) {
            running.touches.note(key.clone(), sight());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use kube::client::Body;
    use tokio::sync::watch;
    use tokio_util::task::AbortOnDropHandle;

    use super::super::touched::Touches;
    use super::super::wanted::Place;
    use super::super::{HelmOptions, Order, Running};
    use super::*;

    #[tokio::test]
    async fn while_watches_fail_every_release_is_compared() {
        let service = tower::service_fn(|_: http::Request<Body>| async { Err::<http::Response<Body>, _>("nobody") });
        let client = kube::Client::new(service, "default");
        let mut releases = Releases::new(client, &HelmOptions::default(), Duration::from_secs(600));
        let place = Place::parse("shop/web").expect("a place");
        let touches = Touches::default();
        let running = Running {
            orders: watch::Sender::new(Order::Remove(place)),
            touches: touches.clone(),
            task: AbortOnDropHandle::new(tokio::spawn(std::future::pending())),
        };
        let chart = ObjectKey::new("fleet.flotilla.dev/v1alpha1", "HelmChart", "shop", "web");
        releases.running.insert(chart, running);
        assert!(!touches.take().all);
        releases.doubt();
        assert!(touches.take().all);
    }
}
