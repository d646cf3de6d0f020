//! For whom the hub asks: the first message of a stream to a cluster's API server, before the request.

use serde::{Deserialize, Serialize};

/// What stands before each name and group that an agent impersonates, so that a person of the fleet is nobody that the
/// cluster knows already. The bindings that `access/` projects into clusters name their subjects so.
pub const IMPERSONATION_PREFIX: &str = "flotilla:";

/// Who asks, as the hub knows them: names without [`IMPERSONATION_PREFIX`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Caller {
    /// Their name.
    pub user: String,
    /// The groups that they are in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// Ties lines of both logs together.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub request_id: String,
}
