//! Daemons killed in the middle of a transfer resume it.

use crate::support::{Building, room};
use ncmesh_node::api::types::State;

const LENGTH: usize = 2_300_000;

#[tokio::test]
async fn a_killed_receiver_keeps_what_it_has_and_holds_nobody_up() {
    let _room = room().await;
    let mut mesh = Building::start().await;
    let victim = mesh.node("n05");
    let id = mesh.send("photo", LENGTH).await;
    let before = mesh.wait(victim, &id, |t| t.values.bytes > LENGTH as u64 / 4).await;
    mesh.lab.kill(victim).await.unwrap();
    let other = mesh.node("n09");
    mesh.wait(other, &id, |t| t.state == State::Complete).await;
    mesh.lab.restart(victim).await.unwrap();
    // Generations in the file when the daemon was killed are still there; only the one in progress
    // is received again.
    let after = mesh.wait(victim, &id, |_| true).await;
    assert!(after.values.bytes >= before.values.bytes, "{after:?} after {before:?}");
    let sent = mesh.wait_for_all("photo", &id).await;
    let resumed = mesh.wait(victim, &id, |t| t.state == State::Complete).await;
    let packets = LENGTH as u64 / 1300;
    let innovative = resumed.values.innovative.unwrap();
    assert!(innovative < packets * 7 / 8, "{innovative} of {packets}");
    assert_eq!(sent.receivers.len(), 4);
    mesh.lab.stop().await.unwrap();
}

#[tokio::test]
async fn a_killed_forwarder_is_replaced_and_used_again() {
    let _room = room().await;
    let mut mesh = Building::start().await;
    let id = mesh.send("photo", LENGTH).await;
    let far = mesh.node("n20");
    let from = mesh.from;
    mesh.wait(far, &id, |t| t.values.bytes > 0).await;
    let forwarders = mesh.lab.transfer(from, &id).await.unwrap().forwarders;
    let inner = |name: &String| !mesh.to.contains(&mesh.node(name));
    let victim = mesh.node(forwarders.iter().find(|name| inner(name)).expect("a forwarder"));
    mesh.lab.kill(victim).await.unwrap();
    let now = mesh.lab.transfer(far, &id).await.unwrap().values.bytes;
    mesh.wait(far, &id, |t| t.values.bytes > now + LENGTH as u64 / 8).await;
    mesh.lab.restart(victim).await.unwrap();
    mesh.wait_for_all("photo", &id).await;
    mesh.lab.stop().await.unwrap();
}

#[tokio::test]
async fn a_killed_source_sends_on() {
    let _room = room().await;
    let mut mesh = Building::start().await;
    let id = mesh.send("photo", LENGTH).await;
    let source = mesh.from;
    let near = mesh.node("n05");
    let before = mesh.wait(near, &id, |t| t.values.bytes > LENGTH as u64 / 4).await;
    mesh.lab.kill(source).await.unwrap();
    mesh.lab.restart(source).await.unwrap();
    let sent = mesh.wait_for_all("photo", &id).await;
    assert_eq!(sent.receivers.len(), 4);
    let received = mesh.wait(near, &id, |t| t.state == State::Complete).await;
    assert!(received.values.innovative >= before.values.innovative, "it began anew: {received:?}");
    mesh.lab.stop().await.unwrap();
}
