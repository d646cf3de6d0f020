//! TLS 1.3 to a pinned key: no certificate authority, no names, no dates; the key is the identity.
//!
//! The provider is named wherever a configuration is built, because a process's default is whatever some
//! library set first.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use rcgen::{CertificateParams, KeyPair, PKCS_ED25519};
use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, ServerConfig, SignatureScheme};
use x509_parser::prelude::{FromDer as _, X509Certificate};

use crate::identity::{PublicKey, SecretKey};

/// Only the tunnel asks for this material, so nobody can be made to sign it for another purpose.
const EXPORTER_LABEL: &[u8] = b"EXPORTER-flotilla-tunnel-v1";

/// Spoken after the handshake; a proxy that ends TLS may need it to pick its backend.
const ALPN: &[u8] = b"http/1.1";

/// Ed25519 as it stands in a certificate.
const ED25519_OID: &str = "1.3.101.112";

/// The name in the hub's certificate. Nobody checks it; it tells a person with a TLS debugger what they see.
const CERTIFICATE_NAME: &str = "flotilla-hub";

/// Why TLS could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// No certificate could be made from the hub's key.
    #[error("failed to make the hub's certificate")]
    Certificate(#[source] rcgen::Error),
    /// rustls refused the configuration.
    #[error("failed to set up TLS")]
    Config(#[source] Error),
    /// No authority is known.
    #[error("{0}")]
    NoAuthority(&'static str),
    /// A certificate of an authority could not be read.
    #[error("failed to read a certificate of an authority")]
    Authority(#[source] rustls::pki_types::pem::Error),
}

/// Authorities whose certificates are believed, where a server before the hub ends TLS.
#[derive(Clone, Debug)]
pub struct Authorities(Arc<RootCertStore>);

impl Authorities {
    /// Those of a file in PEM form.
    pub fn from_pem(pem: &[u8]) -> Result<Self, TlsError> {
        let mut store = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate = certificate.map_err(TlsError::Authority)?;
            store.add(certificate).map_err(TlsError::Config)?;
        }
        if store.is_empty() {
            return Err(TlsError::NoAuthority("there is no certificate in it"));
        }
        Ok(Self(Arc::new(store)))
    }

    /// Those of this system. One that cannot be read is left out.
    pub fn of_system() -> Result<Self, TlsError> {
        let mut store = RootCertStore::empty();
        store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if store.is_empty() {
            return Err(TlsError::NoAuthority("this system knows no authority"));
        }
        Ok(Self(Arc::new(store)))
    }

    /// TLS 1.2 too: it is the proxy's, and no secret of ours rests on it alone.
    pub(crate) fn client_config(&self) -> Result<Arc<ClientConfig>, TlsError> {
        let mut config = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&TLS13, &TLS12])
            .map_err(TlsError::Config)?
            .with_root_certificates(Arc::clone(&self.0))
            .with_no_client_auth();
        config.alpn_protocols = vec![ALPN.to_vec()];
        Ok(Arc::new(config))
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// A certificate that holds the key and is signed with it.
fn certificate(key: &SecretKey) -> Result<CertificateDer<'static>, TlsError> {
    let pair = KeyPair::from_pkcs8_der_and_sign_algo(key.pkcs8(), &PKCS_ED25519).map_err(TlsError::Certificate)?;
    let certificate = CertificateParams::new([CERTIFICATE_NAME.to_owned()])
        .and_then(|params| params.self_signed(&pair))
        .map_err(TlsError::Certificate)?;
    Ok(certificate.der().clone())
}

/// The hub's side: a self-signed certificate around its key.
pub(crate) fn server_config(key: &SecretKey) -> Result<Arc<ServerConfig>, TlsError> {
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])
        .map_err(TlsError::Config)?
        .with_no_client_auth()
        .with_single_cert(vec![certificate(key)?], PrivateKeyDer::Pkcs8(key.pkcs8().clone_key()))
        .map_err(TlsError::Config)?;
    config.alpn_protocols = vec![ALPN.to_vec()];
    // Tickets would only serve clients that resume, and ours do not.
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}

/// The agent's side: whoever proves to hold one of `pins` is the hub.
pub(crate) fn client_config(pins: &[PublicKey]) -> Result<Arc<ClientConfig>, TlsError> {
    let mut config = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])
        .map_err(TlsError::Config)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Pinned { keys: pins.to_vec() }))
        .with_no_client_auth();
    config.alpn_protocols = vec![ALPN.to_vec()];
    // A resumed session skips the certificate, and with it the look at today's pins.
    config.resumption = Resumption::disabled();
    Ok(Arc::new(config))
}

/// Material only the two ends of this very TLS connection know.
pub(crate) fn exporter<Data>(connection: &rustls::ConnectionCommon<Data>) -> Result<[u8; 32], Error> {
    connection.export_keying_material([0; 32], EXPORTER_LABEL, None)
}

/// Accepts a leaf whose key is in the set, and a handshake signed with that key.
#[derive(Debug)]
struct Pinned {
    keys: Vec<PublicKey>,
}

impl Pinned {
    fn key_of(&self, certificate: &CertificateDer<'_>) -> Result<PublicKey, Error> {
        let refused = || Error::General("hub's certificate holds none of the pinned keys".to_owned());
        let (_, leaf) = X509Certificate::from_der(certificate).map_err(|_| refused())?;
        let info = leaf.public_key();
        if info.algorithm.algorithm.to_id_string() != ED25519_OID {
            return Err(refused());
        }
        let bytes = <[u8; 32]>::try_from(&*info.subject_public_key.data).map_err(|_| refused())?;
        let key = PublicKey::from_bytes(bytes);
        if self.keys.contains(&key) {
            Ok(key)
        } else {
            Err(refused())
        }
    }
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.key_of(leaf).map(|_| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::General("TLS 1.2 is not spoken here".to_owned()))
    }

    /// Without this a copy of the hub's public certificate would do.
    fn verify_tls13_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let key = self.key_of(leaf)?;
        if signed.scheme == SignatureScheme::ED25519 && key.verifies(message, signed.signature()) {
            return Ok(HandshakeSignatureValid::assertion());
        }
        Err(Error::General(
            "hub did not sign the TLS handshake with its pinned key".to_owned(),
        ))
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }
}
