//! `flotilla completion`: what a shell needs to complete our words.

use std::process::ExitCode;

use clap_complete::{Shell, generate};

use super::output;

/// For which shell.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
bash:  source <(flotilla completion bash)
zsh:   flotilla completion zsh > \"${fpath[1]}/_flotilla\"
fish:  flotilla completion fish > ~/.config/fish/completions/flotilla.fish")]
pub(super) struct CompletionOptions {
    shell: Shell,
}

/// Prints it.
pub(super) fn run(options: &CompletionOptions, mut command: clap::Command) -> ExitCode {
    let mut script = Vec::new();
    generate(options.shell, &mut command, "flotilla", &mut script);
    output::print(&String::from_utf8_lossy(&script));
    ExitCode::SUCCESS
}
