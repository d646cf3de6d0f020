//! Units that are large, and too large.

use super::support::*;

/// Objects of some hundred KiB each, of which a unit has many.
fn write_parts(fleet: &Fleet, bytes: usize, text: &str) {
    const PART: usize = 900 << 10;
    for number in 0..bytes.div_ceil(PART) {
        let filler = "x".repeat(PART);
        let object = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{namespace: default, name: part-{number}}}\ndata:\n  text: {text}\n  filler: {filler}\n"
        );
        fleet
            .repository
            .write(&format!("feeds/large/part-{number}.yaml"), object);
    }
}

/// A kind whose objects may be larger than a ConfigMap may.
const BLOBS: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: blobs.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Blob, plural: blobs, singular: blob, listKind: BlobList}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
";

#[test]
fn a_unit_of_20_mib_arrives_and_one_above_the_limit_leaves_what_is_there() {
    let fleet = Fleet::start(1);
    write_parts(&fleet, 20 << 20, "one");
    let blob = format!(
        "apiVersion: example.com/v1\nkind: Blob\nmetadata: {{namespace: default, name: blob}}\nspec: {{filler: {}}}\n",
        "y".repeat(1_400 << 10)
    );
    let files = [
        ("subscriptions/large.yaml", subscription("large")),
        ("feeds/large/blobs.yaml", BLOBS.to_owned()),
        ("feeds/large/blob.yaml", blob),
        ("subscriptions/web.yaml", subscription("web")),
        ("feeds/web/web.yaml", config_map("web", "one")),
    ];
    fleet.push(
        "a large unit",
        &files.each_ref().map(|(path, text)| (*path, text.as_str())),
    );
    let last = (20_usize << 20).div_ceil(900 << 10) - 1;
    for number in 0..=last {
        fleet.until_text("site-1", &format!("part-{number}"), "one");
    }
    fleet.until("all of it is applied", |state| {
        let reports: Vec<_> = state
            .clusters
            .values()
            .filter_map(|known| known.report.as_ref())
            .collect();
        let counts: Vec<_> = reports
            .iter()
            .flat_map(|report| report.units.values())
            .map(|unit| unit.state)
            .collect();
        let is_applied = |state: &reconciler::wire::UnitState| *state == reconciler::wire::UnitState::Applied;
        if counts.len() == 2 && counts.iter().all(is_applied) {
            Ok(())
        } else {
            Err(format!("{reports:?}"))
        }
    });

    write_parts(&fleet, 62 << 20, "two");
    fleet.push("too large", &[("feeds/web/web.yaml", &config_map("web", "two"))]);
    fleet.until_text("site-1", "web", "two");
    fleet.until_settled();
    let findings = fleet.state().findings;
    let told: Vec<_> = findings.iter().filter(|finding| finding.is_error()).collect();
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(
        (told[0].reason.as_str(), told[0].file.as_str()),
        ("UnitTooLarge", "subscriptions/large.yaml")
    );
    assert!(
        told[0].message.contains("one unit may take 60 MiB") && !told[0].hint.is_empty(),
        "{told:?}"
    );
    for number in 0..=last {
        assert_eq!(
            fleet.text("site-1", &format!("part-{number}")).as_deref(),
            Some("one"),
            "the last good state stays"
        );
    }
    assert_eq!(
        fleet.text("site-1", &format!("part-{}", last + 1)),
        None,
        "and nothing of the new one came"
    );
}
