//! The kinds that the feeds hold for this cluster, as its agent took them last, and whether it may apply them.
//!
//! What charts make is deliberately not here: it is known only once they are installed.

use std::collections::{BTreeMap, BTreeSet};

use kube::Client;
use render::describe::is_chart;

use super::api_server::{missing, not_tried, worded};
use super::{Step, Verdict};
use crate::agent::grants::Need;
use crate::agent::store::Kept;
use crate::apply::{Plural, plurals};
use crate::fault::line;
use crate::limits::{DOCTOR_PLACES_MAX, DOCTOR_RIGHTS_SHOWN_MAX};
use crate::wire::Held;

const NAME: &str = "feeds";

/// What docs/register-a-cluster.md has people grant for each kind.
const VERBS: [&str; 6] = ["get", "list", "watch", "create", "patch", "delete"];

const HINT: &str = "bind a role with get, list, watch, create, patch and delete of these to the agent's user";

/// Kinds, (group, kind), each with the namespaces that objects of it name; an empty one for those that name none.
type Places = BTreeMap<(String, String), BTreeSet<String>>;

/// What is to be asked.
#[derive(Debug, PartialEq, Eq)]
struct Asked {
    /// Group, plural and namespace; without one, the whole cluster.
    places: Vec<(String, String, Option<String>)>,
    /// Kinds that the cluster does not serve, as `Kind.group`.
    not_served: Vec<String>,
    /// How many places are not asked about.
    more: usize,
}

pub(super) async fn examine(client: &Client, kept: Option<&Kept>) -> Step {
    let Some(kept) = kept else { return not_tried(NAME) };
    let (Some(held), places) = (&kept.held, places(kept)) else {
        return Step::good(NAME, "the journal has no delivery yet");
    };
    let served = match plurals(client).await {
        Ok(served) => served,
        Err(error) => return Step::bad(NAME, line(&error), "see why the API server does not say its kinds"),
    };
    let asked = asked(&places, &served);
    let needs: Vec<_> = asked.needs().collect();
    match missing(client, &needs).await {
        Err((what, hint)) => Step::bad(NAME, what, hint),
        Ok(missing) => judged(&asked, &missing, unread(held, kept)),
    }
}

fn places(kept: &Kept) -> Places {
    let mut places = Places::new();
    let objects = kept.contents.values().flat_map(|content| &content.objects);
    for key in objects.map(|object| &object.key).filter(|key| !is_chart(key)) {
        let kind = (key.group.clone(), key.kind.clone());
        places.entry(kind).or_default().insert(key.namespace.clone());
    }
    places
}

/// How many contents of the delivery are not there, or cannot be read.
fn unread(held: &Held, kept: &Kept) -> usize {
    let named: BTreeSet<_> = held.digests().collect();
    named
        .iter()
        .filter(|digest| !kept.contents.contains_key(digest))
        .count()
}

fn asked(places: &Places, served: &BTreeMap<(String, String), Plural>) -> Asked {
    let (mut all, mut not_served) = (Vec::new(), Vec::new());
    for ((group, kind), namespaces) in places {
        let Some(plural) = served.get(&(group.clone(), kind.clone())) else {
            let of_group = if group.is_empty() {
                String::new()
            } else {
                format!(".{group}")
            };
            not_served.push(format!("{kind}{of_group}"));
            continue;
        };
        let namespaces: BTreeSet<_> = match plural.namespaced {
            true => namespaces
                .iter()
                .filter(|name| !name.is_empty())
                .cloned()
                .map(Some)
                .collect(),
            false => BTreeSet::from([None]),
        };
        let place = |namespace| (group.clone(), plural.resource.clone(), namespace);
        all.extend(namespaces.into_iter().map(place));
    }
    let more = all.len().saturating_sub(DOCTOR_PLACES_MAX);
    all.truncate(DOCTOR_PLACES_MAX);
    Asked {
        places: all,
        not_served,
        more,
    }
}

impl Asked {
    fn needs(&self) -> impl Iterator<Item = Need<'_>> {
        self.places.iter().flat_map(|(group, resource, namespace)| {
            VERBS.into_iter().map(move |verb| Need {
                namespace: namespace.as_deref(),
                group,
                resource,
                verb,
            })
        })
    }
}

