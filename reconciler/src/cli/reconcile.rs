//! `flotilla reconcile`: asks the hub to look now, and waits for what becomes of it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use render::{Revision, UnitKey};
use tokio::time::{Instant, sleep};

use super::client::{ClientError, ServerOptions, failed};
use super::git::Git;
use super::hub_view::View;
use super::{exit, output, wait_for};

/// Between two looks at the hub. Each is a few kilobytes from this machine.
const LOOK_INTERVAL: Duration = Duration::from_millis(300);

/// How long the hub has for its look at a repository before what it says counts as new, where no commit is
/// known that it would have to see.
const LOOK_TIME: Duration = Duration::from_secs(2);

/// Ask the hub to look at its repositories now.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit codes: 0 it is so, 1 it is not, or not in time, 64 wrong usage, 69 no hub answers")]
pub(super) struct Reconcile {
    /// Wait until this Subscription, as NAMESPACE/NAME, is ready with what was accepted.
    subscription: Option<UnitKey>,
    /// Wait until the hub has accepted the newest commit: that of the clone, else whichever the hub sees.
    #[arg(long)]
    wait: bool,
    /// Seconds that all of it may take.
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    within: u64,
    /// The clone of the fleet repository.
    #[arg(short = 'C', long = "directory", value_name = "DIR", default_value = ".")]
    folder: PathBuf,
    #[command(flatten)]
    server: ServerOptions,
}

pub(super) fn run(arguments: &Reconcile) -> anyhow::Result<ExitCode> {
    if !arguments.folder.is_dir() {
        let folder = output::visible(&arguments.folder.display().to_string());
        output::tell(&format!(
            "error: {folder} is no folder\nhint: -C names the clone of the fleet repository\n"
        ));
        return Ok(exit::usage());
    }
    wait_for(async {
        match reconcile(arguments).await {
            Ok(code) => code,
            Err(error) => failed(&error),
        }
    })
}

/// How far it is.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    /// It is so.
    Done(String),
    /// Not yet, and why.
    Waiting(String),
    /// It will not be so until a person does something.
    Stuck(String),
}

async fn reconcile(arguments: &Reconcile) -> Result<ExitCode, ClientError> {
    let started = Instant::now();
    arguments.server.post("/reconcile").await?;
    if !arguments.wait && arguments.subscription.is_none() {
        output::tell("The hub looks at its repositories now.\n");
        return Ok(ExitCode::SUCCESS);
    }
    let clone = Clone::at(&arguments.folder);
    let mut said = String::new();
    loop {
        match look(arguments, &clone, started).await? {
            Step::Done(what) => {
                output::print(&format!("{}\n", output::visible(&what)));
                return Ok(ExitCode::SUCCESS);
            }
            Step::Stuck(why) => {
                output::tell(&format!("error: {}\n", output::visible(&why)));
                return Ok(ExitCode::FAILURE);
            }
            Step::Waiting(why) if started.elapsed() >= Duration::from_secs(arguments.within) => {
                let (why, seconds) = (output::visible(&why), arguments.within);
                output::tell(&format!("error: not within {seconds} s: {why}\n"));
                return Ok(ExitCode::FAILURE);
            }
            Step::Waiting(why) => {
                if why != said {
                    output::tell(&format!(
                        "{:>4} s  {}\n",
                        started.elapsed().as_secs(),
                        output::visible(&why)
                    ));
                    said = why;
                }
            }
        }
        sleep(LOOK_INTERVAL).await;
    }
}

async fn look(arguments: &Reconcile, clone: &Clone, started: Instant) -> Result<Step, ClientError> {
    let fleet = View::fleet(&arguments.server).await?;
    let accepted = match accepted(&fleet, clone, started.elapsed() >= LOOK_TIME) {
        Ok(accepted) => accepted,
        Err(step) => return Ok(step),
    };
    let Some(unit) = &arguments.subscription else {
        return Ok(Step::Done(format!("{accepted} is accepted")));
    };
    match View::unit(&arguments.server, unit).await {
        Ok(view) => Ok(unit_step(unit, &view, &accepted, started.elapsed() >= LOOK_TIME)),
        Err(ClientError::Refused { status, .. }) if status == http::StatusCode::NOT_FOUND => {
            Ok(Step::Stuck(format!("there is no Subscription {unit} at {accepted}")))
        }
        Err(error) => Err(error),
    }
}

/// The commit that the hub accepted, once it is the one that is waited for.
fn accepted(fleet: &View, clone: &Clone, looked: bool) -> Result<Revision, Step> {
    let source = fleet.condition("SourceVerified");
    if source.status == "False" {
        let message = format!("{}: {}", source.reason, source.message);
        let rewritten = source.reason == "HistoryRewritten";
        return Err(if rewritten {
            Step::Stuck(format!("{message}; flotilla accept-rewrite writes one"))
        } else {
            Step::Waiting(message)
        });
    }
    let (seen, accepted) = (fleet.revision("source"), fleet.revision("accepted"));
    let wanted = clone.wanted(seen.iter().chain(&accepted));
    if let Wanted::NotPushed(head) = &wanted {
        return Err(Step::Stuck(format!("{head} is not pushed; git push")));
    }
    let planned = fleet.condition("Planned");
    let is_new = match &wanted {
        Wanted::Commit(head) => accepted.as_ref().is_some_and(|accepted| clone.contains(accepted, head)),
        Wanted::Any | Wanted::NotPushed(_) => looked && accepted == seen,
    };
    match (accepted, &wanted) {
        (Some(accepted), _) if is_new && planned.status == "True" => Ok(accepted),
        (Some(accepted), Wanted::Commit(head)) if !is_new => {
            let branch = fleet.branch().unwrap_or("its branch");
            Err(Step::Waiting(format!(
                "the hub is at {accepted} of {branch} and has not accepted {head} yet"
            )))
        }
        _ => Err(Step::Waiting(format!("Planned: {}", planned.message))),
    }
}

