//! The frames of control: hellos, which carry link states, and those that compare link states.

use super::{COMPARE, HELLO, PROBE, REQUEST, VERSIONS};
use crate::link::{HeardBack, Hello, MAX_ASKED, MAX_HEARD_BACK, MAX_LATE, OnPort};
use crate::peers::Proofs;
use crate::route::{Compare, STATE, States, Wanted};
use crate::share::Uses;
use crate::trust;
use ncmesh_engine::Malformed;
use ncmesh_engine::time::Duration;
use ncmesh_wire::layout::{Count, Layout, Part};
use ncmesh_wire::record::{bits, field, group};
use ncmesh_wire::{LongAddress, NodeId, Reader, Record, ShortAddress, Writer, record};

/// Frames of this service.
pub const LAYOUTS: &[Layout] = &[
    Layout::new(
        HELLO,
        "hello",
        "next in {hello.interval} ms, {state.origin?} states",
        &[
            Part::Include(Hello::PARTS),
            Part::Include(Proofs::PARTS),
            Part::Repeat(Count::ToEnd(0, usize::MAX), &[STATE]),
        ],
    ),
    Layout::of::<Probe<'_>>(PROBE, "probe", "long frame"),
    Layout::of::<Compare>(COMPARE, "compare", "with {compare.to}: {range.first?} ranges"),
    Layout::of::<States>(VERSIONS, "versions", "with {compare.to}: {listed.origin?} states"),
    Layout::of::<Wanted>(REQUEST, "request", "to {compare.to}: {wanted?} states"),
    trust::LAYOUTS[0],
    trust::LAYOUTS[1],
    trust::LAYOUTS[2],
    trust::LAYOUTS[3],
    trust::LAYOUTS[4],
];

/// Length of a hello that asks nobody and tells no address, bytes.
pub(super) const HELLO_LEN: usize = Hello::LEN + Proofs::LEN;
/// Length of a short address, and of what services use, bytes. A long address leaves as much less
/// room for nodes missed.
pub(super) const ADDRESS_LEN: usize = size_of::<ShortAddress>();
pub(super) const USES_LEN: usize = size_of::<Uses>();

/// Length of what a hello says of its port, at most, bytes.
pub(super) const ON_PORT_LEN: usize = OnPort::LEN + MAX_HEARD_BACK * HeardBack::LEN;

record! {
    impl OnPort as OnPort { frames, heard } {
        /// of any kind that the sender has sent on this port before this one, modulo 2^16
        frames: u16 = field("hello.frames", "Frames on this port"),
        /// how many follow
        count: u8 = field("hello.heard_count", "Nodes heard here")
            .within(0, MAX_HEARD_BACK as u64) => heard.len() as u8,
        heard: Vec<HeardBack> as many as count
            = group("hello.heard", "Heard here", "{hello.heard.node}"),
    }
}

record! {
    impl HeardBack as HeardBack { node, share } {
        /// that the sender hears on this port and on others
        node: NodeId = field("hello.heard.node", "Node"),
        /// of its long frames that arrives on this port, in 1/255
        share: u8 = field("hello.heard.share", "Share"),
    }
}

