//! Helm: its processes, charts, releases, and predictions of what charts bring.

use std::time::Duration;

/// Processes of helm at a time: each takes some 100 MiB for a chart of ordinary size, and an agent runs on
/// small machines.
pub const HELM_PROCESSES_MAX: usize = 2;

/// Of [`HELM_PROCESSES_MAX`], those that may wait for hooks, so that one that hangs leaves room for others.
pub const HELM_LONG_PROCESSES_MAX: usize = 1;

/// One run of helm, and how long a release's objects may take to be healthy, where the HelmChart says nothing:
/// Helm's own default.
pub const HELM_TIMEOUT: Duration = Duration::from_secs(300);

/// The longest time that a HelmChart may ask for: a run holds one of two places.
pub const HELM_TIMEOUT_MAX: Duration = Duration::from_secs(3_600);

/// Tries of one content: more would only repeat what failed.
pub const HELM_ATTEMPTS: u32 = 3;

/// The wait after the first try that failed; each further one is four times longer.
pub const HELM_RETRY_FIRST: Duration = Duration::from_secs(10);

/// How long a content that failed too often rests, unless something changes.
pub const HELM_REST: Duration = Duration::from_secs(3_600);

/// Bytes of helm's output that are used: a manifest is at most what fits a Secret of 1 MiB, unpacked.
pub const HELM_OUTPUT_BYTES_MAX: usize = 16 << 20;

/// Bytes of helm's error output that are kept: the last ones, which say why it ended.
pub const HELM_STDERR_BYTES_MAX: usize = 16 << 10;

/// Connections of helm to its loopback address: client-go keeps a few open.
pub const HELM_CONNECTIONS_MAX: usize = 32;

/// Bytes of one request of helm: an API server takes at most 3 MiB.
pub const HELM_REQUEST_BYTES_MAX: usize = 4 << 20;

/// Bytes of a chart's archive: Helm's own releases cannot hold more than 1 MiB of it; the rest is files that
/// a chart carries along.
pub const CHART_BYTES_MAX: usize = 32 << 20;

/// Bytes of a repository's index: the largest public ones are some 25 MiB.
pub const CHART_INDEX_BYTES_MAX: usize = 64 << 20;

/// Bytes of the part of an index that is about one chart, which is read into memory: a thousand versions.
pub const CHART_ENTRY_BYTES_MAX: usize = 8 << 20;

/// Bytes of a registry's answers other than charts: manifests, tokens, pages of tags.
pub const REGISTRY_ANSWER_BYTES_MAX: usize = 4 << 20;

/// Pages of a registry's tags that are read for the newest version.
pub const REGISTRY_PAGES_MAX: usize = 20;

/// Redirects that are followed for one file.
pub const CHART_REDIRECTS_MAX: usize = 5;

/// One exchange with a chart repository, its body included.
pub const CHART_FETCH_TIMEOUT: Duration = Duration::from_secs(120);

/// The first wait after a chart could not be fetched, and the longest one: it is tried for ever, since the
/// network comes back without telling.
pub const CHART_RETRY_FIRST: Duration = Duration::from_secs(5);
/// See [`CHART_RETRY_FIRST`].
pub const CHART_RETRY_MAX: Duration = Duration::from_secs(300);

/// Archives of charts that an agent keeps, and their bytes together: those of the releases of a cluster and
/// the ones before them. The oldest go first.
pub const CHARTS_KEPT_MAX: usize = 64;
/// See [`CHARTS_KEPT_MAX`].
pub const CHARTS_KEPT_BYTES_MAX: u64 = 128 << 20;

/// News of releases that wait to be taken in; a full queue makes the releases wait.
pub const RELEASE_NEWS_MAX: usize = 64;

/// Objects of one release that are looked at and kept right; the largest charts have some hundreds.
pub const RELEASE_OBJECTS_MAX: usize = 2_000;

/// Objects of one release that are asked for at a time: releases run beside the pass, and leave it its share.
pub const HELM_LOOK_CONCURRENCY: usize = 4;

/// How long a release whose objects are well rests before they are looked at again.
pub const RELEASE_LOOK: Duration = Duration::from_secs(60);

/// How long the kinds that a cluster serves are believed, when a release lacks one of them.
pub const KINDS_REST: Duration = Duration::from_secs(10);

/// One run of helm for a prediction: it waits for nothing, and a chart that takes longer is not predicted.
pub const PREVIEW_TIMEOUT: Duration = Duration::from_secs(20);

/// Runs for one prediction: a chart may bring objects of kinds that only their operator's chart defines, and each run
/// names all that are not found.
pub const PREVIEW_TRIES_MAX: usize = 3;

/// Characters of helm's words in a finding.
pub const PREVIEW_WORDS_MAX: usize = 600;

/// Predictions that are remembered: of 500 charts on clusters of four versions, some KiB each.
pub const PREVIEWS_MAX: usize = 2_000;

/// How long a plan waits for predictions before what is known is decided; a chart whose prediction comes later is a
/// decision of its own.
pub const PREVIEW_PATIENCE: Duration = Duration::from_secs(10);

/// Clusters for which `flotilla plan` predicts charts: one request to the hub each, and most have one version.
pub const PLAN_PREDICTED_CLUSTERS_MAX: usize = 20;

/// Predictions of one `flotilla plan`: each is two runs of helm, of about a second.
pub const PLAN_PREVIEWS_MAX: usize = 50;

/// How long `flotilla plan` predicts; what is not done by then is said.
pub const PLAN_PREVIEWS_TIMEOUT: Duration = Duration::from_secs(60);
