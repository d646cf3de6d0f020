//! What went wrong with a remote, found out from `git`'s own words: a named state with a remedy.
//!
//! Git has no other way to say it; the words are those of its C locale and of the servers people have. What is
//! not recognized is shown as it is.

use super::address::{RemoteUrl, Scheme, masked};
use super::answers::{PushedRef, pushed};
use crate::hub::git::{GitError, Said};

/// Characters of a server's words in a message.
const WORDS_CHARS_MAX: usize = 300;

/// Why a remote could not be read or written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Which state that is.
    pub kind: FailureKind,
    /// Which remote, why, and what to do.
    pub message: String,
}

/// The states that a remote can be in, other than well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// The host does not take who we say we are.
    AuthenticationFailed,
    /// The host knows us, and does not let us write.
    WriteForbidden,
    /// The server's own rules refuse the push: a protected branch, a hook.
    PushRefused,
    /// Somebody moved the ref first.
    LeaseLost,
    /// The host's key is not among those that are known.
    HostKeyUnknown,
    /// The host has another key than the one that is known.
    HostKeyChanged,
    /// The name of the host has no address.
    HostNotFound,
    /// Nobody answers there.
    Unreachable,
    /// The host's certificate is not to be trusted.
    CertificateInvalid,
    /// It took too long.
    TimedOut,
    /// The host has no such repository, or hides it.
    RepositoryNotFound,
    /// The host answers, and not as Git does.
    NotGit,
    /// The host says that it is in trouble itself.
    ServerError,
    /// The repository has a form that we do not read.
    FormatUnsupported,
    /// The server cannot leave history out.
    ShallowUnsupported,
    /// The copy on this disk is damaged.
    CopyDamaged,
    /// A lock is left in the copy.
    CopyLocked,
    /// This disk is full.
    DiskFull,
    /// Anything else.
    Failed,
}

