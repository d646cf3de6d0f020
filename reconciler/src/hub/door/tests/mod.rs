//! The door with real TLS and a real tunnel, behind which an agent is played.

mod ending;
mod keeping;
mod lasting;
mod world;

use std::time::Duration;

use http::StatusCode;
use tokio::time::timeout;

use self::world::{Seen, World};
pub(super) use self::world::{fleet, oslo_fleet};

const SOON: Duration = Duration::from_secs(20);

const PODS: &str = "/clusters/oslo/api/v1/namespaces/shop/pods";

#[tokio::test]
async fn a_read_goes_through_the_tunnel_in_the_name_of_who_asked() {
    let mut world = World::new().await;
    let answer = world
        .get(
            "ada",
            PODS,
            &[("Accept", "application/json"), ("X-Forwarded-For", "1.2.3.4")],
        )
        .await;
    assert_eq!((answer.status, answer.body.as_str()), (StatusCode::OK, "pods"));
    assert!(answer.headers.contains_key("audit-id"));
    let Seen { caller, head, .. } = world.seen().await;
    assert_eq!(
        (caller.user.as_str(), caller.groups.as_slice()),
        ("ada", ["ops".to_owned()].as_slice())
    );
    assert!(!caller.request_id.is_empty());
    assert!(
        head.starts_with("GET /api/v1/namespaces/shop/pods HTTP/1.1\r\n"),
        "{head}"
    );
    let head = head.to_lowercase();
    assert!(head.contains("accept: application/json"), "{head}");
    assert!(!head.contains("authorization") && !head.contains("forwarded"), "{head}");
}

#[tokio::test]
async fn clusternets_forms_reach_a_cluster_by_its_name_and_by_its_id() {
    let mut world = World::new().await;
    let sockets = |rest: &str| format!("/apis/proxies.clusternet.io/v1alpha1/sockets/{rest}");
    for path in [
        sockets("oslo/proxy/direct/api/v1/pods?limit=5"),
        sockets("6a1f/proxy/direct/api/v1/pods?limit=5"),
        sockets("6a1f/proxy/https/kubernetes.default.svc/api/v1/pods?limit=5"),
    ] {
        let answer = world.get("ada", &path, &[]).await;
        assert_eq!(answer.status, StatusCode::OK, "{path}: {answer:?}");
        let head = world.seen().await.head;
        assert!(head.starts_with("GET /api/v1/pods?limit=5 HTTP/1.1\r\n"), "{head}");
    }
    let answer = world.get("ada", &sockets("nowhere/proxy/direct/api"), &[]).await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{answer:?}");
    let answer = world.get("ada", "/clusters/nowhere/api", &[]).await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN, "{answer:?}");
    assert!(world.seen_nothing(), "nothing came to the cluster");
}

#[tokio::test]
async fn clusternets_forms_watch_follow_logs_and_run_commands() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut world = World::that(true).await;
    let sockets = |rest: &str| format!("/apis/proxies.clusternet.io/v1alpha1/sockets/{rest}");
    for (path, asked) in [
        (
            sockets("6a1f/proxy/direct/api/v1/namespaces/shop/pods?watch=true"),
            "GET /api/v1/namespaces/shop/pods?watch=true ",
        ),
        (
            sockets("oslo/proxy/https/kubernetes.default.svc/api/v1/namespaces/shop/pods/web/log?follow=true"),
            "GET /api/v1/namespaces/shop/pods/web/log?follow=true ",
        ),
    ] {
        let mut coming = world.begin("ada", &path).await;
        let head = world.seen().await.head;
        assert!(head.starts_with(asked), "{head}");
        let mut stream = world.endless().await;
        for word in ["one", "two"] {
            stream.say(word).await;
            let said = timeout(SOON, coming.next()).await.expect("it comes as it is said");
            assert_eq!(said.as_deref(), Some(word), "{path}");
        }
        drop(coming);
        timeout(SOON, stream.closed())
            .await
            .expect("the cluster hears that it is over");
    }
    let exec = sockets("6a1f/proxy/direct/api/v1/namespaces/shop/pods/web/exec?command=cat&stdin=true");
    for protocol in ["SPDY/3.1", "websocket"] {
        let mut command = world.exec_by("ada", &exec, protocol).await.expect("it is carried");
        let head = world.seen().await.head.to_lowercase();
        assert!(
            head.starts_with("get /api/v1/namespaces/shop/pods/web/exec?command=cat&stdin=true ")
                && head.contains(&format!("upgrade: {}", protocol.to_lowercase())),
            "{head}"
        );
        command.write_all(b"hello").await.expect("it is sent");
        let mut said = [0; 5];
        let read = timeout(SOON, command.read_exact(&mut said)).await.expect("it answers");
        read.expect("it is whole");
        assert_eq!(&said, b"hello", "{protocol}");
    }
    assert_eq!(
        world.exec("bob", &exec).await.map(drop),
        Err(StatusCode::BAD_REQUEST),
        "who has no right does not learn of it"
    );
}

