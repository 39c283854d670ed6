//! Frames of a file multicast.
//!
//! | kind | frame | way |
//! | --- | --- | --- |
//! | 0 | announcement | from the source, flooded through the mesh |
//! | 1 | data | from the source and forwarders, broadcast (ETX unicast: to the next hop) |
//! | 2 | acknowledgment | from a receiver to the source, unicast hop by hop |
//! | 3 | report | from a node of a tree to its parent, unicast |
//!
//! Schemes that send by rank have data and reports of another form.
//!
//! Layouts with offsets and examples: `docs/reference/wire-format.md`.

mod ack;
mod announcement;
mod coding;
mod data;
mod ranked;
mod report;
mod turn_id;
mod version;
mod wants;

#[cfg(test)]
mod tests;

pub(crate) use ack::{Ack, Piggyback};
pub(crate) use announcement::{Announcement, TransferPhase};
pub(crate) use coding::{Coding, append_coding};
pub(crate) use data::{Data, DataHeader};
pub(crate) use ranked::{RankReport, Ranked, RankedHeader};
pub(crate) use report::Report;
pub(crate) use turn_id::TurnId;
pub(crate) use version::Version;
pub(crate) use wants::{UNWANTED, Wants};

use ncmesh_engine::Summary;
use ncmesh_wire::layout::Layout;

/// Kind of an announcement.
pub const ANNOUNCE: u8 = 0;
/// Kind of a data packet.
pub use ncmesh_engine::transmission::DATA;
/// Kind of an end-to-end acknowledgment.
pub const ACK: u8 = 2;
/// Kind of a report to the parent in a tree.
pub const REPORT: u8 = 3;

/// Frames of all file schemes.
pub const LAYOUTS: &[Layout] = &[
    ANNOUNCEMENT,
    Layout::new(DATA, "data", "{flow} batch {batch}, {systematic}", Data::PARTS),
    ACKNOWLEDGMENT,
    Layout::of::<Report>(REPORT, "report", "{flow} batch {batch} to parent {parent}"),
];

/// Frames of file schemes that send by rank.
pub const LAYOUTS_BY_RANK: &[Layout] = &[
    ANNOUNCEMENT,
    Layout::new(DATA, "data", "{flow} batch {batch}, {systematic}, rank {rank}", Ranked::PARTS),
    ACKNOWLEDGMENT,
    Layout::of::<RankReport>(
        REPORT,
        "report",
        "{flow} of {child} to parent {parent}: wants batch {first_wanted}",
    ),
];

const ANNOUNCEMENT: Layout = Layout::of::<Announcement>(
    ANNOUNCE,
    "announcement",
    "{flow} {announcement.phase}, {announcement.receivers} receivers",
);

const ACKNOWLEDGMENT: Layout = Layout::new(
    ACK,
    "acknowledgment",
    "{flow} of {receiver.node} to {next_hop}: {receiver.state}, \
     complete below batch {first_missing}",
    Ack::BODY,
);

/// Summarises a frame of the scheme `name`, which sends by rank, for traces. Returns `None` for a
/// malformed frame.
pub fn summary_by_rank(name: &'static str, kind: u8, body: &[u8]) -> Option<Summary> {
    let (what, flow, batch) = match kind {
        DATA => {
            let header = Ranked::parse(body).ok()?.header;
            ("data", header.flow, Some(header.generation))
        }
        REPORT => ("report", RankReport::parse(body).ok()?.flow, None),
        _ => return summary(name, kind, body),
    };
    Some(Summary { flow: Some(flow), batch, ..Summary::new(name, what) })
}

/// Summarises a frame of the scheme `name` for traces. Returns `None` for a malformed frame.
pub fn summary(name: &'static str, kind: u8, body: &[u8]) -> Option<Summary> {
    let (what, flow, batch) = match kind {
        ANNOUNCE => ("announcement", Announcement::parse(body).ok()?.manifest.flow, None),
        DATA => {
            let header = Data::parse(body).ok()?.header;
            ("data", header.flow, Some(header.batch))
        }
        ACK => ("acknowledgment", Ack::parse(body).ok()?.1.flow, None),
        REPORT => {
            let report = Report::parse(body).ok()?;
            ("report", report.flow, Some(report.batch))
        }
        _ => return None,
    };
    Some(Summary { flow: Some(flow), batch, ..Summary::new(name, what) })
}
