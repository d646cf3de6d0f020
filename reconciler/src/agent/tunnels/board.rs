//! What the lines of an agent know of each other: who has which hub, and which addresses hubs told of.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use http::Uri;
use tokio::sync::{Notify, watch};
use tunnel::PublicKey;

use crate::agent::gate::is_guarded;
use crate::limits::{HUB_LINES_MAX, HUB_TUNNELS_WANTED, LEARNED_FAILURES_MAX};

/// The number of a line, never given again.
pub(super) type Number = usize;

#[derive(Debug, Default)]
pub(super) struct Board {
    lines: Mutex<BTreeMap<Number, Entry>>,
    changed: Notify,
    /// Keys of hubs that a hub at an address of a person's says are denied: line → what its hub said last.
    denied: watch::Sender<BTreeMap<Number, BTreeSet<PublicKey>>>,
}

/// An address of a hub.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) url: String,
    /// Whether a person gave it; those stay for ever, and they alone are told a token.
    pub(super) is_given: bool,
}

#[derive(Debug, Default)]
struct Entry {
    address: Address,
    is_started: bool,
    /// The hub that its tunnel leads to, while there is one; empty for a hub that does not say.
    hub: Option<String>,
}

impl Board {
    /// With the addresses that a person gave.
    pub(super) fn new(given: &[String]) -> Self {
        let board = Self::default();
        {
            let mut lines = board.lines();
            for url in given {
                add(&mut lines, url, 1, true);
            }
        }
        board
    }

    fn lines(&self) -> MutexGuard<'_, BTreeMap<Number, Entry>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An address that has no line yet, and its line's number.
    pub(super) fn next_line(&self) -> Option<(Number, Address)> {
        let mut lines = self.lines();
        let (number, entry) = lines.iter_mut().find(|(_, entry)| !entry.is_started)?;
        entry.is_started = true;
        Some((*number, entry.address.clone()))
    }

    /// Waits until there may be one.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Ids of hubs that other lines have a tunnel to.
    pub(super) fn held_by_others(&self, own: Number) -> Vec<String> {
        let lines = self.lines();
        let others = lines.iter().filter(|(number, _)| **number != own);
        let held = others.filter_map(|(_, entry)| entry.hub.clone());
        held.filter(|hub| !hub.is_empty()).collect()
    }

    /// A line has a tunnel, and its hub told where hubs are. Their addresses get lines while tunnels are wanted; one that
    /// is named twice leads to two hubs, and gets two.
    pub(super) fn up(&self, own: Number, hub: &str, endpoints: &[String]) {
        let mut lines = self.lines();
        if let Some(entry) = lines.get_mut(&own) {
            entry.hub = Some(hub.to_owned());
        }
        for url in endpoints {
            let given: Vec<_> = lines.values().filter(|entry| entry.address.is_given).collect();
            let is_wanted = lines.len() < HUB_TUNNELS_WANTED.max(given.len());
            if is_wanted && is_a_hubs(url, given.iter().map(|entry| entry.address.url.as_str())) {
                let hubs = endpoints.iter().filter(|other| *other == url).count();
                add(&mut lines, url, hubs, false);
            }
        }
        self.changed.notify_one();
    }

    /// The hub of a line says which hubs are denied there. That counts from a hub to which a person led this agent, and
    /// against those to which a hub did: so a hub that is shut out shuts out none in its turn.
    pub(super) fn denies(&self, own: Number, hubs: BTreeSet<PublicKey>) {
        let is_given = self.lines().get(&own).is_some_and(|entry| entry.address.is_given);
        if is_given {
            self.denied
                .send_if_modified(|denied| denied.insert(own, hubs.clone()) != Some(hubs));
        }
    }

    /// Whether a hub with this key is not to be dialled at an address.
    pub(super) fn is_denied(&self, address: &Address, key: &PublicKey) -> bool {
        !address.is_given && self.denied.borrow().values().any(|hubs| hubs.contains(key))
    }

