//! Captures of the frames on the air, as pcapng files for Wireshark.
//!
//! [`Capture`] is an [`Observer`] that writes each frame as it is sent or heard. Every node that
//! captures is an interface of the file. A frame has the headers of [`headers`], so that Wireshark
//! shows it like one of a monitor-mode interface. `docs/reference/traces.md` describes the file.

mod headers;

use crate::observe::{Event, Observer, What};
use crate::simulation::{SimulationConfig, node_id};
use core::time::Duration;
use headers::{Dot11, Radiotap};
use ncmesh_medium::Power;
use ncmesh_wire::NodeId;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::{DataLink, Endianness, PcapError};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

/// Option if_tsresol: timestamps count units of 10^-9 s.
const NANOSECONDS: u8 = 9;

/// Nodes at which frames are captured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CapturePoints {
    /// Every node captures what it sends, so that each frame appears once.
    Senders,
    /// These nodes capture what they send and what they hear.
    Nodes(BTreeSet<usize>),
}

/// Observer that writes a capture while the simulation runs. It keeps one frame and a few bytes for
/// each node in memory.
pub struct Capture<W: Write> {
    writer: PcapNgWriter<W>,
    /// Interface number of each node that captures.
    interfaces: BTreeMap<usize, u32>,
    senders_only: bool,
    radiotap: Radiotap,
    dot11: Dot11,
    /// Destination of each node's latest frame. Receptions do not name it, and a node sends one
    /// frame at a time.
    latest: Vec<Option<NodeId>>,
    packet: Vec<u8>,
}

impl<W: Write> Capture<W> {
    /// Begins a capture of the simulation that `config` describes: writes the section and interface
    /// headers.
    ///
    /// # Errors
    /// `points` names a node that does not exist, or `out` cannot be written.
    pub fn new(out: W, config: &SimulationConfig, points: &CapturePoints) -> io::Result<Self> {
        let all = config.names.len();
        let (nodes, senders_only): (BTreeSet<usize>, _) = match points {
            CapturePoints::Senders => ((0..all).collect(), true),
            CapturePoints::Nodes(nodes) => (nodes.clone(), false),
        };

        // Without this check such a capture would be an empty file, noticed only after the run.
        if let Some(unknown) = nodes.last().filter(|node| **node >= all) {
            let problem = format!("no node {unknown} to capture at: there are {all}, from 0");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
        }

        // pcapng numbers interfaces in the order of their descriptions.
        let mut writer =
            PcapNgWriter::with_section_header(out, section(config)).map_err(io_error)?;
        let mut interfaces = BTreeMap::new();
        for (id, node) in (0..).zip(nodes) {
            writer.write_pcapng_block(interface(config, node)).map_err(io_error)?;
            interfaces.insert(node, id);
        }

        Ok(Self {
            writer,
            interfaces,
            senders_only,
            radiotap: Radiotap::new(&config.medium),
            dot11: Dot11::new(&config.medium),
            latest: vec![None; all],
            packet: Vec::new(),
        })
    }

    /// Writes a frame that the event's node sent or heard, if that node captures.
    fn write(
        &mut self,
        event: &Event<'_>,
        from: usize,
        frame: &[u8],
        power: Option<Power>,
    ) -> io::Result<()> {
        let Some(&interface_id) = self.interfaces.get(&event.node) else { return Ok(()) };

        // The packet as it was on the air.
        let to = self.latest[from];
        self.packet.clear();
        self.radiotap.write(&mut self.packet, power);
        self.dot11.write(&mut self.packet, node_id(from), to, frame);
        self.packet.extend_from_slice(frame);

        // epb_flags: bits 0 and 1 are the direction (1 inbound, 2 outbound), bits 2 to 4 the
        // reception type (1 unicast, 3 broadcast).
        let direction = if from == event.node { 2 } else { 1 };
        let reception = if to.is_some() { 1 } else { 3 };
        let block = EnhancedPacketBlock {
            interface_id,
            timestamp: Duration::from_nanos(event.at.as_nanos()),
            original_len: self.packet.len() as u32,
            data: Cow::Borrowed(&self.packet),
            options: vec![EnhancedPacketOption::Flags(direction | reception << 2)],
        };
        self.writer.write_pcapng_block(block).map_err(io_error).map(drop)
    }
}

impl<W: Write> Observer for Capture<W> {
    fn observe(&mut self, event: &Event<'_>) -> io::Result<()> {
        match event.what {
            What::Sent { to, frame } => {
                self.latest[event.node] = to;
                self.write(event, event.node, frame, None)
            }
            What::Heard { from, frame, power } if !self.senders_only => {
                self.write(event, from, frame, power)
            }
            _ => Ok(()),
        }
    }

    fn finish(&mut self) -> io::Result<()> {
        self.writer.get_mut().flush()
    }
}

/// Returns the section header. It is little-endian, so that a run gives the same file on every
/// machine.
fn section(config: &SimulationConfig) -> SectionHeaderBlock<'static> {
    let comment = format!(
        "Simulated with seed {}. Times are those of the virtual clock: \
         its start stands as 1970-01-01 00:00:00 UTC.",
        config.seed
    );
    SectionHeaderBlock {
        endianness: Endianness::Little,
        options: vec![
            SectionHeaderOption::Comment(comment.into()),
            SectionHeaderOption::UserApplication(
                concat!("ncmesh ", env!("CARGO_PKG_VERSION")).into(),
            ),
        ],
        ..Default::default()
    }
}

/// Returns the description of the interface of a node.
fn interface(config: &SimulationConfig, node: usize) -> InterfaceDescriptionBlock<'_> {
    let id = node_id(node);
    InterfaceDescriptionBlock {
        linktype: DataLink::IEEE802_11_RADIOTAP,
        snaplen: 0,
        options: vec![
            InterfaceDescriptionOption::IfName(config.names[node].as_str().into()),
            InterfaceDescriptionOption::IfDescription(format!("node {id}").into()),
            InterfaceDescriptionOption::IfMacAddr(headers::address(Some(id)).to_vec().into()),
            InterfaceDescriptionOption::IfSpeed(config.medium.bit_rate_bps),
            InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
        ],
    }
}

fn io_error(e: PcapError) -> io::Error {
    match e {
        PcapError::IoError(e) => e,
        other => io::Error::other(other),
    }
}
