use ring::signature::{Ed25519KeyPair, KeyPair as _};
use serde_json::json;

use super::super::KeysWrong;
use super::*;

/// Public keys and one token of each kind, made by another program. Their secret keys are nowhere any more.
const SIGNED: &str = include_str!("signed.json");

const NOW: i64 = 1_790_000_000;

fn provider() -> Provider {
    Provider {
        issuer: "https://id.example".to_owned(),
        audiences: vec!["flotilla".to_owned(), "kubectl".to_owned()],
        user_claim: "sub".to_owned(),
        user_prefix: String::new(),
        groups_claim: Some("groups".to_owned()),
        groups_prefix: String::new(),
    }
}

fn signed() -> (Keys, Vec<(String, String)>) {
    let value: Value = serde_json::from_str(SIGNED).unwrap();
    let tokens = value["tokens"].as_object().unwrap().iter();
    let tokens = tokens.map(|(name, token)| (name.clone(), token.as_str().unwrap().to_owned()));
    (Keys::read(SIGNED.as_bytes()).unwrap(), tokens.collect())
}

fn encoded(value: &Value) -> String {
    URL_SAFE_NO_PAD.encode(value.to_string())
}

/// A key that signs what a test wants; the same in each run.
fn key() -> Ed25519KeyPair {
    Ed25519KeyPair::from_seed_unchecked(&[7; 32]).unwrap()
}

fn keys() -> Keys {
    let public = URL_SAFE_NO_PAD.encode(key().public_key().as_ref());
    let list = json!({"keys": [{"kty": "OKP", "crv": "Ed25519", "kid": "k", "x": public}]});
    Keys::read(list.to_string().as_bytes()).unwrap()
}

fn token(header: &Value, claims: &Value) -> String {
    let message = format!("{}.{}", encoded(header), encoded(claims));
    let signature = URL_SAFE_NO_PAD.encode(key().sign(message.as_bytes()));
    format!("{message}.{signature}")
}

/// Claims that are taken, with others in the place of some.
fn claims(other: Value) -> Value {
    let mut claims = json!({
        "iss": "https://id.example", "aud": "flotilla", "exp": NOW + 60, "sub": "ada", "groups": ["shop", "sre"],
    });
    for (name, value) in other.as_object().unwrap() {
        claims[name] = value.clone();
    }
    claims
}

fn said(other: Value) -> Result<Person, Refused> {
    let token = token(&json!({"alg": "EdDSA", "kid": "k"}), &claims(other));
    let verified = verify(&token, &keys(), &provider(), NOW)?;
    assert!(NOW < verified.until, "it holds now");
    Ok(verified.person)
}

fn refused(other: Value) -> Refused {
    said(other).expect_err("it is refused")
}

#[test]
fn each_kind_of_signature_is_checked_with_the_key_that_the_token_names() {
    let (keys, tokens) = signed();
    assert_eq!(tokens.len(), 9);
    for (name, token) in tokens {
        let person = verify(&token, &keys, &provider(), NOW).map(|verified| verified.person.user);
        assert_eq!(person, Ok("ada".to_owned()), "{name}");
        // One letter of what was signed, of the signature, and of the key's name.
        let (message, signature) = token.rsplit_once('.').unwrap();
        let (header, payload) = message.split_once('.').unwrap();
        let other = encoded(&claims(json!({"sub": "eve"})));
        let forged = format!("{header}.{other}.{signature}");
        assert_eq!(
            verify(&forged, &keys, &provider(), NOW),
            Err(Refused::Signature),
            "{name}"
        );
        let first = if signature.starts_with('A') { "B" } else { "A" };
        let bent = format!("{header}.{payload}.{first}{}", &signature[1..]);
        assert_eq!(
            verify(&bent, &keys, &provider(), NOW),
            Err(Refused::Signature),
            "{name}"
        );
        let unsigned = format!("{header}.{payload}.");
        assert_eq!(
            verify(&unsigned, &keys, &provider(), NOW),
            Err(Refused::Signature),
            "{name}"
        );
        let unknown = encoded(&json!({"alg": name, "kid": "gone"}));
        let renamed = format!("{unknown}.{payload}.{signature}");
        assert_eq!(
            verify(&renamed, &keys, &provider(), NOW),
            Err(Refused::KeyUnknown),
            "{name}"
        );
    }
}

