//! Round trips, read off the packets that pass the gateway anyway.
//!
//! Each segment of TCP has a timestamp, and the far host repeats it in its answer (RFC 7323, 3). An
//! echo request of ICMP has a number that the reply repeats. So the time from a number's way into
//! the tunnel until it comes back is the round trip from here through the mesh to the far host and
//! back. It includes all queues on the way, the gateway's too, and the far host's time to answer:
//! up to 40 ms where Linux delays an acknowledgment. It needs no common clock, and no packet is
//! added or changed. The method is that of `pping` (Nichols 2017).
//!
//! Three rules keep out times that are no round trips:
//!
//! - Only the first packet with a number counts, and only the first answer to it. A host's clock
//!   may be coarse, so that many segments have the same timestamp.
//! - Nothing demands an answer to a pure acknowledgment. Its timestamp comes back whenever the far
//!   host has something to say, so that it is not awaited.
//! - An answer to a later number than the one awaited ends the wait: a segment that filled a gap is
//!   acknowledged by its own timestamp, and those sent meanwhile are never repeated.

use super::header::{Header, tcp_options};
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::toolkit::average::DurationAverage;
use ncmesh_engine::toolkit::bounded::make_room;
use ncmesh_wire::NodeId;
use smoltcp::wire::{Icmpv4Message, Icmpv6Message, IpProtocol, TcpOption, TcpPacket};
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

/// Time for which a measurement counts, and for which an answer is awaited.
const WINDOW: Duration = Duration::from_secs(10);
/// Time over which measurements share one minimum. It bounds what is kept of a window.
const SLICE: Duration = Duration::from_secs(1);
/// Weight of the newest measurement in the smoothed round trip (RFC 6298, 2).
const WEIGHT: f64 = 0.125;
/// Most connections that are followed. Another one takes the place of the one silent longest.
const MAX_CONNECTIONS: usize = 256;
/// Most numbers of a connection that are awaited at a time; those between are not measured.
const MAX_AWAITED: usize = 8;
/// Most nodes whose round trips are kept.
const MAX_NODES: usize = 1024;

/// Round trip to the hosts behind a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundTrip {
    /// Moving average.
    pub smoothed: Duration,
    /// Shortest of the last 10 s: the way with the least queueing.
    pub min: Duration,
}

/// Both ends of a connection, and the node behind which the far one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Connection {
    node: NodeId,
    here: IpAddr,
    there: IpAddr,
    protocol: u8,
    /// Port here and there. The identifier of ICMP is the same at both ends.
    ports: [u16; 2],
}

/// Question in a packet of a connection.
#[derive(Debug)]
struct Asked {
    newest: u32,
    /// When the newest number went into the tunnel.
    at: Instant,
    /// Numbers that are to be answered, the oldest first.
    awaited: VecDeque<(u32, Instant)>,
}

/// Latest measurements.
#[derive(Debug)]
struct Recent {
    smoothed: DurationAverage,
    /// When each slice of time began, and the least of it, the oldest first.
    least: VecDeque<(Instant, Duration)>,
}

/// Round trips from a gateway to the nodes that its host talks to.
#[derive(Debug, Default)]
pub(super) struct RoundTrips {
    connections: BTreeMap<Connection, Asked>,
    nodes: BTreeMap<NodeId, Recent>,
}

impl RoundTrips {
    /// Returns the round trip to a node; `None` if nothing was measured in the last 10 s.
    pub(super) fn to(&self, node: NodeId, now: Instant) -> Option<RoundTrip> {
        let recent = self.nodes.get(&node)?;
        Some(RoundTrip { smoothed: recent.smoothed.value(), min: recent.min(now)? })
    }

