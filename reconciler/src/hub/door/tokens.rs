//! Static tokens: the file that Kubernetes' own `--token-auth-file` takes, `token,user,uid,"group1,group2"`, in which a
//! token may stand as `sha256:HEX` as well. Only digests are kept.

use render::access::Person;
use sha2::{Digest as _, Sha256};

/// What is kept of a token.
pub(super) type TokenDigest = [u8; 32];

/// Who has which token.
pub(super) struct Tokens(Vec<(TokenDigest, Person)>);

/// What is kept of a token.
pub(super) fn digest(token: &str) -> TokenDigest {
    Sha256::digest(token).into()
}

impl Tokens {
    /// Reads a file. What is wrong is told by its line, and without what stands there.
    pub(super) fn parse(text: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(text).map_err(|_| "it is no text")?;
        let lines = text.lines().enumerate();
        let lines = lines.filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
        let people: Result<_, String> = lines
            .map(|(at, line)| person(line).map_err(|why| format!("line {}: {why}", at + 1)))
            .collect();
        people.map(Self)
    }

    /// Whose token has this digest. Every line is compared, so that the time says nothing of where one stands.
    pub(super) fn person(&self, digest: &TokenDigest) -> Option<&Person> {
        let mut found = None;
        for (known, person) in &self.0 {
            let differing = known.iter().zip(digest).fold(0, |all, (a, b)| all | (a ^ b));
            if differing == 0 {
                found = Some(person);
            }
        }
        found
    }
}

fn person(line: &str) -> Result<(TokenDigest, Person), &'static str> {
    let mut fields = line.splitn(4, ',').map(str::trim);
    let (token, user) = match (fields.next(), fields.next()) {
        (Some(token), Some(user)) if !token.is_empty() && !user.is_empty() => (token, user),
        _ => return Err("it is not token,user,uid,\"group1,group2\""),
    };
    let digest = match token.strip_prefix("sha256:") {
        Some(text) => {
            let bytes = hex_bytes(text).ok_or("what stands after sha256: is no digest of 64 hex digits")?;
            bytes
                .try_into()
                .map_err(|_| "what stands after sha256: is no digest of 64 hex digits")?
        }
        None => digest(token),
    };
    let groups = fields.nth(1).unwrap_or_default().trim_matches('"');
    let groups = groups.split(',').map(str::trim).filter(|group| !group.is_empty());
    let person = Person {
        user: user.to_owned(),
        groups: groups.map(str::to_owned).collect(),
    };
    Ok((digest, person))
}

fn hex_bytes(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u32>> = text.chars().map(|digit| digit.to_digit(16)).collect();
    let digits = digits.filter(|digits| digits.len() == 64)?;
    let byte = |pair: &[u32]| u8::try_from(pair[0] * 16 + pair[1]).ok();
    digits.chunks_exact(2).map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_known_by_itself_or_by_its_digest() {
        let hex: String = digest("other").iter().map(|byte| format!("{byte:02x}")).collect();
        let file = format!("# people\nsecret,ada,1,\"ops,dev\"\n\nsha256:{hex},bob,2\n");
        let tokens = Tokens::parse(file.as_bytes()).expect("it is a file of tokens");
        let who = |token| {
            tokens
                .person(&digest(token))
                .map(|person| (person.user.clone(), person.groups.join(" ")))
        };
        assert_eq!(who("secret"), Some(("ada".to_owned(), "ops dev".to_owned())));
        assert_eq!(who("other"), Some(("bob".to_owned(), String::new())));
        assert_eq!(who("secre"), None);
        assert_eq!(who(""), None);
        assert_eq!(who(&format!("sha256:{hex}")), None, "a digest is no token");
    }

    #[test]
    fn what_is_wrong_in_a_file_of_tokens_is_told_without_the_token() {
        for wrong in ["a,b,c\nsecret", "a,b\nsha256:secret,bob", "a,b\n,bob"] {
            let told = Tokens::parse(wrong.as_bytes()).map(|_| ()).expect_err(wrong);
            assert!(told.starts_with("line 2: ") && !told.contains("secret"), "{told}");
        }
    }
}
