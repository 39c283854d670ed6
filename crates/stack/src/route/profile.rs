//! Facts that a node tells besides its links, on the wire: a byte that says what there is, and
//! each part of it.

use ncmesh_engine::Malformed;
use ncmesh_engine::port::MAX_PORTS;
use ncmesh_engine::topology::{Pace, Position, Profile, ToldPort, ToldPorts};
use ncmesh_wire::identity::{PublicKey, Signature};
use ncmesh_wire::layout::{Is, Part};
use ncmesh_wire::prefix::Prefixes;
use ncmesh_wire::record::{Named, bits, field, group};
use ncmesh_wire::{NodeId, Reader, Record, Writer, record};

/// Numbers of both signs are told as their difference from the smallest: of a plan...
const ORIGIN: u32 = 1 << 31;
/// ... of latitudes, and of longitudes.
const EQUATOR: u32 = 900_000_000;
const GREENWICH: u32 = 1_800_000_000;

/// Signature of the state that a profile belongs to, or that a change leads to.
pub(super) const SIGNATURE: Named = field("state.signature", "Signature");
pub(super) const SIGNATURE_DOC: &str =
    "of the key of the origin, over the whole state that is told or that the change leads to";

/// Key of the origin.
const KEY: Named = field("state.key", "Key");
const KEY_DOC: &str = "of the origin, which made the signature";

record! {
    /// The parts that there are.
    struct Given {
        byte {
            /// whether the length of the longest frame follows
            framed: bool = bits(64, "profile.framed", "With frame length"),
            /// whether ports follow
            ports: bool = bits(32, "profile.ports", "With ports"),
            /// whether the key that made the signature follows it
            keyed: bool = bits(16, "profile.keyed", "With key"),
            /// whether a signature of the state follows
            signed: bool = bits(8, "profile.signed", "Signed"),
            /// whether prefixes follow
            announces: bool = bits(4, "profile.announces", "Announces"),
            /// whether a position in degrees follows
            earth: bool = bits(2, "profile.earth", "On the Earth"),
            /// whether a position in metres follows
            plan: bool = bits(1, "profile.plan", "On a plan"),
        }
        check excludes(earth, plan),
        check implies(keyed, signed),
    }
}

record! {
    /// Position on a plan.
    struct Plan {
        /// mm from the origin of the plan, plus 2^31
        x: u32 = field("profile.x", "East"),
        /// the same
        y: u32 = field("profile.y", "North"),
        /// the same
        z: u32 = field("profile.z", "Up"),
    }
}

record! {
    /// Position on the Earth.
    struct Earth {
        /// 10^-7 degrees from the south pole
        latitude: u32 = field("profile.latitude", "Latitude").within(0, 2 * EQUATOR as u64),
        /// 10^-7 degrees east of 180 degrees west
        longitude: u32 = field("profile.longitude", "Longitude").within(0, 2 * GREENWICH as u64),
    }
}

/// A port in a frame.
struct PortRecord(ToldPort);

/// All ports in a frame.
struct PortsRecord {
    ports: Vec<PortRecord>,
}

record! {
    impl PortRecord as PortRecord { 0: ToldPort { channel, pace, reaches } } => PortRecord {
        0: ToldPort { channel, pace: Pace(pace), reaches },
    } {
        /// number of its channel, which is shared by ports of the origin that tell the same
        channel: u8 = field("port.channel", "Channel").within(1, MAX_PORTS as u64),
        /// airtime of a frame of 1,000 bytes: 1 is 1 us, and each 4 more double it; 0 is not known
        pace: u8 = field("port.pace", "Pace") => pace.0,
        /// how many follow
        count: u8 = field("port.count", "Neighbours") => reaches.len() as u8,
        /// that is reached by it; by the first port also those that no port names
        reaches: Vec<NodeId> as many as count = field("port.reaches", "Neighbour"),
    }
}

record! {
    impl PortsRecord as PortsRecord { ports } {
        /// how many follow
        count: u8 = field("profile.port_count", "Ports").within(1, MAX_PORTS as u64)
            => ports.len() as u8,
        ports: Vec<PortRecord> as many as count = group("port", "Port", "Port on {port.channel}"),
    }
}

/// Length of the longest frame of the origin, told where it is not the usual one.
const LONGEST: Named = field("profile.longest_frame", "Longest frame");
const LONGEST_DOC: &str = "length of the longest frame that the origin sends, bytes";

