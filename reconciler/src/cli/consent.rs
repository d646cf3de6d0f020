//! A person's word for what cannot be taken back: what it is about, and the question.

use std::io::{IsTerminal as _, Write as _};

use anyhow::{Context as _, bail};

use super::output;

/// Lines of each list that are shown; the rest is counted.
const LINES_SHOWN_MAX: usize = 20;

/// Shows a list with its title. `shortened` says what shows all of it; without it, all of it is shown here.
pub(super) fn show(title: &str, noun: &str, lines: &[String], shortened: Option<&str>) {
    let shown = match shortened {
        Some(_) => lines.len().min(LINES_SHOWN_MAX),
        None => lines.len(),
    };
    let count = output::counted(lines.len(), noun);
    output::tell(&format!("{}: {count}\n", output::visible(title)));
    for line in &lines[..shown] {
        output::tell(&format!("  {}\n", output::visible(line)));
    }
    if let (true, Some(all)) = (shown < lines.len(), shortened) {
        let all = output::visible(all);
        output::tell(&format!("  and {} more; {all}\n", lines.len() - shown));
    }
}

/// Asks; whatever is no yes is an error that says `refused`. Without a terminal nobody can be asked, and `absent` says
/// what to do then.
pub(super) fn ask(question: &str, absent: &'static str, refused: &'static str) -> anyhow::Result<()> {
    if !std::io::stdin().is_terminal() {
        bail!(absent);
    }
    output::tell(&format!("{question} [y/N] "));
    drop(std::io::stderr().flush());
    let mut answer = String::new();
    std::io::stdin()
        .read_line(&mut answer)
        .context("failed to read the answer")?;
    match answer.trim() {
        "y" | "Y" | "yes" => Ok(()),
        _ => bail!("{refused}; nothing was changed"),
    }
}
