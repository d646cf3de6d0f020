//! The built-in kinds, from the table that the contract tests compare with a real API server's discovery.

use std::sync::{Arc, LazyLock};

use render::name::group_of;

use super::Kind;
use crate::schema::{builtin, builtins};

/// API version, kind, plural, singular, scope, short names, categories, verbs, subresources, type.
const TEXT: &str = include_str!("kinds.txt");

static KINDS: LazyLock<Vec<Arc<Kind>>> = LazyLock::new(|| TEXT.lines().filter_map(kind).map(Arc::new).collect());

/// Every built-in kind; one for the whole process.
pub(crate) fn builtin_kinds() -> &'static [Arc<Kind>] {
    &KINDS
}

fn kind(line: &'static str) -> Option<Kind> {
    let words: Vec<_> = line.split('\t').collect();
    let [
        api_version,
        kind,
        plural,
        singular,
        scope,
        short,
        categories,
        verbs,
        subresources,
        type_name,
    ] = words[..]
    else {
        return None;
    };
    let group = group_of(api_version);
    let list = |text: &str| match text {
        "-" => Vec::new(),
        text => text.split(',').map(Into::into).collect(),
    };
    let (type_name, _) = builtins().find(|(name, _)| *name == type_name)?;
    Some(Kind {
        group: group.into(),
        version: api_version.rsplit('/').next()?.into(),
        kind: kind.into(),
        plural: plural.into(),
        singular: singular.into(),
        namespaced: scope == "namespaced",
        short_names: list(short),
        categories: list(categories),
        verbs: list(verbs),
        subresources: list(subresources),
        shape: builtin(type_name),
        type_name: Some(type_name),
        shelf: format!("{plural}.{group}").into(),
        custom: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_a_kind_with_a_shape() {
        assert_eq!(builtin_kinds().len(), TEXT.lines().count());
        let deployment = builtin_kinds().iter().find(|kind| kind.is("apps", "Deployment"));
        let deployment = deployment.expect("Deployments are served");
        assert!(deployment.shape.child("spec").field("replicas").is_some());
        assert!(deployment.has_subresource("scale"));
    }
}
