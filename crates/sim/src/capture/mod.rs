//! Captures of the frames on the air, as pcapng files for Wireshark.
//!
//! [`Capture`] is an [`Observer`] that writes each frame as it is sent or heard. Every port of a
//! node that captures is an interface of the file. A frame has the headers of [`headers`], so that
//! Wireshark shows it like one of a monitor-mode interface. `docs/reference/traces.md` describes
//! the file.

mod headers;

use crate::observe::{Event, Observer, What};
use crate::simulation::{SimulationConfig, node_id};
use core::time::Duration;
use headers::{Dot11, Radiotap};
use ncmesh_medium::{MediumConfig, Power};
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
/// each port in memory.
pub struct Capture<W: Write> {
    writer: PcapNgWriter<W>,
    channels: Vec<Channel>,
    senders_only: bool,
    packet: Vec<u8>,
}

/// A channel of the mesh.
struct Channel {
    /// Interface number of each node on it that captures.
    interfaces: BTreeMap<usize, u32>,
    radiotap: Radiotap,
    dot11: Dot11,
    /// Destination of each node's latest frame on it. Receptions do not name it, and a node sends
    /// one frame at a time on a channel.
    latest: Vec<Option<NodeId>>,
}

impl Channel {
    fn new(medium: &MediumConfig, nodes: usize) -> Self {
        Self {
            interfaces: BTreeMap::new(),
            radiotap: Radiotap::new(medium),
            dot11: Dot11::new(medium),
            latest: vec![None; nodes],
        }
    }
}

/// A frame on the air.
struct OnAir<'a> {
    channel: usize,
    from: usize,
    frame: &'a [u8],
    /// Received power, if it is known.
    power: Option<Power>,
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

        let media = config.media().map(|medium| Channel::new(medium, all));
        let mut channels: Vec<Channel> = media.collect();

        // pcapng numbers interfaces in the order of their descriptions.
        let mut writer =
            PcapNgWriter::with_section_header(out, section(config)).map_err(io_error)?;
        let ports = nodes.iter().flat_map(|node| {
            let on = (0..channels.len()).filter(move |channel| config.is_on(*node, *channel));
            on.map(move |channel| (*node, channel))
        });
        for (id, (node, channel)) in (0..).zip(ports.collect::<Vec<_>>()) {
            writer.write_pcapng_block(interface(config, node, channel)).map_err(io_error)?;
            channels[channel].interfaces.insert(node, id);
        }

        Ok(Self { writer, channels, senders_only, packet: Vec::new() })
    }

    /// Writes a frame that the event's node sent or heard, if that node captures.
    fn write(&mut self, event: &Event<'_>, on_air: &OnAir<'_>) -> io::Result<()> {
        let OnAir { channel, from, frame, power } = *on_air;
        let channel = &self.channels[channel];
        let Some(&interface_id) = channel.interfaces.get(&event.node) else { return Ok(()) };

        // The packet as it was on the air.
        let to = channel.latest[from];
        self.packet.clear();
        channel.radiotap.write(&mut self.packet, power);
        channel.dot11.write(&mut self.packet, node_id(from), to, frame);
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
            What::Sent { channel, to, frame } => {
                self.channels[channel].latest[event.node] = to;
                self.write(event, &OnAir { channel, from: event.node, frame, power: None })
            }
            What::Heard { channel, from, frame, power } if !self.senders_only => {
                self.write(event, &OnAir { channel, from, frame, power })
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

/// Returns the description of the interface that a node has on a channel.
fn interface(
    config: &SimulationConfig,
    node: usize,
    channel: usize,
) -> InterfaceDescriptionBlock<'_> {
    let id = node_id(node);
    let name = config.names[node].as_str();
    // With one channel the node's name says it all.
    let (name, description) = match config.channel_name(channel) {
        None => (name.into(), format!("node {id}")),
        Some(on) => (format!("{name} {on}").into(), format!("node {id}, channel {on}")),
    };
    let rate = config.media().nth(channel).map_or(0, |medium| medium.bit_rate_bps);
    InterfaceDescriptionBlock {
        linktype: DataLink::IEEE802_11_RADIOTAP,
        snaplen: 0,
        options: vec![
            InterfaceDescriptionOption::IfName(name),
            InterfaceDescriptionOption::IfDescription(description.into()),
            InterfaceDescriptionOption::IfMacAddr(headers::address(Some(id)).to_vec().into()),
            InterfaceDescriptionOption::IfSpeed(rate),
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
