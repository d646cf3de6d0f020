//! Where a hub listens, as people write it.

/// Where the hub listens, as a URL. Without a scheme its port is named, since a person means no other.
pub(super) fn hub_url(text: &str) -> Result<String, String> {
    let wrong = || "it is neither HOST:PORT nor wss://HOST:PORT".to_owned();
    let (url, has_scheme) = match text.split_once("://") {
        Some(("wss", _)) => (text.to_owned(), true),
        Some(_) => return Err(format!("{}; agents speak wss alone", wrong())),
        None => (format!("wss://{text}"), false),
    };
    let parsed: http::Uri = url.parse().map_err(|_| wrong())?;
    let is_whole = parsed.host().is_some_and(|host| !host.is_empty()) && (has_scheme || parsed.port_u16().is_some());
    if is_whole { Ok(url) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hub_is_a_host_with_its_port_or_a_url() {
        for (text, url) in [
            ("hub:7443", "wss://hub:7443"),
            ("wss://hub", "wss://hub"),
            ("[fd00::1]:7443", "wss://[fd00::1]:7443"),
        ] {
            assert_eq!(hub_url(text).as_deref(), Ok(url));
        }
        for text in ["hub", "https://hub", "wss://", ":7443"] {
            assert!(hub_url(text).is_err(), "{text}");
        }
    }
}
