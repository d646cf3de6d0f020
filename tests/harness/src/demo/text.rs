//! What is printed. It is the first that a newcomer reads of this project: short, and every line of it can be
//! pasted as it stands.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use reconciler::wire::ObjectResult;
use render::model::Approval;
use render::{ClusterName, Finding, ObjectKey};

use super::folder::Folder;
use super::follow::{News, What};
use super::once::{Journey, Span, Times};
use super::places;
use super::repository::FILE;
use super::world::{ShownCluster, View};

/// Clusters that are listed one by one.
const LISTED_MAX: usize = 6;

/// Findings that are told in full.
const FINDINGS_MAX: usize = 5;

/// Digits of a commit.
const SHORT: usize = 12;

/// What there is, what to push, and where to look.
pub(super) fn welcome(folder: &Folder, view: &View) -> String {
    let count = view.clusters.len();
    let place = quoted(folder.path());
    let work = quoted(&folder.work());
    let names: Vec<_> = view.clusters.iter().map(|cluster| cluster.name.as_str()).collect();
    let names = if names.len() > LISTED_MAX {
        "three of them below".to_owned()
    } else {
        names.join(", ")
    };
    let server = match view.api.port() {
        places::HUB_PORT => String::new(),
        _ => format!(" --server http://{}", view.api),
    };
    let note = note(folder);
    let mut text = format!(
        "\nA fleet of {count} simulated clusters ({names}) and its hub run in this process.
They have what this repository says: {work}

Change the fleet, in another terminal:

  cd {work}
  echo '  {note}: from my first push' >> {FILE}
  git commit -am 'Leave a note' && git push

Look at it:

  cd {place}
  ./flotilla status{server}
  ./flotilla get placements{server}
  ./flotilla explain shop/web{server}

or with kubectl, if you have it:

"
    );
    let _written = writeln!(text, "  kubectl --server http://{} get subscriptions -A", view.api);
    for cluster in view.clusters.iter().take(if count > LISTED_MAX { 3 } else { count }) {
        let ShownCluster {
            name,
            environment,
            address,
            ..
        } = cluster;
        let _written = writeln!(
            text,
            "  kubectl --server http://{address} get configmap hello -o yaml   # {name}, {environment}"
        );
    }
    let _written = write!(
        text,
        "\nThe log is {}. Ctrl-C ends the demo{}.\n\nWaiting for your push.\n",
        folder.log().display(),
        if folder.is_named() {
            ""
        } else {
            ",\nand all of it is removed then, your commits too; --folder NAME keeps it"
        }
    );
    text
}

/// A key that the file does not have yet, so that the line to paste is right each time.
fn note(folder: &Folder) -> String {
    let file = std::fs::read_to_string(folder.work().join(FILE)).unwrap_or_default();
    let taken = |number: &usize| file.contains(&format!("  note-{number}:"));
    let number = (1..).find(|number| !taken(number)).unwrap_or(1);
    format!("note-{number}")
}

/// One push, or whatever else happened.
pub(super) fn news(news: &News) -> String {
    let subject = news
        .subject
        .as_ref()
        .map(|subject| format!(" {subject:?}"))
        .unwrap_or_default();
    let which = news
        .revision
        .as_ref()
        .map(|revision| format!("{revision}{subject}: "))
        .unwrap_or_default();
    let what = match &news.what {
        What::Applied {
            sequence,
            affected,
            total,
            after,
            failed,
            kept,
        } => {
            let clusters = match affected {
                affected if affected == total => format!("{affected} of {total} clusters"),
                1 => format!("the one cluster of {total} that it changes"),
                affected => format!("the {affected} clusters of {total} that it changes"),
            };
            let mut text = match failed.as_slice() {
                [] => format!("released as {sequence}; applied in {clusters} after {}", ms(*after)),
                failed => format!("released as {sequence}; {}", refused(*affected, failed)),
            };
            for (cluster, object) in kept.iter().take(FINDINGS_MAX) {
                let _written = write!(
                    text,
                    "\n  {cluster} keeps {}: {}",
                    named(&object.object),
                    object.message
                );
            }
            text
        }
        What::Slow {
            applied,
            affected,
            waiting,
        } => format!("applied in {applied} of {affected} clusters so far; waiting for {waiting}"),
        What::Held { by } => format!("planned; held by {by}"),
        What::NoChange { errors: 0, gate } => format!("planned; no cluster has to change{}", gate_text(*gate)),
        What::NoChange { errors: 1, .. } => "planned with an error; no cluster changes".to_owned(),
        What::NoChange { errors, .. } => format!("planned with {errors} errors; no cluster changes"),
        What::Proposed { branch } => format!(
            "proposed; merge it to release it:\n  git fetch && git push origin origin/{branch}:flotilla/rendered"
        ),
        What::Trouble { message } => message.clone(),
    };
    format!("{which}{what}\n")
}

