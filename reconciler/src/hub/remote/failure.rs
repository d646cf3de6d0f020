//! What went wrong with a remote, found out from `git`'s own words: a named state with a remedy.
//!
//! Git has no other way to say it; the words are those of its C locale and of the servers people have. What is
//! not recognized is shown as it is.

use super::address::{RemoteUrl, masked};
use super::answers::{PushedRef, pushed};
use super::kind::FailureKind as Kind;
use crate::hub::git::{GitError, Said};
use crate::limits::GIT_WORDS_CHARS_MAX;

/// Why a remote could not be read or written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Which state that is.
    pub kind: Kind,
    /// Which remote, why, and what to do.
    pub message: String,
}

/// Words → kind; the first that is found counts, so that what is more particular comes first.
const WORDS: &[(&str, Kind)] = &[
    ("no space left on device", Kind::DiskFull),
    ("disk quota exceeded", Kind::DiskFull),
    ("remote host identification has changed", Kind::HostKeyChanged),
    ("host key verification failed", Kind::HostKeyUnknown),
    ("host key is known for", Kind::HostKeyUnknown),
    ("mismatched algorithms", Kind::FormatUnsupported),
    ("unknown object format", Kind::FormatUnsupported),
    ("unsupported object format", Kind::FormatUnsupported),
    ("marked as read only", Kind::WriteForbidden),
    ("does not have write access", Kind::WriteForbidden),
    ("not allowed to push code to this project", Kind::WriteForbidden),
    ("permission denied for writing", Kind::WriteForbidden),
    ("write access to repository not granted", Kind::WriteForbidden),
    ("insufficient permission for adding an object", Kind::WriteForbidden),
    ("service not enabled", Kind::WriteForbidden),
    ("authentication failed", Kind::AuthenticationFailed),
    ("could not read username", Kind::AuthenticationFailed),
    ("could not read password", Kind::AuthenticationFailed),
    ("returned error: 401", Kind::AuthenticationFailed),
    ("returned error: 403", Kind::AuthenticationFailed),
    ("permission denied (", Kind::AuthenticationFailed),
    ("too many authentication failures", Kind::AuthenticationFailed),
    ("server certificate verification failed", Kind::CertificateInvalid),
    ("ssl certificate problem", Kind::CertificateInvalid),
    ("certificate verify locations", Kind::CertificateInvalid),
    ("no alternative certificate subject name", Kind::CertificateInvalid),
    ("certificate subject name", Kind::CertificateInvalid),
    ("gnutls_handshake", Kind::CertificateInvalid),
    ("ssl routines", Kind::CertificateInvalid),
    ("could not resolve", Kind::HostNotFound),
    ("name or service not known", Kind::HostNotFound),
    ("temporary failure in name resolution", Kind::HostNotFound),
    ("operation too slow", Kind::TimedOut),
    ("timed out", Kind::TimedOut),
    ("timeout", Kind::TimedOut),
    ("returned error: 404", Kind::RepositoryNotFound),
    ("repository not found", Kind::RepositoryNotFound),
    ("does not appear to be a git repository", Kind::RepositoryNotFound),
    ("could not be found", Kind::RepositoryNotFound),
    ("' not found", Kind::RepositoryNotFound),
    ("returned error: 5", Kind::ServerError),
    ("does not support shallow", Kind::ShallowUnsupported),
    ("is this a git repository", Kind::NotGit),
    ("invalid server response", Kind::NotGit),
    ("unable to update url base from redirection", Kind::NotGit),
    ("protocol error", Kind::NotGit),
    ("not supported or disabled", Kind::NotGit),
    ("transport '", Kind::NotGit),
    (".lock': file exists", Kind::CopyLocked),
    ("connection refused", Kind::Unreachable),
    ("failed to connect", Kind::Unreachable),
    ("couldn't connect", Kind::Unreachable),
    ("no route to host", Kind::Unreachable),
    ("network is unreachable", Kind::Unreachable),
    ("connection reset", Kind::Unreachable),
    ("connection closed", Kind::Unreachable),
    ("empty reply from server", Kind::Unreachable),
    ("rpc failed", Kind::Unreachable),
    ("early eof", Kind::Unreachable),
    ("hung up unexpectedly", Kind::Unreachable),
    ("is corrupt", Kind::CopyDamaged),
    ("bad object", Kind::CopyDamaged),
    ("object file", Kind::CopyDamaged),
    ("unable to read tree", Kind::CopyDamaged),
    ("did not send all necessary objects", Kind::CopyDamaged),
    ("not a git repository", Kind::CopyDamaged),
    ("cannot be accessed", Kind::CopyDamaged),
    ("bad config line", Kind::CopyDamaged),
    ("missing blob", Kind::CopyDamaged),
    ("missing tree", Kind::CopyDamaged),
    ("bad packed-refs", Kind::CopyDamaged),
    ("unresolved deltas", Kind::CopyDamaged),
];

/// What a push says of a ref that somebody else moved.
const MOVED: &[&str] = &[
    "stale info",
    "fetch first",
    "non-fast-forward",
    "already exists",
    "cannot lock ref",
    "failed to lock",
    "failed to update ref",
    "incorrect old value",
];

