//! What the tests of the whole house stand on: real etcd and Kubernetes control planes, real `git`, and the
//! `flotilla` binary as a child process.
//!
//! Enters: a cache folder with the real parts (see `tests/parts/build`). Leaves: [`ControlPlane`],
//! [`Repository`], [`Flotilla`] and [`eventually`], which panic with the log of whatever went wrong.
//! Deliberately not here: any judgement. What must hold is said in the test modules beside this folder.
//!
//! Everything is blocking, since its work is waiting for child processes. Whatever a test starts dies
//! with the test process, however that ends ([`watchdog`]).
#![expect(clippy::panic, reason = "support of tests: a part that does not start ends the test")]

pub mod applier;
pub mod bench;
pub mod child;
pub mod control_plane;
pub mod etcd;
pub mod flotilla;
pub mod git_host;
pub mod kubelet;
pub mod network;
pub mod node;
pub mod parts;
pub mod pool;
pub mod ports;
pub mod repository;
pub mod scratch;
pub mod wait;
pub mod watchdog;

pub use applier::RunningApplier;
pub use child::{Child, Output};
pub use control_plane::{ControlPlane, Options};
pub use flotilla::Flotilla;
pub use kubelet::Kubelet;
pub use network::Site;
pub use node::Node;
pub use pool::{Clusters, three_clusters};
pub use repository::Repository;
pub use wait::eventually;
