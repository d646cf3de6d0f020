//! The decision held to a second form of RBAC, which knows no better than to try everything.

use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::access::{Role, ScopedName};

const VERBS: [&str; 3] = ["get", "list", "watch"];
const GROUPS: [&str; 2] = ["", "apps"];
const RESOURCES: [&str; 2] = ["pods", "nodes"];
const SUBRESOURCES: [&str; 3] = ["", "log", "status"];
const NAMES: [&str; 3] = ["", "x", "y"];
const NAMESPACES: [&str; 3] = ["", "a", "b"];

fn some(words: &'static [&'static str]) -> impl Strategy<Value = Vec<String>> {
    let word = proptest::sample::select(words).prop_map(str::to_owned);
    proptest::collection::vec(word, 0..3)
}

fn rule() -> impl Strategy<Value = Rule> {
    let resources = &[
        "*",
        "pods",
        "nodes",
        "pods/log",
        "*/log",
        "*/status",
        "nodes/status",
        "pods/*",
    ];
    (
        some(&["*", "get", "list", "watch"]),
        some(&["*", "", "apps"]),
        some(resources),
        some(&["x", "y"]),
    )
        .prop_map(|(verbs, api_groups, resources, resource_names)| Rule {
            verbs,
            api_groups,
            resources,
            resource_names,
            non_resource_urls: Vec::new(),
        })
}

/// Every triple of texts that a rule stands for, written out.
fn stands_for(rule: &Rule) -> Vec<[&str; 4]> {
    let spread = |written: &str, all: &'static [&'static str]| -> Vec<&'static str> {
        let meant = |one: &&&'static str| written == "*" || written == **one;
        all.iter().filter(meant).copied().collect()
    };
    let mut out = Vec::new();
    for verb in rule.verbs.iter().flat_map(|verb| spread(verb, &VERBS)) {
        for group in rule.api_groups.iter().flat_map(|group| spread(group, &GROUPS)) {
            for resource in RESOURCES {
                for subresource in SUBRESOURCES {
                    let whole = match subresource {
                        "" => resource.to_owned(),
                        _ => format!("{resource}/{subresource}"),
                    };
                    let any = format!("*/{subresource}");
                    let is_named =
                        |own: &String| own == "*" || *own == whole || (!subresource.is_empty() && *own == any);
                    if rule.resources.iter().any(is_named) {
                        out.push([verb, group, resource, subresource]);
                    }
                }
            }
        }
    }
    out
}

fn index(words: &'static [&'static str]) -> impl Strategy<Value = &'static str> {
    proptest::sample::select(words)
}

proptest! {
    #[test]
    fn the_decision_is_the_one_that_every_rule_written_out_gives(
        rules in proptest::collection::vec(rule(), 0..4),
        bound in index(&NAMESPACES),
        group in index(&GROUPS),
        resource in index(&RESOURCES),
        subresource in index(&SUBRESOURCES),
        name in index(&NAMES),
        namespace in index(&NAMESPACES),
        verb in index(&VERBS),
        selected in any::<bool>(),
        member in any::<bool>(),
    ) {
        let role = Role { key: ScopedName::new("", "r"), rules: rules.clone(), file: "a".into(), line: 1 };
        let selector = crate::selector::LabelSelector::parse(if selected { "env=staging" } else { "env=other" }).unwrap();
        let binding = Binding {
            key: ScopedName::new(bound, "b"),
            subjects: vec![Subject::Group("g".to_owned()), Subject::User("eve".to_owned())],
            role: RoleRef::Own(role.key.clone()),
            clusters: Some(selector),
            file: "a".into(),
            line: 1,
        };
        let access = Access {
            roles: BTreeMap::from([(role.key.clone(), Arc::new(role))]),
            bindings: BTreeMap::from([(binding.key.clone(), Arc::new(binding))]),
        };
        let target = Target::Resource {
            group: group.to_owned(),
            version: "v1".to_owned(),
            namespace: namespace.to_owned(),
            resource: resource.to_owned(),
            subresource: subresource.to_owned(),
            name: name.to_owned(),
        };
        let labels = labels("staging");
        let place = Where::Cluster { name: "paris", labels: &labels };
        let person = person(if member { &["x", "g"] } else { &["x"] });
        let found = may(&access, &person, place, &Attributes { verb, target }).is_allowed();
        let by_rule = rules.iter().any(|rule| {
            let names_it = rule.resource_names.is_empty() || rule.resource_names.iter().any(|own| own == name);
            names_it && stands_for(rule).contains(&[verb, group, resource, subresource])
        });
        let in_reach = bound.is_empty() || bound == namespace;
        prop_assert_eq!(found, selected && member && in_reach && by_rule);
    }
}
