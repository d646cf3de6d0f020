//! Whether an agent believes an envelope: old news, other lineages and tampered lists are refused.

use render::{ClusterName, Digest, Revision};
use serde::{Deserialize, Serialize};

use super::{Envelope, Held, list_digest};

/// An envelope that is believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepted {
    /// It says something new.
    New,
    /// It says what is held already; nothing to do.
    Same,
}

/// Why an envelope is refused. What was held stays.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "camelCase", tag = "reason")]
pub enum Refusal {
    /// It is for another cluster.
    #[error("the envelope is for cluster {named}, and this is {own}")]
    OtherCluster {
        /// Whom it names.
        named: ClusterName,
        /// Who reads it.
        own: ClusterName,
    },
    /// A form that this build does not know.
    #[error("the envelope has version {version}, and this build knows {known}")]
    UnknownVersion {
        /// Its version.
        version: u32,
        /// The newest one known.
        known: u32,
    },
    /// The list's digest is not what it says.
    #[error("the envelope's list has digest {found}, and it says {stated}")]
    Tampered {
        /// What it says.
        stated: Digest,
        /// What was computed.
        found: Digest,
    },
    /// A lower sequence than what is held.
    #[error("sequence {offered} is older than {held}, which is held")]
    OldNews {
        /// Its sequence.
        offered: u64,
        /// What is held.
        held: u64,
    },
    /// The same sequence as what is held, with another list.
    #[error("sequence {sequence} is held with another list")]
    Contradiction {
        /// The sequence.
        sequence: u64,
    },
    /// Another lineage without the hub's signed word for it.
    #[error("lineage {offered} is not {held}, which is held, and no valid grant names it")]
    OtherLineage {
        /// Its lineage.
        offered: Revision,
        /// What is held.
        held: Revision,
    },
    /// A reason of a newer agent that this build does not know.
    #[error("the agent gives a reason that this hub does not know; hint: upgrade the hub")]
    #[serde(other)]
    Unknown,
}