/// The state that `git`'s words tell of.
pub(super) fn kind(stderr: &str) -> Kind {
    let text = stderr.to_lowercase();
    let found = WORDS.iter().find(|(words, _)| text.contains(words));
    found.map_or(Kind::Failed, |(_, kind)| *kind)
}

impl Failure {
    /// Of a command that could not read the remote, or this copy of it.
    pub(super) fn of_read(url: &RemoteUrl, said: &Said) -> Self {
        let kind = match kind(&said.stderr) {
            // It was only read: whoever may not read is not the one it should be.
            Kind::WriteForbidden => Kind::AuthenticationFailed,
            kind => kind,
        };
        Self::told(url, kind, &own_words(&said.stderr))
    }

    /// Of a push. A server answers for each ref.
    pub(super) fn of_push(url: &RemoteUrl, said: &Said) -> Self {
        let refused: Vec<_> = pushed(&said.stdout).into_iter().filter(|r| r.is_refused).collect();
        let is_permission = kind(&said.stderr) == Kind::WriteForbidden;
        if let Some(first) = refused.iter().find(|r| !is_for_another(r)) {
            let kind = match first.summary.to_lowercase() {
                _ if is_permission => Kind::WriteForbidden,
                summary if MOVED.iter().any(|words| summary.contains(words)) => Kind::LeaseLost,
                _ => Kind::PushRefused,
            };
            let server = server_words(&said.stderr);
            let words = format!("{} {}", first.name, first.summary);
            let words = if server.is_empty() {
                words
            } else {
                format!("{words}; the server says: {server}")
            };
            return Self::told(url, kind, &words);
        }
        let kind = match kind(&said.stderr) {
            // Reading had gone well with the same login.
            Kind::AuthenticationFailed if said.stderr.contains("error: 403") => Kind::WriteForbidden,
            kind => kind,
        };
        Self::told(url, kind, &own_words(&said.stderr))
    }

    /// Of a command that did not come to its end.
    pub(super) fn of_run(url: &RemoteUrl, error: &GitError) -> Self {
        let kind = match error {
            GitError::Timeout { .. } => Kind::TimedOut,
            GitError::NotRun(_) | GitError::TooMuch { .. } | GitError::Failed { .. } => Kind::Failed,
        };
        Self::told(url, kind, &crate::fault::line(error))
    }

    /// Of the copy on this disk.
    pub(super) fn of_copy(url: &RemoteUrl, said: &Said) -> Self {
        let kind = match kind(&said.stderr) {
            kind @ (Kind::DiskFull | Kind::CopyLocked) => kind,
            _ => Kind::CopyDamaged,
        };
        Self::told(url, kind, &own_words(&said.stderr))
    }

    /// In a state that was found out otherwise.
    pub(super) fn told(url: &RemoteUrl, kind: Kind, words: &str) -> Self {
        let (what, remedy) = (kind.sentence(), kind.remedy(url));
        let words = if words.is_empty() {
            String::new()
        } else {
            format!(": {}", masked(words))
        };
        let remedy = if remedy.is_empty() {
            String::new()
        } else {
            format!("; {remedy}")
        };
        Self {
            kind,
            message: format!("{what} for {url}{words}{remedy}"),
        }
    }
}

/// A ref that is refused only since another one is.
fn is_for_another(pushed: &PushedRef) -> bool {
    pushed.summary.contains("atomic push failed") || pushed.summary.contains("atomic transaction failed")
}

/// What the server wrote, without its progress.
fn server_words(stderr: &str) -> String {
    let progress = [
        "Processing changes",
        "Resolving deltas",
        "Counting objects",
        "Compressing objects",
    ];
    let lines = stderr
        .lines()
        .filter_map(|line| line.strip_prefix("remote:"))
        .map(str::trim)
        .filter(|line| !line.is_empty() && !progress.iter().any(|words| line.starts_with(words)));
    shortened(&lines.collect::<Vec<_>>().join(" "))
}

/// What `git`, `ssh` and the server wrote that says why: advice that follows every failure is left out.
fn own_words(stderr: &str) -> String {
    let advice = [
        "Please make sure you have the correct access rights",
        "and the repository exists.",
        "fatal: Could not read from remote repository.",
        "hint:",
        "error: failed to push some refs",
        "@@@@",
        "Cloning into",
    ];
    let lines = stderr
        .lines()
        .map(|line| line.strip_prefix("remote:").unwrap_or(line).trim())
        .map(|line| line.trim_start_matches("fatal: ").trim_start_matches("error: "))
        .filter(|line| {
            !line.is_empty()
                && !advice
                    .iter()
                    .any(|words| line.starts_with(words) || words.ends_with(line))
        });
    shortened(&lines.collect::<Vec<_>>().join(" "))
}

fn shortened(text: &str) -> String {
    let visible: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    match visible.char_indices().nth(GIT_WORDS_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &visible[..end]),
        None => visible,
    }
}
