//! The API server: whether it answers, whether our clocks agree, and what we may do there.

use futures_util::future::join;
use futures_util::{StreamExt as _, stream};
use http::{HeaderMap, Request, header};
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec};
use kube::Client;
use kube::api::{Api, PostParams};
use kube::client::Body;
use tokio::time::timeout;

use super::{Step, Verdict, clock, feeds};
use crate::agent::Policy;
use crate::agent::grants::{self, Need, needs};
use crate::agent::store::Kept;
use crate::fault::line;
use crate::limits::{API_REQUEST_TIMEOUT, DOCTOR_QUESTIONS_MAX};

pub(super) async fn examine(client: &Result<Client, String>, policy: &Policy, kept: Option<&Kept>) -> Vec<Step> {
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
                not_tried("people"),
                not_tried("feeds"),
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
            not_tried("people"),
            not_tried("feeds"),
        ],
        Ok(headers) => {
            let now = jiff::Timestamp::now().as_second();
            let mut steps = vec![
                Step::good("api-server", "it answers"),
                clock::beside("the API server", said(&headers), now),
            ];
            steps.extend(rights(client, policy).await);
            steps.push(feeds::examine(client, kept).await);
            steps
        }
    }
}

pub(super) fn not_tried(name: &'static str) -> Step {
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

/// The time that an API server says with every answer, in seconds since 1970.
fn said(headers: &HeaderMap) -> Option<i64> {
    let date = headers.get(header::DATE)?.to_str().ok()?;
    Some(jiff::fmt::rfc2822::parse(date).ok()?.timestamp().as_second())
}

/// What every agent needs, and what those need that act in people's names.
async fn rights(client: &Client, policy: &Policy) -> Vec<Step> {
    let all = needs(&grants::COMMON);
    let hint = "apply what `flotilla agent join --manifests` prints, or bind these rights yourself";
    let common = asked(client, "rights", &all, hint);
    let people = async {
        if !policy.lends_people() {
            return Step::good("people", "--allow lets nobody ask the API server through this agent");
        }
        let hint = "bind the ClusterRole flotilla-agent-people, as `flotilla agent join --manifests` prints it, or lend people \
                    nothing: --allow look";
        asked(client, "people", &needs(&grants::OF_PEOPLE), hint).await
    };
    let (common, people) = join(common, people).await;
    vec![common, people]
}

/// Asks for each right, and says which is missing.
async fn asked(client: &Client, name: &'static str, needs: &[Need<'_>], hint: &str) -> Step {
    match missing(client, needs).await {
        Ok(missing) => judged(name, needs.len(), &missing, hint),
        Err((what, hint)) => Step::bad(name, what, hint),
    }
}

/// Those of some rights that we do not have; or why nobody says, and what to do.
pub(super) async fn missing<'a>(client: &Client, needs: &[Need<'a>]) -> Result<Vec<Need<'a>>, (String, &'static str)> {
    let reviews: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    let answers = needs.iter().map(|need| {
        let (reviews, what) = (reviews.clone(), review(need));
        async move { timeout(API_REQUEST_TIMEOUT, reviews.create(&PostParams::default(), &what)).await }
    });
    let answers: Vec<_> = stream::iter(answers).buffered(DOCTOR_QUESTIONS_MAX).collect().await;
    let mut missing = Vec::new();
    for (need, answer) in needs.iter().zip(answers) {
        match answer {
            Ok(Ok(answer)) if answer.status.as_ref().is_some_and(|status| status.allowed) => {}
            Ok(Ok(_)) => missing.push(*need),
            Ok(Err(error)) => return Err((line(&error), "see why the API server reviews no rights")),
            Err(_) => return Err(("the API server does not answer in time".to_owned(), "try again")),
        }
    }
    Ok(missing)
}

fn judged(name: &'static str, asked: usize, missing: &[Need<'_>], hint: &str) -> Step {
    if missing.is_empty() {
        let what = match name {
            "people" => format!("all {asked} for acting in people's names, and for writing what access/ grants them"),
            _ => format!("all {asked} that every agent needs"),
        };
        return Step::good(name, what);
    }
    let missing: Vec<_> = missing.iter().map(worded).collect();
    Step::bad(name, format!("this agent may not {}", missing.join(", ")), hint)
}

fn review(need: &Need<'_>) -> SelfSubjectAccessReview {
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

pub(super) fn worded(need: &Need<'_>) -> String {
    match need.namespace {
        Some(namespace) => format!("{} {} in {namespace}", need.verb, need.resource),
        None => format!("{} {}", need.verb, need.resource),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_an_api_server_is_read_from_its_answers() {
        let headers = |date: &str| HeaderMap::from_iter([(header::DATE, date.parse().expect("a header's value"))]);
        assert_eq!(said(&headers("Tue, 14 Nov 2023 22:13:20 GMT")), Some(1_700_000_000));
        assert_eq!(said(&headers("today")), None);
        assert_eq!(said(&HeaderMap::new()), None);
    }

    #[test]
    fn rights_are_asked_for_one_by_one_where_they_are_needed() {
        let worded = |grants: &[_]| needs(grants).iter().map(worded).collect::<Vec<_>>();
        let (common, people) = (worded(&grants::COMMON), worded(&grants::OF_PEOPLE));
        for need in [
            "get namespaces",
            "watch pods",
            "patch leases in flotilla-system",
            "update secrets in flotilla-system",
        ] {
            assert!(common.iter().any(|found| found == need), "{need} in {common:?}");
        }
        for need in [
            "impersonate users",
            "impersonate groups",
            "escalate clusterroles",
            "bind roles",
        ] {
            assert!(people.iter().any(|found| found == need), "{need} in {people:?}");
            assert!(
                !common.iter().any(|found| found == need),
                "not every agent acts for people"
            );
        }
    }

    #[test]
    fn what_is_missing_is_named_with_what_to_do() {
        let needs = needs(&grants::OF_PEOPLE);
        assert!(matches!(
            judged("people", needs.len(), &[], "").verdict,
            Verdict::Good(_)
        ));
        let Verdict::Bad { what, hint } = judged("people", needs.len(), &needs[..2], "bind it").verdict else {
            unreachable!("something is missing");
        };
        assert_eq!(
            (what.as_str(), hint.as_str()),
            ("this agent may not impersonate users, impersonate groups", "bind it")
        );
    }
}
