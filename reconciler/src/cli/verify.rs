//! `flotilla verify`: renders again what a commit of released says, and compares byte for byte.
//!
//! In: a repository or a clone of it, and a commit. Out: OK, or each path that differs. What is compared with what is
//! [`render::verify`]'s matter; nothing is written anywhere.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use clap::Args;
use render::guard::{Evidence, Holdings};
use render::load::LoadMemo;
use render::plan::Memo;
use render::published::{RENDER_VERSION, ReleaseRecord};
use render::tree::SourceEntry;
use render::verify::{Verdict, Verification};
use render::{Digest, Fleet, Plan, Published, Revision, SourceTree, layout};

use super::progress::Progress;
use super::{exit, output};
use crate::hub::source::Source;
use crate::hub::{Rules, load_revision, plan_fleet, plan_guarded};

/// Render again what released says, from its source revisions, and compare every byte.
#[derive(Debug, Args)]
#[command(after_help = exit::HELP_VERIFY)]
pub(super) struct Verify {
    /// The repository, or a clone of it after `git fetch`.
    #[arg(long, env = "FLOTILLA_REPOSITORY", default_value = ".")]
    repository: PathBuf,
    /// The repository with the hub's refs, where it is another one.
    #[arg(long, value_name = "PATH")]
    state_repository: Option<PathBuf>,
    /// The commit of released to verify; without it, the newest one.
    #[arg(long, value_name = "RELEASED")]
    revision: Option<String>,
    /// The ref of what clusters are told.
    #[arg(long, default_value = "flotilla/released")]
    released_ref: String,
}

pub(super) fn run(arguments: &Verify) -> ExitCode {
    match verify(arguments) {
        Ok(code) => code,
        Err(error) => {
            let line = output::visible(&crate::fault::line(error.as_ref()));
            output::tell(&format!("error: {line}\n"));
            ExitCode::from(exit::VERIFY_UNDECIDED)
        }
    }
}

fn verify(arguments: &Verify) -> anyhow::Result<ExitCode> {
    let source = open(&arguments.repository)?;
    let state = arguments.state_repository.as_deref().map(open).transpose()?;
    let state = state.as_ref().unwrap_or(&source);
    let released = released(arguments, state)?;
    let tree = state
        .tree(&released)
        .with_context(|| format!("failed to read {released}"))?;
    let no_release = || format!("{released} is no commit of released");
    let said = said(&tree).with_context(no_release)?;
    let record = said
        .record
        .clone()
        .context("it has no release.yaml")
        .with_context(no_release)?;
    let verification = under_way(state, said, &released, &record);
    let verdict = again(&source, verification, &tree, &record).verdict(&tree);
    tell(state, &tree, &record, &verdict);
    if verdict.is_same() {
        output::print(&format!("OK {released}\n"));
        return Ok(ExitCode::SUCCESS);
    }
    Ok(match verdict.differing.is_empty() {
        true => ExitCode::from(exit::VERIFY_UNDECIDED),
        false => ExitCode::FAILURE,
    })
}

fn open(path: impl AsRef<Path>) -> anyhow::Result<Source> {
    let path = path.as_ref();
    // Its branch is not looked at: every commit is named.
    Source::open(path, "main").with_context(|| format!("failed to open {}", path.display()))
}

/// The commit that is verified; a clone has the hub's refs as those of its remote.
fn released(arguments: &Verify, state: &Source) -> anyhow::Result<Revision> {
    if let Some(revision) = &arguments.revision {
        return state
            .resolve(revision)
            .with_context(|| format!("failed to find {revision}"));
    }
    let name = &arguments.released_ref;
    let places = [format!("refs/heads/{name}"), format!("refs/remotes/origin/{name}")];
    places
        .iter()
        .find_map(|place| state.resolve(place).ok())
        .with_context(|| {
            format!("there is no {name} here; git fetch brings it, or --state-repository names where it is")
        })
}

fn said(tree: &SourceTree) -> anyhow::Result<Published> {
    let files = tree.files.iter().filter_map(|(path, entry)| match entry {
        SourceEntry::File(file) => Some((&**path, &*file.bytes)),
        _ => None,
    });
    Ok(layout::read(files)?)
}

/// Knows what was released before and what `rendered` wanted, as far as they are here: clusters that wait for others
/// stand between the two.
fn under_way(state: &Source, said: Published, released: &Revision, record: &ReleaseRecord) -> Verification {
    let published = |revision: &Revision| self::said(&state.tree(revision).ok()?).ok();
    let verification = Verification::new(said);
    let before = state.first_parent(released).ok().flatten();
    let before = before.as_ref().and_then(published);
    let rendered = record.rendered.as_ref().and_then(published);
    match before.zip(rendered) {
        Some((before, rendered)) => verification.under_way(&before, &rendered),
        None => verification,
    }
}

