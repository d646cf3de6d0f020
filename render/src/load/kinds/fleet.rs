//! Kind Fleet.

use super::super::declaration::{Declaration, DeclarationKey};
use super::super::fields::Fields;
use super::apply::duration;
use super::metadata::Metadata;
use super::{OwnKind, Reading, scheduling};
use crate::model::{Approval, FleetSpec, PlaintextSecrets, RenderMode, RenderSpec};
use crate::name::Revision;

pub(super) fn read(top: &mut Fields<'_>, metadata: &Metadata) -> Reading {
    let spec = top.object("spec").map(read_spec).unwrap_or_default();
    Reading {
        key: (!metadata.name.is_empty()).then(|| DeclarationKey::new(OwnKind::Fleet, "", "")),
        declaration: Some(Declaration::Fleet(spec)),
    }
}

fn read_spec(mut fields: Fields<'_>) -> FleetSpec {
    let approval = fields.choice(
        "approval",
        &[("none", Approval::None), ("required", Approval::Required)],
    );
    let mut mode = None;
    if let Some(mut render) = fields.object("render") {
        mode = render.choice(
            "mode",
            &[("commits", RenderMode::Commits), ("objects", RenderMode::Objects)],
        );
        render.finish();
    }
    let mut enforce_for_seconds = None;
    if let Some(mut offline) = fields.object("offline") {
        enforce_for_seconds = duration(&mut offline, "enforceFor");
        offline.finish();
    }
    let mut apply_set_labels = None;
    if let Some(mut policies) = fields.object("policies") {
        apply_set_labels = policies.boolean("applySetLabels");
        policies.finish();
    }
    let scheduling = fields.object("scheduling").map(scheduling::of_fleet);
    let secrets = [("refuse", PlaintextSecrets::Refuse), ("warn", PlaintextSecrets::Warn)];
    let plaintext_secrets = fields.choice("plaintextSecrets", &secrets);
    let lineage = fields.text("lineage").and_then(|text| match Revision::parse(text) {
        Ok(revision) => Some(revision),
        Err(error) => {
            fields.error("lineage", "FieldInvalid", error.to_string(), "");
            None
        }
    });
    fields.finish();
    FleetSpec {
        approval: approval.unwrap_or_default(),
        render: RenderSpec {
            mode: mode.unwrap_or_default(),
        },
        plaintext_secrets,
        enforce_for_seconds,
        apply_set_labels: apply_set_labels.unwrap_or_default(),
        scheduling: scheduling.unwrap_or_default(),
        lineage,
    }
}
