//! What is said where nothing is carried, as a Status that kubectl prints well.

use http::StatusCode;
use render::ClusterName;
use render::time::rfc3339;
use tunnel::OpenCode;

use super::audit::NoRoom;
use super::carry::NotCarried;
use super::lane::NoPlace;
use super::login::NotIn;
use super::route::{self, Form};
use super::screen::Fault;
use crate::hub::dispatch::Absent;
use crate::hub::serve::Refused;
use crate::hub::tally::Limit;
use crate::limits::{
    API_REQUESTS_MAX, API_REQUESTS_OF_PERSON_MAX, API_WATCHES_OF_PERSON_MAX, DOOR_REQUESTS_OF_PERSON_MAX,
};

/// What is said of exec and its like where the hub does not carry them.
pub(super) const NOT_INTERACTIVE: &str = "this hub carries no exec, attach, cp, port-forward and proxy: they reach into \
    containers, and are off unless it runs with --allow-interactive and the cluster's agent with --allow interactive";

/// How long a caller should wait for a cluster that is not connected, in seconds.
const AWAY_RETRY_SECONDS: u32 = 1;

pub(super) fn fault(fault: Fault) -> Refused {
    match fault {
        Fault::Impersonates | Fault::Page => Refused::forbidden(fault.message()),
        Fault::Method => Refused::method_not_allowed(fault.message()),
        Fault::Overrides | Fault::Upgrades | Fault::Body => Refused::bad_request(fault.message()),
    }
}

pub(super) fn not_in(not: NotIn) -> Refused {
    let unauthorized = |message| Refused::of(StatusCode::UNAUTHORIZED, "Unauthorized", message);
    match not {
        NotIn::Missing => unauthorized("log in with a client certificate or a bearer token"),
        NotIn::Wrong => unauthorized("this login is nobody's, or counts no more"),
        NotIn::TooMany(wait) => Refused::too_many("too many logins from there were wrong").retry_in(wait),
    }
}

/// A path below which clusters are that names none. One in Clusternet's form is malformed there as here.
pub(super) fn incomplete(path: &str) -> Refused {
    let message = "a path to a cluster is /clusters/NAME/…, or one of Clusternet's forms: \
        …/sockets/ID/proxy/direct/PATH, or …/proxy/https/HOST[:PORT]/PATH";
    match path.starts_with(route::SOCKETS) {
        true => Refused::bad_request(message),
        false => Refused::not_found(message),
    }
}

/// A cluster that is not there, or that the caller may not know of: both are told alike. Clusternet answers with 400.
pub(super) fn unknown(form: &Form, sentence: String) -> Refused {
    match form {
        Form::Own => Refused::forbidden(sentence),
        Form::Direct | Form::Address(_) => Refused::bad_request(sentence),
    }
}

pub(super) fn pull(cluster: &ClusterName) -> String {
    format!("cluster {cluster} is in sync mode Pull: its file in the fleet repository lets nobody ask its API server")
}

