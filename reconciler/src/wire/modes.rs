//! Which of two hubs' words about a cluster's mode counts: one that comes after the word that the cluster goes by.
//!
//! A mode is no release, so that sequences do not order it. It is a source commit's word, and a hub says of its own that it
//! comes after the one that the cluster says it goes by; hubs have the history to know, and agents do not. Who lags behind
//! cannot say it, and whoever says it of another word than the one that is held was overtaken.

use super::{Envelope, Held};

/// Whether a cluster that holds this takes an envelope's mode. The rest of the envelope is judged elsewhere.
pub(crate) fn takes_mode(held: Option<&Held>, envelope: &Envelope) -> bool {
    let Some(held) = held else { return true };
    // A lineage that was granted begins anew, and a hub that knows no order is taken as it always was.
    if held.lineage != envelope.lineage || held.mode_source.is_none() {
        return true;
    }
    let Some(said) = &envelope.mode_source else { return true };
    held.mode_source.as_ref() == Some(said) || held.mode_source == envelope.mode_instead
}

/// What a cluster holds that takes an envelope.
pub(super) fn held_after(held: Option<&Held>, envelope: &Envelope) -> Held {
    let taken = envelope.held();
    let Some(held) = held else { return taken };
    // A word without an order that says nothing else leaves the order as it is.
    let says_the_same =
        envelope.mode_source.is_none() && held.mode == envelope.mode && held.lineage == envelope.lineage;
    if takes_mode(Some(held), envelope) && !says_the_same {
        return taken;
    }
    Held {
        mode: held.mode,
        mode_source: held.mode_source.clone(),
        ..taken
    }
}

#[cfg(test)]
mod tests;