/// Parts of a profile.
pub(super) const PARTS: &[Part] = &[
    Part::Include(Given::PARTS),
    Part::When(Is("profile.plan", 1), Plan::PARTS),
    Part::When(Is("profile.earth", 1), Earth::PARTS),
    Part::When(Is("profile.announces", 1), Prefixes::PARTS),
    Part::When(Is("profile.ports", 1), PortsRecord::PARTS),
    Part::When(Is("profile.framed", 1), &[LONGEST.part::<u16>(LONGEST_DOC)]),
    Part::When(Is("profile.signed", 1), &[SIGNATURE.part::<Signature>(SIGNATURE_DOC)]),
    Part::When(Is("profile.keyed", 1), &[KEY.part::<PublicKey>(KEY_DOC)]),
];

/// Signature of a state as it is told whole, with the key for those that do not know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Signing {
    pub signature: Signature,
    pub key: Option<PublicKey>,
}

/// Length of a key in a frame, bytes.
pub(super) const KEY_LEN: usize = size_of::<PublicKey>();

/// A profile with the signature of the state that it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Signed {
    pub profile: Profile,
    pub signing: Option<Signing>,
}

/// Returns the length of a profile in a frame, without a key, bytes.
pub(super) fn len(profile: &Profile, is_signed: bool) -> usize {
    let position = match profile.position {
        None => 0,
        Some(Position::Plan { .. }) => Plan::LEN,
        Some(Position::Earth { .. }) => Earth::LEN,
    };
    let prefixes = &profile.prefixes;
    let lists = if prefixes.is_empty() { 0 } else { Prefixes::written_len(prefixes) };
    let ports = &profile.ports;
    let ports = if ports.is_empty() { 0 } else { PortsRecord::LEN + ports_len(ports) };
    let longest = if profile.longest_frame.is_some() { size_of::<u16>() } else { 0 };
    let signature = if is_signed { Signature::LEN } else { 0 };
    Given::LEN + position + lists + ports + longest + signature
}

/// Returns the length of ports without their number, bytes.
fn ports_len(ports: &ToldPorts) -> usize {
    let len = |port: &ToldPort| PortRecord::LEN + size_of::<NodeId>() * port.reaches.len();
    ports.ports.iter().map(len).sum()
}

/// Appends a profile.
pub(super) fn write(w: &mut Writer<'_>, profile: &Profile, signing: Option<Signing>) {
    let above = |number: i32, zero: u32| zero.wrapping_add_signed(number);
    let key = signing.and_then(|signing| signing.key);
    let given = Given {
        framed: profile.longest_frame.is_some(),
        ports: !profile.ports.is_empty(),
        keyed: key.is_some(),
        signed: signing.is_some(),
        announces: !profile.prefixes.is_empty(),
        earth: matches!(profile.position, Some(Position::Earth { .. })),
        plan: matches!(profile.position, Some(Position::Plan { .. })),
    };
    given.put(w);

    // Coordinates go as unsigned numbers, counted from an origin that is below all of them.
    match profile.position {
        None => {}
        Some(Position::Plan { x_mm, y_mm, z_mm }) => {
            let [x, y, z] = [x_mm, y_mm, z_mm].map(|mm| above(mm, ORIGIN));
            Plan { x, y, z }.put(w);
        }
        Some(Position::Earth { latitude_e7, longitude_e7 }) => {
            let latitude = above(latitude_e7, EQUATOR);
            Earth { latitude, longitude: above(longitude_e7, GREENWICH) }.put(w);
        }
    }

    if given.announces {
        Prefixes::write(&profile.prefixes, w);
    }
    if given.ports {
        let ports = profile.ports.ports.iter().cloned().map(PortRecord).collect();
        PortsRecord { ports }.put(w);
    }
    if let Some(longest) = profile.longest_frame {
        LONGEST.put(&longest, w);
    }
    if let Some(Signing { signature, .. }) = signing {
        SIGNATURE.put(&signature, w);
    }
    if let Some(key) = key {
        KEY.put(&key, w);
    }
}

