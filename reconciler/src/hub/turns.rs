//! Turns of a listener that one address may have at a time, of those that there are for all.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::Semaphore;

use super::doorstep::network;

/// Address → its share, for as long as something is taken of it. Of IPv6 one /48 is one address.
#[derive(Debug)]
pub(super) struct Turns {
    each: usize,
    places: Mutex<BTreeMap<IpAddr, Weak<Semaphore>>>,
}

impl Turns {
    /// So much for each address.
    pub(super) fn of_each(each: usize) -> Self {
        Self {
            each,
            places: Mutex::default(),
        }
    }

    /// The share of an address.
    pub(super) fn of(&self, address: IpAddr) -> Arc<Semaphore> {
        let place = network(address);
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(share) = places.get(&place).and_then(Weak::upgrade) {
            return share;
        }
        places.retain(|_, share| share.strong_count() > 0);
        let share = Arc::new(Semaphore::new(self.each));
        places.insert(place, Arc::downgrade(&share));
        share
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_address_has_its_share_and_one_that_has_nothing_is_forgotten() {
        let turns = Turns::of_each(2);
        let take = |address: &str| {
            let address = address.parse().expect("an address");
            turns.of(address).try_acquire_owned().ok()
        };
        let taken: Vec<_> = ["192.0.2.1", "192.0.2.1", "2001:db8::1", "2001:db8::2"]
            .map(take)
            .into();
        assert!(taken.iter().all(Option::is_some));
        assert!(take("192.0.2.1").is_none());
        assert!(take("2001:db8::3").is_none(), "a whole network is one address");
        assert!(take("192.0.2.2").is_some(), "others have their own");
        drop(taken);
        assert!(take("192.0.2.1").is_some());
        assert_eq!(turns.places.lock().expect("nobody panicked").len(), 1);
    }
}