    /// Notes a packet that goes into the tunnel.
    pub(super) fn handle_outbound(&mut self, to: NodeId, header: &Header<'_>, now: Instant) {
        let Some(Numbers { ports, ask: Some(ask), .. }) = Numbers::read(header) else { return };
        let here = header.source;
        let there = header.destination;
        let key = Connection { node: to, here, there, protocol: header.protocol.into(), ports };

        // A connection that was idle for long, or begins again, is a new one.
        let is_other = |known: &Asked| ask.begins && ask.number != known.newest;
        let known = self.connections.get(&key);
        if known.is_none_or(|known| now - known.at > WINDOW || is_other(known)) {
            make_room(&mut self.connections, &key, MAX_CONNECTIONS, |asked| asked.at);
            let before = ask.number.wrapping_sub(1);
            let asked = Asked { newest: before, at: now, awaited: VecDeque::new() };
            self.connections.insert(key, asked);
        }

        let Some(asked) = self.connections.get_mut(&key) else { return };
        if !is_later(ask.number, asked.newest) {
            return;
        }
        asked.newest = ask.number;
        asked.at = now;

        // A number that was never answered is forgotten.
        while asked.awaited.front().is_some_and(|(_, at)| now - *at > WINDOW) {
            asked.awaited.pop_front();
        }
        if ask.demands_answer && asked.awaited.len() < MAX_AWAITED {
            asked.awaited.push_back((ask.number, now));
        }
    }

    /// Notes a packet that came out of the tunnel. A node can answer only what was sent to it.
    pub(super) fn handle_inbound(&mut self, from: NodeId, header: &Header<'_>, now: Instant) {
        let Some(Numbers { ports: [there_port, here_port], answer: Some(answer), .. }) =
            Numbers::read(header)
        else {
            return;
        };

        // Ports and addresses are those of the request, the other way round.
        let here = header.destination;
        let there = header.source;
        let ports = [here_port, there_port];
        let key = Connection { node: from, here, there, protocol: header.protocol.into(), ports };

        let Some(asked) = self.connections.get_mut(&key) else { return };

        // An answer ends the wait for its number and for all before it. It measures its own alone.
        while let Some((number, at)) = asked.awaited.front().copied() {
            if is_later(number, answer) {
                return;
            }
            asked.awaited.pop_front();
            if number == answer && now - at <= WINDOW {
                make_room(&mut self.nodes, &from, MAX_NODES, Recent::since);
                return self.nodes.entry(from).or_insert_with(Recent::new).add(now - at, now);
            }
        }
    }
}

impl Recent {
    fn new() -> Self {
        Self { smoothed: DurationAverage::new(WEIGHT), least: VecDeque::new() }
    }

    /// Adds a measurement. After a pause those before it tell nothing.
    fn add(&mut self, round_trip: Duration, now: Instant) {
        if self.min(now).is_none() {
            *self = Self::new();
        }

        self.smoothed.add(round_trip);

        // The least of each slice of time is kept, so that the window can slide.
        match self.least.back_mut() {
            Some((since, least)) if now - *since < SLICE => *least = round_trip.min(*least),
            _ => self.least.push_back((now, round_trip)),
        }

        while self.least.front().is_some_and(|(since, _)| now - *since > WINDOW) {
            self.least.pop_front();
        }
    }

    /// Returns the least of the window that ends now.
    fn min(&self, now: Instant) -> Option<Duration> {
        let within = self.least.iter().filter(|(since, _)| now - *since <= WINDOW);
        within.map(|(_, least)| *least).min()
    }

    /// Returns when the last slice began.
    fn since(&self) -> Option<Instant> {
        self.least.back().map(|(since, _)| *since)
    }
}

/// Content of a packet that concerns round trips.
struct Numbers {
    /// Port of the source and of the destination, or the identifier of an echo twice.
    ports: [u16; 2],
    ask: Option<Ask>,
    /// Number that it answers.
    answer: Option<u32>,
}

/// Number that the far host repeats.
struct Ask {
    number: u32,
    /// Whether the connection begins with it.
    begins: bool,
    demands_answer: bool,
}

impl Numbers {
    /// Reads them from a packet that is no fragment. The checksum is left to the hosts: what is
    /// damaged on the way names no connection, or a number that nobody awaits.
    fn read(header: &Header<'_>) -> Option<Self> {
        let payload = header.payload?;
        match header.protocol {
            IpProtocol::Tcp => Self::of_segment(payload),
            IpProtocol::Icmp => {
                let ask = Icmpv4Message::EchoRequest;
                let answer = Icmpv4Message::EchoReply;
                Self::of_echo(payload, ask.into(), answer.into())
            }
            IpProtocol::Icmpv6 => {
                let ask = Icmpv6Message::EchoRequest;
                let answer = Icmpv6Message::EchoReply;
                Self::of_echo(payload, ask.into(), answer.into())
            }
            _ => None,
        }
    }

