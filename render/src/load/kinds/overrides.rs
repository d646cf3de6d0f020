//! Kinds Localization and Globalization. What a step's value means is `localize`'s matter.

use std::sync::Arc;

use super::super::declaration::{Declaration, DeclarationKey};
use super::super::fields::Fields;
use super::metadata::Metadata;
use super::{OwnKind, Place, Reading, selector};
use crate::access::{PREFIX, RBAC_GROUP};
use crate::model::{FieldFormat, Override, OverrideFeed, OverrideKind, OverrideStep, OverrideStepType};
use crate::name::group_of;
use crate::selector::LabelSelector;

const PRIORITY_DEFAULT: i32 = 500;

pub(super) fn read_localization(top: &mut Fields<'_>, metadata: &Metadata, place: &Place<'_>) -> Reading {
    let namespace = metadata.namespace.clone();
    if namespace.is_none() {
        top.error(
            "metadata.namespace",
            "FieldMissing",
            "namespace is missing",
            "it is the namespace of the cluster that the Localization is for",
        );
    }
    let spec = read_spec(top, place, false);
    let key = (!metadata.name.is_empty())
        .then_some(namespace)
        .flatten()
        .map(|namespace| (namespace, metadata.name.clone()));
    reading(OwnKind::Localization, key, spec, place)
}

pub(super) fn read_globalization(top: &mut Fields<'_>, metadata: &Metadata, place: &Place<'_>) -> Reading {
    if metadata.namespace.is_some() {
        let message = "has no effect: a Globalization has no namespace";
        top.warning("metadata.namespace", "NoEffect", message);
    }
    let spec = read_spec(top, place, true);
    let key = (!metadata.name.is_empty()).then(|| (String::new(), metadata.name.clone()));
    reading(OwnKind::Globalization, key, spec, place)
}

fn reading(kind: OwnKind, key: Option<(String, String)>, spec: Spec, place: &Place<'_>) -> Reading {
    let Some((namespace, name)) = key else {
        return Reading {
            key: None,
            declaration: None,
        };
    };
    let declaration_key = DeclarationKey::new(kind, &namespace, &name);
    let declaration = spec.feed.map(|feed| {
        let kind = match kind {
            OwnKind::Globalization => OverrideKind::Globalization {
                cluster_affinity: spec.cluster_affinity,
            },
            _ => OverrideKind::Localization,
        };
        Declaration::Override(Arc::new(Override {
            kind,
            namespace,
            name,
            priority: spec.priority,
            feed,
            steps: spec.steps,
            file: place.file.clone(),
            line: place.line,
        }))
    });
    Reading {
        key: Some(declaration_key),
        declaration,
    }
}

#[derive(Default)]
struct Spec {
    priority: i32,
    feed: Option<OverrideFeed>,
    cluster_affinity: Option<LabelSelector>,
    steps: Vec<OverrideStep>,
}

fn read_spec(top: &mut Fields<'_>, place: &Place<'_>, has_affinity: bool) -> Spec {
    let Some(mut fields) = top.object("spec") else {
        top.missing("spec");
        return Spec::default();
    };
    // Both policies mean "with this commit": a commit is the moment at which everything applies.
    fields.choice("overridePolicy", &[("ApplyNow", ()), ("ApplyLater", ())]);
    let priority = fields.integer("priority", 0..=1000);
    let feed = fields.object("feed").map(read_feed);
    fields.require("feed");
    let cluster_affinity = if has_affinity {
        fields.object("clusterAffinity").map(selector::read)
    } else {
        None
    };
    let steps = fields.objects("overrides").unwrap_or_default();
    if steps.is_empty() {
        fields.warning("overrides", "NoEffect", "has no steps, so it changes nothing");
    }
    let steps = steps.into_iter().filter_map(|step| read_step(step, place)).collect();
    fields.finish();
    Spec {
        priority: priority
            .and_then(|number| i32::try_from(number).ok())
            .unwrap_or(PRIORITY_DEFAULT),
        feed: feed.flatten(),
        cluster_affinity,
        steps,
    }
}

