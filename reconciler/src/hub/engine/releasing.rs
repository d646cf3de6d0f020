//! What is due of `released`.

use std::collections::{BTreeMap, BTreeSet};

use render::published::{Departure, ReleaseRecord};
use render::release::{Observed, advance, reads_outcomes, release};
use render::{ClusterName, Digest, Fleet, Published};

use super::event::Write;
use super::state::{Settled, State};

/// The next commit of `released`, when the strategy advances somebody or there is none yet.
///
/// While no fleet is known, as before the first plan of a process, or only an older one than another hub has rendered,
/// nobody can say what is suspended, and nothing is due. Where an object may change hands, an error says which contents have to be known first.
pub(super) fn release_due(state: &mut State, now: i64) -> Result<Option<Write>, BTreeSet<Digest>> {
    let (Some(rendered), Some(fleet)) = (&state.rendered, &state.fleet) else {
        return Ok(None);
    };
    if state.overtaken {
        return Ok(None);
    }
    // Every report asks again, and nothing changes until a ref moves, the fleet does, or a Suspension ends.
    let settled = state.released.as_ref().map(|released| Settled {
        rendered: rendered.commit.clone(),
        released: released.commit.clone(),
        fleet: fleet.revision.clone(),
        until: fleet.suspensions().next_end(now),
    });
    if settled.is_some() && state.settled == settled && !state.contradicted {
        return Ok(None);
    }
    let nothing = Published::default();
    let released = state.released.as_ref();
    let present = released.map_or(&nothing, |released| released.published.as_ref());
    let suspensions = fleet.suspensions();
    let observed = if reads_outcomes(&rendered.published, present) {
        state.observed()
    } else {
        Observed {
            holdings: state.holdings.clone(),
            ..Observed::default()
        }
    };
    let due = release(&rendered.published, present, suspensions, &observed, now);
    if !due.unknown.is_empty() {
        return Err(due.unknown);
    }
    let mut next = advance(&rendered.published, present, due.advances.clone(), now);
    let forgets = rendered
        .published
        .record
        .as_ref()
        .is_some_and(|record| forgets(present.record.as_ref(), &record.departed, fleet));
    let is_over = due.advances.is_empty() && released.is_some() && !state.contradicted && !forgets;
    // What waits for clusters may be due with any report.
    let waits = !due.waiting.is_empty();
    let waiting = due.waiting.into_iter();
    let waiting = waiting.map(|waiting| ((waiting.unit.clone(), waiting.cluster.clone()), waiting));
    let waiting = waiting.collect();
    if is_over {
        state.settled = settled.filter(|_| !waits);
        if !waits {
            state.holdings.clear();
        }
        state.waiting = waiting;
        return Ok(None);
    }
    let Some(record) = rendered.published.record.clone() else {
        return Ok(None);
    };
    let parent = released.map(|released| released.commit.clone());
    let rendered = rendered.commit.clone();
    let sequence = present.next_sequence();
    next.record = Some(ReleaseRecord {
        sequence: Some(sequence),
        rendered: Some(rendered),
        ..record
    });
    // What could not be read is tried once more for the next one.
    state.holdings.retain(|_, holdings| holdings.is_some());
    state.waiting = waiting;
    Ok(Some(Write::Released { parent, next }))
}

/// Whether a cluster that was remembered since its file is gone is remembered no more, and did not come back.
pub(super) fn forgets(
    before: Option<&ReleaseRecord>,
    departed: &BTreeMap<ClusterName, Departure>,
    fleet: &Fleet,
) -> bool {
    let before = before.into_iter().flat_map(|before| before.departed.keys());
    let mut left = before.filter(|name| !fleet.clusters.contains_key(*name));
    left.any(|name| !departed.contains_key(name))
}