    fn of_segment(segment: &[u8]) -> Option<Self> {
        let tcp = TcpPacket::new_checked(segment).ok()?;

        // The timestamps option numbers segments, and repeats the newest number of the other end
        // (RFC 7323).
        let (value, echo) = tcp_options(tcp.options()).find_map(|(_, option)| match option {
            TcpOption::TimeStamp { tsval, tsecr } => Some((tsval, tsecr)),
            _ => None,
        })?;

        let demands_answer = tcp.syn() || tcp.fin() || !tcp.payload().is_empty();
        let ask = Ask { number: value, begins: tcp.syn(), demands_answer };
        Some(Self {
            ports: [tcp.src_port(), tcp.dst_port()],
            ask: (!tcp.rst()).then_some(ask),
            // Without the flag the field means nothing (RFC 7323, 3.2).
            answer: tcp.ack().then_some(echo),
        })
    }

    /// Reads an echo message of ICMP, whose types for request and reply are given (RFC 792, 4443).
    fn of_echo(message: &[u8], request: u8, reply: u8) -> Option<Self> {
        let [kind, 0, _, _, id_high, id_low, high, low] = *message.first_chunk()? else {
            return None;
        };

        // In the upper half, sequence numbers of 16 bits wrap where those of 32 bits do.
        let number = u32::from(u16::from_be_bytes([high, low])) << 16;
        let ask = Ask { number, begins: false, demands_answer: true };
        Some(Self {
            ports: [u16::from_be_bytes([id_high, id_low]); 2],
            ask: (kind == request).then_some(ask),
            answer: (kind == reply).then_some(number),
        })
    }
}

/// Returns whether `number` comes after `other`, among numbers that wrap (RFC 7323, 5.2).
fn is_later(number: u32, other: u32) -> bool {
    number.wrapping_sub(other).cast_signed() > 0
}

#[cfg(test)]
mod tests {
    use super::super::packets::{segment, v4, v6};
    use super::*;
    use proptest::prelude::*;

    const FAR: NodeId = NodeId(5);
    const OTHER: NodeId = NodeId(6);
    const SYN: u8 = 2;
    const ACK: u8 = 16;

    fn at(ms: u64) -> Instant {
        Instant::default() + Duration::from_millis(ms)
    }

    /// Returns a segment from the host with a timestamp and the one that it repeats.
    fn stamped(flags: u8, value: u32, echo: u32, payload: &[u8]) -> Vec<u8> {
        let [value, echo] = [value, echo].map(u32::to_be_bytes);
        segment(false, flags, &[&[1, 1, 8, 10], &value[..], &echo].concat(), payload)
    }

    fn data(value: u32) -> Vec<u8> {
        stamped(ACK, value, 0, b"data")
    }

    /// Returns the acknowledgment of what was sent with a timestamp, on its way to the host.
    fn ack(echo: u32) -> Vec<u8> {
        back(stamped(ACK, 900, echo, b""))
    }

    /// Turns a segment of IPv4 around.
    fn back(mut packet: Vec<u8>) -> Vec<u8> {
        packet[12..20].rotate_left(4);
        packet[20..24].rotate_left(2);
        packet
    }

    fn echo(is_v6: bool, is_reply: bool, [identifier, sequence]: [u16; 2]) -> Vec<u8> {
        let [id, number] = [identifier, sequence].map(u16::to_be_bytes);
        let kind = match (is_v6, is_reply) {
            (false, false) => 8,
            (false, true) => 0,
            (true, false) => 128,
            (true, true) => 129,
        };
        let message = [&[kind, 0, 0, 0], &id[..], &number, b"contents"].concat();
        let mut ends = if is_v6 { ["fd00::1", "fd00::2"] } else { ["10.0.0.1", "10.0.0.2"] };
        if is_reply {
            ends.reverse();
        }
        let (write, protocol): (fn(_, _, _, &[u8]) -> _, _) =
            if is_v6 { (v6, IpProtocol::Icmpv6) } else { (v4, IpProtocol::Icmp) };
        write(ends[0], ends[1], protocol, &message)
    }

