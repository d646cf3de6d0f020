//! A chart in an OCI registry: its tag, its manifest, and the blob that the manifest names by digest.

use ::http::{HeaderValue, StatusCode, Uri, header};
use serde_json::Value;

use super::address;
use super::credentials::Credentials;
use super::http::{Answer, Fetcher, Refused};
use super::{ChartError, check, failed, version};
use crate::apply::helm::wanted::Repository;
use crate::limits::{CHART_BYTES_MAX, REGISTRY_ANSWER_BYTES_MAX, REGISTRY_PAGES_MAX};

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CHART: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";

/// One registry, and what it lets us in with.
struct Registry {
    fetcher: Fetcher,
    /// `…/v2/<name>/`.
    base: Uri,
    /// As its last challenge asked for.
    authorization: Option<HeaderValue>,
}

/// Fetches the archive of a chart. `path` is what follows `oci://`.
pub(super) async fn fetch(
    scheme: &str,
    path: &str,
    repository: &Repository,
    credentials: Credentials,
) -> Result<(String, Vec<u8>), ChartError> {
    let (host, folder) = path.split_once('/').unwrap_or((path, ""));
    let name = if folder.is_empty() {
        repository.chart.clone()
    } else {
        format!("{folder}/{}", repository.chart)
    };
    let base = address::parse(&format!("{scheme}://{host}/v2/{name}/")).map_err(ChartError::Absent)?;
    let fetcher = Fetcher::new(&base, credentials).map_err(|source| failed(&base, source))?;
    let mut registry = Registry {
        fetcher,
        base,
        authorization: None,
    };
    let tag = registry.tag(&repository.version).await?;
    let archive = registry.chart(&tag).await?;
    Ok((format!("{}{tag}", address::shown(&registry.base)), archive))
}

impl Registry {
    /// The tag of the version that is meant.
    async fn tag(&mut self, wanted: &str) -> Result<String, ChartError> {
        if version::is_exact(wanted) {
            return Ok(tag(wanted));
        }
        let mut tags = Vec::new();
        let mut next = Some("tags/list?n=1000".to_owned());
        for _ in 0..REGISTRY_PAGES_MAX {
            let Some(reference) = next.take() else { break };
            let answer = self.get(&reference, None, REGISTRY_ANSWER_BYTES_MAX).await?;
            let page: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
            let page = page["tags"].as_array().into_iter().flatten();
            tags.extend(page.filter_map(Value::as_str).map(|tag| tag.replace('_', "+")));
            let link = answer.headers.get(header::LINK).and_then(|link| link.to_str().ok());
            next = link.and_then(following).map(str::to_owned);
        }
        let place = version::choose(wanted, tags.iter().map(String::as_str))
            .map_err(|why| ChartError::Absent(format!("{} {why}", address::shown(&self.base))))?;
        Ok(tag(&tags[place]))
    }

    async fn chart(&mut self, tag: &str) -> Result<Vec<u8>, ChartError> {
        let reference = format!("manifests/{tag}");
        let manifest = self.get(&reference, Some(MANIFEST), REGISTRY_ANSWER_BYTES_MAX).await?;
        let manifest: Value = serde_json::from_slice(&manifest.body).unwrap_or_default();
        let layers = manifest["layers"].as_array().into_iter().flatten();
        let digest = layers
            .filter(|layer| layer["mediaType"] == CHART)
            .find_map(|layer| layer["digest"].as_str());
        let Some(digest) = digest.filter(|digest| digest.starts_with("sha256:")) else {
            let place = address::shown(&self.base);
            return Err(ChartError::Absent(format!(
                "{place} has no chart of Helm under tag {tag}"
            )));
        };
        let archive = self.get(&format!("blobs/{digest}"), None, CHART_BYTES_MAX).await?.body;
        check(&address::shown(&self.base), &archive, digest)?;
        Ok(archive)
    }

