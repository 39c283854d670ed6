//! Streams of RTP of the daemon: which of its streams and groups they are. What is done with their
//! packets is [`ncmesh_host::streams::rtp`].

use ncmesh_engine::time::Instant;
use ncmesh_host::streams::rtp::{LayerPacket, PORTS_PER_TRACK, RtpReceiver, RtpSender, Track};
use ncmesh_host::streams::{IngressPacket, Layer, not_played, not_rtp};
use ncmesh_wire::FlowId;
use std::collections::BTreeMap;

/// Streams of RTP that the daemon sends and receives.
#[derive(Debug, Default)]
pub(crate) struct RtpStreams {
    sources: BTreeMap<FlowId, RtpSource>,
    groups: BTreeMap<String, RtpGroup>,
}

#[derive(Debug)]
struct RtpSource {
    group: String,
    sender: RtpSender,
}

/// A group that is played as RTP.
#[derive(Debug)]
struct RtpGroup {
    /// Port of the first track.
    port: u16,
    receiver: RtpReceiver,
}

/// A packet for a local port.
pub(crate) struct PortPacket {
    pub(crate) port: u16,
    pub(crate) packet: Vec<u8>,
}

/// Returns the ports of tracks, as a source opens them: that of each track and the next one, for
/// RTCP.
pub(crate) fn ports(tracks: &[Track]) -> Vec<Layer> {
    let port = |track: &Track, at: u16| Layer {
        name: format!("{} of {}", if at == 0 { "RTP" } else { "RTCP" }, track.media),
        port: track.port + at,
    };
    tracks.iter().flat_map(|track| (0..PORTS_PER_TRACK).map(|at| port(track, at))).collect()
}

impl RtpStreams {
    // ---- sources

    /// Begins to send a stream.
    pub(crate) fn send(&mut self, flow: FlowId, group: &str, sender: RtpSender) {
        self.sources.insert(flow, RtpSource { group: group.into(), sender });
    }

    /// Ends the stream that is sent to a group.
    pub(crate) fn stop_sending(&mut self, group: &str) {
        self.sources.retain(|_, source| source.group != group);
    }

    /// Returns what becomes of a datagram that came in by a port: itself, if its stream is none of
    /// RTP.
    pub(crate) fn handle_ingress(
        &mut self,
        ingress: IngressPacket,
        now: Instant,
    ) -> Vec<IngressPacket> {
        let IngressPacket { flow, layer: port, .. } = ingress;
        let Some(source) = self.sources.get_mut(&flow) else { return vec![ingress] };
        let mut out = Vec::new();
        source.sender.handle(port, &ingress.packet, now, &mut out);
        let packet = |LayerPacket { layer, packet }| IngressPacket { flow, layer, packet };
        out.into_iter().map(packet).collect()
    }

    // ---- receivers

    /// Plays a group from `port` on. If it is played already, changes the port.
    pub(crate) fn join(&mut self, group: &str, port: u16) {
        let new = RtpGroup { port, receiver: RtpReceiver::default() };
        self.groups.entry(group.into()).or_insert(new).port = port;
    }

    /// Plays a group no longer.
    pub(crate) fn leave(&mut self, group: &str) {
        self.groups.remove(group);
    }

    /// Takes a packet that arrived. Returns whether its group is played as RTP.
    pub(crate) fn handle_packet(
        &mut self,
        flow: FlowId,
        group: &str,
        layer: &str,
        packet: &[u8],
        now: Instant,
    ) -> bool {
        let joined = self.groups.get_mut(group);
        let is_joined = joined.is_some();
        joined.into_iter().for_each(|joined| joined.receiver.handle(flow, layer, packet, now));
        is_joined
    }

    /// Returns when [`handle_timeout`](Self::handle_timeout) is due.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.groups.values().filter_map(|group| group.receiver.poll_timeout()).min()
    }

    /// Gives up packets that were waited for long enough.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        self.groups.values_mut().for_each(|group| group.receiver.handle_timeout(now));
    }

    /// Returns the next packet for a player.
    pub(crate) fn poll(&mut self) -> Option<PortPacket> {
        self.groups.values_mut().find_map(|RtpGroup { port, receiver }| {
            let playable = receiver.poll()?;
            Some(PortPacket { port: *port + playable.port, packet: playable.packet })
        })
    }

    /// Returns the session description for the player of a group.
    pub(crate) fn sdp(&self, group: &str) -> Option<String> {
        let RtpGroup { port, receiver } = self.groups.get(group)?;
        receiver.sdp(*port)
    }

    /// Returns what is wrong, for people.
    pub(crate) fn hints(&self) -> impl Iterator<Item = String> {
        let sent = self.sources.values().map(|RtpSource { group, sender }| {
            (sender.refused() > 0).then(|| not_rtp(group, sender.refused()))
        });
        let received = self.groups.iter().map(|(group, RtpGroup { receiver, .. })| {
            (receiver.refused() > 0).then(|| not_played(group, receiver.refused()))
        });
        sent.chain(received).flatten()
    }
}
