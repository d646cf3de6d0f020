//! One stream of another hub's that goes on to a cluster whose tunnel ends here: read as far as it is judged by, judged,
//! carried, judged again while it lasts, and written down.

use std::error::Error;
use std::sync::PoisonError;

use render::access::{Person, attributes};
use render::time::rfc3339;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, copy_bidirectional};
use tokio::time::{sleep, timeout};
use tokio_util::io::InspectReader;
use tokio_util::sync::CancellationToken;
use tunnel::{Open, OpenCode, Opener, PublicKey, Responder, StreamError, TunnelStream};

use super::judge::{Asked, Goal, judge, request_line};
use super::listen::Listening;
use crate::audit::{Begun, Share, StreamLine};
use crate::fault::line;
use crate::hub::asking::Door;
use crate::hub::clock::seconds;
use crate::limits::{CALLER_BYTES_MAX, DOOR_JUDGED_AGAIN, GATE_HEAD_TIMEOUT, HOP_LINE_BYTES_MAX};
use crate::wire::{Caller, Hop, read_message_within, write_message};

/// How a stream ended that nobody cut off.
const DONE: &str = "done";

/// Why a stream does not go on.
type No = (OpenCode, String);

/// What another hub sends before anything is carried.
struct Opening {
    caller: Caller,
    /// The request's first line; an address is dialled without one.
    line: Vec<u8>,
}

impl Listening {
    /// Carries a stream to its end.
    pub(super) async fn pass(
        &self,
        from: &PublicKey,
        (open, goal): (Open, Goal),
        responder: Responder,
        ended: &CancellationToken,
    ) {
        let line = StreamLine {
            time: rfc3339(seconds()),
            peer: from.to_string(),
            class: open.class.as_str().to_owned(),
            request_id: open.request_id.clone(),
            ..StreamLine::default()
        };
        let hop = match Hop::parse(&open.target) {
            Ok(hop) => hop,
            Err(error) => {
                responder.refuse(OpenCode::NotAllowed, &error.to_string());
                let unread = StreamLine {
                    // A kilobyte at most, as the frame has it.
                    target: open.target,
                    ..line
                };
                let refused = Begun::new(unread).ended(OpenCode::NotAllowed.as_str());
                return self.audit.write_soon(&refused, Share::Half);
            }
        };
        let begun = Begun::new(StreamLine {
            cluster: hop.cluster.to_string(),
            ..line
        });
        let (opener, stream) = match self.way(&hop) {
            Ok(opener) => (opener, responder.accept()),
            Err((code, text)) => {
                responder.refuse(code, &text);
                return self.audit.write_soon(&begun.ended(code.as_str()), Share::Half);
            }
        };
        let Ok(stream) = stream else {
            let cancelled = begun.ended(OpenCode::Cancelled.as_str());
            return self.audit.write_soon(&cancelled, Share::Half);
        };
        let mut here = BufReader::new(stream);
        let carrying = Box::pin(self.carry(&mut here, &opener, (&open, &hop, goal), &begun));
        let lasting = begun.lasting(carrying, |line| self.audit.write_soon(&line, Share::Whole));
        let carried = tokio::select! {
            biased;
            () = ended.cancelled() => Err((OpenCode::Gone, String::new())),
            carried = lasting => carried,
        };
        let closed = match carried {
            Ok(()) => DONE,
            Err((code, text)) => {
                here.into_inner().reset(code, &text);
                code.as_str()
            }
        };
        self.audit.write(&begun.ended(closed)).await;
    }

    /// The cluster's own tunnel, unless nobody would know of what goes through it.
    fn way(&self, hop: &Hop) -> Result<Opener, No> {
        if self.audit.fails() {
            let why = "the audit log of the hub that it is connected to cannot be written, so that nobody is answered";
            return Err((OpenCode::Refused, why.to_owned()));
        }
        self.opener(hop)
    }

    /// The cluster's own tunnel, which ends here: nothing is passed on to a third hub. A cluster that is not here may be on
    /// its way to another one, so that whoever asks may try again.
    pub(super) fn opener(&self, hop: &Hop) -> Result<Opener, No> {
        match self.here.dispatch.own_door(&hop.cluster) {
            Some(Door::Agent(opener)) => Ok(opener),
            Some(Door::ApiServer(_) | Door::Peer(_)) | None => {
                Err((OpenCode::Gone, format!("cluster {} is not connected here", hop.cluster)))
            }
        }
    }

