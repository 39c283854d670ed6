//! The frames of a file multicast: announcement, acknowledgment, report; data packets are in `data`. Layouts:
//! `docs/wire-format.md`.

use super::data::{Data, DataHeader};
use super::packets::PacketSet;
use ncmesh_engine::Malformed;
use ncmesh_engine::Summary;
use ncmesh_engine::file::Geometry;
use ncmesh_engine::file::{Manifest, ReceiverState, Refusal};
use ncmesh_wire::{FlowId, NodeId, Reader, Writer};

/// Kind of an announcement.
pub const ANNOUNCE: u8 = 0;
/// Kind of a coded data packet.
pub const DATA: u8 = 1;
/// Kind of an end-to-end acknowledgment.
pub const ACK: u8 = 2;
/// Kind of a report to the node before in a tree.
pub const REPORT: u8 = 3;

/// Where a transfer stands, as its source announces it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Open = 0,
    Ended = 1,
    Withdrawn = 2,
}

/// An announcement, from the source, flooded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Announce {
    /// Orders the announcements of a transfer: the source's epoch, then a number within it.
    pub version: (u64, u32),
    pub phase: Phase,
    /// Nodes not listed may join.
    pub open: bool,
    pub manifest: Manifest,
    pub receivers: Vec<(NodeId, ReceiverState)>,
}

impl Announce {
    /// How many receivers an announcement of `manifest` can name in a body of `mtu` bytes.
    pub(crate) fn room_for_receivers(manifest: &Manifest, mtu: usize) -> usize {
        let fixed = 6 + 12 + 1 + 11 + 64 + 1 + manifest.name.len() + 2;
        (mtu.saturating_sub(fixed) / 3).min(usize::from(u16::MAX))
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let m = &self.manifest;
        let mut w = Writer::new(out);
        w.flow(m.flow).u64(self.version.0).u32(self.version.1);
        w.u8(self.phase as u8 | u8::from(self.open) << 7);
        w.u64(m.geometry.size()).u8(m.geometry.generation()).u16(m.geometry.symbol_size());
        w.bytes(&m.root).bytes(&m.hash).short_bytes(m.name.as_bytes());
        w.u16(self.receivers.len() as u16);
        for (node, state) in &self.receivers {
            w.node(*node).u8(state.code());
        }
    }

    pub(crate) fn parse(body: &[u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(body);
        let flow = r.flow()?;
        let version = (r.u64()?, r.u32()?);
        let flags = r.u8()?;
        let phase = match flags & 0x7F {
            0 => Phase::Open,
            1 => Phase::Ended,
            2 => Phase::Withdrawn,
            _ => return Err(Malformed),
        };
        let geometry = Geometry::new(r.u64()?, r.u8()?, r.u16()?).map_err(|_| Malformed)?;
        let (root, hash) = (r.array()?, r.array()?);
        let name = core::str::from_utf8(r.short_bytes()?).map_err(|_| Malformed)?.to_owned();
        let count = usize::from(r.u16()?);
        if r.remaining() != 3 * count {
            return Err(Malformed);
        }
        let mut receivers = Vec::with_capacity(count);
        for _ in 0..count {
            receivers.push((r.node()?, ReceiverState::from_code(r.u8()?).ok_or(Malformed)?));
        }
        let manifest = Manifest { flow, name, geometry, root, hash };
        Ok(Self { version, phase, open: flags & 0x80 != 0, manifest, receivers })
    }
}

/// The latest acknowledgment a node got hold of for a transfer, piggybacked on its data (Pacifier, V-B.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piggyback {
    pub receiver: NodeId,
    /// Low half of the receiver's epoch and its serial: enough to tell its acknowledgments apart.
    pub serial: u32,
}

/// An end-to-end acknowledgment. It carries the receiver's whole state, so that a lost one costs nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ack {
    pub flow: FlowId,
    pub receiver: NodeId,
    /// Orders a receiver's acknowledgments: its epoch, then a number within it.
    pub version: (u64, u32),
    pub state: ReceiverState,
    /// The lowest batch that is not complete.
    pub first_missing: u32,
    /// One bit for each batch behind it.
    pub bits: Vec<u8>,
}

impl Ack {
    /// Bytes of an acknowledgment before its bits.
    pub(crate) const HEADER: usize = 2 + 6 + 2 + 8 + 4 + 1 + 4;

    /// What a receiver says that keeps nothing of a transfer.
    pub(crate) fn refusal(
        flow: FlowId,
        receiver: NodeId,
        version: (u64, u32),
        why: Refusal,
    ) -> Self {
        let state = ReceiverState::Refused(why);
        Self { flow, receiver, version, state, first_missing: 0, bits: Vec::new() }
    }

