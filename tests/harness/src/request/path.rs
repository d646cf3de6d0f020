//! Paths.

/// What a path names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Version,
    Health,
    CoreVersions,
    Groups,
    Group(String),
    Resources { group: String, version: String },
    OpenApi(String),
    OpenApiV2,
    Place(Place),
    Nothing,
}

/// A collection, an object, or a part of one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    pub group: String,
    pub version: String,
    pub plural: String,
    pub namespace: String,
    pub name: String,
    pub subresource: String,
}

/// Reads a path.
pub(crate) fn target(path: &str) -> Target {
    let words: Vec<_> = path
        .split('/')
        .filter(|word| !word.is_empty())
        .map(super::query::decoded)
        .collect();
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    match &words[..] {
        ["version"] => Target::Version,
        ["livez" | "readyz" | "healthz", ..] => Target::Health,
        ["api"] => Target::CoreVersions,
        ["apis"] => Target::Groups,
        ["apis", group] => Target::Group((*group).to_owned()),
        ["openapi", "v2"] => Target::OpenApiV2,
        ["openapi", "v3", rest @ ..] => Target::OpenApi(rest.join("/")),
        ["api", version] => Target::Resources {
            group: String::new(),
            version: (*version).to_owned(),
        },
        ["apis", group, version] => Target::Resources {
            group: (*group).to_owned(),
            version: (*version).to_owned(),
        },
        ["api", version, rest @ ..] => place("", version, rest),
        ["apis", group, version, rest @ ..] => place(group, version, rest),
        _ => Target::Nothing,
    }
}

fn place(group: &str, version: &str, rest: &[&str]) -> Target {
    let (namespace, rest) = match rest {
        // A namespace's own parts are no resources in it.
        ["namespaces", _, "status" | "finalize"] => ("", rest),
        ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (*namespace, rest),
        _ => ("", rest),
    };
    let mut place = Place {
        group: group.to_owned(),
        version: version.to_owned(),
        namespace: namespace.to_owned(),
        ..Place::default()
    };
    match rest {
        [plural] => place.plural = (*plural).to_owned(),
        [plural, name] => (place.plural, place.name) = ((*plural).to_owned(), (*name).to_owned()),
        [plural, name, subresource @ ..] => {
            (place.plural, place.name) = ((*plural).to_owned(), (*name).to_owned());
            place.subresource = subresource.join("/");
        }
        [] => return Target::Nothing,
    }
    Target::Place(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, [group, plural, namespace, name, subresource]: [&str; 5]) {
        let expected = Place {
            group: group.to_owned(),
            version: "v1".to_owned(),
            plural: plural.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            subresource: subresource.to_owned(),
        };
        assert_eq!(target(path), Target::Place(expected), "{path}");
    }

    #[test]
    fn paths_name_places() {
        check("/api/v1/pods", ["", "pods", "", "", ""]);
        check("/api/v1/namespaces", ["", "namespaces", "", "", ""]);
        check("/api/v1/namespaces/a", ["", "namespaces", "", "a", ""]);
        check("/api/v1/namespaces/a/status", ["", "namespaces", "", "a", "status"]);
        check("/api/v1/namespaces/a/pods", ["", "pods", "a", "", ""]);
        check(
            "/apis/apps/v1/namespaces/a/deployments/b/scale",
            ["apps", "deployments", "a", "b", "scale"],
        );
        check(
            "/apis/x.io/v1/widgets/system:a%2Fb",
            ["x.io", "widgets", "", "system:a/b", ""],
        );
        assert_eq!(target("/metrics"), Target::Nothing);
    }
}
