//! Every limit of this crate, with its number and reason; each room's in a file of its own.

mod agent;
mod api;
mod apply;
mod dependants;
mod door;
mod git;
mod helm;
mod hub;
mod keys;
mod peers;
mod sessions;

pub use self::agent::*;
pub use self::api::*;
pub use self::apply::*;
pub use self::dependants::*;
pub use self::door::*;
pub use self::git::*;
pub use self::helm::*;
pub use self::hub::*;
pub use self::keys::*;
pub use self::peers::*;
pub use self::sessions::*;