use FailureKind as Kind;

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

    fn told(url: &RemoteUrl, kind: Kind, words: &str) -> Self {
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

impl FailureKind {
    /// All of them.
    pub const ALL: [Self; 19] = [
        Self::AuthenticationFailed,
        Self::WriteForbidden,
        Self::PushRefused,
        Self::LeaseLost,
        Self::HostKeyUnknown,
        Self::HostKeyChanged,
        Self::HostNotFound,
        Self::Unreachable,
        Self::CertificateInvalid,
        Self::TimedOut,
        Self::RepositoryNotFound,
        Self::NotGit,
        Self::ServerError,
        Self::FormatUnsupported,
        Self::ShallowUnsupported,
        Self::CopyDamaged,
        Self::CopyLocked,
        Self::DiskFull,
        Self::Failed,
    ];

    /// A CamelCase word for tools.
    pub fn reason(self) -> &'static str {
        match self {
            Self::AuthenticationFailed => "AuthenticationFailed",
            Self::WriteForbidden => "WriteForbidden",
            Self::PushRefused => "PushRefused",
            Self::LeaseLost => "LeaseLost",
            Self::HostKeyUnknown => "HostKeyUnknown",
            Self::HostKeyChanged => "HostKeyChanged",
            Self::HostNotFound => "HostNotFound",
            Self::Unreachable => "Unreachable",
            Self::CertificateInvalid => "CertificateInvalid",
            Self::TimedOut => "TimedOut",
            Self::RepositoryNotFound => "RepositoryNotFound",
            Self::NotGit => "NotGit",
            Self::ServerError => "ServerError",
            Self::FormatUnsupported => "FormatUnsupported",
            Self::ShallowUnsupported => "ShallowUnsupported",
            Self::CopyDamaged => "CopyDamaged",
            Self::CopyLocked => "CopyLocked",
            Self::DiskFull => "DiskFull",
            Self::Failed => "GitFailed",
        }
    }

    /// Whether it stays so until a person changes something. It is tried again all the same.
    pub fn is_lasting(self) -> bool {
        match self {
            Self::AuthenticationFailed
            | Self::WriteForbidden
            | Self::PushRefused
            | Self::HostKeyUnknown
            | Self::HostKeyChanged
            | Self::CertificateInvalid
            | Self::RepositoryNotFound
            | Self::NotGit
            | Self::FormatUnsupported
            | Self::ShallowUnsupported
            | Self::DiskFull => true,
            Self::LeaseLost
            | Self::HostNotFound
            | Self::Unreachable
            | Self::TimedOut
            | Self::ServerError
            | Self::CopyDamaged
            | Self::CopyLocked
            | Self::Failed => false,
        }
    }

    /// Whether a condition's reason is one of those.
    pub fn is_lasting_reason(reason: &str) -> bool {
        Self::ALL
            .iter()
            .any(|kind| kind.is_lasting() && kind.reason() == reason)
    }

    /// Whether the outcome of a push is not known after it.
    pub(super) fn is_open(self) -> bool {
        matches!(
            self,
            Self::Unreachable | Self::TimedOut | Self::ServerError | Self::HostNotFound | Self::Failed
        )
    }

    fn sentence(self) -> &'static str {
        match self {
            Self::AuthenticationFailed => "authentication failed",
            Self::WriteForbidden => "the hub may not write; access was refused",
            Self::PushRefused => "the server's rules refused the push",
            Self::LeaseLost => "somebody else moved a ref first",
            Self::HostKeyUnknown => "the host key is not known",
            Self::HostKeyChanged => "the host key is not the known one",
            Self::HostNotFound => "the host was not found",
            Self::Unreachable => "nobody answered",
            Self::CertificateInvalid => "the certificate is not trusted",
            Self::TimedOut => "time ran out",
            Self::RepositoryNotFound => "the repository was not found",
            Self::NotGit => "the answer is not that of a Git server",
            Self::ServerError => "the server reported an error of its own",
            Self::FormatUnsupported => "the repository's object format is not read here",
            Self::ShallowUnsupported => "the server cannot leave history out",
            Self::CopyDamaged => "the copy is damaged",
            Self::CopyLocked => "the copy is locked",
            Self::DiskFull => "this disk is full",
            Self::Failed => "git failed",
        }
    }

    fn remedy(self, url: &RemoteUrl) -> &'static str {
        match self {
            Self::AuthenticationFailed if url.scheme == Scheme::Ssh => {
                "give a key that the host knows with --git-ssh-key, or add it to the agent at SSH_AUTH_SOCK"
            }
            Self::AuthenticationFailed => {
                "name a file with username= and password= (a token that may read the repository) with --git-credentials"
            }
            Self::WriteForbidden => {
                "let the hub's user write, or keep what the hub decides in a repository of its own with --state-repository"
            }
            Self::PushRefused => "let the hub's user push flotilla/* past the rule, or use --state-repository",
            Self::HostKeyUnknown => {
                "put the key that the host's operator publishes into a file and name it with --git-known-hosts"
            }
            Self::HostKeyChanged => {
                "somebody may be in between: compare it with what the host's operator publishes before changing the file of known hosts"
            }
            Self::HostNotFound => "check the URL, DNS and the proxy variables",
            Self::Unreachable => "check that the host is up and that this machine may reach it",
            Self::CertificateInvalid => "name the authority's certificate with --git-ca",
            Self::TimedOut => "raise --git-timeout-seconds if the repository is large, or lower --depth",
            Self::RepositoryNotFound => "check the URL; hosts also say so to whoever may not read it",
            Self::NotGit => "check the URL, and whether a login page answers in its place",
            Self::FormatUnsupported => {
                "Flotilla reads repositories with SHA-1 ids: push the branch to one made with --object-format=sha1"
            }
            Self::ShallowUnsupported => "start the hub with --depth 0",
            Self::CopyDamaged => "it is fetched anew by itself, at most once an hour",
            Self::DiskFull => "free some space",
            Self::LeaseLost => "the hub looks again",
            Self::ServerError | Self::CopyLocked | Self::Failed => "",
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
    match visible.char_indices().nth(WORDS_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &visible[..end]),
        None => visible,
    }
}
