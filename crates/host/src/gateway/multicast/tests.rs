//! Tests of groups, on reports of a Linux kernel and on floods.

use super::super::packets::{udp_v4, udp_v6, v4};
use super::*;
use proptest::prelude::*;

/// Reports of Linux 6.1 on a TUN device: joined 239.1.2.3, answered a query, left it; joined
/// ff05::77.
const JOINED: &str =
    "46c00028000040000102f9950a630001e0000016940400002200e8f90000000104000000ef010203";
const ANSWERED: &str =
    "46c00028000040000102f9950a630001e0000016940400002200eaf90000000102000000ef010203";
const LEFT: &str =
    "46c00028000040000102f9950a630001e0000016940400002200e9f90000000103000000ef010203";
const JOINED_V6: &str = "6000000000240001fe8000000000000086ab99de887c4076ff0200000000000000000000000000163a000502000001\
     008f0086140000000104000000ff050000000000000000000000000077";

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(core::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

fn at(ms: u64) -> Instant {
    Instant::default() + Duration::from_millis(ms)
}

fn groups() -> Groups {
    Groups::new(MulticastConfig::default())
}

fn actions(groups: &mut Groups) -> Vec<GroupAction> {
    core::iter::from_fn(|| groups.poll()).collect()
}

fn join(name: &str) -> GroupAction {
    GroupAction::Join(name.into())
}

/// Returns a report of IGMPv2 of a member of a group.
fn report(group: Ipv4Addr) -> Vec<u8> {
    let message = [&[0x16, 0, 0, 0][..], &group.octets()].concat();
    v4("10.44.0.1", &group.to_string(), IpProtocol::Igmp, &message)
}

#[test]
fn memberships_are_those_that_the_kernel_reports() {
    let mut groups = groups();
    groups.handle_outbound(bytes(JOINED), at(0)).unwrap();
    groups.handle_outbound(bytes(JOINED), at(500)).unwrap();
    groups.handle_outbound(bytes(JOINED_V6), at(500)).unwrap();
    let v6 = "ip-ff05-0-0-0-0-0-0-77";
    assert_eq!(actions(&mut groups), [join("ip-239.1.2.3"), join(v6)]);

    // A member that answers stays, and one that does not is forgotten.
    groups.handle_outbound(bytes(ANSWERED), at(100_000)).unwrap();
    groups.handle_time(at(200_000));
    assert_eq!(actions(&mut groups), [GroupAction::Leave(v6.into())]);

    // A group is left a while after its last member.
    groups.handle_outbound(bytes(LEFT), at(200_000)).unwrap();
    groups.handle_time(at(201_000));
    assert_eq!(actions(&mut groups), []);
    groups.handle_time(at(202_000));
    assert_eq!(actions(&mut groups), [GroupAction::Leave("ip-239.1.2.3".into())]);
}

#[test]
fn a_membership_that_the_mesh_refused_is_asked_for_again() {
    let mut groups = groups();
    groups.handle_outbound(bytes(JOINED), at(0)).unwrap();
    groups.refuse_membership("ip-239.1.2.4");
    groups.handle_outbound(bytes(ANSWERED), at(60_000)).unwrap();
    assert_eq!(actions(&mut groups), [join("ip-239.1.2.3")]);
    groups.refuse_membership("ip-239.1.2.3");
    assert_eq!(groups.members().count(), 0);
    groups.handle_outbound(bytes(ANSWERED), at(120_000)).unwrap();
    assert_eq!(actions(&mut groups), [join("ip-239.1.2.3")]);
}

#[test]
fn names_of_groups_are_those_of_addresses_alone() {
    for group in ["239.1.2.3", "ff05::77"] {
        assert!(is_group_name(&group_name(group.parse().unwrap())), "{group}");
    }
    for other in ["ip-camera", "ip-", "ip-10.1.2.3", "ip-239.1.2.3-4", "ip-ff05-77", "ip-ff05--77"]
    {
        assert!(!is_group_name(other), "{other}");
    }
}

#[test]
fn the_kernel_is_asked_each_minute() {
    let mut groups = groups();
    assert_eq!(groups.handle_time(at(0)).len(), 2);
    assert_eq!(groups.handle_time(at(59_999)).len(), 0);
    let queries = groups.handle_time(at(60_000));
    for query in &queries {
        let header = Header::read(query).unwrap();
        assert!(header.destination.is_multicast());
        assert_eq!(read_report(&header), None);
    }
}

#[test]
fn groups_of_the_link_stay_there_but_for_mdns_and_those_that_are_configured() {
    let mut groups = Groups::new(MulticastConfig {
        groups: ["224.0.0.252".parse().unwrap()].into(),
        ..MulticastConfig::default()
    });
    for (group, carried) in [
        ("224.0.0.1", false),
        ("224.0.0.251", true),
        ("224.0.0.252", true),
        ("239.1.2.3", true),
        ("10.44.0.5", false),
        ("255.255.255.255", false),
    ] {
        let taken = groups.handle_outbound(udp_v4("10.44.0.1", group, 20), at(0));
        assert_eq!(taken, if carried { Ok(()) } else { Err(Dropped::Multicast) }, "{group}");
    }
    for (group, carried) in
        [("ff01::77", false), ("ff02::77", false), ("ff02::fb", true), ("ff05::77", true)]
    {
        let taken = groups.handle_outbound(udp_v6("fe80::1", group, 20), at(0));
        assert_eq!(taken, if carried { Ok(()) } else { Err(Dropped::Multicast) }, "{group}");
    }
    let sent = actions(&mut groups);
    assert!(sent.iter().all(|action| matches!(action, GroupAction::Send { .. })), "{sent:?}");
    assert_eq!(sent.len(), 5);
}

#[test]
fn a_host_that_sends_to_a_thousand_groups_begins_few_and_they_end() {
    let mut groups = groups();
    let group = |n: u16| format!("239.1.{}.{}", n / 250, n % 250);
    let mut refused = 0;
    for n in 0..1000 {
        let taken = groups.handle_outbound(udp_v4("10.44.0.1", &group(n), 20), at(n.into()));
        refused += usize::from(taken == Err(Dropped::Groups));
    }
    assert_eq!((refused, actions(&mut groups).len()), (992, 8));
    groups.handle_time(at(61_000));
    let closed = actions(&mut groups);
    assert!(closed.iter().all(|action| matches!(action, GroupAction::Close(_))), "{closed:?}");
    assert_eq!(closed.len(), 8);
}

#[test]
fn a_flood_of_reports_is_bounded() {
    let mut groups = groups();
    let mut drops = [0, 0];
    for n in 0..1000_u32 {
        let group = Ipv4Addr::from(0xEF00_0000 + n);
        match groups.handle_outbound(report(group), at(u64::from(n) / 2)) {
            Ok(()) => {}
            Err(Dropped::Groups) => drops[0] += 1,
            Err(Dropped::Reports) => drops[1] += 1,
            Err(other) => panic!("{other:?}"),
        }
    }
    assert_eq!(drops, [76, 900]);
    assert_eq!(actions(&mut groups).len(), MAX_MEMBERSHIPS);

    // A host that leaves and joins all the time stays a member.
    let mut groups = self::groups();
    for n in 0..50 {
        groups.handle_outbound(bytes(JOINED), at(200 * n)).unwrap();
        groups.handle_outbound(bytes(LEFT), at(200 * n + 100)).unwrap();
        groups.handle_time(at(200 * n + 150));
    }
    assert_eq!(actions(&mut groups), [join("ip-239.1.2.3")]);
}

#[test]
fn a_group_has_a_rate() {
    let mut groups = Groups::new(MulticastConfig { rate_bps: 80_000, ..Default::default() });
    let mut taken = 0;
    // 1,000 bytes each 10 ms are ten times as much.
    for n in 0..1000 {
        let packet = udp_v4("10.44.0.1", "239.1.2.3", 980);
        taken += usize::from(groups.handle_outbound(packet, at(10 * n)).is_ok());
    }
    assert!((95..=110).contains(&taken), "{taken}");
}

proptest! {
    #[test]
    fn reading_a_report_never_panics(
        message in prop::collection::vec(any::<u8>(), 0..60),
        kind in prop::sample::select(vec![0x12_u8, 0x16, 0x17, 0x22, 131, 132, 143]),
    ) {
        let message = [&[kind][..], &message].concat();
        let _ = read_igmp(&message);
        let _ = read_mld(&message);
    }
}