    /// Waits until it is.
    pub(super) async fn denied(&self, address: &Address, key: &PublicKey) {
        let mut denied = self.denied.subscribe();
        let is_denied = |denied: &BTreeMap<_, BTreeSet<_>>| denied.values().any(|hubs| hubs.contains(key));
        if address.is_given || denied.wait_for(is_denied).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// A line has no tunnel any more.
    pub(super) fn down(&self, own: Number) {
        if let Some(entry) = self.lines().get_mut(&own) {
            entry.hub = None;
        }
    }

    /// Whether a line has failed often enough to be given up: hubs tell of addresses again that are worth it.
    pub(super) fn gives_up(&self, own: Number, failures: u32) -> bool {
        let mut lines = self.lines();
        let is_over = failures >= LEARNED_FAILURES_MAX && lines.get(&own).is_some_and(|entry| !entry.address.is_given);
        if is_over {
            lines.remove(&own);
        }
        is_over
    }
}

/// Whether what a hub told of may be where a hub is: the path is a hub's, and the address none that a machine keeps to itself,
/// but where a person gave a hub at that same address. Who says so may be no hub: a server that ends TLS can write it.
fn is_a_hubs<'a>(url: &str, mut given: impl Iterator<Item = &'a str>) -> bool {
    let Ok(told) = url.parse::<Uri>() else { return false };
    let is_plain = told.scheme_str() == Some("wss")
        && matches!(told.path(), "" | "/" | "/tunnel")
        && told.query().is_none()
        && told.authority().is_some_and(|place| !place.as_str().contains('@'));
    let Some(host) = told.host() else { return false };
    match address_of(host) {
        Some(address) if is_guarded(address) => {
            let is_same = |given: &str| given.parse::<Uri>().is_ok_and(|given| given.host() == Some(host));
            is_plain && given.any(is_same)
        }
        // What a name leads to is looked at where it is dialled.
        Some(_) | None => is_plain,
    }
}

