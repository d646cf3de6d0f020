//! `metadata`, as far as a declaration needs it.

use std::collections::BTreeMap;

use super::super::fields::Fields;

/// A declaration's metadata; `name` is empty where it is missing, which has been reported.
#[derive(Debug, Default)]
pub(super) struct Metadata {
    pub(super) name: String,
    pub(super) namespace: Option<String>,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) annotations: BTreeMap<String, String>,
    pub(super) has_server_fields: bool,
}

const SERVER_FIELDS: &[&str] = &[
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generation",
    "managedFields",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
];

impl Metadata {
    pub(super) fn read(top: &mut Fields<'_>) -> Self {
        let Some(mut fields) = top.object("metadata") else {
            top.missing("metadata");
            return Self::default();
        };
        let metadata = Self {
            name: fields.required_text("name").unwrap_or_default().to_owned(),
            namespace: fields
                .text("namespace")
                .filter(|text| !text.is_empty())
                .map(str::to_owned),
            labels: fields.text_map("labels"),
            annotations: fields.text_map("annotations"),
            has_server_fields: fields.known(SERVER_FIELDS),
        };
        fields.finish();
        metadata
    }
}
