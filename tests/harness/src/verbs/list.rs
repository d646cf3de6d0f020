//! Lists, page by page, of one moment.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::json;

use super::{Answer, Ask};
use crate::failure::Failure;
use crate::request::Selection;
use crate::store::{Key, Stored};
use crate::table;

/// Where a list goes on.
struct Continue {
    version: u64,
    after: Key,
}

impl Continue {
    fn text(&self) -> String {
        let token = json!([self.version, self.after.namespace, self.after.name]);
        URL_SAFE_NO_PAD.encode(token.to_string())
    }

    fn read(text: &str) -> Result<Self, Failure> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok();
        let token = bytes.and_then(|bytes| serde_json::from_slice::<(u64, String, String)>(&bytes).ok());
        let (version, namespace, name) =
            token.ok_or_else(|| Failure::bad_request("continue key is not valid: it was not made by this server"))?;
        Ok(Self {
            version,
            after: Key::new(&namespace, &name),
        })
    }
}

impl Ask<'_> {
    pub(super) fn list(&mut self) -> Result<Answer, Failure> {
        let selection = Selection::of(&self.call.query, &self.kind)?;
        let form = self.form()?;
        let (version, after, items) = self.moment()?;
        let limit = self.call.query.number("limit")?.filter(|limit| *limit > 0);
        self.call.query.number("timeoutSeconds")?;
        let limit = limit
            .and_then(|limit| usize::try_from(limit).ok())
            .unwrap_or(usize::MAX);
        let mut objects = Vec::new();
        let mut last = None;
        let mut left = 0u64;
        for (key, stored) in items {
            if after.as_ref().is_some_and(|after| key <= *after) {
                continue;
            }
            if objects.len() == limit {
                left += 1;
                continue;
            }
            let object = stored.object();
            if selection.matches(&object) {
                objects.push(self.as_version(object));
                last = Some(key);
            }
        }
        let mut metadata = json!({"resourceVersion": version.to_string()});
        if left > 0
            && let Some(after) = last
        {
            metadata["continue"] = Continue { version, after }.text().into();
            if selection.is_empty() {
                metadata["remainingItemCount"] = left.into();
            }
        }
        Ok(Answer::ok(table::many(
            &self.kind,
            form,
            objects,
            metadata,
            &self.call.query,
        )))
    }

    /// Version, where to go on, and the objects of that moment.
    #[expect(clippy::type_complexity, reason = "three plain values, used once")]
    fn moment(&self) -> Result<(u64, Option<Key>, Vec<(Key, Arc<Stored>)>), Failure> {
        let query = &self.call.query;
        let asked = query.text("resourceVersion").filter(|text| !text.is_empty());
        let asked = asked.map(number).transpose()?;
        let rule = query.text("resourceVersionMatch").filter(|text| !text.is_empty());
        if let Some(token) = query.text("continue").filter(|text| !text.is_empty()) {
            if rule.is_some() {
                return Err(forbidden("resourceVersionMatch is forbidden when continue is provided"));
            }
            let token = Continue::read(token)?;
            let items = self.at(token.version).ok_or_else(|| self.too_old(&token))?;
            return Ok((token.version, Some(token.after), items));
        }
        match (rule, asked) {
            (Some(_), None) => Err(forbidden(
                "resourceVersionMatch is forbidden unless resourceVersion is provided",
            )),
            (Some("Exact"), Some(0)) => Err(forbidden(
                "resourceVersionMatch \"Exact\" is forbidden for resourceVersion \"0\"",
            )),
            (Some("Exact"), Some(version)) => {
                self.not_too_new(version)?;
                let items = self
                    .at(version)
                    .ok_or_else(|| Failure::expired("The resourceVersion for the provided list is too old."))?;
                Ok((version, None, items))
            }
            (None | Some("NotOlderThan"), version) => {
                self.not_too_new(version.unwrap_or(0))?;
                let found = self.state.list(&self.kind.shelf, &self.place.namespace);
                let items = found.map(|(key, stored)| (key.clone(), stored.clone())).collect();
                Ok((self.state.version(), None, items))
            }
            (Some(other), _) => Err(Failure::bad_request(format!("invalid resourceVersionMatch {other:?}"))),
        }
    }

    fn at(&self, version: u64) -> Option<Vec<(Key, Arc<Stored>)>> {
        let namespace = &self.place.namespace;
        let items = self.state.list_at(&self.kind.shelf, version)?.into_iter();
        Some(
            items
                .filter(|(key, _)| namespace.is_empty() || *key.namespace == **namespace)
                .collect(),
        )
    }

    fn too_old(&self, token: &Continue) -> Failure {
        let fresh = Continue {
            version: self.state.version(),
            after: token.after.clone(),
        };
        let message = "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.";
        let mut failure = Failure::expired(message);
        failure.go_on = Some(fresh.text());
        failure
    }

    pub(super) fn not_too_new(&self, version: u64) -> Result<(), Failure> {
        let current = self.state.version();
        if version <= current {
            return Ok(());
        }
        let message = format!("Too large resource version: {version}, current: {current}");
        let cause = json!({"reason": "ResourceVersionTooLarge", "message": "Too large resource version"});
        Err(Failure::new(504, "Timeout", message).about(json!({"causes": [cause], "retryAfterSeconds": 1})))
    }
}

fn forbidden(words: &str) -> Failure {
    let problem = (
        "resourceVersionMatch".to_owned(),
        "FieldValueForbidden",
        format!("Forbidden: {words}"),
    );
    Failure::invalid("meta.k8s.io", "ListOptions", "", &[problem])
}

/// A version that a caller names.
pub(super) fn number(text: &str) -> Result<u64, Failure> {
    let refused = || Failure::bad_request(format!("Invalid value: {text:?}: it is no resource version"));
    text.parse().map_err(|_| refused())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_continue_token_is_read_back_and_another_is_refused() {
        let token = Continue {
            version: 7,
            after: Key::new("shop", "a"),
        };
        let read = Continue::read(&token.text()).expect("it is ours");
        assert_eq!((read.version, read.after), (7, Key::new("shop", "a")));
        assert!(Continue::read("nonsense").is_err());
    }
}
