//! People who ask clusters that nobody can dial.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use flotilla_tests::network::Relay;
use flotilla_tests::{Child, Node, eventually, ports};
use serde_json::Value;

use super::super::sites::{Place, World, at};
use super::super::support::{LIMIT, config_map};
use super::reads::{ask_everything, measure};

/// The lines of an audit log; none before there is one.
fn lines(path: &str) -> Vec<Value> {
    let log = fs::read_to_string(path).unwrap_or_default();
    // The newest line may be written in part.
    let whole = log.rsplit_once('\n').map(|(whole, _)| whole.to_owned());
    let whole = whole.unwrap_or_default();
    whole
        .lines()
        .map(|line| serde_json::from_str(line).expect("a line is JSON"))
        .collect()
}

/// Waits until both ends have written down one request in the same words, and says what both wrote.
#[track_caller]
fn until_both_wrote(hub: &str, agent: &str, is_it: impl Fn(&Value) -> bool) -> (Value, Value) {
    eventually(LIMIT, "both ends have a line of the request", || {
        let (hub, agent) = (lines(hub), lines(agent));
        let asked = hub
            .iter()
            .find(|line| is_it(line))
            .ok_or("the hub has none".to_owned())?;
        let same = |line: &&Value| line["requestId"] == asked["requestId"];
        let lent = agent.iter().find(same).ok_or("the agent has none".to_owned())?;
        for field in ["user", "groups", "verb", "resource", "namespace", "name", "code"] {
            assert_eq!(asked[field], lent[field], "{field} of {asked} and {lent}");
        }
        Ok((asked.clone(), lent.clone()))
    })
}

/// A pod with three lines of log, figures for it, and the first answer to ada.
#[track_caller]
fn furnish(world: &World, place: &Place) -> Node {
    let node = Node::start(&place.cluster, "scribe", "shop");
    (0..3).for_each(|number| node.say(&format!("line {number}")));
    measure(&place.cluster);
    eventually(LIMIT, &format!("{} answers", place.name), || {
        world
            .callers
            .kubectl("ada", place.name, &["get", "pods", "-n", "shop"])
            .ok()
    });
    node
}

#[test]
fn every_verb_of_kubectl_reaches_clusters_behind_nginx_a_proxy_and_ipv6() {
    let names = ["amsterdam", "bogota", "colombo"];
    let folder = flotilla_tests::scratch::folder("audit");
    let path = |name: &str| folder.join(name).display().to_string();
    let (hub_audit, agent_audit) = (path("hub.log"), path("agents.log"));
    let mut world = World::start_with(&names, &["--audit-log", &hub_audit], &[]);
    let _ways = world.lead_out(&["--audit-log", &agent_audit]);
    world.greet("hello");
    world.callers.write_kubeconfigs(&names);
    let changed = config_map("shop", "greeting", "bye");
    fs::write(world.folder.join("greeting.yaml"), changed).unwrap();
    let file = world.callers.path("greeting.yaml");
    for place in &world.places {
        let node = furnish(&world, place);
        let ada = |arguments: &[&str]| world.callers.kubectl("ada", place.name, arguments);
        ask_everything(ada);
        let follow = |what: &str, arguments: &[&str]| {
            world
                .callers
                .follow(&format!("{what}-{}", place.name), "ada", place.name, arguments)
        };
        let log = follow("log", &["logs", "-f", "teller", "-n", "shop"]);
        let watch = follow("watch", &["get", "configmaps", "-n", "shop", "--watch", "-o", "name"]);
        eventually(LIMIT, "what is followed begins", || {
            let (log, watch) = (log.log(), watch.log());
            let begun = log.ends_with("line 2\n") && watch.contains("configmap/greeting");
            begun.then_some(()).ok_or(format!("{log} {watch}"))
        });
        node.say("line 3");
        place.cluster.apply(&config_map("shop", "more", "x"));
        eventually(LIMIT, "what is followed goes on", || {
            let (log, watch) = (log.log(), watch.log());
            let goes_on = log.ends_with("line 2\nline 3\n") && watch.contains("configmap/more");
            goes_on.then_some(()).ok_or(format!("{log} {watch}"))
        });
        // Changes are refused, with the file that they belong to; so is a comparison, which is a write thrown away.
        for verb in [["apply", "-f"], ["diff", "-f"]] {
            let refused = ada(&[&verb[..], &[&file]].concat());
            let told = format!("{}{}", refused.stdout, refused.stderr);
            assert_ne!(refused.code(), Some(0), "{told}");
            assert!(told.contains("feeds/web/greeting.yaml, line 1"), "{verb:?}: {told}");
        }
        place.until_greeted("hello");
        let (asked, lent) = until_both_wrote(&hub_audit, &agent_audit, |line| {
            line["cluster"] == place.name && line["resource"] == "pods/log" && line["code"] == 200
        });
        assert_eq!((&asked["user"], &lent["class"]), (&"ada".into(), &"apiserver".into()));
        assert!(lent["bytesDown"].as_u64() > Some(0), "{lent}");
    }
}

