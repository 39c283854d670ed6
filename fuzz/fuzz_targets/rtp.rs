//! Arbitrary datagrams at the ports of a source of RTP, and arbitrary packets at its receiver.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_host::streams::rtp::{LAYERS, LayerPacket, RtpPort, RtpReceiver, RtpSender};
use ncmesh_wire::{FlowId, NodeId};

const CODECS: [&str; 6] = ["h264", "h265", "vp8", "vp9", "av1", "opus"];

fuzz_target!(|input: (u8, Vec<(u8, bool, Vec<u8>)>)| {
    let (codec, packets) = input;
    let codec = CODECS[usize::from(codec) % CODECS.len()];
    let port: RtpPort = format!("{codec}=udp:5004").parse().expect("it is valid");
    let mut now = Instant::default();
    let mut sender = RtpSender::new(vec![port.track()], now);
    let mut receiver = RtpReceiver::default();
    let flow = FlowId { source: NodeId(1), serial: 1 };
    for (number, is_from_mesh, packet) in packets {
        now = now + Duration::from_millis(number.into());
        let mut out = Vec::new();
        if is_from_mesh {
            out.push(LayerPacket { layer: usize::from(number) % LAYERS.len(), packet });
        } else {
            sender.handle(usize::from(number % 2), &packet, now, &mut out);
        }
        for LayerPacket { layer, packet } in out {
            receiver.handle(flow, LAYERS[layer], &packet, now);
        }
        receiver.handle_timeout(now);
        while receiver.poll().is_some() {}
        let _ = receiver.sdp(6004);
    }
});
