//! Annotations that keep an object in the cluster when it leaves its unit: ours, and the words that people know from
//! elsewhere.

use crate::model::ANNOTATION_PRUNE;

/// Helm's annotation of the same meaning.
pub const ANNOTATION_HELM_POLICY: &str = "helm.sh/resource-policy";

/// Flux's.
const ANNOTATION_FLUX_PRUNE: &str = "kustomize.toolkit.fluxcd.io/prune";

/// Argo CD's: a list of options, of which two say it.
const ANNOTATION_ARGO_OPTIONS: &str = "argocd.argoproj.io/sync-options";

/// Annotation → the word in it, among others separated by commas, that keeps the object.
const WORDS: [(&str, &str); 5] = [
    (ANNOTATION_PRUNE, "disabled"),
    (ANNOTATION_HELM_POLICY, "keep"),
    (ANNOTATION_FLUX_PRUNE, "disabled"),
    (ANNOTATION_ARGO_OPTIONS, "Prune=false"),
    (ANNOTATION_ARGO_OPTIONS, "Delete=false"),
];

/// The annotation that keeps an object; `None` when none does. `annotation` gives an annotation's value by name.
pub fn kept_by<'a>(annotation: impl Fn(&str) -> Option<&'a str>) -> Option<&'static str> {
    let says = |name: &str, word: &str| {
        let value = annotation(name);
        value.is_some_and(|value| value.split(',').any(|part| part.trim().eq_ignore_ascii_case(word)))
    };
    let found = WORDS.into_iter().find(|(name, word)| says(name, word));
    found.map(|(name, _)| name)
}
