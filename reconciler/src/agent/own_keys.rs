//! The agent's own keys: the one that it has, and one that may take its place.
//!
//! The agent says its wish over each tunnel, and hears which of the two keys counts. Which one a tunnel is dialled with is
//! its line's; what becomes of the wish is the hub's, and a person's who merges it.

use std::sync::Arc;

use render::ClusterName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tunnel::{Opener, PeerInfo, SecretKey, TargetClass};

use crate::key_wish::{KeyStand, SignedWish, TARGET, Within};
use crate::limits::{KEY_MESSAGE_BYTES_MAX, KEY_STEP_TIMEOUT};
use crate::wire::{FramingError, read_message_within, write_message};

/// One or two keys.
#[derive(Clone)]
pub(super) struct OwnKeys {
    /// The one that the cluster is registered with.
    pub(super) present: Arc<SecretKey>,
    /// The one that is to take its place.
    pub(super) next: Option<Arc<SecretKey>>,
}

/// Which of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Which {
    #[default]
    Present,
    Next,
}

impl OwnKeys {
    /// One of them, and which it is: without a next one there is no choice.
    pub(super) fn of(&self, which: Which) -> (Arc<SecretKey>, Which) {
        match (&self.next, which) {
            (Some(next), Which::Next) => (Arc::clone(next), Which::Next),
            _ => (Arc::clone(&self.present), Which::Present),
        }
    }

    /// The other one, where a hub refused this one.
    pub(super) fn beside(&self, which: Which) -> Option<Which> {
        self.next.as_ref().map(|_| match which {
            Which::Present => Which::Next,
            Which::Next => Which::Present,
        })
    }
}

/// Says the wish, and hears how the two keys stand, until the tunnel ends. An agent with one key says nothing.
pub(super) async fn wish(
    keys: OwnKeys,
    (cluster, used): (ClusterName, Which),
    (opener, peer): (Opener, PeerInfo),
    stand: watch::Sender<KeyStand>,
) {
    let Some(next) = &keys.next else { return };
    let stream = match opener.open(TargetClass::Keys, TARGET, KEY_STEP_TIMEOUT).await {
        Ok(stream) => stream,
        Err(error) => return tracing::debug!(%error, "Hub takes no wish for another key."),
    };
    let within = Within {
        cluster: &cluster,
        used: keys.of(used).0.public(),
        binding: peer.binding,
    };
    let wish = SignedWish::new(&within, &keys.present, next);
    tracing::info!(key = %next.public(), "Asked the hub to propose another key for this agent.");
    if let Err(error) = converse(&wish, stream, &stand).await {
        tracing::debug!(error = &error as &dyn std::error::Error, "Lost keys stream.");
    }
}

/// One wish, and what is said of it.
async fn converse<S>(wish: &SignedWish, stream: S, stand: &watch::Sender<KeyStand>) -> Result<(), FramingError>
where
    S: AsyncRead + AsyncWrite,
{
    let (reader, writer) = tokio::io::split(stream);
    let (mut reader, mut writer) = (Box::pin(reader), Box::pin(writer));
    write_message(&mut writer, wish).await?;
    // A person may take days.
    while let Some(now) = read_message_within::<_, KeyStand>(&mut reader, KEY_MESSAGE_BYTES_MAX).await? {
        if now.next && !now.old {
            // docs/register-a-cluster.md quotes this line.
            tracing::info!("The old key counts no more: start this agent with the new one as --key.");
        }
        stand.send_replace(now);
    }
    Ok(())
}
