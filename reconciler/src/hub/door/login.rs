//! Who a caller is: by the certificate of the connection, by a static token, or by an OIDC provider's.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use http::{HeaderMap, header};
use render::access::{Person, is_reserved};
use rustls::pki_types::CertificateDer;
use tokio::time::{Duration, Instant};
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::failures::Failures;
use super::files::Kept;
use super::oidc::Provider;
use super::tally::{LoginFailure, Tally};
use super::tokens::Tokens;

/// Why nobody is logged in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NotIn {
    /// Nothing says who it is.
    Missing,
    /// What says who it is does not count.
    Wrong,
    /// Too many from there were wrong: how long to wait.
    TooMany(Duration),
}

/// Where people are known from.
pub(super) struct Logins {
    pub(super) tokens: Option<Kept<Tokens>>,
    pub(super) provider: Option<Provider>,
    failures: Mutex<Failures>,
    tally: Arc<Tally>,
}

impl Logins {
    pub(super) fn new(tokens: Option<Kept<Tokens>>, provider: Option<Provider>, tally: Arc<Tally>) -> Self {
        Self {
            tokens,
            provider,
            failures: Mutex::default(),
            tally,
        }
    }

    /// Who it is. `certified` is who the certificate of the connection names.
    pub(super) async fn person(
        &self,
        certified: Option<&Arc<Person>>,
        headers: &HeaderMap,
        from: IpAddr,
    ) -> Result<Arc<Person>, NotIn> {
        if let Some(person) = certified {
            return Ok(Arc::clone(person));
        }
        let failed = |failure| self.tally.login_failed(failure);
        let Some(token) = bearer(headers) else {
            failed(LoginFailure::Missing);
            return Err(NotIn::Missing);
        };
        let now = Instant::now();
        if let Some(wait) = self.failures().wait(from, now) {
            failed(LoginFailure::TooMany);
            return Err(NotIn::TooMany(wait));
        }
        if let Some(person) = self.known(token).await {
            return Ok(Arc::new(person));
        }
        self.failures().failed(from, now);
        failed(LoginFailure::Wrong);
        Err(NotIn::Wrong)
    }

    async fn known(&self, token: &str) -> Option<Person> {
        let tokens = self.tokens.as_ref().map(Kept::now);
        if let Some(person) = tokens.as_ref().and_then(|tokens| tokens.person(token)) {
            return Some(person.clone()).filter(is_plain);
        }
        let provider = self.provider.as_ref()?;
        provider.person(token).await.filter(is_plain)
    }

    fn failures(&self) -> std::sync::MutexGuard<'_, Failures> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The token of an `Authorization: Bearer`, said once.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut said = headers.get_all(header::AUTHORIZATION).iter();
    let (first, None) = (said.next()?, said.next()) else {
        return None;
    };
    let (scheme, token) = first.to_str().ok()?.split_once(' ')?;
    Some(token.trim()).filter(|token| scheme.eq_ignore_ascii_case("bearer") && !token.is_empty())
}

/// Whether it names nobody of Kubernetes' own, and only what a header can say.
fn is_plain(person: &Person) -> bool {
    let plain = |name: &String| {
        !name.is_empty() && !is_reserved(name) && !name.chars().any(char::is_control) && name.is_ascii()
    };
    plain(&person.user) && person.groups.iter().all(plain)
}

/// Who a client certificate names, as Kubernetes reads it: CN is the user, each O a group.
pub(super) fn certified(certificate: &CertificateDer<'_>) -> Option<Person> {
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    let subject = certificate.subject();
    let user = subject.iter_common_name().next()?.as_str().ok()?.to_owned();
    let groups: Result<Vec<_>, _> = subject
        .iter_organization()
        .map(|group| group.as_str().map(str::to_owned))
        .collect();
    let person = Person {
        user,
        groups: groups.ok()?,
    };
    Some(person).filter(is_plain)
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};

    use super::*;

    fn logins() -> Logins {
        let tokens = Tokens::parse(b"secret,ada,1,\"ops\"\nroot,x,1,\"system:masters\"\nnode,system:node:a,1")
            .expect("a file of tokens");
        Logins::new(Some(Kept::fixed(tokens)), None, Arc::default())
    }

    fn headers(authorization: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in authorization {
            headers.append(header::AUTHORIZATION, value.parse().expect("a header's value"));
        }
        headers
    }

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    #[tokio::test]
    async fn a_token_logs_its_person_in_and_nobody_of_kubernetes_own() {
        let logins = logins();
        let login = async |said: &[&str]| {
            let person = logins.person(None, &headers(said), HERE).await;
            person.map(|person| person.user.clone())
        };
        assert_eq!(login(&["Bearer secret"]).await, Ok("ada".to_owned()));
        assert_eq!(login(&["bearer secret"]).await, Ok("ada".to_owned()));
        assert_eq!(login(&[]).await, Err(NotIn::Missing));
        assert_eq!(login(&["Basic secret"]).await, Err(NotIn::Missing));
        assert_eq!(login(&["Bearer secret", "Bearer other"]).await, Err(NotIn::Missing));
        assert_eq!(
            login(&["Bearer root"]).await,
            Err(NotIn::Wrong),
            "system:masters is no group"
        );
        assert_eq!(login(&["Bearer node"]).await, Err(NotIn::Wrong));
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_is_not_looked_at_after_too_many_wrong_ones() {
        let logins = logins();
        let elsewhere = "192.0.2.9".parse().expect("an address");
        for _ in 0..crate::limits::LOGIN_FAILURES_AT_ONCE {
            let wrong = logins.person(None, &headers(&["Bearer guess"]), HERE).await;
            assert_eq!(wrong, Err(NotIn::Wrong));
        }
        let right = headers(&["Bearer secret"]);
        let refused = logins.person(None, &right, HERE).await;
        assert!(matches!(refused, Err(NotIn::TooMany(_))), "{refused:?}");
        assert!(logins.person(None, &right, elsewhere).await.is_ok());
        tokio::time::advance(crate::limits::LOGIN_FAILURE_FORGIVEN * 2).await;
        assert!(logins.person(None, &right, HERE).await.is_ok());
        assert_eq!(logins.tally.counts().failed_logins["TooMany"], 1);
    }

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
            certified(made.der())
        };
        let ada = certificate(&[(DnType::CommonName, "ada"), (DnType::OrganizationName, "ops")]);
        let expected = Person {
            user: "ada".to_owned(),
            groups: vec!["ops".to_owned()],
        };
        assert_eq!(ada, Some(expected));
        assert_eq!(
            certificate(&[(DnType::OrganizationName, "ops")]),
            None,
            "it names nobody"
        );
        let masters = [
            (DnType::CommonName, "ada"),
            (DnType::OrganizationName, "system:masters"),
        ];
        assert_eq!(certificate(&masters), None);
    }
}