#[tokio::test]
async fn a_malformed_form_of_clusternets_is_a_status_that_says_how_it_is_written() {
    let world = World::new().await;
    for rest in [
        "",
        "6a1f",
        "6a1f/proxy",
        "6a1f/proxy/",
        "6a1f/direct/api",
        "6a1f/proxy/ftp/10.0.0.1/",
        "6a1f/proxy/https",
        "6a1f/proxy/https/",
        "6a1f/proxy/http/user@host/",
        "6a1f/proxy/http/host:notaport/",
    ] {
        let path = format!("/apis/proxies.clusternet.io/v1alpha1/sockets/{rest}");
        let answer = world.get("ada", &path, &[]).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{path}: {answer:?}");
        let status: serde_json::Value = serde_json::from_str(&answer.body).expect("a Status");
        assert_eq!(
            (&status["kind"], &status["reason"]),
            (&"Status".into(), &"BadRequest".into())
        );
        let message = status["message"].as_str().expect("a message");
        assert!(message.contains("proxy/direct/PATH"), "{path}: {message}");
    }
    let own = world.get("ada", "/clusters/", &[]).await;
    assert_eq!(own.status, StatusCode::NOT_FOUND, "{own:?}");
    assert!(world.seen_nothing());
}

#[tokio::test]
async fn nobody_who_is_unknown_or_without_rights_reaches_a_cluster_or_learns_of_it() {
    let world = World::new().await;
    let status = async |who: &str, path: &str| world.get(who, path, &[]).await.status;
    assert_eq!(status("", PODS).await, StatusCode::UNAUTHORIZED);
    assert_eq!(status("nobody", PODS).await, StatusCode::UNAUTHORIZED);
    assert_eq!(
        status("ada", "/clusters/oslo/api/v1/secrets").await,
        StatusCode::FORBIDDEN
    );
    assert_eq!(status("", "/healthz").await, StatusCode::OK);
    assert_eq!(status("", "/apis").await, StatusCode::UNAUTHORIZED);
    // A cluster that is there and one that is not are told alike.
    let there = world.get("bob", "/clusters/oslo/api/v1/pods", &[]).await;
    let not_there = world.get("bob", "/clusters/rome/api/v1/pods", &[]).await;
    assert_eq!(there.status, StatusCode::FORBIDDEN);
    let message = |body: &str| body.split("\"message\":").nth(1).map(str::to_owned);
    assert_eq!(message(&there.body.replace("oslo", "rome")), message(&not_there.body));
    assert!(world.seen_nothing());
}

