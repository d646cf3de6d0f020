//! The door's own TLS: a certificate from files, or one that the hub makes; and which client certificates are believed.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::version::{TLS12, TLS13};
use rustls::{RootCertStore, ServerConfig};
use x509_parser::prelude::{FromDer as _, X509Certificate};

/// The subject of the authority that a hub makes.
const AUTHORITY_NAME: &str = "flotilla-hub";

/// What the door shows to callers.
pub(super) struct Shown {
    pub(super) chain: Vec<CertificateDer<'static>>,
    pub(super) key: PrivateKeyDer<'static>,
}

/// Why the hub has no certificate to show.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// The authority's key could not be read or made.
    #[error("failed to keep the key of the hub's authority at {}", path.display())]
    Key {
        /// Where.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The file holds no key.
    #[error("{} holds no private key in PEM form; hint: remove it, and a new authority is made, which kubeconfigs have to name anew", path.display())]
    NotAKey {
        /// Where.
        path: PathBuf,
    },
    /// No certificate could be made.
    #[error("failed to make a certificate")]
    Make(#[source] rcgen::Error),
    /// rustls refused them.
    #[error("failed to set up TLS")]
    Tls(#[source] rustls::Error),
}

/// The authority that a hub makes for its own door.
pub(super) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// Its certificate, which kubeconfigs carry.
    pub(super) certificate: String,
}

impl Authority {
    /// From the key at `path`, which is made with mode 0600 when it is missing. The same key gives an authority that is
    /// believed by whoever believed the one before.
    pub(super) fn read_or_make(path: &Path) -> Result<Self, CertificateError> {
        let failed = |source| CertificateError::Key {
            path: path.to_owned(),
            source,
        };
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let made = KeyPair::generate().map_err(CertificateError::Make)?.serialize_pem();
                let file = File::options().write(true).create_new(true).mode(0o600).open(path);
                file.and_then(|mut file| file.write_all(made.as_bytes()))
                    .map_err(failed)?;
                made
            }
            Err(error) => return Err(failed(error)),
        };
        let key = KeyPair::from_pem(&text).map_err(|_| CertificateError::NotAKey { path: path.to_owned() })?;
        let mut params = CertificateParams::default();
        params.distinguished_name = named(AUTHORITY_NAME);
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let certificate = params.self_signed(&key).map_err(CertificateError::Make)?.pem();
        Ok(Self {
            issuer: Issuer::new(params, key),
            certificate,
        })
    }

    /// A certificate for these names and addresses, with a key of its own.
    pub(super) fn certificate_for(&self, names: &[String]) -> Result<Shown, CertificateError> {
        let key = KeyPair::generate().map_err(CertificateError::Make)?;
        let mut params = CertificateParams::new(names.to_vec()).map_err(CertificateError::Make)?;
        params.distinguished_name = named(names.first().map_or(AUTHORITY_NAME, String::as_str));
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        let leaf = params.signed_by(&key, &self.issuer).map_err(CertificateError::Make)?;
        Ok(Shown {
            chain: vec![leaf.der().clone()],
            key: PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der())),
        })
    }
}

fn named(name: &str) -> DistinguishedName {
    let mut distinguished = DistinguishedName::new();
    distinguished.push(DnType::CommonName, name);
    distinguished
}

/// The certificate and key of PEM files.
pub(super) fn shown(certificate: &[u8], key: &[u8]) -> Result<Shown, String> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificate).collect();
    let chain = chain.ok().filter(|chain| !chain.is_empty());
    Ok(Shown {
        chain: chain.ok_or("it holds no certificate in PEM form")?,
        key: PrivateKeyDer::from_pem_slice(key).map_err(|_| "its key is none in PEM form")?,
    })
}

/// When the first of a chain ends, in seconds since 1970.
pub(super) fn ends(chain: &[CertificateDer<'_>]) -> Result<i64, String> {
    let ends = chain.iter().map(|one| {
        let (_, read) = X509Certificate::from_der(one).map_err(|_| "it holds what is no certificate")?;
        Ok(read.validity().not_after.timestamp())
    });
    let ends: Result<Vec<_>, &str> = ends.collect();
    Ok(ends?.into_iter().min().ok_or("it holds no certificate")?)
}

/// The authorities of a PEM file.
pub(super) fn authorities(pem: &[u8]) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|_| "it holds what is no certificate in PEM form")?;
        roots.add(certificate).map_err(|error| error.to_string())?;
    }
    match roots.is_empty() {
        true => Err("it holds no certificate in PEM form".to_owned()),
        false => Ok(roots),
    }
}