record! {
    impl Hello as Hello {
        interval,
        short_sent,
        long_sent,
        neighbours,
        digest,
        asks,
        late,
        knows_older,
        newer,
        uses,
        short_address,
        long_address,
        on_port,
    } => Hello {
        interval: Duration::from_millis(millis.max(1).into()),
        short_sent,
        long_sent,
        neighbours,
        digest,
        asks,
        late,
        knows_older,
        newer,
        uses,
        short_address,
        long_address,
        on_port,
    } {
        /// the sender sends its next frame within this time; 0 is read as 1
        millis: u16 = field("hello.interval", "Interval, ms")
            => u16::try_from(interval.as_millis()).unwrap_or(u16::MAX),
        /// frames of control of up to 500 bytes that it has sent in its start before this one,
        /// modulo 2^16
        short_sent: u16 = field("hello.short_sent", "Short frames"),
        /// the same of longer ones
        long_sent: u16 = field("hello.long_sent", "Long frames"),
        /// that it has heard lately
        neighbours: u16 = field("hello.neighbors", "Neighbours"),
        /// of the link states that it knows, see below
        digest: u64 = field("hello.digest", "Digest").hex(),
        byte {
            /// how many versions the sender understands that are newer than this frame's
            newer: u8 = bits(0xC0, "hello.newer", "Newer versions"),
            /// whether the sender understands the version before this frame's
            knows_older: bool = bits(0x20, "hello.knows_older", "Knows older"),
            /// how many follow
            asked: u8 = bits(0x1F, "hello.asks", "Nodes asked").within(0, MAX_ASKED as u64)
                => asks.len() as u8,
        }
        byte {
            /// whether one follows the lists
            has_address: bool = bits(0x80, "hello.has_address", "Has an address")
                => short_address.is_some(),
            /// whether they follow as well
            has_uses: bool = bits(0x40, "hello.has_uses", "Tells services")
                => uses.is_some(),
            /// whether an address of eight bytes follows instead
            has_long_address: bool = bits(0x20, "hello.has_long_address", "Has a long address")
                => long_address.is_some(),
            /// whether the sender has several ports, and tells of this one at the end
            has_ports: bool = bits(0x10, "hello.has_ports", "Has several ports")
                => on_port.is_some(),
            /// how many follow behind those
            missed: u8 = bits(0x0F, "hello.late", "Nodes missed").within(0, MAX_LATE as u64)
                => late.len() as u8,
        }
        check excludes(has_address, has_long_address),
        /// is to say hello at once
        asks: Vec<NodeId> as many as asked = field("hello.asked", "Asked"),
        /// did not send a frame within the time that it promised
        late: Vec<NodeId> as many as missed = field("hello.missed", "Missed"),
        /// of the sender's radio: the IPv4 address that it sends from, or its number at the channel
        /// emulator
        short_address: Option<ShortAddress> where has_address
            = field("hello.address", "Address").hex(),
        /// of the sender's radio: its MAC address with two zero bytes behind it, or the interface
        /// identifier of the IPv6 link-local address that it sends from
        long_address: Option<LongAddress> where has_long_address
            = field("hello.long_address", "Long address").hex(),
        /// share of the last second, in 1/255, that data of files, tunnels and streams took which
        /// the sender sent or heard
        uses: Option<Uses> where has_uses = field("hello.uses", "Use by services").hex(),
        /// of the port that this frame is sent on
        on_port: Option<OnPort> where has_ports,
    }
}

record! {
    /// A long frame that says nothing.
    struct Probe<'a> {
        /// zeros; not looked at
        padding: &'a [u8] = field("probe.padding", "Padding"),
    }
}

/// Appends a hello, behind which proofs and states follow.
pub(super) fn begin_hello(hello: &Hello, out: &mut Vec<u8>) {
    hello.put(&mut Writer::new(out));
}

/// Appends the proofs of presence of a hello.
pub(super) fn write_proofs(proofs: &Proofs, out: &mut Vec<u8>) {
    proofs.put(&mut Writer::new(out));
}

