//! `flotilla drift` where nothing differs, where nothing is known of what is asked for, and where nobody answers.

use crate::kubectl::Hub;

#[test]
fn drift_tells_no_difference_from_no_answer_by_its_exit_code() {
    let mut hub = Hub::start();
    let check = |hub: &Hub, arguments: &[&str], code: i32, stderr: &str| {
        let output = hub.flotilla(&[&["drift"], arguments].concat());
        assert_eq!(output.code(), Some(code), "{arguments:?}: {output:?}");
        assert_eq!(output.stderr, stderr, "{arguments:?}");
        output.stdout
    };
    for arguments in [
        &[][..],
        &["shop/web"],
        &["--cluster", "a"],
        &["shop/web", "--cluster", "a", "-o", "wide"],
    ] {
        assert_eq!(check(&hub, arguments, 0, "No drift found.\n"), "");
    }
    // Data is data, also where nothing differs.
    assert_eq!(
        check(&hub, &["-o", "json"], 0, "No drift found.\n"),
        "{\n  \"items\": []\n}\n"
    );
    assert_eq!(check(&hub, &["-o", "yaml"], 0, "No drift found.\n"), "items: []\n");
    assert_eq!(
        check(&hub, &["export", "shop/web", "--cluster", "a"], 0, "No drift found.\n"),
        ""
    );
    let subscription =
        "error: subscription shop/wbe not found\nhint: `flotilla get subscriptions` lists those that there are\n";
    check(&hub, &["shop/wbe"], 2, subscription);
    check(&hub, &["export", "shop/wbe", "--cluster", "a"], 2, subscription);
    let cluster = "error: cluster paris not found\nhint: `flotilla get managedclusters` lists those that there are\n";
    check(&hub, &["--cluster", "paris"], 2, cluster);
    check(&hub, &["shop/web", "--cluster", "paris"], 2, cluster);
    check(&hub, &["export", "shop/web", "--cluster", "paris"], 2, cluster);
    hub.kill();
    let away = hub.flotilla(&["drift"]);
    assert_eq!((away.code(), away.stdout.as_str()), (Some(69), ""), "{away:?}");
}
