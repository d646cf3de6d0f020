//! The states that a remote can be in: one list, with each one's word for tools, sentence and remedy.

use super::address::{RemoteUrl, Scheme};

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

    /// What is wrong, in a few words.
    pub(super) fn sentence(self) -> &'static str {
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

    /// What a person does about it; empty where there is nothing to do.
    pub(super) fn remedy(self, url: &RemoteUrl) -> &'static str {
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
