//! The files that the servers read: tokens, the key of service accounts, kubeconfigs.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::json;

use super::User;

/// Writes the token file of all `users`.
pub(super) fn write_tokens(path: &Path, users: &[User]) {
    let mut text = String::new();
    for user in users {
        let groups = user.groups.join(",");
        writeln!(text, r#"{},{},{},"{groups}""#, user.token(), user.name, user.name).expect("a String takes all");
    }
    write(path, &text);
}

/// Writes a new key for service account tokens, and its public half.
pub(super) fn write_service_account_key(private: &Path, public: &Path) {
    let key = rcgen::KeyPair::generate().expect("ring makes a P-256 key");
    write(private, &key.serialize_pem());
    write(public, &key.public_key_pem());
}

/// Writes the kubeconfig of `user`, with the certificate inside, so that the file can be copied anywhere. `url` comes with
/// the name that the certificate has for it, where that is another one.
pub(super) fn write_kubeconfig(
    path: &Path,
    cluster: &str,
    (url, server_name): (&str, Option<&str>),
    certificate: &[u8],
    user: &User,
) {
    let mut server = json!({"server": url, "certificate-authority-data": base64(certificate)});
    if let Some(name) = server_name {
        server["tls-server-name"] = json!(name);
    }
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": cluster,
        "clusters": [{"name": cluster, "cluster": server}],
        "users": [{"name": user.name, "user": {"token": user.token()}}],
        "contexts": [{"name": cluster, "context": {"cluster": cluster, "user": user.name}}],
    });
    // JSON is YAML. A file in use is left alone unless the certificate was only half there the first time.
    let text = format!("{config:#}\n");
    if fs::read_to_string(path).is_ok_and(|present| present == text) {
        return;
    }
    write(path, &text);
}

fn write(path: &Path, text: &str) {
    fs::write(path, text).unwrap_or_else(|error| panic!("{} is not writable: {error}", path.display()));
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}
