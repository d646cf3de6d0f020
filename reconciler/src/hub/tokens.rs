//! Bootstrap tokens: each lets one agent ask once for one cluster's registration, for an hour at most.
//!
//! The file holds hashes and never a token. It is written by `flotilla hub token create` and by the hub, in turns and each time
//! as a whole. A token lets nobody in: what comes of it is a proposal that a person merges.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use render::{ClusterName, Digest};
use serde::{Deserialize, Serialize};
use tunnel::{PublicKey, fresh_bytes};

use crate::limits::{TOKEN_USED_KEPT_SECONDS, TOKENS_FILE_BYTES_MAX, TOKENS_MAX};

/// What every token begins with, so that one is known for what it is wherever it turns up.
const PREFIX: &str = "flotilla-join-";

/// What the hub remembers of a token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    cluster: ClusterName,
    hash: Digest,
    /// In seconds since 1970.
    expires: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    used: Option<Used>,
}

/// Who used it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Used {
    key: String,
    at: i64,
}

/// All tokens that count, and those that were used lately.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tokens {
    tokens: Vec<Entry>,
}

/// What a token is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Worth {
    /// This agent may ask for registration; it used the token just now.
    First,
    /// It asked before with the same token.
    Again,
    /// Nothing: it is unknown, of another cluster, too old, or another agent used it. Which, is nobody's business.
    Nothing,
}

/// Why tokens could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The file could not be read or written.
    #[error("failed to use the file of tokens {}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It holds something else.
    #[error("{} holds no tokens; hint: remove it, and make new ones", path.display())]
    Malformed {
        /// Which.
        path: PathBuf,
    },
    /// There are too many.
    #[error("there are {TOKENS_MAX} tokens; hint: wait until some expire, or remove {}", path.display())]
    Full {
        /// Which.
        path: PathBuf,
    },
    /// The system gave no random bytes.
    #[error("failed to make a token")]
    Random(#[source] tunnel::KeyError),
}

/// A new token, as it is handed out. It is shown once and kept nowhere.
pub fn fresh() -> Result<String, TokenError> {
    let bytes = fresh_bytes().map_err(TokenError::Random)?;
    Ok(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes)))
}

impl Tokens {
    /// Lets a token count for one cluster until `expires`.
    fn add(&mut self, cluster: ClusterName, token: &str, expires: i64) {
        let hash = Digest::of_bytes(token.as_bytes());
        self.tokens.push(Entry {
            cluster,
            hash,
            expires,
            used: None,
        });
    }

    /// What a token is worth to an agent that proved to hold `key`; whoever comes first uses it up. `is_of` says whether it
    /// is the one with a hash.
    pub(super) fn spend(
        &mut self,
        cluster: &ClusterName,
        key: &PublicKey,
        is_of: impl Fn(&Digest) -> bool,
        now: i64,
    ) -> Worth {
        let mut found = None;
        // All of them are compared, whichever it is.
        for entry in &mut self.tokens {
            if is_of(&entry.hash) {
                found = Some(entry);
            }
        }
        match found.filter(|entry| entry.cluster == *cluster) {
            Some(Entry { used: Some(used), .. }) if used.key == key.to_string() => Worth::Again,
            Some(entry) if entry.used.is_none() && entry.expires > now => {
                let key = key.to_string();
                entry.used = Some(Used { key, at: now });
                Worth::First
            }
            _ => Worth::Nothing,
        }
    }

    /// Who asks for registration: cluster and key, the one that asked last where there are several.
    pub(super) fn wanted(&self) -> BTreeMap<ClusterName, PublicKey> {
        let mut used: Vec<_> = self
            .tokens
            .iter()
            .filter_map(|entry| Some((entry.used.as_ref()?, &entry.cluster)))
            .collect();
        used.sort_by_key(|(used, _)| used.at);
        let parsed = used
            .into_iter()
            .filter_map(|(used, cluster)| Some((cluster.clone(), used.key.parse().ok()?)));
        parsed.collect()
    }

    /// Notes what was used elsewhere. Who is noted already stays.
    pub(super) fn take_used(&mut self, other: &Self) {
        for entry in &mut self.tokens {
            let same = other.tokens.iter().find(|other| other.hash == entry.hash);
            if let Some(same) = same.filter(|_| entry.used.is_none()) {
                entry.used.clone_from(&same.used);
            }
        }
    }