fn gate_text(gate: Option<Approval>) -> &'static str {
    match gate {
        None => "",
        Some(Approval::Required) => "; from the next push on approval is required",
        Some(Approval::None) => "; from the next push on no approval is required",
    }
}

/// As people name it: kind, and where it stands.
fn named(object: &ObjectKey) -> String {
    match object.namespace.as_str() {
        "" => format!("{} {}", object.kind, object.name),
        namespace => format!("{} {namespace}/{}", object.kind, object.name),
    }
}

/// Where a release was refused, with the first reason, and those that differ from it.
fn refused(affected: usize, failed: &[(ClusterName, ObjectResult)]) -> String {
    let clusters: BTreeSet<_> = failed.iter().map(|(cluster, _)| cluster).collect();
    let reason = |object: &ObjectResult| format!("{}: {}", named(&object.object), object.message);
    let first = failed.first().map(|(_, object)| reason(object)).unwrap_or_default();
    let mut text = format!(
        "could not be applied in {} of {affected} clusters: {first}",
        clusters.len()
    );
    let others = failed.iter().filter(|(_, object)| reason(object) != first);
    for (cluster, object) in others.take(FINDINGS_MAX) {
        let _written = write!(text, "\n  {cluster}: {}", reason(object));
    }
    text
}

/// Findings as the hub tells them, with what to do.
pub(super) fn findings(new: &[Finding], is_mended: bool) -> String {
    let mut text = String::new();
    for finding in new.iter().take(FINDINGS_MAX) {
        let _written = writeln!(text, "  {}", finding.to_string().replace('\n', "\n  "));
    }
    if new.len() > FINDINGS_MAX {
        let _written = writeln!(
            text,
            "  and {} more; ./flotilla status shows them",
            new.len() - FINDINGS_MAX
        );
    }
    if new.iter().any(Finding::is_error) {
        text.push_str("  The clusters keep what they have of it until a push mends that.\n");
    }
    if is_mended {
        text.push_str("  Mended: the repository has no error.\n");
    }
    text
}

/// Where the time of one push went.
pub(super) fn journey(journey: &Journey, view: &View, begun: Duration, value: &str) -> String {
    let commit: String = journey.commit.chars().take(SHORT).collect();
    let count = view.clusters.len();
    let last = journey.seen.values().max().copied().unwrap_or_default();
    let mut text = format!(
        "{count} clusters, a hub and a fleet repository were up after {:.1} s.\n\nOne push, in ms since it began:\n\n",
        begun.as_secs_f64()
    );
    let mut row = |room: &str, at: String, what: &str| {
        let _written = writeln!(text, "  {room:<8} {at:>7}   {what}");
    };
    row(
        "git push",
        one(Some(journey.pushed)),
        &format!("of {commit}, which changes {FILE}"),
    );
    row("source", one(journey.source), "the hub saw the commit");
    row(
        "plan",
        one(journey.plan.map(|span| span.done)),
        &format!("loaded, scheduled and localized{}", took(journey.plan)),
    );
    row(
        "publish",
        one(journey.publish.map(|span| span.done)),
        &format!("committed to flotilla/rendered{}", took(journey.publish)),
    );
    row(
        "release",
        one(journey.release.map(|span| span.done)),
        &format!(
            "committed to flotilla/released as {}{}",
            journey.sequence,
            took(journey.release)
        ),
    );
    row("tunnel", many(&journey.told), &each("told", &journey.told));
    row("", many(&journey.took), &each("taken by the agents", &journey.took));
    row(
        "apply",
        many(&journey.seen),
        &each("changed in the clusters", &journey.seen),
    );
    row(
        "",
        many(&journey.applied),
        &each("everything applied", &journey.applied),
    );
    row(
        "report",
        many(&journey.reported),
        &each("back at the hub", &journey.reported),
    );
    let when = match last.checked_sub(journey.pushed) {
        Some(after) if after >= Duration::from_millis(1) => format!("{} after the push ended", ms(after)),
        _ => "before git had ended the push".to_owned(),
    };
    let _written = writeln!(text, "\nAll {count} clusters show {value:?}, {when}.");
    text
}

