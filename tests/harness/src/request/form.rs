//! The form in which an answer is wanted: whole objects, their metadata, or a table.

/// A form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Whole,
    Metadata,
    Table,
}

impl Form {
    /// By the first media type of an Accept header that can be served; `None` when there is none.
    pub(crate) fn of(accept: &str) -> Option<Self> {
        if accept.trim().is_empty() {
            return Some(Self::Whole);
        }
        accept.split(',').find_map(|media| {
            let mut parts = media.split(';').map(str::trim);
            let served = matches!(parts.next()?, "application/json" | "*/*" | "application/*");
            let parts: Vec<_> = parts.collect();
            let parameter = |name: &str| parts.iter().find_map(|part| part.strip_prefix(name));
            match parameter("as=") {
                _ if !served => None,
                None => Some(Self::Whole),
                Some("Table") => (parameter("v=") == Some("v1")).then_some(Self::Table),
                Some("PartialObjectMetadata" | "PartialObjectMetadataList") => {
                    (parameter("v=") == Some("v1")).then_some(Self::Metadata)
                }
                Some(_) => None,
            }
        })
    }
}

/// Whether the aggregated discovery document is wanted.
pub(crate) fn wants_aggregated(accept: &str) -> bool {
    accept.split(',').next().is_some_and(|first| {
        first.contains("as=APIGroupDiscoveryList") && first.contains("v=v2") && !first.contains("v=v2beta1")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(accept: &str, expected: Option<Form>) {
        assert_eq!(Form::of(accept), expected, "{accept}");
    }

    #[test]
    fn the_first_form_that_can_be_served_is() {
        check("", Some(Form::Whole));
        check("*/*", Some(Form::Whole));
        check(
            "application/vnd.kubernetes.protobuf, application/json",
            Some(Form::Whole),
        );
        check("application/vnd.kubernetes.protobuf", None);
        check(
            "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1",
            Some(Form::Table),
        );
        check(
            "application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json",
            Some(Form::Whole),
        );
        check(
            "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
            Some(Form::Metadata),
        );
    }
}