    /// Forgets what counts no more: what expired unused, what was merged, and what nobody merged for long.
    pub(super) fn clean(&mut self, now: i64, is_registered: impl Fn(&ClusterName, &PublicKey) -> bool) -> bool {
        let before = self.tokens.len();
        self.tokens.retain(|entry| match &entry.used {
            None => entry.expires > now,
            Some(used) => {
                let merged = used.key.parse().is_ok_and(|key| is_registered(&entry.cluster, &key));
                !merged && now.saturating_sub(used.at) < TOKEN_USED_KEPT_SECONDS
            }
        });
        self.tokens.len() != before
    }
}

/// The file, and the lock beside it by which its writers take turns.
#[derive(Clone, Debug)]
pub struct TokenFile {
    path: PathBuf,
}

impl TokenFile {
    /// The file at a path; it need not be there.
    pub fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Makes a token and keeps its hash.
    pub fn create(&self, cluster: ClusterName, lives_seconds: i64, now: i64) -> Result<String, TokenError> {
        let token = fresh()?;
        let full = self.change(|tokens| {
            tokens.clean(now, |_, _| false);
            let full = tokens.tokens.len() >= TOKENS_MAX;
            if !full {
                tokens.add(cluster, &token, now.saturating_add(lives_seconds));
            }
            full
        })?;
        if full {
            return Err(TokenError::Full {
                path: self.path.clone(),
            });
        }
        Ok(token)
    }

    /// What is in it; nothing where there is none yet.
    pub(super) fn read(&self) -> Result<Tokens, TokenError> {
        let mut text = String::new();
        let limit = TOKENS_FILE_BYTES_MAX + 1;
        match File::open(&self.path).and_then(|file| file.take(limit).read_to_string(&mut text)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Tokens::default()),
            Err(source) => Err(self.failed(source)),
            Ok(bytes) if bytes as u64 >= limit => Err(self.malformed()),
            Ok(_) => serde_json::from_str(&text).map_err(|_| self.malformed()),
        }
    }

    /// When it was changed last; `None` where there is none.
    pub(super) fn changed(&self) -> Option<Timestamp> {
        let modified = fs::metadata(&self.path).and_then(|found| found.modified()).ok()?;
        Timestamp::try_from(modified).ok()
    }

    /// Changes it as a whole, while nobody else does.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut Tokens) -> T) -> Result<T, TokenError> {
        let failed = |source| self.failed(source);
        let lock = open_lock(&self.beside("lock")).map_err(failed)?;
        lock.lock().map_err(failed)?;
        let before = self.read()?;
        let mut tokens = before.clone();
        let outcome = change(&mut tokens);
        if tokens != before {
            self.write(&tokens).map_err(failed)?;
        }
        Ok(outcome)
    }

    fn write(&self, tokens: &Tokens) -> io::Result<()> {
        let new = self.beside("new");
        // Of a process that was killed, or a link of somebody who writes to the folder.
        match fs::remove_file(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = private().create_new(true).open(&new)?;
        file.write_all(serde_json::to_string(tokens)?.as_bytes())?;
        file.sync_all()?;
        fs::rename(new, &self.path)
    }

    fn beside(&self, ending: &str) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(".");
        name.push(ending);
        name.into()
    }

    fn failed(&self, source: io::Error) -> TokenError {
        TokenError::File {
            path: self.path.clone(),
            source,
        }
    }

    fn malformed(&self) -> TokenError {
        TokenError::Malformed {
            path: self.path.clone(),
        }
    }
}

/// The lock, which no link may have made elsewhere.
fn open_lock(path: &Path) -> io::Result<File> {
    match private().create_new(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        opened => return opened,
    }
    if fs::symlink_metadata(path)?.is_symlink() {
        return Err(io::Error::other("its lock is a link"));
    }
    private().open(path)
}

fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).mode(0o600);
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600;

    fn name(text: &str) -> ClusterName {
        ClusterName::parse(text).expect("a valid name")
    }

    fn key(number: u8) -> PublicKey {
        PublicKey::from_bytes([number; 32])
    }

    /// An agent that has this token.
    fn has(token: &str) -> impl Fn(&Digest) -> bool + use<> {
        let own = Digest::of_bytes(token.as_bytes());
        move |hash| *hash == own
    }

    fn file(folder: &tempfile::TempDir) -> TokenFile {
        TokenFile::new(folder.path().join("tokens"))
    }

    #[test]
    fn a_token_counts_once_for_its_own_cluster_and_until_it_expires() {
        let mut tokens = Tokens::default();
        tokens.add(name("oslo"), "a", HOUR);
        assert_eq!(
            tokens.spend(&name("rome"), &key(1), has("a"), 0),
            Worth::Nothing,
            "another's"
        );
        assert_eq!(
            tokens.spend(&name("oslo"), &key(1), has("b"), 0),
            Worth::Nothing,
            "a guess"
        );
        assert_eq!(
            tokens.spend(&name("oslo"), &key(1), has("a"), HOUR),
            Worth::Nothing,
            "too late"
        );
        assert_eq!(tokens.spend(&name("oslo"), &key(1), has("a"), 0), Worth::First);
        assert_eq!(
            tokens.spend(&name("oslo"), &key(2), has("a"), 1),
            Worth::Nothing,
            "used up"
        );
        assert_eq!(tokens.spend(&name("oslo"), &key(1), has("a"), 2 * HOUR), Worth::Again);
        assert_eq!(tokens.wanted(), BTreeMap::from([(name("oslo"), key(1))]));
    }

    #[test]
    fn a_token_that_was_used_is_used_after_a_restart_and_stands_in_no_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let token = file(&folder).create(name("oslo"), HOUR, 0).expect("it is made");
        let spend = |key| file(&folder).change(|tokens| tokens.spend(&name("oslo"), &key, has(&token), 1));
        assert_eq!(spend(key(1)).ok(), Some(Worth::First));
        assert_eq!(spend(key(2)).ok(), Some(Worth::Nothing), "by another process");
        assert_eq!(spend(key(1)).ok(), Some(Worth::Again));
        let kept = fs::read_to_string(folder.path().join("tokens")).expect("it is there");
        assert!(
            !kept.contains(&token) && !kept.contains(token.trim_start_matches(PREFIX)),
            "{kept}"
        );
    }

    #[test]
    fn what_expired_or_was_merged_leaves_nothing_behind() {
        let mut tokens = Tokens::default();
        for (cluster, token) in [("oslo", "a"), ("rome", "b"), ("bern", "c")] {
            tokens.add(name(cluster), token, HOUR);
        }
        tokens.spend(&name("oslo"), &key(1), has("a"), 0);
        tokens.spend(&name("bern"), &key(3), has("c"), 0);
        assert!(tokens.clean(HOUR, |cluster, found| *cluster == name("oslo") && *found == key(1)));
        assert_eq!(
            tokens.wanted(),
            BTreeMap::from([(name("bern"), key(3))]),
            "it waits for its merge"
        );
        assert!(tokens.clean(TOKEN_USED_KEPT_SECONDS, |_, _| false));
        assert_eq!(tokens, Tokens::default());
    }

    #[test]
    fn a_file_that_is_damaged_is_not_an_empty_one() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("tokens"), "{").expect("it is written");
        assert!(matches!(file(&folder).read(), Err(TokenError::Malformed { .. })));
        assert!(file(&folder).create(name("oslo"), HOUR, 0).is_err());
    }

    #[test]
    fn a_hundred_agents_at_once_each_use_their_own_token() {
        let folder = tempfile::tempdir().expect("a folder");
        let tokens: Vec<_> = (0..100)
            .map(|number| {
                file(&folder)
                    .create(name(&format!("c{number}")), HOUR, 0)
                    .expect("it is made")
            })
            .collect();
        std::thread::scope(|scope| {
            for (number, token) in (0_u8..).zip(&tokens) {
                let file = file(&folder);
                scope.spawn(move || {
                    let cluster = name(&format!("c{number}"));
                    let worth = file.change(|tokens| tokens.spend(&cluster, &key(number), has(token), 1));
                    assert_eq!(worth.ok(), Some(Worth::First));
                });
            }
        });
        assert_eq!(file(&folder).read().expect("it is whole").wanted().len(), 100);
    }

    #[test]
    fn a_link_in_the_folder_decides_nothing_that_is_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let victim = folder.path().join("victim");
        fs::write(&victim, "of somebody else").expect("it is written");
        std::os::unix::fs::symlink(&victim, folder.path().join("tokens.new")).expect("it is linked");
        file(&folder).create(name("oslo"), HOUR, 0).expect("it is made");
        assert_eq!(fs::read_to_string(&victim).ok().as_deref(), Some("of somebody else"));
        fs::remove_file(folder.path().join("tokens.lock")).expect("it is there");
        let nowhere = folder.path().join("nowhere");
        std::os::unix::fs::symlink(&nowhere, folder.path().join("tokens.lock")).expect("it is linked");
        assert!(file(&folder).create(name("oslo"), HOUR, 0).is_err());
        assert!(!nowhere.exists(), "nothing is made where a link leads");
    }
}