/// Reads a hello with its proofs. States follow it.
pub(super) fn read_hello(r: &mut Reader<'_>) -> Result<(Hello, Proofs), Malformed> {
    Ok((Hello::read(r)?, Proofs::read(r)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write_hello(hello: &Hello, proofs: &Proofs, out: &mut Vec<u8>) {
        begin_hello(hello, out);
        write_proofs(proofs, out);
    }
    use crate::peers::Heard;
    use ncmesh_wire::StartId;
    use proptest::prelude::*;

    /// The golden vector of the wire format.
    #[test]
    fn golden_hello() {
        let interval = Duration::from_millis(1000);
        let asks = vec![NodeId(7)];
        let late = vec![NodeId(8)];
        let hello = Hello {
            interval,
            short_sent: 3,
            long_sent: 258,
            neighbours: 9,
            digest: 0xDEAD_BEEF_0102_0304,
            asks,
            late,
            knows_older: true,
            newer: 1,
            uses: Some([9, 8, 7]),
            short_address: Some(ShortAddress([10, 1, 0, 9])),
            long_address: None,
            on_port: None,
        };
        let heard = |node, counter| Heard {
            node: NodeId(node),
            start: StartId(0x0102_0304_0506_0708),
            counter,
        };
        let proofs = Proofs {
            asked: vec![NodeId(7)],
            doubted: vec![NodeId(5)],
            echoes: vec![heard(7, 259)],
            vouches: vec![heard(6, 9)],
        };
        let mut out = Vec::new();
        write_hello(&hello, &proofs, &mut out);
        let counts = [3, 232, 0, 3, 1, 2, 0, 9];
        let rest =
            [0xDE, 0xAD, 0xBE, 0xEF, 1, 2, 3, 4, 0x61, 0xC1, 0, 7, 0, 8, 10, 1, 0, 9, 9, 8, 7];
        let lists = [0x11, 0x11, 0, 7, 0, 5];
        let echo = [0, 7, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 1, 3];
        let vouch = [0, 6, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 9];
        assert_eq!(out, [&counts[..], &rest, &lists, &echo, &vouch].concat());
        assert_eq!(read_hello(&mut Reader::new(&out)), Ok((hello, proofs)));
        for cut in 0..out.len() {
            assert_eq!(read_hello(&mut Reader::new(&out[..cut])), Err(Malformed));
        }
    }

    #[test]
    fn a_long_address_has_a_bit_of_its_own_and_stands_alone() {
        let long = [2, 0, 0, 0, 0, 7, 0, 0];
        let hello = Hello {
            interval: Duration::from_millis(1000),
            short_sent: 1,
            long_sent: 0,
            neighbours: 0,
            digest: 0,
            asks: Vec::new(),
            late: Vec::new(),
            knows_older: false,
            newer: 0,
            uses: None,
            short_address: None,
            long_address: Some(LongAddress(long)),
            on_port: None,
        };
        let mut out = Vec::new();
        write_hello(&hello, &Proofs::default(), &mut out);
        assert_eq!(out[17], 0x20);
        assert_eq!(out[18..26], long);
        assert_eq!(read_hello(&mut Reader::new(&out)).unwrap().0, hello);
        out[17] = 0xA0;
        out.extend([0; 8]);
        assert_eq!(read_hello(&mut Reader::new(&out)), Err(Malformed));
    }

    #[test]
    fn a_hello_that_asks_too_many_is_malformed_and_an_interval_of_0_is_read_as_1() {
        let mut out = vec![0; 16];
        out.push(MAX_ASKED as u8 + 1);
        out.extend([0; 100]);
        assert_eq!(read_hello(&mut Reader::new(&out)), Err(Malformed));
        out[16] = 0;
        out[17] = 0;
        let (hello, _) = read_hello(&mut Reader::new(&out)).unwrap();
        assert_eq!(hello.interval, Duration::from_millis(1));
    }

    #[test]
    fn a_hello_of_a_node_with_several_ports_tells_of_its_port_last() {
        let heard = vec![HeardBack { node: NodeId(7), share: 250 }];
        let on_port = Some(OnPort { frames: 515, heard });
        let hello = Hello { on_port, ..Hello::of_test(1) };
        let mut out = Vec::new();
        write_hello(&hello, &Proofs::default(), &mut out);
        assert_eq!(out[17], 0x10);
        assert_eq!(out[18..24], [2, 3, 1, 0, 7, 250]);
        assert_eq!(read_hello(&mut Reader::new(&out)).unwrap().0, hello);
        out[20] = MAX_HEARD_BACK as u8 + 1;
        out.extend([0; 40]);
        assert_eq!(read_hello(&mut Reader::new(&out)), Err(Malformed));
    }

    fn again<'a, T: Record<'a>>(body: &'a [u8]) -> Option<Vec<u8>> {
        let record = T::from_body(body).ok()?;
        let mut out = Vec::new();
        record.put(&mut Writer::new(&mut out));
        Some(out)
    }

    proptest! {
        /// A body has one meaning: what is well-formed is written as it was.
        #[test]
        fn bodies_are_malformed_or_written_as_they_were(
            mut body in prop::collection::vec(any::<u8>(), 2..120),
            counts in prop::collection::vec(0..4_u8, 4),
        ) {
            for again in [again::<Compare>(&body), again::<States>(&body), again::<Wanted>(&body)] {
                prop_assert!(again.is_none_or(|again| again == body));
            }
            // A hello with lists so short that many fit. An interval of 0 is written as 1.
            body[0] |= 1;
            if body.len() > 20 {
                body[16] = body[16] & 0xE0 | counts[0];
                body[17] = body[17] & 0xA0 | counts[1];
                let address = match body[17] & 0xA0 {
                    0 => 0,
                    0x80 => size_of::<ShortAddress>(),
                    _ => size_of::<LongAddress>(),
                };
                let proofs = 18 + 2 * usize::from(counts[0] + counts[1]) + address;
                let lists = body.get_mut(proofs..).and_then(|rest| rest.first_chunk_mut());
                if let Some([asks, echoes]) = lists {
                    *asks = counts[2] << 4 | counts[3];
                    *echoes = counts[3] << 4 | counts[2];
                }
            }
            let mut r = Reader::new(&body);
            if let Ok((hello, proofs)) = read_hello(&mut r) {
                let mut out = Vec::new();
                write_hello(&hello, &proofs, &mut out);
                prop_assert_eq!(&out, &body[..body.len() - r.remaining()]);
            }
        }
    }
}
