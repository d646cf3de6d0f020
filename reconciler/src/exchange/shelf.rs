//! Lines whose answer ended, which wait a moment for the next request of the same owner: a client asks several things in a row,
//! and a line costs more than a request on it.
//!
//! Nobody reads a line that waits. One that its other side ended is found out by whoever asks on it, or ends with the others
//! that waited too long.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::{Asked, Home, Line};

/// Lines that wait, by place and owner; clones share them. With the last of these, they end.
pub(crate) struct Shelf<P: Ord, O, B: Asked>(Arc<Lines<P, O, B>>);

struct Lines<P: Ord, O, B: Asked>(Mutex<Waiting<P, O, Line<B>>>);

/// How many may wait, and how long.
#[derive(Clone, Copy)]
pub(crate) struct Room {
    pub(crate) in_all: usize,
    pub(crate) at_place: usize,
    pub(crate) stay: Duration,
    /// How often it is looked for those that stayed so long.
    pub(crate) look: Duration,
}

struct Waiting<P, O, L> {
    room: Room,
    /// The one that was asked last behind the others.
    lines: BTreeMap<P, Vec<Stay<O, L>>>,
    count: usize,
    is_closed: bool,
}

struct Stay<O, L> {
    owner: O,
    since: Instant,
    line: L,
}

impl<P: Ord, O, B: Asked> Clone for Shelf<P, O, B> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<P, O, B> Shelf<P, O, B>
where
    P: Ord + Clone + Send + 'static,
    O: PartialEq + Send + 'static,
    B: Asked,
{
    pub(crate) fn new(room: Room) -> Self {
        Self(Arc::new(Lines(Mutex::new(Waiting::new(room)))))
    }

    /// A line of this owner to this place, if one waits.
    pub(crate) fn take(&self, place: &P, owner: &O) -> Option<Line<B>> {
        self.0.lock().take(place, owner, Instant::now())
    }

    /// Where a line of this owner goes when its answer ended.
    pub(crate) fn home(&self, place: P, owner: O) -> Home<B> {
        let shelf = self.clone();
        Box::new(move |line| {
            let refused = shelf.0.lock().put(place, owner, line, Instant::now());
            refused.into_iter().for_each(Line::end);
        })
    }

    /// Ends what nobody asked again, for as long as somebody has this shelf.
    pub(crate) fn let_go(&self) -> impl Future<Output = ()> + Send + use<P, O, B> {
        let look = self.0.lock().room.look;
        let shelf = Arc::downgrade(&self.0);
        async move {
            loop {
                sleep(look).await;
                let Some(shelf) = shelf.upgrade() else { return };
                let old = shelf.lock().old(Instant::now());
                old.into_iter().for_each(Line::end);
            }
        }
    }

    /// Ends all of them, and keeps no more.
    #[cfg(feature = "hub")]
    pub(crate) fn close(&self) {
        let all = {
            let mut waiting = self.0.lock();
            waiting.is_closed = true;
            waiting.all()
        };
        all.into_iter().for_each(Line::end);
    }
}

impl<P: Ord, O, B: Asked> Lines<P, O, B> {
    fn lock(&self) -> MutexGuard<'_, Waiting<P, O, Line<B>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<P: Ord, O, B: Asked> Drop for Lines<P, O, B> {
    fn drop(&mut self) {
        let all = self.lock().all();
        all.into_iter().for_each(Line::end);
    }
}

impl<P: Ord, O, L> Waiting<P, O, L> {
    fn new(room: Room) -> Self {
        Self {
            room,
            lines: BTreeMap::new(),
            count: 0,
            is_closed: false,
        }
    }

    fn old(&mut self, now: Instant) -> Vec<L> {
        let stay = self.room.stay;
        self.out(|waiting| waiting.since + stay <= now)
    }

    fn all(&mut self) -> Vec<L> {
        self.out(|_| true)
    }

    fn out(&mut self, is_out: impl Fn(&Stay<O, L>) -> bool) -> Vec<L> {
        let mut out = Vec::new();
        for lines in self.lines.values_mut() {
            out.extend(lines.extract_if(.., |waiting| is_out(waiting)).map(|stay| stay.line));
        }
        self.lines.retain(|_, lines| !lines.is_empty());
        self.count -= out.len();
        out
    }
}

impl<P: Ord, O: PartialEq, L> Waiting<P, O, L> {
    fn take(&mut self, place: &P, owner: &O, now: Instant) -> Option<L> {
        let lines = self.lines.get_mut(place)?;
        let stay = self.room.stay;
        let at = lines
            .iter()
            .rposition(|waiting| now < waiting.since + stay && waiting.owner == *owner)?;
        self.count -= 1;
        Some(lines.remove(at).line)
    }

    /// Gives back what there is no room for.
    fn put(&mut self, place: P, owner: O, line: L, now: Instant) -> Option<L> {
        if self.is_closed || self.count == self.room.in_all {
            return Some(line);
        }
        let lines = self.lines.entry(place).or_default();
        if lines.len() == self.room.at_place {
            return Some(line);
        }
        self.count += 1;
        let since = now;
        lines.push(Stay { owner, since, line });
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAY: Duration = Duration::from_secs(2);

    fn waiting<P: Ord + Clone, O: PartialEq, L>(in_all: usize, at_place: usize) -> Waiting<P, O, L> {
        Waiting::new(Room {
            in_all,
            at_place,
            stay: STAY,
            look: STAY / 2,
        })
    }

    #[tokio::test(start_paused = true)]
    async fn a_line_stays_for_its_owner_alone_and_a_moment() {
        let (mut shelf, now) = (waiting::<&str, &str, &str>(8, 8), Instant::now());
        for (owner, line) in [("ada", "first"), ("eve", "second"), ("ada", "third")] {
            assert_eq!(shelf.put("oslo", owner, line, now), None);
        }
        assert_eq!(shelf.take(&"paris", &"ada", now), None, "another place's");
        assert_eq!(shelf.take(&"oslo", &"bob", now), None);
        let last = shelf.take(&"oslo", &"ada", now);
        assert_eq!(last, Some("third"), "the one that was asked last");
        assert_eq!(shelf.put("oslo", "ada", "third", now + STAY / 2), None);
        let later = now + STAY;
        assert_eq!(shelf.take(&"oslo", &"eve", later), None, "it may be gone at any time");
        assert_eq!(shelf.old(later), ["first", "second"]);
        assert_eq!(shelf.take(&"oslo", &"ada", later), Some("third"));
        assert_eq!(shelf.count, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_stay_than_a_place_and_all_have_room_for() {
        let (mut shelf, now) = (waiting::<usize, (), usize>(6, 2), Instant::now());
        for place in 0..3 {
            for line in 0..2 {
                assert_eq!(shelf.put(place, (), line, now), None);
            }
            assert_eq!(shelf.put(place, (), 2, now), Some(2), "of one place");
        }
        assert_eq!(shelf.put(3, (), 7, now), Some(7), "of all");
        assert_eq!(shelf.old(now + STAY).len(), 6);
        assert!(shelf.lines.is_empty() && shelf.count == 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_closed_shelf_keeps_no_more() {
        let (mut shelf, now) = (waiting::<(), (), &str>(8, 8), Instant::now());
        assert_eq!(shelf.put((), (), "first", now), None);
        shelf.is_closed = true;
        assert_eq!(shelf.all(), ["first"]);
        assert_eq!(shelf.put((), (), "second", now), Some("second"));
        assert_eq!(shelf.count, 0);
    }
}
