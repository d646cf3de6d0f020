//! The places that each cluster has for requests: one that is slow fills its own, and one person not even those.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use render::ClusterName;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::hub::shares::{Part, Shares};
use crate::limits::{
    DOOR_OPENING_OF_CLUSTER_MAX, DOOR_REQUESTS_OF_CLUSTER_MAX, DOOR_REQUESTS_OF_PERSON_MAX,
    DOOR_WAITING_OF_CLUSTER_MAX, DOOR_WAITING_TIMEOUT,
};

/// A lane for each cluster that was asked.
#[derive(Default)]
pub(super) struct Lanes(Mutex<BTreeMap<ClusterName, Arc<Lane>>>);

/// The places of one cluster.
pub(super) struct Lane {
    requests: Arc<Semaphore>,
    waiting: Semaphore,
    opening: Arc<Semaphore>,
    people: Arc<Shares<String>>,
}

/// A request's place, for as long as its answer lasts.
#[derive(Debug)]
pub(super) struct Place {
    _request: OwnedSemaphorePermit,
    _share: Part<String>,
}

/// Why there is no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoPlace {
    /// Too many wait for this cluster.
    Cluster,
    /// The same person has too many there.
    Person,
}

impl Default for Lane {
    fn default() -> Self {
        Self {
            requests: Arc::new(Semaphore::new(DOOR_REQUESTS_OF_CLUSTER_MAX)),
            waiting: Semaphore::new(DOOR_WAITING_OF_CLUSTER_MAX),
            opening: Arc::new(Semaphore::new(DOOR_OPENING_OF_CLUSTER_MAX)),
            people: Arc::default(),
        }
    }
}

impl Lanes {
    pub(super) fn lane(&self, cluster: &ClusterName) -> Arc<Lane> {
        let mut lanes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(lanes.entry(cluster.clone()).or_default())
    }
}

impl Lane {
    /// A place for a request of a person, perhaps after some waiting.
    pub(super) async fn place(&self, user: &str) -> Result<Place, NoPlace> {
        let share = self.people.part(user.to_owned(), DOOR_REQUESTS_OF_PERSON_MAX);
        let share = share.ok_or(NoPlace::Person)?;
        Ok(Place {
            _request: self.one_of(&self.requests).await?,
            _share: share,
        })
    }

    /// A place among the streams that the agent has not answered yet.
    pub(super) async fn opening(&self) -> Result<OwnedSemaphorePermit, NoPlace> {
        self.one_of(&self.opening).await
    }

    async fn one_of(&self, places: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, NoPlace> {
        if let Ok(place) = Arc::clone(places).try_acquire_owned() {
            return Ok(place);
        }
        let _waiting = self.waiting.try_acquire().map_err(|_| NoPlace::Cluster)?;
        let place = timeout(DOOR_WAITING_TIMEOUT, Arc::clone(places).acquire_owned()).await;
        place.ok().and_then(Result::ok).ok_or(NoPlace::Cluster)
    }
}

#[cfg(test)]
mod tests {
    use tokio::task::JoinSet;
    use tokio::time::Instant;

    use super::*;

    fn cluster(name: &str) -> ClusterName {
        ClusterName::parse(name).expect("a valid cluster")
    }

    /// So many people that none of them has too many.
    fn user(number: usize) -> String {
        format!("user-{}", number % 40)
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_cluster_fills_its_own_queue_and_no_other() {
        let lanes = Lanes::default();
        let (slow, other) = (lanes.lane(&cluster("slow")), lanes.lane(&cluster("other")));
        let mut held = Vec::new();
        for number in 0..DOOR_REQUESTS_OF_CLUSTER_MAX {
            held.push(slow.place(&user(number)).await.expect("there is a place"));
        }
        let mut waiting = JoinSet::new();
        for number in 0..DOOR_WAITING_OF_CLUSTER_MAX {
            let slow = Arc::clone(&slow);
            waiting.spawn(async move { slow.place(&user(number)).await.map(drop) });
        }
        // The clock moves once all of them wait.
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        let begin = Instant::now();
        assert_eq!(slow.place("ada").await.map(drop), Err(NoPlace::Cluster));
        assert_eq!(begin.elapsed().as_millis(), 0, "nobody waits for a place in the queue");
        assert!(other.place("ada").await.is_ok(), "another cluster is served");
        held.pop();
        let first = waiting.join_next().await.expect("somebody waits").expect("no panic");
        assert_eq!(first, Ok(()), "who waited longest has it");
        assert!(begin.elapsed() < DOOR_WAITING_TIMEOUT);
        // What it gave back is the next one's, and so on.
        let ended = waiting.join_all().await;
        assert!(ended.iter().all(Result::is_ok), "{ended:?}");
        held.push(slow.place("ada").await.expect("it was given back"));
        assert_eq!(
            slow.place("bob").await.map(drop),
            Err(NoPlace::Cluster),
            "the wait has an end"
        );
        assert_eq!(begin.elapsed(), DOOR_WAITING_TIMEOUT);
    }

    #[tokio::test]
    async fn one_person_leaves_places_of_a_cluster_to_others() {
        let lane = Lane::default();
        let mut held = Vec::new();
        for _ in 0..DOOR_REQUESTS_OF_PERSON_MAX {
            held.push(lane.place("ada").await.expect("there is a place"));
        }
        assert_eq!(lane.place("ada").await.map(drop), Err(NoPlace::Person));
        assert!(lane.place("bob").await.is_ok());
        held.pop();
        assert!(lane.place("ada").await.is_ok());
    }
}
