use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, Time};
use render::keep::ANNOTATION_HELM_POLICY;
use render::model::ANNOTATION_PRUNE;

use super::*;

const EVIDENCE: Evidence<'static> = Evidence {
    lineage: "aaaa",
    sequence: 8,
    missing: 0,
};

fn key() -> ObjectKey {
    ObjectKey::new("v1", "ConfigMap", "shop", "settings")
}

fn entry() -> Entry {
    Entry {
        unit: UnitKey::new("shop", "web").expect("a valid unit"),
        api_version: "v1".to_owned(),
        uid: Some("uid-1".to_owned()),
        applied: None,
        resource_version: None,
        lineage: "aaaa".to_owned(),
        sequence: 7,
        orphan: false,
        replacing: false,
    }
}

fn proof() -> Proof {
    Proof {
        uid: "uid-1".to_owned(),
        resource_version: "41".to_owned(),
        managed: true,
        kept_by: None,
        going: None,
    }
}

fn going() -> Going {
    Going {
        since: 1_000,
        finalizers: vec!["example.org/held".to_owned()],
    }
}

#[track_caller]
fn check_kept(entry: &Entry, evidence: Evidence<'_>, live: &Live, reason: &str) {
    match decide(&key(), entry, &evidence, live) {
        Decision::Keep(said) => assert!(said.contains(reason), "{said:?} does not say {reason:?}"),
        other => panic!("a part of the proof is missing ({reason}), and yet: {other:?}"),
    }
}

#[test]
fn what_was_made_anew_just_before_the_process_ended_is_confirmed_and_what_somebody_else_made_is_kept() {
    let anew = Proof {
        uid: "uid-2".to_owned(),
        ..proof()
    };
    let noted = Entry {
        replacing: true,
        ..entry()
    };
    let confirmed = Decision::Confirm {
        uid: "uid-2".to_owned(),
    };
    assert_eq!(
        decide(&key(), &noted, &EVIDENCE, &Live::Present(anew.clone())),
        confirmed
    );
    let theirs = Live::Present(Proof {
        managed: false,
        ..anew.clone()
    });
    check_kept(&noted, EVIDENCE, &theirs, "another object has its name");
    check_kept(&entry(), EVIDENCE, &Live::Present(anew), "another object has its name");
}

#[test]
fn a_whole_proof_removes_exactly_the_object_that_was_looked_at() {
    let decision = decide(&key(), &entry(), &EVIDENCE, &Live::Present(proof()));
    let expected = Decision::Remove {
        uid: "uid-1".to_owned(),
        resource_version: "41".to_owned(),
    };
    assert_eq!(decision, expected);
}

#[test]
fn each_missing_part_of_the_proof_keeps_the_object() {
    let live = Live::Present(proof());
    check_kept(&entry(), Evidence { missing: 1, ..EVIDENCE }, &live, "not complete");
    check_kept(
        &entry(),
        Evidence {
            lineage: "bbbb",
            ..EVIDENCE
        },
        &live,
        "lineage",
    );
    check_kept(
        &entry(),
        Evidence {
            sequence: 7,
            ..EVIDENCE
        },
        &live,
        "not newer",
    );
    check_kept(
        &entry(),
        Evidence {
            sequence: 3,
            ..EVIDENCE
        },
        &live,
        "not newer",
    );
    let other_uid = Live::Present(Proof {
        uid: "uid-2".to_owned(),
        ..proof()
    });
    check_kept(&entry(), EVIDENCE, &other_uid, "UID");
    let unmanaged = Live::Present(Proof {
        managed: false,
        ..proof()
    });
    check_kept(&entry(), EVIDENCE, &unmanaged, "field manager");
    let annotated = Live::Present(Proof {
        kept_by: Some(ANNOTATION_PRUNE),
        ..proof()
    });
    check_kept(&entry(), EVIDENCE, &annotated, ANNOTATION_PRUNE);
    check_kept(
        &entry(),
        EVIDENCE,
        &Live::Unknown("kind is not served".to_owned()),
        "not served",
    );
}

