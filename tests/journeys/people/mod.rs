//! People at the hub's door, with the kubectl that they have.

mod logs;
mod office;
mod reads;
mod writes;
