//! Places that there are for all, of which each one has a share, so that nobody has all of them.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::shares::{Part, Shares};

/// Places, and who has how many of them.
#[derive(Debug)]
pub(super) struct Places<K: Ord> {
    of_all: Arc<Semaphore>,
    /// For those alone who may have them.
    reserved: Arc<Semaphore>,
    shares: Arc<Shares<K>>,
}

/// A place, for as long as it is held.
#[derive(Debug)]
pub(super) struct Place<K: Ord> {
    _one: OwnedSemaphorePermit,
    _share: Part<K>,
}

/// Why there is no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Full {
    /// Whoever asks has a share already.
    Share,
    /// All together have all.
    All,
}

impl<K: Ord + Clone> Places<K> {
    /// So many places.
    pub(super) fn new(places: usize) -> Self {
        Self::with_reserved(places, 0)
    }

    /// So many places, and so many more that only some may have.
    pub(super) fn with_reserved(places: usize, reserved: usize) -> Self {
        Self {
            of_all: Arc::new(Semaphore::new(places)),
            reserved: Arc::new(Semaphore::new(reserved)),
            shares: Arc::default(),
        }
    }

    /// A place for somebody who may have `most`.
    pub(super) fn place(&self, of: K, most: usize) -> Result<Place<K>, Full> {
        let share = self.shares.part(of, most).ok_or(Full::Share)?;
        Ok(Place {
            _one: one(&self.of_all)?,
            _share: share,
        })
    }

    /// The same, for one of those who may have the reserved ones, too.
    pub(super) fn place_or_reserved(&self, of: K, most: usize) -> Result<Place<K>, Full> {
        let share = self.shares.part(of, most).ok_or(Full::Share)?;
        Ok(Place {
            _one: one(&self.of_all).or_else(|_| one(&self.reserved))?,
            _share: share,
        })
    }
}

fn one(places: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, Full> {
    Arc::clone(places).try_acquire_owned().map_err(|_| Full::All)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_has_a_share_all_together_have_an_end_and_what_is_given_back_is_there_again() {
        let places = Places::new(3);
        let mut held: Vec<_> = (0..2).map(|_| places.place("ada", 2)).collect();
        assert!(held.iter().all(Result::is_ok));
        assert_eq!(places.place("ada", 2).map(drop), Err(Full::Share));
        held.push(places.place("bob", 2));
        assert_eq!(places.place("bob", 2).map(drop), Err(Full::All));
        held.swap_remove(0).map(drop).expect("it was one");
        assert!(
            places.place("bob", 2).is_ok(),
            "who found no place used none of the share"
        );
        assert!(places.place("ada", 2).is_ok());
    }

    #[test]
    fn reserved_places_are_for_those_who_may_have_them_and_count_in_their_share() {
        let places = Places::with_reserved(1, 2);
        let first = places.place_or_reserved("ada", 2).expect("there is one for all");
        assert_eq!(places.place("bob", 2).map(drop), Err(Full::All));
        let _second = places.place_or_reserved("ada", 2).expect("there is a reserved one");
        assert_eq!(places.place_or_reserved("ada", 2).map(drop), Err(Full::Share));
        drop(first);
        assert!(places.place("bob", 2).is_ok());
    }
}
