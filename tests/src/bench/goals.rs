//! What each figure must reach on two cores, printed beside it. A figure that misses its goal is shown as it is;
//! whether that is a failure is for its reader to say.

/// A goal: an upper or a lower bound.
#[derive(Clone, Copy, Debug)]
pub(super) enum Goal {
    AtMost(f64),
    AtLeast(f64),
}

impl Goal {
    /// Whether a value reaches it.
    pub(super) fn is_met_by(self, value: f64) -> bool {
        match self {
            Self::AtMost(bound) => value <= bound,
            Self::AtLeast(bound) => value >= bound,
        }
    }
}

impl std::fmt::Display for Goal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::AtMost(bound) => write!(f, "<={bound}"),
            Self::AtLeast(bound) => write!(f, ">={bound}"),
        }
    }
}

/// Bench, figure, goal, in the figure's unit.
const GOALS: &[(&str, &str, Goal)] = &[
    ("apply", "first_apply_vs_bare_loop", Goal::AtLeast(0.8)),
    ("apply", "noop_resync_2000", Goal::AtMost(1_000.0)),
    ("apply", "noop_resync_writes", Goal::AtMost(0.0)),
    ("apply", "drift_corrected_p50", Goal::AtMost(40.0)),
    ("apply", "drift_corrected_p99", Goal::AtMost(250.0)),
    ("apply", "agent_rss_5000", Goal::AtMost(60.0)),
    ("fleet", "hundred_clusters_p90", Goal::AtMost(2.0)),
    ("fleet", "thousand_clusters_p90", Goal::AtMost(15.0)),
    ("fleet", "hub_restart_100k", Goal::AtMost(15.0)),
    ("fleet", "hub_rss_1000x100", Goal::AtMost(500.0)),
    ("push", "push_to_applied_p50", Goal::AtMost(100.0)),
    ("push", "push_to_applied_p99", Goal::AtMost(400.0)),
    ("push", "bulk_200_units", Goal::AtMost(3.0)),
    ("push", "touch_one_of_1000", Goal::AtMost(300.0)),
    ("push", "touch_one_requests", Goal::AtMost(10.0)),
    ("push", "restart_600", Goal::AtMost(1.0)),
    ("push", "hub_rss", Goal::AtMost(40.0)),
    ("push", "agent_rss_idle", Goal::AtMost(20.0)),
    ("render", "cold_1000_units", Goal::AtMost(2_000.0)),
    ("render", "touch_one_of_1000", Goal::AtMost(50.0)),
    ("rendered", "one_unit_change_1000_clusters", Goal::AtMost(64.0)),
    ("rendered", "packed_after_1000_commits", Goal::AtMost(50.0)),
    ("schedule", "cold_1000x1000", Goal::AtMost(2_000.0)),
    ("schedule", "one_report", Goal::AtMost(50.0)),
    ("schedule", "one_subscription", Goal::AtMost(20.0)),
    ("schedule", "cold_10000x100", Goal::AtMost(5_000.0)),
    ("schedule", "rss_1000x1000", Goal::AtMost(300.0)),
    ("tunnel", "one_stream_vs_raw_tls", Goal::AtLeast(0.6)),
    ("tunnel", "hundred_streams_vs_raw_tls", Goal::AtLeast(0.5)),
    ("tunnel", "whole_path_vs_raw_tls", Goal::AtLeast(0.35)),
    ("tunnel", "cpu_vs_raw_tls", Goal::AtMost(2.6)),
    ("tunnel", "small_request_added_p50", Goal::AtMost(60.0)),
    ("tunnel", "request_under_bulk_p99_vs_path_rtt", Goal::AtMost(1.15)),
    ("tunnel", "bulk_on_slow_link", Goal::AtLeast(0.9)),
    ("tunnel", "idle_tunnel_hub", Goal::AtMost(45.0)),
    ("tunnel", "handshakes", Goal::AtLeast(800.0)),
    ("tunnel", "kubectl_list_vs_direct", Goal::AtMost(1.15)),
    ("tunnel", "parallel_gets_vs_direct", Goal::AtLeast(0.8)),
    ("tunnel", "one_get_added_p50", Goal::AtMost(1.0)),
    ("tunnel", "blackhole_noticed", Goal::AtMost(25.0)),
];

/// The goal of a figure; some figures have none.
pub(super) fn of(bench: &str, figure: &str) -> Option<Goal> {
    let (.., goal) = GOALS
        .iter()
        .find(|(of_bench, of_figure, _)| (*of_bench, *of_figure) == (bench, figure))?;
    Some(*goal)
}
