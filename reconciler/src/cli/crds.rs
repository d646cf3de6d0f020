//! `flotilla crds`: the kinds of a fleet repository as CustomResourceDefinitions.

use std::process::ExitCode;

use serde_json::json;

use super::output;

/// How definitions are printed.
#[derive(Debug, clap::Args)]
pub(super) struct CrdsOptions {
    /// As YAML documents, or as one JSON list.
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum Output {
    /// YAML documents.
    #[default]
    Yaml,
    /// One JSON list.
    Json,
}

/// Prints them all.
pub(super) fn run(options: &CrdsOptions) -> ExitCode {
    let crds = render::schema::crds();
    output::print(&match options.output {
        Output::Yaml => crds
            .iter()
            .map(|crd| format!("---\n{}", render::yaml::write(crd)))
            .collect::<String>(),
        Output::Json => output::json(&json!({ "apiVersion": "v1", "kind": "List", "items": crds })),
    });
    ExitCode::SUCCESS
}
