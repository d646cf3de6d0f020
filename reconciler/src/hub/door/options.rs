//! How the door is opened, as the command line says, and why it could not be.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use render::access::token::Provider;

use super::certificate::CertificateError;
use super::files::FileError;
use super::oidc::OidcError;
use crate::audit::AuditTo;

/// How the door is opened.
#[derive(Clone, Debug)]
pub struct DoorOptions {
    /// Where it answers.
    pub address: SocketAddr,
    /// What it shows.
    pub identity: Identity,
    /// A PEM file of the authorities whose client certificates are believed.
    pub client_authority: Option<PathBuf>,
    /// A file of static tokens.
    pub tokens: Option<PathBuf>,
    /// A provider whose ID tokens log people in.
    pub oidc: Option<OidcOptions>,
    /// Whether exec, attach and port-forward are carried, where rights and the agent allow them.
    pub interactive: bool,
    /// Where audit lines go; `None` is nowhere.
    pub audit: Option<AuditTo>,
}

/// An OIDC provider.
#[derive(Clone, Debug)]
pub struct OidcOptions {
    /// What its tokens are held to.
    pub held_to: Provider,
    /// A PEM file of the authorities of its certificate; without it, those that this machine trusts.
    pub authority: Option<PathBuf>,
}

/// What the door shows to callers.
#[derive(Clone, Debug)]
pub enum Identity {
    /// A certificate and its key, in PEM files, which are read again when they change.
    Files {
        /// The certificate, and those between it and its authority.
        certificate: PathBuf,
        /// Its key.
        key: PathBuf,
    },
    /// A certificate of the hub's own authority.
    Own {
        /// The authority's key, made when it is missing; its certificate is written beside it, with the ending `crt`.
        key: PathBuf,
        /// Names and addresses that callers use.
        names: Vec<String>,
    },
}

/// Why the door could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum DoorError {
    /// The address could not be used.
    #[error(
        "failed to listen on {address}; hint: end what listens there, or name an address of this machine with --serve"
    )]
    Listen {
        /// Which.
        address: SocketAddr,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// One of the files could not be used.
    #[error("failed to read what --serve needs")]
    File(#[source] FileError),
    /// The OIDC provider cannot be asked.
    #[error("failed to use the OIDC provider")]
    Oidc(#[source] OidcError),
    /// There is no certificate.
    #[error("failed to make a certificate for --serve")]
    Certificate(#[source] CertificateError),
    /// The authority's certificate could not be written.
    #[error("failed to write {}", path.display())]
    Authority {
        /// Where.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}
