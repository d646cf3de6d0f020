//! What long work says while it goes on: one line on stderr, on a terminal alone, gone when the work has ended.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// How often the line moves.
const TICK: Duration = Duration::from_millis(200);

/// Work that goes on until this is dropped.
pub(super) struct Progress(ProgressBar);

impl Progress {
    /// Says what is being done.
    pub(super) fn begin(doing: impl Into<String>) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}, {elapsed}") {
            bar.set_style(style);
        }
        let doing = super::output::visible(&doing.into());
        bar.set_message(doing);
        bar.enable_steady_tick(TICK);
        Self(bar)
    }

    /// Says what is being done now.
    pub(super) fn now(&self, doing: &str) {
        self.0.set_message(super::output::visible(doing));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
