//! The demo's fleet repository: made from the template that `flotilla init` writes, with a file per cluster.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use reconciler::registration::cluster_file;
use render::ClusterName;
use tokio::process::Command;
use tunnel::SecretKey;

use super::folder::Folder;
use super::git::{git, knows_the_person};
use super::{arguments, places};

/// The file that a first push changes: a ConfigMap for every cluster, whose `data` stands last.
pub(super) const FILE: &str = "feeds/hello/hello.yaml";

/// A cluster of the repository, with its key.
pub(super) struct Member {
    pub(super) name: ClusterName,
    pub(super) environment: &'static str,
    pub(super) key: Arc<SecretKey>,
}

/// Makes the repository, or goes on with the one that is there. Its clusters, in order.
pub(super) async fn open(folder: &Folder, clusters: Option<u16>) -> anyhow::Result<Vec<Member>> {
    link(folder)?;
    if folder.is_ready() {
        return go_on(folder, clusters).await;
    }
    let work = folder.work();
    git(
        folder.path(),
        &["init", "--quiet", "--bare", "--initial-branch=main", "fleet.git"],
    )
    .await?;
    init(folder).await?;
    let members = join(folder, &work, 0, usize::from(clusters.unwrap_or(arguments::CLUSTERS)))?;
    let here = members.iter().map(|member| member.name.as_str());
    leave_out_others(&work, &here.collect::<Vec<_>>())?;
    git(&work, &["init", "--quiet", "--initial-branch=main"]).await?;
    git(&work, &["remote", "add", "origin", "../fleet.git"]).await?;
    if !knows_the_person(&work).await {
        // Whoever tries this may never have used git here; their own commits need a name all the same.
        git(&work, &["config", "user.name", "Demo"]).await?;
        git(&work, &["config", "user.email", "demo@example.com"]).await?;
    }
    commit_and_push(&work, "Begin the fleet").await?;
    folder.set_ready().context("failed to write to the demo's folder")?;
    Ok(members)
}

/// What is there, and the clusters that are wanted beside.
async fn go_on(folder: &Folder, clusters: Option<u16>) -> anyhow::Result<Vec<Member>> {
    let there = (0..).take_while(|number| key_path(folder, *number).exists()).count();
    let mut members = join(folder, Path::new(""), 0, there)?;
    let wanted = usize::from(clusters.unwrap_or_default());
    if clusters.is_some() && wanted < there {
        eprintln!("This folder has {there} clusters, and all of them run; to let one go, remove its file and push.");
    }
    if wanted > there {
        // In a clone of its own: what a person left in theirs is nobody else's business.
        let clone = folder.own("clone");
        let _stale = fs::remove_dir_all(&clone);
        git(folder.path(), &["clone", "--quiet", "fleet.git", ".demo/clone"]).await?;
        members.extend(join(folder, &clone, there, wanted)?);
        commit_and_push(&clone, "Register more clusters").await?;
        fs::remove_dir_all(&clone).context("failed to remove a clone")?;
        eprintln!(
            "Registered {} more clusters; `git pull` in {} has them.",
            wanted - there,
            folder.work().display()
        );
    }
    Ok(members)
}

/// What the template says of single clusters that are not in this fleet would be a Warning for ever.
fn leave_out_others(work: &Path, clusters: &[&str]) -> anyhow::Result<()> {
    let localizations = work.join("localizations");
    let entries =
        fs::read_dir(&localizations).with_context(|| format!("failed to read {}", localizations.display()))?;
    for entry in entries {
        let entry = entry.context("failed to read the template's folder")?;
        let is_here = entry.file_name().to_str().is_some_and(|name| clusters.contains(&name));
        if !is_here {
            fs::remove_dir_all(entry.path()).context("failed to leave out a Localization")?;
        }
    }
    Ok(())
}

/// Brings what the hub wrote into the clone, so that the first `flotilla plan` there compares with it.
pub(super) async fn fetch(folder: &Folder) -> anyhow::Result<()> {
    git(&folder.work(), &["fetch", "--quiet"]).await.map(drop)
}

/// Commits everything, and pushes it.
pub(super) async fn commit_and_push(work: &Path, message: &str) -> anyhow::Result<()> {
    git(work, &["add", "--all"]).await?;
    git(work, &["commit", "--quiet", "--message", message]).await?;
    git(work, &["push", "--quiet", "--set-upstream", "origin", "main"]).await?;
    Ok(())
}

/// The first line of a commit's message.
pub(super) async fn subject(folder: &Folder, revision: &str) -> Option<String> {
    let asked = git(&folder.bare(), &["log", "-1", "--format=%s", revision]).await;
    asked.ok().filter(|subject| !subject.is_empty())
}

fn key_path(folder: &Folder, number: usize) -> std::path::PathBuf {
    folder.own(&format!("{}.key", places::name(number)))
}

/// Reads or makes keys, and writes the files of new clusters into a clone.
fn join(folder: &Folder, clone: &Path, from: usize, to: usize) -> anyhow::Result<Vec<Member>> {
    let mut members = Vec::new();
    for number in from..to {
        let (name, environment, path) = (
            places::name(number),
            places::environment(number),
            key_path(folder, number),
        );
        let key = if path.exists() {
            SecretKey::load(&path)?
        } else {
            let key = SecretKey::generate().context("failed to make a key")?;
            let labels = [("environment".to_owned(), environment.to_owned())];
            let file = clone.join(format!("clusters/{name}.yaml"));
            fs::write(&file, cluster_file(&name, &key.public(), &labels, "Dual"))
                .with_context(|| format!("failed to write {}", file.display()))?;
            key.save(&path)?;
            key
        };
        members.push(Member {
            name,
            environment,
            key: Arc::new(key),
        });
    }
    Ok(members)
}

/// This binary under the name by which it is `flotilla`. Made anew each time, since it may have moved.
fn link(folder: &Folder) -> anyhow::Result<()> {
    let own = std::env::current_exe().context("this process does not know its binary")?;
    let path = folder.flotilla();
    let _older = fs::remove_file(&path);
    symlink(own, &path).with_context(|| format!("failed to write {}", path.display()))
}

/// As a person makes one.
async fn init(folder: &Folder) -> anyhow::Result<()> {
    let mut command = Command::new(folder.flotilla());
    command
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let output = command.args(["init", "fleet"]).output().await;
    let output = output.context("failed to start flotilla init")?;
    if !output.status.success() {
        bail!(
            "flotilla init failed: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(())
}