#[tokio::test]
async fn the_query_path_cannot_write() {
    let world = World::new().await;
    for (method, path) in [
        ("POST", "/clusters/oslo/api/v1/namespaces/shop/pods"),
        ("PUT", "/clusters/oslo/api/v1/namespaces/shop/configmaps/greeting"),
        (
            "PATCH",
            "/clusters/oslo/api/v1/namespaces/shop/configmaps/greeting?dryRun=All&fieldManager=x",
        ),
        ("DELETE", "/clusters/oslo/api/v1/namespaces/shop/configmaps/greeting"),
        ("DELETE", "/clusters/oslo/api/v1/namespaces/shop/pods"),
        (
            "PATCH",
            "/clusters/oslo/apis/apps/v1/namespaces/shop/deployments/web/scale",
        ),
        ("POST", "/clusters/oslo/api/v1/namespaces/shop/serviceaccounts/a/token"),
        (
            "POST",
            "/clusters/oslo/apis/authorization.k8s.io/v1/subjectaccessreviews",
        ),
        (
            "POST",
            "/apis/proxies.clusternet.io/v1alpha1/sockets/oslo/proxy/direct/api/v1/namespaces/shop/pods",
        ),
    ] {
        let answer = world.ask("ada", method, path, &[]).await;
        assert_eq!(
            answer.status,
            StatusCode::METHOD_NOT_ALLOWED,
            "{method} {path}: {answer:?}"
        );
        assert!(answer.body.contains("change the fleet with a commit"), "{answer:?}");
    }
    for (method, path, headers, status) in [
        ("GET", PODS, [("X-HTTP-Method-Override", "DELETE")].as_slice(), 400),
        ("GET", PODS, &[("Connection", "Upgrade"), ("Upgrade", "SPDY/3.1")], 400),
        ("GET", PODS, &[("Impersonate-User", "admin")], 403),
        ("GET", PODS, &[("Impersonate-Group", "system:masters")], 403),
        ("GET", PODS, &[("Impersonate-Extra-Clusternet-Token", "x")], 403),
        ("GET", PODS, &[("X-Remote-User", "admin")], 403),
        ("OPTIONS", PODS, &[], 405),
        ("GET", "/clusters/oslo/api/v1/../../../healthz", &[], 400),
        ("GET", "/clusters/oslo/api/v1/namespaces%2fshop/pods", &[], 400),
        ("GET", "/clusters/oslo/%2e%2e/api", &[], 400),
        ("GET", "/clusters/oslo//api", &[], 400),
        (
            "GET",
            "/clusters/oslo/api/v1/namespaces/shop/pods/web/exec?command=sh",
            &[],
            403,
        ),
        (
            "POST",
            "/clusters/oslo/api/v1/namespaces/shop/pods/web/portforward",
            &[],
            403,
        ),
        ("GET", "/clusters/oslo/api/v1/nodes/n/proxy/logs/", &[], 403),
    ] {
        let answer = world.ask("ada", method, path, headers).await;
        assert_eq!(
            answer.status.as_u16(),
            status,
            "{method} {path} {headers:?}: {answer:?}"
        );
    }
    assert!(world.seen_nothing(), "nothing came to the cluster");
}

#[tokio::test]
async fn a_question_about_oneself_is_asked_with_its_body() {
    let mut world = World::new().await;
    let path = "/clusters/oslo/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let answer = world
        .ask("ada", "POST", path, &[("Content-Type", "application/json")])
        .await;
    assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
    let head = world.seen().await.head.to_lowercase();
    assert!(
        head.starts_with("post ") && head.contains("content-length: 2"),
        "{head}"
    );
}

#[tokio::test]
async fn a_question_about_oneself_is_short_and_so_is_what_is_read_of_an_object() {
    let world = World::new().await;
    let path = "/clusters/oslo/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let answer = world.ask("ada", "POST", path, &[("X-Body-Bytes", "1048576")]).await;
    assert_eq!(answer.status, StatusCode::PAYLOAD_TOO_LARGE, "{answer:?}");
    assert!(world.seen_nothing());
    let answer = world.ask("ada", "POST", PODS, &[("X-Body-Bytes", "1048576")]).await;
    assert_eq!(answer.status, StatusCode::METHOD_NOT_ALLOWED, "{answer:?}");
}