fn read_feed(mut fields: Fields<'_>) -> Option<OverrideFeed> {
    let api_version = fields.required_text("apiVersion").map(str::to_owned);
    let kind = fields.required_text("kind").map(str::to_owned);
    let name = fields.required_text("name").map(str::to_owned);
    let namespace = fields.text("namespace").unwrap_or_default().to_owned();
    // Whoever may write overrides would otherwise write rights.
    let is_rbac = api_version
        .as_deref()
        .is_some_and(|version| group_of(version) == RBAC_GROUP);
    if is_rbac && name.as_deref().is_some_and(|name| name.starts_with(PREFIX)) {
        let message = "what clusters are told of access/ is changed there, and by no override";
        fields.error(
            "name",
            "FieldInvalid",
            message,
            "give the binding other clusters, or another role",
        );
    }
    fields.finish();
    Some(OverrideFeed {
        api_version: api_version?,
        kind: kind?,
        namespace,
        name: name?,
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum StepWord {
    Helm,
    JsonPatch,
    MergePatch,
    FieldJsonPatch,
    FieldMergePatch,
}

const STEP_WORDS: &[(&str, StepWord)] = &[
    ("Helm", StepWord::Helm),
    ("JSONPatch", StepWord::JsonPatch),
    ("MergePatch", StepWord::MergePatch),
    ("FieldJSONPatch", StepWord::FieldJsonPatch),
    ("FieldMergePatch", StepWord::FieldMergePatch),
];

fn read_step(mut fields: Fields<'_>, place: &Place<'_>) -> Option<OverrideStep> {
    let line = (place.line_of)(fields.here());
    let name = fields.text("name").unwrap_or_default().to_owned();
    let word = fields.choice("type", STEP_WORDS);
    fields.require("type");
    let value = fields.text("value").map(str::to_owned);
    fields.require("value");
    if value.as_ref().is_some_and(|text| text.trim().is_empty()) {
        fields.warning("value", "NoEffect", "is blank, so the step changes nothing");
    }
    let override_chart = fields.boolean("overrideChart").unwrap_or(false);
    if override_chart && word.is_some_and(|word| word != StepWord::Helm) {
        fields.warning("overrideChart", "NoEffect", "has no effect without the type Helm");
    }
    let step_type = word.and_then(|word| step_type(word, &mut fields));
    fields.finish();
    Some(OverrideStep {
        name,
        step_type: step_type?,
        override_chart,
        value: value?,
        line,
    })
}

fn step_type(word: StepWord, fields: &mut Fields<'_>) -> Option<OverrideStepType> {
    match word {
        StepWord::Helm | StepWord::JsonPatch | StepWord::MergePatch => {
            for name in ["fieldPath", "fieldFormat"] {
                if fields.text(name).is_some_and(|text| !text.is_empty()) {
                    fields.warning(name, "NoEffect", "has no effect without a Field type");
                }
            }
            Some(match word {
                StepWord::Helm => OverrideStepType::Helm,
                StepWord::JsonPatch => OverrideStepType::JsonPatch,
                _ => OverrideStepType::MergePatch,
            })
        }
        StepWord::FieldJsonPatch | StepWord::FieldMergePatch => {
            let field_path = field_path(fields);
            let format = fields.choice(
                "fieldFormat",
                &[("YAML", FieldFormat::Yaml), ("JSON", FieldFormat::Json)],
            );
            fields.require("fieldFormat");
            let (field_path, format) = (field_path?, format?);
            Some(match word {
                StepWord::FieldJsonPatch => OverrideStepType::FieldJsonPatch { field_path, format },
                _ => OverrideStepType::FieldMergePatch { field_path, format },
            })
        }
    }
}

fn field_path(fields: &mut Fields<'_>) -> Option<String> {
    let path = fields.required_text("fieldPath")?;
    if !path.starts_with('/') {
        let message = "must be a path of keys that starts with /";
        fields.error("fieldPath", "FieldInvalid", message, "for example /data/server.conf");
        return None;
    }
    Some(path.to_owned())
}
