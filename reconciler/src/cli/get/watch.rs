//! `--watch`: goes on with what changes, over connections that come and go.

use std::process::ExitCode;
use std::time::Duration;

use http::StatusCode;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::printer::Printer;
use super::{ClientError, GetOptions, output};

/// How long a hub may be away before the watch ends: a restart takes a few seconds.
const AWAY_MAX: Duration = Duration::from_secs(60);

/// Between two attempts.
const RETRY: Duration = Duration::from_millis(500);

/// How one connection's watch ended.
enum Ended {
    /// Its time was over.
    InGoodOrder,
    /// The version that it began from is forgotten, as after a restart of the hub.
    TooOld,
    /// Nobody reads what is printed.
    Unread,
}

/// Shows changes until somebody stops it. What was lost is taken up again from the last version that was
/// shown; where the hub has forgotten that one, everything is shown anew.
pub(super) async fn follow(
    options: &GetOptions,
    path: &str,
    list: &Value,
    printer: &mut Printer<'_>,
) -> Result<ExitCode, ClientError> {
    let mut from = list_version(list);
    let mut away_since: Option<Instant> = None;
    loop {
        let before = from.clone();
        let again = match changes(options, path, &mut from, printer).await {
            Ok(Ended::Unread) => return Ok(ExitCode::SUCCESS),
            Ok(Ended::InGoodOrder) => Ok(true),
            Ok(Ended::TooOld) => anew(options, path, &mut from, printer).await,
            Err(error) => Err(error),
        };
        match again {
            Ok(true) => away_since = None,
            Ok(false) => return Ok(ExitCode::SUCCESS),
            Err(error) if error.may_pass() => {
                if from != before {
                    away_since = None;
                }
                let since = match away_since {
                    Some(since) => since,
                    None => {
                        let line = output::visible(&crate::fault::line(&error));
                        output::tell(&format!("warning: {line}; trying again\n"));
                        *away_since.insert(Instant::now())
                    }
                };
                if since.elapsed() > AWAY_MAX {
                    return Err(error);
                }
            }
            Err(error) => return Err(error),
        }
        sleep(RETRY).await;
    }
}

/// Shows changes over one connection.
async fn changes(
    options: &GetOptions,
    path: &str,
    from: &mut String,
    printer: &mut Printer<'_>,
) -> Result<Ended, ClientError> {
    let separator = if path.contains('?') { '&' } else { '?' };
    let watched = format!("{path}{separator}watch=true&allowWatchBookmarks=true&resourceVersion={from}");
    let mut lines = options.server.lines(&watched, options.output.accept()).await?;
    while let Some(event) = lines.next().await? {
        let object = &event["object"];
        match event["type"].as_str() {
            Some("ERROR") if object["code"] == StatusCode::GONE.as_u16() => return Ok(Ended::TooOld),
            Some("ERROR") => {
                let message = object["message"].as_str().unwrap_or("the watch failed").to_owned();
                let code = object["code"].as_u64().and_then(|code| u16::try_from(code).ok());
                let status = code.and_then(|code| StatusCode::from_u16(code).ok());
                let status = status.unwrap_or(StatusCode::BAD_REQUEST);
                return Err(ClientError::Refused { status, message });
            }
            Some("BOOKMARK") => {}
            _ if output::print(&printer.event(object)) => {}
            _ => return Ok(Ended::Unread),
        }
        if let Some(version) = version(object) {
            *from = version;
        }
    }
    Ok(Ended::InGoodOrder)
}

/// Lists again. False when nobody reads what is printed.
async fn anew(
    options: &GetOptions,
    path: &str,
    from: &mut String,
    printer: &mut Printer<'_>,
) -> Result<bool, ClientError> {
    let list = options.server.value(path, options.output.accept()).await?;
    *from = list_version(&list);
    Ok(output::print(&printer.list(&list, false)))
}

/// The version of a list or table as a whole.
fn list_version(list: &Value) -> String {
    let version = list.pointer("/metadata/resourceVersion").and_then(Value::as_str);
    version.unwrap_or_default().to_owned()
}

/// The version of an event's object, which in a table is its one row's.
fn version(object: &Value) -> Option<String> {
    let row = object.pointer("/rows/0/object/metadata/resourceVersion");
    let found = row.or_else(|| object.pointer("/metadata/resourceVersion"));
    found.and_then(Value::as_str).map(str::to_owned)
}
