//! The journal: which keys of hubs an agent keeps in it, beside those that it was given, and what it was delivered.

use tunnel::PublicKey;

use super::{Patient, Step, Verdict};
use crate::agent::journal::Journal;
use crate::agent::place::JournalPlace;
use crate::agent::secrets::SecretJournal;
use crate::agent::store::{Kept, Store as _};
use crate::apply::Tenure;
use crate::fault::line;
use crate::key_sets;

/// The keys that are believed, as by an agent that begins now, and what is kept; `None` where that cannot be read. An agent
/// that is at work is not disturbed.
pub(super) async fn examine(patient: &Patient) -> (Vec<PublicKey>, Option<Kept>, Step) {
    let kept = match &patient.journal {
        JournalPlace::Folder(folder) => {
            let kept = Journal::look_into(folder.clone()).await;
            kept.map_err(|error| line(&error))
        }
        JournalPlace::Secrets { namespace, prefix } => in_secrets(patient, namespace, prefix).await,
    };
    match kept {
        Ok(kept) => {
            let told = key_sets::taken_up(&patient.hub_keys, kept.hub_keys.clone());
            let all = key_sets::all(&patient.hub_keys, &told);
            let more = all.len().saturating_sub(patient.hub_keys.len());
            let given = patient.hub_keys.len();
            let what = format!("keys of hubs: {given} given, and {more} more that they told");
            (all, Some(kept), Step::good("journal", what))
        }
        Err(what) => {
            let hint = "see that --journal names what the agent keeps, and that it may be read".to_owned();
            let verdict = Verdict::Bad { what, hint };
            let name = "journal";
            (patient.hub_keys.clone(), None, Step { name, verdict })
        }
    }
}

async fn in_secrets(patient: &Patient, namespace: &str, prefix: &str) -> Result<Kept, String> {
    let client = patient.client.clone()?;
    let cluster = patient.cluster.clone();
    let journal = SecretJournal::new(client, namespace, prefix, cluster, Tenure::default());
    journal.read().await.map_err(|error| line(&error))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use render::ClusterName;
    use tunnel::SecretKey;

    use super::*;
    use crate::agent::{Policy, Way};

    fn key() -> SecretKey {
        SecretKey::generate().expect("random bytes")
    }

    #[tokio::test]
    async fn a_hub_is_dialled_with_the_keys_that_its_agent_keeps() {
        let folder = tempfile::tempdir().expect("a folder");
        let (given, told) = (key().public(), key().public());
        let patient = Patient {
            cluster: ClusterName::parse("oslo").expect("a name"),
            hubs: Vec::new(),
            way: Way::default(),
            hub_keys: vec![given],
            key: Arc::new(key()),
            journal: JournalPlace::Folder(folder.path().to_owned()),
            policy: Policy::default(),
            client: Err("there is none".to_owned()),
        };
        assert_eq!(examine(&patient).await.0, [given], "there is no journal yet");
        let file = folder.path().join("hub-keys.json");
        let sets = serde_json::json!([[given.to_string(), told.to_string()]]);
        std::fs::write(&file, sets.to_string()).expect("it is writable");
        let (mut keys, _, step) = examine(&patient).await;
        let mut expected = [given, told];
        keys.sort_unstable();
        expected.sort_unstable();
        assert_eq!(keys, expected);
        assert!(matches!(step.verdict, Verdict::Good(_)), "{step:?}");
        std::fs::write(&file, "[").expect("it is writable");
        let (keys, kept, step) = examine(&patient).await;
        assert_eq!(keys, [given], "unreadable is not empty, and is told");
        assert!(kept.is_none());
        assert!(matches!(step.verdict, Verdict::Bad { .. }), "{step:?}");
    }
}
