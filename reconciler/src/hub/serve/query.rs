//! The parameters of a list or watch, as Kubernetes spells them.

use std::time::Duration;

use http::Uri;
use render::access::query;
use render::name::{wrong_label_key, wrong_label_value};
use render::selector::{LabelSelector, Operator, Requirement};

use super::answer::Refused;
use super::object::Object;
use crate::limits::{API_WATCH_MAX, SELECTOR_CHARS_MAX};

/// How long a watch lasts when it does not say; clients start the next one.
const WATCH_DEFAULT: Duration = Duration::from_secs(1_800);

/// What a list or watch asks for.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Query {
    pub(super) labels: LabelSelector,
    pub(super) name: Option<String>,
    pub(super) namespace: Option<String>,
    pub(super) watch: bool,
    pub(super) resource_version: String,
    pub(super) limit: Option<usize>,
    /// Where the page before ended.
    pub(super) after: Option<(String, String)>,
    pub(super) bookmarks: bool,
    pub(super) initial_events: bool,
    pub(super) timeout: Option<Duration>,
    pub(super) rows: Rows,
}

/// What a table's row carries beside its cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Rows {
    /// The object's metadata.
    #[default]
    Metadata,
    /// Nothing.
    None,
    /// The whole object.
    Object,
}

impl Query {
    /// Reads decoded pairs, none of which says what another says. Parameters that change nothing here are let be.
    pub(super) fn parse(pairs: &[(String, String)]) -> Result<Self, Refused> {
        let mut parsed = Self::default();
        for (at, (key, value)) in pairs.iter().enumerate() {
            if pairs.iter().skip(at + 1).any(|(other, _)| other == key) {
                return Err(Refused::bad_request(format!("{key} is said twice")));
            }
            match key.as_str() {
                "labelSelector" => parsed.labels = label_selector(value)?,
                "fieldSelector" => parsed.fields(value)?,
                "watch" => parsed.watch = query::is_true(value),
                "resourceVersion" => parsed.resource_version.clone_from(value),
                "limit" => parsed.limit = number(key, value)?.filter(|limit| *limit > 0),
                "continue" => parsed.after = read_continue(value)?,
                "allowWatchBookmarks" => parsed.bookmarks = query::is_true(value),
                "sendInitialEvents" => parsed.initial_events = query::is_true(value),
                "timeoutSeconds" => {
                    parsed.timeout = number(key, value)?.map(|seconds| Duration::from_secs(seconds as u64));
                }
                "includeObject" => {
                    parsed.rows = match value.as_str() {
                        "None" => Rows::None,
                        "Object" => Rows::Object,
                        _ => Rows::Metadata,
                    }
                }
                _ => {}
            }
        }
        Ok(parsed)
    }

    /// Whether it asks for this object.
    pub(super) fn selects(&self, object: &Object) -> bool {
        self.names(object) && self.labels.matches(&object.labels)
    }

    /// Whether it asks for an object of this name, whatever its labels are now. Its caller may know of no other.
    pub(super) fn names(&self, object: &Object) -> bool {
        let is = |wanted: &Option<String>, found: &str| wanted.as_ref().is_none_or(|wanted| wanted == found);
        is(&self.name, &object.name) && is(&self.namespace, &object.namespace)
    }

    /// How long a watch may last.
    pub(super) fn watch_timeout(&self) -> Duration {
        self.timeout.unwrap_or(WATCH_DEFAULT).min(API_WATCH_MAX)
    }

    fn fields(&mut self, text: &str) -> Result<(), Refused> {
        let unknown = || {
            let message = format!("field selector {text:?}: only metadata.name= and metadata.namespace= are known");
            Refused::bad_request(message)
        };
        for (field, value) in query::equal_fields(text).ok_or_else(unknown)? {
            let own = match field {
                "metadata.name" => &mut self.name,
                "metadata.namespace" => &mut self.namespace,
                _ => return Err(unknown()),
            };
            if own.replace(value.to_owned()).is_some() {
                return Err(Refused::bad_request(format!(
                    "field selector {text:?}: {field} is there twice"
                )));
            }
        }
        Ok(())
    }
}

/// The token of the page after this object.
pub(super) fn write_continue(object: &Object) -> String {
    format!("{}/{}", object.namespace, object.name)
}

fn read_continue(text: &str) -> Result<Option<(String, String)>, Refused> {
    if text.is_empty() {
        return Ok(None);
    }
    let parts = text
        .split_once('/')
        .ok_or_else(|| Refused::bad_request("continue is not a token of this API"))?;
    Ok(Some((parts.0.to_owned(), parts.1.to_owned())))
}

fn number(key: &str, value: &str) -> Result<Option<usize>, Refused> {
    if value.is_empty() {
        return Ok(None);
    }
    let number = value
        .parse()
        .map_err(|_| Refused::bad_request(format!("{key} {value:?} is not a number")))?;
    Ok(Some(number))
}

/// `a=b,c!=d,e in (f,g),h notin (i),j,!k`.
fn label_selector(text: &str) -> Result<LabelSelector, Refused> {
    if text.len() > SELECTOR_CHARS_MAX {
        return Err(Refused::bad_request("the label selector is too long"));
    }
    let parts = outside_parentheses(text)
        .into_iter()
        .map(str::trim)
        .filter(|part| !part.is_empty());
    let match_expressions = parts.map(requirement).collect::<Result<_, _>>()?;
    Ok(LabelSelector {
        match_expressions,
        ..LabelSelector::default()
    })
}

