//! Streams to clusters whose answer ended, which stay a moment for the next request of the same person: a client asks several
//! things in a row, and a stream costs more than a request on it.
//!
//! Who may ask what is judged at each request anew; a stream only says for whom its agent asks.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http_body_util::Full;
use render::ClusterName;
use render::access::Person;
use tokio::time::{Instant, sleep};
use tunnel::Opener;

use crate::exchange::{Home, Line};
use crate::limits::{DOOR_KEPT_FOR, DOOR_KEPT_LOOK, DOOR_KEPT_MAX, DOOR_KEPT_OF_CLUSTER_MAX};

/// The lines that are kept; clones keep the same.
#[derive(Clone, Default)]
pub(super) struct Kept(Arc<Mutex<Shelf<Owner, Line<Full<Bytes>>>>>);

/// Whose line it is.
#[derive(Clone)]
pub(super) struct Owner {
    pub(super) cluster: ClusterName,
    /// A newer tunnel of the same cluster is another one's.
    pub(super) opener: Opener,
    pub(super) person: Arc<Person>,
}

/// Lines by cluster, the one that was asked last behind the others.
struct Shelf<O, L> {
    lines: BTreeMap<ClusterName, Vec<Stay<O, L>>>,
    count: usize,
    is_closed: bool,
}

struct Stay<O, L> {
    owner: O,
    since: Instant,
    line: L,
}

impl Kept {
    /// A line of this owner, if there is one.
    pub(super) fn take(&self, owner: &Owner) -> Option<Line<Full<Bytes>>> {
        self.shelf().take(&owner.cluster, owner, Instant::now())
    }

    /// Where a line of this owner goes when its answer ended.
    pub(super) fn home(&self, owner: Owner) -> Home<Full<Bytes>> {
        let kept = self.clone();
        Box::new(move |line| {
            let refused = kept.shelf().put(owner.cluster.clone(), owner, line, Instant::now());
            refused.into_iter().for_each(Line::end);
        })
    }

    /// Ends what nobody asked again, for ever.
    pub(super) async fn let_go(&self) {
        loop {
            sleep(DOOR_KEPT_LOOK).await;
            let old = self.shelf().old(Instant::now());
            old.into_iter().for_each(Line::end);
        }
    }

    /// Ends all of them, and keeps no more.
    pub(super) fn close(&self) {
        let all = {
            let mut shelf = self.shelf();
            shelf.is_closed = true;
            shelf.all()
        };
        all.into_iter().for_each(Line::end);
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf<Owner, Line<Full<Bytes>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<O, L> Default for Shelf<O, L> {
    fn default() -> Self {
        Self {
            lines: BTreeMap::new(),
            count: 0,
            is_closed: false,
        }
    }
}

impl<O: PartialEq, L> Shelf<O, L> {
    fn take(&mut self, cluster: &ClusterName, owner: &O, now: Instant) -> Option<L> {
        let lines = self.lines.get_mut(cluster)?;
        let is_theirs = |stay: &Stay<O, L>| now < stay.since + DOOR_KEPT_FOR && stay.owner == *owner;
        let at = lines.iter().rposition(is_theirs)?;
        self.count -= 1;
        Some(lines.remove(at).line)
    }

    /// Gives back what there is no room for.
    fn put(&mut self, cluster: ClusterName, owner: O, line: L, now: Instant) -> Option<L> {
        if self.is_closed || self.count == DOOR_KEPT_MAX {
            return Some(line);
        }
        let lines = self.lines.entry(cluster).or_default();
        if lines.len() == DOOR_KEPT_OF_CLUSTER_MAX {
            return Some(line);
        }
        self.count += 1;
        let since = now;
        lines.push(Stay { owner, since, line });
        None
    }

    fn old(&mut self, now: Instant) -> Vec<L> {
        self.out(|stay| stay.since + DOOR_KEPT_FOR <= now)
    }

    fn all(&mut self) -> Vec<L> {
        self.out(|_| true)
    }

    fn out(&mut self, is_out: impl Fn(&Stay<O, L>) -> bool) -> Vec<L> {
        let mut out = Vec::new();
        for lines in self.lines.values_mut() {
            out.extend(lines.extract_if(.., |stay| is_out(stay)).map(|stay| stay.line));
        }
        self.lines.retain(|_, lines| !lines.is_empty());
        self.count -= out.len();
        out
    }
}

impl PartialEq for Owner {
    fn eq(&self, other: &Self) -> bool {
        self.opener.is_of_same_tunnel(&other.opener)
            && self.cluster == other.cluster
            && (Arc::ptr_eq(&self.person, &other.person) || self.person == other.person)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster(number: usize) -> ClusterName {
        ClusterName::parse(format!("c{number}")).expect("a name")
    }

    #[tokio::test(start_paused = true)]
    async fn a_line_stays_for_its_owner_alone_and_a_moment() {
        let mut shelf = Shelf::<&str, &str>::default();
        let (oslo, paris, now) = (cluster(1), cluster(2), Instant::now());
        for (owner, line) in [("ada", "first"), ("eve", "second"), ("ada", "third")] {
            assert_eq!(shelf.put(oslo.clone(), owner, line, now), None);
        }
        assert_eq!(shelf.take(&paris, &"ada", now), None, "another cluster's");
        assert_eq!(shelf.take(&oslo, &"bob", now), None);
        assert_eq!(
            shelf.take(&oslo, &"ada", now),
            Some("third"),
            "the one that was asked last"
        );
        assert_eq!(shelf.put(oslo.clone(), "ada", "third", now + DOOR_KEPT_FOR / 2), None);
        let later = now + DOOR_KEPT_FOR;
        assert_eq!(shelf.take(&oslo, &"eve", later), None, "it may be gone at any time");
        assert_eq!(shelf.old(later), ["first", "second"]);
        assert_eq!(shelf.take(&oslo, &"ada", later), Some("third"));
        assert_eq!(shelf.count, 0);
        shelf.is_closed = true;
        assert_eq!(shelf.put(oslo, "ada", "third", later), Some("third"));
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_stay_than_a_cluster_and_the_hub_have_room_for() {
        let (mut shelf, now) = (Shelf::<(), usize>::default(), Instant::now());
        let full = DOOR_KEPT_MAX / DOOR_KEPT_OF_CLUSTER_MAX;
        for number in 0..full {
            for line in 0..DOOR_KEPT_OF_CLUSTER_MAX {
                assert_eq!(shelf.put(cluster(number), (), line, now), None);
            }
            let more = shelf.put(cluster(number), (), DOOR_KEPT_OF_CLUSTER_MAX, now);
            assert_eq!(more, Some(DOOR_KEPT_OF_CLUSTER_MAX), "of one cluster");
        }
        assert_eq!(shelf.put(cluster(full), (), 7, now), Some(7), "of all");
        assert_eq!(shelf.old(now + DOOR_KEPT_FOR).len(), DOOR_KEPT_MAX);
        assert!(shelf.lines.is_empty() && shelf.count == 0);
    }
}
