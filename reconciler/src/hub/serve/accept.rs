//! Which form the caller wants, from its `Accept` header. We write JSON only.

use http::{HeaderMap, header};

/// The forms an answer can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Objects as they are.
    Plain,
    /// `meta.k8s.io/v1` Table.
    Table,
    /// `meta.k8s.io/v1` PartialObjectMetadata, or a list of them.
    Metadata,
    /// `apidiscovery.k8s.io/v2` APIGroupDiscoveryList; at the roots of discovery only.
    Discovery,
}

/// The first form among the caller's that we can write; `None`: there is none.
pub(super) fn form(headers: &HeaderMap, discovery: bool) -> Option<Form> {
    let mut wanted = headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .peekable();
    if wanted.peek().is_none() {
        return Some(Form::Plain);
    }
    wanted
        .flat_map(|value| value.split(','))
        .find_map(|range| written(range, discovery))
}

fn written(range: &str, discovery: bool) -> Option<Form> {
    let mut parts = range.split(';').map(str::trim);
    let media = parts.next()?.to_ascii_lowercase();
    if !matches!(media.as_str(), "application/json" | "application/*" | "*/*") {
        return None;
    }
    let parameters: Vec<_> = parts.filter_map(|part| part.split_once('=')).collect();
    let parameter = |name: &str| parameters.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
    match (parameter("as"), parameter("g"), parameter("v")) {
        (None, ..) => Some(Form::Plain),
        (Some("Table"), Some("meta.k8s.io"), Some("v1")) if !discovery => Some(Form::Table),
        (Some("PartialObjectMetadata" | "PartialObjectMetadataList"), Some("meta.k8s.io"), Some("v1"))
            if !discovery =>
        {
            Some(Form::Metadata)
        }
        (Some("APIGroupDiscoveryList"), Some("apidiscovery.k8s.io"), Some("v2")) if discovery => Some(Form::Discovery),
        (Some(_), ..) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(accept: &str, discovery: bool, expected: Option<Form>) {
        let value = accept.parse().expect("a header's value");
        let headers = HeaderMap::from_iter([(header::ACCEPT, value)]);
        assert_eq!(form(&headers, discovery), expected, "{accept}");
    }

    #[test]
    fn the_first_form_that_we_can_write_is_taken() {
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        check(table, false, Some(Form::Table));
        check("application/json", false, Some(Form::Plain));
        check("*/*", false, Some(Form::Plain));
        check(
            "application/vnd.kubernetes.protobuf,application/json",
            false,
            Some(Form::Plain),
        );
        check("application/vnd.kubernetes.protobuf", false, None);
        check(
            "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
            false,
            Some(Form::Metadata),
        );
        let groups = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
        check(groups, true, Some(Form::Discovery));
        check(groups, false, Some(Form::Plain));
        assert_eq!(
            form(&HeaderMap::new(), false),
            Some(Form::Plain),
            "no header accepts anything"
        );
    }
}
