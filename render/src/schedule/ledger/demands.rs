//! What pods ask for of nodes, worked out once for all clusters whose nodes are alike.

use std::sync::Arc;

use crate::capacity::{Demand, Field, Layout, Nodes, PodRequirements};
use crate::schedule::known::Known;
use crate::shared::Shared;

/// So many layouts are looked through for each cluster. Those of further ones are their own.
const LAYOUTS_MAX: usize = 64;

/// The layouts that there are, and what was asked of them last.
#[derive(Debug, Default)]
pub(super) struct Demands {
    layouts: Vec<Arc<Layout>>,
    known: Known<Asked, Arc<Demand>>,
}

/// Who asks, and of whom. Both are held, so that what is the same stays equal.
#[derive(Clone, Debug)]
struct Asked {
    layout: Arc<Layout>,
    requirements: Shared<PodRequirements>,
}

impl PartialEq for Asked {
    /// A look at the contents would cost what is to be saved.
    fn eq(&self, other: &Self) -> bool {
        self.requirements.is_same(&other.requirements) && Arc::ptr_eq(&self.layout, &other.layout)
    }
}

impl Demands {
    /// These nodes, under the one layout of all that are alike.
    pub(super) fn field(&mut self, nodes: &Nodes) -> Field {
        let field = Field::under(nodes, &self.layouts);
        let is_known = |known: &Arc<Layout>| Arc::ptr_eq(known, field.layout());
        if self.layouts.len() < LAYOUTS_MAX && !self.layouts.iter().any(is_known) {
            self.layouts.push(Arc::clone(field.layout()));
        }
        field
    }

    /// What a pod asks for there.
    pub(super) fn of(&mut self, field: &Field, requirements: &Shared<PodRequirements>) -> Arc<Demand> {
        let asked = Asked {
            layout: Arc::clone(field.layout()),
            requirements: requirements.clone(),
        };
        self.known
            .answer(&asked, |asked| Arc::new(field.demand(&asked.requirements)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capacity::{NodeGroup, Resources};

    #[test]
    fn clusters_whose_nodes_are_alike_are_asked_once() {
        let nodes = |count, cpu| {
            Nodes::grouped([NodeGroup {
                count,
                allocatable: Resources::from([("cpu", cpu)]),
                ..NodeGroup::default()
            }])
        };
        let mut demands = Demands::default();
        let [one, other, larger] = [nodes(1, 2), nodes(2, 2), nodes(1, 4)].map(|nodes| demands.field(&nodes));
        let requirements = Shared::default();
        let [of_one, of_other, of_larger] = [&one, &other, &larger].map(|field| demands.of(field, &requirements));
        assert!(Arc::ptr_eq(&of_one, &of_other) && !Arc::ptr_eq(&of_one, &of_larger));
        let of_others = demands.of(&one, &Shared::default());
        assert!(
            !Arc::ptr_eq(&of_one, &of_others),
            "other requirements are another question"
        );
    }
}