#[test]
fn every_combination_with_a_missing_part_keeps_the_object() {
    for bits in 0_u32..1 << 6 {
        let lacks = |bit: u32| bits & (1 << bit) != 0;
        let evidence = Evidence {
            missing: usize::from(lacks(0)),
            lineage: if lacks(2) { "bbbb" } else { "aaaa" },
            sequence: if lacks(3) { 7 } else { 8 },
        };
        let entry = Entry {
            uid: (!lacks(4)).then(|| "uid-1".to_owned()),
            ..entry()
        };
        let uid = if lacks(5) { "uid-2" } else { "uid-1" };
        let live = Live::Present(Proof {
            uid: uid.to_owned(),
            managed: !lacks(1),
            ..proof()
        });
        let removed = matches!(decide(&key(), &entry, &evidence, &live), Decision::Remove { .. });
        assert_eq!(removed, bits == 0, "parts that are missing: {bits:07b}");
    }
}

#[test]
fn an_object_that_is_gone_or_going_is_not_deleted_again() {
    assert_eq!(decide(&key(), &entry(), &EVIDENCE, &Live::Gone), Decision::Forget);
    let deleting = Live::Present(Proof {
        going: Some(going()),
        ..proof()
    });
    assert_eq!(
        decide(&key(), &entry(), &EVIDENCE, &deleting),
        Decision::Removing(going())
    );
}

#[test]
fn an_intent_is_confirmed_before_it_counts_and_forgotten_when_nothing_came_of_it() {
    let intent = Entry { uid: None, ..entry() };
    let decide = |live| decide(&key(), &intent, &EVIDENCE, &live);
    assert_eq!(
        decide(Live::Present(proof())),
        Decision::Confirm {
            uid: "uid-1".to_owned()
        }
    );
    assert_eq!(
        decide(Live::Present(Proof {
            managed: false,
            ..proof()
        })),
        Decision::Forget
    );
    assert_eq!(decide(Live::Gone), Decision::Forget);
}

#[test]
fn namespaces_that_a_cluster_needs_are_never_removed() {
    for name in PROTECTED_NAMESPACES {
        let key = ObjectKey::new("v1", "Namespace", "", name);
        let decision = decide(&key, &entry(), &EVIDENCE, &Live::Present(proof()));
        assert!(matches!(decision, Decision::Keep(_)), "{name}: {decision:?}");
    }
}

#[test]
fn a_namespace_waits_for_its_objects_and_a_definition_for_its_kind() {
    let plural = |key: &ObjectKey| (key.kind == "Widget").then(|| "widgets".to_owned());
    let others = [key(), ObjectKey::new("x.io/v1", "Widget", "shop", "a")];
    let namespace = ObjectKey::new("v1", "Namespace", "", "shop");
    assert_eq!(dependant(&namespace, &others, plural), Some(&others[0]));
    let other_namespace = ObjectKey::new("v1", "Namespace", "", "other");
    assert_eq!(dependant(&other_namespace, &others, plural), None);
    let crd = |name| ObjectKey::new("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", name);
    assert_eq!(dependant(&crd("widgets.x.io"), &others, plural), Some(&others[1]));
    assert_eq!(dependant(&crd("gadgets.x.io"), &others, plural), None);
    assert_eq!(dependant(&crd("gadgets.x.io"), &others, |_| None), Some(&others[1]));
}

#[test]
fn the_proof_is_read_from_metadata() {
    let managed = |manager: &str| ManagedFieldsEntry {
        manager: Some(manager.to_owned()),
        ..ManagedFieldsEntry::default()
    };
    let metadata = ObjectMeta {
        uid: Some("uid-1".to_owned()),
        resource_version: Some("41".to_owned()),
        annotations: Some([(ANNOTATION_HELM_POLICY.to_owned(), "keep".to_owned())].into()),
        managed_fields: Some(vec![managed("kubectl"), managed(FIELD_MANAGER)]),
        deletion_timestamp: Some(Time(jiff::Timestamp::UNIX_EPOCH)),
        finalizers: Some(vec!["example.org/held".to_owned()]),
        ..ObjectMeta::default()
    };
    let expected = Proof {
        kept_by: Some(ANNOTATION_HELM_POLICY),
        going: Some(Going { since: 0, ..going() }),
        ..proof()
    };
    assert_eq!(Proof::of(&metadata), expected);
    let foreign = ObjectMeta {
        managed_fields: Some(vec![managed("flotilla-lookalike")]),
        ..ObjectMeta::default()
    };
    assert!(!Proof::of(&foreign).managed);
}