/// Runs a command that is told `input`, and returns whether it succeeded and what it said. kubectl itself waits for ever.
fn told(command: &Command, input: &str) -> (bool, String) {
    let mut bounded = Command::new("timeout");
    bounded.arg("20").arg(command.get_program()).args(command.get_args());
    bounded.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let piped = bounded
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut process = piped.spawn().expect("timeout starts");
    let mut stdin = process.stdin.take().expect("it is piped");
    // Whoever ends early reads none of it.
    let _ended = stdin.write_all(input.as_bytes());
    drop(stdin);
    let output = process.wait_with_output().expect("it ends");
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&said).into_owned())
}

/// What is answered at the port that kubectl forwards.
fn answer_at(forward: &Child) -> Result<String, String> {
    let log = forward.log();
    let port = log.split_once("127.0.0.1:").and_then(|(_, rest)| rest.split_once(' '));
    let (port, _) = port.ok_or_else(|| log.clone())?;
    let address = format!("127.0.0.1:{port}");
    let mut socket = TcpStream::connect(address).map_err(|error| error.to_string())?;
    let _set = socket.set_read_timeout(Some(Duration::from_secs(5)));
    let mut answer = [0; 64];
    let asked = socket.write_all(b"GET /healthz HTTP/1.0\r\n\r\n");
    let heard = asked.and_then(|()| socket.read(&mut answer));
    let heard = heard.map_err(|error| format!("{error}: {}", forward.log()))?;
    Ok(String::from_utf8_lossy(&answer[..heard]).into_owned())
}

/// Which protocol kubectl asks for when it goes into a container, and to a port.
const PROTOCOLS: [(&str, &str); 2] = [("WebSocket", "true"), ("SPDY", "false")];

#[test]
fn exec_and_port_forward_reach_a_real_container_where_three_allow_it() {
    let folder = flotilla_tests::scratch::folder("audit");
    let path = |name: &str| folder.join(name).display().to_string();
    let (hub_audit, agent_audit) = (path("hub.log"), path("agent.log"));
    let hub = ["--allow-interactive", "--audit-log", &hub_audit];
    let mut world = World::start_with(&["dakar"], &hub, &[]);
    let relay = Relay::start(at(world.places[0].site.outside()), world.secured);
    let way = relay.address().to_string();
    world.start_agent(0, &way, &[], &[]);
    world.greet("hello");
    world.callers.write_kubeconfigs(&["dakar"]);
    let _node = furnish(&world, &world.places[0]);
    let run = |world: &World, who: &str, websockets: &str, arguments: &[&str]| {
        let mut command = world.callers.command(who, "dakar");
        command.env("KUBECTL_REMOTE_COMMAND_WEBSOCKETS", websockets);
        told(command.args(arguments), "a word\n")
    };
    let exec = ["exec", "-i", "teller", "-n", "shop", "--", "sh", "-c"];
    let speak = [&exec[..], &["read word; echo $word; echo an error >&2"]].concat();
    let form = "/apis/proxies.clusternet.io/v1alpha1/sockets/dakar/proxy/direct";
    let direct = format!("{}{form}", world.callers.url());
    // Two of three allow it: here the agent does not, and there access/ does not.
    let (done, said) = run(&world, "eve", "true", &speak);
    assert!(!done && said.contains("--allow interactive"), "{said}");
    let lends = ["--allow", "read", "--allow", "interactive", "--audit-log", &agent_audit];
    world.start_agent(0, &way, &lends, &[]);
    for (protocol, websockets) in PROTOCOLS {
        eventually(LIMIT, &format!("eve is in the container by {protocol}"), || {
            let (done, said) = run(&world, "eve", websockets, &speak);
            let is_whole = done && said.contains("a word\n") && said.contains("an error\n");
            is_whole.then_some(()).ok_or(said)
        });
        let by_form = [&["--server", direct.as_str()], &speak[..]].concat();
        let (done, said) = run(&world, "eve", websockets, &by_form);
        assert!(done && said.contains("a word\n"), "by Clusternet's form: {said}");
        let (done, said) = run(&world, "ada", websockets, &speak);
        assert!(!done && said.contains("pods/exec"), "ada only reads: {said}");
        let fails = [&exec[..], &["exit 7"]].concat();
        let (done, said) = run(&world, "eve", websockets, &fails);
        assert!(!done && said.contains('7'), "how it ended is told: {said}");
        let copy = folder.join(protocol).display().to_string();
        let (done, said) = run(&world, "eve", websockets, &["cp", "shop/teller:pod.log", &copy]);
        assert!(done, "{said}");
        assert!(fs::read_to_string(&copy).expect("it was copied").contains("line 2"));

        let mut forward = world.callers.command("eve", "dakar");
        forward.env("KUBECTL_PORT_FORWARD_WEBSOCKETS", websockets);
        forward.args(["port-forward", "pod/teller", "0:80", "-n", "shop"]);
        let forward = Child::start(&format!("forward-{protocol}"), &folder, &mut forward);
        eventually(LIMIT, &format!("a port is reached by {protocol}"), || {
            let answer = answer_at(&forward)?;
            answer.starts_with("HTTP/1.").then_some(()).ok_or(answer)
        });
    }
    let (asked, lent) = until_both_wrote(&hub_audit, &agent_audit, |line| {
        line["class"] == "interactive" && line["resource"] == "pods/exec" && line["code"] == 101
    });
    assert_eq!((&asked["user"], &lent["class"]), (&"eve".into(), &"interactive".into()));
}

