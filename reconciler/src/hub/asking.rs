//! What is asked beyond the hub's own state: one question to a cluster, and its answer: over its tunnel, or by the
//! hub's own client where it has no agent.
//!
//! Whoever answers only reads. A cluster of any sync mode answers: it is its agent that looks, with its own credential.

use std::fmt;
use std::sync::Arc;

use futures_util::future::join_all;
use kube::Client;
use render::ClusterName;
use render::chart::Previews;
use render::schedule::Reports;
use serde::Serialize;
use tokio::io::AsyncWriteExt as _;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tunnel::{Open, OpenCode, OpenError, Opener, TargetClass};

use super::clock::seconds;
use super::connections::Connections;
use super::dispatch::Dispatch;
use super::engine::State;
use super::peers::{ByHop, Others};
use super::pinging::{Try, ping};
use super::predict::Predictor;
use super::predictors::Predictors;
use crate::apply;
use crate::fault::line;
use crate::limits::{
    DEPENDANTS_ANSWER_TIMEOUT, DEPENDANTS_QUESTIONS_MAX, PEER_ANSWER_TIMEOUT, SESSION_STEP_TIMEOUT,
    TUNNEL_WORD_BYTES_MAX,
};
use crate::wire::{
    Dependants, DependantsQuestion, FramingError, TUNNEL_TARGET, TunnelSeen, TunnelWord, read_message,
    read_message_within, write_message,
};

/// How a cluster is asked.
#[derive(Clone)]
pub(super) enum Door {
    /// Through its tunnel.
    Agent(Opener),
    /// Through its tunnel to another hub.
    Peer(ByHop),
    /// It has no agent: the hub asks its API server.
    ApiServer(Client),
}

impl Door {
    /// The tunnel that a stream goes through, and its OPEN there; refused where the cluster has no agent.
    pub(super) fn tunnel(&self, open: Open) -> Result<(Opener, Open), OpenError> {
        match self {
            Self::Agent(opener) => Ok((opener.clone(), open)),
            Self::Peer(hop) => hop.way(open),
            Self::ApiServer(_) => Err(OpenError {
                code: OpenCode::NotAllowed,
                text: "the cluster has no agent".to_owned(),
            }),
        }
    }
}

/// Asks clusters.
#[derive(Clone)]
pub(super) struct Asking {
    dispatch: Arc<Dispatch>,
    questions: Arc<Semaphore>,
    predictor: Arc<Predictor>,
    predictors: Arc<Predictors>,
    connections: Arc<Connections>,
    others: Others,
}

