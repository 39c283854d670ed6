//! Frames of schemes that plan. Announcements and acknowledgments are those of all file schemes.
//!
//! | kind | frame | way |
//! | --- | --- | --- |
//! | 1 | data | from the source and forwarders, broadcast (ETX unicast: to the next hop) |
//! | 3 | report | from a node of a tree to its parent, unicast |
//!
//! Layouts with offsets and examples: `docs/reference/wire-format.md`.

mod data;
mod report;
mod turn_id;

#[cfg(test)]
mod tests;

pub(crate) use data::{Data, DataHeader};
pub(crate) use ncmesh_transfer::frame::{Coding, Piggyback};
pub(crate) use report::Report;
pub(crate) use turn_id::TurnId;

use ncmesh_engine::Summary;
use ncmesh_transfer::frame::{self, DATA, REPORT};
use ncmesh_wire::layout::Layout;

/// Frames of all schemes that plan.
pub const LAYOUTS: &[Layout] = &[
    frame::ANNOUNCEMENT,
    Layout::new(DATA, "data", "{flow} generation {generation}, {systematic}", Data::PARTS),
    frame::ACKNOWLEDGMENT,
    Layout::of::<Report>(REPORT, "report", "{flow} generation {generation} to parent {parent}"),
    frame::CHECKS_REQUESTED,
    frame::CHECKS,
];

/// Summarises a frame of the scheme `name` for traces. Returns `None` for a malformed frame.
#[must_use]
pub fn summary(name: &'static str, kind: u8, body: &[u8]) -> Option<Summary> {
    let (what, flow, generation) = match kind {
        DATA => {
            let header = Data::parse(body).ok()?.header;
            ("data", header.flow, header.generation)
        }
        REPORT => {
            let report = Report::parse(body).ok()?;
            ("report", report.flow, report.generation)
        }
        _ => return frame::summary(name, kind, body),
    };
    Some(Summary { flow: Some(flow), generation: Some(generation), ..Summary::new(name, what) })
}
