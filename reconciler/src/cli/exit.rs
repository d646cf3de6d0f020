//! Exit codes: one list, which every command and its `--help` keep to.

use std::process::ExitCode;

/// Wrong usage or configuration, as sysexits has it.
pub(super) const USAGE: u8 = 64;

/// Nobody gave an answer that could be read: an outage, which is neither a difference nor a "no".
pub(super) const UNAVAILABLE: u8 = 69;

/// What `plan` says on an error or an Error finding, so that 1 stays "something changes".
#[cfg(feature = "hub")]
pub(super) const PLAN_ERROR: u8 = 2;

/// What `verify` says where nothing is known to differ and not all could be compared.
#[cfg(feature = "hub")]
pub(super) const VERIFY_UNDECIDED: u8 = 2;

/// What `drift` says where no answer about differences could be given, so that 1 stays "something differs".
pub(super) const DRIFT_ERROR: u8 = 2;

/// For the `--help` of the whole.
pub(super) const HELP: &str = "\
Exit codes:
  0   done; of plan: nothing changes; of status: all is ready; of drift and simulate: nothing differs
  1   failed or not found; of plan: something changes; of status: something is not ready; of verify, drift
      and simulate: something differs
  2   of plan: an error, or an Error finding; of verify: it could not be decided; of drift and simulate: an error
  64  wrong usage or configuration
  69  no hub answers, or what answers is no hub";

/// For the `--help` of commands that ask the hub.
pub(super) const HELP_ASKING: &str = "\
Exit codes: 0 done, 1 not found or refused, 64 wrong usage, 69 no hub answers";

/// For the `--help` of `doctor`.
#[cfg(feature = "agent")]
pub(super) const HELP_DOCTOR: &str = "\
Exit codes: 0 every step went well, 1 one went wrong, 64 wrong usage";

/// For the `--help` of `tunnel ping`.
pub(super) const HELP_PING: &str = "\
Exit codes: 0 agent and API server answer, 1 one of them does not, 64 wrong usage, 69 no hub answers";

/// For the `--help` of `status`.
pub(super) const HELP_STATUS: &str = "\
Exit codes: 0 all is ready, 1 something is not ready, 64 wrong usage, 69 no hub answers";

/// For the `--help` of `drift`.
pub(super) const HELP_DRIFT: &str = "\
Exit codes: 0 nothing differs, 1 something differs, 2 an error, 64 wrong usage, 69 no hub answers";

/// For the `--help` of `drift export`.
pub(super) const HELP_DRIFT_EXPORT: &str = "\
Exit codes: 0 written, or nothing differs, 2 an error, 64 wrong usage, 69 no hub answers";

/// For the `--help` of `plan`.
#[cfg(feature = "hub")]
pub(super) const HELP_PLAN: &str = "\
Exit codes: 0 nothing changes, 1 something changes, 2 an error or an Error finding, 64 wrong usage";

/// For the `--help` of `simulate`.
#[cfg(feature = "hub")]
pub(super) const HELP_SIMULATE: &str = "\
Exit codes: 0 nothing differs, 1 something differs, 2 an error, 64 wrong usage";

/// For the `--help` of `rebalance`.
#[cfg(feature = "hub")]
pub(super) const HELP_REBALANCE: &str = "\
Exit codes: 0 nothing would move, or it is committed, 1 something would move, 2 an error, 64 wrong usage";

/// For the `--help` of `verify`.
#[cfg(feature = "hub")]
pub(super) const HELP_VERIFY: &str = "\
Exit codes: 0 every byte is the same, 1 something differs, 2 it could not be decided, 64 wrong usage";

/// Wrong usage.
pub(super) fn usage() -> ExitCode {
    ExitCode::from(USAGE)
}
