//! Where agents reach hubs: this one as its command line says, and others as they tell.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use tokio::sync::watch;

/// What agents are told when they dial.
#[derive(Debug, Default)]
pub(in crate::hub) struct Endpoints {
    own: Vec<String>,
    /// Other hub → its addresses, as it told last. They stay while it is away: agents dial them until it is back.
    others: Mutex<BTreeMap<String, Vec<String>>>,
    all: watch::Sender<Vec<String>>,
}

impl Endpoints {
    /// Those of this hub alone.
    pub(in crate::hub) fn new(own: Vec<String>) -> Self {
        Self {
            all: watch::Sender::new(own.clone()),
            own,
            others: Mutex::default(),
        }
    }

    /// What other hubs are told.
    pub(super) fn own(&self) -> &[String] {
        &self.own
    }

    /// Another hub told where it is.
    pub(super) fn told(&self, peer: &str, theirs: Vec<String>) {
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        others.insert(peer.to_owned(), theirs);
        self.all.send_replace(all(&others, &self.own));
    }

    /// Another hub is shut out: no agent is led there.
    pub(super) fn shut_out(&self, peer: &str) {
        self.told(peer, Vec::new());
    }

    /// What agents are told: as it is at each of their dials.
    pub(in crate::hub) fn all(&self) -> watch::Receiver<Vec<String>> {
        self.all.subscribe()
    }
}

/// Others first: an agent has the address by which it came here, and takes the first that it lacks. What several hubs
/// share is there for each of them.
fn all(others: &BTreeMap<String, Vec<String>>, own: &[String]) -> Vec<String> {
    others.values().flatten().chain(own).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_are_told_of_other_hubs_first_and_of_a_shared_address_twice() {
        let urls = |texts: &[&str]| -> Vec<String> { texts.iter().map(|&text| text.to_owned()).collect() };
        let endpoints = Endpoints::new(urls(&["wss://a", "wss://both"]));
        let told = endpoints.all();
        assert_eq!(*told.borrow(), ["wss://a", "wss://both"]);
        endpoints.told("b", urls(&["wss://b", "wss://both"]));
        endpoints.told("c", Vec::new());
        let expected = ["wss://b", "wss://both", "wss://a", "wss://both"];
        assert_eq!(*told.borrow(), expected);
        endpoints.told("b", urls(&["wss://b-moved"]));
        assert_eq!(*told.borrow(), ["wss://b-moved", "wss://a", "wss://both"]);
        endpoints.shut_out("b");
        assert_eq!(*told.borrow(), ["wss://a", "wss://both"], "nobody is led there");
    }
}
