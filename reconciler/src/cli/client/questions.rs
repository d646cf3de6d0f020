//! Many questions to one hub, of which a plan is not to wait for each when nobody answers.

use std::sync::OnceLock;

use serde_json::Value;

use super::{JSON, ServerOptions};

/// Asks a hub, until it does not answer; what is asked after that has the same reason.
#[derive(Debug)]
pub(in crate::cli) struct Questions<'a> {
    server: &'a ServerOptions,
    silent: OnceLock<String>,
}

impl<'a> Questions<'a> {
    pub(in crate::cli) fn new(server: &'a ServerOptions) -> Self {
        Self {
            server,
            silent: OnceLock::new(),
        }
    }

    /// A JSON value, or in a line why there is none.
    pub(in crate::cli) async fn value(&self, path: &str) -> Result<Value, String> {
        if let Some(why) = self.silent.get() {
            return Err(why.clone());
        }
        let answer = self.server.value(path, JSON).await;
        answer.map_err(|error| {
            let why = crate::fault::line(&error);
            if error.is_of_hub() {
                self.silent.get_or_init(|| why.clone());
            }
            why
        })
    }
}
