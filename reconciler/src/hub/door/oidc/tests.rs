//! A provider that is played, its tokens, and those that are forged.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tunnel::SecretKey;

use super::*;

/// A provider with a key, which it may change.
struct Played {
    issuer: String,
    keys: Arc<std::sync::Mutex<Vec<(String, SecretKey)>>>,
}

impl Played {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let issuer = format!("http://{}/git", listener.local_addr().expect("it is bound"));
        let keys: Arc<std::sync::Mutex<Vec<(String, SecretKey)>>> = Arc::default();
        let played = Self {
            issuer: issuer.clone(),
            keys: Arc::clone(&keys),
        };
        tokio::spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                let mut asked = vec![0; 1024];
                let read = socket.read(&mut asked).await.unwrap_or_default();
                let asked = String::from_utf8_lossy(&asked[..read]).into_owned();
                let answer = match asked.contains("/git/.well-known/openid-configuration") {
                    true => json!({ "issuer": issuer, "jwks_uri": format!("{issuer}/keys") }),
                    false => {
                        let keys = keys.lock().expect("nobody panicked");
                        let key = |(id, key): &(String, SecretKey)| {
                            let x = URL_SAFE_NO_PAD.encode(key.public().as_bytes());
                            json!({ "kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "use": "sig", "kid": id, "x": x })
                        };
                        json!({ "keys": keys.iter().map(key).collect::<Vec<_>>() })
                    }
                };
                let answer = answer.to_string();
                let head = format!(
                    "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
                    answer.len()
                );
                let _gone = socket.write_all(format!("{head}{answer}").as_bytes()).await;
            }
        });
        played.new_key("1");
        played
    }

    fn new_key(&self, id: &str) {
        let key = SecretKey::generate().expect("there is randomness");
        *self.keys.lock().expect("nobody panicked") = vec![(id.to_owned(), key)];
    }

    fn token(&self, audience: &str) -> String {
        self.token_with(json!({ "alg": "EdDSA" }), json!({ "aud": audience }))
    }

    /// A token that is signed by the provider, with other words in its header and its claims.
    fn token_with(&self, header: Value, claims: Value) -> String {
        let keys = self.keys.lock().expect("nobody panicked");
        let (id, key) = &keys[0];
        let message = self.unsigned(id, header, claims);
        let signature = URL_SAFE_NO_PAD.encode(key.sign(message.as_bytes()));
        format!("{message}.{signature}")
    }

    fn unsigned(&self, id: &str, header: Value, claims: Value) -> String {
        let mut whole = json!({ "kid": id });
        let mut said = json!({
            "iss": self.issuer, "aud": "hub", "sub": "7", "name": "ada", "groups": ["ops"],
            "iat": seconds(), "exp": seconds() + 300,
        });
        for (part, more) in [(&mut whole, header), (&mut said, claims)] {
            for (name, value) in more.as_object().expect("an object") {
                part[name] = value.clone();
            }
        }
        let [header, claims] = [whole, said].map(|part| URL_SAFE_NO_PAD.encode(part.to_string()));
        format!("{header}.{claims}")
    }
}

fn held_to(issuer: &str) -> token::Provider {
    token::Provider {
        issuer: issuer.to_owned(),
        audiences: vec!["hub".to_owned()],
        user_claim: "name".to_owned(),
        user_prefix: String::new(),
        groups_claim: Some("groups".to_owned()),
        groups_prefix: "git:".to_owned(),
    }
}

#[tokio::test]
async fn a_providers_token_logs_in_with_keys_that_it_may_change() {
    let played = Played::start().await;
    let provider = Provider::new(held_to(&played.issuer), None).expect("it is on this machine");
    let ada = render::access::Person {
        user: "ada".to_owned(),
        groups: vec!["git:ops".to_owned()],
    };
    let person = async |token: &str| provider.person(token).await.map(|verified| verified.person);
    assert_eq!(person(&played.token("hub")).await, Some(ada.clone()));
    assert_eq!(person(&played.token("other")).await, None);
    assert_eq!(person("a.b.c").await, None);
    played.new_key("2");
    assert_eq!(person(&played.token("hub")).await, None, "keys rest for a while");
    provider.known.lock().expect("nobody panicked").at = None;
    assert_eq!(person(&played.token("hub")).await, Some(ada));
}