/// `looked` says whether the hub had time to propose what it made from the accepted commit.
fn unit_step(unit: &UnitKey, view: &View, accepted: &Revision, looked: bool) -> Step {
    let approved = view.condition("Approved");
    if looked && approved.reason == "MergeAwaited" {
        return Step::Stuck(format!("{unit}: {}", approved.message));
    }
    let (ready, stalled) = (view.condition("Ready"), view.condition("Stalled"));
    let why = format!("{unit}: {}", ready.message);
    let has = view.revision("revision");
    if ready.reason == "Suspended" || stalled.status == "True" {
        return Step::Stuck(why);
    }
    if ready.reason == "Frozen" {
        let end = "drift.mode of the Subscription or of the cluster ends it";
        return Step::Stuck(format!("{why}; {end}"));
    }
    let suspended = view.condition("Suspended");
    let left = match suspended.status {
        "True" => format!("; left as they are: {}", suspended.message),
        _ => String::new(),
    };
    match has {
        Some(has) if has == *accepted && ready.status == "True" => {
            Step::Done(format!("{unit} is ready at {accepted}{left}"))
        }
        Some(has) if ready.status == "True" => {
            Step::Waiting(format!("{unit} is ready at {has}, not at {accepted} yet"))
        }
        _ => Step::Waiting(why),
    }
}

/// The clone that the command is run in, if it is one of the fleet repository.
struct Clone {
    git: Git,
    head: Option<Revision>,
    is_pushed: bool,
}

/// The commit that is waited for.
#[derive(Debug, PartialEq, Eq)]
enum Wanted {
    /// The clone's.
    Commit(Revision),
    /// The clone's, which its upstream does not have.
    NotPushed(Revision),
    /// Whatever the hub sees: there is no clone of its repository here.
    Any,
}

impl Clone {
    fn at(folder: &Path) -> Self {
        let git = Git::at(folder);
        let head = git.ask(&["rev-parse", "--verify", "HEAD"]).ok();
        // A branch without upstream may be pushed by other means.
        let is_pushed = match git.ask(&["rev-parse", "--verify", "@{upstream}"]) {
            Ok(upstream) => git
                .holds(&["merge-base", "--is-ancestor", "HEAD", &upstream])
                .unwrap_or(false),
            Err(_) => true,
        };
        Self {
            git,
            head: head.and_then(|head| Revision::parse(head).ok()),
            is_pushed,
        }
    }

    /// A clone counts if it knows a commit that the hub names; any other repository is none of the fleet.
    fn wanted<'a>(&self, mut named: impl Iterator<Item = &'a Revision>) -> Wanted {
        let Some(head) = &self.head else { return Wanted::Any };
        match named.any(|revision| self.git.knows(revision).unwrap_or(false)) {
            false => Wanted::Any,
            true if self.is_pushed => Wanted::Commit(head.clone()),
            true => Wanted::NotPushed(head.clone()),
        }
    }

    /// Whether `of` is `head` or builds on it.
    fn contains(&self, of: &Revision, head: &Revision) -> bool {
        of == head || self.git.contains(head, of.as_str()).unwrap_or(false)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(conditions: serde_json::Value, looked: bool, expected: &Step) {
        let accepted = Revision::parse("a".repeat(40)).expect("it is one");
        let unit = "shop/web".parse().expect("it is one");
        let view = View::from(json!({"status": {"conditions": conditions}}));
        assert_eq!(unit_step(&unit, &view, &accepted, looked), *expected);
    }

    #[test]
    fn a_merge_is_a_persons_and_is_not_waited_for() {
        let message = "a waits for a person to merge it into b: git push origin origin/a:b";
        let conditions = json!([
            {"type": "Approved", "status": "Unknown", "reason": "MergeAwaited", "message": message},
            {"type": "Ready", "status": "Unknown", "reason": "MergeAwaited", "message": format!("Approved: {message}")},
        ]);
        check(conditions.clone(), true, &Step::Stuck(format!("shop/web: {message}")));
        let waiting = Step::Waiting(format!("shop/web: Approved: {message}"));
        check(conditions, false, &waiting);
    }

    #[test]
    fn what_is_frozen_is_not_waited_for_and_what_is_left_is_said() {
        let message = "Applied: 1 of 2 objects are not as Git says; drift mode is Freeze";
        let frozen = json!([{"type": "Ready", "status": "Unknown", "reason": "Frozen", "message": message}]);
        let end = "drift.mode of the Subscription or of the cluster ends it";
        let stuck = Step::Stuck(format!("shop/web: {message}; {end}"));
        check(frozen, false, &stuck);
        let accepted = Revision::parse("a".repeat(40)).expect("it is one");
        let conditions = json!([
            {"type": "Ready", "status": "True", "reason": "ReconciliationSucceeded", "message": ""},
            {"type": "Suspended", "status": "True", "reason": "ObjectsSuspended", "message": "1 of 2 objects"},
        ]);
        let view =
            View::from(json!({"status": {"revision": format!("main@sha1:{accepted}"), "conditions": conditions}}));
        let unit = "shop/web".parse().expect("it is one");
        let said = format!("shop/web is ready at {accepted}; left as they are: 1 of 2 objects");
        assert_eq!(unit_step(&unit, &view, &accepted, true), Step::Done(said));
    }
}
