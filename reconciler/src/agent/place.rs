//! Where an agent keeps its journal and its keys, as people write it.

use std::path::PathBuf;
use std::str::FromStr;

use render::name::wrong_label_value;

/// How a place in the cluster begins.
const SECRETS: &str = "secret:";

/// The longest name: the digits that follow it fit as well, and so does it as a label's value.
const PREFIX_CHARS_MAX: usize = 63;

/// Where a key of the agent's own is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyPlace {
    /// A file on this machine.
    File(PathBuf),
    /// A Secret of the cluster, which has it as `key`: `secret:NAMESPACE/NAME`.
    Secret {
        /// Where it is.
        namespace: String,
        /// Its name.
        name: String,
    },
}

/// Where a journal is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JournalPlace {
    /// A folder on this machine.
    Folder(PathBuf),
    /// Secrets of the cluster: `secret:NAMESPACE/NAME`.
    Secrets {
        /// Where they are.
        namespace: String,
        /// The first one's name, with which those of the others begin.
        prefix: String,
    },
}

impl JournalPlace {
    /// Beside the agent's Lease and inventory.
    pub fn in_cluster() -> Self {
        Self::Secrets {
            namespace: crate::apply::NAMESPACE.to_owned(),
            prefix: "flotilla-journal".to_owned(),
        }
    }
}

impl From<PathBuf> for JournalPlace {
    fn from(folder: PathBuf) -> Self {
        Self::Folder(folder)
    }
}

impl FromStr for JournalPlace {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match in_secret(text)? {
            None => Self::Folder(PathBuf::from(text)),
            Some((namespace, prefix)) => Self::Secrets { namespace, prefix },
        })
    }
}

impl FromStr for KeyPlace {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match in_secret(text)? {
            None => Self::File(PathBuf::from(text)),
            Some((namespace, name)) => Self::Secret { namespace, name },
        })
    }
}

/// Namespace and name of a place in the cluster; `None` for one on this machine.
fn in_secret(text: &str) -> Result<Option<(String, String)>, String> {
    let Some(place) = text.strip_prefix(SECRETS) else {
        return Ok(None);
    };
    let names = place.split_once('/');
    let (namespace, name) = names.ok_or("a place in the cluster is secret:NAMESPACE/NAME")?;
    for name in [namespace, name] {
        let is_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let is_valid = !name.is_empty()
            && name.len() <= PREFIX_CHARS_MAX
            && name.bytes().all(is_name)
            && wrong_label_value(name).is_none();
        if !is_valid {
            return Err(format!(
                "{name:?} is no name for it; small letters, digits and hyphens are, at most {PREFIX_CHARS_MAX}"
            ));
        }
    }
    Ok(Some((namespace.to_owned(), name.to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_a_file_or_in_a_secret() {
        assert_eq!("new.key".parse(), Ok(KeyPlace::File("new.key".into())));
        let secret = KeyPlace::Secret {
            namespace: "flotilla-system".to_owned(),
            name: "agent-2026".to_owned(),
        };
        assert_eq!("secret:flotilla-system/agent-2026".parse(), Ok(secret));
        assert!("secret:agent-2026".parse::<KeyPlace>().is_err());
    }

    #[test]
    fn a_journal_is_a_folder_or_secrets_with_a_valid_name() {
        let read = |text: &str| text.parse::<JournalPlace>();
        assert_eq!(read("/var/journal"), Ok(PathBuf::from("/var/journal").into()));
        assert_eq!(
            read("secret:flotilla-system/flotilla-journal"),
            Ok(JournalPlace::in_cluster())
        );
        for wrong in [
            "secret:",
            "secret:a",
            "secret:a/",
            "secret:/b",
            "secret:a/B",
            "secret:a/b/c",
            "secret:a/-b",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        assert!(read(&format!("secret:a/{}", "b".repeat(64))).is_err());
    }
}