/// Renders everything again, one revision at a time.
fn again(source: &Source, mut verification: Verification, tree: &SourceTree, record: &ReleaseRecord) -> Verification {
    let mut memo = LoadMemo::default();
    let unsettled = Arc::new(verification.unsettled());
    let progress = Progress::begin("rendering released again");
    for revision in verification.revisions() {
        progress.now(&format!("rendering {revision} again"));
        match planned(source, &revision, &unsettled, &mut memo) {
            Ok((fleet, plan)) => verification.planned(&revision, &plan, &fleet),
            Err(why) => verification.unknown(&revision, &why),
        }
    }
    let expected = Arc::new(verification.expected().clone());
    match decided(source, tree, record, &expected, &mut memo) {
        Ok((fleet, plan)) => verification.decided(&record.source, &plan, &fleet),
        Err(why) => verification.undecided(&why),
    }
    verification
}

/// A revision planned on what is released, or why that cannot be.
fn planned(
    source: &Source,
    revision: &Revision,
    previous: &Arc<Published>,
    memo: &mut LoadMemo,
) -> Result<(Arc<Fleet>, Plan), String> {
    let (fleet, found) = load_revision(source, revision, memo).map_err(|error| {
        let error = crate::fault::line(&error);
        format!("the source commit {revision} cannot be read: {error}")
    })?;
    let fleet = Arc::new(fleet);
    let (plan, _) = plan_fleet(&fleet, found, Arc::clone(previous), 0, &mut Memo::default());
    Ok((fleet, plan))
}

/// The newest revision planned on what the commit should say, as the hub did: with what is held back.
fn decided(
    source: &Source,
    tree: &SourceTree,
    record: &ReleaseRecord,
    expected: &Arc<Published>,
    memo: &mut LoadMemo,
) -> Result<(Arc<Fleet>, Plan), String> {
    let unreadable = |error: &crate::hub::source::SourceError| {
        let error = crate::fault::line(error);
        format!("the source commit {} cannot be read: {error}", record.source)
    };
    let (fleet, found) = load_revision(source, &record.source, memo).map_err(|error| unreadable(&error))?;
    let fleet = Arc::new(fleet);
    let rules = Rules::read(source, &fleet, Some(&record.source), None).map_err(|error| unreadable(&error))?;
    let holdings = |digest: &Digest| holdings(tree, expected, digest);
    let evidence = Evidence {
        budgets: &rules.budgets,
        allowed: &rules.allowed,
        holdings: &holdings,
    };
    let previous = Arc::clone(expected);
    let (plan, _, _) = plan_guarded(&fleet, found, previous, 0, &mut Memo::default(), &evidence);
    Ok((fleet, plan))
}

/// The objects of a content, as its files in the commit say.
fn holdings(tree: &SourceTree, said: &Published, digest: &Digest) -> Option<Arc<Holdings>> {
    let variants = said
        .units
        .iter()
        .flat_map(|(unit, placement)| placement.variants.iter().map(move |variant| (unit, variant)));
    let mut named = variants.filter(|(_, (_, variant))| variant.digest == *digest);
    named.find_map(|(unit, (name, _))| {
        let folder = format!("{}/", layout::unit_folder(unit, name));
        let files = tree.files.iter().filter_map(|(path, entry)| match entry {
            SourceEntry::File(file) => Some((path.strip_prefix(&folder)?, &*file.bytes)),
            _ => None,
        });
        let content = layout::description_from_files(files).ok()?;
        (content.digest == *digest).then(|| Arc::new(Holdings::of(&content)))
    })
}

/// Differing paths go to stdout, one in a line; what they mean, to stderr.
fn tell(state: &Source, tree: &SourceTree, record: &ReleaseRecord, verdict: &Verdict) {
    let mut edited = false;
    let rendered = record.rendered.as_ref().and_then(|rendered| state.tree(rendered).ok());
    for (path, what) in &verdict.differing {
        // Placements name the digests of what people edited, so that they are never as in rendered.
        let is_edited = rendered.as_ref().is_some_and(|rendered| is_same(path, tree, rendered));
        let edit = if is_edited { ", as in rendered" } else { "" };
        edited |= is_edited;
        output::print(&format!("{} {what}{edit}\n", output::visible(path)));
    }
    for (path, why) in &verdict.undecided {
        output::tell(&format!(
            "not verified: {}: {}\n",
            output::visible(path),
            output::visible(why)
        ));
    }
    if let Some(rendered) = record.rendered.as_ref().filter(|_| edited) {
        output::tell(&format!(
            "note: rendered was edited by hand: what is as in rendered was approved there, in {rendered} or before\n"
        ));
    }
    if !verdict.differing.is_empty() && record.render_version != RENDER_VERSION {
        output::tell(&format!(
            "note: it was rendered by render version {}, and this flotilla has {RENDER_VERSION}: a flotilla of that \
             time is the one to ask\n",
            record.render_version
        ));
    }
}

/// Whether two commits have the same at a path; a folder is never compared.
fn is_same(path: &str, one: &SourceTree, other: &SourceTree) -> bool {
    match (one.files.get(path), other.files.get(path)) {
        (Some(SourceEntry::File(one)), Some(SourceEntry::File(other))) => one.bytes == other.bytes,
        (None, None) => !path.ends_with('/'),
        _ => false,
    }
}
