//! What should be in a hub cluster, with the contents it is made from. Blocks: contents are read.

use std::collections::BTreeMap;
use std::sync::Arc;

use render::published::{Placement, Variant};
use render::{ByObject, Digest, Fleet, UnitKey, layout};

use super::content::{self, Contents, Place};
use super::desired::{Desired, desired};
use crate::fault::line;
use crate::hub::engine::StateCommit;
use crate::hub::keeper::Keeper;

/// What should be there, with the contents it was made from.
#[derive(Default)]
pub(super) struct Plan {
    pub(super) desired: Desired,
    /// By what they are made from, so that clusters share them and a later plan takes them over.
    shelf: BTreeMap<ShelfKey, Arc<Contents>>,
    pub(super) pairs: BTreeMap<(UnitKey, String), Arc<Contents>>,
}

/// Digest of the variant, its folder, and the replicas put in.
type ShelfKey = (Digest, String, ByObject);

/// Makes the plan for what is released. Contents that `before` was made from are taken over.
pub(super) fn plan(keeper: &Keeper, fleet: &Fleet, released: &StateCommit, before: Option<&Plan>) -> Plan {
    let mut shelf: BTreeMap<ShelfKey, Arc<Contents>> = BTreeMap::new();
    let mut pairs = BTreeMap::new();
    // Units share contents over their clusters, so that pairs are named afterwards.
    let mut find = |unit: &UnitKey, placement: &Placement, variant: &Variant| {
        let folder = layout::unit_folder(unit, &placement.variant);
        let key = (variant.digest, folder.clone(), placement.replicas.clone());
        let known = shelf.get(&key).or_else(|| before?.shelf.get(&key)).cloned();
        if let Some(known) = known {
            shelf.insert(key, Arc::clone(&known));
            return Ok(known);
        }
        let description = keeper.content(&released.commit, &variant.digest);
        let description = description.map_err(|error| line(&error))?;
        let place = Place {
            digest: &variant.digest,
            folder: &folder,
        };
        let contents = Arc::new(content::contents(&description, &placement.replicas, place));
        shelf.insert(key, Arc::clone(&contents));
        Ok(contents)
    };
    let desired = desired(fleet, &released.published, &mut find);
    for (key, unit) in &released.published.units {
        for cluster in unit.clusters.keys() {
            let Some((placement, variant)) = unit.entry(cluster) else {
                continue;
            };
            let folder = layout::unit_folder(key, &placement.variant);
            if let Some(contents) = shelf.get(&(variant.digest, folder, placement.replicas.clone())) {
                pairs.insert((key.clone(), cluster.to_string()), Arc::clone(contents));
            }
        }
    }
    Plan { desired, shelf, pairs }
}
