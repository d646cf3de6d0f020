//! Sites of a fleet: clusters that nobody can dial, each in a network of its own with its agent, and the ways that lead out.

use std::ffi::OsStr;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

use flotilla_tests::network::{ConnectProxy, Nginx, Relay};
use flotilla_tests::{ControlPlane, Flotilla, Options, Output, Repository, Site, eventually, ports, scratch};

use super::people::{ACCESS, Callers};
use super::support::{FLEET, LIMIT, config_map, namespace, subscription};

/// How the hub is called in the sites.
pub(super) const HUB_NAME: &str = "hub.test";

/// A cluster and its agent in a site.
pub(super) struct Place {
    pub(super) name: &'static str,
    pub(super) cluster: ControlPlane,
    /// By which its agent finds the API server.
    pub(super) kubeconfig: PathBuf,
    agent: Option<Flotilla>,
    /// What the agent is started with.
    arguments: Vec<String>,
    environment: Vec<(&'static str, String)>,
    pub(super) site: Arc<Site>,
}

/// A hub that answers on loopback alone, and its sites.
pub(super) struct World {
    pub(super) repository: Repository,
    hub: Option<Flotilla>,
    pub(super) places: Vec<Place>,
    pub(super) callers: Callers,
    pub(super) folder: PathBuf,
    hub_key: String,
    pub(super) secured: SocketAddr,
    plain: SocketAddr,
    api: SocketAddr,
}

/// What stands between three places and their hub.
pub(super) struct Ways {
    _nginx: Nginx,
    pub(super) proxy: ConnectProxy,
    _relay: Relay,
}

fn loopback() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], ports::free()))
}

