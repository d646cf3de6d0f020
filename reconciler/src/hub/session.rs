//! One cluster's tunnel at the hub: envelopes and contents out, answers and reports in.

use std::net::IpAddr;
use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use render::model::SyncMode;
use render::{ClusterName, Digest};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, watch};
use tokio::time::{Duration, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument as _;
use tunnel::{
    GoAway, GoAwayReason, Incoming, IncomingOpen, OpenCode, OpenError, Opener, Responder, Session, TargetClass, Tunnel,
};

use super::arrivals::Arrivals;
use super::asking::Door;
use super::blocking::blocking;
use super::connections::Connections;
use super::dispatch::{Dial, Dispatch};
use super::engine::Event;
use super::keeper::{Keeper, chain};
use super::keys::{self, HubKeys};
use super::mode_order::ModeOrder;
use super::push::{self, Pushing};
use super::registry::Registry;
use super::turned_away::{Who, Why};
use crate::key_wish::{self, Within};
use crate::limits::{
    DRAIN_LOOK, DRAIN_TIMEOUT, PUSH_END_TIMEOUT, REPLACED_DRAIN_TIMEOUT, REPLIES_MAX, SESSION_CLOSE_TIMEOUT,
    SESSION_STEP_TIMEOUT,
};
use crate::wire::{
    Deliver, DeliverReply, Envelope, FramingError, Held, Report, read_message, takes_mode, write_message,
};

/// What sessions need from the hub.
#[derive(Clone)]
pub(super) struct Sessions {
    /// The engine's ear.
    pub(super) events: mpsc::Sender<Event>,
    /// What each cluster should be told.
    pub(super) dispatch: Arc<Dispatch>,
    /// Contents.
    pub(super) keeper: Arc<Keeper>,
    /// The hub's own keys, one of which agents pin.
    pub(super) keys: HubKeys,
    /// Who may be connected.
    pub(super) registry: Arc<Registry>,
    /// The hub's appliers behind tunnels.
    pub(super) pushing: Arc<Pushing>,
    /// How agents are let in.
    pub(super) arrivals: Arc<Arrivals>,
    /// What is shown of tunnels.
    pub(super) connections: Arc<Connections>,
    /// Which of two commits' modes is the newer one.
    pub(super) modes: Arc<ModeOrder>,
}

/// What the later of two agents with one identity is told; docs/register-a-cluster.md quotes it.
const DUPLICATE: &str = "duplicate agent: another one with this cluster's key is connected";

#[derive(Debug, thiserror::Error)]
enum SessionError {
    #[error("the agent took no deliver stream")]
    Open(#[source] OpenError),
    #[error("a stream failed")]
    Stream(#[source] FramingError),
}

impl Sessions {
    /// Serves one tunnel until it ends, a newer one takes its place, or its cluster is registered no more.
    pub(super) async fn serve(
        &self,
        cluster: ClusterName,
        (tunnel, from): (Tunnel, Option<IpAddr>),
        shutdown: &CancellationToken,
    ) {
        let Tunnel {
            peer,
            opener,
            mut incoming,
            session,
            hub_time: _,
        } = tunnel;
        let (epoch, session) = (peer.epoch, Arc::new(session));
        let dial = Dial {
            epoch,
            instance: &peer.instance,
        };
        let Ok((newest, ended)) = self.dispatch.begin(&cluster, dial, shutdown) else {
            self.registry.duplicate(&cluster, peer.key);
            if let Some(more) = self
                .arrivals
                .turned_away
                .says(Why::Duplicate, Who::Cluster(cluster.clone()))
            {
                tracing::warn!(cluster = %cluster, epoch, more, "Refused a duplicate agent: another one with this key is connected.");
            }
            session.close(GoAway::new(GoAwayReason::Replaced, DUPLICATE));
            let _gone = timeout(SESSION_CLOSE_TIMEOUT, session.closed()).await;
            return;
        };
        self.registry.let_in(&cluster, &peer.key);
        self.dispatch.open(&cluster, epoch, Door::Agent(opener.clone()));
        self.connections.begin(&cluster, peer.clone(), Arc::downgrade(&session));
        tracing::info!(cluster = %cluster, epoch, version = peer.version, "Agent connected.");
        let _sent = self
            .events
            .send(Event::Connected {
                cluster: cluster.clone(),
                epoch,
            })
            .await;
        let (said, heard) = watch::channel(None);
        let (stop, (applying, applies)) = (CancellationToken::new(), watch::channel(false));
        let pushes = push::run(
            self.clone(),
            (cluster.clone(), opener.clone()),
            newest.clone(),
            heard.clone(),
            (applying, stop.clone()),
        );
        let span = tracing::info_span!("push", cluster = %cluster);
        let mut pushes = AbortOnDropHandle::new(tokio::spawn(pushes.instrument(span)));
        let within = Within {
            cluster: &cluster,
            used: peer.key,
            binding: peer.binding,
        };
        let talk = self.talk(
            (within, epoch, from),
            (newest, applies),
            (said, heard),
            &opener,
            &mut incoming,
        );
        let (away, reason) = tokio::select! {
            biased;
            () = self.registry.revoked(&cluster, &peer.key) => {
                let why = match self.registry.is_denied(&cluster, &peer.key) {
                    true => "the hub's deny list has this cluster or its key",
                    false => "the cluster's file is gone or names this key no more",
                };
                (GoAwayReason::Revoked, why.to_owned())
            }
            () = ended.cancelled() => why_ended(shutdown),
            reason = session.closed() => (GoAwayReason::Shutdown, reason.to_string()),
            reason = talk => (GoAwayReason::Shutdown, reason),
        };
        let revoked = || self.registry.revoked(&cluster, &peer.key);
        stop.cancel();
        if away == GoAwayReason::Revoked {
            // Whoever is shut out is asked for nothing more, and decides nothing: not even how long that takes.
            pushes.abort();
            // Where the agent has another key, it comes back with it at once; else nobody waits for it.
            self.dispatch.end(&cluster, epoch);
        } else {
            // Whoever applied through this tunnel gives the Lease back while there is one.
            let given_back = timeout(PUSH_END_TIMEOUT, &mut pushes);
            tokio::select! {
                biased;
                () = revoked() => {}
                _ = given_back => {}
            }
        }
        // What a person at the agent can do something about.
        let text = match away {
            GoAwayReason::Revoked | GoAwayReason::Replaced => reason.as_str(),
            _ => "session ended",
        };
        let away = self.farewell(GoAway::new(away, text), ended.is_cancelled());
        match away.reason {
            GoAwayReason::Revoked => session.close(away.clone()),
            _ => session.go_away(away.clone()),
        }
        self.dispatch.end(&cluster, epoch);
        self.connections.end(&cluster, epoch, &reason);
        tracing::info!(cluster = %cluster, epoch, reason, "Agent disconnected.");
        let disconnected = Event::Disconnected {
            cluster: cluster.clone(),
            epoch,
        };
        let _sent = self.events.send(disconnected).await;
        // Who is replaced, or loses its hub, may end what it is at; who is revoked may not.
        if ended.is_cancelled() && away.reason != GoAwayReason::Revoked {
            let limit = match away.reason {
                GoAwayReason::Replaced => REPLACED_DRAIN_TIMEOUT,
                _ => DRAIN_TIMEOUT,
            };
            tokio::select! {
                biased;
                // A key that counts no more ends what it was at, also beside its successor.
                () = revoked() => {}
                () = leave(&session, incoming, limit) => {}
            }
        }
        session.close(away);
        // The word for it goes out before the connection: without it an agent sees a broken one.
        let _gone = timeout(SESSION_CLOSE_TIMEOUT, session.closed()).await;
    }

    /// The last word to an agent. A hub that ends has its agents come back one after another.
    fn farewell(&self, farewell: GoAway, was_ended: bool) -> GoAway {
        if was_ended && farewell.reason == GoAwayReason::Shutdown {
            let spread = self.arrivals.farewell(|| self.connections.count());
            return farewell.with_retry(Duration::ZERO, spread);
        }
        farewell
    }

    /// Tells and listens until one of the two is over, and says why.
    async fn talk(
        &self,
        (within, epoch, from): (Within<'_>, u64, Option<IpAddr>),
        (newest, applies): (watch::Receiver<Option<Arc<Envelope>>>, watch::Receiver<bool>),
        (said, heard): (watch::Sender<Option<Held>>, watch::Receiver<Option<Held>>),
        opener: &Opener,
        incoming: &mut Incoming,
    ) -> String {
        let (told, of) = (newest.clone(), (within.cluster, epoch));
        let deliver = async {
            let stream = opener.open(TargetClass::Deliver, "", SESSION_STEP_TIMEOUT).await;
            let stream = stream.map_err(SessionError::Open)?;
            self.deliver(newest, applies, heard, stream)
                .await
                .map_err(SessionError::Stream)
        };
        let listen = async {
            let reports = |open| Box::pin(self.opened(of, open, &told, &said));
            let (mut reporting, mut telling) = (FuturesUnordered::new(), FuturesUnordered::new());
            let mut wishing = FuturesUnordered::new();
            loop {
                let open = tokio::select! {
                    biased;
                    Some(()) = reporting.next() => continue,
                    Some(()) = telling.next() => continue,
                    Some(()) = wishing.next() => continue,
                    open = incoming.next() => open,
                };
                let Some(IncomingOpen { open, responder }) = open else {
                    return;
                };
                // One of each at a time.
                match open.class {
                    TargetClass::Report if reporting.is_empty() => reporting.push(reports(responder)),
                    TargetClass::Keys if open.target == key_wish::TARGET && wishing.is_empty() => {
                        wishing.push(Box::pin(self.wishes((within, from), responder)));
                    }
                    TargetClass::Keys if open.target.is_empty() && telling.is_empty() => {
                        telling.push(Box::pin(self.keys(of, responder)))
                    }
                    TargetClass::Report | TargetClass::Keys => {
                        responder.refuse(OpenCode::Limit, "there is such a stream already");
                    }
                    _ => responder.refuse(OpenCode::NotAllowed, "a hub takes reports, and says its keys"),
                }
            }
        };
        tokio::select! {
            biased;
            ended = Box::pin(deliver) => match ended {
                Ok(()) => "the agent closed its deliver stream".to_owned(),
                Err(error) => chain(&error),
            },
            () = Box::pin(listen) => "the tunnel closed".to_owned(),
        }
    }

    /// Tells the newest envelope whenever it says something else than the cluster holds, and sends what
    /// is asked for.
    async fn deliver<S>(
        &self,
        mut newest: watch::Receiver<Option<Arc<Envelope>>>,
        mut applies: watch::Receiver<bool>,
        mut heard: watch::Receiver<Option<Held>>,
        stream: S,
    ) -> Result<(), FramingError>
    where
        S: AsyncRead + AsyncWrite + Send + 'static,
    {
        let (reader, writer) = tokio::io::split(stream);
        let mut writer = Box::pin(writer);
        let (replies, mut answers) = mpsc::channel(REPLIES_MAX);
        // Reading a message is not cancel-safe, so it has its own task, which ends with this session's
        // stream or queue.
        let _reading = AbortOnDropHandle::new(tokio::spawn(read_replies(Box::pin(reader), replies)));
        // A cluster that does not say in time what it holds is told all the same.
        let _heard = timeout(SESSION_STEP_TIMEOUT, heard.changed()).await;
        let mut told: Option<Arc<Envelope>> = None;
        let mut deepened = self.modes.deepened();
        newest.mark_changed();
        loop {
            tokio::select! {
                biased;
                Ok(()) = deepened.changed() => newest.mark_changed(),
                answer = answers.recv() => match answer {
                    Some(answer) => self.answer(answer?, told.as_deref(), &mut writer).await?,
                    None => return Ok(()),
                },
                changed = newest.changed() => {
                    if changed.is_err() {
                        return Ok(());
                    }
                    let Some(envelope) = newest.borrow_and_update().clone() else { continue };
                    if envelope.mode != SyncMode::Push {
                        // With the word for it the agent cuts off whoever applied here, who gives the Lease back before.
                        let _given_back = timeout(PUSH_END_TIMEOUT, applies.wait_for(|applies| !applies)).await;
                    }
                    let held = heard.borrow().clone();
                    if let Some(envelope) = news(&self.modes, envelope, (told.as_deref(), held.as_ref())).await {
                        write_message(&mut writer, &Deliver::Envelope { envelope: Envelope::clone(&envelope) }).await?;
                        tracing::debug!(cluster = %envelope.cluster, sequence = envelope.sequence, "Told envelope.");
                        told = Some(envelope);
                    }
                }
            }
        }
    }

    async fn answer<W>(&self, reply: DeliverReply, told: Option<&Envelope>, writer: &mut W) -> Result<(), FramingError>
    where
        W: AsyncWrite + Unpin,
    {
        match reply {
            DeliverReply::Taken { sequence } => tracing::debug!(sequence, "Envelope was taken."),
            DeliverReply::Refused { sequence, refusal } => {
                tracing::warn!(sequence, error = %refusal, "Envelope was refused.");
            }
            DeliverReply::Need(request) => {
                let Some(told) = told else { return Ok(()) };
                // Only what this cluster was told of: a digest is no capability.
                let named = |digest: &Digest| told.units.values().any(|unit| unit.digest == *digest);
                for digest in request.digests.into_iter().filter(named) {
                    let message = self.content(told, digest).await;
                    write_message(writer, &message).await?;
                }
            }
        }
        Ok(())
    }

    async fn content(&self, told: &Envelope, digest: Digest) -> Deliver {
        let (keeper, released) = (Arc::clone(&self.keeper), told.released.clone());
        let read = blocking(move || keeper.content(&released, &digest));
        match read.await {
            Ok(description) => Deliver::content(&description),
            Err(error) => Deliver::Missing {
                digest,
                message: chain(&error),
            },
        }
    }

    async fn opened(
        &self,
        of: (&ClusterName, u64),
        responder: Responder,
        told: &watch::Receiver<Option<Arc<Envelope>>>,
        said: &watch::Sender<Option<Held>>,
    ) {
        let Ok(stream) = responder.accept() else { return };
        if let Err(error) = self.reports(of, stream, told, said).await {
            tracing::debug!(cluster = %of.0, error = &error as &dyn std::error::Error, "Lost report stream.");
        }
    }

    /// Says the hub's keys on a stream that an agent opened.
    async fn keys(&self, (cluster, epoch): (&ClusterName, u64), responder: Responder) {
        let Ok(stream) = responder.accept() else { return };
        let kept = || self.connections.has_keys(cluster, epoch);
        if let Err(error) = keys::tell(&self.keys, &self.registry, stream, kept).await {
            let error = &error as &dyn std::error::Error;
            tracing::debug!(cluster = %cluster, error, "Lost keys stream.");
        }
    }

    /// Hears which key is to take the place of an agent's own.
    async fn wishes(&self, (within, from): (Within<'_>, Option<IpAddr>), responder: Responder) {
        let Ok(stream) = responder.accept() else { return };
        if let Err(error) = keys::hear_wish((within, from), &self.registry, &self.events, stream).await {
            let error = &error as &dyn std::error::Error;
            tracing::debug!(cluster = %within.cluster, error, "Lost an agent's wish for another key.");
        }
    }

    async fn reports<S>(
        &self,
        (cluster, epoch): (&ClusterName, u64),
        stream: S,
        told: &watch::Receiver<Option<Arc<Envelope>>>,
        said: &watch::Sender<Option<Held>>,
    ) -> Result<(), FramingError>
    where
        S: AsyncRead,
    {
        let mut stream = Box::pin(stream);
        while let Some(report) = read_message::<_, Report>(&mut stream).await? {
            if report.cluster != *cluster {
                tracing::warn!(cluster = %cluster, named = %report.cluster, "Dropped a report in another name.");
                continue;
            }
            said.send_replace(report.held.clone());
            // An agent that stands by has no results; the hub's own applier reports.
            if push::speaks(&told.borrow(), &report.held) {
                continue;
            }
            self.dispatch.waits(cluster, epoch, report.waits_for_lease);
            let _sent = self
                .events
                .send(Event::Reported {
                    report: Box::new(report),
                })
                .await;
        }
        Ok(())
    }
}

/// Takes no new streams, and waits until those that are open have ended, at most for so long.
async fn leave(session: &Session, mut incoming: Incoming, limit: Duration) {
    let refuse = async {
        while let Some(open) = incoming.next().await {
            open.responder.refuse(OpenCode::Gone, "this tunnel is being left");
        }
    };
    tokio::select! {
        () = drained(session, limit) => {}
        () = refuse => {}
    }
}

/// Waits until no stream of a tunnel is open, at most for so long.
pub(super) async fn drained(session: &Session, limit: Duration) {
    let ended = async {
        while session.streams() > 0 {
            sleep(DRAIN_LOOK).await;
        }
    };
    let _over = timeout(limit, ended).await;
}

/// What ended a session from the hub's side. Two agents with one identity would take it from each other every
/// other second, unless the older one is told that it was replaced.
fn why_ended(shutdown: &CancellationToken) -> (GoAwayReason, String) {
    if shutdown.is_cancelled() {
        (GoAwayReason::Shutdown, "the hub is ending".to_owned())
    } else {
        (GoAwayReason::Replaced, "a newer session took its place".to_owned())
    }
}

/// Whether an envelope says something else than what was told in this session and what the cluster holds: an unchanged list
/// is not sent, whatever its sequence, unless the cluster has another mode that this one comes after. What the cluster
/// refused is told again once it may be believed, with another sequence or a grant. What is older than it holds it would
/// refuse: another hub was first.
pub(super) fn is_news(envelope: &Envelope, told: Option<&Envelope>, held: Option<&Held>) -> bool {
    let is_older = |held: &Held| held.lineage == envelope.lineage && held.sequence > envelope.sequence;
    if held.is_some_and(is_older) {
        return false;
    }
    // Of another mode the cluster is told where it would take it: it may have a newer one from another hub.
    let goes_by_other = |held: &Held| held.mode != envelope.mode && takes_mode(Some(held), envelope);
    let is_held = |held: &Held| held.list == envelope.list && held.lineage == envelope.lineage && !goes_by_other(held);
    let Some(told) = told else {
        return !held.is_some_and(is_held);
    };
    if told.list != envelope.list || told.lineage != envelope.lineage || told.mode != envelope.mode {
        return true;
    }
    if told.mode_instead != envelope.mode_instead && held.is_some_and(goes_by_other) {
        return true;
    }
    let differs = told.sequence != envelope.sequence || told.lineage_grant != envelope.lineage_grant;
    differs && held.is_some_and(|held| !is_held(held))
}

/// The envelope as a cluster is to be told it, where it is news after what was told and what is held. History is read only where
/// something may be told.
pub(super) async fn news(
    modes: &ModeOrder,
    envelope: Arc<Envelope>,
    (told, held): (Option<&Envelope>, Option<&Held>),
) -> Option<Arc<Envelope>> {
    let is_other_mode = held.is_some_and(|held| held.mode != envelope.mode);
    // Of two commits the order makes news of another mode alone.
    if !is_other_mode && !is_news(&envelope, told, held) {
        return None;
    }
    let envelope = modes.placed(envelope, held).await;
    is_news(&envelope, told, held).then_some(envelope)
}

async fn read_replies<R>(mut reader: R, replies: mpsc::Sender<Result<DeliverReply, FramingError>>)
where
    R: AsyncRead + Unpin,
{
    loop {
        let read = read_message(&mut reader).await.transpose();
        let Some(read) = read else { return };
        let failed = read.is_err();
        if replies.send(read).await.is_err() || failed {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use render::Revision;

    use super::*;
    use crate::wire::{EnvelopeUnit, LineageGrant, list_digest};

    fn revision(digit: char) -> Revision {
        Revision::parse(digit.to_string().repeat(40)).expect("forty digits are a revision")
    }

    fn envelope(lineage: char, sequence: u64, content: &str) -> Envelope {
        let unit = EnvelopeUnit {
            digest: Digest::of_bytes(content.as_bytes()),
            revision: revision('b'),
            replicas: Default::default(),
            drift: Default::default(),
            gates: Vec::new(),
        };
        let units = BTreeMap::from([("shop/web".parse().expect("a valid unit"), unit)]);
        Envelope {
            version: Envelope::VERSION,
            cluster: ClusterName::parse("edge-1").expect("a valid name"),
            lineage: revision(lineage),
            sequence,
            released: revision('c'),
            list: list_digest(&units, false),
            units,
            orphan: false,
            orphaned: Default::default(),
            mode: Default::default(),
            mode_source: None,
            mode_instead: None,
            lineage_grant: None,
        }
    }

    #[track_caller]
    fn check(newest: &Envelope, told: Option<&Envelope>, held: Option<&Envelope>, expected: bool) {
        let held = held.map(Envelope::held);
        assert_eq!(is_news(newest, told, held.as_ref()), expected);
    }

    #[test]
    fn only_what_a_cluster_does_not_hold_is_told() {
        let (old, same, new) = (envelope('a', 7, "x"), envelope('a', 8, "x"), envelope('a', 8, "y"));
        check(&old, None, None, true);
        check(&same, None, Some(&old), false);
        check(&new, None, Some(&old), true);
        check(&new, Some(&old), Some(&old), true);
        check(&same, Some(&old), Some(&old), false);
        check(&new, Some(&new), Some(&old), false);
    }

    #[test]
    fn another_mode_is_told_although_nothing_else_is_new() {
        let dual = envelope('a', 7, "x");
        let push = Envelope {
            mode: SyncMode::Push,
            ..dual.clone()
        };
        check(&push, None, Some(&dual), true);
        check(&push, Some(&dual), Some(&dual), true);
        check(&push, Some(&push), Some(&dual), false);
        check(&push, None, Some(&push), false);
        check(&dual, Some(&push), Some(&push), true);
    }

    #[test]
    fn a_hub_that_is_behind_another_one_tells_nothing_old() {
        let (older, newer) = (envelope('a', 7, "x"), envelope('a', 8, "y"));
        for told in [None, Some(&newer), Some(&older)] {
            check(&older, told, Some(&newer), false);
        }
        check(&envelope('a', 9, "x"), None, Some(&newer), true);
    }

    #[test]
    fn what_was_refused_is_told_again_once_it_may_be_believed() {
        let (held, refused, higher) = (envelope('a', 7, "x"), envelope('a', 7, "y"), envelope('a', 8, "y"));
        check(&refused, Some(&refused), Some(&held), false);
        check(&higher, Some(&refused), Some(&held), true);
        let other = envelope('d', 1, "x");
        let granted = Envelope {
            lineage_grant: Some(LineageGrant::new(&other.cluster, revision('d'), |_| Vec::new())),
            ..other.clone()
        };
        check(&granted, Some(&other), Some(&held), true);
        check(&granted, Some(&other), Some(&other), false);
    }
}
