//! What is asked. In: an HTTP request. Out: the resource it names, its query, and the form of answer it wants.

mod form;
mod path;
mod protobuf;
mod query;
mod selector;

use bytes::Bytes;
use http::Method;

pub(crate) use form::{Form, wants_aggregated};
pub(crate) use path::{Place, Target, target};
pub(crate) use protobuf::read as read_protobuf;
pub(crate) use query::Query;
pub(crate) use selector::Selection;

/// A request that was read whole.
#[derive(Debug)]
pub(crate) struct Call {
    pub method: Method,
    pub path: String,
    pub query: Query,
    pub accept: String,
    pub content_type: String,
    pub user_agent: String,
    pub authorization: String,
    pub body: Bytes,
}

impl Call {
    /// Who writes, as managed fields name it: what the caller says, or its program.
    pub(crate) fn manager(&self) -> String {
        let named = self.query.text("fieldManager").filter(|name| !name.is_empty());
        let program = self.user_agent.split('/').next().unwrap_or_default();
        named.map_or_else(|| program.to_owned(), str::to_owned)
    }

    /// The word for its method, as roles name it; `name` is whether one object is asked for.
    pub(crate) fn verb(&self, named: bool) -> &'static str {
        match (self.method.as_str(), named) {
            ("GET", _) if self.query.flag("watch") => "watch",
            ("GET", true) => "get",
            ("GET", false) => "list",
            ("POST", _) => "create",
            ("PUT", _) => "update",
            ("PATCH", _) => "patch",
            ("DELETE", true) => "delete",
            ("DELETE", false) => "deletecollection",
            _ => "",
        }
    }
}
