//! The end of a process at its n-th write: nothing of it happens any more after that, or the write still
//! happens and nobody hears of it.

use std::sync::{Mutex, PoisonError};

use tokio::sync::watch;

/// On which side of the write the process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// The write is lost.
    Before,
    /// Its answer is.
    After,
}

/// What becomes of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Happens,
    /// It happens, and the process ends with it.
    Last,
    /// There is no process any more.
    Lost,
}

/// The switch of one process.
#[derive(Debug)]
pub(super) struct Switch {
    /// Writes so far.
    count: Mutex<u64>,
    /// The write that is the last.
    at: Option<(u64, Side)>,
    dead: watch::Sender<bool>,
}

impl Switch {
    pub(super) fn at(at: Option<(u64, Side)>) -> Self {
        Self {
            count: Mutex::default(),
            at,
            dead: watch::Sender::new(false),
        }
    }

    /// Counts a write, and decides about it.
    pub(super) fn decide(&self) -> Fate {
        let mut count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_dead() {
            return Fate::Lost;
        }
        *count += 1;
        match self.at {
            Some((at, side)) if at == *count => {
                self.kill();
                if side == Side::Before { Fate::Lost } else { Fate::Last }
            }
            _ => Fate::Happens,
        }
    }

    /// Ends the process now.
    pub(super) fn kill(&self) {
        self.dead.send_replace(true);
    }

    pub(super) fn is_dead(&self) -> bool {
        *self.dead.borrow()
    }

    /// How many writes there were.
    pub(super) fn count(&self) -> u64 {
        *self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the end.
    pub(super) async fn died(&self) {
        let mut dead = self.dead.subscribe();
        // The sender lives as long as this switch.
        let _ended = dead.wait_for(|dead| *dead).await;
    }
}