/// Reads a profile.
pub(super) fn read(r: &mut Reader<'_>) -> Result<Signed, Malformed> {
    let signed = |above: u32, zero: u32| above.wrapping_sub(zero) as i32;
    let given = Given::read(r)?;
    let position = if given.plan {
        let Plan { x, y, z } = Plan::read(r)?;
        let [x_mm, y_mm, z_mm] = [x, y, z].map(|mm| signed(mm, ORIGIN));
        Some(Position::Plan { x_mm, y_mm, z_mm })
    } else if given.earth {
        let Earth { latitude, longitude } = Earth::read(r)?;
        let latitude_e7 = signed(latitude, EQUATOR);
        Some(Position::Earth { latitude_e7, longitude_e7: signed(longitude, GREENWICH) })
    } else {
        None
    };

    // Presence was told by flags, so a missing field costs no byte.
    let prefixes = if given.announces { Prefixes::read(r)?.0 } else { Vec::new() };
    let ports = if given.ports { PortsRecord::read(r)?.ports } else { Vec::new() };
    let ports = ToldPorts { ports: ports.into_iter().map(|port| port.0).collect() };
    let longest_frame = if given.framed { Some(LONGEST.read(r)?) } else { None };
    let signature = if given.signed { Some(SIGNATURE.read(r)?) } else { None };
    let key = if given.keyed { Some(KEY.read(r)?) } else { None };
    let signing = signature.map(|signature| Signing { signature, key });
    let profile = Profile { position, prefixes, ports, longest_frame };
    Ok(Signed { profile, signing })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ipnet::{IpNet, Ipv4Net, Ipv6Net};
    use proptest::prelude::*;

    fn written(profile: &Profile) -> Vec<u8> {
        let mut out = Vec::new();
        write(&mut Writer::new(&mut out), profile, None);
        out
    }

    proptest! {
        #[test]
        fn prefixes_are_read_as_they_were_written(
            v4 in prop::collection::vec((any::<u32>(), 0u8..=32), 0..16),
            v6 in prop::collection::vec((any::<u128>(), 0u8..=128), 1..16),
        ) {
            let v4 = v4.into_iter().map(|(a, len)| Ipv4Net::new(a.into(), len).unwrap().into());
            let v6 = v6.into_iter().map(|(a, len)| Ipv6Net::new(a.into(), len).unwrap().into());
            let prefixes = v4.chain(v6).map(|prefix: IpNet| prefix.trunc()).collect();
            let position = Position::earth(1.0, 2.0);
            let profile = Profile { position, prefixes, ..Profile::default() };
            let out = written(&profile);
            prop_assert_eq!(out.len(), len(&profile, false));
            let signed = Signed { profile, signing: None };
            prop_assert_eq!(read(&mut Reader::new(&out)), Ok(signed));
            for cut in 0..out.len() {
                prop_assert!(read(&mut Reader::new(&out[..cut])).is_err());
            }
        }
    }

    /// The golden vector of the wire format.
    #[test]
    fn golden_ports() {
        let radio = ToldPort { channel: 1, pace: Pace(53), reaches: Vec::new() };
        let cable = ToldPort { channel: 3, pace: Pace(14), reaches: vec![NodeId(7), NodeId(9)] };
        let ports = ToldPorts { ports: vec![radio, cable] };
        let profile = Profile { ports, ..Profile::default() };
        let out = written(&profile);
        assert_eq!(out, [0x20, 2, 1, 53, 0, 3, 14, 2, 0, 7, 0, 9]);
        assert_eq!(out.len(), len(&profile, false));
        let signed = Signed { profile, signing: None };
        assert_eq!(read(&mut Reader::new(&out)), Ok(signed));

        // A count that nothing follows, no port at all, more than there may be, no such channel.
        for bad in
            [&out[..11], &[0x20, 0], &[&[0x20, 9][..], &[1; 99]].concat(), &[0x20, 1, 9, 1, 0]]
        {
            assert_eq!(read(&mut Reader::new(bad)), Err(Malformed), "{bad:?}");
        }
    }

    /// The golden vector of the wire format.
    #[test]
    fn golden_longest_frame() {
        let profile = Profile { longest_frame: Some(1392), ..Profile::default() };
        let out = written(&profile);
        assert_eq!(out, [0x40, 5, 0x70]);
        assert_eq!(out.len(), len(&profile, false));
        let signed = Signed { profile, signing: None };
        assert_eq!(read(&mut Reader::new(&out)), Ok(signed));
        assert_eq!(read(&mut Reader::new(&out[..2])), Err(Malformed));
    }

    #[test]
    fn prefixes_that_cannot_be_are_malformed() {
        let seven = Profile { prefixes: vec!["10.0.0.0/7".parse().unwrap()], ..Profile::default() };
        assert_eq!(written(&seven), [4, 1, 0, 7, 10, 0, 0, 0]);
        // Bits beyond the length say nothing.
        let more = [4, 1, 0, 7, 11, 0, 0, 9];
        let signed = Signed { profile: seven, signing: None };
        assert_eq!(read(&mut Reader::new(&more)), Ok(signed));
        let many = [&[4, 33, 0][..], &[0; 33 * 5]].concat();
        for bad in [&many[..], &[4, 1, 0, 33, 10, 0, 0, 0], &[0x80], &[0x10], &[1 | 2]] {
            assert_eq!(read(&mut Reader::new(bad)), Err(Malformed), "{bad:?}");
        }
    }
}
