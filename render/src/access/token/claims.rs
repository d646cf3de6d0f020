//! ID tokens of an identity provider (OpenID Connect): a signature, and what is said under it.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, crypto};
use serde_json::{Map, Value};

use super::keys::Keys;
use crate::access::{Person, is_reserved};
use crate::limits::{TOKEN_BYTES_MAX, TOKEN_SKEW_SECONDS};

/// What tokens of a provider are held to, and how people are named by them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provider {
    /// `iss`, letter by letter.
    pub issuer: String,
    /// `aud` has to name one of them: the ids under which the provider knows us.
    pub audiences: Vec<String>,
    /// The claim that names the person, such as `sub`. From `email` follows that `email_verified` has to be true.
    pub user_claim: String,
    /// What is set before the name.
    pub user_prefix: String,
    /// The claim with the groups, a list of texts or one text. `None`: no groups.
    pub groups_claim: Option<String>,
    /// What is set before each group.
    pub groups_prefix: String,
}

/// Whom a token names, and for how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// Who.
    pub person: Person,
    /// From when on it counts no more, in seconds since 1970.
    pub until: i64,
}

/// Why a token is refused. Tells nothing of what it says but the names of claims.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It has more bytes than any that is meant.
    #[error("the token has more than {TOKEN_BYTES_MAX} bytes")]
    TooLarge,
    /// It has not the form of a signed token.
    #[error("the token is no signed JWT")]
    NoToken,
    /// Its signature is of a kind that is not taken, such as none at all.
    #[error("the token is signed in a way that is not taken; RS, PS and ES with 256 to 512 and EdDSA are")]
    Algorithm,
    /// No known key can have signed it. The provider may have a new one.
    #[error("no known key of the identity provider can have signed the token")]
    KeyUnknown,
    /// The signature is wrong.
    #[error("the signature of the token is wrong")]
    Signature,
    /// It is of another provider.
    #[error("the token is of another issuer")]
    Issuer,
    /// It was made for somebody else.
    #[error("the token is for another audience")]
    Audience,
    /// It is over.
    #[error("the token is expired")]
    Expired,
    /// It is not yet to be taken.
    #[error("the token is not valid yet; compare the clocks")]
    NotYet,
    /// A claim is missing, or is not of the type that it should have.
    #[error("the token has no usable claim {0:?}")]
    Claim(String),
    /// The address may be anybody's.
    #[error("the identity provider does not say that the person's e-mail address is verified")]
    EmailUnverified,
    /// The name is one that nobody may have.
    #[error("the token names somebody that begins with system: or flotilla:")]
    Reserved,
}

/// Who a token says its bearer is, where a provider signed that with one of its keys and it holds at a time, in seconds
/// since 1970. Nothing is read of what is said before the signature is checked.
pub fn verify(token: &str, keys: &Keys, provider: &Provider, now: i64) -> Result<Verified, Refused> {
    if token.len() > TOKEN_BYTES_MAX {
        return Err(Refused::TooLarge);
    }
    let (message, signature) = token.rsplit_once('.').ok_or(Refused::NoToken)?;
    let (header, payload) = message.split_once('.').ok_or(Refused::NoToken)?;
    check_signature(header, message, signature, keys)?;
    let claims = object(payload)?;
    let until = check_claims(&claims, provider, now)?;
    let person = person(&claims, provider)?;
    Ok(Verified { person, until })
}

/// A part of a token that is a JSON object.
fn object(part: &str) -> Result<Map<String, Value>, Refused> {
    let bytes = URL_SAFE_NO_PAD.decode(part).map_err(|_| Refused::NoToken)?;
    serde_json::from_slice(&bytes).map_err(|_| Refused::NoToken)
}