fn outside_parentheses(text: &str) -> Vec<&str> {
    let mut depth = 0_usize;
    text.split(|c| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    })
    .collect()
}

fn requirement(part: &str) -> Result<Requirement, Refused> {
    let one = |key: &str, operator, value: &str| (key.trim().to_owned(), operator, vec![value.trim().to_owned()]);
    let (key, operator, values) = if let Some((key, value)) = part.split_once("!=") {
        one(key, Operator::NotIn, value)
    } else if let Some((key, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
        one(key, Operator::In, value)
    } else if let Some((key, operator, list)) = set_based(part) {
        let list = list.split(',').map(|value| value.trim().to_owned()).collect();
        (key.to_owned(), operator, list)
    } else if let Some(key) = part.strip_prefix('!') {
        (key.trim().to_owned(), Operator::DoesNotExist, Vec::new())
    } else {
        (part.to_owned(), Operator::Exists, Vec::new())
    };
    if key.is_empty() || key.contains(|c: char| c.is_whitespace() || "()=!".contains(c)) {
        return Err(Refused::bad_request(format!("label selector {part:?} cannot be read")));
    }
    if let Some(rule) = wrong_label_key(&key) {
        return Err(Refused::bad_request(format!(
            "label selector {part:?}: its key is not valid: {rule}"
        )));
    }
    if let Some(rule) = values.iter().find_map(|value| wrong_label_value(value)) {
        return Err(Refused::bad_request(format!(
            "label selector {part:?}: its value is not valid: {rule}"
        )));
    }
    Ok(Requirement { key, operator, values })
}

/// `key in (a,b)` or `key notin (a,b)`.
fn set_based(part: &str) -> Option<(&str, Operator, &str)> {
    let (key, rest) = part.split_once(char::is_whitespace)?;
    let rest = rest.trim_start();
    let (operator, list) = match rest.strip_prefix("notin") {
        Some(list) => (Operator::NotIn, list),
        None => (Operator::In, rest.strip_prefix("in")?),
    };
    let list = list.trim().strip_prefix('(')?.strip_suffix(')')?;
    Some((key, operator, list))
}

/// All parameters of a request.
pub(super) fn pairs(uri: &Uri) -> Result<Vec<(String, String)>, Refused> {
    query::pairs(uri.query()).map_err(|unclear| Refused::bad_request(unclear.to_string()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use render::access::{Target, attributes};

    use super::*;

    #[track_caller]
    fn check(selector: &str, labels: &[(&str, &str)], expected: bool) {
        let labels: BTreeMap<_, _> = labels
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect();
        let read = label_selector(selector).expect("a selector");
        assert_eq!(read.matches(&labels), expected, "{selector} on {labels:?}");
    }

    #[test]
    fn label_selectors_mean_what_kubectl_means() {
        check("", &[], true);
        check("env=prod", &[("env", "prod")], true);
        check("env==prod,tier=web", &[("env", "prod")], false);
        check("env!=prod", &[], true);
        check("env in (prod, test),tier", &[("env", "test"), ("tier", "")], true);
        check("env notin (prod,test)", &[("env", "test")], false);
        check("!env", &[("env", "test")], false);
    }

    #[test]
    fn a_selector_that_cannot_be_read_is_refused() {
        for selector in [
            "env in prod",
            "=a",
            "a b",
            "(",
            "a in (b",
            "a===",
            "a=b=c",
            "a!==b",
            "a=b c",
            "-a",
            "a in (b c)",
        ] {
            assert!(label_selector(selector).is_err(), "{selector}");
        }
        let unread = |text: &str| query::pairs(Some(text)).map(|pairs| Query::parse(&pairs).is_err());
        assert_eq!(
            unread("fieldSelector=status.phase=Running"),
            Ok(true),
            "a field that is not indexed is not silently ignored"
        );
        assert_eq!(unread("fieldSelector=metadata.name=a,metadata.name=b"), Ok(true));
        assert_eq!(unread("watch=1&limit=1&watch=0"), Ok(true));
    }

    proptest::proptest! {
        #[test]
        fn what_the_door_judges_by_is_what_is_answered(
            query in "((watch|w%61tch|fieldSelector|field%53elector|limit)=\
                (metadata\\.name(=|==|%3D|!=)(a|b|%61|\\\\)?(,|%2C)?){0,2}(0|1|yes|FALSE|%zz|;|\\+)?&?){0,4}",
        ) {
            let path = "/apis/fleet.flotilla.dev/v1alpha1/managedclusters";
            let (judged, pairs) = (attributes("GET", path, Some(&query)), query::pairs(Some(&query)));
            if let (Ok(judged), Ok(pairs)) = (judged, pairs)
                && let Ok(answered) = Query::parse(&pairs)
            {
                proptest::prop_assert_eq!(judged.verb == "watch", answered.watch, "{}", query);
                if let Target::Resource { name, .. } = judged.target
                    && !name.is_empty()
                {
                    proptest::prop_assert_eq!(Some(name), answered.name, "{}", query);
                }
            }
        }
    }
}
