//! The refs that the hub writes. None of them may ever be its source.

use super::StateError;

/// Which of the two refs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateRef {
    /// The approved target.
    Rendered,
    /// What each cluster is told now.
    Released,
}

/// The names of the refs, full (`refs/heads/…`) once they are checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateRefs {
    /// Default `flotilla/rendered`.
    pub rendered: String,
    /// Default `flotilla/released`.
    pub released: String,
    /// What the names of proposals begin with. Default `flotilla/proposed/`.
    pub proposed_prefix: String,
    /// What the names of branches that register a cluster begin with. Default `flotilla/register-`.
    pub register_prefix: String,
    /// The branch that replaces keys of agents. Default `flotilla/keys`.
    pub keys: String,
    /// The ref that remembers which of them were proposed, and which a person closed. Default `refs/flotilla/keys-asked`.
    pub keys_asked: String,
    /// The ref that remembers the commit of source that is followed. Default `refs/flotilla/followed`.
    pub followed: String,
}

impl Default for StateRefs {
    fn default() -> Self {
        Self {
            rendered: "flotilla/rendered".to_owned(),
            released: "flotilla/released".to_owned(),
            proposed_prefix: "flotilla/proposed/".to_owned(),
            register_prefix: "flotilla/register-".to_owned(),
            keys: "flotilla/keys".to_owned(),
            keys_asked: "refs/flotilla/keys-asked".to_owned(),
            followed: "refs/flotilla/followed".to_owned(),
        }
    }
}

impl StateRefs {
    pub(super) fn name(&self, which: StateRef) -> &str {
        match which {
            StateRef::Rendered => &self.rendered,
            StateRef::Released => &self.released,
        }
    }

    /// Makes all names full, and refuses names that are invalid or stand in each other's way.
    pub(super) fn checked(self) -> Result<Self, StateError> {
        let refs = Self {
            rendered: full(&self.rendered),
            released: full(&self.released),
            proposed_prefix: format!("{}/", full(self.proposed_prefix.trim_end_matches('/'))),
            register_prefix: full(&self.register_prefix),
            keys: full(&self.keys),
            keys_asked: full(&self.keys_asked),
            followed: full(&self.followed),
        };
        for name in [&refs.rendered, &refs.released, &format!("{}x", refs.proposed_prefix)] {
            if gix::refs::FullName::try_from(name.as_str()).is_err() {
                return Err(StateError::RefName { name: name.clone() });
            }
        }
        let names = [&refs.rendered, &refs.released, &refs.proposed_prefix];
        for (at, one) in names.iter().enumerate() {
            for other in &names[at + 1..] {
                if collide(one, other) {
                    return Err(StateError::RefsCollide {
                        one: (*one).clone(),
                        other: (*other).clone(),
                    });
                }
            }
        }
        Ok(refs)
    }

    /// Whether a full ref name is one that the hub writes, or stands in its way.
    pub(super) fn include(&self, name: &str) -> bool {
        let ours = [
            &self.rendered,
            &self.released,
            &self.proposed_prefix,
            &self.keys,
            &self.keys_asked,
            &self.followed,
        ];
        ours.iter().any(|ours| collide(ours, name)) || name.starts_with(&self.register_prefix)
    }
}

/// Git keeps refs as files, so that one name cannot also be a folder of others.
fn collide(one: &str, other: &str) -> bool {
    let (one, other) = (one.trim_end_matches('/'), other.trim_end_matches('/'));
    one == other || one.starts_with(&format!("{other}/")) || other.starts_with(&format!("{one}/"))
}

fn full(name: &str) -> String {
    if name.starts_with("refs/") {
        name.to_owned()
    } else {
        format!("refs/heads/{name}")
    }
}
