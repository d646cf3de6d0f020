//! Streams to clusters whose answer ended, which stay a moment for the next request of the same person.
//!
//! Who may ask what is judged at each request anew; a stream only says for whom its agent asks.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;
use render::ClusterName;
use render::access::Person;
use tunnel::Opener;

use crate::exchange::{Room, Shelf};
use crate::limits::{DOOR_KEPT_FOR, DOOR_KEPT_LOOK, DOOR_KEPT_MAX, DOOR_KEPT_OF_CLUSTER_MAX};

/// The streams that are kept.
pub(super) type Kept = Shelf<ClusterName, Owner, Full<Bytes>>;

pub(super) const ROOM: Room = Room {
    in_all: DOOR_KEPT_MAX,
    at_place: DOOR_KEPT_OF_CLUSTER_MAX,
    stay: DOOR_KEPT_FOR,
    look: DOOR_KEPT_LOOK,
};

/// Whose stream it is.
#[derive(Clone)]
pub(super) struct Owner {
    /// A newer tunnel of the same cluster is another one's.
    pub(super) opener: Opener,
    pub(super) person: Arc<Person>,
}

impl PartialEq for Owner {
    fn eq(&self, other: &Self) -> bool {
        self.opener.is_of_same_tunnel(&other.opener)
            && (Arc::ptr_eq(&self.person, &other.person) || self.person == other.person)
    }
}
