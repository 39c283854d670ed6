//! A relay without the key: it sends on every frame that it hears, from its own address.

use crate::support::Node;
use crate::support::net::Segment;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, spawn};
use std::time::Duration;

/// Host that sends on what host 1 broadcasts, in the place of a third party.
const RELAYER: usize = 3;

/// Somebody who sends on each broadcast frame of host 1.
struct Relayer {
    stopped: Arc<AtomicBool>,
    /// Returns the number of unicast frames to the relay.
    thread: JoinHandle<usize>,
}

impl Relayer {
    fn start(segment: &Segment) -> Self {
        let namespace = format!("/run/netns/{}", segment.host(RELAYER));
        let stopped = Arc::new(AtomicBool::new(false));
        let is_stopped = Arc::clone(&stopped);
        let thread = spawn(move || {
            let namespace = File::open(namespace).unwrap();
            let kind = Some(LinkNameSpaceType::Network);
            move_into_link_name_space(namespace.as_fd(), kind).unwrap();
            // Broadcasts come to one socket, frames to the attacker alone to the other.
            let everyone = UdpSocket::bind("10.77.0.255:7117").unwrap();
            everyone.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
            let own = UdpSocket::bind("10.77.0.3:7117").unwrap();
            own.set_broadcast(true).unwrap();
            own.set_nonblocking(true).unwrap();
            let mut frame = [0; 2000];
            let mut unicasts = 0;
            while !is_stopped.load(Ordering::Relaxed) {
                if let Ok((length, from)) = everyone.recv_from(&mut frame)
                    && from.ip() == Ipv4Addr::new(10, 77, 0, 1)
                {
                    own.send_to(&frame[..length], "10.77.0.255:7117").unwrap();
                }
                while own.recv(&mut frame).is_ok() {
                    unicasts += 1;
                }
            }
            unicasts
        });
        Self { stopped, thread }
    }

    /// Returns the number of unicast frames to the relay.
    fn stop(self) -> usize {
        self.stopped.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

/// Node 2 hears node 1 through the attacker only, and sends it packets by unicast.
#[test]
fn who_sends_on_hellos_is_not_sent_the_frames_for_their_node() {
    let Some(segment) = Segment::new(RELAYER) else { return };
    if !segment.silence(2, "10.77.0.1") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let relayer = Relayer::start(&segment);
    let node = |id: u16| {
        let other = 3 - id;
        let tunnel = format!(
            "[tunnel]\nscheme = \"forward\"\naddress = [\"10.44.0.{id}/24\"]\n\n\
             [tunnel.routes]\n\"10.44.0.{other}\" = \"n{other}\"\n"
        );
        let dir = dir.path().join(format!("n{id}"));
        let mut node = Node::new(&dir, segment.host(id.into()), id, &tunnel);
        node.start();
        node
    };
    let pair = [node(1), node(2)];
    pair[1].wait_for_peers(&["n1"]);
    // The kernel of host 2 asks for a hardware address first; then frames go out as unicasts.
    segment.run(2, "ping -n -c 15 -i 0.2 -W 1 10.44.0.1");
    assert_eq!(relayer.stop(), 0, "node 2 took the relayer for node 1");
    assert!(pair[0].status().tunnel.unwrap().packets_in > 10);
}
