//! TCP segments as IPv4 packets: the fields that both ends use, read and written.

use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    IPV4_HEADER_LEN, IpProtocol, Ipv4Address, Ipv4Packet, Ipv4Repr, TCP_HEADER_LEN, TcpControl,
    TcpPacket, TcpRepr, TcpSeqNumber, TcpTimestampRepr,
};

/// Bytes of the timestamps option in every segment, padding included (RFC 7323).
const TIMESTAMPS: usize = 12;
/// Length of the headers of a data packet, bytes.
pub(crate) const HEADERS: usize = IPV4_HEADER_LEN + TCP_HEADER_LEN + TIMESTAMPS;
/// Headers that the maximum segment size does not include, bytes (RFC 9293, 3.7.1).
const MSS_HEADERS: usize = IPV4_HEADER_LEN + TCP_HEADER_LEN;
/// Shift of the windows in segments (RFC 7323). Covers buffers of 64 MiB.
pub(super) const WINDOW_SHIFT: u8 = 10;

/// Address and port of one end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Endpoint {
    pub address: Ipv4Address,
    pub port: u16,
}

/// Timestamps option of a segment, ms (RFC 7323, 3).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Timestamps {
    /// Clock of the sender of the segment (TSval).
    pub value: u32,
    /// Value of the other end's segment that it answers (TSecr).
    pub echo: u32,
}

/// A segment.
#[derive(Clone, Debug, Default)]
pub(super) struct Segment {
    pub sequence: u32,
    /// Acknowledgment number; `None` in the first SYN only.
    pub acknowledged: Option<u32>,
    pub syn: bool,
    /// Receive window, bytes.
    pub window: usize,
    pub timestamps: Timestamps,
    /// Ranges of sequence numbers received out of order, the newest first (RFC 2018).
    pub sack: [Option<(u32, u32)>; 3],
    pub payload: Vec<u8>,
}

impl Segment {
    /// Writes the segment as an IPv4 packet. A SYN offers segments for packets of `packet` bytes.
    pub(super) fn write(&self, from: Endpoint, to: Endpoint, packet: usize) -> Vec<u8> {
        // Options that are negotiated go into the SYN only; both ends always agree.
        let Timestamps { value, echo } = self.timestamps;
        let tcp = TcpRepr {
            src_port: from.port,
            dst_port: to.port,
            control: if self.syn { TcpControl::Syn } else { TcpControl::None },
            seq_number: TcpSeqNumber(self.sequence as i32),
            ack_number: self.acknowledged.map(|number| TcpSeqNumber(number as i32)),
            window_len: self.window_field(),
            window_scale: self.syn.then_some(WINDOW_SHIFT),
            max_seg_size: self.syn.then(|| packet.saturating_sub(MSS_HEADERS) as u16),
            sack_permitted: self.syn,
            sack_ranges: self.sack,
            timestamp: Some(TcpTimestampRepr::new(value, echo)),
            payload: &self.payload,
        };

        let ip = Ipv4Repr {
            src_addr: from.address,
            dst_addr: to.address,
            next_header: IpProtocol::Tcp,
            payload_len: tcp.buffer_len(),
            hop_limit: 64,
        };

        // `read` checks both checksums, and a gateway changes the MSS of valid segments only.
        let checksums = ChecksumCapabilities::default();
        let mut bytes = vec![0; ip.buffer_len() + tcp.buffer_len()];
        let mut out = Ipv4Packet::new_unchecked(&mut bytes);
        ip.emit(&mut out, &checksums);
        let mut out = TcpPacket::new_unchecked(out.payload_mut());
        tcp.emit(&mut out, &from.address.into(), &to.address.into(), &checksums);

        bytes
    }

    /// Returns the window field: scaled, except in a SYN (RFC 7323, 2.2).
    fn window_field(&self) -> u16 {
        let scaled = if self.syn { self.window } else { self.window >> WINDOW_SHIFT };
        u16::try_from(scaled).unwrap_or(u16::MAX)
    }

    /// Reads a segment from an IPv4 packet; `None` if it is malformed or a checksum is wrong.
    /// `shift` is the window scale of its sender.
    pub(super) fn read(packet: &[u8], shift: u8) -> Option<Self> {
        let ip = Ipv4Packet::new_checked(packet).ok()?;
        let from = ip.src_addr().into();
        let to = ip.dst_addr().into();
        let tcp = TcpPacket::new_checked(ip.payload()).ok()?;
        let tcp = TcpRepr::parse(&tcp, &from, &to, &ChecksumCapabilities::default()).ok()?;

        let syn = tcp.control == TcpControl::Syn;
        let window = usize::from(tcp.window_len);
        let timestamps = tcp.timestamp.map(|t| Timestamps { value: t.tsval, echo: t.tsecr });

        // The window of a SYN is never scaled (RFC 7323, 2.2).
        Some(Self {
            sequence: tcp.seq_number.0 as u32,
            acknowledged: tcp.ack_number.map(|number| number.0 as u32),
            syn,
            window: if syn { window } else { window << shift },
            timestamps: timestamps.unwrap_or_default(),
            sack: tcp.sack_ranges,
            payload: tcp.payload.to_vec(),
        })
    }
}

/// Returns the offset in the stream of a sequence number. `first` is the number of offset 0. Among
/// offsets with this number, it is the one nearest to `near`.
pub(super) fn offset_of(sequence: u32, first: u32, near: u64) -> u64 {
    // Sequence numbers wrap after 4 GiB, and a window is far shorter than half of that.
    let expected = first.wrapping_add(near as u32);
    let ahead = sequence.wrapping_sub(expected) as i32;
    near.saturating_add_signed(i64::from(ahead))
}
