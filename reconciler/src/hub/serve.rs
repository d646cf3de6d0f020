//! tmp
#![allow(missing_docs)]
use super::run::SharedState;
#[derive(Clone,Debug)]
pub enum Listen { Tcp(std::net::SocketAddr), Unix(std::path::PathBuf) }
impl std::str::FromStr for Listen { type Err = std::net::AddrParseError; fn from_str(s:&str)->Result<Self,Self::Err>{ Ok(Listen::Tcp(s.parse()?)) } }
#[derive(Debug, thiserror::Error)]
#[error("x")]
pub struct ServeError;
pub struct Bound;
pub async fn bind(_l: &Listen) -> Result<Bound, ServeError> { Ok(Bound) }
pub async fn run(_b: Bound, _s: SharedState, t: tokio_util::sync::CancellationToken) -> Result<(), ServeError> { t.cancelled().await; Ok(()) }
