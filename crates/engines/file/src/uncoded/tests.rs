//! Paths and trees of the baselines, computed by hand.

use super::*;
use ncmesh_engine::testing::directed;

/// A mesh where node 1 reaches 4 over 2, or over 3 by links that are good one way only. Node 5 is
/// behind 2.
fn mesh() -> Topology {
    let both = |a, b, d: f64| [(a, b, d), (b, a, d)];
    let poor_back = |a, b| [(a, b, 1.0), (b, a, 0.1)];
    let links =
        [both(1, 2, 0.8), both(2, 4, 0.8), both(2, 5, 0.5), poor_back(1, 3), poor_back(3, 4)];
    directed(&links.concat())
}

fn hops(receivers: &[u16]) -> Vec<(u16, u16)> {
    let receivers: Vec<NodeId> = receivers.iter().map(|node| NodeId(*node)).collect();
    let plan = Uncoded::tree_flood(UncodedConfig::default()).plan(&mesh(), NodeId(1), &receivers);
    let Routing::Tree(hops) = plan.routing else { panic!("no tree") };
    hops.iter().map(|hop| (hop.node.0, hop.parent.0)).collect()
}

#[test]
fn paths_consider_both_directions_of_a_link() {
    assert_eq!(hops(&[4]), [(2, 1), (4, 2)]);
    assert_eq!(hops(&[4, 5]), [(2, 1), (4, 2), (5, 2)]);
    assert_eq!(hops(&[2]), [(2, 1)]);
    assert_eq!(hops(&[77]), []);
}

#[test]
fn the_baselines_differ_in_casting_and_switching() {
    let config = UncodedConfig::default;
    let unicast = Uncoded::etx_unicast(config());
    let flood = Uncoded::tree_flood(config());
    assert_eq!(unicast.forwarding(), Forwarding::HopByHop(Cast::Unicast));
    assert_eq!(flood.forwarding(), Forwarding::HopByHop(Cast::Broadcast));
    assert_eq!(unicast.switching(), Switching::OneByOne);
    assert_eq!(flood.switching(), Switching::StopAndWait);
    assert_eq!([unicast.name(), flood.name()], [ETX_UNICAST, TREE_FLOOD]);
}

#[test]
fn settings_out_of_range_are_named() {
    let bad = UncodedConfig { generation: 0, ..Default::default() };
    let error = bad.check().unwrap_err().to_string();
    assert_eq!(error, "generation = 0: allowed is 1 to 255 packets");
    let bad = UncodedConfig { symbol_size: Some(9), ..Default::default() };
    assert!(bad.check().unwrap_err().to_string().starts_with("symbol_size"));
}