#[test]
fn no_token_chooses_how_it_is_believed() {
    let (keys, _) = signed();
    let body = encoded(&claims(json!({})));
    let refused = |header: Value, signature: &str| {
        let token = format!("{}.{body}.{signature}", encoded(&header));
        verify(&token, &keys, &provider(), NOW).expect_err("it is refused")
    };
    for name in ["none", "None", "NONE", "HS256", "HS384", "HS512", "ES256K", "", "RS1"] {
        assert_eq!(refused(json!({"alg": name}), ""), Refused::Algorithm, "{name}");
        assert_eq!(
            refused(json!({"alg": name, "kid": "shared"}), "AA"),
            Refused::Algorithm,
            "{name}"
        );
    }
    assert_eq!(refused(json!({}), "AA"), Refused::Algorithm);
    assert_eq!(refused(json!({"alg": ["RS256"]}), "AA"), Refused::Algorithm);
    // A key is used for what it is for.
    assert_eq!(
        refused(json!({"alg": "RS256", "kid": "p256"}), "AA"),
        Refused::KeyUnknown
    );
    assert_eq!(
        refused(json!({"alg": "EdDSA", "kid": "rsa"}), "AA"),
        Refused::KeyUnknown
    );
    // A key that the token brings along is nobody's.
    let own = json!({"alg": "EdDSA", "kid": "mine", "jwk": {"kty": "OKP"}, "jku": "https://evil.example/keys"});
    assert_eq!(refused(own, "AA"), Refused::KeyUnknown);
    let extended = json!({"alg": "EdDSA", "kid": "k", "crit": ["b64"], "b64": false});
    assert_eq!(
        verify(&token(&extended, &claims(json!({}))), &self::keys(), &provider(), NOW),
        Err(Refused::NoToken)
    );
}

#[test]
fn a_token_without_a_keys_name_is_tried_with_each_key_of_its_kind() {
    let named = token(&json!({"alg": "EdDSA"}), &claims(json!({})));
    assert!(verify(&named, &keys(), &provider(), NOW).is_ok());
    let (others, _) = signed();
    assert_eq!(verify(&named, &others, &provider(), NOW), Err(Refused::Signature));
}

#[test]
fn a_token_is_of_the_provider_for_us_and_of_now() {
    assert_eq!(said(json!({})).unwrap().groups, ["shop", "sre"]);
    assert!(said(json!({"aud": ["other", "kubectl"]})).is_ok());
    for issuer in [
        "https://id.example/",
        "https://id.example.evil",
        "HTTPS://id.example",
        "",
    ] {
        assert_eq!(refused(json!({"iss": issuer})), Refused::Issuer, "{issuer}");
    }
    assert_eq!(refused(json!({"iss": ["https://id.example"]})), Refused::Issuer);
    for audience in [json!("other"), json!([]), json!(null), json!("flotilla ")] {
        assert_eq!(refused(json!({"aud": audience})), Refused::Audience, "{audience}");
    }
    assert_eq!(
        refused(json!({"aud": {"flotilla": 1}})),
        Refused::Claim("aud".to_owned())
    );
    assert!(said(json!({"exp": NOW - TOKEN_SKEW_SECONDS + 1})).is_ok());
    assert!(said(json!({"exp": 1_790_000_001.5})).is_ok());
    for expires in [NOW - TOKEN_SKEW_SECONDS, NOW - 86_400, 0, i64::MIN] {
        assert_eq!(refused(json!({"exp": expires})), Refused::Expired, "{expires}");
    }
    for expires in [json!(null), json!("never"), json!(1e300)] {
        assert_eq!(
            refused(json!({"exp": expires})),
            Refused::Claim("exp".to_owned()),
            "{expires}"
        );
    }
    assert!(said(json!({"nbf": NOW + TOKEN_SKEW_SECONDS})).is_ok());
    assert_eq!(refused(json!({"nbf": NOW + TOKEN_SKEW_SECONDS + 1})), Refused::NotYet);
    assert_eq!(refused(json!({"nbf": "soon"})), Refused::Claim("nbf".to_owned()));
}