fn check_signature(header: &str, message: &str, signature: &str, keys: &Keys) -> Result<(), Refused> {
    let header = object(header)?;
    // An extension that has to be understood is not.
    if header.contains_key("crit") {
        return Err(Refused::NoToken);
    }
    let name = header.get("alg").and_then(Value::as_str).ok_or(Refused::Algorithm)?;
    let algorithm: Algorithm = name.parse().map_err(|_| Refused::Algorithm)?;
    if matches!(algorithm, Algorithm::HS256 | Algorithm::HS384 | Algorithm::HS512) {
        return Err(Refused::Algorithm);
    }
    let id = match header.get("kid") {
        None => None,
        Some(id) => Some(id.as_str().ok_or(Refused::NoToken)?),
    };
    let mut fitting = keys.fitting(id, algorithm).peekable();
    if fitting.peek().is_none() {
        return Err(Refused::KeyUnknown);
    }
    let is_by = |key| crypto::verify(signature, message.as_bytes(), key, algorithm).unwrap_or(false);
    if fitting.any(is_by) {
        Ok(())
    } else {
        Err(Refused::Signature)
    }
}

/// Gives until when they hold.
fn check_claims(claims: &Map<String, Value>, provider: &Provider, now: i64) -> Result<i64, Refused> {
    if claims.get("iss").and_then(Value::as_str) != Some(&provider.issuer) {
        return Err(Refused::Issuer);
    }
    let audiences = texts(claims, "aud")?.unwrap_or_default();
    if !audiences.iter().any(|audience| provider.audiences.contains(audience)) {
        return Err(Refused::Audience);
    }
    let expires = time(claims, "exp")?.ok_or_else(|| Refused::Claim("exp".to_owned()))?;
    let until = expires.saturating_add(TOKEN_SKEW_SECONDS);
    if now >= until {
        return Err(Refused::Expired);
    }
    match time(claims, "nbf")? {
        Some(begins) if now < begins.saturating_sub(TOKEN_SKEW_SECONDS) => Err(Refused::NotYet),
        _ => Ok(until),
    }
}

fn person(claims: &Map<String, Value>, provider: &Provider) -> Result<Person, Refused> {
    let claim = provider.user_claim.as_str();
    let name = claims
        .get(claim)
        .and_then(Value::as_str)
        .filter(|name| !name.is_empty());
    let name = name.ok_or_else(|| Refused::Claim(claim.to_owned()))?;
    if claim == "email" && claims.get("email_verified") != Some(&Value::Bool(true)) {
        return Err(Refused::EmailUnverified);
    }
    let groups = match &provider.groups_claim {
        Some(claim) => texts(claims, claim)?.unwrap_or_default(),
        None => Vec::new(),
    };
    let user = format!("{}{name}", provider.user_prefix);
    if is_reserved(&user) {
        return Err(Refused::Reserved);
    }
    // A provider may let anybody put others into groups: one that is nobody's takes the rest of a login with it otherwise.
    let groups = groups.iter().map(|group| format!("{}{group}", provider.groups_prefix));
    let groups = groups.filter(|group| !is_reserved(group)).collect();
    Ok(Person { user, groups })
}

/// A claim that is one text or a list of texts; `None` where it is absent.
fn texts(claims: &Map<String, Value>, name: &str) -> Result<Option<Vec<String>>, Refused> {
    let wrong = || Refused::Claim(name.to_owned());
    match claims.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(vec![text.clone()])),
        Some(Value::Array(list)) => {
            let texts = list
                .iter()
                .map(|item| item.as_str().map(str::to_owned).ok_or_else(wrong));
            texts.collect::<Result<_, _>>().map(Some)
        }
        Some(_) => Err(wrong()),
    }
}

/// A time in whole seconds; fractions are cut off, as some providers write them.
fn time(claims: &Map<String, Value>, name: &str) -> Result<Option<i64>, Refused> {
    let Some(value) = claims.get(name) else {
        return Ok(None);
    };
    let whole = value.as_i64().or_else(|| {
        let seconds = value.as_f64().filter(|seconds| seconds.abs() < 1e15)?;
        #[expect(clippy::cast_possible_truncation, reason = "it is smaller than what an i64 holds")]
        Some(seconds as i64)
    });
    whole.map(Some).ok_or_else(|| Refused::Claim(name.to_owned()))
}

#[cfg(test)]
mod tests;