    impl RoundTrips {
        fn sends(&mut self, packet: &[u8], ms: u64) {
            self.handle_outbound(FAR, &Header::read(packet).unwrap(), at(ms));
        }

        fn gets(&mut self, packet: &[u8], ms: u64) {
            self.handle_inbound(FAR, &Header::read(packet).unwrap(), at(ms));
        }

        /// Returns smoothed value and minimum, ms.
        fn shown(&self, ms: u64) -> Option<[u128; 2]> {
            let RoundTrip { smoothed, min } = self.to(FAR, at(ms))?;
            Some([smoothed, min].map(|time| time.as_millis()))
        }
    }

    #[test]
    fn handshake_and_data_tell_the_round_trip() {
        let mut trips = RoundTrips::default();
        trips.sends(&stamped(SYN, 100, 0, b""), 0);
        assert_eq!(trips.shown(0), None);
        trips.gets(&back(stamped(SYN | ACK, 900, 100, b"")), 30);
        assert_eq!(trips.shown(30), Some([30, 30]));
        trips.sends(&data(200), 100);
        trips.gets(&ack(200), 114);
        // An eighth of the way from 30 to 14.
        assert_eq!(trips.shown(114), Some([28, 14]));
        assert_eq!(trips.to(OTHER, at(114)), None);
    }

    #[test]
    fn the_answer_to_a_connection_from_afar_tells_it_too() {
        let mut trips = RoundTrips::default();
        trips.gets(&back(stamped(SYN, 900, 0, b"")), 0);
        trips.sends(&stamped(SYN | ACK, 100, 900, b""), 1);
        trips.gets(&ack(100), 21);
        assert_eq!(trips.shown(21), Some([20, 20]));
    }

    #[test]
    fn only_the_first_packet_with_a_number_and_the_first_answer_count() {
        let mut trips = RoundTrips::default();
        trips.sends(&data(100), 0);
        trips.sends(&data(100), 8);
        trips.gets(&ack(100), 20);
        trips.gets(&ack(100), 500);
        trips.sends(&data(100), 600);
        trips.gets(&ack(100), 601);
        // One of an older clock, such as a segment that another way has held up.
        trips.sends(&data(99), 700);
        trips.gets(&ack(99), 701);
        assert_eq!(trips.shown(701), Some([20, 20]));
    }

    #[test]
    fn what_demands_no_answer_is_not_awaited() {
        let mut trips = RoundTrips::default();
        trips.sends(&stamped(ACK, 100, 900, b""), 0);
        // The far host repeats it when it has something to say.
        trips.gets(&back(stamped(ACK, 950, 100, b"late")), 5000);
        // Data with the same timestamp is not the first that the far host may repeat it of.
        trips.sends(&stamped(ACK, 101, 950, b""), 5010);
        trips.sends(&data(101), 5020);
        trips.gets(&ack(101), 5022);
        assert_eq!(trips.shown(5022), None);
    }

    #[test]
    fn a_filled_gap_ends_the_wait_for_what_came_before() {
        let mut trips = RoundTrips::default();
        // The first is lost, so that the far host repeats what it had before the second.
        for (value, ms) in [(100, 0), (101, 1)] {
            trips.sends(&data(value), ms);
        }
        trips.gets(&ack(50), 20);
        trips.sends(&data(300), 200);
        trips.gets(&ack(300), 220);
        trips.gets(&ack(101), 230);
        assert_eq!(trips.shown(230), Some([20, 20]));
        assert!(trips.connections.values().all(|asked| asked.awaited.is_empty()));
    }

    #[test]
    fn a_lost_value_does_not_stop_the_measurement_of_many() {
        let mut trips = RoundTrips::default();
        (0..100).for_each(|ms| trips.sends(&data(ms), u64::from(ms)));
        assert!(trips.connections.values().all(|asked| asked.awaited.len() == MAX_AWAITED));
        // Nothing comes back for long: the host goes on, and what waits is forgotten.
        trips.sends(&data(11_000), 11_000);
        trips.gets(&ack(11_000), 11_025);
        assert_eq!(trips.shown(11_025), Some([25, 25]));
        trips.sends(&data(12_000), 12_000);
        trips.gets(&ack(12_000), 22_001);
        assert_eq!(trips.shown(22_001), None, "an answer after more than 10 s is none");
    }