#[tokio::test]
async fn the_hub_itself_says_what_somebody_may_ask_of_it() {
    let world = World::new().await;
    let reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let may = async |verb: &str| {
        let body = format!(
            r#"{{"spec": {{"resourceAttributes": {{"group": "fleet.flotilla.dev", "resource": "managedclusters", "verb": "{verb}"}}}}}}"#
        );
        let answer = world.ask("ada", "POST", reviews, &[("X-Body", &body)]).await;
        assert_eq!(answer.status, StatusCode::CREATED, "{answer:?}");
        let review: serde_json::Value = serde_json::from_str(&answer.body).expect("JSON");
        review["status"]["allowed"] == true
    };
    for (verb, is_allowed) in [
        ("get", true),
        ("list", true),
        ("watch", true),
        ("create", false),
        ("delete", false),
    ] {
        assert_eq!(may(verb).await, is_allowed, "{verb}");
        let method = match verb {
            "create" => "POST",
            "delete" => "DELETE",
            _ => "GET",
        };
        let path = "/apis/fleet.flotilla.dev/v1alpha1/managedclusters";
        let answer = world.ask("ada", method, path, &[]).await;
        assert_eq!(answer.status == StatusCode::OK, is_allowed, "{verb}: {answer:?}");
    }
    let line = world
        .audited(|line| line["resource"] == "selfsubjectaccessreviews.authorization.k8s.io")
        .await;
    assert!(line["bytesUp"].as_u64() > Some(100), "{line}");
    let own = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let answer = world.ask("ada", "POST", own, &[]).await;
    assert!(answer.body.contains(r#""username":"ada""#), "{answer:?}");
    let answer = world.ask("bob", "POST", reviews, &[]).await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN, "who has no right: {answer:?}");
    let answer = world.ask("ada", "POST", reviews, &[("X-Body-Bytes", "1048576")]).await;
    assert_eq!(answer.status, StatusCode::PAYLOAD_TOO_LARGE, "{answer:?}");
    assert!(world.seen_nothing(), "nobody else is asked");
}

#[tokio::test]
async fn a_question_about_dependants_is_narrowed_to_what_its_asker_may_read() {
    let world = World::new().await;
    let ask = async |object: &str| {
        let path = format!("/apis/fleet.flotilla.dev/v1alpha1/managedclusters/oslo/dependants?object={object}");
        world.get("ada", &path, &[]).await
    };
    let secret = ask("/Secret/shop/tls").await;
    assert_eq!(secret.status, StatusCode::OK, "{secret:?}");
    assert!(
        secret.body.contains("1 object that access/ does not let you read"),
        "{secret:?}"
    );
    assert!(!secret.body.contains("tls"), "{secret:?}");
    let web = ask("apps/Deployment/shop/web").await;
    // This hub asks no cluster.
    assert_eq!(web.status, StatusCode::SERVICE_UNAVAILABLE, "{web:?}");
}

#[tokio::test]
async fn a_read_over_http2_has_no_body_that_its_headers_do_not_tell() {
    let world = World::new().await;
    let status = world.http2().await.get_with_body("ada", PODS).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(world.seen_nothing());
}

#[tokio::test]
async fn a_caller_who_goes_away_ends_the_stream_and_nobody_elses() {
    let mut world = World::new().await;
    let watch = "/clusters/oslo/api/v1/namespaces/shop/pods?watch=true";
    let first = world.begin("ada", watch).await;
    let mut second = world.begin("ada", watch).await;
    let (_, first_stream) = (world.seen().await, world.endless().await);
    let (_, mut second_stream) = (world.seen().await, world.endless().await);
    second_stream.say("one").await;
    assert_eq!(second.next().await.as_deref(), Some("one"));
    drop(first);
    timeout(SOON, first_stream.closed())
        .await
        .expect("the cluster hears of it");
    second_stream.say("two").await;
    assert_eq!(second.next().await.as_deref(), Some("two"), "the other goes on");
}

#[tokio::test]
async fn a_right_that_is_taken_away_ends_what_was_read_with_it() {
    let mut world = World::new().await;
    let mut watch = world
        .begin("ada", "/clusters/oslo/api/v1/namespaces/shop/pods?watch=true")
        .await;
    let (_, mut stream) = (world.seen().await, world.endless().await);
    stream.say("one").await;
    assert_eq!(watch.next().await.as_deref(), Some("one"));
    world.take_rights_away();
    assert_eq!(timeout(SOON, watch.next()).await, Ok(None), "it ends");
    assert_eq!(world.get("ada", PODS, &[]).await.status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn a_cluster_that_is_away_is_told_with_a_word_on_when_to_try_again() {
    let mut world = World::new().await;
    world.disconnect(1_000_000_000);
    let direct = "/apis/proxies.clusternet.io/v1alpha1/sockets/6a1f/proxy/direct/api/v1/namespaces/shop/pods";
    for path in [PODS, direct] {
        let answer = world.get("ada", path, &[]).await;
        assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE, "{answer:?}");
        let status: serde_json::Value = serde_json::from_str(&answer.body).expect("a Status");
        assert_eq!(
            (&status["kind"], &status["reason"]),
            (&"Status".into(), &"ClusterDisconnected".into())
        );
        let message = status["message"].as_str().expect("a message");
        assert!(
            message.contains("is not connected since 2001-09-09T01:46:40Z"),
            "{message}"
        );
        assert!(answer.headers.contains_key("retry-after"));
    }
}

#[tokio::test]
async fn what_an_agent_refuses_is_refused_with_its_words() {
    let mut world = World::new().await;
    let answer = world
        .get("ada", "/clusters/oslo/api/v1/namespaces/shop/pods/refused", &[])
        .await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN, "{answer:?}");
    assert!(answer.body.contains("the policy says no"), "{answer:?}");
    assert!(world.get("ada", PODS, &[]).await.status.is_success(), "others go on");
    let _ = world.seen().await;
}

#[tokio::test]
async fn a_command_in_a_container_is_carried_where_hub_and_access_allow_it() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let path = "/clusters/oslo/api/v1/namespaces/shop/pods/web/exec?command=cat&stdin=true";
    let world = World::new().await;
    assert_eq!(
        world.exec("ada", path).await.map(drop),
        Err(StatusCode::FORBIDDEN),
        "it is off"
    );
    let mut world = World::that(true).await;
    assert_eq!(
        world.exec("bob", path).await.map(drop),
        Err(StatusCode::FORBIDDEN),
        "he has no right"
    );
    let port = "/clusters/oslo/api/v1/namespaces/shop/pods/web/portforward";
    assert_eq!(
        world.exec("ada", port).await.map(drop),
        Err(StatusCode::FORBIDDEN),
        "she has no right"
    );
    assert!(world.seen_nothing());
    let mut command = world.exec("ada", path).await.expect("it is carried");
    let head = world.seen().await.head.to_lowercase();
    assert!(
        head.contains("upgrade: spdy/3.1") && head.contains("x-stream-protocol-version: v4"),
        "{head}"
    );
    command.write_all(b"hello").await.expect("it is sent");
    let mut said = [0; 5];
    let read = timeout(SOON, command.read_exact(&mut said)).await.expect("it answers");
    read.expect("it is whole");
    assert_eq!(&said, b"hello");
}

