//! Questions, answers and addresses.

use serde_json::json;

use super::*;
use crate::capacity::PodRequirements;
use crate::fixture;
use crate::model::Predictor;

#[track_caller]
fn says(body: &str, expected: Result<u64, InvalidAnswer>) {
    assert_eq!(predicted_replicas(body.as_bytes()), expected, "{body}");
}

#[test]
fn an_error_object_is_an_error_and_never_no_room() {
    says(r#"{"replicas": {"default": 7, "zone=a": 3}}"#, Ok(7));
    says(r#"{"replicas": {"default": 0}}"#, Ok(0));
    says("upstream connect error", Err(InvalidAnswer::NotJson));
    says("", Err(InvalidAnswer::NotJson));
    let status = r#"{"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "no route", "code": 500}"#;
    says(status, Err(InvalidAnswer::Status("no route".to_owned())));
    says(r#"{"error": "later"}"#, Err(InvalidAnswer::NoReplicas));
    says(r#"{"replicas": {}}"#, Err(InvalidAnswer::NoReplicas));
    says(r#"{"replicas": {"default": -1}}"#, Err(InvalidAnswer::NotANumber));
    says(r#"{"replicas": {"default": "7"}}"#, Err(InvalidAnswer::NotANumber));
    says(
        r#"{"replicas": {"default": 4294967296}}"#,
        Err(InvalidAnswer::NotANumber),
    );
}

#[track_caller]
fn leads(url: &str, expected: Result<(), InvalidAddress>) {
    assert_eq!(check_address(url), expected, "{url}");
}

#[test]
fn nobody_is_asked_where_clouds_give_credentials_out() {
    leads("https://predictor.example.com", Ok(()));
    leads("http://10.0.0.1:8080/clusters/a", Ok(()));
    leads("https://[2001:db8::1]:8443", Ok(()));
    leads("http://169.254.169.254", Err(InvalidAddress::Forbidden));
    leads(
        "http://[::ffff:169.254.169.254]:80/latest",
        Err(InvalidAddress::Forbidden),
    );
    leads("http://[fe80::1]", Err(InvalidAddress::Forbidden));
    leads("http://[fd00:ec2::254]", Err(InvalidAddress::Forbidden));
    leads("http://0.0.0.0:80", Err(InvalidAddress::Forbidden));
    leads("https://name:word@example.com", Err(InvalidAddress::Secret));
    leads("ftp://example.com", Err(InvalidAddress::Scheme));
    leads("example.com:8080", Err(InvalidAddress::Scheme));
    leads("https://", Err(InvalidAddress::Host));
    leads("https://example.com:port", Err(InvalidAddress::Rest));
    leads("https://example.com/?token=x", Err(InvalidAddress::Rest));
    leads("https://example.com/a b", Err(InvalidAddress::Rest));
}

#[test]
fn a_question_says_what_a_pod_asks_for_in_clusternets_words() {
    let template = json!({ "spec": {
        "nodeSelector": { "disktype": "ssd" },
        "tolerations": [{ "key": "gpu", "operator": "Exists", "effect": "NoSchedule" }],
        "affinity": { "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [
            { "matchExpressions": [{ "key": "zone", "operator": "In", "values": ["a"] }] },
        ] } } },
        "containers": [{ "name": "app", "resources": { "requests": { "cpu": "1500m", "memory": "128Mi" } } }],
    } });
    let requirements = PodRequirements::read(&template).expect("it is a pod template");
    let mut cluster = fixture::cluster("a", &[]);
    assert_eq!(Question::about(&cluster, &requirements), None, "it has no predictor");
    cluster.predictor = Some(Predictor {
        url: "https://predictor.example.com".to_owned(),
        timeout_seconds: 5,
    });
    let question = Question::about(&cluster, &requirements).expect("it has a predictor");
    assert_eq!(
        question.body,
        json!({
            "nodeSelector": { "disktype": "ssd" },
            "tolerations": [{ "key": "gpu", "operator": "Exists", "effect": "NoSchedule" }],
            "affinity": { "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [
                { "matchExpressions": [{ "key": "zone", "operator": "In", "values": ["a"] }] },
            ] } } },
            "resources": { "requests": { "cpu": "1500m", "memory": "134217728" } },
        })
    );
}

#[test]
fn an_answer_counts_for_a_while() {
    let predicted = Predicted {
        at: 1_000,
        outcome: Outcome::Replicas(3),
    };
    assert!(predicted.is_fresh(1_000) && predicted.is_fresh(1_059));
    assert!(!predicted.is_fresh(1_060), "nobody knows any more");
    assert!(!predicted.is_fresh(999), "a clock that was set back proves nothing");
}
