//! What the lines of an agent know of each other: who has which hub, and which addresses hubs told of.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::limits::{HUB_LINES_MAX, HUB_TUNNELS_WANTED};

/// The number of a line, never given again.
pub(super) type Number = usize;

#[derive(Debug, Default)]
pub(super) struct Board {
    lines: Mutex<BTreeMap<Number, Entry>>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Entry {
    url: String,
    /// Whether a person gave it; those stay for ever.
    is_given: bool,
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
                add(&mut lines, url, true);
            }
        }
        board
    }

    fn lines(&self) -> MutexGuard<'_, BTreeMap<Number, Entry>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An address that has no line yet, and its line's number.
    pub(super) fn next_line(&self) -> Option<(Number, String)> {
        let mut lines = self.lines();
        let (number, entry) = lines.iter_mut().find(|(_, entry)| !entry.is_started)?;
        entry.is_started = true;
        Some((*number, entry.url.clone()))
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

    /// A line has a tunnel, and its hub told where else hubs are. Their addresses get lines while tunnels are wanted.
    pub(super) fn up(&self, own: Number, hub: &str, endpoints: &[String]) {
        let mut lines = self.lines();
        if let Some(entry) = lines.get_mut(&own) {
            entry.hub = Some(hub.to_owned());
        }
        for url in endpoints {
            let is_wanted = lines.len() < HUB_TUNNELS_WANTED.max(lines.values().filter(|entry| entry.is_given).count());
            if is_wanted && url.starts_with("wss://") {
                add(&mut lines, url, false);
            }
        }
        self.changed.notify_one();
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
        let is_over = failures >= LEARNED_FAILURES_MAX && lines.get(&own).is_some_and(|entry| !entry.is_given);
        if is_over {
            lines.remove(&own);
        }
        is_over
    }
}

/// So many failures in a row, some minutes of them, end a line to an address that a hub told of.
const LEARNED_FAILURES_MAX: u32 = 10;

fn add(lines: &mut BTreeMap<Number, Entry>, url: &str, is_given: bool) {
    if lines.len() >= HUB_LINES_MAX || lines.values().any(|entry| entry.url == url) {
        return;
    }
    let number = lines.last_key_value().map_or(0, |(last, _)| last + 1);
    let entry = Entry {
        url: url.to_owned(),
        is_given,
        ..Entry::default()
    };
    lines.insert(number, entry);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn board(given: &[&str]) -> Board {
        Board::new(&given.iter().map(|&url| url.to_owned()).collect::<Vec<_>>())
    }

    /// The addresses that get a line now.
    fn started(board: &Board) -> Vec<String> {
        std::iter::from_fn(|| board.next_line()).map(|(_, url)| url).collect()
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
    fn a_person_who_gives_several_hubs_gets_no_others() {
        let board = board(&["wss://a", "wss://b"]);
        board.up(0, "hub-a", &urls(&["wss://c"]));
        assert_eq!(started(&board), ["wss://a", "wss://b"]);
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
