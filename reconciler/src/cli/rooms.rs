//! What room clusters have: as a hub says it now, or as a file has it of an earlier answer.
//!
//! Nobody's word is never room: without it, what is to be added by room stays unplaced, and that is said.

use std::cell::OnceCell;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, bail};
use clap::Args;
use render::schedule::Reports;
use render::{Fleet, Published, Snapshot};
use serde_json::Value;

use super::client::{ANSWER_BYTES_MAX, Questions, rooms};
use super::{output, wait_for};
use crate::hub::snapshot;

/// Where it comes from.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct RoomOptions {
    /// What clusters said of their room, as `flotilla get capacity -o json` wrote it; no hub is asked for it then.
    #[arg(long, value_name = "FILE")]
    reports: Option<PathBuf>,
}

/// What room clusters have, asked for once, and only where it decides something.
pub(super) struct Rooms<'a> {
    file: Option<&'a Path>,
    hub: Option<&'a Questions<'a>>,
    known: OnceCell<Known>,
}

/// What was told, and when; `None`: now.
#[derive(Clone, Default)]
struct Known {
    reports: Reports,
    at: Option<i64>,
}

impl<'a> Rooms<'a> {
    /// Read from a file, or else asked of a hub.
    pub(super) fn new(options: &'a RoomOptions, hub: Option<&'a Questions<'a>>) -> Self {
        Self {
            file: options.reports.as_deref(),
            hub,
            known: OnceCell::new(),
        }
    }

    /// Nobody knows it, and nobody is told so.
    pub(super) fn unknown() -> Self {
        Self {
            file: None,
            hub: None,
            known: OnceCell::from(Known::default()),
        }
    }

    /// As far as it is known; nothing for a fleet that is not placed by it.
    pub(super) fn of(&self, fleet: &Fleet) -> anyhow::Result<Reports> {
        if let Some(known) = self.known.get() {
            return Ok(known.reports.clone());
        }
        let known = match (self.file, self.hub) {
            // A file is read whether it is needed or not, so that a wrong one is told.
            (Some(file), _) => recorded(file)?,
            // What one revision does not need, another may.
            (None, _) if !fleet.looks_at_reports() => return Ok(Reports::default()),
            (None, None) => nobody("no hub is asked").into(),
            (None, Some(hub)) => asked(hub)?.into(),
        };
        Ok(self.known.get_or_init(|| known).reports.clone())
    }

    /// What a plan looks at, as of the time at which the rooms were told.
    pub(super) fn snapshot(&self, fleet: &Arc<Fleet>, previous: Arc<Published>) -> anyhow::Result<Snapshot> {
        let reports = self.of(fleet)?;
        Ok(Snapshot {
            reports,
            ..snapshot(fleet, previous, self.now())
        })
    }

    /// When what is known was told, in seconds since 1970: a record is as old as it says.
    pub(super) fn now(&self) -> i64 {
        let recorded = self.known.get().and_then(|known| known.at);
        recorded.unwrap_or_else(|| jiff::Timestamp::now().as_second())
    }
}

impl From<Reports> for Known {
    fn from(reports: Reports) -> Self {
        Self { reports, at: None }
    }
}

fn asked(hub: &Questions<'_>) -> anyhow::Result<Reports> {
    let answer = wait_for(hub.value(&rooms::path()))?;
    Ok(
        match answer.and_then(|answer| rooms::reports(answer).map_err(|error| error.to_string())) {
            Ok(reports) => reports,
            Err(why) => nobody(&why),
        },
    )
}

fn nobody(why: &str) -> Reports {
    let why = output::visible(why);
    output::tell(&format!(
        "note: what room clusters have is not known ({why}): replicas that are to be added by room are shown as unplaced\n"
    ));
    Reports::default()
}

fn recorded(file: &Path) -> anyhow::Result<Known> {
    let name = output::visible(&file.display().to_string());
    let unread = || format!("failed to read {name}");
    let opened = File::open(file).with_context(unread)?;
    let mut bytes = Vec::new();
    let most = ANSWER_BYTES_MAX as u64 + 1;
    opened.take(most).read_to_end(&mut bytes).with_context(unread)?;
    if bytes.len() > ANSWER_BYTES_MAX {
        bail!("{name} has more than {ANSWER_BYTES_MAX} bytes");
    }
    let known = serde_json::from_slice(&bytes)
        .map_err(anyhow::Error::from)
        .and_then(|record: Value| {
            let at = record["at"].as_i64();
            let reports = rooms::reports(record)?;
            Ok(Known { reports, at })
        });
    known.with_context(|| format!("{name} is no record of `flotilla get capacity -o json`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(text: &str) -> anyhow::Result<Reports> {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let file = folder.path().join("capacity.json");
        std::fs::write(&file, text).expect("it is writable");
        recorded(&file).map(|known| known.reports)
    }

    #[test]
    fn what_a_hub_tells_reads_as_the_same_from_a_file() {
        let reports = Reports {
            sequence: Some(7),
            ..Reports::default()
        };
        let text = serde_json::to_string(&reports).expect("reports are JSON");
        assert_eq!(record(&text).expect("it is a record"), reports);
    }

    #[test]
    fn a_file_that_is_no_record_is_an_error_and_never_no_room() {
        for text in [
            "",
            "[]",
            "{}",
            r#"{"kind": "List", "items": []}"#,
            r#"{"clusters": {"a": 1}}"#,
        ] {
            let error = record(text).expect_err(text);
            let line = crate::fault::line(error.as_ref());
            assert!(
                line.contains("is no record of `flotilla get capacity -o json`"),
                "{line}"
            );
        }
        let missing = recorded(Path::new("/nowhere/capacity.json"))
            .err()
            .expect("it is not there");
        assert!(crate::fault::line(missing.as_ref()).contains("failed to read /nowhere/capacity.json"));
    }
}
