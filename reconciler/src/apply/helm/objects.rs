//! The objects of a release in the cluster: their health, and whether they still are as the manifest says.
//!
//! Each is compared once it is watched, whenever a watch tells that somebody else owns something of it, and at each
//! resync. What differs is put right, told, or rests for a while, as [`Manner`] and the fights over it say.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use kube::Client;
use render::ObjectKey;
use tokio::sync::Mutex;
use tokio::time::Instant;
use tracing::info;

use super::difference::{Difference, Glance, One};
use super::manifest::Managed;
use super::manner::Manner;
use super::touched::{Sight, Touched};
use super::wanted::Place;
use crate::apply::discovery::{Kinds, ServedKind};
use crate::apply::drift::{Fights, fight_words, is_newer};
use crate::apply::health::{self, Verdict};
use crate::apply::message;
use crate::apply::request::RequestError;
use crate::limits::{DRIFT_FIELDS_MAX, FIGHT_WAIT_MAX, HELM_LOOK_CONCURRENCY, KINDS_REST};
use crate::wire::{Corrections, FieldDrift, Health, ObjectDrift};

/// Which kinds the cluster serves, for all releases.
#[derive(Default)]
pub(super) struct KnownKinds {
    known: Mutex<Option<(Instant, Arc<Kinds>)>>,
}

impl KnownKinds {
    /// Those that were asked for last; anew where `lacks` says that they are not enough.
    pub(super) async fn with(
        &self,
        client: &Client,
        lacks: impl Fn(&Kinds) -> bool,
    ) -> Result<Arc<Kinds>, RequestError> {
        let known = self.known.lock().await.clone();
        if let Some((at, kinds)) = known
            && (at.elapsed() < KINDS_REST || !lacks(&kinds))
        {
            return Ok(kinds);
        }
        let kinds = Arc::new(Kinds::discover(client).await?);
        *self.known.lock().await = Some((Instant::now(), kinds.clone()));
        Ok(kinds)
    }
}

/// The objects of one revision.
pub(super) struct Objects {
    managed: Vec<Managed>,
    /// Those whose kind is served, as they were told to whoever watches them.
    followed: Vec<Followed>,
    /// Each as it was compared last.
    left: BTreeMap<ObjectKey, Left>,
    /// To be compared.
    due: BTreeSet<ObjectKey>,
    /// All are to be compared.
    all_due: bool,
    /// Compared again only later: they are fought over, or could not be put right.
    resting: BTreeMap<ObjectKey, Instant>,
    fights: Fights,
    begun: Instant,
}

/// An object that is to be watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::apply) struct Followed {
    /// Its key in the cluster.
    pub key: ObjectKey,
    /// Its kind.
    pub kind: Arc<ServedKind>,
}

/// How an object was left.
struct Left {
    sight: Sight,
    /// How it differs, where it was left so.
    drift: Option<ObjectDrift>,
}

/// How the objects of a release fare.
pub(super) struct Found {
    /// The worst health, and whose.
    pub verdict: Verdict,
    /// The same without Jobs, whose end Helm waits for only when told.
    pub without_jobs: Verdict,
    /// Objects that are not as the manifest says, and are left so for now.
    pub drift: Vec<ObjectDrift>,
    /// How many were put right.
    pub corrections: Corrections,
    /// What is to be watched, where that changed.
    pub follow: Option<Vec<Followed>>,
}

/// How one object fares.
struct Look {
    key: ObjectKey,
    verdict: Verdict,
}

impl Objects {
    /// Those of a manifest. None is compared before it is watched.
    pub(super) fn new(managed: Vec<Managed>) -> Self {
        Self {
            managed,
            followed: Vec::new(),
            left: BTreeMap::new(),
            due: BTreeSet::new(),
            all_due: false,
            resting: BTreeMap::new(),
            fights: Fights::default(),
            begun: Instant::now(),
        }
    }

    /// All are to be compared.
    pub(super) fn doubt(&mut self) {
        self.all_due = true;
        self.resting.clear();
    }

    /// Takes in what watches saw; whether it brought something to look at that was not known before. What was known
    /// already has its time.
    pub(super) fn take(&mut self, touched: Touched) -> bool {
        self.all_due |= touched.all;
        let mut is_new = touched.all;
        for (key, sight) in touched.seen {
            if self.is_news(&key, &sight) {
                is_new |= self.due.insert(key);
            }
        }
        is_new
    }

    /// When something that rests is to be looked at.
    pub(super) fn next(&self) -> Option<Instant> {
        self.resting.values().min().copied()
    }

    /// Whether somebody did something to an object that may be a change of what the manifest says.
    fn is_news(&mut self, key: &ObjectKey, sight: &Sight) -> bool {
        // What was never compared is, with all others.
        let Some(left) = self.left.get_mut(key).filter(|_| !self.resting.contains_key(key)) else {
            return false;
        };
        if sight.uid != left.sight.uid {
            return true;
        }
        if sight.uid.is_none() || !is_newer(sight.version.as_deref(), left.sight.version.as_deref()) {
            return false;
        }
        // What differs may be as it should be again, which its owners do not always tell.
        if left.drift.is_some() || sight.owners != left.sight.owners {
            return true;
        }
        left.sight.version.clone_from(&sight.version);
        false
    }

