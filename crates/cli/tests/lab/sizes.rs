//! Files of any size arrive at all receivers.

use crate::support::{Building, room};

#[tokio::test]
async fn files_of_all_sizes_arrive() {
    let _room = room().await;
    let mut mesh = Building::start().await;
    for (name, length) in [("empty", 0), ("one", 1), ("photo", 2_300_000)] {
        let id = mesh.send(name, length).await;
        let sent = mesh.wait_for_all(name, &id).await;
        assert!(sent.receivers.iter().all(|r| r.values.bytes == length as u64), "{sent:?}");
    }
    mesh.lab.stop().await.unwrap();
}