#[tokio::test]
async fn wrong_id_tokens_log_nobody_in() {
    let played = Played::start().await;
    let provider = Provider::new(held_to(&played.issuer), None).expect("it is on this machine");
    let (signed, nothing) = (json!({ "alg": "EdDSA" }), json!({}));
    assert!(
        provider
            .person(&played.token_with(signed.clone(), nothing.clone()))
            .await
            .is_some()
    );
    let later = seconds() + 3_600;
    for (what, claims) in [
        ("another issuer", json!({ "iss": "https://git.example" })),
        (
            "the same issuer with a slash",
            json!({ "iss": format!("{}/", played.issuer) }),
        ),
        ("another audience", json!({ "aud": ["other", "hub2"] })),
        ("no audience", json!({ "aud": null })),
        ("expired", json!({ "exp": seconds() - 3_600 })),
        ("no end", json!({ "exp": null })),
        ("not yet", json!({ "nbf": later, "exp": later + 300 })),
        ("nobody", json!({ "name": "" })),
        ("Kubernetes' own", json!({ "name": "system:admin" })),
    ] {
        let token = played.token_with(signed.clone(), claims);
        assert!(provider.person(&token).await.is_none(), "{what}");
    }
    let key = played.keys.lock().expect("nobody panicked")[0].1.public();
    for algorithm in ["none", "None", "HS256", "HS384", "HS512"] {
        let message = played.unsigned("1", json!({ "alg": algorithm }), nothing.clone());
        // Signed with what everybody knows: the provider's public key, as bytes and as the list of keys has it.
        let published = URL_SAFE_NO_PAD.encode(key.as_bytes());
        let by = [key.as_bytes().to_vec(), published.into_bytes()].map(|secret| hmac(&secret, message.as_bytes()));
        for signature in by.iter().map(|by| URL_SAFE_NO_PAD.encode(by)).chain([String::new()]) {
            let token = format!("{message}.{signature}");
            assert!(provider.person(&token).await.is_none(), "{algorithm}");
        }
    }
    let good = played.token_with(signed, nothing);
    let (message, signature) = good.rsplit_once('.').expect("it has three parts");
    let (header, _) = message.split_once('.').expect("it has three parts");
    let (_, admin) = played
        .unsigned("1", json!({}), json!({ "name": "root" }))
        .split_once('.')
        .map(|(header, claims)| (header.to_owned(), claims.to_owned()))
        .expect("it has two parts");
    assert!(
        provider
            .person(&format!("{header}.{admin}.{signature}"))
            .await
            .is_none(),
        "other claims"
    );
}

/// HMAC with SHA-256, by hand: nothing here needs it but who forges.
fn hmac(secret: &[u8], message: &[u8]) -> Vec<u8> {
    use sha2::{Digest as _, Sha256};
    let mut block = [0; 64];
    block[..secret.len()].copy_from_slice(secret);
    let (inner, outer) = (block.map(|byte| byte ^ 0x36), block.map(|byte| byte ^ 0x5c));
    let inner = Sha256::new().chain_update(inner).chain_update(message).finalize();
    Sha256::new()
        .chain_update(outer)
        .chain_update(inner)
        .finalize()
        .to_vec()
}

#[tokio::test]
async fn tokens_of_keys_that_nobody_knows_have_the_provider_asked_once_in_a_while() {
    let played = Played::start().await;
    let mut provider = Provider::new(held_to(&played.issuer), None).expect("it is on this machine");
    assert!(provider.person(&played.token("hub")).await.is_some());
    tokio::time::pause();
    let asked = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counts = Arc::clone(&asked);
    provider.send = Box::new(move |_| {
        counts.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        // It does not answer in time.
        Box::pin(std::future::pending())
    });
    let (begun, mut tried) = (Instant::now(), 0);
    while begun.elapsed() < OIDC_KEYS_REST_MIN * 10 {
        let unknown = played.token_with(json!({ "alg": "EdDSA", "kid": format!("made-up-{tried}") }), json!({}));
        assert!(provider.person(&unknown).await.is_none());
        tried += 1;
        tokio::time::advance(Duration::from_millis(100)).await;
    }
    let asked = asked.load(std::sync::atomic::Ordering::Relaxed);
    assert!(
        (1..=10).contains(&asked),
        "it was asked {asked} times for {tried} tokens"
    );
    assert!(tried > 100, "and nobody waits for it each time: {tried}");
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_hangs_holds_up_nobody_whose_key_is_known() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let key = SecretKey::generate().expect("there is randomness");
    let issuer = format!("http://{}", listener.local_addr().expect("it is bound"));
    let mut provider = Provider::new(held_to(&issuer), None).expect("it is on this machine");
    let (asked, mut asks) = tokio::sync::mpsc::channel(1);
    provider.send = Box::new(move |_| {
        let _asked = asked.try_send(());
        Box::pin(std::future::pending())
    });
    let x = URL_SAFE_NO_PAD.encode(key.public().as_bytes());
    let keys =
        json!({ "keys": [{ "kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "use": "sig", "kid": "1", "x": x }] });
    let keys = Keys::read(keys.to_string().as_bytes()).expect("a list of keys");
    provider.known = Mutex::new(Known {
        keys: Some(Arc::new(keys)),
        at: Some(Instant::now()),
    });
    tokio::time::advance(OIDC_KEYS_REST * 2).await;
    let provider = Arc::new(provider);
    let first = tokio::spawn({
        let provider = Arc::clone(&provider);
        async move { provider.keys(OIDC_KEYS_REST).await.is_some() }
    });
    asks.recv().await.expect("the provider is asked");
    let begin = Instant::now();
    assert!(provider.keys(OIDC_KEYS_REST).await.is_some());
    assert!(begin.elapsed().is_zero(), "it does not wait for the other one");
    assert_eq!(first.await.ok(), Some(true), "and that one has the old keys in the end");
}

#[test]
fn keys_come_over_tls_or_from_this_machine() {
    for (url, is_good) in [
        ("https://git.example/", true),
        ("http://127.0.0.1:3000/", true),
        ("http://[::1]:3000/", true),
        ("http://git.example/", false),
        ("ftp://127.0.0.1/", false),
        ("git.example", false),
    ] {
        assert_eq!(address(url).is_ok(), is_good, "{url}");
    }
    assert!(may_name("https://git.example", "https://keys.example/"));
    assert!(!may_name("https://git.example", "http://127.0.0.1/keys"));
    assert!(may_name("http://127.0.0.1:3000", "http://127.0.0.1:3000/keys"));
}