    /// Looks at them: at the health of all, and at what is to be compared. Nothing is forgotten where it fails.
    pub(super) async fn look(
        &mut self,
        client: &Client,
        kinds: &KnownKinds,
        place: &Place,
        manner: &Manner,
    ) -> Result<Found, RequestError> {
        let lacks = |kinds: &Kinds| {
            self.managed
                .iter()
                .any(|managed| managed.key_in(kinds, place).is_none())
        };
        let kinds = kinds.with(client, lacks).await?;
        let now = Instant::now();
        let rested = self.resting.extract_if(.., |_, at| *at <= now);
        self.due.extend(rested.map(|(key, _)| key));
        let managed = std::mem::take(&mut self.managed);
        let answered = self.ask(&managed, client, &kinds, place, manner).await;
        self.managed = managed;
        let (looks, corrections) = answered?;
        self.due.clear();
        self.all_due = false;
        self.fights.rest(self.begun.elapsed());
        Ok(self.found(&looks, corrections, &kinds, place))
    }

    async fn ask(
        &mut self,
        managed: &[Managed],
        client: &Client,
        kinds: &Kinds,
        place: &Place,
        manner: &Manner,
    ) -> Result<(Vec<Look>, Corrections), RequestError> {
        let mut looks = Vec::new();
        let mut tasks = Vec::new();
        for managed in managed {
            let kind = kinds.find(&managed.api_version, &managed.key.kind);
            let (Some(kind), Some(key)) = (kind, managed.key_in(kinds, place)) else {
                looks.push(Look {
                    key: managed.key.clone(),
                    verdict: unknown(kinds.absence(&managed.api_version, &managed.key.kind)),
                });
                continue;
            };
            let compares = self.due.contains(&key) || self.all_due && !self.resting.contains_key(&key);
            if !compares && !health::has_status(&key.group, &key.kind) {
                continue;
            }
            let left = self.left.get(&key).filter(|left| left.drift.is_none());
            let left = left.map(|left| left.sight.clone());
            let one = One {
                client: client.clone(),
                kind: kind.clone(),
                key,
                place,
                managed,
            };
            tasks.push(async move {
                let answer = if compares {
                    one.compare(manner, left.as_ref()).await
                } else {
                    one.glance().await
                };
                (one, compares, answer)
            });
        }
        let mut answers = stream::iter(tasks).buffer_unordered(HELM_LOOK_CONCURRENCY);
        let mut different = Vec::new();
        while let Some((one, compares, answer)) = answers.next().await {
            match answer {
                Ok(glance) => {
                    let Glance {
                        verdict,
                        sight,
                        difference,
                    } = glance;
                    let key = one.key.clone();
                    match difference {
                        Some(difference) => different.push((one, difference, sight, verdict)),
                        None => {
                            if compares {
                                self.left.insert(key.clone(), Left { sight, drift: None });
                            }
                            looks.push(Look { key, verdict });
                        }
                    }
                }
                Err(error) if error.is_general() => return Err(error),
                Err(error) => {
                    let words = message::about(&one.key, &one.managed.object(), &error.line());
                    if compares {
                        self.later(&one.key);
                    }
                    looks.push(Look {
                        key: one.key,
                        verdict: unknown(words),
                    });
                }
            }
        }
        drop(answers);
        let mut corrections = Corrections::default();
        for (one, difference, sight, verdict) in different {
            let key = one.key.clone();
            let verdict = self
                .settle(one, &difference, sight, verdict, manner, &mut corrections)
                .await?;
            looks.push(Look { key, verdict });
        }
        Ok((looks, corrections))
    }

    /// Puts an object right that differs, or leaves it for now; its health afterwards.
    async fn settle(
        &mut self,
        one: One<'_>,
        difference: &Difference,
        sight: Sight,
        verdict: Verdict,
        manner: &Manner,
        corrections: &mut Corrections,
    ) -> Result<Verdict, RequestError> {
        let now = self.begun.elapsed();
        let words = match self.rests(&one.key, difference, manner, now) {
            Some(words) => words,
            None => match one.correct(difference).await {
                Ok(Glance { verdict, sight, .. }) => {
                    self.corrected(&one.key, difference, sight, corrections);
                    return Ok(verdict);
                }
                Err(error) if error.is_general() => return Err(error),
                Err(error) => {
                    self.later(&one.key);
                    let words = message::about(&one.key, &one.managed.object(), &error.line());
                    format!("cannot be put right: {words}")
                }
            },
        };
        let mut fields = difference.fields.clone();
        let more = fields.len().saturating_sub(DRIFT_FIELDS_MAX);
        fields.truncate(DRIFT_FIELDS_MAX);
        let drift = ObjectDrift {
            object: one.key.clone(),
            api_version: one.managed.api_version.clone(),
            fields,
            more,
            message: words,
            chart: None,
        };
        let drift = Some(drift);
        self.left.insert(one.key, Left { sight, drift });
        Ok(verdict)
    }

