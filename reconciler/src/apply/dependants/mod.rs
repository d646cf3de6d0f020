//! What goes or stays behind with objects that are to leave the cluster.
//!
//! In: a [`DependantsQuestion`]. Out: [`Dependants`], by GET and LIST alone, within limits of objects and time that are
//! said where they are met. Reading order: `gather` (requests) → `judge` (what they mean, a plain function). It runs
//! beside the applier, and knows and changes nothing of it. Only objects of the fleet are looked at: whoever asks learns
//! nothing about others, but that they would go too.

mod gather;
mod judge;
mod notes;

use kube::Client;
use tokio::time::Instant;

use self::gather::Gather;
use crate::limits::{DEPENDANTS_ASKED_MAX, DEPENDANTS_TIMEOUT};
use crate::wire::{Dependants, DependantsQuestion};

/// Answers a question, as far as it gets in time.
pub(crate) async fn look(client: Client, question: DependantsQuestion) -> Dependants {
    let mut asked = question.objects;
    let more = asked.len().saturating_sub(DEPENDANTS_ASKED_MAX);
    asked.truncate(DEPENDANTS_ASKED_MAX);
    let mut gather = Gather::new(client, Instant::now() + DEPENDANTS_TIMEOUT);
    if more > 0 {
        gather.note(format!(
            "{more} objects more than one question may have were not looked at"
        ));
    }
    let facts = gather.run(&asked).await;
    let objects = judge::judge(&facts);
    Dependants {
        objects,
        notes: gather.into_notes(),
    }
}
