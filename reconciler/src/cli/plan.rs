//! `flotilla plan`: what a revision changes, before it is pushed.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use render::describe::Description;
use render::load::LoadMemo;
use render::plan::{ClusterDelta, Delta, Memo, ObjectChange, Reports, Share, Snapshot, changes, deltas, plan};
use render::{ClusterName, Digest, Finding, Published, Revision, UnitKey};
use serde::Serialize;

use super::{exit, output, plan_text};
use crate::hub::load_revision;
use crate::hub::publish::{Author, CommitId, StateRef, StateRefs, StateRepository};
use crate::hub::source::Source;

/// Show what a revision changes. Exits with 0 when it changes nothing, 1 when it does, and 2 on an error
/// or an Error finding.
#[derive(Debug, Args)]
#[command(after_help = exit::HELP_PLAN)]
pub(super) struct PlanArguments {
    /// The repository, or a clone of it. What is not committed does not count.
    #[arg(long, env = "FLOTILLA_REPOSITORY", default_value = ".")]
    repository: PathBuf,
    /// Its branch.
    #[arg(long, env = "FLOTILLA_BRANCH", default_value = "main")]
    branch: String,
    /// The revision to compare with; without it, what the rendered ref says now. In a clone that is what the
    /// last `git fetch` brought.
    #[arg(long)]
    from: Option<String>,
    /// The revision to plan.
    #[arg(long, default_value = "HEAD")]
    to: String,
    /// The ref of the approved target.
    #[arg(long, default_value = "flotilla/rendered")]
    rendered_ref: String,
    /// How the plan is written.
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Output {
    /// For people.
    #[default]
    Text,
    /// One JSON object.
    Json,
}

/// A plan as it is shown.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Shown {
    /// What it is compared with: a revision, or nothing.
    pub(super) from: Option<Revision>,
    /// The revision that was planned.
    pub(super) to: Revision,
    /// Units that change.
    pub(super) units: Vec<UnitChange>,
    /// What is wrong, sorted.
    pub(super) findings: Vec<Finding>,
}

/// One unit's changes.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct UnitChange {
    pub(super) unit: UnitKey,
    /// Clusters that change alike, together.
    pub(super) groups: Vec<Group>,
}

/// Clusters that change alike.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Group {
    pub(super) clusters: Vec<ClusterName>,
    pub(super) from: Option<Share>,
    pub(super) to: Option<Share>,
    pub(super) objects: Vec<ObjectChange>,
}

/// What the plan is compared with.
struct Before {
    revision: Option<Revision>,
    published: Published,
    contents: Contents,
}

/// Where contents come from.
enum Contents {
    Planned(BTreeMap<Digest, Arc<Description>>),
    Committed(Box<StateRepository>, CommitId),
    None,
}

pub(super) fn run(arguments: &PlanArguments) -> anyhow::Result<ExitCode> {
    match shown(arguments) {
        Ok(shown) => {
            match arguments.output {
                Output::Text => plan_text::print(&shown),
                Output::Json => super::print(&output::json(&serde_json::to_value(&shown)?)),
            }
            let error = shown.findings.iter().any(Finding::is_error);
            Ok(ExitCode::from(if error {
                2
            } else {
                u8::from(!shown.units.is_empty())
            }))
        }
        Err(error) => {
            eprintln!("error: {}", crate::fault::line(error.as_ref()));
            Ok(ExitCode::from(exit::PLAN_ERROR))
        }
    }
}

fn shown(arguments: &PlanArguments) -> anyhow::Result<Shown> {
    let source = Source::open(&arguments.repository, &arguments.branch)
        .with_context(|| format!("failed to open {}", arguments.repository.display()))?;
    let to = source
        .resolve(&arguments.to)
        .with_context(|| format!("failed to find {}", arguments.to))?;
    let mut before = before(arguments, &source)?;
    let planned = planned(&source, &to, std::mem::take(&mut before.published))?;
    let units = deltas(&planned.previous.units, &planned.plan.units);
    let units = units
        .into_iter()
        .map(|delta| unit_change(delta, &before.contents, &planned.plan.contents));
    Ok(Shown {
        from: before.revision,
        to,
        units: units.collect::<anyhow::Result<_>>()?,
        findings: planned.findings,
    })
}