    /// Why an object that differs is left so for now, in words where there are any; `None` where it is put right.
    fn rests(&mut self, key: &ObjectKey, difference: &Difference, manner: &Manner, now: Duration) -> Option<String> {
        if !manner.corrects(difference.is_gone) {
            let is_gone = if difference.is_gone { "it is not there" } else { "" };
            return Some(is_gone.to_owned());
        }
        let (manager, path) = first(&difference.fields);
        let at = self.fights.touched(key, manager, path, now);
        (at > now).then(|| {
            self.resting.insert(key.clone(), self.begun + at);
            let opponent = self.fights.opponent(key);
            opponent.map_or_else(String::new, |(manager, field)| fight_words(manager, field))
        })
    }

    fn corrected(&mut self, key: &ObjectKey, difference: &Difference, sight: Sight, corrections: &mut Corrections) {
        self.fights.corrected(key, self.begun.elapsed());
        self.left.insert(key.clone(), Left { sight, drift: None });
        if difference.is_gone {
            corrections.release_removed += 1;
        } else {
            corrections.release_changed += 1;
        }
        let fields = difference.fields.iter().take(DRIFT_FIELDS_MAX);
        let paths: Vec<_> = fields.map(|field| field.path.as_str()).collect();
        let (manager, _) = first(&difference.fields);
        info!(object = %key, manager, fields = paths.join(" "), "Corrected drift of a release.");
    }

    /// It is compared again after a while.
    fn later(&mut self, key: &ObjectKey) {
        self.left.remove(key);
        self.resting.insert(key.clone(), Instant::now() + FIGHT_WAIT_MAX);
    }

    fn found(&mut self, looks: &[Look], corrections: Corrections, kinds: &Kinds, place: &Place) -> Found {
        let well = || Verdict {
            health: Health::Current,
            message: String::new(),
        };
        let (mut verdict, mut without_jobs) = (well(), well());
        for look in looks {
            worsen(&mut verdict, look);
            if look.key.kind != "Job" {
                worsen(&mut without_jobs, look);
            }
        }
        let drift = self.left.values().filter_map(|left| left.drift.clone());
        Found {
            verdict,
            without_jobs,
            drift: drift.collect(),
            corrections,
            follow: self.follow(kinds, place),
        }
    }

    /// What is to be watched, where that is not what was told before.
    fn follow(&mut self, kinds: &Kinds, place: &Place) -> Option<Vec<Followed>> {
        let followed = self.managed.iter().filter_map(|managed| {
            Some(Followed {
                key: managed.key_in(kinds, place)?,
                kind: kinds.find(&managed.api_version, &managed.key.kind)?.clone(),
            })
        });
        let followed: Vec<_> = followed.collect();
        (followed != self.followed).then(|| {
            self.followed.clone_from(&followed);
            followed
        })
    }
}

/// Who changed the first of these fields, and which it is.
fn first(fields: &[FieldDrift]) -> (&str, &str) {
    let first = fields.first();
    first.map_or(("", ""), |field| (field.manager.as_str(), field.path.as_str()))
}

fn worsen(verdict: &mut Verdict, look: &Look) {
    if look.verdict.health > verdict.health {
        let message = format!("{}: {}", look.key, look.verdict.message);
        *verdict = Verdict {
            health: look.verdict.health,
            message,
        };
    }
}

fn unknown(message: String) -> Verdict {
    Verdict {
        health: Health::Unknown,
        message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> ObjectKey {
        ObjectKey::new("v1", "ConfigMap", "shop", name)
    }

    fn touched(name: &str, version: &str, owners: &str) -> Touched {
        let sight = Sight {
            uid: Some(name.to_owned()),
            version: Some(version.to_owned()),
            owners: Some(render::Digest::of_bytes(owners.as_bytes())),
        };
        Touched {
            all: false,
            seen: [(key(name), sight)].into(),
        }
    }

    #[test]
    fn what_is_due_already_wakes_nobody_a_second_time() {
        let mut objects = Objects::new(Vec::new());
        for name in ["a", "b"] {
            let sight = touched(name, "1", "helm").seen.remove(&key(name));
            let left = Left {
                sight: sight.expect("it was put there"),
                drift: None,
            };
            objects.left.insert(key(name), left);
        }
        assert!(!objects.take(touched("a", "2", "helm")), "its owners are the same");
        assert!(objects.take(touched("a", "3", "somebody")));
        assert!(!objects.take(touched("a", "4", "somebody")), "it is due already");
        assert!(!objects.take(touched("b", "2", "helm")));
        assert!(objects.take(touched("b", "3", "somebody")), "another one is news");
        let all = Touched {
            all: true,
            ..Touched::default()
        };
        assert!(objects.take(all), "they are watched from now on");
        assert!(!objects.take(Touched::default()));
        assert_eq!((objects.due.len(), objects.all_due), (2, true), "nothing is forgotten");
    }
}
