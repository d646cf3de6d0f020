//! Git hosts, real ones: `git http-backend` behind TLS ([`Web`]), `sshd` ([`Ssh`]), and Gitea ([`Gitea`]).

mod gitea;
mod ssh;
mod web;

pub use gitea::Gitea;
pub(crate) use ssh::version as sshd_version;
pub use ssh::{Agent, Ssh};
pub use web::{Web, WebOptions};