/// The certificates of a PEM file, in DER.
pub(super) fn certificates(pem: &[u8]) -> Result<Vec<Vec<u8>>, String> {
    authorities(pem)?;
    let all = CertificateDer::pem_slice_iter(pem).filter_map(Result::ok);
    Ok(all.map(|certificate| certificate.to_vec()).collect())
}

/// TLS for callers, and the authorities of theirs.
#[derive(Debug)]
pub(super) struct Tls {
    pub(super) config: Arc<ServerConfig>,
    clients: Option<Arc<dyn ClientCertVerifier>>,
}

impl Tls {
    /// Whether a certificate that a connection was begun with would begin another one now.
    pub(super) fn believes(&self, chain: &[CertificateDer<'_>]) -> bool {
        let (Some(clients), [own, between @ ..]) = (&self.clients, chain) else {
            return false;
        };
        clients.verify_client_cert(own, between, UnixTime::now()).is_ok()
    }
}

/// TLS for callers: who has a client certificate of `clients` shows it, and others log in otherwise. Nothing is resumed, so
/// that every connection is judged by today's authorities.
pub(super) fn config(shown: &Shown, clients: Option<RootCertStore>) -> Result<Tls, rustls::Error> {
    let provider = Arc::new(ring::default_provider());
    let builder =
        ServerConfig::builder_with_provider(Arc::clone(&provider)).with_protocol_versions(&[&TLS13, &TLS12])?;
    let verifier = |roots| {
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).allow_unauthenticated();
        let verifier = verifier.build();
        verifier.map_err(|error| rustls::Error::General(error.to_string()))
    };
    let clients = clients.map(verifier).transpose()?;
    let builder = match &clients {
        None => builder.with_no_client_auth(),
        Some(clients) => builder.with_client_cert_verifier(Arc::clone(clients)),
    };
    let mut config = builder.with_single_cert(shown.chain.clone(), shown.key.clone_key())?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    config.send_tls13_tickets = 0;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    Ok(Tls {
        config: Arc::new(config),
        clients,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_ends_with_its_first_certificate() {
        let made = |year: i32| {
            let key = KeyPair::generate().expect("a key");
            let mut params = CertificateParams::default();
            params.not_after = rcgen::date_time_ymd(year, 1, 1);
            params.self_signed(&key).expect("a certificate").der().clone()
        };
        let chain = [made(2040), made(2030)];
        assert_eq!(ends(&chain), Ok(1_893_456_000));
        assert_eq!(ends(&chain[..1]), Ok(2_208_988_800));
        assert!(ends(&[]).is_err());
        assert!(ends(&[CertificateDer::from(vec![1, 2, 3])]).is_err());
    }

    #[test]
    fn an_authority_is_the_same_after_a_restart_and_its_key_is_for_the_hub_alone() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("ca.key");
        let first = Authority::read_or_make(&path).expect("it is made");
        let mode = fs::metadata(&path).expect("it is kept").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let second = Authority::read_or_make(&path).expect("it is read");
        let names = ["hub.example".to_owned(), "127.0.0.1".to_owned()];
        let shown = second.certificate_for(&names).expect("it signs");
        // Who trusts the first one trusts what the second one signed.
        let roots = authorities(first.certificate.as_bytes()).expect("it is a certificate");
        let verifier = rustls::client::WebPkiServerVerifier::builder_with_provider(
            Arc::new(roots),
            Arc::new(ring::default_provider()),
        )
        .build()
        .expect("it has a root");
        use rustls::client::danger::ServerCertVerifier as _;
        for (name, is_good) in [("hub.example", true), ("127.0.0.1", true), ("other.example", false)] {
            let name = rustls::pki_types::ServerName::try_from(name).expect("a name");
            let now = rustls::pki_types::UnixTime::now();
            let verified = verifier.verify_server_cert(&shown.chain[0], &[], &name, &[], now);
            assert_eq!(verified.is_ok(), is_good, "{name:?}: {verified:?}");
        }
        assert!(config(&shown, None).is_ok());
        assert!(
            ends(&shown.chain).is_ok_and(|at| at > 4_000_000_000),
            "what a hub makes does not end soon"
        );
        fs::write(&path, "nothing").expect("it is writable");
        assert!(matches!(
            Authority::read_or_make(&path),
            Err(CertificateError::NotAKey { .. })
        ));
    }
}