#[test]
fn people_and_groups_are_named_by_the_claims_that_were_chosen() {
    let by = |change: &dyn Fn(&mut Provider), other: Value| {
        let mut provider = provider();
        change(&mut provider);
        let token = token(&json!({"alg": "EdDSA"}), &claims(other));
        verify(&token, &keys(), &provider, NOW)
            .map(|Verified { person, .. }| format!("{} {}", person.user, person.groups.join(",")))
    };
    let prefixed = |provider: &mut Provider| {
        provider.user_prefix = "id:".to_owned();
        provider.groups_prefix = "team:".to_owned();
    };
    assert_eq!(by(&prefixed, json!({})).unwrap(), "id:ada team:shop,team:sre");
    assert_eq!(by(&|provider| provider.groups_claim = None, json!({})).unwrap(), "ada ");
    assert_eq!(by(&|_| (), json!({"groups": "shop"})).unwrap(), "ada shop");
    assert_eq!(by(&|_| (), json!({"groups": null})).unwrap(), "ada ");
    let wrong = |name: &str| Err(Refused::Claim(name.to_owned()));
    assert_eq!(by(&|_| (), json!({"groups": [1]})), wrong("groups"));
    assert_eq!(by(&|_| (), json!({"sub": ""})), wrong("sub"));
    assert_eq!(by(&|_| (), json!({"sub": 7})), wrong("sub"));
    let email = |provider: &mut Provider| provider.user_claim = "email".to_owned();
    let address = |verified: Value| json!({"email": "ada@x.example", "groups": [], "email_verified": verified});
    assert_eq!(by(&email, address(json!(true))).unwrap(), "ada@x.example ");
    for verified in [json!(false), json!("true"), json!(null), json!(1)] {
        assert_eq!(by(&email, address(verified)), Err(Refused::EmailUnverified));
    }
    assert_eq!(by(&|_| (), json!({"sub": "system:admin"})), Err(Refused::Reserved));
    assert_eq!(
        by(&|_| (), json!({"groups": ["shop", "system:masters", "flotilla:sre"]})).unwrap(),
        "ada shop",
        "who puts somebody into such a group locks nobody out"
    );
    assert_eq!(
        by(&prefixed, json!({"sub": "system:admin"})).unwrap(),
        "id:system:admin team:shop,team:sre"
    );
}

#[test]
fn what_is_no_token_is_refused_before_it_is_read() {
    let check = |token: &str, expected: Refused| {
        assert_eq!(verify(token, &keys(), &provider(), NOW), Err(expected), "{token:.40}");
    };
    for token in ["", "a", "a.b", "..", "a.b.c", "!!.!!.!!", "e30.e30"] {
        check(token, Refused::NoToken);
    }
    check("e30.e30.e30", Refused::Algorithm);
    check(&"a".repeat(TOKEN_BYTES_MAX + 1), Refused::TooLarge);
    let whole = token(&json!({"alg": "EdDSA"}), &claims(json!({})));
    check(&format!("{whole}.x"), Refused::Signature);
    check(&format!("{whole}="), Refused::Signature);
    for end in 0..whole.len() {
        assert!(
            verify(&whole[..end], &keys(), &provider(), NOW).is_err(),
            "{end} bytes of it are none"
        );
    }
}

#[test]
fn a_list_of_keys_is_read_for_the_keys_that_can_be_used() {
    let read = |text: &str| Keys::read(text.as_bytes()).err();
    assert_eq!(read("{}"), Some(KeysWrong::NoList));
    assert_eq!(read("<html>"), Some(KeysWrong::NoList));
    assert_eq!(
        read(&" ".repeat(crate::limits::KEYS_BYTES_MAX + 1)),
        Some(KeysWrong::TooLarge)
    );
    assert_eq!(
        read(r#"{"keys": [{"kty": "oct", "k": "c2VjcmV0"}]}"#),
        Some(KeysWrong::NoKey)
    );
    // A key for another purpose, and one for another algorithm.
    let public = URL_SAFE_NO_PAD.encode(key().public_key().as_ref());
    let with = |more: &str| format!(r#"{{"keys": [{{"kty": "OKP", "crv": "Ed25519", "x": "{public}"{more}}}]}}"#);
    assert_eq!(read(&with("")), None);
    assert_eq!(read(&with(r#", "use": "enc""#)), Some(KeysWrong::NoKey));
    let other = Keys::read(with(r#", "alg": "RS256""#).as_bytes());
    assert!(!other.is_ok_and(|keys| keys.fitting(None, Algorithm::EdDSA).next().is_some()));
}
