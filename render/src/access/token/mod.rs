//! Who an ID token says its bearer is.
//!
//! In: a token as it came, the keys of the identity provider that it is held to, and the time. Out: a
//! [`Person`](super::Person), or why not. Fetching keys and reading clocks are deliberately not here.

mod claims;
mod keys;

pub use claims::{Provider, Refused, Verified, verify};
pub use keys::{Keys, KeysWrong};
