//! One run of helm: its folder, its way to the cluster, its chart and values; all gone when it ends.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use render::chart::Crds;
use tempfile::TempDir;

use super::access::Access;
use super::adoption::AdoptionError;
use super::chart::{self, ChartError, Kept};
use super::definitions::DefinitionsError;
use super::live::{LABEL_CONTENT, LABEL_OWNER};
use super::program::{self, Call, HelmError};
use super::wanted::{Place, Source, Wanted};

/// How helm ends after its own timeout, before it is ended.
const GRACE: Duration = Duration::from_secs(30);

/// What every run needs.
#[derive(Clone)]
pub(super) struct Means {
    /// The program.
    pub program: PathBuf,
    /// Where folders of runs are made; the system's place for such where there is none.
    pub folder: Option<PathBuf>,
    /// Archives of charts.
    pub kept: Kept,
    /// The cluster.
    pub client: Client,
}

/// Why a run did not do it.
#[derive(Debug, thiserror::Error)]
pub(super) enum RunError {
    /// Nothing was run: this machine does not let us.
    #[error("failed to prepare a run of helm")]
    Prepare(#[source] io::Error),
    /// Nothing was run: there is no chart.
    #[error("failed to bring the chart")]
    Chart(#[source] ChartError),
    /// Nothing was run: the chart's definitions were not taken.
    #[error("failed to replace the chart's definitions")]
    Definitions(#[source] DefinitionsError),
    /// Something of the chart is there already, and is somebody's.
    #[error("{0}; hint: take it away, or out of the chart")]
    Owned(String),
    /// Nobody could say whose it is.
    #[error("failed to find out whose objects are that stand in the chart's way")]
    Adoption(#[source] AdoptionError),
    /// Helm did not do it.
    #[error(transparent)]
    Helm(HelmError),
}

/// A run that was prepared.
pub(super) struct Run {
    program: PathBuf,
    home: TempDir,
    place: Place,
    timeout: Duration,
    /// The chart, once it was brought.
    chart: Option<PathBuf>,
    _access: Access,
}

/// What was found out of a chart before it is installed.
pub(super) struct Rendered {
    /// Whether it has hooks; then a run may wait for them.
    pub has_hooks: bool,
    /// Whether objects that are there and nobody's become the release's.
    pub takes_ownership: bool,
}

impl Run {
    /// Prepares a run against a release.
    pub(super) async fn prepare(means: &Means, place: &Place, timeout: Duration) -> Result<Self, RunError> {
        let access = Access::open(means.client.clone()).await.map_err(RunError::Prepare)?;
        let (folder, kubeconfig) = (means.folder.clone(), access.kubeconfig(&place.namespace));
        let home = blocking(move || home(folder.as_deref(), &kubeconfig))
            .await
            .map_err(RunError::Prepare)?;
        Ok(Self {
            program: means.program.clone(),
            home,
            place: place.clone(),
            timeout,
            chart: None,
            _access: access,
        })
    }

    /// Brings the chart and the values of a release.
    pub(super) async fn bring(&mut self, means: &Means, wanted: &Wanted) -> Result<(), RunError> {
        let chart = chart::bring(&wanted.source, &means.client, &means.kept, self.home.path()).await;
        self.chart = Some(chart.map_err(RunError::Chart)?);
        let (values, order) = (self.home.path().join(VALUES), Arc::clone(&wanted.order));
        let written = blocking(move || write(&values, order.values_text().as_bytes())).await;
        written.map_err(RunError::Prepare)
    }

    /// Finds out whether the chart has hooks. A chart that cannot be rendered without its cluster counts as one
    /// that has.
    pub(super) async fn rendered(&self, wanted: &Wanted) -> Rendered {
        let has_hooks = match &wanted.source {
            _ if wanted.order.disable_hooks => false,
            Source::Folder(files) => {
                let packed = |path: &str| path.ends_with(".tgz");
                files.iter().any(|(path, bytes)| packed(path) || mentions_hook(bytes))
            }
            Source::Repository(_) => {
                let text = self.templates().await;
                text.map_or(true, |text| mentions_hook(text.as_bytes()))
            }
        };
        Rendered {
            has_hooks,
            takes_ownership: false,
        }
    }

    /// What the chart brings, hooks and all, as YAML.
    pub(super) async fn templates(&self) -> Result<String, RunError> {
        self.helm("template", self.with_values(), false).await
    }

    /// As [`Run::templates`], with more of helm's flags.
    #[cfg(feature = "hub")]
    pub(super) async fn templates_with(&self, flags: &[&str]) -> Result<String, RunError> {
        let mut arguments = self.with_values();
        arguments.extend(flags.iter().map(OsString::from));
        self.helm("template", arguments, false).await
    }

    /// The folder of this run.
    #[cfg(feature = "hub")]
    pub(super) fn home(&self) -> &Path {
        self.home.path()
    }

    /// The definitions in the chart's `crds/`, as YAML.
    pub(super) async fn definitions(&self) -> Result<String, RunError> {
        let chart = self.chart.iter().map(OsString::from);
        let arguments = [OsString::from("crds")].into_iter().chain(chart).collect();
        self.helm("show", arguments, false).await
    }

    /// Installs it.
    pub(super) async fn install(&self, wanted: &Wanted, rendered: &Rendered) -> Result<(), RunError> {
        let mut arguments = self.to_apply(wanted, rendered);
        let order = &wanted.order;
        flag(&mut arguments, order.create_namespace, "--create-namespace");
        flag(&mut arguments, order.replace, "--replace");
        flag(&mut arguments, order.crds != Crds::Create, "--skip-crds");
        self.helm("install", arguments, rendered.has_hooks).await.map(drop)
    }

    /// Brings it to another chart or other values.
    pub(super) async fn upgrade(&self, wanted: &Wanted, rendered: &Rendered) -> Result<(), RunError> {
        let mut arguments = self.to_apply(wanted, rendered);
        // What it has now is no part of what is wanted.
        arguments.push("--reset-values".into());
        arguments.push(format!("--history-max={}", wanted.order.history_max).into());
        self.helm("upgrade", arguments, rendered.has_hooks).await.map(drop)
    }

    /// Goes back to a revision.
    pub(super) async fn rollback(&self, number: u64, wanted: &Wanted) -> Result<(), RunError> {
        let mut arguments = vec![self.place.release.clone().into(), number.to_string().into()];
        arguments.push(self.waiting());
        arguments.push(format!("--history-max={}", wanted.order.history_max).into());
        flag(&mut arguments, wanted.order.disable_hooks, "--no-hooks");
        self.helm("rollback", arguments, !wanted.order.disable_hooks)
            .await
            .map(drop)
    }

    /// Takes it away. What is in `crds/`, and what Helm's own annotation keeps, stays.
    pub(super) async fn uninstall(&self, no_hooks: bool) -> Result<(), RunError> {
        let mut arguments = vec![
            self.place.release.clone().into(),
            "--ignore-not-found".into(),
            self.waiting(),
        ];
        flag(&mut arguments, no_hooks, "--no-hooks");
        self.helm("uninstall", arguments, !no_hooks).await.map(drop)
    }

    /// The objects of the latest revision, as YAML.
    pub(super) async fn manifest(&self) -> Result<String, RunError> {
        let arguments = vec!["manifest".into(), self.place.release.clone().into()];
        self.helm("get", arguments, false).await
    }

    fn to_apply(&self, wanted: &Wanted, rendered: &Rendered) -> Vec<OsString> {
        let mut arguments = self.with_values();
        let labels = format!("{LABEL_CONTENT}={},{LABEL_OWNER}={}", wanted.content, wanted.owner());
        arguments.extend(["--labels".into(), labels.into(), self.waiting()]);
        let order = &wanted.order;
        // Without hooks we wait ourselves, and no process does.
        let waits = rendered.has_hooks && (order.wait || order.wait_for_jobs);
        flag(&mut arguments, waits, "--wait");
        flag(&mut arguments, waits && order.wait_for_jobs, "--wait-for-jobs");
        flag(&mut arguments, order.disable_hooks, "--no-hooks");
        flag(&mut arguments, order.force, "--force");
        flag(&mut arguments, rendered.takes_ownership, "--take-ownership");
        arguments
    }

    fn with_values(&self) -> Vec<OsString> {
        let chart = self.chart.iter().map(OsString::from);
        let release = [OsString::from(&self.place.release)];
        release
            .into_iter()
            .chain(chart)
            .chain(["--values".into(), VALUES.into()])
            .collect()
    }

    fn waiting(&self) -> OsString {
        format!("--timeout={}s", self.timeout.as_secs()).into()
    }

    async fn helm(
        &self,
        command: &'static str,
        mut arguments: Vec<OsString>,
        is_long: bool,
    ) -> Result<String, RunError> {
        arguments.push(format!("--namespace={}", self.place.namespace).into());
        let call = Call {
            program: &self.program,
            home: self.home.path(),
            command,
            arguments,
            timeout: self.timeout + GRACE,
            is_long,
        };
        program::run(call).await.map_err(RunError::Helm)
    }
}

const VALUES: &str = "values.json";

/// The annotation that makes an object a hook.
fn mentions_hook(bytes: &[u8]) -> bool {
    bytes.windows(HOOK.len()).any(|window| window == HOOK)
}

const HOOK: &[u8] = b"helm.sh/hook";

fn flag(arguments: &mut Vec<OsString>, is_on: bool, name: &str) {
    if is_on {
        arguments.push(name.into());
    }
}

/// A folder that only this user enters.
fn home(folder: Option<&Path>, kubeconfig: &str) -> io::Result<TempDir> {
    let mut builder = tempfile::Builder::new();
    let builder = builder.prefix("flotilla-helm-");
    let home = match folder {
        Some(folder) => {
            std::fs::create_dir_all(folder)?;
            builder.tempdir_in(folder.canonicalize()?)
        }
        None => builder.tempdir(),
    }?;
    for name in ["cache", "config", "data"] {
        std::fs::create_dir(home.path().join(name))?;
    }
    write(&home.path().join("kubeconfig"), kubeconfig.as_bytes())?;
    Ok(home)
}

/// Writes a file that only this user reads.
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(bytes)
}

/// Files are written where waiting for a disk stops nobody.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|join| Err(io::Error::other(join)))
}

/// Takes away what runs left that were killed: values may be in it.
pub(super) fn clean(folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        if entry.file_name().to_string_lossy().starts_with("flotilla-helm-") {
            // Another run makes its own; what stays costs space alone.
            drop(std::fs::remove_dir_all(entry.path()));
        }
    }
}