#[tokio::test]
async fn what_is_sent_through_a_proxy_is_carried_with_its_body_or_not_at_all() {
    let mut world = World::that(true).await;
    let path = "/clusters/oslo/api/v1/namespaces/shop/services/web/proxy/orders";
    for method in ["POST", "PUT", "PATCH", "DELETE"] {
        let answer = world.ask("ada", method, path, &[("X-Body-Bytes", "40000")]).await;
        assert_eq!(answer.status, StatusCode::OK, "{method}: {answer:?}");
        let head = world.seen().await.head.to_lowercase();
        assert!(head.contains("content-length: 40000"), "{head}");
    }
    let unnamed = [("X-Body-Bytes", "40000"), ("Connection", "Upgrade")];
    let answer = world.ask("ada", "POST", path, &unnamed).await;
    assert_eq!(answer.status, StatusCode::OK, "no protocol is named: {answer:?}");
    let head = world.seen().await.head.to_lowercase();
    assert!(
        head.contains("content-length: 40000") && !head.contains("upgrade"),
        "{head}"
    );
    let named = [unnamed[0], unnamed[1], ("Upgrade", "websocket")];
    let answer = world.ask("ada", "POST", path, &named).await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{answer:?}");
    let answer = world.ask("ada", "POST", path, &[("X-Body-Bytes", "1048576")]).await;
    assert_eq!(answer.status, StatusCode::PAYLOAD_TOO_LARGE, "{answer:?}");
    assert!(world.seen_nothing(), "half of it is worse than nothing");
}

#[tokio::test]
async fn a_page_in_a_browser_reaches_into_no_container_by_its_readers_certificate() {
    let mut world = World::that(true).await;
    let mut cleo = world.http2_certified().await;
    let web = "/clusters/oslo/api/v1/namespaces/shop/services/web/proxy/";
    assert_eq!(cleo.get_for_a_page(web).await, StatusCode::FORBIDDEN);
    assert!(world.seen_nothing());
    assert_eq!(cleo.get(web).await, Some(StatusCode::OK), "she may");
    let _ = world.seen().await;
    let program = cleo.get_from("https://hub", web).await;
    assert_eq!(program, StatusCode::OK, "as programs say it that open a WebSocket");
    let _ = world.seen().await;
    assert_eq!(
        cleo.get_for_a_page(PODS).await,
        StatusCode::OK,
        "what is read is told to no page"
    );
    let _ = world.seen().await;
    // A token is in no browser that a page could make show it.
    let origin = [("Origin", "https://elsewhere.example")];
    assert_eq!(world.get("ada", web, &origin).await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_cluster_in_mode_pull_is_not_asked() {
    let world = World::new().await;
    world.pull();
    let answer = world.get("ada", PODS, &[]).await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN, "{answer:?}");
    assert!(answer.body.contains("sync mode Pull"), "{answer:?}");
    assert!(world.seen_nothing());
}