/// Decides about an envelope. `verify` checks an Ed25519 signature over bytes, in this order, against the
/// hub's pinned keys.
pub fn accept(
    own: &ClusterName,
    held: Option<&Held>,
    envelope: &Envelope,
    verify: impl Fn(&[u8], &[u8]) -> bool,
) -> Result<Accepted, Refusal> {
    if envelope.version != Envelope::VERSION {
        return Err(Refusal::UnknownVersion {
            version: envelope.version,
            known: Envelope::VERSION,
        });
    }
    if envelope.cluster != *own {
        return Err(Refusal::OtherCluster {
            named: envelope.cluster.clone(),
            own: own.clone(),
        });
    }
    let found = list_digest(&envelope.units, envelope.orphan);
    if found != envelope.list {
        return Err(Refusal::Tampered {
            stated: envelope.list,
            found,
        });
    }
    let Some(held) = held else { return Ok(Accepted::New) };
    if held.lineage != envelope.lineage {
        return match &envelope.lineage_grant {
            Some(grant) if grant.lineage == envelope.lineage && grant.is_signed(own, verify) => Ok(Accepted::New),
            _ => Err(Refusal::OtherLineage {
                offered: envelope.lineage.clone(),
                held: held.lineage.clone(),
            }),
        };
    }
    if envelope.sequence < held.sequence {
        return Err(Refusal::OldNews {
            offered: envelope.sequence,
            held: held.sequence,
        });
    }
    if envelope.sequence > held.sequence {
        return Ok(Accepted::New);
    }
    if envelope.list == held.list {
        return Ok(Accepted::Same);
    }
    Err(Refusal::Contradiction {
        sequence: held.sequence,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::wire::{EnvelopeUnit, LineageGrant};

    fn revision(digit: char) -> Revision {
        Revision::parse(digit.to_string().repeat(40)).expect("forty digits are a revision")
    }

    fn own() -> ClusterName {
        ClusterName::parse("edge-1").expect("a valid name")
    }

    fn envelope(sequence: u64, content: &str) -> Envelope {
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
            cluster: own(),
            lineage: revision('a'),
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

    #[test]
    fn the_word_that_all_stays_is_part_of_what_is_believed_and_an_old_agent_refuses_it() {
        let mut leaving = envelope(8, "x");
        leaving.units.clear();
        leaving.orphan = true;
        leaving.list = list_digest(&leaving.units, true);
        check(Some(&envelope(7, "x")), &leaving, Ok(Accepted::New));
        assert!(leaving.held().orphan, "it is remembered over a restart");
        // An agent that does not know the word reads the same envelope without it, as a list that lacks everything.
        let read_by_old = Envelope {
            orphan: false,
            orphaned: Default::default(),
            ..leaving
        };
        let refusal = accept(&own(), None, &read_by_old, |_, _| false);
        assert!(matches!(refusal, Err(Refusal::Tampered { .. })), "{refusal:?}");
    }

    /// What stands for a signature here.
    fn sealed(bytes: &[u8]) -> Vec<u8> {
        [b"sealed ", bytes].concat()
    }

    #[track_caller]
    fn check(held: Option<&Envelope>, offered: &Envelope, expected: Result<Accepted, Refusal>) {
        let held = held.map(Envelope::held);
        assert_eq!(
            accept(&own(), held.as_ref(), offered, |bytes, signature| signature
                == sealed(bytes)),
            expected
        );
    }

    #[test]
    fn old_news_is_refused() {
        let held = envelope(7, "x");
        check(None, &held, Ok(Accepted::New));
        check(Some(&held), &envelope(8, "y"), Ok(Accepted::New));
        check(Some(&held), &envelope(7, "x"), Ok(Accepted::Same));
        check(
            Some(&held),
            &envelope(6, "x"),
            Err(Refusal::OldNews { offered: 6, held: 7 }),
        );
        check(
            Some(&held),
            &envelope(7, "y"),
            Err(Refusal::Contradiction { sequence: 7 }),
        );
    }

    #[test]
    fn a_tampered_list_is_refused() {
        let mut offered = envelope(8, "x");
        for unit in offered.units.values_mut() {
            unit.digest = Digest::of_bytes(b"smuggled");
        }
        let refusal = accept(&own(), None, &offered, |_, _| false);
        assert!(matches!(refusal, Err(Refusal::Tampered { .. })), "{refusal:?}");
    }

    #[test]
    fn an_envelope_for_another_cluster_or_of_another_version_is_refused() {
        let mut offered = envelope(8, "x");
        offered.cluster = ClusterName::parse("edge-2").expect("a valid name");
        assert!(matches!(
            accept(&own(), None, &offered, |_, _| true),
            Err(Refusal::OtherCluster { .. })
        ));
        let mut offered = envelope(8, "x");
        offered.version = 2;
        assert!(matches!(
            accept(&own(), None, &offered, |_, _| true),
            Err(Refusal::UnknownVersion { .. })
        ));
    }

    #[test]
    fn another_lineage_needs_a_signed_grant() {
        let held = envelope(7, "x");
        let mut offered = envelope(1, "y");
        offered.lineage = revision('d');
        let refused = Err(Refusal::OtherLineage {
            offered: revision('d'),
            held: revision('a'),
        });
        check(Some(&held), &offered, refused.clone());
        let other = ClusterName::parse("edge-2").expect("a valid name");
        let worthless = [
            LineageGrant {
                lineage: revision('d'),
                signature: "no base64".to_owned(),
            },
            LineageGrant::new(&own(), revision('d'), |_| b"not sealed".to_vec()),
            LineageGrant::new(&other, revision('d'), sealed),
            LineageGrant::new(&own(), revision('e'), sealed),
        ];
        for grant in worthless {
            offered.lineage_grant = Some(grant);
            check(Some(&held), &offered, refused.clone());
        }
        offered.lineage_grant = Some(LineageGrant::new(&own(), revision('d'), sealed));
        check(Some(&held), &offered, Ok(Accepted::New));
    }
}