fn address_of(host: &str) -> Option<IpAddr> {
    host.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

impl Address {
    /// Which addresses its host must not lead to: none that a machine keeps to itself, unless its number is its name.
    pub(super) fn avoids(&self) -> Option<fn(IpAddr) -> bool> {
        let url: Option<Uri> = self.url.parse().ok();
        let is_number = url.is_some_and(|url| url.host().and_then(address_of).is_some());
        (!self.is_given && !is_number).then_some(is_guarded)
    }
}

/// Adds a line to an address that leads to so many hubs, if that is one more than it has.
fn add(lines: &mut BTreeMap<Number, Entry>, url: &str, hubs: usize, is_given: bool) {
    let there = lines.values().filter(|entry| entry.address.url == url).count();
    if lines.len() >= HUB_LINES_MAX || there >= hubs {
        return;
    }
    let number = lines.last_key_value().map_or(0, |(last, _)| last + 1);
    let entry = Entry {
        address: Address {
            url: url.to_owned(),
            is_given,
        },
        ..Entry::default()
    };
    lines.insert(number, entry);
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn board(given: &[&str]) -> Board {
        Board::new(&given.iter().map(|&url| url.to_owned()).collect::<Vec<_>>())
    }

    /// The addresses that get a line now.
    fn started(board: &Board) -> Vec<String> {
        std::iter::from_fn(|| board.next_line())
            .map(|(_, address)| address.url)
            .collect()
    }

    fn urls(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|&text| text.to_owned()).collect()
    }

    #[test]
    fn each_address_that_was_given_gets_one_line() {
        let board = board(&["wss://a", "wss://b", "wss://a", "wss://c"]);
        assert_eq!(started(&board), ["wss://a", "wss://b", "wss://c"]);
        assert!(started(&board).is_empty());
    }

    #[test]
    fn what_hubs_tell_of_fills_up_to_the_wanted_number_of_tunnels() {
        let board = board(&["wss://a"]);
        assert_eq!(started(&board), ["wss://a"]);
        board.up(0, "hub-a", &urls(&["wss://a", "http://x", "wss://b", "wss://c"]));
        assert_eq!(started(&board), ["wss://b"], "two tunnels are wanted");
        assert!(!board.gives_up(1, LEARNED_FAILURES_MAX - 1));
        assert!(board.gives_up(1, LEARNED_FAILURES_MAX), "it was nothing");
        assert!(!board.gives_up(0, 1_000), "what a person gave stays");
        board.up(0, "hub-a", &urls(&["wss://c"]));
        assert_eq!(started(&board), ["wss://c"]);
    }

    #[test]
    fn what_hubs_tell_of_leads_to_no_address_that_a_machine_keeps_to_itself() {
        for told in [
            "wss://127.0.0.1:2379",
            "wss://[::1]:2379",
            "wss://169.254.169.254",
            "wss://[::ffff:10.0.0.1]",
            "wss://b.example/any/path",
            "wss://b.example/tunnel?a=b",
            "wss://ann:secret@b.example",
            "ws://b.example",
            "wss://",
        ] {
            let board = board(&["wss://a.example"]);
            board.up(0, "hub-a", &urls(&[told]));
            assert_eq!(started(&board), ["wss://a.example"], "{told}");
        }
        let board = board(&["wss://127.0.0.1:7443"]);
        board.up(
            0,
            "hub-a",
            &urls(&["wss://127.0.0.2:7443", "wss://127.0.0.1:7444/tunnel"]),
        );
        assert_eq!(
            started(&board),
            ["wss://127.0.0.1:7443", "wss://127.0.0.1:7444/tunnel"],
            "where a person has one hub there may be another"
        );
    }

    #[test]
    fn a_name_that_a_hub_told_of_is_looked_at_where_it_leads() {
        let address = |url: &str, is_given| Address {
            url: url.to_owned(),
            is_given,
        };
        let avoids = address("wss://b.example", false).avoids().expect("it looks");
        assert!(avoids(IpAddr::from([169, 254, 169, 254])) && !avoids(IpAddr::from([10, 0, 0, 1])));
        assert!(address("wss://b.example", true).avoids().is_none(), "a person knows");
        assert!(
            address("wss://127.0.0.1:7444", false).avoids().is_none(),
            "it was looked at"
        );
    }

    #[test]
    fn a_person_who_gives_several_hubs_gets_no_others() {
        let board = board(&["wss://a", "wss://b"]);
        board.up(0, "hub-a", &urls(&["wss://c"]));
        assert_eq!(started(&board), ["wss://a", "wss://b"]);
    }

    #[tokio::test]
    async fn what_a_persons_hub_denies_is_left_where_a_hub_led_there_and_nowhere_else() {
        let board = board(&["wss://a"]);
        assert_eq!(started(&board), ["wss://a"]);
        board.up(0, "hub-a", &urls(&["wss://b"]));
        assert_eq!(started(&board), ["wss://b"]);
        let [a, b] = [1, 2].map(|number| PublicKey::from_bytes([number; 32]));
        let address = |url: &str, is_given| Address {
            url: url.to_owned(),
            is_given,
        };
        let (given, led) = (address("wss://a", true), address("wss://b", false));
        // The hub that the first one led to says the same of that one, and is not heard.
        board.denies(1, BTreeSet::from([a, b]));
        assert!(!board.is_denied(&given, &a) && !board.is_denied(&led, &b));
        let mut left = std::pin::pin!(board.denied(&led, &b));
        let is_left = |over: Option<()>| over.is_some();
        assert!(!is_left(left.as_mut().now_or_never()));
        board.denies(0, BTreeSet::from([b]));
        assert!(is_left(left.now_or_never()), "a tunnel that stands is left");
        assert!(board.is_denied(&led, &b) && !board.is_denied(&led, &a));
        assert!(
            !board.is_denied(&address("wss://b", true), &b),
            "a person says otherwise"
        );
        board.denies(0, BTreeSet::new());
        assert!(!board.is_denied(&led, &b));
    }

    #[test]
    fn behind_one_address_two_hubs_are_two_tunnels() {
        let board = board(&["wss://both"]);
        assert_eq!(started(&board), ["wss://both"]);
        board.up(0, "hub-a", &urls(&["wss://both"]));
        assert!(started(&board).is_empty(), "there is one hub behind it");
        board.up(0, "hub-a", &urls(&["wss://both", "wss://both"]));
        assert_eq!(started(&board), ["wss://both"]);
        board.up(0, "hub-a", &urls(&["wss://both", "wss://both"]));
        assert!(started(&board).is_empty());
        assert_eq!(
            board.held_by_others(1),
            ["hub-a"],
            "the second one looks for another hub"
        );
        assert!(
            board.gives_up(1, LEARNED_FAILURES_MAX),
            "a server may lead to one hub alone"
        );
        assert!(!board.gives_up(0, LEARNED_FAILURES_MAX));
    }

    #[test]
    fn a_line_knows_which_hubs_the_others_have() {
        let board = board(&["wss://a", "wss://b"]);
        board.up(0, "hub-a", &[]);
        board.up(1, "", &[]);
        assert_eq!(board.held_by_others(1), ["hub-a"]);
        assert!(
            board.held_by_others(0).is_empty(),
            "a hub without an id is nobody's twin"
        );
        board.down(0);
        assert!(board.held_by_others(1).is_empty());
    }
}
