//! Keys and what is signed with them.

use super::{KeyError, Proof, PublicKey, Role, SecretKey, TokenProof};
use crate::frame::{Nonce, Token};

fn key() -> SecretKey {
    SecretKey::generate().expect("the system has random bytes")
}

/// A folder of its own, removed at the end.
struct Folder(std::path::PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("flotilla-tunnel-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("the system has a folder for such things");
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_public_key_survives_its_text_form() {
    let public = key().public();
    let text = public.to_string();
    assert!(text.starts_with("ed25519:") && text.len() == 52, "{text}");
    assert_eq!(text.parse::<PublicKey>().expect("its own text"), public);
}

#[test]
fn other_texts_are_no_keys() {
    for text in [
        "",
        "ed25519:",
        "ed25519:AAAA",
        "rsa:AAAA",
        "ed25519:!!!!",
        "ssh-ed25519 AAAA",
    ] {
        assert!(
            matches!(text.parse::<PublicKey>(), Err(KeyError::NotAKey { .. })),
            "{text:?}"
        );
    }
}

#[test]
fn a_saved_key_is_its_owners_alone_and_loads_again() {
    let folder = Folder::new("saved");
    let path = folder.0.join("agent.pem");
    let key = key();
    key.save(&path).expect("a new file");
    assert_eq!(SecretKey::load(&path).expect("what was saved").public(), key.public());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(&path).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

#[test]
fn an_existing_key_is_never_overwritten() {
    let folder = Folder::new("kept");
    let path = folder.0.join("agent.pem");
    let first = key();
    first.save(&path).expect("a new file");
    assert!(matches!(key().save(&path), Err(KeyError::Write { .. })));
    assert_eq!(SecretKey::load(&path).expect("still there").public(), first.public());
}

#[test]
fn a_key_of_another_tool_without_its_public_half_loads() {
    // RFC 8410, section 10.3: a PKCS#8 version 1 key and the public key it belongs to.
    let pem = b"-----BEGIN PRIVATE KEY-----\n\
        MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n\
        -----END PRIVATE KEY-----\n";
    let loaded = SecretKey::from_pem(pem).expect("a sound key");
    let expected = "ed25519:Gb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=";
    assert_eq!(loaded.public().to_string(), expected);
    assert!(crate::tls::server_config(&loaded).is_ok(), "and makes a certificate");
}

#[test]
fn files_that_hold_no_key_are_told_from_files_that_are_missing() {
    let folder = Folder::new("wrong");
    let path = folder.0.join("agent.pem");
    assert!(matches!(SecretKey::load(&path), Err(KeyError::Read { .. })));
    for content in [&b""[..], b"not a key", &[0xff; 20_000]] {
        std::fs::write(&path, content).expect("writable");
        assert!(matches!(SecretKey::load(&path), Err(KeyError::NotAKeyFile { .. })));
    }
}

fn proof(cluster: &str) -> Proof<'_> {
    Proof {
        hub_nonce: Nonce([1; 32]),
        agent_nonce: Nonce([2; 32]),
        cluster,
        epoch: 7,
        exporter: Some([3; 32]),
        server_id: "hub-0",
        endpoints: &[],
    }
}

#[test]
fn a_token_is_shown_for_one_key_in_one_handshake_and_told_to_nobody() {
    let (agent, thief) = (key().public(), key().public());
    let token = Token("flotilla-join-word".to_owned());
    let hash = |text: &str| {
        let mut hash = [0; 32];
        hash.copy_from_slice(ring::digest::digest(&ring::digest::SHA256, text.as_bytes()).as_ref());
        hash
    };
    let shown = TokenProof::new(&token, &proof("north"), &agent);
    assert!(shown.is_of(&hash(&token.0)) && !shown.is_of(&hash("another word")));
    let said = shown.text();
    let heard = |proof: &Proof<'_>, key: &PublicKey| {
        let heard = TokenProof::heard(&said, proof, key).expect("something was said");
        heard.is_of(&hash(&token.0))
    };
    assert!(heard(&proof("north"), &agent));
    assert!(!heard(&proof("north"), &thief), "whoever heard it has another key");
    let again = Proof {
        hub_nonce: Nonce([9; 32]),
        ..proof("north")
    };
    assert!(!heard(&again, &agent), "nor in another handshake");
    assert!(!said.contains(&token.0));
    assert!(TokenProof::heard("", &proof("north"), &agent).is_none());
}

#[test]
fn a_proof_holds_for_its_own_circumstances_only() {
    let (agent, other) = (key(), key());
    let good = proof("north");
    let signature = good.sign(Role::Agent, &agent);
    assert!(good.verify(Role::Agent, &agent.public(), &signature));
    assert!(!good.verify(Role::Agent, &other.public(), &signature), "another key");
    assert!(
        !good.verify(Role::Hub, &agent.public(), &signature),
        "a reflected proof"
    );
    assert!(
        !good.verify(Role::Agent, &agent.public(), &signature[..63]),
        "a cut one"
    );
    let elsewhere = ["wss://elsewhere.example".to_owned()];
    let others = [
        (
            "a replayed one, hub",
            Proof {
                hub_nonce: Nonce([9; 32]),
                ..good
            },
        ),
        (
            "a replayed one, agent",
            Proof {
                agent_nonce: Nonce([9; 32]),
                ..good
            },
        ),
        ("another name", proof("south")),
        ("another epoch", Proof { epoch: 8, ..good }),
        (
            "another TLS connection",
            Proof {
                exporter: Some([9; 32]),
                ..good
            },
        ),
        (
            "another replica of the hub",
            Proof {
                server_id: "hub-1",
                ..good
            },
        ),
        (
            "other addresses of hubs",
            Proof {
                endpoints: &elsewhere,
                ..good
            },
        ),
        ("a TLS connection ended elsewhere", Proof { exporter: None, ..good }),
    ];
    for (what, circumstances) in others {
        assert!(
            !circumstances.verify(Role::Agent, &agent.public(), &signature),
            "{what}"
        );
    }
}

#[test]
fn no_two_circumstances_share_a_text() {
    let swapped = Proof {
        hub_nonce: Nonce([2; 32]),
        agent_nonce: Nonce([1; 32]),
        ..proof("north")
    };
    assert_ne!(proof("north").text(Role::Agent), swapped.text(Role::Agent));
    let none = Proof {
        exporter: None,
        ..proof("north")
    };
    assert_ne!(none.text(Role::Agent), proof("north").text(Role::Agent));
}