/// What another hub says of a cluster's tunnel.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Elsewhere {
    /// Where that hub is.
    peer: String,
    #[serde(flatten)]
    said: Option<TunnelWord>,
    /// Why it says nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotAnswered {
    #[error("cluster {0} is not connected")]
    Away(ClusterName),
    #[error("its agent does not answer this question: {0}")]
    NotAllowed(String),
    #[error("its agent did not take the question")]
    NotTaken(#[source] OpenError),
    #[error("the tunnel failed")]
    Stream(#[source] FramingError),
    #[error("its agent ended without an answer")]
    Nothing,
    #[error("it gave no answer within {} s", DEPENDANTS_ANSWER_TIMEOUT.as_secs())]
    TooLong,
}

impl Asking {
    pub(super) fn new(
        dispatch: Arc<Dispatch>,
        predictor: Arc<Predictor>,
        predictors: Arc<Predictors>,
        (connections, others): (Arc<Connections>, Others),
    ) -> Self {
        Self {
            dispatch,
            connections,
            others,
            predictor,
            predictors,
            questions: Arc::new(Semaphore::new(DEPENDANTS_QUESTIONS_MAX)),
        }
    }

    /// What is predicted of charts, for clusters that said what they are.
    pub(super) fn previews(&self, state: &State) -> Previews {
        self.predictor.previews(state.capabilities())
    }

    /// What room clusters have, and what their predictors said of it.
    pub(super) fn rooms(&self, state: &State) -> Reports {
        Reports {
            predicted: self.predictors.answers(seconds()),
            ..state.rooms()
        }
    }

    /// How many agents keep all of the hub's keys.
    pub(super) fn with_keys(&self) -> usize {
        self.connections.with_keys()
    }

    /// What is known of a cluster's tunnel.
    pub(super) fn tunnel(&self, cluster: &ClusterName) -> TunnelSeen {
        self.connections.view(cluster)
    }

    /// What other hubs know of it, each asked now.
    pub(super) async fn elsewhere(&self, cluster: &ClusterName) -> Vec<Elsewhere> {
        let asked = self.others.ways(cluster).into_iter().map(|(peer, way)| async move {
            let door = Door::Peer(way);
            let answer = timeout(PEER_ANSWER_TIMEOUT, tunnel_word(&door));
            let late = || Err(format!("it gave no answer within {} s", PEER_ANSWER_TIMEOUT.as_secs()));
            let (said, error) = match answer.await.unwrap_or_else(|_| late()) {
                Ok(said) => (Some(said), None),
                Err(error) => (None, Some(error)),
            };
            Elsewhere { peer, said, error }
        });
        join_all(asked).await
    }

    /// Sends so many pings to a cluster's agent, one after another, until one goes wrong. None where there is no tunnel.
    pub(super) async fn ping(&self, cluster: &ClusterName, times: usize) -> Vec<Try> {
        let Some(door) = self.dispatch.door(cluster) else {
            return Vec::new();
        };
        let mut tries = Vec::new();
        while tries.len() < times && tries.last().is_none_or(|last: &Try| last.error.is_none()) {
            tries.push(ping(&door).await);
        }
        tries
    }

    /// What goes or stays behind with objects of a cluster.
    pub(super) async fn dependants(
        &self,
        cluster: &ClusterName,
        question: DependantsQuestion,
    ) -> Result<Dependants, NotAnswered> {
        let door = self.dispatch.door(cluster);
        let door = door.ok_or_else(|| NotAnswered::Away(cluster.clone()))?;
        let answer = async {
            // The semaphore is never closed.
            let _permit = self.questions.acquire().await;
            match door {
                door @ (Door::Agent(_) | Door::Peer(_)) => ask(&door, question).await,
                Door::ApiServer(client) => Ok(apply::dependants(client, question).await),
            }
        };
        timeout(DEPENDANTS_ANSWER_TIMEOUT, answer)
            .await
            .unwrap_or(Err(NotAnswered::TooLong))
    }
}

async fn tunnel_word(door: &Door) -> Result<TunnelWord, String> {
    let open = Open::new(TargetClass::Look, TUNNEL_TARGET, SESSION_STEP_TIMEOUT);
    let (opener, open) = door.tunnel(open).map_err(|error| line(&error))?;
    let stream = opener.request(open).await.map_err(|error| line(&error))?;
    let word = read_message_within(&mut Box::pin(stream), TUNNEL_WORD_BYTES_MAX).await;
    let word = word.map_err(|error| line(&error))?;
    word.ok_or_else(|| "that hub is older and does not say it".to_owned())
}

async fn ask(door: &Door, question: DependantsQuestion) -> Result<Dependants, NotAnswered> {
    let open = Open::new(TargetClass::Look, "dependants", SESSION_STEP_TIMEOUT);
    let opened = match door.tunnel(open) {
        Ok((opener, open)) => opener.request(open).await,
        Err(error) => Err(error),
    };
    let mut stream = opened.map_err(|error| match error.code {
        OpenCode::NotAllowed => NotAnswered::NotAllowed(error.text),
        _ => NotAnswered::NotTaken(error),
    })?;
    write_message(&mut stream, &question)
        .await
        .map_err(NotAnswered::Stream)?;
    let ended = stream.shutdown().await;
    ended.map_err(|error| NotAnswered::Stream(FramingError::Stream(error)))?;
    let answer = read_message(&mut stream).await.map_err(NotAnswered::Stream)?;
    answer.ok_or(NotAnswered::Nothing)
}

/// Without what is behind it, which may hold a credential.
impl fmt::Debug for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Agent(_) => "Agent",
            Self::Peer(_) => "Peer",
            Self::ApiServer(_) => "ApiServer",
        })
    }
}
