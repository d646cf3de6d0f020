//! Who a caller is: by the certificate of the connection, by a static token, or by an OIDC provider's.

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use http::{HeaderMap, header};
use render::access::token::Verified;
use render::access::{Person, is_reserved};
use tokio::time::{Duration, Instant};

use super::certificate::Tls;
use super::certified::Certified;
use super::failures::Failures;
use super::files::Kept;
use super::oidc::Provider;
use super::tokens::{self, TokenDigest, Tokens};
use crate::hub::clock::seconds;
use crate::hub::tally::{LoginFailure, Tally};
use crate::limits::ID_TOKEN_SECONDS_MAX;

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

/// Somebody who is logged in.
#[derive(Clone, Debug)]
pub(super) struct Login {
    pub(super) person: Arc<Person>,
    proof: Proof,
}

/// What a login rests on.
#[derive(Clone, Debug)]
enum Proof {
    /// The certificate of its connection.
    Certificate(Arc<Certified>),
    /// A line of the file of tokens.
    Token(TokenDigest),
    /// An ID token, and until when that holds, in seconds since 1970; and as the monotonic clock has it, which nobody sets back.
    IdToken(i64, Instant),
}

impl Proof {
    /// An ID token that holds until then, at a time of the day.
    fn id_token(until: i64, now: i64) -> Self {
        let left = u64::try_from(until.saturating_sub(now)).unwrap_or_default();
        Self::IdToken(
            until,
            Instant::now() + Duration::from_secs(left.min(ID_TOKEN_SECONDS_MAX)),
        )
    }
}

impl Login {
    /// Whether a browser shows it by itself, whichever page asks.
    pub(super) fn is_shown_by_browsers(&self) -> bool {
        matches!(self.proof, Proof::Certificate(_))
    }
}

/// The bearer token that logged somebody in over a connection first. It is no guess there any more, whoever else guesses from
/// the same address.
#[derive(Debug, Default)]
pub(super) struct Proven(OnceLock<TokenDigest>);

/// Where people are known from.
pub(super) struct Logins {
    pub(super) tls: Kept<Tls>,
    pub(super) tokens: Option<Kept<Tokens>>,
    pub(super) provider: Option<Provider>,
    failures: Failures,
    tally: Arc<Tally>,
}

impl Logins {
    pub(super) fn new(
        tls: Kept<Tls>,
        tokens: Option<Kept<Tokens>>,
        provider: Option<Provider>,
        tally: Arc<Tally>,
    ) -> Self {
        Self {
            tls,
            tokens,
            provider,
            failures: Failures::default(),
            tally,
        }
    }

    /// Who it is. `certified` is who the certificate of the connection names, `proven` what logged somebody in over it.
    pub(super) async fn login(
        &self,
        (certified, proven): (Option<&Arc<Certified>>, &Proven),
        headers: &HeaderMap,
        from: IpAddr,
    ) -> Result<Login, NotIn> {
        let failed = |failure| self.tally.login_failed(failure);
        if let Some(certified) = certified {
            let login = Login {
                person: Arc::clone(&certified.person),
                proof: Proof::Certificate(Arc::clone(certified)),
            };
            return self.still(login, seconds()).ok_or_else(|| {
                failed(LoginFailure::Wrong);
                NotIn::Wrong
            });
        }
        let Some(token) = bearer(headers) else {
            failed(LoginFailure::Missing);
            return Err(NotIn::Missing);
        };
        let digest = tokens::digest(token);
        if proven.0.get() == Some(&digest)
            && let Some(login) = self.with_bearer(token, digest).await
        {
            return Ok(login);
        }
        // Before anything is asked whether it is good, the file of tokens too.
        let attempt = self.failures.attempt(from).await.map_err(|wait| {
            failed(LoginFailure::TooMany);
            NotIn::TooMany(wait)
        })?;
        if let Some(login) = self.with_bearer(token, digest).await {
            let _first = proven.0.set(digest);
            return Ok(login);
        }
        attempt.failed();
        failed(LoginFailure::Wrong);
        Err(NotIn::Wrong)
    }

