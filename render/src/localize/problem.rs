//! Why a step does not fit. No message repeats a value of the object or of the patch: either may be secret.

use crate::finding::Finding;
use crate::limits::{DEPTH_MAX, PATCH_COPIED_BYTES_MAX, PATCH_OPERATIONS_MAX};
use crate::model::{Override, OverrideStep};
use crate::name::ObjectKey;

/// Why a step does not fit its object.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Problem {
    #[error("its value is not readable: {0}")]
    Unreadable(String),
    #[error("its value is more than one document")]
    SeveralDocuments,
    #[error("its value is not a mapping")]
    NotAMapping,
    #[error("its value is not a list of operations")]
    NotAList,
    #[error("operation {operation} {what}")]
    Operation { operation: usize, what: String },
    #[error("it has more than {PATCH_OPERATIONS_MAX} operations")]
    TooManyOperations,
    #[error("its copy operations add more than {PATCH_COPIED_BYTES_MAX} bytes")]
    TooMuchCopied,
    #[error("{0} is a directive of strategic merge patches, which would reach the cluster as data")]
    Directive(String),
    #[error("the object has no field {0}")]
    FieldMissing(String),
    #[error("field {0} is not text")]
    FieldNotText(String),
    #[error("the text in field {field} is not {format}: {why}")]
    FieldUnreadable {
        field: String,
        format: &'static str,
        why: String,
    },
    #[error("type Helm is for HelmCharts")]
    NotAChart,
    #[error("a HelmChart takes steps of type Helm only")]
    ChartNeedsHelm,
    #[error("the HelmChart's spec.values is not a mapping")]
    ValuesNotAMapping,
    #[error("the HelmChart has spec.path, and a chart of the repository has no spec.repo")]
    TwoSources,
    #[error("an override may not change {0}")]
    Identity(&'static str),
    #[error("spec.replicas is divided by the Subscription, and an override of it would be lost")]
    Divided,
    #[error("the outcome is nested deeper than {DEPTH_MAX} levels")]
    TooDeep,
    #[error("the object is encrypted, and Helm values cannot be carried along")]
    Encrypted,
    #[error("this version knows no step of type {0}")]
    UnknownType(String),
}

impl Problem {
    fn reason(&self) -> &'static str {
        match self {
            Self::Unreadable(_) | Self::SeveralDocuments => "OverrideUnreadable",
            Self::NotAMapping | Self::NotAList | Self::TooManyOperations => "OverrideInvalid",
            Self::Directive(_) => "OverrideDirective",
            Self::Identity(_) => "OverrideIdentity",
            Self::Divided => "OverrideReplicas",
            Self::Operation { .. }
            | Self::TooMuchCopied
            | Self::FieldMissing(_)
            | Self::FieldNotText(_)
            | Self::FieldUnreadable { .. }
            | Self::NotAChart
            | Self::ChartNeedsHelm
            | Self::ValuesNotAMapping
            | Self::TwoSources
            | Self::TooDeep
            | Self::Encrypted
            | Self::UnknownType(_) => "OverrideDoesNotFit",
        }
    }

    fn hint(&self) -> &'static str {
        match self {
            Self::Directive(_) => "a null in a MergePatch or a remove in a JSONPatch takes a field away",
            Self::Divided => "change the replicas in the manifest, or the subscribers' weights",
            Self::Identity(_) => "another name or namespace is another object: give the cluster a feed of its own",
            Self::ChartNeedsHelm => "with overrideChart: true the value changes the HelmChart, else its values",
            Self::NotAList => {
                r#"a JSONPatch is a list such as [{"op": "replace", "path": "/spec/replicas", "value": 3}]"#
            }
            Self::NotAMapping => "a MergePatch is a map of the fields that change",
            Self::Unreadable(_) | Self::SeveralDocuments => "the value is one text of JSON or YAML",
            Self::Operation { .. } => {
                "compare it with the manifest; paths begin with / and name keys and positions from 0"
            }
            Self::FieldMissing(_) | Self::FieldNotText(_) => "compare fieldPath with the manifest",
            _ => "",
        }
    }
}

/// Where a step stands.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) item: &'a Override,
    pub(super) index: usize,
    pub(super) step: &'a OverrideStep,
}

impl Place<'_> {
    pub(super) fn line(&self) -> u32 {
        match self.step.line {
            0 => self.item.line,
            line => line,
        }
    }

    /// The finding for a problem with this object.
    pub(super) fn finding(&self, object: &ObjectKey, problem: &Problem) -> Box<Finding> {
        let name = match self.step.name.as_str() {
            "" => String::new(),
            name => format!(" ({name})"),
        };
        let namespace = match object.namespace.as_str() {
            "" => String::new(),
            namespace => format!("{namespace}/"),
        };
        let message = format!(
            "step {}{name} of {} does not fit {} {namespace}{}: {problem}",
            self.index + 1,
            self.item.label(),
            object.kind,
            object.name,
        );
        let finding = Finding::error(problem.reason(), message)
            .at(self.item.file.as_ref(), self.line())
            .field(format!("spec.overrides[{}]", self.index))
            .hint(problem.hint());
        Box::new(finding)
    }
}
