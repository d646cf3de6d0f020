//! What a process tells of itself: the subscriber that writes its log to stderr, and its name.

use tracing::{Level, Metadata};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// Reads a filter in the form of tracing's `EnvFilter`, and gives it back; what is wrong with it, if it is none.
pub fn filter(text: &str) -> Result<String, String> {
    // A single word that is no level is read as the name of a crate, of which nothing would ever be logged.
    let looks_like_a_level = !text.contains(['=', ',', ':', '_', '[']);
    let levels = ["off", "error", "warn", "info", "debug", "trace"];
    if looks_like_a_level && !levels.contains(&text.to_ascii_lowercase().as_str()) {
        return Err(format!("it is none of {}, nor CRATE=LEVEL", levels.join(", ")));
    }
    match EnvFilter::try_new(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(error) => Err(format!(
            "{error}; a filter is like info or flotilla_reconciler::apply=debug"
        )),
    }
}

/// Starts logging to stderr. `filter` is one that [`filter`] can read; otherwise it counts as `info`.
/// A second call does nothing.
pub fn start(filter: &str, format: LogFormat) {
    // kube's client logs each request that fails, and so do we, with what it was for. Who asks for its words by
    // name gets them.
    let quiet = if filter.contains("kube") {
        ""
    } else {
        ",kube_client=off"
    };
    let filter = EnvFilter::try_new(format!("{filter}{quiet}")).unwrap_or_else(|_| EnvFilter::new("info"));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()));
    let discreet = filter_fn(is_discreet);
    let started = match format {
        LogFormat::Text => builder.with_target(false).finish().with(discreet).try_init(),
        LogFormat::Json => builder.json().finish().with(discreet).try_init(),
    };
    // A process that has a subscriber already (a test) keeps it.
    drop(started);
}

/// Whether a line may be written, whatever the filter asks for: below `info`, libraries print the very bytes that they
/// send, and so the values of Secrets.
fn is_discreet(line: &Metadata<'_>) -> bool {
    *line.level() <= Level::INFO || line.target().starts_with("flotilla")
}

/// Milliseconds since then, for the field `elapsed_ms`.
pub fn elapsed_ms(since: tokio::time::Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// A name for this process that no other has: host, process and start.
pub fn process_name() -> String {
    let host = std::env::var("HOSTNAME")
        .ok()
        .filter(|host| !host.is_empty())
        .unwrap_or_else(|| "flotilla".to_owned());
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default();
    format!("{host}-{}-{:x}", std::process::id(), now.as_millis())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_that_would_log_nothing_is_refused() {
        for good in [
            "info",
            "WARN",
            "flotilla_reconciler::apply=debug",
            "info,flotilla_tunnel=trace",
            "off",
        ] {
            assert_eq!(filter(good).as_deref(), Ok(good));
        }
        for bad in [
            "inof",
            "",
            "info,flotilla_reconciler=loud",
            "flotilla_reconciler=debug=info",
        ] {
            assert!(filter(bad).is_err(), "{bad:?}");
        }
    }
}
