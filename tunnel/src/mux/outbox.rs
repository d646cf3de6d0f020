//! The order in which frames leave: control first, then streams that were idle, then busy ones in turn.
//!
//! Queues of stream ids may hold ids of streams that are gone; whoever pops skips them, and when they are too many they
//! are taken out. A stream stands in each queue at most once.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::limits::{IDLE_FIRST_IN_A_ROW, PENDING_PONGS_MAX, QUEUED_IDS_MAX};

#[derive(Debug, Default)]
pub(super) struct Outbox {
    /// Whole frames, in the order they were made: an RST never overtakes its OPEN.
    control: VecDeque<Bytes>,
    pongs: VecDeque<[u8; 8]>,
    grants: VecDeque<u32>,
    idle: VecDeque<u32>,
    busy: VecDeque<u32>,
    idle_in_a_row: u32,
}

impl Outbox {
    pub(super) fn control(&mut self, frame: Bytes) {
        self.control.push_back(frame);
    }

    pub(super) fn pong(&mut self, echo: [u8; 8]) {
        if self.pongs.len() == PENDING_PONGS_MAX {
            self.pongs.pop_front();
        }
        self.pongs.push_back(echo);
    }

    pub(super) fn grant(&mut self, id: u32) {
        self.grants.push_back(id);
    }

    /// A stream that had nothing to send gets its first frame before the busy ones.
    pub(super) fn was_idle(&mut self, id: u32) {
        self.idle.push_back(id);
    }

    pub(super) fn stays_busy(&mut self, id: u32) {
        self.busy.push_back(id);
    }

    pub(super) fn control_len(&self) -> usize {
        self.control.len()
    }

    pub(super) fn next_control(&mut self) -> Option<Bytes> {
        self.control.pop_front()
    }

    pub(super) fn next_pong(&mut self) -> Option<[u8; 8]> {
        self.pongs.pop_front()
    }

    pub(super) fn next_grant(&mut self) -> Option<u32> {
        self.grants.pop_front()
    }

    pub(super) fn next_stream(&mut self) -> Option<u32> {
        let idle_goes = self.idle_in_a_row < IDLE_FIRST_IN_A_ROW || self.busy.is_empty();
        if idle_goes && let Some(id) = self.idle.pop_front() {
            self.idle_in_a_row += 1;
            return Some(id);
        }
        self.idle_in_a_row = 0;
        self.busy.pop_front()
    }

    pub(super) fn is_empty(&self) -> bool {
        let ids = [&self.grants, &self.idle, &self.busy];
        self.control.is_empty() && self.pongs.is_empty() && ids.iter().all(|queue| queue.is_empty())
    }

    /// A stream is gone. Takes out ids for which `is_open` says no, once there are too many.
    pub(super) fn forget(&mut self, is_open: impl Fn(u32) -> bool) {
        for ids in [&mut self.grants, &mut self.idle, &mut self.busy] {
            if ids.len() > QUEUED_IDS_MAX {
                ids.retain(|id| is_open(*id));
            }
        }
    }

    /// Ids in all queues.
    #[cfg(test)]
    pub(super) fn ids(&self) -> usize {
        self.grants.len() + self.idle.len() + self.busy.len()
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}
