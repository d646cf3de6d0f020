//! The API server: whether it answers, whether our clocks agree, and what we may do there.

use http::{HeaderMap, Request, header};
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec};
use kube::Client;
use kube::api::{Api, PostParams};
use kube::client::Body;
use tokio::time::timeout;

use super::{Step, Verdict};
use crate::agent::grants::{Need, needs};
use crate::fault::line;
use crate::limits::{API_REQUEST_TIMEOUT, CLOCK_SKEW_SECONDS_MAX};

pub(super) async fn examine(client: &Result<Client, String>) -> Vec<Step> {
    let client = match client {
        Ok(client) => client,
        Err(why) => {
            return vec![
                Step::bad(
                    "api-server",
                    why.clone(),
                    "name with --kubeconfig a file that kubectl can use",
                ),
                not_tried("clock"),
                not_tried("rights"),
            ];
        }
    };
    match answer(client).await {
        Err(why) => vec![
            Step::bad(
                "api-server",
                why,
                "see that kubectl reaches it with the same kubeconfig",
            ),
            not_tried("clock"),
            not_tried("rights"),
        ],
        Ok(headers) => vec![
            Step::good("api-server", "it answers"),
            clock(&headers, jiff::Timestamp::now().as_second()),
            rights(client).await,
        ],
    }
}

fn not_tried(name: &'static str) -> Step {
    Step {
        name,
        verdict: Verdict::NotTried,
    }
}

async fn answer(client: &Client) -> Result<HeaderMap, String> {
    let request = Request::get("/version")
        .body(Body::empty())
        .map_err(|error| line(&error))?;
    match timeout(API_REQUEST_TIMEOUT, client.send(request)).await {
        Err(_) => Err(format!("it does not answer within {} s", API_REQUEST_TIMEOUT.as_secs())),
        Ok(Err(error)) => Err(line(&error)),
        Ok(Ok(response)) if response.status().is_success() => Ok(response.headers().clone()),
        Ok(Ok(response)) => Err(format!("it answers {}", response.status())),
    }
}

/// Our clock beside the API server's, which says the time with every answer.
fn clock(headers: &HeaderMap, now: i64) -> Step {
    let said = headers.get(header::DATE).and_then(|date| date.to_str().ok());
    let Some(theirs) = said.and_then(|date| jiff::fmt::rfc2822::parse(date).ok()) else {
        return Step::good("clock", "the API server does not say the time");
    };
    let apart = now - theirs.timestamp().as_second();
    if apart.abs() <= CLOCK_SKEW_SECONDS_MAX {
        return Step::good("clock", format!("{} s from the API server's", apart.abs()));
    }
    let direction = if apart > 0 { "ahead of" } else { "behind" };
    Step {
        name: "clock",
        verdict: Verdict::Odd {
            what: format!("this machine's clock is {} s {direction} the API server's", apart.abs()),
            hint: "let both follow a time server; the dates of certificates and of what the agent reports go by it"
                .to_owned(),
        },
    }
}

async fn rights(client: &Client) -> Step {
    let reviews: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    let (needs, mut missing) = (needs(), Vec::new());
    for need in &needs {
        let (how, what) = (PostParams::default(), review(need));
        match timeout(API_REQUEST_TIMEOUT, reviews.create(&how, &what)).await {
            Ok(Ok(answer)) if answer.status.as_ref().is_some_and(|status| status.allowed) => {}
            Ok(Ok(_)) => missing.push(worded(need)),
            Ok(Err(error)) => return Step::bad("rights", line(&error), "see why the API server reviews no rights"),
            Err(_) => return Step::bad("rights", "the API server does not answer in time", "try again"),
        }
    }
    if missing.is_empty() {
        return Step::good(
            "rights",
            format!(
                "all {} that every agent needs; those for the feeds' kinds are not looked at",
                needs.len()
            ),
        );
    }
    Step::bad(
        "rights",
        format!("this agent may not {}", missing.join(", ")),
        "apply what `flotilla agent join --manifests` prints, or bind these rights yourself",
    )
}

fn review(need: &Need) -> SelfSubjectAccessReview {
    SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(ResourceAttributes {
                namespace: need.namespace.map(str::to_owned),
                group: Some(need.group.to_owned()),
                resource: Some(need.resource.to_owned()),
                verb: Some(need.verb.to_owned()),
                ..ResourceAttributes::default()
            }),
            ..SelfSubjectAccessReviewSpec::default()
        },
        ..SelfSubjectAccessReview::default()
    }
}

fn worded(need: &Need) -> String {
    match need.namespace {
        Some(namespace) => format!("{} {} in {namespace}", need.verb, need.resource),
        None => format!("{} {}", need.verb, need.resource),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(date: &str) -> HeaderMap {
        HeaderMap::from_iter([(header::DATE, date.parse().expect("a header's value"))])
    }

    #[test]
    fn a_clock_that_is_off_is_told_with_its_direction() {
        let at = 1_700_000_000;
        let headers = said("Tue, 14 Nov 2023 22:13:20 GMT");
        assert_eq!(
            clock(&headers, at + 3),
            Step::good("clock", "3 s from the API server's")
        );
        for (now, words) in [(at + 3_600, "3600 s ahead of"), (at - 90, "90 s behind")] {
            let Verdict::Odd { what, .. } = clock(&headers, now).verdict else {
                unreachable!("it is off");
            };
            assert!(what.contains(words), "{what}");
        }
        assert!(matches!(clock(&HeaderMap::new(), at).verdict, Verdict::Good(_)));
    }

    #[test]
    fn rights_are_asked_for_one_by_one_where_they_are_needed() {
        let all: Vec<_> = needs().iter().map(worded).collect();
        for need in [
            "get namespaces",
            "watch pods",
            "patch leases in flotilla-system",
            "update secrets in flotilla-system",
        ] {
            assert!(all.iter().any(|found| found == need), "{need} in {all:?}");
        }
    }
}
