//! Every real part says its version.

use flotilla_tests::parts;

#[test]
fn every_real_part_is_there_and_says_its_version() {
    for (name, version) in parts::versions() {
        println!("{name} {version}");
        assert!(version.contains('.'), "{name} says a version, not {version:?}");
    }
}
