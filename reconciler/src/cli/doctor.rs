//! `flotilla doctor`: what is wrong where an agent runs, step by step.

use std::process::ExitCode;

use clap::Args;

use super::place::Place;
use super::{exit, output};
use crate::agent::doctor::{Patient, Step, Verdict, examine};
use crate::agent::{Allow, Policy};
use crate::fault::line;

/// The flags and the environment of the agent that is looked at.
#[derive(Debug, Args)]
#[command(after_help = exit::HELP_DOCTOR)]
pub(super) struct Doctor {
    #[command(flatten)]
    place: Place,
    /// What the agent lends to hubs, as in `flotilla agent`.
    #[arg(long, value_name = "WHAT", env = "FLOTILLA_ALLOW", value_delimiter = ',')]
    allow: Vec<Allow>,
}

/// Looks, and says what it saw.
pub(super) async fn run(arguments: Doctor) -> anyhow::Result<ExitCode> {
    let place = arguments.place;
    let cluster = place.cluster()?;
    let api_server = place.api_server().await;
    let patient = Patient {
        key: place.key(&cluster, api_server.as_ref()).await?,
        journal: place.journal(&cluster),
        way: place.way.way()?,
        policy: Policy::of(arguments.allow),
        client: api_server.map(|server| server.client).map_err(|error| line(&error)),
        hubs: place.hubs,
        hub_keys: place.hub_keys,
        cluster,
    };
    let rooms = examine(&patient).await;
    let mut text = String::new();
    for (room, steps) in &rooms {
        output::write(&mut text, format_args!("{room}\n"));
        steps.iter().for_each(|step| written(&mut text, step));
    }
    output::print(&text);
    let is_bad = |step: &Step| matches!(step.verdict, Verdict::Bad { .. });
    match rooms.iter().flat_map(|(_, steps)| steps).any(is_bad) {
        true => Ok(ExitCode::FAILURE),
        false => Ok(ExitCode::SUCCESS),
    }
}

fn written(text: &mut String, step: &Step) {
    let (word, what, hint) = match &step.verdict {
        Verdict::Good(what) => ("ok", what.as_str(), None),
        Verdict::Odd { what, hint } => ("odd", what.as_str(), Some(hint)),
        Verdict::Bad { what, hint } => ("FAILED", what.as_str(), Some(hint)),
        Verdict::NotTried => ("-", "not tried", None),
    };
    output::write(
        text,
        format_args!("  {word:<7}{:<13}{}\n", step.name, output::visible(what)),
    );
    if let Some(hint) = hint {
        output::write(text, format_args!("  {:<20}hint: {}\n", "", output::visible(hint)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_has_a_line_and_what_went_wrong_a_hint() {
        let mut text = String::new();
        for verdict in [
            Verdict::Good("hub is 10.0.0.1".to_owned()),
            Verdict::Bad {
                what: "it refuses".to_owned(),
                hint: "start it".to_owned(),
            },
            Verdict::NotTried,
        ] {
            written(&mut text, &Step { name: "name", verdict });
        }
        let expected = "  ok     name         hub is 10.0.0.1
  FAILED name         it refuses
                      hint: start it
  -      name         not tried
";
        assert_eq!(text, expected);
    }
}
