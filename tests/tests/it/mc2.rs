//! MC2 over links of every kind.

use ncmesh_engine::time::Duration;
use ncmesh_sim::{Simulation, SimulationError};
use ncmesh_tests::{links, mesh, settled};

const SCHEME: &str = ncmesh_engine_mc2::NAME;

/// Offers a packet of 300 bytes each 20 ms and runs for four seconds more. Returns how many
/// accepted packets arrived.
fn carry(s: &mut Simulation, to: usize, packets: u8) -> (usize, usize) {
    carry_long(s, to, packets, 300)
}

/// The same with packets of this length.
fn carry_long(s: &mut Simulation, to: usize, packets: u8, bytes: usize) -> (usize, usize) {
    let mut taken = 0;
    for number in 0..packets {
        match s.send_packet(SCHEME, 0, to, &vec![number; bytes]) {
            Ok(()) => taken += 1,
            Err(SimulationError::Packet(_)) => {}
            Err(e) => panic!("{e}"),
        }
        s.run_for(Duration::from_millis(20));
    }
    s.run_for(Duration::from_secs(4));
    let arrived = s.take_packets();
    assert!(arrived.iter().all(|arrival| arrival.to == to && arrival.packet.len() == bytes));
    (arrived.len(), taken)
}

#[test]
fn links_without_loss_and_paths_of_one_hop() {
    let ways = [(0, 1, 0.0), (0, 2, 0.0), (1, 3, 0.0), (2, 3, 0.0)];
    let mut s = settled(mesh(links(4, &ways), 1));
    assert_eq!(carry(&mut s, 3, 100), (100, 100));
    assert_eq!(carry(&mut s, 1, 100), (100, 100));
}

#[test]
fn links_that_deliver_worse_one_way() {
    let mut s = settled(mesh(links(4, &[(0, 1, 0.1), (0, 2, 0.1), (1, 3, 0.1), (2, 3, 0.1)]), 2));
    // Acknowledgments and requests on the way back are lost more often than not.
    for (from, to) in [(1, 0), (2, 0), (3, 1), (3, 2)] {
        s.set_loss(from, to, 0.6).unwrap();
    }
    let (arrived, taken) = carry(&mut s, 3, 150);
    assert!(taken >= 140 && arrived * 100 >= taken * 95, "{arrived} of {taken}");
}

#[test]
fn links_that_go_and_come_while_packets_flow() {
    let mut s = settled(mesh(links(4, &[(0, 1, 0.2), (0, 2, 0.2), (1, 3, 0.2), (2, 3, 0.2)]), 3));
    assert!(carry(&mut s, 3, 50).0 >= 48);
    // First one path delivers nothing, then the other.
    for (dead, alive) in [(1, 2), (2, 1)] {
        s.set_loss(alive, 3, 0.2).unwrap();
        s.set_loss(dead, 3, 1.0).unwrap();
        carry(&mut s, 3, 100);
        let (arrived, taken) = carry(&mut s, 3, 100);
        assert!(taken >= 90 && arrived >= 90, "{arrived} of {taken} with {dead} cut off");
    }
}

/// They leave a frame room for one acknowledgment and one announcement.
#[test]
fn the_longest_packets_pass_over_lossy_links() {
    let mut config = mesh(links(4, &[(0, 1, 0.2), (0, 2, 0.2), (1, 3, 0.2), (2, 3, 0.2)]), 5);
    config.mtu = 1472;
    let mut s = settled(config);
    let stack = s.host(0).stack().unwrap();
    let longest = stack.longest_packet(stack.scheme(SCHEME).unwrap()).unwrap();
    assert_eq!(longest, 1278);
    let (arrived, taken) = carry_long(&mut s, 3, 150, longest);
    assert!(taken >= 140 && arrived * 100 >= taken * 95, "{arrived} of {taken}");
}

#[test]
fn without_a_path_nothing_is_taken() {
    let mut s = settled(mesh(links(4, &[(0, 1, 0.0), (2, 3, 0.0)]), 4));
    assert_eq!(carry(&mut s, 3, 5), (0, 0));
}
