//! What a session and the tasks of its releases say to each other.

use std::sync::Arc;

use super::manner::Manner;
use super::objects::Followed;
use super::wanted::{Place, Wanted};
use crate::apply::health::Verdict;
use crate::wire::{Corrections, ObjectDrift, ObjectState};

/// What a release's task is to do.
#[derive(Clone)]
pub(in crate::apply) enum Order {
    /// Keep it.
    Keep(Arc<Wanted>, Manner),
    /// Take it away: its HelmChart left the delivery, and everything that has to prove it does.
    Remove(Place),
}

/// How a release fares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::apply) struct Told {
    /// The content that this is about; empty while it is taken away.
    pub content: String,
    /// Where it stands.
    pub state: ObjectState,
    /// How its objects are.
    pub verdict: Verdict,
    /// What there is to say.
    pub message: String,
    /// Whether there is none any more.
    pub gone: bool,
    /// Objects that are not as its manifest says, and are left so: the first few.
    pub drift: Vec<ObjectDrift>,
    /// How many more there are.
    pub more: usize,
}

/// What a task says.
pub(in crate::apply) enum News {
    /// How its release fares.
    Told(Box<Told>),
    /// Which objects its release has; they are compared once they are watched.
    Follow(Vec<Followed>),
    /// So much was put right.
    Corrected(Corrections),
}
