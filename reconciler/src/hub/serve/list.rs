//! A list as it is written: piece by piece from objects that all answers share, so that none is ever whole in memory.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;
use http::Response;
use serde_json::Value;

use super::answer::typed;
use super::shelf::Item;
use super::table::Shape;
use crate::limits::API_BATCH;

/// What is written, and where it stands.
struct Writing {
    shape: Shape,
    /// What stands before the objects; none once it was written.
    head: Option<String>,
    items: std::vec::IntoIter<Arc<Item>>,
    ended: bool,
}

/// The answer that lists these objects. `metadata` is the list's own.
pub(super) fn listed(shape: Shape, metadata: Value, items: Vec<Arc<Item>>) -> Response<Body> {
    let is_short = items.len() <= API_BATCH;
    let mut writing = Writing {
        head: Some(shape.head(metadata)),
        shape,
        items: items.into_iter(),
        ended: false,
    };
    let body = match is_short {
        // Its length is told, as of any other answer.
        true => Body::from(writing.next().unwrap_or_default()),
        false => Body::from_stream(stream::iter(writing.map(Ok::<_, Infallible>))),
    };
    typed("application/json", body)
}

impl Iterator for Writing {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        if self.ended {
            return None;
        }
        let mut text = self.head.take().unwrap_or_else(|| ",".to_owned());
        for (at, item) in self.items.by_ref().take(API_BATCH).enumerate() {
            if at > 0 {
                text.push(',');
            }
            text.push_str(&self.shape.element(&item).to_string());
        }
        if self.items.as_slice().is_empty() {
            text.push_str("]}");
            self.ended = true;
        }
        Some(Bytes::from(text))
    }
}
