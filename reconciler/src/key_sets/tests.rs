use super::*;

fn secret() -> SecretKey {
    SecretKey::generate().expect("there is randomness")
}

fn key(number: usize) -> PublicKey {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&number.to_be_bytes());
    PublicKey::from_bytes(bytes)
}

fn set<const N: usize>(numbers: [usize; N]) -> KeySet {
    KeySet(numbers.map(key).into())
}

/// A set that the key of this number vouches for.
fn by<const N: usize>(number: usize, numbers: [usize; N]) -> Vouched {
    Vouched {
        keys: set(numbers),
        by: [key(number)].into(),
    }
}

#[track_caller]
fn check(given: &[usize], sets: &[Vouched], told: KeySet, expected: Result<Vec<Vouched>, HubKeysError>) {
    let given: Vec<_> = given.iter().copied().map(key).collect();
    assert_eq!(believe(&given, sets, told), expected);
}

#[test]
fn an_agent_that_is_given_another_key_believes_no_more_what_the_old_one_vouched_for() {
    let (old, new) = ([key(1)], [key(5)]);
    // Somebody who had the old key for a moment vouched for one of his own, and that one for the next.
    let first = believe(&old, &[], set([1, 8])).expect("the old key vouches");
    let then = believe(&old, &first, set([8, 9])).expect("what was told vouches");
    assert_eq!(then, [by(1, [8, 9])]);
    assert_eq!(all(&old, &then), [1, 8, 9].map(key));
    assert_eq!(all(&new, &then), new);
    assert!(taken_up(&new, then.clone()).is_empty());
    check(&[5], &then, set([9]), Err(HubKeysError::Unknown));
    check(&[5], &then, set([5, 6]), Ok(vec![by(5, [5, 6])]));
    // While both are given, both count.
    assert_eq!(taken_up(&[key(1), key(5)], then.clone()), then);
    // What is kept without a word of it is taken up once, and then as by the keys of that time.
    let kept: Vec<Vouched> = serde_json::from_value(serde_json::json!([[key(3).to_string()]])).expect("of before");
    let taken = taken_up(&old, kept);
    assert_eq!(taken, [by(1, [3])]);
    assert!(taken_up(&new, taken).is_empty());
}

#[test]
fn keys_are_believed_only_from_a_hub_that_has_a_known_one() {
    check(&[1], &[], set([1, 2]), Ok(vec![by(1, [1, 2])]));
    check(&[1], &[by(1, [1, 2])], set([2, 3]), Ok(vec![by(1, [2, 3])]));
    check(&[1], &[], set([2, 3]), Err(HubKeysError::Unknown));
    check(&[1], &[by(1, [1, 2])], set([3]), Err(HubKeysError::Unknown));
}

#[test]
fn a_key_that_the_hub_has_no_more_is_forgotten_unless_a_person_gave_it() {
    check(&[1], &[by(1, [1, 2])], set([2]), Ok(vec![by(1, [2])]));
    check(&[1], &[by(1, [2, 3])], set([3]), Ok(vec![by(1, [3])]));
    check(&[1], &[by(1, [1, 2])], set([1]), Ok(Vec::new()));
    check(&[1, 2], &[], set([1, 2]), Ok(Vec::new()));
    assert_eq!(all(&[key(1)], &[by(1, [2, 3])]), [1, 2, 3].map(key));
}

#[test]
fn what_one_hub_says_leaves_another_hub_s_keys_alone() {
    check(
        &[1, 5],
        &[by(1, [1, 2])],
        set([5, 6]),
        Ok(vec![by(1, [1, 2]), by(5, [5, 6])]),
    );
    let mut sets = Vec::new();
    for number in 1..=3 * HUB_KEY_SETS_MAX {
        let given: Vec<_> = (1..=3 * HUB_KEY_SETS_MAX).map(key).collect();
        sets = believe(&given, &sets, set([number, 1_000 + number])).expect("it is known");
    }
    assert_eq!(sets.len(), HUB_KEY_SETS_MAX, "there is no end of hubs otherwise");
}

#[test]
fn of_two_agents_each_knows_what_the_other_was_told() {
    let (found, own) = ([by(1, [1, 2]), by(7, [7])], [by(1, [2, 3])]);
    assert_eq!(merge(&found, &own), [by(7, [7]), by(1, [2, 3])]);
    assert_eq!(merge(&[], &own), own);
    assert_eq!(merge(&found, &[]), found);
}

