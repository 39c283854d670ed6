//! Announcement of a file: what it is, how it is cut, and how its receivers fare.

use super::Version;
use ncmesh_engine::Malformed;
use ncmesh_engine::file::{Geometry, Manifest, ReceiverState};
use ncmesh_wire::{NodeId, Reader, Writer};

/// Flag beside the phase: nodes that are not listed may join.
const OPEN_TO_ALL: u8 = 0x80;

/// Phase of a transfer, as its source announces it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TransferPhase {
    /// Receivers may still get batches.
    Open = 0,
    /// Every receiver has the file or refused it.
    Ended = 1,
    /// The source cancelled the transfer.
    Withdrawn = 2,
}

/// Announcement of one transfer. The source floods a new version when something changed and
/// repeats it from time to time; every node keeps the latest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Announcement {
    pub version: Version,
    pub phase: TransferPhase,
    /// Whether nodes that are not listed may join.
    pub open_to_all: bool,
    pub manifest: Manifest,
    /// State of every receiver, as the source knows it. A receiver that finds a wrong state of
    /// itself here answers with an acknowledgment.
    pub receivers: Vec<(NodeId, ReceiverState)>,
}

impl Announcement {
    /// Returns how many receivers an announcement of `manifest` can list in `mtu` bytes.
    pub(crate) fn room_for_receivers(manifest: &Manifest, mtu: usize) -> usize {
        let fixed = 6 + 12 + 1 + 11 + 64 + 1 + manifest.name.len() + 2;
        (mtu.saturating_sub(fixed) / 3).min(usize::from(u16::MAX))
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let m = &self.manifest;
        let mut w = Writer::new(out);
        w.flow(m.flow);
        self.version.write(&mut w);
        w.u8(self.phase as u8 | if self.open_to_all { OPEN_TO_ALL } else { 0 });
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
        let version = Version::parse(&mut r)?;
        let flags = r.u8()?;
        let phase = match flags & !OPEN_TO_ALL {
            0 => TransferPhase::Open,
            1 => TransferPhase::Ended,
            2 => TransferPhase::Withdrawn,
            _ => return Err(Malformed),
        };

        // The geometry is computed anew rather than sent, so that it cannot contradict the size.
        let geometry = Geometry::new(r.u64()?, r.u8()?, r.u16()?).map_err(|_| Malformed)?;
        let (root, hash) = (r.array()?, r.array()?);
        let name = core::str::from_utf8(r.short_bytes()?).map_err(|_| Malformed)?.to_owned();

        // The count must match the bytes that are left, before anything is allocated for it.
        let count = usize::from(r.u16()?);
        if r.remaining() != 3 * count {
            return Err(Malformed);
        }
        let mut receivers = Vec::with_capacity(count);
        for _ in 0..count {
            receivers.push((r.node()?, ReceiverState::from_code(r.u8()?).ok_or(Malformed)?));
        }

        let manifest = Manifest { flow, name, geometry, root, hash };
        let open_to_all = flags & OPEN_TO_ALL != 0;
        Ok(Self { version, phase, open_to_all, manifest, receivers })
    }
}
