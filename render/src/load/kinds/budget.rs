//! Kind PruneBudget.

use super::super::declaration::{Declaration, DeclarationKey};
use super::super::fields::Fields;
use super::metadata::Metadata;
use super::suspension::{cluster_names, unit};
use super::{OwnKind, Place, Reading, selector};
use crate::model::{PruneBudget, SuspendedClusters};

pub(super) fn read(top: &mut Fields<'_>, metadata: &Metadata, place: &Place<'_>) -> Reading {
    let mut budget = PruneBudget {
        name: metadata.name.clone(),
        unit: None,
        clusters: None,
        objects_max: None,
        percent_max: None,
        file: place.file.clone(),
        line: place.line,
    };
    match top.object("spec") {
        Some(fields) => read_spec(fields, &mut budget),
        None => {
            top.require("spec");
        }
    }
    let key = DeclarationKey::new(OwnKind::PruneBudget, "", &metadata.name);
    Reading {
        key: (!metadata.name.is_empty()).then_some(key),
        declaration: Some(Declaration::PruneBudget(budget.into())),
    }
}

fn read_spec(mut fields: Fields<'_>, budget: &mut PruneBudget) {
    let most = |number: i64| u64::try_from(number).unwrap_or_default();
    budget.objects_max = fields.integer("maxObjects", 0..=i64::from(i32::MAX)).map(most);
    budget.percent_max = fields.integer("maxPercent", 0..=100).map(most);
    if budget.objects_max.is_none() && budget.percent_max.is_none() && !fields.is_written(&["maxObjects", "maxPercent"])
    {
        let message = "allows everything: maxObjects or maxPercent says how much may go";
        fields.error(
            "",
            "FieldMissing",
            message,
            "maxObjects: 0 lets nothing go without a word for it",
        );
    }
    budget.unit = fields.object("subscription").and_then(unit);
    let names = fields.texts("clusters");
    let affinity = fields.object("clusterAffinity").map(selector::read);
    budget.clusters = (names.is_some() || affinity.is_some()).then(|| SuspendedClusters {
        names: cluster_names(&fields, names.unwrap_or_default()),
        selector: affinity,
    });
    fields.finish();
}