    /// What a piggyback says of this acknowledgment.
    pub(crate) fn piggyback(&self) -> Piggyback {
        let serial = (self.version.0 as u32).rotate_left(16) ^ self.version.1;
        Piggyback { receiver: self.receiver, serial }
    }

    pub(crate) fn write(&self, next_hop: NodeId, out: &mut Vec<u8>) {
        let mut w = Writer::new(out);
        w.node(next_hop).flow(self.flow).node(self.receiver);
        w.u64(self.version.0).u32(self.version.1).u8(self.state.code());
        w.u32(self.first_missing).bytes(&self.bits);
    }

    /// The acknowledgment and the neighbour it is meant for.
    pub(crate) fn parse(body: &[u8]) -> Result<(NodeId, Self), Malformed> {
        let mut r = Reader::new(body);
        let next_hop = r.node()?;
        let ack = Self {
            flow: r.flow()?,
            receiver: r.node()?,
            version: (r.u64()?, r.u32()?),
            state: ReceiverState::from_code(r.u8()?).ok_or(Malformed)?,
            first_missing: r.u32()?,
            bits: r.rest().to_vec(),
        };
        Ok((next_hop, ack))
    }
}

/// What a node of a tree has of the batch at hand, told to its parent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Report {
    pub flow: FlowId,
    pub incarnation: u16,
    pub visit: u32,
    pub batch: u32,
    /// The parent's poll it answers; 0 where it was not asked.
    pub poll: u32,
    pub has: PacketSet,
}

impl Report {
    pub(crate) fn write(&self, parent: NodeId, out: &mut Vec<u8>) {
        let mut w = Writer::new(out);
        w.node(parent).flow(self.flow).u16(self.incarnation).u32(self.visit).u32(self.batch);
        w.u32(self.poll).bytes(&self.has.to_wire());
    }

    /// The report and the node it is meant for.
    pub(crate) fn parse(body: &[u8]) -> Result<(NodeId, Self), Malformed> {
        let mut r = Reader::new(body);
        let parent = r.node()?;
        let report = Self {
            flow: r.flow()?,
            incarnation: r.u16()?,
            visit: r.u32()?,
            batch: r.u32()?,
            poll: r.u32()?,
            has: PacketSet::from_wire(r.rest()).ok_or(Malformed)?,
        };
        Ok((parent, report))
    }
}

