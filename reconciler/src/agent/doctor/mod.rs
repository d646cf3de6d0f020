//! What is wrong between an agent, its hub and its API server: one step after another, each with its own sentence.
//!
//! In: what an agent runs with. Out: [`Step`]s. The hub is asked with a handshake that takes no tunnel's place, the API
//! server with reviews of our own rights. Nothing is changed by it.

mod api_server;
mod clock;
mod feeds;
mod hub;
mod journal;

use std::sync::Arc;

use render::ClusterName;
use tunnel::{PublicKey, SecretKey};

use super::{JournalPlace, Policy, Way};

/// What an agent would run with.
pub struct Patient {
    /// Which cluster it is.
    pub cluster: ClusterName,
    /// Where hubs listen.
    pub hubs: Vec<String>,
    /// What is between here and them.
    pub way: Way,
    /// The hub's keys.
    pub hub_keys: Vec<PublicKey>,
    /// The cluster's own key.
    pub key: Arc<SecretKey>,
    /// Where the agent keeps what it took.
    pub journal: JournalPlace,
    /// What it lends to hubs.
    pub policy: Policy,
    /// Client of the cluster's API server, or why there is none.
    pub client: Result<kube::Client, String>,
}

/// One step of the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Which: one word.
    pub name: &'static str,
    /// How it went.
    pub verdict: Verdict,
}

/// How a step went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Well, and what was seen.
    Good(String),
    /// It works, and something is not as it should be.
    Odd {
        /// What.
        what: String,
        /// What to do.
        hint: String,
    },
    /// Not.
    Bad {
        /// What went wrong.
        what: String,
        /// What to do.
        hint: String,
    },
    /// An earlier step went wrong.
    NotTried,
}

impl Step {
    fn good(name: &'static str, what: impl Into<String>) -> Self {
        let verdict = Verdict::Good(what.into());
        Self { name, verdict }
    }

    fn bad(name: &'static str, what: impl Into<String>, hint: impl Into<String>) -> Self {
        let (what, hint) = (what.into(), hint.into());
        let verdict = Verdict::Bad { what, hint };
        Self { name, verdict }
    }
}

/// Looks at everything. Steps of several hubs follow one another.
pub async fn examine(patient: &Patient) -> Vec<(String, Vec<Step>)> {
    let (hub_keys, kept, step) = journal::examine(patient).await;
    let mut rooms = vec![("journal".to_owned(), vec![step])];
    for url in &patient.hubs {
        rooms.push((url.clone(), hub::examine(patient, &hub_keys, url).await));
    }
    let steps = api_server::examine(&patient.client, &patient.policy, kept.as_ref()).await;
    rooms.push(("API server".to_owned(), steps));
    rooms
}