fn judged(asked: &Asked, missing: &[Need<'_>], unread: usize) -> Step {
    if !missing.is_empty() {
        let shown = missing.iter().take(DOCTOR_RIGHTS_SHOWN_MAX).map(worded);
        let shown = shown.collect::<Vec<_>>().join(", ");
        let more = match missing.len().saturating_sub(DOCTOR_RIGHTS_SHOWN_MAX) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        return Step::bad(NAME, format!("this agent may not {shown}{more}"), HINT);
    }
    let mut odd = Vec::new();
    if !asked.not_served.is_empty() {
        odd.push(format!("the cluster does not serve {}", asked.not_served.join(", ")));
    }
    if unread > 0 {
        odd.push(format!("{unread} of the delivery's contents are not in the journal"));
    }
    if asked.more > 0 {
        odd.push(format!("{} more kinds and namespaces were not looked at", asked.more));
    }
    let what = format!(
        "all rights for the {} kinds and namespaces that the feeds hold",
        asked.places.len()
    );
    match odd.is_empty() {
        true => Step::good(NAME, what),
        false => Step {
            name: NAME,
            verdict: Verdict::Odd {
                what: format!("{what}, but {}", odd.join(", and ")),
                hint: "what comes later, as definitions of kinds do, is asked about the next time".to_owned(),
            },
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served() -> BTreeMap<(String, String), Plural> {
        let kind = |group: &str, kind: &str, resource: &str, namespaced| {
            let plural = Plural {
                resource: resource.to_owned(),
                namespaced,
            };
            ((group.to_owned(), kind.to_owned()), plural)
        };
        BTreeMap::from([
            kind("", "ConfigMap", "configmaps", true),
            kind("", "Namespace", "namespaces", false),
            kind("apps", "Deployment", "deployments", true),
        ])
    }

    fn places(of: &[(&str, &str, &str)]) -> Places {
        let mut places = Places::new();
        for (group, kind, namespace) in of {
            let kind = ((*group).to_owned(), (*kind).to_owned());
            places.entry(kind).or_default().insert((*namespace).to_owned());
        }
        places
    }

    #[test]
    fn rights_for_what_the_feeds_hold_are_asked_for_by_kind_and_namespace() {
        let held = places(&[
            ("", "ConfigMap", "shop"),
            ("", "ConfigMap", "till"),
            ("", "Namespace", ""),
            ("apps", "Deployment", "shop"),
            ("x.io", "Widget", "shop"),
        ]);
        let asked = asked(&held, &served());
        assert_eq!(asked.not_served, ["Widget.x.io"]);
        let needs: Vec<_> = asked.needs().collect();
        assert_eq!(needs.len(), 4 * VERBS.len());
        let all: Vec<_> = needs.iter().map(worded).collect();
        for need in [
            "patch configmaps in till",
            "delete deployments in shop",
            "watch namespaces",
        ] {
            assert!(all.iter().any(|found| found == need), "{need} in {all:?}");
        }
        let Verdict::Bad { what, .. } = judged(&asked, &needs, 0).verdict else {
            unreachable!("all of them are missing");
        };
        assert!(
            what.starts_with("this agent may not get configmaps in shop, "),
            "{what}"
        );
        assert!(
            what.ends_with(&format!(" and {} more", needs.len() - DOCTOR_RIGHTS_SHOWN_MAX)),
            "{what}"
        );
        let Verdict::Odd { what, .. } = judged(&asked, &[], 2).verdict else {
            unreachable!("a kind is not served");
        };
        assert!(
            what.contains("does not serve Widget.x.io") && what.contains("2 of the delivery's"),
            "{what}"
        );
    }

    #[test]
    fn no_more_places_are_asked_about_than_a_bound_and_that_is_said() {
        let names: Vec<_> = (0..DOCTOR_PLACES_MAX + 3)
            .map(|number| format!("n{number:04}"))
            .collect();
        let held: Vec<_> = names.iter().map(|name| ("", "ConfigMap", name.as_str())).collect();
        let asked = asked(&places(&held), &served());
        assert_eq!((asked.places.len(), asked.more), (DOCTOR_PLACES_MAX, 3));
        let Verdict::Odd { what, .. } = judged(&asked, &[], 0).verdict else {
            unreachable!("not all were looked at");
        };
        assert!(
            what.contains("3 more kinds and namespaces were not looked at"),
            "{what}"
        );
        let few = super::asked(&places(&held[..1]), &served());
        assert!(matches!(judged(&few, &[], 0).verdict, Verdict::Good(_)));
    }
}
