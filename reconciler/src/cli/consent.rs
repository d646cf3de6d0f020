//! A person's word for what cannot be taken back: what it is about, and the question.

use std::io::{IsTerminal as _, Write as _};

use anyhow::{Context as _, bail};

use super::output;

/// Lines of each list that are shown; the rest is counted.
const LINES_SHOWN_MAX: usize = 20;

/// Shows a list with its title. `shortened` says what shows all of it; without it, all of it is shown here.
pub(super) fn show(title: &str, noun: &str, lines: &[String], shortened: Option<&str>) {
    output::tell(&text(title, noun, lines, shortened));
}

fn text(title: &str, noun: &str, lines: &[String], shortened: Option<&str>) -> String {
    let shown = match shortened {
        Some(_) => lines.len().min(LINES_SHOWN_MAX),
        None => lines.len(),
    };
    let count = output::counted(lines.len(), noun);
    let mut text = format!("{}: {count}\n", output::visible(title));
    for line in &lines[..shown] {
        text.push_str(&format!("  {}\n", output::visible(line)));
    }
    if let (true, Some(all)) = (shown < lines.len(), shortened) {
        let all = output::visible(all);
        text.push_str(&format!("  and {} more; {all}\n", lines.len() - shown));
    }
    text
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_list_is_shortened_and_says_what_shows_all_of_it() {
        let lines: Vec<String> = (1..=23).map(|number| format!("object {number}")).collect();
        let short = text("Beyond it", "object", &lines, Some("--all shows them"));
        assert!(short.starts_with("Beyond it: 23 objects\n  object 1\n"), "{short}");
        assert!(
            short.ends_with("  object 20\n  and 3 more; --all shows them\n"),
            "{short}"
        );
        let all = text("Beyond it", "object", &lines, None);
        assert!(all.ends_with("  object 22\n  object 23\n"), "{all}");
        let few = text("Beyond it", "object", &lines[..20], Some("--all shows them"));
        assert!(few.ends_with("  object 20\n"), "nothing is left out: {few}");
    }
}