fn before(arguments: &PlanArguments, source: &Source) -> anyhow::Result<Before> {
    if let Some(from) = &arguments.from {
        let revision = source.resolve(from).with_context(|| format!("failed to find {from}"))?;
        let planned = planned(source, &revision, Published::default())?;
        let published = Published {
            record: None,
            units: planned.plan.units,
        };
        return Ok(Before {
            revision: Some(revision),
            published,
            contents: Contents::Planned(planned.plan.contents),
        });
    }
    // A clone has the hub's refs as those of its remote.
    for name in [
        arguments.rendered_ref.clone(),
        format!("refs/remotes/origin/{}", arguments.rendered_ref),
    ] {
        let refs = StateRefs {
            rendered: name,
            ..StateRefs::default()
        };
        let state = StateRepository::open(&arguments.repository, refs, Author::default(), source)?;
        if let Some((commit, published)) = state.read_published(StateRef::Rendered)? {
            let published = Published::clone(&published);
            let revision = published.record.as_ref().map(|record| record.source.clone());
            return Ok(Before {
                revision,
                published,
                contents: Contents::Committed(Box::new(state), commit),
            });
        }
    }
    Ok(Before {
        revision: None,
        published: Published::default(),
        contents: Contents::None,
    })
}

struct Planned {
    previous: Arc<Published>,
    plan: render::Plan,
    findings: Vec<Finding>,
}

fn planned(source: &Source, revision: &Revision, previous: Published) -> anyhow::Result<Planned> {
    let (fleet, mut findings) = load_revision(source, revision, &mut LoadMemo::default())
        .with_context(|| format!("failed to read {revision}"))?;
    let previous = Arc::new(previous);
    let snapshot = Snapshot {
        revision: revision.clone(),
        fleet: Arc::new(fleet),
        reports: Reports::default(),
        chart_previews: BTreeMap::new(),
        previous: Arc::clone(&previous),
        now: 0,
    };
    let plan = plan(&snapshot, &mut Memo::default());
    findings.extend(plan.findings.iter().cloned());
    findings.sort();
    findings.dedup();
    Ok(Planned {
        previous,
        plan,
        findings,
    })
}

fn unit_change(delta: Delta, old: &Contents, new: &BTreeMap<Digest, Arc<Description>>) -> anyhow::Result<UnitChange> {
    let mut groups: Vec<Group> = Vec::new();
    for ClusterDelta { cluster, from, to } in delta.clusters {
        if let Some(group) = groups.iter_mut().find(|group| group.from == from && group.to == to) {
            group.clusters.push(cluster);
            continue;
        }
        let (before, after) = (old.content(from.as_ref())?, new_content(to.as_ref(), new, old)?);
        let objects = changes(before.as_deref(), after.as_deref());
        groups.push(Group {
            clusters: vec![cluster],
            from,
            to,
            objects,
        });
    }
    Ok(UnitChange {
        unit: delta.unit,
        groups,
    })
}

/// The content of a share in the plan; one that is held back is where it was before.
fn new_content(
    share: Option<&Share>,
    new: &BTreeMap<Digest, Arc<Description>>,
    old: &Contents,
) -> anyhow::Result<Option<Arc<Description>>> {
    match share.and_then(|share| new.get(&share.digest)) {
        Some(content) => Ok(Some(Arc::clone(content))),
        None => old.content(share),
    }
}

impl Contents {
    fn content(&self, share: Option<&Share>) -> anyhow::Result<Option<Arc<Description>>> {
        let Some(share) = share else { return Ok(None) };
        match self {
            Self::Planned(contents) => Ok(contents.get(&share.digest).cloned()),
            Self::Committed(state, commit) => Ok(Some(Arc::new(state.content(*commit, &share.digest)?))),
            Self::None => Ok(None),
        }
    }
}
