//! What is done about a release next: a pure function of what is wanted, what is there, and what was tried.
//!
//! A release that carries the content that is wanted is left alone, so unchanged charts and values make no
//! revision, also after a restart. What a crash left is recognised by its status, and mended without an
//! uninstall: an uninstall takes data along. The one exception is what `atomic` asks for, a first install
//! that failed.

use super::live::{Live, LiveRevision, Status};
use crate::limits::{HELM_REST, HELM_RETRY_FIRST};

/// What is wanted of a release, as far as the next step depends on it.
#[derive(Clone, Debug)]
pub(super) struct Goal<'a> {
    /// Digest of chart and values.
    pub content: &'a str,
    /// Whose it is.
    pub owner: &'a str,
    /// A failed first install is taken away again.
    pub atomic: bool,
    /// A failed upgrade is rolled back.
    pub upgrade_atomic: bool,
    /// A name whose history was kept may be used again.
    pub replace: bool,
    /// Tries before a content waits.
    pub attempts: u32,
    /// Seconds that one run of helm may take.
    pub timeout: u64,
}

/// What this process knows of the tries of one content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tries {
    /// How many failed.
    pub failed: u32,
    /// When the last one did, in seconds since 1970.
    pub last: u64,
    /// Whether its objects did not become healthy in time.
    pub unhealthy: bool,
}

/// What is done next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// It is as it should be.
    Nothing,
    /// Put it in.
    Install,
    /// Bring it to what is wanted.
    Upgrade,
    /// Go back to the revision of this number.
    Rollback(u64),
    /// Forget a revision that a crash left half made: the latest one.
    Forget,
    /// Take it away.
    Uninstall,
    /// Look again at that time, in seconds since 1970.
    Wait(u64, String),
    /// Nothing is done before something changes.
    GiveUp(String),
}

/// Decides about a release that should be there.
pub(super) fn decide(goal: &Goal<'_>, live: &Live, tries: &Tries, now: u64) -> Step {
    let Some(latest) = live.latest() else {
        return patient(goal, live, tries, now, Step::Install);
    };
    if let Some(other) = latest.owner.as_deref().filter(|owner| *owner != goal.owner) {
        return Step::GiveUp(format!("the release belongs to another HelmChart (marked {other})"));
    }
    let is_wanted = latest.content.as_deref() == Some(goal.content) && latest.owner.is_some();
    match latest.status {
        status if status.is_pending() => unlock(goal, live, latest, is_wanted, now),
        Status::Deployed if is_wanted && !tries.unhealthy => Step::Nothing,
        Status::Deployed | Status::Failed if is_wanted => failed(goal, live, latest, tries, now),
        Status::Uninstalled if !goal.replace => Step::GiveUp(
            "the release was uninstalled and its history kept; hint: replace: true takes its name again".to_owned(),
        ),
        Status::Uninstalled => patient(goal, live, tries, now, Step::Install),
        _ => patient(goal, live, tries, now, Step::Upgrade),
    }
}

/// Decides about a release whose HelmChart left the delivery. `Nothing`: there is none left.
pub(super) fn decide_removal(owner: &str, live: &Live) -> Step {
    match live.latest() {
        None => Step::Nothing,
        Some(latest) if latest.status == Status::Uninstalled => Step::Nothing,
        Some(latest) if latest.owner.as_deref() == Some(owner) => Step::Uninstall,
        Some(_) => Step::GiveUp("the release is marked as somebody else's now, and stays".to_owned()),
    }
}

/// A helm is at work, or was ended while it was. This process is the only one of ours, and runs none for
/// this release now: what carries our mark was left by a crash.
fn unlock(goal: &Goal<'_>, live: &Live, latest: &LiveRevision, is_wanted: bool, now: u64) -> Step {
    let free_at = latest.written.saturating_add(goal.timeout);
    if latest.owner.is_none() && now < free_at {
        let since = format!("another helm is at work on revision {} of this release", latest.number);
        return Step::Wait(free_at, since);
    }
    match latest.status {
        // It was asked to go and is wanted again: it goes first.
        Status::Uninstalling => Step::Uninstall,
        // The same again: its objects are known by their names, and its hooks run from the start.
        Status::PendingInstall if is_wanted => Step::Forget,
        // Rolled back, so that objects which only the half-made revision has are taken away.
        _ => Step::Rollback(live.ran_before().map_or(latest.number, |revision| revision.number)),
    }
}

/// The latest revision is what is wanted, and it failed.
fn failed(goal: &Goal<'_>, live: &Live, latest: &LiveRevision, tries: &Tries, now: u64) -> Step {
    match live.ran_before() {
        Some(before) if goal.upgrade_atomic => Step::Rollback(before.number),
        None if goal.atomic && latest.status == Status::Failed => Step::Uninstall,
        None if goal.atomic && tries.unhealthy => Step::Uninstall,
        // It runs as it should; trying it again would change nothing.
        _ if latest.status == Status::Deployed => Step::Nothing,
        _ => patient(goal, live, tries, now, Step::Upgrade),
    }
}

/// The step, or the wait before it after tries that failed.
fn patient(goal: &Goal<'_>, live: &Live, tries: &Tries, now: u64, step: Step) -> Step {
    let (failed, last) = tried(goal, live, tries);
    if failed == 0 {
        return step;
    }
    let (at, words) = if failed >= goal.attempts {
        let words = format!("tried {failed} times; it waits for a change, or an hour");
        (last.saturating_add(HELM_REST.as_secs()), words)
    } else {
        let pause = HELM_RETRY_FIRST.as_secs() << (2 * (failed - 1)).min(8);
        (
            last.saturating_add(pause),
            format!("try {} of {} follows", failed + 1, goal.attempts),
        )
    };
    if now >= at { step } else { Step::Wait(at, words) }
}

/// How often this content failed, and when last: as this process knows, or as the history tells.
fn tried(goal: &Goal<'_>, live: &Live, tries: &Tries) -> (u32, u64) {
    let (mut failed, mut last) = (0_u32, 0);
    for revision in live.revisions.iter().rev() {
        match revision.status {
            Status::Failed if revision.content.as_deref() == Some(goal.content) => {
                failed = failed.saturating_add(1);
                last = last.max(revision.written);
            }
            // What it was rolled back to each time.
            Status::Deployed | Status::Superseded => {}
            _ => break,
        }
    }
    (failed.max(tries.failed), last.max(tries.last))
}

#[cfg(test)]
mod tests;
