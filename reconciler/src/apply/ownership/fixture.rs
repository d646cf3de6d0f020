//! Managed fields for tests.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{FieldsV1, ManagedFieldsEntry};
use kube::core::ObjectMeta;
use serde_json::Value;

/// Metadata whose fields are owned so: manager, operation, fields.
pub(in crate::apply) fn metadata(entries: &[(&str, &str, Value)]) -> ObjectMeta {
    let entry = |(manager, operation, fields): &(&str, &str, Value)| ManagedFieldsEntry {
        manager: Some((*manager).to_owned()),
        operation: Some((*operation).to_owned()),
        fields_v1: Some(FieldsV1(fields.clone())),
        ..ManagedFieldsEntry::default()
    };
    ObjectMeta {
        managed_fields: Some(entries.iter().map(entry).collect()),
        ..ObjectMeta::default()
    }
}