/// What a frame of the file scheme `name` says of itself.
pub fn summary(name: &'static str, kind: u8, body: &[u8]) -> Option<Summary> {
    match kind {
        ANNOUNCE => {
            let flow = Announce::parse(body).ok()?.manifest.flow;
            Some(Summary { flow: Some(flow), ..Summary::new(name, "announcement") })
        }
        DATA => {
            let DataHeader { flow, batch, .. } = Data::parse(body).ok()?.header;
            Some(Summary { flow: Some(flow), batch: Some(batch), ..Summary::new(name, "data") })
        }
        ACK => {
            let flow = Ack::parse(body).ok()?.1.flow;
            Some(Summary { flow: Some(flow), ..Summary::new(name, "acknowledgment") })
        }
        REPORT => {
            let report = Report::parse(body).ok()?.1;
            let (flow, batch) = (Some(report.flow), Some(report.batch));
            Some(Summary { flow, batch, ..Summary::new(name, "report") })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::data::{Coding, Data, DataHeader};
    use super::super::routing::{Cast, Forwarder, Forwarding, Hop, Routing, Upstream};
    use super::*;
    use proptest::prelude::*;

    fn flow() -> FlowId {
        FlowId { source: NodeId(3), serial: 0x0102_0304 }
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|b| format!("{b:02x}")).collect()
    }

    /// The golden vectors of docs/wire-format.md.
    #[test]
    fn golden_frames() {
        let manifest = Manifest {
            flow: flow(),
            name: "a.bin".into(),
            geometry: Geometry::new(1000, 32, 1400).unwrap(),
            root: [0xAA; 32],
            hash: [0xBB; 32],
        };
        let receivers = vec![(NodeId(5), ReceiverState::Active)];
        let announce =
            Announce { version: (7, 9), phase: Phase::Open, open: true, manifest, receivers };
        let mut out = Vec::new();
        announce.write(&mut out);
        let hashes = "aa".repeat(32) + &"bb".repeat(32);
        let expected = [
            "0003010203040000000000000007000000098000000000000003e8200578",
            &hashes,
            "05612e62696e0001000501",
        ];
        assert_eq!(hex(&out), expected.concat());
        assert_eq!(Announce::parse(&out), Ok(announce));

        let header = DataHeader {
            flow: flow(),
            incarnation: 0x1122,
            visit: 6,
            batch: 4,
            packets: 2,
            routing: Routing::Ordered(vec![Forwarder::new(NodeId(8), 1.5)]),
            revision: 0,
            poll: None,
            piggyback: Some(Piggyback { receiver: NodeId(5), serial: 0x55 }),
        };
        let mut out = Vec::new();
        header.write(false, &mut out);
        assert_eq!(out.len() + 2, Forwarding::Ordered.overhead(1, 2));
        out.extend_from_slice(&[0x0A, 0x0B, 0xFF]);
        assert_eq!(
            hex(&out),
            "0003010203041122000000060000000402020100080180000500000055".to_owned() + "0a0bff"
        );
        let data = Data::parse(&out).unwrap();
        assert_eq!(data, Data { header, coding: Coding::Combined(&[10, 11]), payload: &[255] });

        golden_belts();
        golden_tree();

        let ack = Ack {
            flow: flow(),
            receiver: NodeId(5),
            version: (7, 2),
            state: ReceiverState::Active,
            first_missing: 1,
            bits: vec![0x80],
        };
        let mut out = Vec::new();
        ack.write(NodeId(8), &mut out);
        assert_eq!(hex(&out), "00080003010203040005000000000000000700000002010000000180");
        assert_eq!(Ack::parse(&out), Ok((NodeId(8), ack)));
    }

    /// Of two forwarders the second is upstream of the first.
    fn golden_belts() {
        let listed = vec![Forwarder::new(NodeId(8), 1.5), Forwarder::new(NodeId(9), 0.25)];
        let mut upstream = Upstream::none(2);
        upstream.insert(0, 1);
        let header = DataHeader {
            flow: flow(),
            incarnation: 0x1122,
            visit: 6,
            batch: 4,
            packets: 2,
            routing: Routing::Belts(listed, upstream),
            revision: 3,
            poll: None,
            piggyback: None,
        };
        let mut out = Vec::new();
        header.write(true, &mut out);
        out.extend_from_slice(&[1, 0xFF]);
        assert_eq!(
            hex(&out),
            "0003010203041122000000060000000402050200080180000900400340".to_owned() + "01ff"
        );
        let data = Data::parse(&out).unwrap();
        assert_eq!(data, Data { header, coding: Coding::Systematic(1), payload: &[255] });
        assert_eq!(data.header.routing.credit(NodeId(8), NodeId(9), NodeId(3)), Some(1.5));
        assert_eq!(data.header.routing.credit(NodeId(9), NodeId(8), NodeId(3)), None);
        assert_eq!(data.header.routing.credit(NodeId(9), NodeId(3), NodeId(3)), Some(0.25));
    }

    /// Node 3 sends to 8, 8 to 9; a question, and an answer: packets 0 and 1 of 12 are there.
    fn golden_tree() {
        let hops = [(8, 3), (9, 8)]
            .map(|(node, parent)| Hop { node: NodeId(node), parent: NodeId(parent) });
        let header = DataHeader {
            flow: flow(),
            incarnation: 0x1122,
            visit: 6,
            batch: 4,
            packets: 12,
            routing: Routing::Tree(hops.to_vec()),
            revision: 3,
            poll: Some(0x77),
            piggyback: None,
        };
        let mut out = Vec::new();
        header.write(true, &mut out);
        out.extend_from_slice(&[11, 0xFF]);
        let expected =
            "00030102030411220000000600000004".to_owned() + "0c1902000800030009000803000000770bff";
        assert_eq!(hex(&out), expected);
        assert_eq!(out.len() + 6 - 1, Forwarding::HopByHop(Cast::Unicast).overhead(2, 12));
        let data = Data::parse(&out).unwrap();
        assert_eq!(data, Data { header, coding: Coding::Systematic(11), payload: &[255] });

        let (incarnation, visit, batch, poll) = (0x1122, 6, 4, 0x77);
        let has = PacketSet::first_of(2);
        let report = Report { flow: flow(), incarnation, visit, batch, poll, has };
        let mut out = Vec::new();
        report.write(NodeId(8), &mut out);
        assert_eq!(hex(&out), "0008000301020304112200000006000000040000007".to_owned() + "7c0");
        assert_eq!(Report::parse(&out), Ok((NodeId(8), report)));
    }

    proptest! {
        #[test]
        fn garbage_is_refused_not_feared(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Announce::parse(&bytes);
            let _ = Data::parse(&bytes);
            let _ = Ack::parse(&bytes);
            let _ = Report::parse(&bytes);
        }
    }
}
