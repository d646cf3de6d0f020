//! Who a client certificate names.

use std::sync::Arc;

use render::access::Person;
use rustls::pki_types::CertificateDer;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::login::plain;

/// A certificate that a connection was begun with, and whom it names.
#[derive(Debug)]
pub(super) struct Certified {
    pub(super) person: Arc<Person>,
    /// It, and those between it and its authority.
    pub(super) chain: Vec<CertificateDer<'static>>,
}

impl Certified {
    /// As Kubernetes reads it: CN is the user, each O a group. `None` where it names nobody.
    pub(super) fn read(chain: &[CertificateDer<'_>]) -> Option<Self> {
        let person = person(chain.first()?)?;
        Some(Self {
            person: Arc::new(person),
            chain: chain.iter().map(|one| one.clone().into_owned()).collect(),
        })
    }
}

/// Of several common names the last one counts, as in Go.
fn person(certificate: &CertificateDer<'_>) -> Option<Person> {
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    let subject = certificate.subject();
    let user = subject.iter_common_name().last()?.as_str().ok()?.to_owned();
    let groups = subject.iter_organization();
    // What is no text can be nobody's group.
    let groups = groups
        .filter_map(|group| group.as_str().ok())
        .map(str::to_owned)
        .collect();
    plain(Person { user, groups })
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};

    use super::*;

    #[test]
    fn a_certificate_names_its_person_and_groups() {
        let certificate = |names: &[(DnType, &str)]| {
            let mut subject = DistinguishedName::new();
            for (kind, name) in names {
                subject.push(kind.clone(), *name);
            }
            let mut params = CertificateParams::default();
            params.distinguished_name = subject;
            let key = KeyPair::generate().expect("a key");
            let made = params.self_signed(&key).expect("a certificate");
            person(made.der())
        };
        let ada = Person {
            user: "ada".to_owned(),
            groups: vec!["ops".to_owned()],
        };
        let both = [(DnType::CommonName, "ada"), (DnType::OrganizationName, "ops")];
        assert_eq!(certificate(&both), Some(ada));
        assert_eq!(certificate(&both[1..]), None, "it names nobody");
        let masters = [
            (DnType::CommonName, "ada"),
            (DnType::OrganizationName, "system:masters"),
        ];
        let ada = certificate(&masters).expect("it names somebody");
        assert!(ada.groups.is_empty(), "no group of Kubernetes' own: {ada:?}");
        assert_eq!(certificate(&[(DnType::CommonName, "system:admin")]), None);
    }
}
