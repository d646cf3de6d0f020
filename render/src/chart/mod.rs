//! Charts: what a HelmChart orders, and the files of a chart that stands in the repository.
//!
//! In: a HelmChart as it is described, and a folder of a source tree. Out: a [`ChartOrder`] that whoever runs
//! helm can follow, the [`ChartFiles`] that travel with it, and out of what `helm template` printed a [`Preview`]. Merging override values is `localize`'s matter;
//! running helm, and reading a chart's templates, is deliberately not here.

mod files;
mod ignore;
mod order;
mod preview;

pub use files::{ChartFiles, InvalidChartFiles};
pub use order::{ChartOrder, ChartSource, Crds, HISTORY_DEFAULT, InvalidOrder, PullSecret, TIMEOUT_SECONDS_DEFAULT};

pub use preview::{
    Capabilities, PredictedObject, Preview, PreviewKey, PreviewMode, PreviewRequest, Previews, predicted,
};

pub(crate) use ignore::IgnoreRules;
pub(crate) use order::{folder_of, is_release_name, parse_digest};

/// The file that makes a folder a chart.
pub(crate) const CHART_FILE: &str = "Chart.yaml";

/// The file of a chart that says which of the folder's files are none of its own.
pub(crate) const IGNORE_FILE: &str = ".helmignore";