pub(super) fn no_audit(why: NoRoom) -> Refused {
    let unavailable = |message| Refused::of(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", message);
    match why {
        NoRoom::Behind => {
            unavailable("the audit log cannot be written as fast as requests come").retry_after(AWAY_RETRY_SECONDS)
        }
        // It takes a person to help: kubectl need not try ten times.
        NoRoom::Fails => unavailable(
            "this hub's audit log cannot be written, so that nobody is answered: its own log says why, a full disk most likely",
        ),
    }
}

/// What was used up, where it is that.
pub(super) fn limit(not: &NotCarried) -> Option<Limit> {
    match not {
        NotCarried::NoPlace(NoPlace::Cluster) => Some(Limit::Cluster),
        NotCarried::NoPlace(NoPlace::Person) => Some(Limit::Person),
        NotCarried::Refused(OpenCode::Limit, _) => Some(Limit::Agent),
        NotCarried::Away(_)
        | NotCarried::Refused(..)
        | NotCarried::Late
        | NotCarried::Broken(_)
        | NotCarried::NoAgent => None,
    }
}

pub(super) fn watches() -> Refused {
    Refused::too_many(format!(
        "you have {API_WATCHES_OF_PERSON_MAX} watches at this hub already"
    ))
}

pub(super) fn own_answers_of() -> Refused {
    Refused::too_many(format!(
        "you have {API_REQUESTS_OF_PERSON_MAX} requests at this hub already"
    ))
}

pub(super) fn own_answers() -> Refused {
    Refused::too_many(format!("{API_REQUESTS_MAX} requests are answered at this hub already"))
}

/// `since`: when its last session ended, in seconds since 1970, where it had one.
pub(super) fn not_carried(cluster: &ClusterName, not: NotCarried, since: Option<i64>) -> Refused {
    match not {
        NotCarried::Away(absent) => away(cluster, absent, since),
        NotCarried::NoPlace(NoPlace::Cluster) => {
            Refused::too_many(format!("too many requests wait for cluster {cluster}"))
        }
        NotCarried::NoPlace(NoPlace::Person) => Refused::too_many(format!(
            "you have {DOOR_REQUESTS_OF_PERSON_MAX} requests to cluster {cluster} already, watches and logs among them"
        )),
        NotCarried::Late => Refused::of(
            StatusCode::GATEWAY_TIMEOUT,
            "Timeout",
            format!("cluster {cluster} did not answer in time"),
        ),
        NotCarried::Broken(why) => Refused::of(
            StatusCode::BAD_GATEWAY,
            "BadGateway",
            format!("cluster {cluster} gave no answer: {why}"),
        ),
        NotCarried::NoAgent => Refused::forbidden(format!(
            "cluster {cluster} has no agent, and the hub only reads through its kubeconfig"
        )),
        NotCarried::Refused(code, text) => refused(cluster, code, &text),
    }
}

/// A word on when to try again has kubectl try ten times before it says anything, so that it is given where that helps.
fn away(cluster: &ClusterName, absent: Absent, since: Option<i64>) -> Refused {
    let away = match since {
        Some(since) => format!("is not connected since {}", rfc3339(since)),
        None => "has not connected since this hub runs".to_owned(),
    };
    let message = format!("cluster {cluster} {away}: `flotilla describe cluster {cluster}` says why");
    let refused = Refused::of(StatusCode::SERVICE_UNAVAILABLE, "ClusterDisconnected", message);
    match absent {
        Absent::Returning => refused.retry_after(AWAY_RETRY_SECONDS),
        Absent::Long => refused,
    }
}

/// The tunnel's codes as HTTP, as docs/protocol.md has them.
fn refused(cluster: &ClusterName, code: OpenCode, text: &str) -> Refused {
    let colon = if text.is_empty() { "" } else { ": " };
    let said = |what: &str| format!("cluster {cluster} {what}{colon}{text}");
    match code {
        OpenCode::NotAllowed => Refused::forbidden(said("does not allow this")),
        OpenCode::DialTimeout => Refused::of(StatusCode::GATEWAY_TIMEOUT, "Timeout", said("did not answer in time")),
        OpenCode::Limit => Refused::too_many(said("has too much to do")),
        OpenCode::Gone => Refused::of(
            StatusCode::SERVICE_UNAVAILABLE,
            "ClusterDisconnected",
            said("lost its connection"),
        )
        .retry_after(AWAY_RETRY_SECONDS),
        OpenCode::Refused | OpenCode::Unreachable | OpenCode::Internal | OpenCode::Cancelled => {
            Refused::of(StatusCode::BAD_GATEWAY, "BadGateway", said("could not be asked"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_code_of_the_tunnel_is_the_http_status_of_its_page() {
        let cluster = ClusterName::parse("oslo").expect("a valid cluster");
        let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/protocol.md"));
        let page = page.expect("the page is there");
        for code in OpenCode::ALL {
            let row = page
                .lines()
                .find(|line| line.starts_with('|') && line.contains(&format!("| `{code}` |")));
            let expected = row.and_then(|row| row.trim_end_matches(['|', ' ']).rsplit(' ').next());
            let answer = refused(&cluster, code, "why").status();
            assert_eq!(Some(answer["code"].to_string().as_str()), expected, "{code}");
            assert!(
                answer["message"]
                    .as_str()
                    .is_some_and(|message| message.ends_with(": why"))
            );
        }
    }

    #[test]
    fn a_cluster_that_is_away_is_told_with_since_when() {
        let cluster = ClusterName::parse("oslo").expect("a valid cluster");
        let told = |absent, since| not_carried(&cluster, NotCarried::Away(absent), since).status();
        let long = told(Absent::Long, Some(1_000_000_000));
        assert_eq!(
            (&long["code"], &long["reason"], &long["message"]),
            (
                &503.into(),
                &"ClusterDisconnected".into(),
                &"cluster oslo is not connected since 2001-09-09T01:46:40Z: `flotilla describe cluster oslo` says why"
                    .into()
            )
        );
        assert!(long["details"].is_null(), "kubectl says so at once");
        let returning = told(Absent::Returning, None);
        assert_eq!(returning["details"]["retryAfterSeconds"], 1);
        let message = returning["message"].as_str().expect("a message");
        assert!(message.contains("has not connected since this hub runs"), "{message}");
    }
}
