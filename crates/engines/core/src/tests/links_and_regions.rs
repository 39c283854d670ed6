//! Measured links, and the flows that are combined because of them.

use super::{at, cross};
use crate::frame::LinkReport;
use crate::link_meter::LinkMeter;
use crate::parameters::{PairingRule, Parameters};
use crate::regions::{CodingRegions, RelayedFlow};
use crate::{CoreConfig, NAME};
use ncmesh_engine::Context;
use ncmesh_engine::counters::Counters;
use ncmesh_engine::rng;
use ncmesh_engine::storage::MemoryStorage;
use ncmesh_engine::testing::symmetric;
use ncmesh_engine::topology::Topology;
use ncmesh_wire::{NodeId, StartId};
use std::collections::VecDeque;

/// Returns the coding regions at the relay of a cross.
fn regions(topology: &Topology, pairing: PairingRule, codes_within_flows: bool) -> CodingRegions {
    let mut counters = Counters::default();
    let mut events = VecDeque::new();
    let cx = Context {
        now: at(0),
        me: NodeId(3),
        epoch: 1,
        mtu: 1400,
        at: ncmesh_engine::At::ONLY,
        topology,
        rng: &mut rng::stream(1, NodeId(3), NAME, "test"),
        counters: &mut counters,
        events: &mut events,
        storage: &mut MemoryStorage::default(),
    };
    let flows = [(1, 4), (2, 5)].map(|(source, destination)| RelayedFlow {
        key: (NodeId(source), NodeId(destination)),
        previous_hop: NodeId(source),
        next_hop: NodeId(destination),
    });
    let parameters =
        Parameters { pairing, codes_within_flows, ..CoreConfig::default().parameters() };
    CodingRegions::new(&flows, &parameters, &LinkMeter::default(), &cx)
}

#[test]
fn flows_are_combined_where_overhearing_pays() {
    let flows = [(NodeId(1), NodeId(4)), (NodeId(2), NodeId(5))];
    let unknown = |direct, overheard| {
        let topology = cross(direct, overheard);
        let regions = regions(&topology, PairingRule::FewerTransmissions, true);
        flows.map(|flow| regions.partners(&flow).first().map(|partner| partner.unknown))
    };
    // With all links alike, as much is overheard as the relay receives.
    assert_eq!(unknown(0.7, [0.7, 0.7]), [Some(0.0), Some(0.0)]);
    let half = unknown(0.7, [0.35, 0.7]);
    assert!((half[0].unwrap() - 0.5).abs() < 1e-9 && half[1] == Some(0.0));
    assert_eq!(unknown(0.7, [0.0, 0.7]), [None, None], "nothing is overheard");
}

/// COPE's rule: 0.9 * 0.9 is at least 0.8, and 0.85 * 0.9 is not.
#[test]
fn cope_combines_where_both_receivers_probably_decode() {
    let flow = (NodeId(1), NodeId(4));
    let counts = |overheard| {
        let regions = regions(&cross(0.9, overheard), PairingRule::Decodable(0.8), false);
        (regions.partners(&flow).len(), regions.declined().len())
    };
    assert_eq!((counts([0.9, 0.9]), counts([0.85, 0.9])), ((1, 0), (0, 2)));
}

#[test]
fn deliveries_are_counted_by_serials_and_reports() {
    let topology = symmetric(&[(1, 3, 0.9), (1, 5, 0.3)]);
    let me = NodeId(3);
    let one = NodeId(1);
    let five = NodeId(5);
    let report = |received, sent| LinkReport { transmitter: one, received, sent };
    let mut meter = LinkMeter::default();
    assert!((meter.delivery(&topology, me, one, me) - 0.9).abs() < 1e-9);

    // Every second one of 40 frames is heard. A serial that is heard again counts once.
    for serial in (2..=40).step_by(2) {
        meter.count_frame(one, StartId(1), serial, at(u64::from(serial)));
        meter.note_serial(one, StartId(1), serial, at(u64::from(serial)));
    }
    assert!((meter.delivery(&topology, me, one, me) - 20.0 / 39.0).abs() < 1e-9);
    assert_eq!(meter.report(one), [report(20, 39)]);

    // After a restart of the transmitter, frames are counted anew.
    meter.count_frame(one, StartId(2), 7, at(50));
    assert_eq!(meter.report(one), [report(1, 1)]);

    // A report replaces the link state's delivery until it expires.
    meter.record_reports(five, &[report(15, 20)], at(60));
    assert!((meter.delivery(&topology, me, one, five) - 0.75).abs() < 1e-9);
    meter.expire(at(20_000));
    assert!((meter.delivery(&topology, me, one, five) - 0.3).abs() < 1e-9);
}