#[test]
fn an_answer_is_proven_by_each_key_for_one_question_and_one_list() {
    let (old, new) = (secret(), secret());
    let question = KeyQuestion::new([7; 32]);
    let answer = KeyAnswer::new(&question, [&old, &new].into_iter()).expect("it is signed");
    let proven = answer.proven(&question).expect("each key signed");
    assert_eq!(proven, KeySet([old.public(), new.public()].into()));
    let repeated = answer.proven(&KeyQuestion::new([8; 32]));
    assert_eq!(repeated, Err(HubKeysError::NotSigned(old.public())));
    let less = KeyAnswer {
        keys: answer.keys[..1].to_vec(),
        denied: None,
    };
    assert_eq!(
        less.proven(&question),
        Err(HubKeysError::NotSigned(old.public())),
        "none was left out"
    );
    let mut forged = answer.clone();
    forged.keys[1].key = secret().public().to_string();
    assert!(forged.proven(&question).is_err());
}

#[test]
fn which_hubs_are_denied_is_signed_for_one_question_and_about_those_that_were_asked_about() {
    let (hub, other, third) = (secret(), secret().public(), secret().public());
    let question = KeyQuestion::new([7; 32]).about(&[other, third]);
    let answer = KeyAnswer::new(&question, std::iter::once(&hub)).expect("it is signed");
    assert_eq!(answer.denied(&question), Ok(None), "an older hub");
    let denied = BTreeSet::from([other]);
    let answer = answer.with_denied(&question, &hub, &denied);
    assert_eq!(answer.denied(&question), Ok(Some(denied.clone())));
    assert!(answer.proven(&question).is_ok(), "its keys are proven as before");
    // Another question, a list of somebody in between, and a hub that nobody asked about.
    let again = KeyQuestion::new([8; 32]).about(&[other, third]);
    assert!(answer.denied(&again).is_err());
    let mut forged = answer.clone();
    forged.denied.as_mut().expect("it is there").hubs = vec![third.to_string()];
    assert!(forged.denied(&question).is_err());
    let of_one = KeyQuestion::new([7; 32]).about(&[third]);
    assert_eq!(answer.denied(&of_one), Ok(Some(BTreeSet::new())));
    let silent = KeyQuestion::new([7; 32]);
    let plain = KeyAnswer::new(&silent, std::iter::once(&hub)).expect("it is signed");
    assert_eq!(
        plain.clone().with_denied(&silent, &hub, &denied),
        plain,
        "an older agent"
    );
}

#[test]
fn what_is_no_list_of_keys_is_no_list() {
    let question = KeyQuestion::new([7; 32]);
    let secret = secret();
    let answer = |count| KeyAnswer::new(&question, std::iter::repeat_n(&secret, count)).expect("it is signed");
    for count in [0, 2, HUB_KEYS_MAX + 1] {
        let proven = answer(count).proven(&question);
        assert_eq!(proven, Err(HubKeysError::Count(count)));
    }
    let mut odd = answer(1);
    odd.keys[0].key = "ed25519:?".to_owned();
    assert_eq!(
        odd.proven(&question),
        Err(HubKeysError::NotAKey("ed25519:?".to_owned()))
    );
}

#[test]
fn nobody_is_made_to_sign_another_text() {
    let secret = secret();
    for nonce in ["", "AAAA", "flotilla lineage v1\nnorth\n"] {
        let question = KeyQuestion {
            nonce: nonce.to_owned(),
            hubs: Vec::new(),
        };
        let answer = KeyAnswer::new(&question, std::iter::once(&secret));
        assert_eq!(answer, Err(HubKeysError::Nonce), "{nonce}");
    }
}

#[test]
fn a_set_reads_back_as_it_was_kept() {
    let kept = serde_json::to_string(&by(1, [1, 2])).expect("it is JSON");
    assert_eq!(
        serde_json::from_str::<Vouched>(&kept).expect("it reads back"),
        by(1, [1, 2])
    );
    assert!(serde_json::from_str::<Vouched>("[]").is_err());
    assert!(serde_json::from_str::<Vouched>(r#"["x"]"#).is_err());
}
