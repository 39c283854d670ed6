//! Members that lie do harm while they do, and no longer.

use super::*;

/// Node 2 hears packet `number` of the source, and what it sends then goes to node 3.
fn pass(bench: &mut Bench, number: u32) -> Vec<(u32, usize)> {
    bench.data(1, 2, header(0), &plain(number));
    bench.drain()
}

/// A report in the name of the next hop claims packets that it does not have. They are lost, but
/// not those that come after its own next report.
#[test]
fn forged_reports_cost_the_packets_of_the_moment() {
    let mut bench = Bench::new(2);
    assert_eq!(pass(&mut bench, 0), [(0, 1)]);
    bench.report(3, 1, state(1, 0));
    assert_eq!(pass(&mut bench, 1), [(1, 1)]);
    bench.report(3, 2, state(2, 0));
    // The next hop itself has packet 0 only. What was given up comes no more.
    bench.report(3, 3, state(1, 0));
    assert_eq!(bench.drain(), []);
    assert_eq!(pass(&mut bench, 2), [(2, 1)]);
    // It was told so, and needs packet 1 no more.
    bench.report(3, 4, state(3, 0));
    assert_eq!(pass(&mut bench, 3), [(3, 1)]);
}

/// A forged number is far ahead of the next hop's own, which would count as old for as long as it
/// takes to send a thousand frames.
#[test]
fn a_forged_number_silences_a_next_hop_for_a_second() {
    let mut bench = Bench::new(2);
    pass(&mut bench, 0);
    bench.report(3, 5, state(1, 0));
    bench.report(3, 1000, State { backlog: 200, ..state(1, 0) });
    bench.report(3, 6, state(1, 0));
    assert_eq!(pass(&mut bench, 1), [], "it seems to be full");
    bench.now = bench.now + Duration::from_millis(1100);
    bench.report(3, 7, state(1, 0));
    assert_eq!(bench.drain(), [(1, 1)]);
}
