//! Who predicts how many replicas fit in a cluster: `spec.predictor`, and what Clusternet writes of it in `status`.

use serde_json::Value;

use super::super::fields::Fields;
use super::apply::duration;
use crate::finding::Severity;
use crate::limits::{PREDICTOR_TIMEOUT_SECONDS, PREDICTOR_TIMEOUT_SECONDS_MAX};
use crate::model::Predictor;
use crate::predictor::check_address;

/// `predictor` of a cluster's spec.
pub(super) fn read(spec: &mut Fields<'_>) -> Option<Predictor> {
    let mut fields = spec.object("predictor")?;
    let url = fields.required_text("url").filter(|url| !url.is_empty());
    let seconds = duration(&mut fields, "timeout");
    if seconds.is_some_and(|seconds| seconds > PREDICTOR_TIMEOUT_SECONDS_MAX) {
        let message = format!("must be {PREDICTOR_TIMEOUT_SECONDS_MAX}s at most");
        let hint = "an answer that comes later is too old to decide on";
        fields.error("timeout", "FieldInvalid", message, hint);
    }
    if let Some(Err(error)) = url.map(check_address) {
        let hint = "as https://predictor.example.com or http://10.0.0.1:8080";
        fields.error("url", "FieldInvalid", error.to_string(), hint);
    }
    fields.finish();
    Some(Predictor {
        url: url?.trim_end_matches('/').to_owned(),
        timeout_seconds: seconds.unwrap_or(PREDICTOR_TIMEOUT_SECONDS),
    })
}

/// What Clusternet's agent wrote of a predictor into the status, where the spec names none.
pub(super) fn announced(top: &Fields<'_>, is_named: bool) -> Option<Predictor> {
    let status = top.peek("status")?;
    let is_set = |name: &str| status.get(name).and_then(Value::as_bool) == Some(true);
    if is_named || !is_set("predictorEnabled") {
        return None;
    }
    if !is_set("predictorDirectAccess") {
        let message = "the predictor is reached through Clusternet's own tunnel alone, and is not asked; \
                       where the hub reaches it, name it in spec.predictor.url";
        top.warning("status.predictorEnabled", "NoEffect", message);
        return None;
    }
    let address = status
        .get("predictorAddress")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let url = match address.contains("://") {
        true => address.to_owned(),
        false => format!("http://{address}"),
    };
    if let Err(error) = check_address(&url) {
        let message = format!("{error}; the predictor is not asked");
        top.warning("status.predictorAddress", "NoEffect", message);
        return None;
    }
    let message = format!("{url} is asked how many replicas fit, as spec.predictor would say");
    let judge = top.judge();
    judge.say(
        Severity::Info,
        "Predictor",
        "status.predictorAddress".to_owned(),
        message,
        "",
    );
    Some(Predictor {
        url: url.trim_end_matches('/').to_owned(),
        timeout_seconds: PREDICTOR_TIMEOUT_SECONDS,
    })
}