/// A path as a shell takes it.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
    if text.chars().all(plain) {
        text
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

fn one(at: Option<Duration>) -> String {
    at.map_or("-".to_owned(), number)
}

/// From the first cluster to the last.
fn many(times: &Times) -> String {
    one(times.values().max().copied())
}

/// The clusters one by one while there are few, else the first and the last.
fn each(what: &str, times: &Times) -> String {
    if times.is_empty() {
        return what.to_owned();
    }
    if times.len() <= LISTED_MAX {
        let each: Vec<_> = times
            .iter()
            .map(|(name, at)| format!("{name} {}", number(*at)))
            .collect();
        return format!("{what}: {}", each.join(", "));
    }
    let first = times.values().min().copied().unwrap_or_default();
    format!("{what}: {} clusters, the first after {}", times.len(), number(first))
}

fn took(span: Option<Span>) -> String {
    match span {
        Some(span) if span.took >= Duration::from_millis(1) => format!(" in {}", ms(span.took)),
        _ => String::new(),
    }
}

fn number(time: Duration) -> String {
    format!("{:.0}", time.as_secs_f64() * 1_000.0)
}

fn ms(time: Duration) -> String {
    if time < Duration::from_secs(10) {
        format!("{} ms", number(time))
    } else {
        format!("{:.1} s", time.as_secs_f64())
    }
}

/// What is missing where.
pub(super) fn not_arrived(value: &str, clusters: &[&ClusterName], seen: &Times, why: &str) -> String {
    let lacking = clusters.iter().filter(|name| !seen.contains_key(**name));
    let lacking: Vec<_> = lacking.map(|name| name.as_str()).collect();
    let shown = clusters.len() - lacking.len();
    let lacking = if lacking.is_empty() {
        String::new()
    } else {
        format!("; not {}", lacking.join(", "))
    };
    format!(
        "error: {shown} of {} clusters show {value:?}{lacking}\n{why}",
        clusters.len()
    )
}

/// Where the folder is, when all has ended.
pub(super) fn farewell(folder: &Folder) -> String {
    let path = quoted(folder.path());
    match (folder.stays(), folder.is_named()) {
        (false, _) => format!("\nThe demo has ended; {path} is removed.\n"),
        (true, true) => format!("\nThe demo has ended. Go on with it: cargo demo -- --folder {path}\n"),
        (true, false) => format!("\nThe demo has ended. Its log is {}\n", folder.log().display()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(what: What) -> String {
        news(&News {
            revision: Some("main@sha1:ab12".to_owned()),
            subject: Some("Leave a note".to_owned()),
            what,
        })
    }

    fn applied(affected: usize) -> String {
        told(What::Applied {
            sequence: 4,
            affected,
            total: 3,
            after: Duration::from_millis(58),
            failed: Vec::new(),
            kept: Vec::new(),
        })
    }

    #[test]
    fn a_push_is_told_in_one_line_with_what_became_of_it() {
        let begin = "main@sha1:ab12 \"Leave a note\": ";
        assert_eq!(
            applied(3),
            format!("{begin}released as 4; applied in 3 of 3 clusters after 58 ms\n")
        );
        assert!(applied(2).contains("applied in the 2 clusters of 3 that it changes after 58 ms"));
        assert!(applied(1).contains("applied in the one cluster of 3 that it changes after 58 ms"));
        let nothing = told(What::NoChange { errors: 0, gate: None });
        assert_eq!(nothing, format!("{begin}planned; no cluster has to change\n"));
        let wrong = told(What::NoChange { errors: 2, gate: None });
        assert!(wrong.contains("2 errors; no cluster changes"), "{wrong}");
        let gate = Some(Approval::Required);
        let gated = told(What::NoChange { errors: 0, gate });
        assert!(
            gated.ends_with("; from the next push on approval is required\n"),
            "{gated}"
        );
        let proposed = told(What::Proposed {
            branch: "flotilla/proposed/12".to_owned(),
        });
        assert!(proposed.contains("git push origin origin/flotilla/proposed/12:flotilla/rendered\n"));
    }

    #[test]
    fn what_clusters_refused_is_not_told_as_applied() {
        let [lima, oslo] = ["lima", "oslo"].map(|name| ClusterName::parse(name).unwrap());
        let refusal = |words: &str| ObjectResult {
            object: ObjectKey::new("apps/v1", "Deployment", "shop", "web"),
            state: reconciler::wire::ObjectState::Failed,
            health: reconciler::wire::Health::Unknown,
            message: words.to_owned(),
        };
        let text = told(What::Applied {
            sequence: 4,
            affected: 3,
            total: 3,
            after: Duration::from_millis(58),
            failed: vec![
                (lima.clone(), refusal("unknown field")),
                (oslo.clone(), refusal("unknown field")),
                (oslo, refusal("too large")),
            ],
            kept: vec![(lima, refusal("the annotation keeps it"))],
        });
        assert!(
            text.contains("released as 4; could not be applied in 2 of 3 clusters: Deployment shop/web: unknown"),
            "{text}"
        );
        assert!(!text.contains("; applied"), "{text}");
        assert_eq!(
            text.matches("unknown field").count(),
            1,
            "one reason is told once: {text}"
        );
        assert!(text.contains("\n  oslo: ") && text.contains("too large"), "{text}");
        assert!(
            text.contains("\n  lima keeps ") && text.contains("the annotation keeps it"),
            "{text}"
        );
        let held = told(What::Held {
            by: "policies/web.yaml: a fair".to_owned(),
        });
        assert!(
            held.ends_with(": planned; held by policies/web.yaml: a fair\n"),
            "{held}"
        );
    }

    #[test]
    fn an_error_is_told_with_its_place_and_its_hint_and_so_is_its_end() {
        let error = Finding::error("Unreadable", "unclosed bracket")
            .at("feeds/hello.yaml", 9)
            .hint("close it");
        let text = findings(&[error], false);
        assert!(
            text.starts_with("  feeds/hello.yaml:9: error: unclosed bracket\n    hint: close it\n"),
            "{text}"
        );
        assert!(text.ends_with("until a push mends that.\n"));
        assert_eq!(findings(&[], false), "");
        assert!(findings(&[], true).contains("Mended"));
    }

    #[test]
    fn what_did_not_arrive_is_told_with_the_clusters_that_lack_it() {
        let names: Vec<_> = (0..3).map(places::name).collect();
        let seen = Times::from([(names[0].clone(), Duration::from_millis(20))]);
        let text = not_arrived(
            "Hello.",
            &names.iter().collect::<Vec<_>>(),
            &seen,
            "  oslo lacks it: no agent",
        );
        assert_eq!(
            text,
            "error: 1 of 3 clusters show \"Hello.\"; not oslo, paris\n  oslo lacks it: no agent"
        );
    }

    #[test]
    fn a_path_is_printed_as_a_shell_takes_it() {
        let check = |path: &str, expected: &str| assert_eq!(quoted(Path::new(path)), expected);
        check("/tmp/fleet-1", "/tmp/fleet-1");
        check("/tmp/my fleet", "'/tmp/my fleet'");
        check("/tmp/ada's", r"'/tmp/ada'\''s'");
    }
}