    #[test]
    fn a_port_used_again_begins_anew() {
        let mut trips = RoundTrips::default();
        trips.sends(&data(1_000_000), 0);
        trips.sends(&stamped(SYN, 7, 0, b""), 10);
        // Another SYN with the same timestamp is the same one again.
        trips.sends(&stamped(SYN, 7, 0, b""), 20);
        trips.gets(&back(stamped(SYN | ACK, 900, 7, b"")), 25);
        trips.gets(&ack(1_000_000), 26);
        assert_eq!(trips.shown(26), Some([15, 15]));
        // After a pause a connection may have any clock.
        trips.sends(&data(3), 10_100);
        trips.gets(&ack(3), 10_105);
        assert_eq!(trips.shown(10_105), Some([5, 5]));
    }

    #[test]
    fn replies_tell_it_in_both_versions_of_ip_though_numbers_wrap_and_get_lost() {
        for is_v6 in [false, true] {
            let mut trips = RoundTrips::default();
            for (n, sequence) in [65_533, 65_534, 65_535, 0, 1, 2].into_iter().enumerate() {
                let ms = 1000 * n as u64;
                trips.sends(&echo(is_v6, false, [7, sequence]), ms);
                if sequence == 65_534 {
                    continue;
                }
                // That of another ping is none, nor is a request of the far host.
                trips.gets(&echo(is_v6, true, [8, sequence]), ms + 1);
                trips.gets(&echo(is_v6, false, [7, sequence]), ms + 1);
                trips.gets(&echo(is_v6, true, [7, sequence]), ms + 40);
                assert_eq!(trips.shown(ms + 40), Some([40, 40]), "{sequence}");
            }
        }
    }

    #[test]
    fn the_minimum_is_that_of_the_last_ten_seconds() {
        let mut trips = RoundTrips::default();
        let mut measure = |value: u32, ms, round_trip| {
            trips.sends(&data(value), ms);
            trips.gets(&ack(value), ms + round_trip);
            trips.shown(ms + round_trip).unwrap()[1]
        };
        assert_eq!(measure(1, 0, 10), 10);
        let lows: Vec<u128> = (1..20).map(|n| measure(n + 1, u64::from(n) * 1000, 50)).collect();
        assert!(lows[..9].iter().all(|low| *low == 10), "{lows:?}");
        assert!(lows[10..].iter().all(|low| *low == 50), "{lows:?}");
        assert!(trips.nodes[&FAR].least.len() <= 11);
        assert!(trips.shown(29_000).is_some() && trips.shown(29_100).is_none());
        // Samples after a pause are not mixed with earlier ones.
        trips.sends(&data(100), 60_000);
        trips.gets(&ack(100), 60_002);
        assert_eq!(trips.shown(60_002), Some([2, 2]));
    }

    #[test]
    fn answers_of_others_count_for_nothing() {
        let mut trips = RoundTrips::default();
        trips.sends(&data(100), 0);
        let ack = ack(100);
        trips.handle_inbound(OTHER, &Header::read(&ack).unwrap(), at(5));
        let mut other_port = ack.clone();
        let mut no_ack = ack.clone();
        let mut fragment = ack.clone();
        other_port[21] ^= 1;
        no_ack[33] = 0;
        fragment[6] |= 0x20;
        for packet in [other_port, no_ack, fragment, back(stamped(ACK, 900, 99, b""))] {
            trips.gets(&packet, 5);
        }
        assert!(trips.nodes.is_empty());
        trips.gets(&ack, 9);
        assert_eq!(trips.shown(9), Some([9, 9]));
    }

