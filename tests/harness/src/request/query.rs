//! Query strings.

use crate::failure::Failure;

/// The parameters of a request, in their order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    pub(crate) fn parse(text: &str) -> Self {
        let pairs = text.split('&').filter(|pair| !pair.is_empty());
        let pairs = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        Self(
            pairs
                .map(|(name, value)| (decoded(name), decoded(&value.replace('+', " "))))
                .collect(),
        )
    }

    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(given, _)| given == name);
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn flag(&self, name: &str) -> bool {
        matches!(self.text(name), Some("true" | "1"))
    }

    /// A number; one below zero is none at all.
    pub(crate) fn number(&self, name: &str) -> Result<Option<u64>, Failure> {
        let Some(text) = self.text(name).filter(|text| !text.is_empty()) else {
            return Ok(None);
        };
        let refused = |_| Failure::bad_request(format!("strconv.ParseInt: parsing {text:?}: invalid syntax"));
        let number: i64 = text.parse().map_err(refused)?;
        Ok(u64::try_from(number).ok())
    }
}

/// Text with its `%41` read.
pub(super) fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let code = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        match (first, code.and_then(|code| u8::from_str_radix(code, 16).ok())) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_decoded() {
        let query = Query::parse("labelSelector=a%3Db%2Cc+in+%28d%29&watch=1&limit=5&x");
        assert_eq!(query.text("labelSelector"), Some("a=b,c in (d)"));
        assert!(query.flag("watch") && !query.flag("x"));
        assert_eq!(query.number("limit").ok(), Some(Some(5)));
        assert_eq!(query.number("timeoutSeconds").ok(), Some(None));
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for text in ["limit=x", "limit=5s", "limit=99999999999999999999"] {
            let refused = Query::parse(text).number("limit").expect_err("no number");
            assert_eq!(refused.status()["code"], 400, "{text}");
        }
    }
}
