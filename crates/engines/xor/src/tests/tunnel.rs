//! Packets of the application, and settings.

use super::*;

#[test]
fn packets_that_cannot_be_carried_are_refused() {
    let mut node = Bench::new(1, "queue = 1\nroutes = [[5, 9, 1]]");
    let longest = 1400 - Data::RESERVED;
    assert_eq!(node.send(1, b"p"), Err(PacketError::Oneself));
    assert_eq!(node.send(8, b"p"), Err(PacketError::NoPath(NodeId(8))));
    let bytes = longest + 1;
    assert_eq!(node.send(4, &vec![0; bytes]), Err(PacketError::TooLong { bytes, longest }));
    assert_eq!(node.send(5, &vec![0; longest]), Ok(()));
    assert_eq!(node.send(4, b"p"), Err(PacketError::Full));
}

#[test]
fn a_configured_route_is_used_even_if_no_link_of_it_is_known() {
    let mut node = Bench::new(1, "routes = [[5, 9, 1]]");
    node.send(5, b"p").unwrap();
    let sent = node.transmit().unwrap();
    let data = Data::parse(&sent.body, NodeId(1)).unwrap();
    assert_eq!((sent.to, data.first().destination()), (Some(NodeId(9)), NodeId(5)));
}

#[test]
fn settings_out_of_range_are_named() {
    let check = |text: &str| {
        let error = toml::from_str::<XorConfig>(text).unwrap_err();
        error.message().to_owned()
    };
    assert_eq!(check("hold_time_s = -1.0"), "hold_time_s = -1: allowed is 0 to 1 s");
    assert_eq!(check("max_hold_time_s = 2.0"), "max_hold_time_s = 2: allowed is 0 to 1 s");
    assert_eq!(check("min_overlap = -0.5"), "min_overlap = -0.5: allowed is 0 to 1");
    assert_eq!(check("min_decoded = 1.5"), "min_decoded = 1.5: allowed is 0 to 1");
    assert_eq!(check("queue = 0"), "queue = 0: allowed is 1 to 10000 packets");
    assert_eq!(check("cache = 0"), "cache = 0: allowed is 1 to 100000 packets");
    for route in ["[1]", "[1, 2, 1]"] {
        let said = check(&format!("routes = [{route}]"));
        assert_eq!(said, format!("routes: {route} must be 2 to 17 nodes, none of them twice"));
    }
}
