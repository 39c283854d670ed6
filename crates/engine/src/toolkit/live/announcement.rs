//! Announcements, which a source floods of its stream.

use crate::stream::{Deadline, LAYERS, check_names};
use crate::time::Duration;
use ncmesh_wire::layout::{Charset, Check};
use ncmesh_wire::record::field;
use ncmesh_wire::{FlowId, frame, record};

/// Kind of the frame.
pub const ANNOUNCEMENT: u8 = 3;
/// Time between a source's announcements.
pub const ANNOUNCE_INTERVAL: Duration = Duration::from_secs(5);

/// A stream as its source announces it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announcement<T> {
    /// The stream.
    pub flow: FlowId,
    /// Counts the announcements of this stream.
    pub version: u32,
    /// Further fields of a scheme, which never change.
    pub terms: T,
    /// Names and counts.
    pub contents: Contents,
}

/// Announcement of a stream whose packets have no deadline.
pub type Untimed = Announcement<()>;
/// Announcement of a stream whose packets have a deadline.
pub type Timed = Announcement<Deadline>;

record! {
    /// Names of a stream, and the packets that entered it.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Contents {
        /// 0: the stream has ended
        count: u8 = field("stream.layers", "Layers").within(0, LAYERS as u64)
            => layers.len() as u8,
        /// the group that it is sent to
        pub group: String = field("stream.group", "Group").text(Charset::Name),
        /// the base first
        pub layers: Vec<String> as many as count
            = field("stream.layer.name", "Layer").text(Charset::Name),
        check are_names(&group, &layers) => Check::Distinct(&["stream.layer.name"]),
        /// packets of a layer that entered the stream so far, modulo 2^32
        pub sent: Vec<u32> as many as count = field("stream.sent", "Packets sent"),
    }
}

frame! {
    pub impl Untimed as Announcement { flow, version, terms: (), contents } {
        /// the stream
        flow: FlowId = field("flow", "Flow"),
        /// counts the announcements of this stream
        version: u32 = field("stream.version", "Version"),
        contents: Contents,
    }
}

frame! {
    pub impl Timed as Announcement { flow, version, terms: Deadline { ms }, contents } {
        /// the stream
        flow: FlowId = field("flow", "Flow"),
        /// counts the announcements of this stream
        version: u32 = field("stream.version", "Version"),
        /// age at which a packet is of no use any more, ms
        ms: u16 = field("stream.deadline", "Deadline")
            .within(*Deadline::RANGE.start() as u64, *Deadline::RANGE.end() as u64),
        contents: Contents,
    }
}

/// Returns whether a stream may have these names. At its end it has no layers.
fn are_names(group: &str, layers: &[String]) -> bool {
    let placeholder = ["base".to_owned()];
    check_names(group, if layers.is_empty() { &placeholder } else { layers }).is_ok()
}

impl Timed {
    /// Returns the age at which a packet is given up.
    #[must_use]
    pub fn deadline(&self) -> Duration {
        Duration::from_millis(self.terms.ms.into())
    }
}
