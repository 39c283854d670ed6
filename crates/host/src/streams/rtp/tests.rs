//! Tests of layers and numbers, on packets of real encoders and on garbage.

use super::*;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_wire::{FlowId, NodeId};
use proptest::prelude::*;

const FLOW: FlowId = FlowId { source: NodeId(3), serial: 1 };
const H264: &[u8] = include_bytes!("fixtures/h264.rtp");
const H265: &[u8] = include_bytes!("fixtures/h265.rtp");
const VP8: &[u8] = include_bytes!("fixtures/vp8.rtp");
const VP9: &[u8] = include_bytes!("fixtures/vp9.rtp");

fn packets(mut fixture: &'static [u8]) -> Vec<&'static [u8]> {
    let mut all = Vec::new();
    while let Some((length, rest)) = fixture.split_first_chunk() {
        let (packet, rest) = rest.split_at(u16::from_be_bytes(*length).into());
        all.push(packet);
        fixture = rest;
    }
    all
}

fn at(ms: u64) -> Instant {
    Instant::default() + Duration::from_millis(ms)
}

fn sender(codec: &str) -> RtpSender {
    let port: RtpPort = format!("{codec}=udp:5004").parse().unwrap();
    RtpSender::new(vec![port.track()], at(0))
}

/// Passes packets to a source, one each millisecond.
fn sent(codec: &str, packets: &[&[u8]]) -> Vec<LayerPacket> {
    let mut sender = sender(codec);
    let mut out = Vec::new();
    for (ms, packet) in (0..).zip(packets) {
        sender.handle(0, packet, at(ms), &mut out);
    }
    out
}

/// Passes packets to a receiver, one each millisecond, and waits for it to play all.
fn played(packets: &[LayerPacket]) -> Vec<Playable> {
    let mut receiver = RtpReceiver::default();
    for (ms, LayerPacket { layer, packet }) in (0..).zip(packets) {
        receiver.handle_timeout(at(ms));
        receiver.handle(FLOW, LAYERS[*layer], packet, at(ms));
    }
    while let Some(due) = receiver.poll_timeout() {
        receiver.handle_timeout(due);
    }
    assert_eq!(receiver.refused(), 0);
    core::iter::from_fn(|| receiver.poll()).collect()
}

fn numbers(played: &[Playable]) -> Vec<u16> {
    played.iter().map(|played| RtpPacket::read(&played.packet).unwrap().sequence).collect()
}

/// Frames of a layer, counted by their timestamps.
fn frames(sent: &[LayerPacket], layer: usize) -> usize {
    let own = sent.iter().filter(|sent| sent.layer == layer && sent.packet[0] == 0x20);
    own.count()
}

#[test]
fn real_encoders_mark_their_layers() {
    // x264 and x265 mark the B-frames that no other frame refers to.
    let h264 = sent("h264", &packets(H264));
    let h265 = sent("h265", &packets(H265));
    // libvpx marks the frames of its single layer as referred to.
    let vp8 = sent("vp8", &packets(VP8));
    let vp9 = sent("vp9", &packets(VP9));
    let all = [&h264, &h265, &vp8, &vp9];
    let counts = all.map(|sent| [frames(sent, 0), frames(sent, 1), frames(sent, 2)]);
    assert_eq!(counts, [[8, 4, 0], [7, 5, 0], [12, 0, 0], [12, 0, 0]]);
}

#[test]
fn marks_are_where_the_standards_have_them() {
    let base = Mark::Layer(0);
    let cases: [(Codec, &[u8], Mark); 30] = [
        // A slice that is referred to, one that is not, a key frame, parameters, SEI.
        (Codec::H264, &[0x41, 1], base),
        (Codec::H264, &[0x01, 1], Mark::Layer(1)),
        (Codec::H264, &[0x65, 1], base),
        (Codec::H264, &[0x67, 1], base),
        (Codec::H264, &[0x06, 1], Mark::WithFrame),
        // STAP-A: SEI with such a slice, and with one that is referred to.
        (Codec::H264, &[0x18, 0, 1, 0x06, 0, 2, 0x01, 9], Mark::Layer(1)),
        (Codec::H264, &[0x78, 0, 1, 0x06, 0, 2, 0x41, 9], base),
        (Codec::H264, &[0x18, 0, 9, 0x06], base),
        // FU-A of both.
        (Codec::H264, &[0x1C, 0x81, 1], Mark::Layer(1)),
        (Codec::H264, &[0x5C, 0x81, 1], base),
        (Codec::H264, &[], base),
        // TRAIL_R of two temporal layers, TRAIL_N, RASL_N, SPS, SEI.
        (Codec::H265, &[0x02, 1, 9], base),
        (Codec::H265, &[0x02, 2, 9], Mark::Layer(1)),
        (Codec::H265, &[0x00, 1, 9], Mark::Layer(1)),
        (Codec::H265, &[0x10, 3, 9], Mark::Layer(2)),
        (Codec::H265, &[0x42, 1, 9], base),
        (Codec::H265, &[0x4E, 1, 9], Mark::WithFrame),
        // A fragment and an aggregation.
        (Codec::H265, &[0x62, 2, 0x81], Mark::Layer(1)),
        (Codec::H265, &[0x60, 1, 0, 2, 0x00, 1, 0, 2, 0x02, 1], base),
        // The short descriptor without and with the bit N, then one with a temporal id.
        (Codec::Vp8, &[0x10, 0], base),
        (Codec::Vp8, &[0x30, 0], Mark::Layer(1)),
        (Codec::Vp8, &[0x90, 0xE0, 0x80, 1, 7, 0x80], Mark::Layer(2)),
        // Picture ids of one and two bytes, temporal and spatial ids.
        (Codec::Vp9, &[0x88, 1], base),
        (Codec::Vp9, &[0xA8, 1, 0x20, 7], Mark::Layer(1)),
        (Codec::Vp9, &[0xA8, 0x81, 1, 0x22, 7], Mark::Layer(2)),
        // One OBU without length: a frame, with an extension, and its sequence header before it.
        (Codec::Av1, &[0x10, 0x30, 9], base),
        (Codec::Av1, &[0x10, 0x34, 0x20, 9], Mark::Layer(1)),
        (Codec::Av1, &[0x20, 1, 0x08, 0x34, 0x20, 9], base),
        // Two with lengths; one with a length that is not there.
        (Codec::Av1, &[0x00, 2, 0x34, 0x40, 3, 0x34, 0x40, 9], Mark::Layer(2)),
        (Codec::Av1, &[0x00, 9, 0x34], base),
    ];
    for (codec, payload, mark) in cases {
        assert_eq!(Marks::new(codec).mark(payload), mark, "{codec:?} {payload:x?}");
    }
}

#[test]
fn an_obu_that_continues_stays_in_its_layer() {
    let mut marks = Marks::new(Codec::Av1);
    let layers = [&[0x50, 0x34, 0x20][..], &[0xD0, 9], &[0x90, 9], &[0x90, 9]];
    let layers = layers.map(|payload| marks.mark(payload));
    assert_eq!(layers, [Mark::Layer(1), Mark::Layer(1), Mark::Layer(1), Mark::Layer(0)]);
}

#[test]
fn an_aggregate_may_have_more_elements_than_a_byte_counts() {
    // Frames of one byte, of the second temporal layer, behind a length each.
    let payload = [&[0x00][..], &[2, 0x34, 0x20].repeat(400)].concat();
    assert_eq!(Marks::new(Codec::Av1).mark(&payload), Mark::Layer(1));
}

#[test]
fn what_arrives_completely_is_played_as_it_was_sent() {
    let all = [("h264", H264), ("h265", H265), ("vp8", VP8), ("vp9", VP9)];
    for (codec, fixture) in all {
        let packets = packets(fixture);
        let played = played(&sent(codec, &packets));
        let played: Vec<&[u8]> = played.iter().map(|played| &played.packet[..]).collect();
        assert_eq!(played, packets, "{codec}");
    }
}

#[test]
fn h264_without_parameter_sets_is_carried_as_it_is() {
    // Sets of sequence and picture (RFC 6184: types 7 and 8), and aggregates, which may have them.
    let is_slice = |packet: &&[u8]| {
        let payload = RtpPacket::read(packet).unwrap().payload;
        !matches!(payload[0] & 0x1F, 7 | 8 | 24)
    };
    let all = packets(H264);
    let slices: Vec<&[u8]> = all.iter().copied().filter(is_slice).collect();
    assert!(slices.len() < all.len());

    // Layers are those of the slices. Whether they can be decoded is the player's affair.
    let sent = sent("h264", &slices);
    assert_eq!([frames(&sent, 0), frames(&sent, 1)], [8, 4]);
    // Behind the numbers of packets, which begin at the third byte, nothing changes.
    let rest = |packet: &[u8]| packet[4..].to_vec();
    let played: Vec<Vec<u8>> = played(&sent).iter().map(|played| rest(&played.packet)).collect();
    let slices: Vec<Vec<u8>> = slices.into_iter().map(rest).collect();
    assert!(played == slices, "{} packets of {}", played.len(), slices.len());
}

#[test]
fn without_an_enhancement_numbers_have_no_gap() {
    for (codec, fixture) in [("h264", H264), ("h265", H265)] {
        let mut sent = sent(codec, &packets(fixture));
        let before = sent.len();
        sent.retain(|sent| sent.layer == 0);
        assert!(sent.len() < before);
        let numbers = numbers(&played(&sent));
        assert!(numbers.is_sorted_by(|a, b| a.wrapping_add(1) == *b), "{numbers:?}");
    }
}

#[test]
fn a_lost_packet_of_the_base_leaves_a_gap() {
    let mut sent = sent("h264", &packets(H264));
    let lost = sent.iter().rposition(|sent| sent.layer == 0).unwrap() - 1;
    let lost = (0..lost).rfind(|at| sent[*at].layer == 0).unwrap();
    sent.remove(lost);
    sent.retain(|sent| sent.layer == 0);
    let numbers = numbers(&played(&sent));
    let gaps = numbers.windows(2).filter(|pair| pair[0].wrapping_add(1) != pair[1]).count();
    assert_eq!(gaps, 1, "{numbers:?}");
}

/// RTP with one byte of payload per packet, of H.264.
fn packet(sequence: u16, timestamp: u32, marker: bool, nal: u8) -> Vec<u8> {
    let mut packet = vec![0x80, 96 | u8::from(marker) << 7];
    packet.extend(sequence.to_be_bytes());
    packet.extend(timestamp.to_be_bytes());
    packet.extend([0, 0, 0, 9, nal, 0x81]);
    packet
}

const REFERENCE: u8 = 0x41;
const DISPOSABLE: u8 = 0x01;

/// Frames of three packets each, every second of them disposable.
fn clip() -> Vec<LayerPacket> {
    let packets: Vec<Vec<u8>> = (0..30_u16)
        .map(|n| {
            let nal = if n / 3 % 2 == 1 { DISPOSABLE } else { REFERENCE };
            packet(65_520_u16.wrapping_add(n), 3000 * u32::from(n / 3), n % 3 == 2, nal)
        })
        .collect();
    let mut sent = sent("h264", &packets.iter().map(|packet| &packet[..]).collect::<Vec<_>>());
    // Without the description, which is another packet.
    sent.retain(|sent| sent.packet[0] & 0xC0 == 0);
    sent
}

#[test]
fn a_frame_without_its_beginning_is_not_played_and_one_without_its_end_shows_the_hole() {
    let without = |lost: usize| {
        let mut sent = clip();
        sent.remove(lost);
        numbers(&played(&sent))
    };
    // Packets 9 to 11 are a disposable frame.
    let headless = without(9);
    assert_eq!(headless.len(), 27);
    assert!(headless.is_sorted_by(|a, b| a.wrapping_add(1) == *b), "{headless:?}");
    let endless = without(11);
    let hole = endless.windows(2).position(|pair| pair[0].wrapping_add(1) != pair[1]);
    assert_eq!((endless.len(), hole), (29, Some(10)));
}

#[test]
fn messages_about_a_picture_go_with_it() {
    let sei = packet(1, 3000, false, 0x06);
    let slice = packet(2, 3000, true, DISPOSABLE);
    let alone = packet(3, 6000, true, 0x06);
    let sent = sent("h264", &[&packet(0, 0, true, REFERENCE), &sei, &slice, &alone]);
    let layers = sent.iter().filter(|sent| sent.packet[0] & 0xC0 == 0).map(|sent| sent.layer);
    assert_eq!(layers.collect::<Vec<_>>(), [0, 1, 1, 0]);
}

#[test]
fn the_wait_for_an_enhancement_that_does_not_come_becomes_short() {
    let mut receiver = RtpReceiver::default();
    let mut delay = Duration::ZERO;
    for (round, n) in (0_u64..).zip((0_u16..4000).step_by(2)) {
        let now = at(20 * round);
        while let Some(due) = receiver.poll_timeout().filter(|due| *due <= now) {
            receiver.handle_timeout(due);
        }
        // Every second packet was of the enhancement.
        let rtp = packet(n, u32::from(n), true, REFERENCE);
        let framed = [&[0x20][..], &(n / 2).to_be_bytes(), &rtp].concat();
        receiver.handle(FLOW, LAYERS[0], &framed, now);
        delay = receiver.poll_timeout().map_or(Duration::ZERO, |due| due - now);
    }
    assert!(delay <= Duration::from_millis(40), "{delay:?}");
}

/// Half a second late comes every packet of the enhancement, or one of eight.
#[test]
fn the_base_waits_for_an_enhancement_that_mostly_comes_and_for_no_other() {
    let median_delay = |share: u16| {
        let mut receiver = RtpReceiver::default();
        let mut delays = Vec::new();
        let mut late = std::collections::VecDeque::new();
        let mut sent = std::collections::BTreeMap::new();
        for n in 0_u16..2000 {
            let now = at(20 * u64::from(n));
            while let Some(due) = receiver.poll_timeout().filter(|due| *due <= now) {
                receiver.handle_timeout(due);
            }
            let rtp = packet(n, u32::from(n), true, REFERENCE);
            let framed = [&[0x20][..], &n.div_ceil(2).to_be_bytes(), &rtp].concat();
            if n % 2 == 0 {
                sent.insert(u32::from(n), now);
                receiver.handle(FLOW, LAYERS[0], &framed, now);
            } else if n / 2 % share == 0 {
                late.push_back((now + Duration::from_millis(500), framed));
            }
            while late.front().is_some_and(|(due, _)| *due <= now) {
                let (_, framed) = late.pop_front().unwrap();
                receiver.handle(FLOW, LAYERS[1], &framed, now);
            }
            for played in core::iter::from_fn(|| receiver.poll()) {
                let timestamp = RtpPacket::read(&played.packet).unwrap().timestamp;
                delays.extend(sent.get(&timestamp).map(|sent| now - *sent));
            }
        }
        delays.sort_unstable();
        delays[delays.len() / 2]
    };
    let all = median_delay(1);
    assert!((450..=800).contains(&all.as_millis()), "{all:?}");
    let few = median_delay(8);
    assert!(few <= Duration::from_millis(60), "{few:?}");
}

#[test]
fn one_of_two_sources_is_heard_and_the_other_after_it() {
    let other = FlowId { source: NodeId(4), serial: 1 };
    let sent = clip();
    let mut receiver = RtpReceiver::default();
    for LayerPacket { layer, packet } in &sent {
        receiver.handle(FLOW, LAYERS[*layer], packet, at(0));
        receiver.handle(other, LAYERS[*layer], packet, at(0));
    }
    assert_eq!(core::iter::from_fn(|| receiver.poll()).count(), sent.len());
    assert_eq!(receiver.refused(), sent.len() as u64);
    receiver.handle(other, LAYERS[0], &sent[0].packet, at(2000));
    assert_eq!(core::iter::from_fn(|| receiver.poll()).count(), 1);
}

#[test]
fn a_source_of_other_layers_is_no_source_of_rtp() {
    let other = FlowId { source: NodeId(4), serial: 1 };
    let sent = clip();
    let mut receiver = RtpReceiver::default();
    for (ms, LayerPacket { layer, packet }) in (0..).zip(&sent) {
        // An encoder whose layers have a port each, and garbage in a layer of RTP.
        receiver.handle(other, "base", &packet[3..], at(ms));
        receiver.handle(other, LAYERS[0], b"hello, world", at(ms));
        receiver.handle(FLOW, LAYERS[*layer], packet, at(ms));
    }
    assert_eq!(core::iter::from_fn(|| receiver.poll()).count(), sent.len());
    assert_eq!(receiver.refused(), 2 * sent.len() as u64);
}

#[test]
fn an_encoder_that_begins_again_with_lower_numbers_is_played() {
    let mut receiver = RtpReceiver::default();
    let mut arrive = |ms: u64, sequence: u16| {
        let rtp = packet(sequence, 0, true, REFERENCE);
        let framed = [&[0x20][..], &sequence.to_be_bytes(), &rtp].concat();
        receiver.handle(FLOW, LAYERS[0], &framed, at(ms));
        core::iter::from_fn(|| receiver.poll()).count()
    };
    let first: usize = (0..1000).map(|n| arrive(u64::from(n), n)).sum();
    assert_eq!(first, 1000);
    // Single packets that are late are not played, however late.
    assert_eq!([arrive(1000, 400), arrive(1001, 1000), arrive(1500, 500)], [0, 1, 0]);
    let second: usize = (0..500).map(|n| arrive(1600 + 10 * u64::from(n), n)).sum();
    assert!(second >= 250, "{second}");
}

#[test]
fn rtcp_and_the_description_reach_the_player() {
    let mut sender = sender("h264");
    let mut out = Vec::new();
    let report = [0x80, 200, 0, 1, 0, 0, 0, 9];
    sender.handle(1, &report, at(0), &mut out);
    sender.handle(0, &packet(1, 0, true, REFERENCE), at(0), &mut out);
    sender.handle(0, &packet(2, 0, true, REFERENCE), at(1), &mut out);
    assert_eq!(out.len(), 4);
    let mut receiver = RtpReceiver::default();
    assert_eq!(receiver.sdp(6004), None);
    for LayerPacket { layer, packet } in &out {
        receiver.handle(FLOW, LAYERS[*layer], packet, at(0));
    }
    let played: Vec<Playable> = core::iter::from_fn(|| receiver.poll()).collect();
    assert_eq!(played[0], Playable { port: 1, packet: report.to_vec() });
    assert_eq!((played.len(), played[1].port), (3, 0));
    let sdp = receiver.sdp(6004).unwrap();
    assert!(sdp.ends_with("m=video 6004 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\n"), "{sdp}");
}

/// Returns the description that a receiver has after packets of a video and of its sound, each
/// at a time in ms.
fn described(video: Option<u64>, sound: Option<u64>) -> Option<String> {
    let ports = ["h264=udp:5004", "opus=udp:5008"];
    let tracks = ports.map(|port| port.parse::<RtpPort>().unwrap().track());
    let mut sender = RtpSender::new(tracks.into(), at(0));
    let mut receiver = RtpReceiver::default();
    let mut out = Vec::new();
    for ms in 0..1100 {
        for (port, begin) in [(0, video), (2, sound)] {
            if begin.is_some_and(|begin| ms >= begin && (ms - begin) % 20 == 0) {
                sender.handle(port, &packet(ms as u16, 0, true, REFERENCE), at(ms), &mut out);
            }
        }
        for LayerPacket { layer, packet } in out.drain(..) {
            receiver.handle(FLOW, LAYERS[layer], &packet, at(ms));
        }
        // A player that waits takes the first description.
        if let Some(sdp) = receiver.sdp(6004) {
            return Some(sdp);
        }
    }
    None
}

#[test]
fn the_first_description_has_all_tracks_unless_one_of_them_is_silent() {
    for begin in [0, 300] {
        let sdp = described(Some(100), Some(begin)).unwrap();
        assert!(sdp.contains("m=video 6004") && sdp.contains("m=audio 6006"), "{sdp}");
    }
    // Without the video its sound keeps the ports that its packets leave by.
    let sdp = described(None, Some(0)).unwrap();
    assert!(!sdp.contains("m=video") && sdp.contains("m=audio 6006"), "{sdp}");
    assert_eq!(described(None, None), None);
}

#[test]
fn a_description_whose_tracks_have_no_ports_of_this_format_is_refused() {
    let mut receiver = RtpReceiver::default();
    for port in ["5005", "5012", "9"] {
        let text = format!("v=0\nm=audio {port} RTP/AVP 0");
        let packet = [&[0x80][..], text.as_bytes()].concat();
        receiver.handle(FLOW, LAYERS[0], &packet, at(0));
    }
    assert_eq!((receiver.refused(), receiver.sdp(6004)), (3, None));
}

#[test]
fn an_encoder_that_begins_again_with_another_type_is_described_anew() {
    let mut sender = sender("h264");
    let mut out = Vec::new();
    sender.handle(0, &packet(1, 0, true, REFERENCE), at(0), &mut out);
    let mut other = packet(2, 0, true, REFERENCE);
    other[1] = 111;
    // Repairs beside a video have another type, too.
    sender.handle(0, &other, at(1000), &mut out);
    sender.handle(0, &other, at(2000), &mut out);
    let texts = out.iter().filter(|sent| sent.packet[0] & 0xC0 == 0x80);
    let texts: Vec<_> = texts.map(|sent| String::from_utf8_lossy(&sent.packet[1..])).collect();
    let numbers = texts.iter().map(|text| text.split("AVP ").nth(1).unwrap_or_default());
    let numbers: Vec<&str> = numbers.filter_map(|rest| rest.split('\r').next()).collect();
    assert_eq!(numbers, ["96", "96", "111"]);
}

#[test]
fn a_session_at_the_last_ports_is_described() {
    let ports = ["h264=udp:65534", "opus=udp:5004"];
    let tracks = ports.map(|port| port.parse::<RtpPort>().unwrap().track());
    let mut sender = RtpSender::new(tracks.into(), at(0));
    let mut out = Vec::new();
    sender.handle(0, &packet(1, 0, true, REFERENCE), at(0), &mut out);
    sender.handle(2, &packet(1, 0, true, 7), at(1000), &mut out);
    let mut receiver = RtpReceiver::default();
    for LayerPacket { layer, packet } in &out {
        receiver.handle(FLOW, LAYERS[*layer], packet, at(1000));
    }
    assert_eq!(receiver.refused(), 0);
    assert_eq!(receiver.sdp(6004).unwrap().matches("m=").count(), 2);
}

#[test]
fn datagrams_that_are_no_rtp_are_counted() {
    let mut sender = sender("h264");
    let mut out = Vec::new();
    for datagram in [&b""[..], b"hello, world", &[0x80; 11], &[0x90; 12], &[0xA0; 13]] {
        sender.handle(0, datagram, at(0), &mut out);
    }
    // The port of RTCP takes nothing else.
    sender.handle(1, &packet(1, 0, true, REFERENCE), at(0), &mut out);
    assert_eq!((out.len(), sender.refused()), (0, 6));
}

proptest! {
    /// Whatever the order in which packets of all layers come, if not later than a wait.
    #[test]
    fn order_is_restored(keys in prop::collection::vec(0_u8..=255, 30)) {
        let sent = clip();
        let mut shuffled: Vec<(usize, &LayerPacket)> = sent.iter().enumerate().collect();
        shuffled.sort_by_key(|(at, _)| at + usize::from(keys[*at] % 8));
        // The first one says where the track begins.
        shuffled.sort_by_key(|(at, _)| *at != 0);
        let shuffled: Vec<LayerPacket> =
            shuffled.into_iter().map(|(_, sent)| sent.clone()).collect();
        prop_assert_eq!(numbers(&played(&shuffled)), numbers(&played(&sent)));
    }

    #[test]
    fn garbage_is_no_harm(
        packets in prop::collection::vec(
            (0_usize..4, prop::collection::vec(any::<u8>(), 0..40)), 0..60),
        codec in prop::sample::select(vec!["h264", "h265", "vp8", "vp9", "av1", "opus"]),
    ) {
        let mut sender = sender(codec);
        let mut receiver = RtpReceiver::default();
        let mut out = Vec::new();
        for (ms, (layer, packet)) in (0..).zip(&packets) {
            receiver.handle(FLOW, LAYERS[layer % 3], packet, at(10 * ms));
            // Most random bytes are no RTP, so half of them get its version.
            let mut rtp = packet.clone();
            if let Some(first) = rtp.first_mut() {
                *first = 0x80 | *first & 0x3F;
            }
            sender.handle(layer % 2, &rtp, at(10 * ms), &mut out);
        }
        for (ms, LayerPacket { layer, packet }) in (0..).zip(&out) {
            prop_assert!(*layer < sender.layers().len());
            receiver.handle(FLOW, LAYERS[*layer], packet, at(10 * ms));
        }
        while let Some(due) = receiver.poll_timeout() {
            receiver.handle_timeout(due);
        }
    }
}