    async fn carry(
        &self,
        here: &mut BufReader<TunnelStream>,
        opener: &Opener,
        (open, hop, goal): (&Open, &Hop, Goal),
        begun: &Begun,
    ) -> Result<(), No> {
        let late = |_| {
            (
                OpenCode::DialTimeout,
                "the other hub did not say what it asks".to_owned(),
            )
        };
        let opening = timeout(GATE_HEAD_TIMEOUT, opening(here, goal)).await.map_err(late)??;
        begun.tell(|line| line.asked_by(&opening.caller));
        let not_allowed = |why| (OpenCode::NotAllowed, why);
        let attributes = match goal {
            Goal::Read | Goal::Interactive => request_line(&opening.line),
            Goal::Dial => {
                let path = format!("/dial/{}", hop.target);
                attributes("GET", &path, None).map_err(|unclear| unclear.to_string())
            }
        };
        let attributes = attributes.map_err(not_allowed)?;
        begun.tell(|line| line.asked(&attributes));
        let asked = Asked {
            cluster: hop.cluster.clone(),
            goal,
            person: Person {
                user: opening.caller.user.clone(),
                groups: opening.caller.groups.clone(),
            },
            attributes,
        };
        self.judged(&asked).map_err(not_allowed)?;
        let carried = forward(here, opener, (open, hop, goal), &opening, begun);
        tokio::select! {
            biased;
            why = self.judged_again(&asked) => Err((OpenCode::NotAllowed, why)),
            carried = carried => carried,
        }
    }

    fn judged(&self, asked: &Asked) -> Result<(), String> {
        let state = self.here.state.read().unwrap_or_else(PoisonError::into_inner);
        let fleet = state.fleet.clone();
        drop(state);
        judge(fleet.as_deref(), self.here.interactive, asked)
    }

    /// Waits until a request that was allowed is not any more, and says why.
    pub(super) async fn judged_again(&self, asked: &Asked) -> String {
        loop {
            sleep(DOOR_JUDGED_AGAIN).await;
            if let Err(why) = self.judged(asked) {
                return why;
            }
        }
    }
}

/// Reads for whom another hub asks, and for what. What follows stays in the reader.
async fn opening(here: &mut BufReader<TunnelStream>, goal: Goal) -> Result<Opening, No> {
    let not_said = |why: String| (OpenCode::NotAllowed, why);
    let caller = read_message_within(here, CALLER_BYTES_MAX).await;
    let caller = caller.map_err(|error| not_said(line(&error)))?;
    let caller = caller.ok_or_else(|| not_said("the other hub did not say for whom it asks".to_owned()))?;
    let mut line = Vec::new();
    if goal != Goal::Dial {
        let mut bounded = here.take(HOP_LINE_BYTES_MAX);
        let read = bounded.read_until(b'\n', &mut line).await;
        read.map_err(|error| ended_by(&error))?;
    }
    Ok(Opening { caller, line })
}

/// Carries what was read and what follows, until both directions ended.
async fn forward(
    here: &mut BufReader<TunnelStream>,
    opener: &Opener,
    (open, hop, goal): (&Open, &Hop, Goal),
    opening: &Opening,
    begun: &Begun,
) -> Result<(), No> {
    let open = Open {
        target: hop.target.clone(),
        ..open.clone()
    };
    // The request is on its way before the agent has answered, as from a hub that is asked itself.
    let (mut there, _grant) = opener.begin(&open).map_err(|error| (error.code, error.text))?;
    let written = async {
        if goal != Goal::Dial {
            let said = write_message(&mut there, &opening.caller).await;
            said.map_err(|error| ended_by(&error))?;
        }
        there.write_all(&opening.line).await.map_err(|error| ended_by(&error))
    };
    written.await?;
    begun.bytes.up(opening.line.len());
    let mut up = InspectReader::new(here, |bytes: &[u8]| begun.bytes.up(bytes.len()));
    let mut down = InspectReader::new(there, |bytes: &[u8]| {
        if begun.bytes.down(bytes.len()) {
            begun.tell(|line| line.code = status(bytes));
        }
    });
    let copied = copy_bidirectional(&mut up, &mut down).await;
    copied.map(drop).map_err(|error| ended_by(&error))
}

/// The status in the first bytes of an answer; an address that was dialled gives none.
fn status(bytes: &[u8]) -> Option<u16> {
    let digits = bytes.strip_prefix(b"HTTP/1.1 ")?.get(..3)?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// The tunnel's own code for it, so that the other hub knows what it may try again.
fn ended_by(error: &(dyn Error + 'static)) -> No {
    match StreamError::in_chain(error) {
        Some(ended) => (ended.code, ended.text.clone()),
        None => (OpenCode::Internal, line(error)),
    }
}