    #[test]
    fn segments_whose_options_are_wrong_say_nothing() {
        let timestamp = [8, 10, 0, 0, 0, 100, 0, 0, 0, 0, 1, 1];
        let mut fragment = data(100);
        fragment[6] = 0x20;
        let mut reset = data(100);
        reset[33] |= 4;
        let mut long_header = data(100);
        long_header[32] = 0xf0;
        let mut short_header = data(100);
        short_header[32] = 0x40;
        let of = |options: &[u8]| segment(false, ACK, options, b"data");
        for packet in [
            of(&[]),
            of(&[&[8, 0], &timestamp[2..]].concat()),
            of(&[&[8, 1], &timestamp[2..]].concat()),
            of(&[&[8, 9], &timestamp[2..]].concat()),
            of(&[&[8, 40], &timestamp[2..]].concat()),
            of(&[&[0; 4], &timestamp[..]].concat()),
            of(&[&[2, 0, 1, 1], &timestamp[..]].concat()),
            of(&timestamp[..8]),
            fragment,
            reset,
            long_header,
            short_header,
            v4("10.0.0.1", "10.0.0.2", IpProtocol::Tcp, &[1, 2, 3]),
            v4("10.0.0.1", "10.0.0.2", IpProtocol::Icmp, &[8, 0, 0, 0, 1, 2, 3]),
            v4("10.0.0.1", "10.0.0.2", IpProtocol::Udp, &data(100)[20..]),
        ] {
            let mut trips = RoundTrips::default();
            trips.sends(&packet, 0);
            assert!(trips.connections.is_empty(), "{packet:?}");
        }
    }

    #[test]
    fn state_stays_bounded() {
        let mut trips = RoundTrips::default();
        for n in 0..3 * MAX_NODES as u32 {
            let (node, [port_high, port_low]) = (NodeId(n as u16), (n as u16).to_be_bytes());
            let mut request = data(100);
            request[20..22].copy_from_slice(&[port_high, port_low]);
            let mut answer = ack(100);
            answer[22..24].copy_from_slice(&[port_high, port_low]);
            trips.handle_outbound(node, &Header::read(&request).unwrap(), at(n.into()));
            trips.handle_inbound(node, &Header::read(&answer).unwrap(), at(n.into()));
        }
        assert_eq!((trips.connections.len(), trips.nodes.len()), (MAX_CONNECTIONS, MAX_NODES));
        // The latest stay.
        assert!(trips.nodes.contains_key(&NodeId(3 * MAX_NODES as u16 - 1)));
    }

    proptest! {
        #[test]
        fn no_packet_panics_and_none_that_comes_makes_state(
            mut packet in prop::collection::vec(any::<u8>(), 40..120),
            start in prop::sample::select(vec![0x45_u8, 0x4f, 0x60]),
            protocol in prop::sample::select(vec![1_u8, 6, 58]),
        ) {
            packet[0] = start;
            let len = packet.len() as u16;
            let (length_at, len, protocol_at) =
                if start == 0x60 { (4, len - 40, 6) } else { (2, len, 9) };
            packet[length_at..length_at + 2].copy_from_slice(&len.to_be_bytes());
            packet[protocol_at] = protocol;
            // Whole, for two of three.
            packet[7] = 0;
            packet[6] &= if start == 0x60 { 0xff } else { 0x40 };
            let Ok(header) = Header::read(&packet) else { return Ok(()) };
            let mut trips = RoundTrips::default();
            trips.handle_inbound(FAR, &header, at(0));
            prop_assert!(trips.connections.is_empty() && trips.nodes.is_empty());
            trips.handle_outbound(FAR, &header, at(0));
            trips.handle_inbound(FAR, &header, at(1));
            prop_assert!(trips.connections.len() <= 1);
        }

        #[test]
        fn a_measured_time_is_one_between_two_packets(
            steps in prop::collection::vec(
                (any::<bool>(), 0..20_u32, any::<bool>(), 0..300_u64),
                1..200,
            ),
        ) {
            let mut trips = RoundTrips::default();
            let mut now = 0;
            let mut first = BTreeMap::new();
            for (outbound, value, has_data, pause) in steps {
                now += pause;
                if outbound {
                    let payload: &[u8] = if has_data { b"data" } else { b"" };
                    trips.sends(&stamped(ACK, value, 0, payload), now);
                    first.entry(value).or_insert(now);
                } else {
                    trips.gets(&ack(value), now);
                }
                if let Some(RoundTrip { smoothed, min }) = trips.to(FAR, at(now)) {
                    let longest = now - first.values().min().copied().unwrap_or(now);
                    prop_assert!(min.max(smoothed) <= Duration::from_millis(longest));
                }
                prop_assert!(trips.connections.values().all(|a| a.awaited.len() <= MAX_AWAITED));
            }
        }
    }
}
