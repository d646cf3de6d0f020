use super::*;

fn policy(allowed: &[&str]) -> Policy {
    let allowed = allowed.iter().map(|allow| allow.parse().expect("a rule"));
    Policy::of(allowed.collect())
}

#[track_caller]
fn check(allowed: &[&str], mode: SyncMode, expected: &str) {
    let policy = policy(allowed);
    let classes = [
        TargetClass::ApiServer,
        TargetClass::Interactive,
        TargetClass::Push,
        TargetClass::Dial,
        TargetClass::Look,
    ];
    let words = classes.iter().filter_map(|class| policy.admits(mode, class).ok());
    let found: Vec<_> = words.map(Lent::word).collect();
    assert_eq!(found.join(" "), expected, "{allowed:?} in {mode:?}");
}

#[test]
fn what_is_not_listed_is_refused_and_a_mode_only_takes_away() {
    let all = ["read", "interactive", "push", "dial:db.example:5432"];
    check(&[], SyncMode::Dual, "read look");
    check(&["none"], SyncMode::Dual, "");
    check(&["none"], SyncMode::Push, "");
    check(&["look"], SyncMode::Push, "look");
    check(&["interactive"], SyncMode::Dual, "interactive");
    check(&["push"], SyncMode::Dual, "look");
    check(&["push"], SyncMode::Push, "push look");
    check(&[], SyncMode::Push, "read look");
    check(&all, SyncMode::Dual, "read interactive dial look");
    check(&all, SyncMode::Push, "read interactive push dial look");
    check(&all, SyncMode::Pull, "look");
    for class in [
        TargetClass::Unknown("root".into()),
        TargetClass::Peer,
        TargetClass::Keys,
    ] {
        assert!(policy(&all).admits(SyncMode::Push, &class).is_err(), "{class:?}");
    }
}

#[track_caller]
fn dials(allowed: &[&str], target: &str, address: &str, expected: bool) {
    let target: Target = target.parse().expect("a target");
    let address: IpAddr = address.parse().expect("an address");
    let found = policy(allowed).admits_address(&target, address, false);
    assert_eq!(found, expected, "{allowed:?} for {target} at {address}");
}

#[test]
fn an_address_is_judged_where_it_is_dialled() {
    let name = ["dial:db.example:5432"];
    dials(&name, "db.example:5432", "10.0.0.7", true);
    dials(&name, "DB.example.:5432", "10.0.0.7", true);
    dials(&name, "db.example:5433", "10.0.0.7", false);
    dials(&name, "other.example:5432", "10.0.0.7", false);
    dials(&name, "10.0.0.7:5432", "10.0.0.7", false);
    let network = ["dial:10.0.0.0/8:8000-8100"];
    dials(&network, "any.example:8080", "10.1.2.3", true);
    dials(&network, "10.1.2.3:8100", "10.1.2.3", true);
    dials(&network, "any.example:8080", "11.1.2.3", false);
    dials(&network, "any.example:8101", "10.1.2.3", false);
    let service = ["service:shop/web:80"];
    dials(&service, "service:shop/web:80", "10.96.0.9", true);
    dials(&service, "service:shop/api:80", "10.96.0.9", false);
    dials(&["dial:[fd00::]/8:443"], "[fd00::7]:443", "fd00::7", true);
}

#[test]
fn a_guarded_address_is_dialled_only_where_it_is_listed_itself() {
    for address in [
        "127.0.0.1",
        "169.254.169.254",
        "::ffff:10.0.0.7",
        "fd00:ec2::254",
        "0.0.0.0",
    ] {
        dials(&["dial:db.example:80"], "db.example:80", address, false);
        dials(&["dial:0.0.0.0/0:80", "dial:::/0:80"], "db.example:80", address, false);
        let exact = format!("dial:[{address}]:80");
        dials(&[&exact], "db.example:80", address, true);
    }
    let target: Target = "db.example:80".parse().expect("a target");
    let own: IpAddr = "10.0.0.7".parse().expect("an address");
    let wide = policy(&["dial:db.example:80", "dial:10.0.0.0/8:80"]);
    assert!(!wide.admits_address(&target, own, true), "it is this machine's");
    assert!(policy(&["dial:10.0.0.7:80"]).admits_address(&target, own, true));
}

#[test]
fn what_is_no_rule_is_refused_with_what_it_could_be() {
    for text in [
        "",
        "reads",
        "dial",
        "dial:",
        "dial:db.example",
        "dial:db.example:0",
        "dial:db.example:+80",
        "dial:db.example:90-80",
        "dial:127.1:80",
        "dial:0x7f000001:80",
        "dial:2130706433:80",
        "dial:a b:80",
        "dial:10.0.0.0/33:80",
        "service:web:80",
        "service:a/b/c:80",
    ] {
        assert!(text.parse::<Allow>().is_err(), "{text:?}");
    }
    for text in [
        "127.1:80",
        "0177.0.0.1:80",
        "a..b:80",
        "[::1:80",
        "user@host:80",
        "host/path:80",
    ] {
        assert!(text.parse::<Target>().is_err(), "{text:?}");
    }
}
