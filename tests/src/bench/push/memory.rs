//! Memory of a process, as the kernel accounts for it.

use std::fs;

use anyhow::Context as _;

/// Resident memory in MiB.
pub(in crate::bench) fn resident_mib(process: u32) -> anyhow::Result<f64> {
    let path = format!("/proc/{process}/status");
    let status = fs::read_to_string(&path).with_context(|| format!("failed to read {path}"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    Ok(kib.with_context(|| format!("{path} names no VmRSS"))? / 1024.0)
}