    /// An answer; where the registry asks who we are, it is told once.
    async fn get(&mut self, reference: &str, accept: Option<&'static str>, limit: usize) -> Result<Answer, ChartError> {
        let address = address::join(&self.base, reference).map_err(ChartError::Absent)?;
        let mut answer = self.ask(&address, accept, limit).await?;
        if answer.status == StatusCode::UNAUTHORIZED {
            self.authorization = self.authorize(&answer).await?;
            answer = self.ask(&address, accept, limit).await?;
        }
        if answer.status.is_success() {
            return Ok(answer);
        }
        Err(failed(&address, Refused::Status(answer.status)))
    }

    async fn ask(&self, address: &Uri, accept: Option<&'static str>, limit: usize) -> Result<Answer, ChartError> {
        let authorization = self.authorization.clone();
        let answer = self.fetcher.answer(address, authorization, accept, limit).await;
        answer.map_err(|source| failed(address, source))
    }

    /// What the challenge of an answer asks for.
    async fn authorize(&self, answer: &Answer) -> Result<Option<HeaderValue>, ChartError> {
        let challenge = answer.headers.get(header::WWW_AUTHENTICATE);
        let challenge = challenge
            .and_then(|challenge| challenge.to_str().ok())
            .unwrap_or_default();
        let Some(query) = bearer(challenge) else {
            return Ok(self.fetcher.basic());
        };
        let realm = address::parse(&query).map_err(ChartError::Absent)?;
        let token = self.fetcher.token(&realm, REGISTRY_ANSWER_BYTES_MAX).await;
        let token = token.map_err(|source| failed(&realm, source))?;
        if !token.status.is_success() {
            return Err(failed(&realm, Refused::Status(token.status)));
        }
        let token: Value = serde_json::from_slice(&token.body).unwrap_or_default();
        let token = token["token"].as_str().or_else(|| token["access_token"].as_str());
        let header = token.and_then(|token| HeaderValue::try_from(format!("Bearer {token}")).ok());
        Ok(header.map(|mut header| {
            header.set_sensitive(true);
            header
        }))
    }
}

/// A version as a tag, which takes no `+`.
fn tag(version: &str) -> String {
    version.replace('+', "_")
}

/// The next page that a `Link` names.
fn following(link: &str) -> Option<&str> {
    let (reference, relation) = link.split_once(';')?;
    relation
        .contains("next")
        .then(|| reference.trim().trim_start_matches('<').trim_end_matches('>'))
}

/// Where a token is asked for, by a challenge for bearers.
fn bearer(challenge: &str) -> Option<String> {
    let parameters = challenge
        .strip_prefix("Bearer ")
        .or_else(|| challenge.strip_prefix("bearer "))?;
    let value = |name: &str| {
        let (_, rest) = parameters.split_once(&format!("{name}=\""))?;
        rest.split_once('"').map(|(value, _)| value)
    };
    let realm = value("realm")?;
    let encoded = |text: &str| {
        text.replace('%', "%25")
            .replace('&', "%26")
            .replace('#', "%23")
            .replace(' ', "%20")
    };
    let asked = ["service", "scope"].map(|name| value(name).map(|value| format!("{name}={}", encoded(value))));
    let asked = asked.into_iter().flatten().collect::<Vec<_>>().join("&");
    let mark = if realm.contains('?') { '&' } else { '?' };
    Some(format!("{realm}{mark}{asked}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_challenge_names_where_tokens_are() {
        let challenge = r#"Bearer realm="https://auth.example/token",service="registry.example",scope="repository:charts/redis:pull""#;
        assert_eq!(
            bearer(challenge).as_deref(),
            Some("https://auth.example/token?service=registry.example&scope=repository:charts/redis:pull")
        );
        assert_eq!(bearer(r#"Basic realm="x""#), None);
    }

    #[test]
    fn pages_follow_their_link() {
        let link = r#"</v2/redis/tags/list?last=1.0.0&n=1000>; rel="next""#;
        assert_eq!(following(link), Some("/v2/redis/tags/list?last=1.0.0&n=1000"));
        assert_eq!(following("nonsense"), None);
    }

    #[test]
    fn a_tag_takes_no_plus() {
        assert_eq!(tag("1.2.3+build.4"), "1.2.3_build.4");
    }
}