fn annotated(pairs: &[(&str, &str)]) -> Proof {
    let annotations = pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Proof::of(&ObjectMeta {
        annotations: Some(annotations.collect()),
        ..ObjectMeta::default()
    })
}

#[test]
fn the_words_that_people_type_keep_an_object() {
    for (name, value) in [
        (ANNOTATION_PRUNE, "disabled"),
        (ANNOTATION_HELM_POLICY, "keep"),
        ("kustomize.toolkit.fluxcd.io/prune", "disabled"),
        ("kustomize.toolkit.fluxcd.io/prune", "Disabled"),
        ("argocd.argoproj.io/sync-options", "Prune=false"),
        ("argocd.argoproj.io/sync-options", "ServerSideApply=true, Prune=false"),
        ("argocd.argoproj.io/sync-options", "Delete=false"),
    ] {
        assert_eq!(annotated(&[(name, value)]).kept_by, Some(name), "{name}: {value}");
    }
    for (name, value) in [
        (ANNOTATION_PRUNE, "enabled"),
        (ANNOTATION_HELM_POLICY, "delete"),
        ("argocd.argoproj.io/sync-options", "Prune=true"),
        ("argocd.argoproj.io/sync-options", "PruneLast=true"),
        ("kustomize.toolkit.fluxcd.io/reconcile", "disabled"),
    ] {
        assert_eq!(annotated(&[(name, value)]).kept_by, None, "{name}: {value}");
    }
}

#[test]
fn nothing_in_the_namespace_of_the_applier_is_ever_removed() {
    let own = ObjectKey::new("v1", "Secret", NAMESPACE, "sops-age");
    let decision = decide(&own, &entry(), &EVIDENCE, &Live::Present(proof()));
    assert!(matches!(decision, Decision::Keep(_)), "{decision:?}");
    let other = ObjectKey::new("v1", "Secret", "kube-system", "ours");
    let decision = decide(&other, &entry(), &EVIDENCE, &Live::Present(proof()));
    assert!(
        matches!(decision, Decision::Remove { .. }),
        "what we put beside others goes again: {decision:?}"
    );
}

#[test]
fn what_stays_as_nobodys_loses_its_marks_and_is_never_deleted() {
    let orphan = Entry {
        orphan: true,
        ..entry()
    };
    let decide = |live| decide(&key(), &orphan, &EVIDENCE, &live);
    let expected = Decision::Orphan {
        uid: "uid-1".to_owned(),
        resource_version: "41".to_owned(),
    };
    assert_eq!(decide(Live::Present(proof())), expected);
    let unmanaged = Proof {
        managed: false,
        ..proof()
    };
    assert_eq!(
        decide(Live::Present(unmanaged)),
        expected,
        "its marks may be there all the same"
    );
    let other = Proof {
        uid: "uid-2".to_owned(),
        ..proof()
    };
    assert_eq!(
        decide(Live::Present(other)),
        Decision::Forget,
        "another object has no marks of ours"
    );
    assert_eq!(decide(Live::Gone), Decision::Forget);
    for bits in 0_u32..1 << 3 {
        let lacks = |bit: u32| bits & (1 << bit) != 0;
        let evidence = Evidence {
            missing: usize::from(lacks(0)),
            lineage: if lacks(1) { "bbbb" } else { "aaaa" },
            sequence: if lacks(2) { 7 } else { 8 },
        };
        let decision = super::decide(&key(), &orphan, &evidence, &Live::Present(proof()));
        assert!(!matches!(decision, Decision::Remove { .. }), "{decision:?}");
    }
}

#[test]
fn a_removal_that_a_finalizer_holds_has_a_name_after_a_while() {
    let patience = i64::try_from(FINALIZER_PATIENCE.as_secs()).expect("some minutes");
    assert_eq!(going().stuck(1_000 + patience - 1), None);
    let said = going().stuck(1_000 + patience).expect("it takes too long");
    assert_eq!(
        said,
        "its removal is held by finalizer example.org/held since 1970-01-01T00:16:40Z"
    );
    let nobody = Going {
        finalizers: Vec::new(),
        ..going()
    };
    let said = nobody.stuck(1_000 + patience).expect("it takes too long");
    assert_eq!(
        said,
        "it is being deleted since 1970-01-01T00:16:40Z, and no finalizer of its own holds it"
    );
}
