//! Real-time traffic: what is late is given up, and what is here waits for nothing.

use super::*;

/// A packet of an IPv4 header with this DSCP, and its number.
fn marked(dscp: u8, number: u32) -> Vec<u8> {
    vec![0x45, dscp << 2, number as u8]
}

fn coded(dscp: u8, number: u32) -> Coded {
    let symbol = pack(&marked(dscp, number));
    Coded { first: number, coefficients: vec![1], symbol }
}

const EF: u8 = 46;

#[test]
fn what_is_late_is_given_up_and_other_packets_are_not() {
    for (dscp, lost) in [(EF, 3), (0, 0)] {
        let mut bench = Bench::new(2);
        for number in 0..3 {
            bench.data(1, 2, header(0), &coded(dscp, number));
        }
        bench.now = bench.now + Duration::from_millis(250);
        bench.with(Braid::handle_timeout);
        assert_eq!((bench.engine.flows()[0].lost, bench.drain().is_empty()), (lost, lost > 0));
    }
    // One behind a packet that is still of use stays with it.
    let mut bench = Bench::new(2);
    bench.data(1, 2, header(0), &coded(0, 0));
    bench.data(1, 2, header(0), &coded(EF, 1));
    bench.now = bench.now + Duration::from_millis(250);
    bench.with(Braid::handle_timeout);
    assert_eq!(bench.drain(), [(1, 1), (0, 1)]);
}

#[test]
fn the_destination_hands_up_real_time_traffic_at_once_and_once() {
    let mut bench = Bench::new(4);
    bench.data(3, 4, header(0), &coded(0, 1));
    bench.data(3, 4, header(0), &coded(EF, 2));
    bench.data(3, 4, header(0), &coded(EF, 3));
    assert_eq!(bench.packets(), [marked(EF, 2), marked(EF, 3)]);
    bench.data(3, 4, header(0), &coded(0, 4));
    bench.data(3, 4, header(0), &coded(0, 0));
    assert_eq!(bench.packets(), [marked(0, 0), marked(0, 1), marked(0, 4)]);
}

#[test]
fn packets_of_one_symbol_are_of_one_class() {
    let mut bench = Bench::new(1);
    for dscp in [0, EF, EF, 0] {
        let packet = marked(dscp, 7);
        bench.with(|e, cx| e.handle_packet(cx, NodeId(4), &packet)).unwrap();
    }
    let sent: Vec<usize> = std::iter::from_fn(|| bench.fill())
        .take(3)
        .map(|(_, body)| symbol::packets(&Header::parse(&body).unwrap().1.symbol).len())
        .collect();
    assert_eq!(sent, [2, 1, 1], "and that of real-time traffic goes first");
}

#[test]
fn real_time_traffic_goes_first_within_a_flow() {
    let mut bench = Bench::new(2);
    for (number, dscp) in [0, 0, EF, EF].into_iter().enumerate() {
        bench.data(1, 2, header(0), &coded(dscp, number as u32));
    }
    let order: Vec<u32> = bench.drain().into_iter().map(|(first, _)| first).collect();
    assert_eq!(order, [2, 3, 0, 1]);
}

#[test]
fn real_time_traffic_goes_first_between_flows_and_keeps_none_out() {
    let calls = FlowInstance { destination: NodeId(3), ..FLOW };
    let mut bench = Bench::new(2);
    for number in 0..4 {
        bench.data(1, 2, header(0), &coded(0, number));
        bench.data(1, 2, Header { flow: calls, ..header(0) }, &coded(EF, number));
    }
    let flows: Vec<FlowInstance> = std::iter::from_fn(|| bench.fill())
        .map(|(_, body)| Header::parse(&body).unwrap().0.flow)
        .collect();
    assert_eq!(flows[..5], [calls, calls, calls, FLOW, calls]);
}

#[test]
fn a_symbol_that_was_given_up_takes_no_more_packets() {
    let mut bench = Bench::new(1);
    let send = |bench: &mut Bench, number| {
        bench.with(|e, cx| e.handle_packet(cx, NodeId(4), &marked(EF, number))).unwrap();
    };
    send(&mut bench, 0);
    bench.now = bench.now + Duration::from_millis(250);
    bench.with(Braid::handle_timeout);
    assert_eq!(bench.engine.flows()[0].lost, 1);
    send(&mut bench, 1);
    assert_eq!(bench.drain(), [(1, 1)]);
}