    /// Whether what a login rests on still counts, at a time in seconds since 1970.
    pub(super) fn counts(&self, login: &Login, now: i64) -> bool {
        match &login.proof {
            Proof::Certificate(certified) => self.tls.now().believes(&certified.chain),
            // Another person or other groups in that line are another login.
            Proof::Token(digest) => self.with_token(digest).as_ref() == Some(&*login.person),
            Proof::IdToken(until, latest) => now < *until && Instant::now() < *latest,
        }
    }

    /// The same login, while it counts.
    fn still(&self, login: Login, now: i64) -> Option<Login> {
        self.counts(&login, now).then_some(login)
    }

    fn with_token(&self, digest: &TokenDigest) -> Option<Person> {
        let tokens = self.tokens.as_ref()?.now();
        tokens.person(digest).cloned().and_then(plain)
    }

    async fn with_bearer(&self, token: &str, digest: TokenDigest) -> Option<Login> {
        match self.with_token(&digest) {
            Some(person) => Some(Login {
                person: Arc::new(person),
                proof: Proof::Token(digest),
            }),
            None => self.with_id_token(token).await,
        }
    }

    async fn with_id_token(&self, token: &str) -> Option<Login> {
        let Verified { person, until } = self.provider.as_ref()?.person(token).await?;
        Some(Login {
            person: Arc::new(plain(person)?),
            proof: Proof::id_token(until, seconds()),
        })
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

/// A person whose names are nobody's of Kubernetes' own, and can stand in a header. Groups that are not are left out: nothing
/// can be bound to them.
pub(super) fn plain(mut person: Person) -> Option<Person> {
    let is_plain = |name: &String| {
        let is_text = name.is_ascii() && !name.chars().any(char::is_control);
        !name.is_empty() && name.trim() == name && is_text && !is_reserved(name)
    };
    person.groups.retain(is_plain);
    is_plain(&person.user).then_some(person)
}

#[cfg(test)]
mod tests {
    use super::super::certificate::{Authority, config};
    use super::*;

    fn logins() -> Logins {
        let tokens = Tokens::parse(b"secret-of-a-person,ada,1,\"ops\"\nmasters-of-the-house,x,1,\"system:masters\"\nnode-of-a-cluster,system:node:a,1");
        let tokens = Kept::fixed(tokens.expect("a file of tokens"));
        let folder = tempfile::tempdir().expect("a folder");
        let authority = Authority::read_or_make(&folder.path().join("ca.key")).expect("it is made");
        let shown = authority.certificate_for(&["localhost".to_owned()]).expect("it signs");
        let tls = Kept::fixed(config(&shown, None).expect("it is one"));
        Logins::new(tls, Some(tokens), None, Arc::default())
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
            let login = logins.login((None, &Proven::default()), &headers(said), HERE).await;
            login.map(|login| login.person.user.clone())
        };
        assert_eq!(login(&["Bearer secret-of-a-person"]).await, Ok("ada".to_owned()));
        assert_eq!(login(&["bearer secret-of-a-person"]).await, Ok("ada".to_owned()));
        assert_eq!(login(&[]).await, Err(NotIn::Missing));
        assert_eq!(login(&["Basic secret-of-a-person"]).await, Err(NotIn::Missing));
        assert_eq!(
            login(&["Bearer secret-of-a-person", "Bearer other"]).await,
            Err(NotIn::Missing)
        );
        let masters = logins
            .login(
                (None, &Proven::default()),
                &headers(&["Bearer masters-of-the-house"]),
                HERE,
            )
            .await;
        let masters = masters.expect("it is somebody's");
        assert!(masters.person.groups.is_empty(), "system:masters is no group");
        assert_eq!(login(&["Bearer node-of-a-cluster"]).await, Err(NotIn::Wrong));
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_is_not_looked_at_after_too_many_wrong_ones() {
        let (logins, here) = (logins(), Proven::default());
        let elsewhere = "192.0.2.9".parse().expect("an address");
        let (guess, right) = (headers(&["Bearer guess"]), headers(&["Bearer secret-of-a-person"]));
        let login =
            async |proven: &Proven, said: &HeaderMap, from| logins.login((None, proven), said, from).await.map(drop);
        assert_eq!(login(&here, &right, HERE).await, Ok(()));
        for _ in 0..crate::limits::LOGIN_FAILURES_AT_ONCE {
            assert_eq!(login(&Proven::default(), &guess, HERE).await, Err(NotIn::Wrong));
        }
        let refused = |said: &Result<(), NotIn>| matches!(said, Err(NotIn::TooMany(_)));
        assert!(refused(&login(&Proven::default(), &guess, HERE).await));
        let by_chance = login(&Proven::default(), &right, HERE).await;
        assert!(
            refused(&by_chance),
            "a guess that is right is told no sooner: {by_chance:?}"
        );
        assert_eq!(
            login(&here, &right, HERE).await,
            Ok(()),
            "who is in over a connection stays"
        );
        assert!(
            refused(&login(&here, &guess, HERE).await),
            "and guesses no quicker by it"
        );
        assert_eq!(
            login(&Proven::default(), &right, elsewhere).await,
            Ok(()),
            "nobody elsewhere has to wait"
        );
        tokio::time::advance(crate::limits::LOGIN_FAILURE_FORGIVEN * 2).await;
        assert_eq!(login(&Proven::default(), &guess, HERE).await, Err(NotIn::Wrong));
        assert_eq!(login(&Proven::default(), &right, HERE).await, Ok(()));
        assert_eq!(logins.tally.counts().failed_logins["TooMany"], 3);
    }

    #[test]
    fn names_with_blanks_or_other_letters_are_nobodys() {
        let named = |user: &str, groups: &[&str]| {
            let groups = groups.iter().map(|group| (*group).to_owned()).collect();
            let person = plain(Person {
                user: user.to_owned(),
                groups,
            });
            person.map(|person| person.groups.join("|"))
        };
        let groups = [
            "ops",
            " ops",
            "ops ",
            "caf\u{e9}",
            "system:x",
            "flotilla:ops",
            "",
            "a\nb",
            "dev team",
        ];
        assert_eq!(named("ada", &groups).as_deref(), Some("ops|dev team"));
        for user in ["ada ", "", "zo\u{eb}", "system:admin", "flotilla:ada"] {
            assert_eq!(named(user, &[]), None, "{user:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_clock_that_is_set_back_makes_no_login_last_longer() {
        let logins = logins();
        let login = Login {
            person: Arc::new(Person {
                user: "ada".to_owned(),
                groups: Vec::new(),
            }),
            proof: Proof::id_token(1_000, 900),
        };
        tokio::time::advance(Duration::from_secs(99)).await;
        assert!(logins.counts(&login, 950));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(
            !logins.counts(&login, 200),
            "a hundred seconds are over, whatever the clock says"
        );
        let for_ever = Proof::id_token(i64::MAX, 900);
        assert!(
            matches!(for_ever, Proof::IdToken(i64::MAX, _)),
            "and there is no end of time"
        );
    }

    #[test]
    fn a_login_counts_as_long_as_what_it_rests_on() {
        let logins = logins();
        let person = Arc::new(Person {
            user: "ada".to_owned(),
            groups: vec!["ops".to_owned()],
        });
        let login = |proof| Login {
            person: Arc::clone(&person),
            proof,
        };
        let id_token = login(Proof::id_token(1_000, 900));
        assert!(logins.counts(&id_token, 999) && !logins.counts(&id_token, 1_000));
        assert!(logins.counts(&login(Proof::Token(tokens::digest("secret-of-a-person"))), 0));
        let gone = login(Proof::Token(tokens::digest("removed")));
        assert!(!logins.counts(&gone, 0), "its line is gone");
        let others = login(Proof::Token(tokens::digest("masters-of-the-house")));
        assert!(!logins.counts(&others, 0), "its line names somebody else");
    }
}
