//! Another number of replicas.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use super::{Hint, NoSuch};
use crate::describe::set_replicas;
use crate::digest::Digest;
use crate::fleet::{Base, Fleet, ManifestObject, Unit};
use crate::name::{ObjectKey, UnitKey};
use crate::schedule::{replica_path_of, workloads_of};

/// Which object is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectWords {
    /// Its kind, in any case.
    pub kind: String,
    /// Its namespace; `None`: any.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
}

impl ObjectWords {
    fn mean(&self, object: &ObjectKey) -> bool {
        object.kind.eq_ignore_ascii_case(&self.kind)
            && object.name == self.name
            && self
                .namespace
                .as_ref()
                .is_none_or(|namespace| *namespace == object.namespace)
    }
}

/// How many replicas there are to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// So many.
    To(u64),
    /// So many more.
    More(u64),
    /// So many fewer, none at least.
    Fewer(u64),
}

impl Scale {
    fn of(self, replicas: u64) -> u64 {
        match self {
            Self::To(replicas) => replicas,
            Self::More(more) => replicas.saturating_add(more),
            Self::Fewer(fewer) => replicas.saturating_sub(fewer),
        }
    }
}

/// As it is typed.
impl fmt::Display for Scale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::To(replicas) => write!(f, "{replicas}"),
            Self::More(more) => write!(f, "+{more}"),
            Self::Fewer(fewer) => write!(f, "-{fewer}"),
        }
    }
}

/// Writes another number into the one object that is meant.
pub(super) fn scale(fleet: &mut Fleet, key: &UnitKey, words: Option<&ObjectWords>, to: Scale) -> Result<(), NoSuch> {
    let Some(unit) = fleet.units.get(key) else {
        let names: Vec<String> = fleet.units.keys().map(ToString::to_string).collect();
        let hint = Hint::of(&key.to_string(), names.iter().map(String::as_str));
        return Err(NoSuch::Unit(key.clone(), hint));
    };
    let workloads = workloads_of(unit);
    let meant: Vec<_> = workloads
        .iter()
        .filter(|(object, _)| words.is_none_or(|words| words.mean(object)))
        .collect();
    let called = words.map_or_else(String::new, |words| format!(" {} {}", words.kind, words.name));
    let (object, workload) = match meant.as_slice() {
        [(object, workload)] => (*object, *workload),
        [] => {
            let all: Vec<_> = workloads.keys().map(typed).collect();
            return Err(NoSuch::Object(key.clone(), called, Hint::list(&all)));
        }
        several => {
            let all: Vec<_> = several.iter().map(|(object, _)| typed(object)).collect();
            return Err(NoSuch::Several(key.clone(), called, Hint::list(&all)));
        }
    };
    let replicas = to.of(workload.replicas);
    let Some(base) = scaled(unit, object, replicas) else {
        return Err(NoSuch::Object(key.clone(), called, Hint::default()));
    };
    let scaled = Unit {
        base: Arc::new(base),
        ..unit.clone()
    };
    fleet.units.insert(key.clone(), scaled);
    Ok(())
}

/// As it is typed behind the name of a unit.
fn typed(object: &ObjectKey) -> String {
    match object.namespace.as_str() {
        "" => format!("{}/{}", object.kind, object.name),
        namespace => format!("{}/{namespace}/{}", object.kind, object.name),
    }
}

/// The unit's Base with another number; `None` where the number has no place.
fn scaled(unit: &Unit, key: &ObjectKey, replicas: u64) -> Option<Base> {
    let path = replica_path_of(&unit.subscription, key)?.replicas;
    let write = |object: &Arc<ManifestObject>| {
        if object.key != *key {
            return Arc::clone(object);
        }
        let mut value = Value::clone(&object.value);
        set_replicas(&mut value, &path, replicas);
        Arc::new(ManifestObject {
            digest: Digest::of_value(&value),
            value: Arc::new(value),
            ..ManifestObject::clone(object)
        })
    };
    Some(Base::new(unit.base.objects.iter().map(write).collect()))
}