impl World {
    /// A hub without agents, which knows clusters of these names, and a site with a cluster for each.
    #[track_caller]
    pub(super) fn start(names: &[&'static str]) -> Self {
        Self::start_with(names, &[], &[])
    }

    /// As [`Self::start`], with more flags and environment (name, value) of the hub.
    #[track_caller]
    pub(super) fn start_with(names: &[&'static str], hub: &[&str], environment: &[(&str, &OsStr)]) -> Self {
        let folder = scratch::folder("world");
        let path = |name: &str| folder.join(name).display().to_string();
        let hub_key = Flotilla::run(&["hub", "key", "--key", &path("hub.key")]).expect_ok();
        let repository = Repository::empty();
        repository.write("fleet.yaml", FLEET);
        repository.write("subscriptions/shop/web.yaml", subscription("shop", "web"));
        repository.write("feeds/web/namespace.yaml", namespace("shop"));
        repository.write("feeds/web/greeting.yaml", config_map("shop", "greeting", "hello"));
        repository.write("access/people.yaml", ACCESS);
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
            callers: Callers::new(&folder),
            folder,
        };
        world.start_hub_with(hub, environment);
        world
    }

    pub(super) fn start_hub(&mut self) {
        self.start_hub_with(&[], &[]);
    }

    fn start_hub_with(&mut self, more: &[&str], environment: &[(&str, &OsStr)]) {
        let addresses = [self.secured, self.plain, self.api].map(|address| address.to_string());
        let [secured, plain, api] = addresses.each_ref().map(String::as_str);
        let (repository, key) = (self.repository.bare().display().to_string(), self.path("hub.key"));
        let own = ["--repository", &repository, "--key", &key, "--listen", secured];
        let own = [&own[..], &["--listen-plain", plain, "--api", api]].concat();
        let door = self.callers.hub_flags();
        let door: Vec<_> = door.iter().map(String::as_str).collect();
        self.hub = Some(Flotilla::hub_in(environment, &[&own, &door[..], more].concat()));
    }

    pub(super) fn path(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    pub(super) fn hub(&self) -> &Flotilla {
        self.hub.as_ref().expect("the journey started the hub")
    }

    pub(super) fn hub_mut(&mut self) -> &mut Flotilla {
        self.hub.as_mut().expect("the journey started the hub")
    }

    /// Starts the agent of a place, which dials `hub`. One that runs is ended first.
    pub(super) fn start_agent(&mut self, at: usize, hub: &str, more: &[&str], environment: &[(&'static str, &str)]) {
        let name = self.places[at].name;
        let kubeconfig = self.places[at].kubeconfig.display().to_string();
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
        place.agent = None;
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

    /// Starts the agents of three places: nginx ends TLS before the first, a proxy that knows the hub's name is all that the
    /// second reaches, and the third has IPv6.
    #[track_caller]
    pub(super) fn lead_out(&mut self, more: &[&str]) -> Ways {
        let nginx = self.nginx_at(0);
        self.start_behind(&nginx, 0, more);
        let proxy = self.lead_out_by_a_proxy(1, more);
        let relay = Relay::start(at(self.places[2].site.outside_six()), self.secured);
        self.start_agent(2, &relay.address().to_string(), more, &[]);
        Ways {
            _nginx: nginx,
            proxy,
            _relay: relay,
        }
    }

    /// nginx for a place, that ends TLS before the hub.
    #[track_caller]
    pub(super) fn nginx_at(&self, at_place: usize) -> Nginx {
        Nginx::start(at(self.places[at_place].site.outside()), HUB_NAME, self.plain)
    }

    /// Starts the agent of a place, which reaches the hub through nginx.
    pub(super) fn start_behind(&mut self, nginx: &Nginx, at: usize, more: &[&str]) {
        let site = &self.places[at].site;
        site.set_hosts(&[(site.outside(), HUB_NAME)]);
        let authority = nginx.authority().display().to_string();
        let url = format!("wss://{HUB_NAME}:{}", nginx.address().port());
        let webpki = ["--hub-tls", "webpki", "--hub-ca", &authority];
        self.start_agent(at, &url, &[&webpki, more].concat(), &[]);
    }

    /// Starts the agent of a place, which reaches the hub through a proxy alone.
    #[track_caller]
    pub(super) fn lead_out_by_a_proxy(&mut self, at_place: usize, more: &[&str]) -> ConnectProxy {
        let outside = self.places[at_place].site.outside();
        let proxy = ConnectProxy::start(at(outside), "ann", "s3cret", self.secured);
        let url = format!("http://ann:s3cret@{}", proxy.address());
        self.start_agent(at_place, "wss://hub.elsewhere:7443", more, &[("HTTPS_PROXY", &url)]);
        proxy
    }

    /// Pushes another text, and waits until each of the places has it.
    #[track_caller]
    pub(super) fn greet(&self, text: &str) {
        let greeting = config_map("shop", "greeting", text);
        self.repository
            .push_files("Greet", &[("feeds/web/greeting.yaml", &greeting)]);
        self.places.iter().for_each(|place| place.until_greeted(text));
    }

    pub(super) fn ask(&self, arguments: &[&str]) -> Output {
        let server = format!("http://{}", self.api);
        Flotilla::run(&[arguments, &["--server", &server]].concat())
    }
}

impl Place {
    #[track_caller]
    fn start(name: &'static str) -> Self {
        let site = Arc::new(Site::new(name));
        let cluster = ControlPlane::start(name, Options::at(&site));
        Self {
            name,
            kubeconfig: cluster.kubeconfig(),
            cluster,
            agent: None,
            arguments: Vec::new(),
            environment: Vec::new(),
            site,
        }
    }

    #[track_caller]
    pub(super) fn until_greeted(&self, text: &str) {
        eventually(LIMIT, &format!("{} has the greeting {text}", self.name), || {
            let found = self.cluster.get("shop", "configmap/greeting");
            match found.map(|found| found["data"]["text"].clone()) {
                Ok(found) if found == text => Ok(()),
                found => Err(format!("{found:?}\n{}", self.log())),
            }
        });
    }

    pub(super) fn log(&self) -> String {
        self.agent.as_ref().map(|agent| agent.log()).unwrap_or_default()
    }

    /// Looks at it as `flotilla doctor` does, in its site and with its agent's flags and more of them.
    pub(super) fn doctor(&self, more: &[&str]) -> Output {
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

/// A free port of an address.
pub(super) fn at(address: IpAddr) -> SocketAddr {
    SocketAddr::new(address, ports::free())
}
