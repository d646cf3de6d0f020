//! Remote: a repository that is elsewhere, as a copy of the hub's own.
//!
//! In: a URL, and files with what it takes to log in. Out: a bare repository on this disk whose refs are those
//! of the remote ([`Remote::refresh`]), which `source` and `publish` read and write as any other; and what they
//! wrote there, pushed by compare-and-swap before it counts (`Remote::write`). Both go through the `git`
//! program, so that fetch and push log in alike. What the files mean, and what to write, is deliberately not
//! here; nor is a prompt, a password in an argument, or a host key that was not verified.
//!
//! ```text
//! poll, or POST /reconcile → ls-remote → fetch → the copy's refs → look
//! decision → commit in the copy → push with a lease → counts; refused: the copy's refs are put back
//! ```

mod address;
mod answers;
mod copy;
mod failure;
mod follow;
mod kind;
mod login;
mod refs;
mod remote_copy;
mod sought;
mod transport;

pub use address::{AddressError, RemoteUrl, RepositoryAddress};
pub use copy::CopyError;
pub use failure::Failure;
pub use kind::FailureKind;
pub use login::{Login, LoginError};
pub use remote_copy::{Remote, RemoteOptions};

#[cfg(test)]
mod tests;
