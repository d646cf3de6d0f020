//! Who may be taken for the hub, over a pipe in memory.

use rustls::crypto::ring::sign::any_eddsa_type;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::version::TLS12;
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::*;

fn key() -> SecretKey {
    SecretKey::generate().expect("the system has random bytes")
}

fn server(certificate: CertificateDer<'static>, signer: &SecretKey) -> Arc<ServerConfig> {
    let signer = any_eddsa_type(signer.pkcs8()).expect("an Ed25519 key");
    let certified = SingleCertAndKey::from(CertifiedKey::new(vec![certificate], signer));
    let builder = ServerConfig::builder_with_provider(provider()).with_protocol_versions(&[&TLS13]);
    Arc::new(
        builder
            .expect("TLS 1.3 is there")
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(certified)),
    )
}

/// Whether client and server get through; both exporters if they do.
async fn meet(server: Arc<ServerConfig>, client: Arc<ClientConfig>) -> Option<([u8; 32], [u8; 32])> {
    let (ours, theirs) = tokio::io::duplex(16 * 1024);
    let name = ServerName::try_from("hub.example").expect("a name");
    let accepting = TlsAcceptor::from(server).accept(ours);
    let connecting = TlsConnector::from(client).connect(name, theirs);
    let (accepted, connected) = tokio::join!(accepting, connecting);
    let (connected, accepted) = (connected.ok()?, accepted.ok()?);
    let exported = exporter(accepted.get_ref().1).ok()?;
    Some((exported, exporter(connected.get_ref().1).ok()?))
}

#[tokio::test]
async fn any_key_of_the_pinned_set_is_the_hub() {
    let (hub, other) = (key(), key());
    let config = server_config(&hub).expect("a fresh key makes a certificate");
    let pins = client_config(&[other.public(), hub.public()]).expect("pins");
    let (left, right) = meet(config.clone(), pins.clone()).await.expect("it is the hub");
    assert_eq!(left, right, "both ends export the same material");
    let (again, _) = meet(config, pins).await.expect("it is the hub");
    assert_ne!(left, again, "and other material in each connection");
}

#[tokio::test]
async fn a_hub_with_another_key_is_refused() {
    let config = server_config(&key()).expect("a fresh key makes a certificate");
    let pins = client_config(&[key().public()]).expect("pins");
    assert!(meet(config, pins).await.is_none());
}

#[tokio::test]
async fn a_copy_of_the_hubs_certificate_is_not_the_hub() {
    let (hub, thief) = (key(), key());
    let copied = certificate(&hub).expect("a fresh key makes a certificate");
    let pins = client_config(&[hub.public()]).expect("pins");
    assert!(
        meet(server(copied.clone(), &hub), pins.clone()).await.is_some(),
        "with its key it is"
    );
    assert!(meet(server(copied, &thief), pins).await.is_none(), "without it is not");
}

#[tokio::test]
async fn what_is_no_certificate_at_all_is_refused() {
    let hub = key();
    let pins = client_config(&[hub.public()]).expect("pins");
    for nonsense in [vec![], vec![0x30, 0x82, 0xff, 0xff], vec![0; 400]] {
        assert!(meet(server(nonsense.into(), &hub), pins.clone()).await.is_none());
    }
}

#[tokio::test]
async fn tls_1_2_is_not_spoken() {
    let hub = key();
    let config = server_config(&hub).expect("a fresh key makes a certificate");
    let old = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS12])
        .expect("rustls knows it")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Pinned {
            keys: vec![hub.public()],
        }))
        .with_no_client_auth();
    assert!(meet(config, Arc::new(old)).await.is_none());
}
