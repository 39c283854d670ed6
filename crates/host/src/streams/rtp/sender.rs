//! Source of a stream of RTP: finds the layer of each packet, and says what a receiver must know
//! to number packets again.

use super::format::{BASE, FIRST_OF_FRAME, Kind, LAYERS};
use super::marks::{Mark, Marks};
use super::packet::{RtpPacket, is_rtcp};
use super::sdp::{self, Track};
use ncmesh_engine::time::{Duration, Instant};

/// Time between two descriptions of the session. A node that joins waits that long for a picture.
/// The first one waits as long for packets of all tracks, since players read no other.
const SDP_INTERVAL: Duration = Duration::from_secs(1);
/// Time without packets of a track's payload type after which another one takes its place: an
/// encoder has begun again. Until then the other may be that of repairs beside it.
const TYPE_SILENCE: Duration = Duration::from_secs(2);
/// Packets that wait for the frame that they belong to, at most: messages about one picture.
const MAX_WAITING: usize = 8;

/// A packet for a layer of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayerPacket {
    /// The layer, 0 being the base.
    pub layer: usize,
    /// The packet, with a header that [`RtpReceiver`](super::RtpReceiver) reads.
    pub packet: Vec<u8>,
}

/// Source of a stream of RTP.
#[derive(Clone, Debug)]
pub struct RtpSender {
    tracks: Vec<TrackSender>,
    /// When the session is described next.
    next_sdp: Instant,
    /// When the first packet of a track came.
    begun: Option<Instant>,
    /// Datagrams that were not RTP.
    refused: u64,
}

#[derive(Clone, Debug)]
struct TrackSender {
    track: Track,
    /// When a packet of the track's payload type came last; `None` if packets do not tell the type.
    type_heard: Option<Instant>,
    marks: Marks,
    /// Packets of the base that were sent.
    base_count: u16,
    /// Timestamp of the last packet that was sent.
    last_timestamp: Option<u32>,
    /// Packets that go with the frame that follows them.
    waiting: Vec<Vec<u8>>,
    /// Timestamp and layer of the frame to which packets go that have no mark of their own.
    frame: Option<Frame>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Frame {
    timestamp: u32,
    layer: u8,
}

impl RtpSender {
    /// Returns the source of a stream with these tracks.
    #[must_use]
    pub fn new(tracks: Vec<Track>, now: Instant) -> Self {
        let sender = |track: Track| TrackSender {
            marks: Marks::new(track.codec),
            type_heard: track.payload_type.is_none().then_some(now),
            track,
            base_count: 0,
            last_timestamp: None,
            waiting: Vec::new(),
            frame: None,
        };

        let tracks = tracks.into_iter().map(sender).collect();
        Self { tracks, next_sdp: now, begun: None, refused: 0 }
    }

    /// Returns the names of the stream's layers.
    #[must_use]
    pub fn layers(&self) -> &'static [&'static str] {
        let count = self.tracks.iter().map(|track| track.marks.layers()).max();
        &LAYERS[..usize::from(count.unwrap_or(1))]
    }

    /// Returns how many datagrams were no RTP.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Takes a datagram that came to a port of a track: the first of both for RTP, the second for
    /// RTCP. Appends what is to be sent to `out`.
    pub fn handle(
        &mut self,
        port: usize,
        datagram: &[u8],
        now: Instant,
        out: &mut Vec<LayerPacket>,
    ) {
        // The port tells the track.
        let index = port / usize::from(sdp::PORTS_PER_TRACK);
        let Some(track) = self.tracks.get_mut(index) else { return };
        let number = index as u8;
        if is_rtcp(datagram) {
            let packet = [&[Kind::Rtcp as u8 | number][..], datagram].concat();
            out.push(LayerPacket { layer: BASE, packet });
        } else if port.is_multiple_of(usize::from(sdp::PORTS_PER_TRACK))
            && let Some(rtp) = RtpPacket::read(datagram)
        {
            track.note_type(rtp.payload_type, now);
            track.handle(number, rtp, datagram, out);
            self.begun.get_or_insert(now);
        } else {
            self.refused += 1;
            return;
        }

        // The description follows a packet, for it is worth nothing without packets.
        let Some(begun) = self.begun else { return };
        let is_whole = self.tracks.iter().all(|sender| sender.track.payload_type.is_some());
        if now >= self.next_sdp && (is_whole || now >= begun + SDP_INTERVAL) {
            self.next_sdp = now + SDP_INTERVAL;
            let tracks: Vec<Track> =
                self.tracks.iter().map(|sender| sender.track.clone()).collect();
            let text = sdp::write(&tracks, sdp::TRAVEL_PORT);
            let packet = [&[Kind::Sdp as u8][..], text.as_bytes()].concat();
            out.push(LayerPacket { layer: BASE, packet });
        }
    }
}

impl TrackSender {
    /// Notes the payload type of a packet.
    fn note_type(&mut self, payload_type: u8, now: Instant) {
        let Some(heard) = &mut self.type_heard else { return };
        // A type that changes is taken only after the old one was silent: packets of repair have
        // types of their own.
        let known = *self.track.payload_type.get_or_insert(payload_type);
        if known == payload_type || now >= *heard + TYPE_SILENCE {
            self.track.payload_type = Some(payload_type);
            *heard = now;
        }
    }

    fn handle(
        &mut self,
        number: u8,
        rtp: RtpPacket<'_>,
        datagram: &[u8],
        out: &mut Vec<LayerPacket>,
    ) {
        // The codec's marks tell the layer, or that the packet goes with the frame that it belongs
        // to.
        let earlier = self.frame.filter(|frame| frame.timestamp == rtp.timestamp);
        let layer = match (self.marks.mark(rtp.payload), earlier) {
            (Mark::Layer(layer), _) => layer,
            (Mark::WithFrame, Some(frame)) => frame.layer,
            // The frame follows, unless the marker says that this is its last packet.
            (Mark::WithFrame, None) => {
                self.waiting.push(datagram.to_vec());
                if rtp.marker || self.waiting.len() >= MAX_WAITING {
                    self.send_waiting(number, None, out);
                }
                return;
            }
        };

        let frame = Frame { timestamp: rtp.timestamp, layer };
        self.frame = Some(frame);
        self.send_waiting(number, Some(frame), out);
        self.send(number, rtp.timestamp, layer, datagram, out);
    }

    /// Sends packets that waited for `frame`: in its layer if they belong to it, else in the base.
    fn send_waiting(&mut self, number: u8, frame: Option<Frame>, out: &mut Vec<LayerPacket>) {
        for datagram in core::mem::take(&mut self.waiting) {
            let Some(rtp) = RtpPacket::read(&datagram) else { continue };
            let own = frame.filter(|frame| frame.timestamp == rtp.timestamp);
            let layer = own.map_or(0, |frame| frame.layer);
            self.send(number, rtp.timestamp, layer, &datagram, out);
        }
    }

    fn send(
        &mut self,
        number: u8,
        timestamp: u32,
        layer: u8,
        datagram: &[u8],
        out: &mut Vec<LayerPacket>,
    ) {
        // The header says whether a frame begins, and how many packets of the base came before.
        let is_first = self.last_timestamp.replace(timestamp) != Some(timestamp);
        let first = if is_first { FIRST_OF_FRAME } else { 0 };
        let mut packet = vec![Kind::Rtp as u8 | first | number];
        packet.extend_from_slice(&self.base_count.to_be_bytes());
        packet.extend_from_slice(datagram);
        let layer = usize::from(layer);
        self.base_count = self.base_count.wrapping_add(u16::from(layer == BASE));
        out.push(LayerPacket { layer, packet });
    }
}
