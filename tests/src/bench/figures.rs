//! The form in which a figure is printed.

use std::io::Write as _;
use std::time::Duration;

use serde_json::json;

use super::goals;

/// The figures of one bench, printed as they come, so that a bench that breaks off has told what it knew.
#[derive(Debug)]
pub struct Figures {
    bench: &'static str,
}

impl Figures {
    /// No figures yet.
    pub(super) fn of(bench: &'static str) -> Self {
        Self { bench }
    }

    /// Prints one figure.
    pub fn print(&mut self, figure: &str, value: f64, unit: &str) -> anyhow::Result<()> {
        let mut line = json!({"bench": self.bench, "figure": figure, "value": rounded(value), "unit": unit});
        if let Some(goal) = goals::of(self.bench, figure) {
            line["goal"] = goal.to_string().into();
            line["met"] = goal.is_met_by(value).into();
        }
        writeln!(std::io::stdout().lock(), "{line}")?;
        Ok(())
    }

    /// Prints a time in milliseconds.
    pub fn print_ms(&mut self, figure: &str, time: Duration) -> anyhow::Result<()> {
        self.print(figure, time.as_secs_f64() * 1_000.0, "ms")
    }
}

/// Four digits say all that a measurement knows.
fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let digits = (3 - value.abs().log10().floor() as i32).max(0);
    let scale = 10_f64.powi(digits);
    (value * scale).round() / scale
}

/// The value below which the share `quantile` of `times` lies: 0.5 is the median, 0.99 the slowest but one in
/// a hundred. An empty list has none.
pub fn percentile(times: &mut [Duration], quantile: f64) -> Option<Duration> {
    times.sort_unstable();
    let rank = (quantile * times.len() as f64).ceil() as usize;
    times.get(rank.saturating_sub(1)).copied()
}
