//! Static tokens: the file that Kubernetes' own `--token-auth-file` takes, `token,user,uid,"group1,group2"`, in which a
//! token may stand as `sha256:HEX` as well. Only digests are kept.

use render::access::Person;
use sha2::{Digest as _, Sha256};

use crate::limits::TOKEN_CHARS_MIN;

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

fn person(line: &str) -> Result<(TokenDigest, Person), String> {
    let fields = fields(line).ok_or("a quotation mark in it has no end")?;
    let (token, user) = match fields.as_slice() {
        [token, user, ..] if !token.is_empty() && !user.is_empty() => (token.as_str(), user),
        _ => return Err("it is not token,user,uid,\"group1,group2\"".to_owned()),
    };
    let digest = match token.strip_prefix("sha256:") {
        Some(text) => {
            let digest = hex_bytes(text).and_then(|bytes| bytes.try_into().ok());
            digest.ok_or("what stands after sha256: is no digest of 64 hex digits")?
        }
        None if token.chars().count() < TOKEN_CHARS_MIN => {
            return Err(format!(
                "its token has fewer than {TOKEN_CHARS_MIN} characters, and could be guessed"
            ));
        }
        None => digest(token),
    };
    // Without quotation marks each group is a field of its own.
    let groups = fields.iter().skip(3).flat_map(|field| field.split(','));
    let groups = groups.map(str::trim).filter(|group| !group.is_empty());
    let person = Person {
        user: user.clone(),
        groups: groups.map(str::to_owned).collect(),
    };
    Ok((digest, person))
}

/// The fields of a line as Kubernetes reads them: one in quotation marks may hold commas, and a mark by two of them. `None`: a
/// mark has no end.
fn fields(line: &str) -> Option<Vec<String>> {
    let mut fields = vec![String::new()];
    let (mut chars, mut is_quoted) = (line.chars().peekable(), false);
    while let Some(char) = chars.next() {
        let field = fields.last_mut()?;
        match char {
            '"' if is_quoted && chars.next_if_eq(&'"').is_some() => field.push('"'),
            '"' if is_quoted => is_quoted = false,
            '"' if field.trim().is_empty() => is_quoted = true,
            ',' if !is_quoted => fields.push(String::new()),
            _ => field.push(char),
        }
    }
    let trimmed = fields.iter().map(|field| field.trim().to_owned());
    (!is_quoted).then(|| trimmed.collect())
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
        let hex: String = digest("another-long-token")
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let file = format!("# people\na-secret-of-16-ch,ada,1,\"ops,dev\"\n\nsha256:{hex},bob,2\n");
        let tokens = Tokens::parse(file.as_bytes()).expect("it is a file of tokens");
        let who = |token| {
            tokens
                .person(&digest(token))
                .map(|person| (person.user.clone(), person.groups.join(" ")))
        };
        assert_eq!(who("a-secret-of-16-ch"), Some(("ada".to_owned(), "ops dev".to_owned())));
        assert_eq!(who("another-long-token"), Some(("bob".to_owned(), String::new())));
        assert_eq!(who("a-secret-of-16-c"), None);
        assert_eq!(who(""), None);
        assert_eq!(who(&format!("sha256:{hex}")), None, "a digest is no token");
    }

    #[test]
    fn a_line_is_read_as_kubernetes_reads_it() {
        let who = |rest: &str| {
            let file = format!("a-secret-of-16-ch,{rest}\n");
            let tokens = Tokens::parse(file.as_bytes())?;
            let person = tokens.person(&digest("a-secret-of-16-ch")).expect("it is there");
            Ok(format!("{} in {}", person.user, person.groups.join("|")))
        };
        for (rest, expected) in [
            ("ada", "ada in "),
            ("ada,1,ops", "ada in ops"),
            ("ada,1,\"ops, dev\"", "ada in ops|dev"),
            ("ada,1,ops,dev", "ada in ops|dev"),
            ("\"ada\",\"1\",\"ops\"", "ada in ops"),
            ("\"Lovelace, Ada\",1,\"ops\"", "Lovelace, Ada in ops"),
            ("\"Ada \"\"A\"\"\", 1 , \"ops\" ", "Ada \"A\" in ops"),
            ("a\"b,1", "a\"b in "),
        ] {
            assert_eq!(who(rest), Ok(expected.to_owned()), "{rest}");
        }
        let open = who("\"ada,1,ops");
        assert_eq!(open, Err("line 1: a quotation mark in it has no end".to_owned()));
    }

    #[test]
    fn a_token_that_could_be_guessed_is_refused_with_its_line() {
        let short = Tokens::parse(b"# people\n\nfifteen-letters,ada\n")
            .map(|_| ())
            .expect_err("it is short");
        assert_eq!(
            short,
            "line 3: its token has fewer than 16 characters, and could be guessed"
        );
        assert!(Tokens::parse(b"sixteen-letters-,ada\n").is_ok());
    }

    #[test]
    fn what_is_wrong_in_a_file_of_tokens_is_told_without_the_token() {
        let first = "0123456789abcdef,b";
        for wrong in ["secret", "sha256:secret,bob", ",bob", "secret-of-15-ch,bob"] {
            let wrong = format!("{first}\n{wrong}");
            let told = Tokens::parse(wrong.as_bytes()).map(|_| ()).expect_err(&wrong);
            assert!(told.starts_with("line 2: ") && !told.contains("secret"), "{told}");
        }
    }
}