#[test]
fn clusternets_forms_reach_what_the_policy_lists() {
    let (listed, unlisted) = (ports::free(), ports::free());
    // The hub verifies TLS with the roots of its machine, and the cluster's API server signs itself.
    let roots = flotilla_tests::scratch::folder("roots").join("roots.pem");
    let mut world = World::start_with(&["dakar"], &[], &[("SSL_CERT_FILE", roots.as_os_str())]);
    let certificate = world.places[0].cluster.folder().join("certificates/apiserver.crt");
    fs::copy(certificate, &roots).expect("an API server makes its certificate");
    let relay = Relay::start(at(world.places[0].site.outside()), world.secured);
    let (way, url) = (relay.address().to_string(), world.places[0].cluster.url());
    let (_, server) = url.rsplit_once(':').expect("a port");
    let allow = [format!("dial:127.0.0.1:{listed}"), format!("dial:127.0.0.1:{server}")];
    let lends = ["read", "interactive", &allow[0], &allow[1]];
    let lends: Vec<_> = lends.iter().flat_map(|what| ["--allow", what]).collect();
    world.start_agent(0, &way, &lends, &[]);
    world.greet("hello");
    world.callers.write_kubeconfigs(&["dakar"]);
    let node = Node::start_at(&world.places[0].cluster, "scribe", "shop", listed);
    (0..3).for_each(|number| node.say(&format!("line {number}")));
    let form =
        |form: &str, path: &str| format!("/apis/proxies.clusternet.io/v1alpha1/sockets/dakar/proxy/{form}{path}");
    let raw = |who: &str, path: &str| world.callers.kubectl(who, "flotilla", &["get", "--raw", path]);
    // The API server, and a pod's log through it.
    let log = form("direct", "/api/v1/namespaces/shop/pods/teller/log");
    eventually(LIMIT, "the direct form answers", || {
        let said = raw("ada", &log).ok()?;
        (said == "line 0\nline 1\nline 2\n").then_some(()).ok_or(said)
    });
    // What goes on: a log that is followed, and a watch.
    let direct = format!("{}{}", world.callers.url(), form("direct", ""));
    let folder = flotilla_tests::scratch::folder("forms");
    let goes_on = |name: &str, arguments: &[&str]| {
        let mut command = world.callers.command("ada", "dakar");
        command.args(["--server", &direct, "-n", "shop"]).args(arguments);
        Child::start(name, &folder, &mut command)
    };
    let (follow, watch) = (
        goes_on("follow", &["logs", "-f", "teller"]),
        goes_on("watch", &["get", "pods", "-w", "-o", "name"]),
    );
    let heard = |of: &Child, what: &str| {
        let log = of.log();
        log.contains(what).then_some(()).ok_or(log)
    };
    eventually(LIMIT, "the log is followed", || heard(&follow, "line 2"));
    eventually(LIMIT, "the watch begins", || heard(&watch, "pod/teller"));
    node.say("line 3");
    eventually(LIMIT, "what is said later comes as well", || heard(&follow, "line 3"));
    drop((follow, watch));
    // What else the cluster reaches: a program that speaks HTTP, and one whose certificate is verified.
    let health = raw("ada", &form("http", &format!("/127.0.0.1:{listed}/healthz")));
    assert_eq!(health.expect_ok(), "ok");
    let version = raw("ada", &form("https", &format!("/127.0.0.1:{server}/version")));
    assert!(version.expect_ok().contains("gitVersion"));
    // Whose certificate is nobody's, whom the agent's policy does not list, and who has no right to the address.
    let untrusted = raw("ada", &form("https", &format!("/127.0.0.1:{listed}/healthz")));
    assert!(untrusted.stderr.contains("certificate"), "{untrusted:?}");
    let beyond = raw("ada", &form("http", &format!("/127.0.0.1:{unlisted}/healthz")));
    assert!(beyond.stderr.contains("does not allow this"), "{beyond:?}");
    let no_right = raw("eve", &form("http", &format!("/127.0.0.1:{listed}/healthz")));
    assert!(no_right.stderr.contains("Forbidden"), "{no_right:?}");
}
