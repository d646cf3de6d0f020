//! People at the hub's door, with the kubectl that they have.

mod behind_nat;
mod by_kubeconfig;
mod callers;
mod keys;
mod logs;
mod office;
mod reads;
mod writes;

pub(super) use self::callers::{ACCESS, Callers};
