//! Clusters that nobody can dial: each in a network of its own, with something between it and its hub.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use flotilla_tests::network::{ConnectProxy, Nginx, Relay};
use flotilla_tests::{ControlPlane, Flotilla, Options, Output, Repository, Site, eventually, ports, scratch};

use super::support::{FLEET, LIMIT, config_map, subscription};

/// Both ends notice after 25 s of silence; a busy machine takes longer to say so.
const DEAD_LIMIT: Duration = Duration::from_secs(75);

/// How the hub is called in the sites.
const HUB_NAME: &str = "hub.test";

/// A cluster and its agent in a site.
struct Place {
    name: &'static str,
    cluster: ControlPlane,
    agent: Option<Flotilla>,
    /// What the agent is started with.
    arguments: Vec<String>,
    environment: Vec<(&'static str, String)>,
    site: Arc<Site>,
}

/// A hub that answers on loopback alone, and its sites.
struct World {
    repository: Repository,
    hub: Option<Flotilla>,
    places: Vec<Place>,
    folder: PathBuf,
    hub_key: String,
    secured: SocketAddr,
    plain: SocketAddr,
    api: SocketAddr,
}

fn loopback() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], ports::free()))
}

impl World {
    /// A hub without agents, which knows clusters of these names, and a site with a cluster for each.
    #[track_caller]
    fn start(names: &[&'static str]) -> Self {
        let folder = scratch::folder("world");
        let path = |name: &str| folder.join(name).display().to_string();
        let hub_key = Flotilla::run(&["hub", "key", "--key", &path("hub.key")]).expect_ok();
        let repository = Repository::empty();
        repository.write("fleet.yaml", FLEET);
        repository.write("subscriptions/shop/web.yaml", subscription("shop", "web"));
        repository.write("feeds/web/greeting.yaml", config_map("default", "greeting", "hello"));
        for name in names {
            let join = [
                "agent",
                "join",
                "--cluster",
                name,
                "--key",
                &path(&format!("{name}.key")),
            ];
            repository.write(&format!("clusters/{name}.yaml"), Flotilla::run(&join).expect_ok());
        }
        repository.commit("Begin");
        repository.push();
        let places = thread::scope(|scope| {
            let started: Vec<_> = names
                .iter()
                .map(|&name| scope.spawn(move || Place::start(name)))
                .collect();
            started
                .into_iter()
                .map(|place| place.join().expect("the cluster starts"))
                .collect()
        });
        let mut world = Self {
            repository,
            hub: None,
            places,
            hub_key: hub_key.trim().to_owned(),
            secured: loopback(),
            plain: loopback(),
            api: loopback(),
            folder,
        };
        world.start_hub();
        world
    }

    fn start_hub(&mut self) {
        let (secured, plain, api) = (self.secured.to_string(), self.plain.to_string(), self.api.to_string());
        let (repository, key) = (self.repository.bare().display().to_string(), self.path("hub.key"));
        self.hub = Some(Flotilla::hub(&[
            "--repository",
            &repository,
            "--key",
            &key,
            "--listen",
            &secured,
            "--listen-plain",
            &plain,
            "--api",
            &api,
        ]));
    }

    fn path(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    fn hub(&self) -> &Flotilla {
        self.hub.as_ref().expect("the journey started the hub")
    }

    /// Starts the agent of a place, which dials `hub`.
    fn start_agent(&mut self, at: usize, hub: &str, more: &[&str], environment: &[(&'static str, &str)]) {
        let name = self.places[at].name;
        let kubeconfig = self.places[at].cluster.kubeconfig().display().to_string();
        let (key, journal) = (self.path(&format!("{name}.key")), self.path(&format!("{name}.journal")));
        let own = [
            "--cluster",
            name,
            "--hub",
            hub,
            "--hub-key",
            &self.hub_key,
            "--key",
            &key,
            "--kubeconfig",
            &kubeconfig,
        ];
        let place = &mut self.places[at];
        place.arguments = own.iter().chain(more).map(|&argument| argument.to_owned()).collect();
        place.environment = environment
            .iter()
            .map(|&(name, value)| (name, value.to_owned()))
            .collect();
        let arguments: Vec<_> = place
            .arguments
            .iter()
            .map(String::as_str)
            .chain(["--journal", &journal])
            .collect();
        place.agent = Some(Flotilla::agent_at(&place.site, environment, &arguments));
    }

    /// Pushes another text, and waits until each of the places has it.
    #[track_caller]
    fn greet(&self, text: &str) {
        let greeting = config_map("default", "greeting", text);
        self.repository
            .push_files("Greet", &[("feeds/web/greeting.yaml", &greeting)]);
        self.places.iter().for_each(|place| place.until_greeted(text));
    }

    fn ask(&self, arguments: &[&str]) -> Output {
        let server = format!("http://{}", self.api);
        Flotilla::run(&[arguments, &["--server", &server]].concat())
    }
}

impl Place {
    #[track_caller]
    fn start(name: &'static str) -> Self {
        let site = Arc::new(Site::new(name));
        Self {
            name,
            cluster: ControlPlane::start(name, Options::at(&site)),
            agent: None,
            arguments: Vec::new(),
            environment: Vec::new(),
            site,
        }
    }

    #[track_caller]
    fn until_greeted(&self, text: &str) {
        eventually(LIMIT, &format!("{} has the greeting {text}", self.name), || {
            let found = self.cluster.get("default", "configmap/greeting");
            match found.map(|found| found["data"]["text"].clone()) {
                Ok(found) if found == text => Ok(()),
                found => Err(format!("{found:?}\n{}", self.log())),
            }
        });
    }

    fn log(&self) -> String {
        self.agent.as_ref().map(|agent| agent.log()).unwrap_or_default()
    }

    /// Looks at it as `flotilla doctor` does, in its site and with its agent's flags and more of them.
    fn doctor(&self, more: &[&str]) -> Output {
        let arguments: Vec<_> = ["doctor"]
            .into_iter()
            .chain(self.arguments.iter().map(String::as_str))
            .collect();
        let environment: Vec<_> = self
            .environment
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        Flotilla::run_at(&self.site, &environment, &[&arguments, more].concat())
    }
}

fn at(address: IpAddr) -> SocketAddr {
    SocketAddr::new(address, ports::free())
}

#[test]
fn clusters_behind_a_proxy_a_server_that_ends_tls_and_ipv6_are_kept_and_told_apart() {
    let mut world = World::start(&["amsterdam", "bogota", "colombo"]);
    let sites: Vec<_> = world.places.iter().map(|place| Arc::clone(&place.site)).collect();
    // nginx ends TLS before the first.
    let nginx = Nginx::start(at(sites[0].outside()), HUB_NAME, world.plain);
    sites[0].set_hosts(&[(sites[0].outside(), HUB_NAME)]);
    let authority = nginx.authority().display().to_string();
    let nginx_url = format!("wss://{HUB_NAME}:{}", nginx.address().port());
    world.start_agent(0, &nginx_url, &["--hub-tls", "webpki", "--hub-ca", &authority], &[]);
    // The second reaches a proxy alone, which knows the hub's name; the cluster does not.
    let proxy = ConnectProxy::start(at(sites[1].outside()), "ann", "s3cret", world.secured);
    let proxy_url = format!("http://ann:s3cret@{}", proxy.address());
    world.start_agent(1, "wss://hub.elsewhere:7443", &[], &[("HTTPS_PROXY", &proxy_url)]);
    // The third has IPv6.
    let relay = Relay::start(at(sites[2].outside_six()), world.secured);
    world.start_agent(2, &relay.address().to_string(), &[], &[]);
    world.greet("good morning");
    assert!(
        proxy.asked().contains(&"hub.elsewhere:7443 200".to_owned()),
        "{:?}",
        proxy.asked()
    );

    // The whole way is tried from the hub, and from each agent without taking its tunnel.
    for place in &world.places {
        let ping = world.ask(&["tunnel", "ping", place.name]).expect_ok();
        assert!(ping.contains("round trip min/avg/max"), "{ping}");
        let said = place.doctor(&[]).expect_ok();
        assert!(
            said.contains("ok     registration") && said.contains("ok     rights"),
            "{said}"
        );
        assert!(!said.contains("FAILED") && !said.contains("s3cret"), "{said}");
        assert!(!place.log().contains("s3cret"), "{}", place.log());
    }
    assert!(
        !world.hub().log().contains("a newer session took its place"),
        "{}",
        world.hub().log()
    );
    let described = world.ask(&["describe", "cluster", "bogota"]).expect_ok();
    assert!(
        described.contains("Connected:") && described.contains("Key:"),
        "{described}"
    );

    // What is wrong is named, and what to do.
    let wrong = format!("http://ann:wrong@{}", proxy.address());
    let denied = world.places[1].doctor(&["--proxy", &wrong]);
    assert_eq!(denied.code(), Some(1), "{denied:?}");
    assert!(
        denied.stdout.contains("FAILED proxy") && denied.stdout.contains("407"),
        "{denied:?}"
    );
    assert!(!denied.stdout.contains("wrong"), "{denied:?}");
    let elsewhere = world.places[2].doctor(&["--hub", "no.such.host.invalid:1"]);
    assert_eq!(elsewhere.code(), Some(1), "{elsewhere:?}");
    assert!(elsewhere.stdout.contains("FAILED name"), "{elsewhere:?}");

    // A hub that ends in order is followed by the next one.
    world.hub.as_mut().expect("it runs").terminate(LIMIT);
    world.start_hub();
    world.greet("good evening");
}

#[test]
fn a_link_that_falls_silent_is_noticed_at_both_ends_and_a_hub_that_moved_is_found() {
    let mut world = World::start(&["dakar"]);
    let site = Arc::clone(&world.places[0].site);
    let relay = Relay::start(at(site.outside()), world.secured);
    site.set_hosts(&[(site.outside(), HUB_NAME)]);
    let url = format!("wss://{HUB_NAME}:{}", relay.address().port());
    world.start_agent(0, &url, &[], &[]);
    world.greet("good morning");

    relay.set_black(true);
    eventually(DEAD_LIMIT, "the agent takes the silent tunnel for dead", || {
        let log = world.places[0].log();
        log.contains("Lost connection to hub").then_some(()).ok_or(log)
    });
    eventually(DEAD_LIMIT, "the hub does so too, and says why", || {
        let described = world.ask(&["describe", "cluster", "dakar"]).ok()?;
        described.contains("Away since:").then_some(()).ok_or(described)
    });
    assert_eq!(world.ask(&["tunnel", "ping", "dakar"]).code(), Some(1));
    relay.set_black(false);
    world.greet("good day");

    // The hub moves to another address, and its name follows.
    let moved = Relay::start(SocketAddr::new(site.elsewhere(), relay.address().port()), world.secured);
    site.set_hosts(&[(site.elsewhere(), HUB_NAME)]);
    relay.set_black(true);
    eventually(DEAD_LIMIT, "the agent dials where the name leads now", || {
        match moved.connections() {
            0 => Err(world.places[0].log()),
            _ => Ok(()),
        }
    });
    world.greet("good evening");
}
