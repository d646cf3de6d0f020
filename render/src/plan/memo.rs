//! Remembers work between plans: whole units whose inputs are the same, and contents by what made them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::describe::is_chart;
use crate::digest::Digest;
use crate::fleet::{Base, Fleet, Unit};
use crate::model::{Override, PlaintextSecrets, Subscription, Suspension};
use crate::name::{Revision, UnitKey};
use crate::plan::unit::{Context, UnitPlan, plan_unit};
use crate::published::UnitPlacement;
use crate::schedule::{Ledger, Rebalance};

/// What was planned last; it changes the speed of the next plan, never a byte. Holds the units of one
/// plan, no more.
#[derive(Debug, Default)]
pub struct Memo {
    units: BTreeMap<UnitKey, Remembered>,
}

#[derive(Debug)]
struct Remembered {
    inputs: UnitInputs,
    /// New entries are stamped with the revision that made them, so a plan that has some holds for that
    /// revision alone.
    stamped: Option<Revision>,
    /// The time, or who was silent, may have decided something.
    by_time: bool,
    planned: Arc<UnitPlan>,
}

/// Everything that a unit's plan looks at. Equal inputs, equal plan but for the stamp.
#[derive(Debug)]
struct UnitInputs {
    clusters: Digest,
    secrets: PlaintextSecrets,
    enforce_for_seconds: Option<u64>,
    apply_set_labels: bool,
    /// Whether the fleet lets a unit take the room of others, which is part of what it asks for.
    preemption: bool,
    blocked: bool,
    subscription: Arc<Subscription>,
    base: Arc<Base>,
    overrides: Vec<Arc<Override>>,
    of_nothing: Vec<Arc<Override>>,
    /// Those of single objects.
    suspensions: Vec<Arc<Suspension>>,
    previous: Option<UnitPlacement>,
    remembered: Option<UnitPlacement>,
    rebalance: Option<Rebalance>,
    /// Over all predictions, where the unit has charts.
    previews: Option<Digest>,
}

impl Memo {
    /// The unit's plan, remembered or made, and remembered in `next`.
    /// What it is given that no report says yet is noted in the ledger.
    pub(super) fn unit(
        &self,
        context: &Context<'_>,
        ledger: &mut Ledger,
        (key, unit): (&UnitKey, &Unit),
        next: &mut Self,
    ) -> Arc<UnitPlan> {
        let touching = context.overrides.touching(&unit.base);
        let moves = &context.snapshot.moves;
        let inputs = UnitInputs {
            clusters: context.clusters,
            secrets: context.snapshot.fleet.spec.plaintext_secrets(),
            enforce_for_seconds: context.snapshot.fleet.spec.enforce_for_seconds,
            apply_set_labels: context.snapshot.fleet.spec.apply_set_labels,
            preemption: context.snapshot.fleet.spec.scheduling.preemption,
            blocked: !unit.blocked.is_empty(),
            subscription: Arc::clone(&unit.subscription),
            base: Arc::clone(&unit.base),
            overrides: touching.all().map(Arc::clone).collect(),
            of_nothing: context.snapshot.fleet.of_nothing.clone(),
            suspensions: of_objects(&context.snapshot.fleet),
            previous: context.snapshot.previous.units.get(key).cloned(),
            remembered: moves.remembered.get(key).cloned(),
            rebalance: moves.rebalance.get(key).copied(),
            previews: has_chart(&unit.base).then_some(context.previews),
        };
        let revision = &context.snapshot.revision;
        let by_time = context
            .schedule
            .is_by_time(&unit.subscription, inputs.previous.as_ref());
        let before = self.units.get(key);
        let remembered = match before {
            Some(before) if !by_time && before.holds_for(&inputs, revision) && !ledger.gives(key) => Remembered {
                inputs,
                stamped: before.stamped.clone(),
                by_time,
                planned: Arc::clone(&before.planned),
            },
            _ => {
                let before = before.map(|before| before.planned.as_ref());
                let planned = Arc::new(plan_unit(context, ledger, (key, unit), &touching, before));
                let stamped = planned.is_stamped(revision).then(|| revision.clone());
                Remembered {
                    inputs,
                    stamped,
                    by_time,
                    planned,
                }
            }
        };
        let planned = Arc::clone(&remembered.planned);
        if !planned.by_room && remembered.inputs.previous.as_ref() != Some(&planned.placement) {
            ledger.note(key, &planned.placement);
        }
        next.units.insert(key.clone(), remembered);
        planned
    }
}

fn of_objects(fleet: &Fleet) -> Vec<Arc<Suspension>> {
    let declared = fleet.suspensions.iter();
    declared
        .filter(|held| !held.objects.is_empty())
        .map(Arc::clone)
        .collect()
}

impl Remembered {
    fn holds_for(&self, inputs: &UnitInputs, revision: &Revision) -> bool {
        !self.planned.by_room
            && !self.by_time
            && self.stamped.as_ref().is_none_or(|stamped| stamped == revision)
            && self.inputs.is_same(inputs)
    }
}

impl UnitInputs {
    fn is_same(&self, other: &Self) -> bool {
        self.clusters == other.clusters
            && self.secrets == other.secrets
            && self.enforce_for_seconds == other.enforce_for_seconds
            && self.apply_set_labels == other.apply_set_labels
            && self.preemption == other.preemption
            && self.blocked == other.blocked
            && self.base.is_same(&other.base)
            && self.subscription == other.subscription
            && self.overrides == other.overrides
            && self.of_nothing == other.of_nothing
            && self.suspensions == other.suspensions
            && self.previous == other.previous
            && self.remembered == other.remembered
            && self.rebalance == other.rebalance
            && self.previews == other.previews
    }
}

fn has_chart(base: &Base) -> bool {
    base.objects.iter().any(|object| is_chart(&object.key))
}
