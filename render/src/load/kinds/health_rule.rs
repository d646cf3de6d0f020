//! Kind HealthRule.

use super::super::declaration::{Declaration, DeclarationKey};
use super::super::fields::Fields;
use super::metadata::Metadata;
use super::{OwnKind, Place, Reading, apply};
use crate::model::HealthRule;

pub(super) fn read(top: &mut Fields<'_>, metadata: &Metadata, place: &Place<'_>) -> Reading {
    let spec = top.object("spec");
    if spec.is_none() {
        top.require("spec");
    }
    let check = spec.and_then(apply::health_check);
    let key = DeclarationKey::new(OwnKind::HealthRule, "", &metadata.name);
    let rule = check.map(|check| HealthRule {
        name: metadata.name.clone(),
        check,
        file: place.file.clone(),
        line: place.line,
    });
    Reading {
        key: (!metadata.name.is_empty()).then_some(key),
        declaration: rule.map(|rule| Declaration::HealthRule(rule.into())),
    }
}
