//! Whether a request that another hub let in may go on through this one, which holds its cluster's tunnel.
//!
//! The other hub judged it by the revision that it has accepted. This one judges again, by its own: whichever of them is
//! behind in Git grants nothing that the other one's revision took away.

use render::access::{Attributes, Class, Decision, Person, Where, attributes, may, may_interact};
use render::model::SyncMode;
use render::{ClusterName, Fleet};
use tunnel::TargetClass;

/// What a stream between hubs leads to, in somebody's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Goal {
    /// The API server, to be read.
    Read,
    /// Into a container, or a port of one.
    Interactive,
    /// An address that the agent's policy lists.
    Dial,
}

/// Who asks a cluster for what.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) cluster: ClusterName,
    pub(super) goal: Goal,
    pub(super) person: Person,
    pub(super) attributes: Attributes,
}

impl Goal {
    /// `None`: nobody is behind a stream of that class.
    pub(super) fn of(class: &TargetClass) -> Option<Self> {
        match class {
            TargetClass::ApiServer => Some(Self::Read),
            TargetClass::Interactive => Some(Self::Interactive),
            TargetClass::Dial => Some(Self::Dial),
            TargetClass::Deliver
            | TargetClass::Report
            | TargetClass::Look
            | TargetClass::Push
            | TargetClass::Keys
            | TargetClass::Peer
            | TargetClass::Unknown(_) => None,
        }
    }
}

/// Why a request may not go on; `fleet` is what this hub accepted last.
pub(super) fn judge(fleet: Option<&Fleet>, is_interactive_on: bool, asked: &Asked) -> Result<(), String> {
    let fleet = fleet.ok_or("the hub that holds its tunnel has accepted no revision yet")?;
    let declared = fleet
        .clusters
        .get(&asked.cluster)
        .ok_or("the hub that holds its tunnel knows no such cluster")?;
    let class = match asked.goal {
        Goal::Read | Goal::Dial => Class::Read,
        Goal::Interactive => Class::Interactive,
    };
    if asked.attributes.class() != class {
        return Err("this is no request for a stream of its class".to_owned());
    }
    if declared.sync_mode == SyncMode::Pull {
        return Err("its file in the fleet repository lets nobody ask its API server".to_owned());
    }
    let place = Where::Cluster {
        name: asked.cluster.as_str(),
        labels: &declared.labels,
    };
    let decision = match class {
        Class::Interactive if !is_interactive_on => {
            return Err("the hub that holds its tunnel runs without --allow-interactive".to_owned());
        }
        Class::Interactive => may_interact(&fleet.access, &asked.person, place, &asked.attributes),
        Class::Read | Class::Write => may(&fleet.access, &asked.person, place, &asked.attributes),
    };
    match decision {
        Decision::Allowed { .. } => Ok(()),
        Decision::Denied { sentence, .. } => Err(format!("by the hub that holds its tunnel, {sentence}")),
    }
}

/// What the first line of an HTTP request asks for. Only what no parser reads otherwise is one: two blanks, a path, and a
/// whole end.
pub(super) fn request_line(line: &[u8]) -> Result<Attributes, String> {
    let unclear = || "the first line of the request is unclear".to_owned();
    let line = std::str::from_utf8(line).map_err(|_| unclear())?;
    let line = line.strip_suffix(" HTTP/1.1\r\n").ok_or_else(unclear)?;
    let (method, target) = line.split_once(' ').ok_or_else(unclear)?;
    let is_method = !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_uppercase());
    if !is_method || !target.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(unclear());
    }
    let (path, query) = match target.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (target, None),
    };
    attributes(method, path, query).map_err(|unclear| unclear.to_string())
}

#[cfg(test)]
mod tests {
    use super::super::fixture::fleet;
    use super::*;

    fn asked(goal: Goal, user: &str, path: &str) -> Asked {
        Asked {
            cluster: ClusterName::parse("oslo").expect("a valid cluster"),
            goal,
            person: Person {
                user: user.to_owned(),
                groups: Vec::new(),
            },
            attributes: attributes("GET", path, None).expect("a clear path"),
        }
    }

    #[test]
    fn the_owner_of_a_hop_judges_again_by_its_own_revision_flag_and_mode() {
        let (dual, pull) = (fleet("Dual", None), fleet("Pull", None));
        let (pods, exec) = ("/api/v1/namespaces/a/pods", "/api/v1/namespaces/a/pods/b/exec");
        #[track_caller]
        fn check(fleet: Option<&Fleet>, interactive: bool, asked: &Asked, refused: Option<&str>) {
            let found = judge(fleet, interactive, asked).err();
            let is_it = match (&found, refused) {
                (Some(found), Some(refused)) => found.contains(refused),
                (found, refused) => found.is_none() && refused.is_none(),
            };
            assert!(is_it, "{found:?} for {asked:?}");
        }
        let read = asked(Goal::Read, "ada", pods);
        check(Some(&dual), false, &read, None);
        check(Some(&pull), false, &read, Some("lets nobody ask"));
        check(None, false, &read, Some("no revision"));
        check(
            Some(&dual),
            false,
            &asked(Goal::Read, "bob", pods),
            Some("may ask no cluster"),
        );
        check(
            Some(&dual),
            false,
            &asked(Goal::Read, "ada", "/api/v1/secrets"),
            Some("by the hub that holds its tunnel"),
        );
        check(Some(&dual), true, &asked(Goal::Interactive, "ada", exec), None);
        check(
            Some(&dual),
            false,
            &asked(Goal::Interactive, "ada", exec),
            Some("--allow-interactive"),
        );
        // A class is not changed on the way.
        check(Some(&dual), true, &asked(Goal::Read, "ada", exec), Some("of its class"));
        check(
            Some(&dual),
            true,
            &asked(Goal::Interactive, "ada", pods),
            Some("of its class"),
        );
        check(Some(&dual), false, &asked(Goal::Dial, "ada", "/dial/10.0.0.1:80"), None);
        check(
            Some(&dual),
            false,
            &asked(Goal::Dial, "ada", "/dial/10.0.0.2:80"),
            Some("by the hub that holds its tunnel"),
        );
        let elsewhere = Asked {
            cluster: ClusterName::parse("bergen").expect("a valid cluster"),
            ..read
        };
        check(Some(&dual), false, &elsewhere, Some("knows no such cluster"));
    }

    #[test]
    fn a_first_line_that_two_could_read_apart_is_none() {
        let line = request_line(b"GET /api/v1/pods?watch=1 HTTP/1.1\r\n").expect("it is plain");
        assert_eq!((line.verb, line.class()), ("watch", Class::Read));
        for line in [
            "",
            "\r\n",
            "GET /api/v1/pods HTTP/1.1",
            "GET /api/v1/pods HTTP/1.1\n",
            "GET /api/v1/pods HTTP/1.0\r\n",
            "GET  /api/v1/pods HTTP/1.1\r\n",
            "GET /api/v1/pods  HTTP/1.1\r\n",
            "GET /api/v1/pods\rx HTTP/1.1\r\n",
            "GET /api/v1/pods?a=\nb HTTP/1.1\r\n",
            "get /api/v1/pods HTTP/1.1\r\n",
            "GET http://oslo/api/v1/pods HTTP/1.1\r\n",
            "GET /api/v1/../pods HTTP/1.1\r\n",
            " /api/v1/pods HTTP/1.1\r\n",
        ] {
            assert!(request_line(line.as_bytes()).is_err(), "{line:?}");
        }
    }
}
