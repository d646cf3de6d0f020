//! What goes by a hop when one of the two hubs ends.

use tokio::time::pause;
use tunnel::TunnelStream;

use super::*;
use crate::hub::ending_tests::pass;
use crate::limits::DRAIN_TIMEOUT;

const SECOND: Duration = Duration::from_secs(1);

/// Two hubs, and a request by a hop of which the last word is not said yet.
struct UnderWay {
    holder: Holder,
    hearer: Hearer,
    stream: TunnelStream,
    /// The way by which it went.
    opener: Opener,
    open: Open,
}

async fn under_way() -> UnderWay {
    let own = key();
    let holder = Holder::start(vec![own.public()]).await;
    let mut hearer = Hearer::start(&holder, own, &holder.oslo);
    assert_eq!(hearer.told().await.0, ["oslo"]);
    let door = hearer.dispatch.door(&cluster("oslo")).expect("oslo is elsewhere");
    let (opener, open) = door.tunnel(open("")).expect("a connection stands");
    let mut stream = opener.request(open.clone()).await.expect("it is taken");
    write_message(&mut stream, &caller("ada")).await.expect("it is carried");
    stream.write_all(PODS.as_bytes()).await.expect("it is carried");
    UnderWay {
        holder,
        hearer,
        stream,
        opener,
        open,
    }
}

#[tokio::test]
async fn what_goes_by_a_hop_through_a_hub_that_ends_comes_to_its_end_and_nothing_new_begins() {
    let UnderWay {
        mut holder,
        mut hearer,
        mut stream,
        opener,
        open,
    } = under_way().await;
    holder.stop.cancel();
    hearer.lost().await;
    assert!(
        hearer.dispatch.door(&cluster("oslo")).is_none(),
        "nobody is sent there any more"
    );
    assert!(
        !holder.listening.is_finished(),
        "it waits for what is under way, which is part of what it counts"
    );
    let refused = opener.begin(&open).err().map(|error| error.code);
    assert_eq!(refused, Some(OpenCode::Gone), "what begins is told to go elsewhere");
    let mut answer = String::new();
    let asked = async {
        stream.write_all(b"rest").await?;
        stream.shutdown().await?;
        stream.read_to_string(&mut answer).await
    };
    timeout(SOON, asked).await.expect("it ends").expect("in good order");
    assert!(answer.ends_with(&format!("{PODS}rest")), "{answer}");
    timeout(SOON, &mut holder.listening)
        .await
        .expect("then it has ended")
        .expect("without a panic");
    assert_eq!(holder.lines(1).await[0]["close"], "done");
}

#[tokio::test]
async fn what_goes_by_a_hop_and_never_ends_is_cut_off_in_time_and_written_down() {
    let UnderWay {
        mut holder,
        mut hearer,
        mut stream,
        ..
    } = under_way().await;
    pause();
    holder.stop.cancel();
    hearer.lost().await;
    pass(DRAIN_TIMEOUT - SECOND).await;
    assert!(!holder.listening.is_finished(), "it may take so long");
    pass(SECOND * 3).await;
    timeout(SOON, &mut holder.listening)
        .await
        .expect("and no longer")
        .expect("without a panic");
    let mut rest = Vec::new();
    let read = timeout(SOON, stream.read_to_end(&mut rest)).await;
    assert!(read.expect("it is over").is_err(), "it is no whole answer");
    assert_eq!(holder.lines(2).await[1]["close"], "gone");
}
