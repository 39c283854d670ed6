//! Frames that all file schemes have.
//!
//! | kind | frame | way |
//! | --- | --- | --- |
//! | 0 | announcement | from the source, flooded through the mesh |
//! | 1 | data | the carrier's |
//! | 2 | acknowledgment | from a receiver to the source, unicast hop by hop |
//! | 3 | report | the carrier's |
//! | 4 | check request | from a node that took false packets to the source, unicast hop by hop |
//! | 5 | check | from the source to that node, unicast hop by hop |
//!
//! Data packets of all carriers end with a [`Coding`] and a payload.
//!
//! Layouts with offsets and examples: `docs/reference/wire-format.md`.

mod ack;
mod announcement;
mod check;
mod coding;
mod version;

#[cfg(test)]
mod tests;

pub use ack::{Ack, Piggyback};
pub use announcement::{Announcement, TransferPhase};
pub use check::{Check, CheckRequest};
pub use coding::{Coding, SYSTEMATIC, append_coding, write_packet};
pub use version::Version;

use ncmesh_engine::file::ReceiverState;
use ncmesh_engine::{Statement, Summary};
use ncmesh_wire::layout::Layout;
use ncmesh_wire::{NodeId, Reader};

/// Kind of an announcement.
pub const ANNOUNCE: u8 = 0;
/// Kind of a data packet.
pub use ncmesh_engine::transmission::DATA;
/// Kind of an end-to-end acknowledgment.
pub const ACK: u8 = 2;
/// Kind of a report from hop to hop.
pub const REPORT: u8 = 3;
/// Kind of a question for a check.
pub const CHECK_REQUEST: u8 = 4;
/// Kind of a check.
pub const CHECK: u8 = 5;

/// Layout of announcements.
pub const ANNOUNCEMENT: Layout = Layout::of::<Announcement>(
    ANNOUNCE,
    "announcement",
    "{flow} {announcement.phase}, {announcement.receivers} receivers",
);

/// Layout of end-to-end acknowledgments.
pub const ACKNOWLEDGMENT: Layout = Layout::new(
    ACK,
    "acknowledgment",
    "{flow} of {receiver.node} to {next_hop}: {receiver.state}, \
     complete below generation {first_missing}",
    Ack::BODY,
);

/// Layout of questions for checks.
pub const CHECKS_REQUESTED: Layout = Layout::of::<CheckRequest>(
    CHECK_REQUEST,
    "check_request",
    "{flow} generation {generation}, asked by {verifier}",
);

/// Layout of checks.
pub const CHECKS: Layout =
    Layout::of::<Check>(CHECK, "check", "{flow} generation {generation}, asked for by {verifier}");

/// Returns what a source or a receiver says of a transfer that lasts: every announcement, and the
/// acknowledgments that end the part of a receiver. Reports on progress are made up for by later
/// ones, and too many to be signed. Checks and questions for them are signed as well: they are few,
/// and a false one would do harm.
#[must_use]
pub fn statement(kind: u8, body: &[u8]) -> Option<Statement<'_>> {
    match kind {
        ANNOUNCE => {
            let origin = Reader::new(body).flow().ok()?.source;
            Some(Statement { origin, contents: body })
        }
        ACK => {
            let (_, ack) = Ack::parse(body).ok()?;
            let is_last = matches!(ack.state, ReceiverState::Complete | ReceiverState::Refused(_));
            // The next hop in front of it changes on the way.
            let contents = body.get(size_of::<NodeId>()..)?;
            is_last.then_some(Statement { origin: ack.receiver, contents })
        }
        CHECK_REQUEST => {
            let origin = CheckRequest::parse(body).ok()?.verifier;
            Some(Statement { origin, contents: body.get(size_of::<NodeId>()..)? })
        }
        CHECK => {
            let origin = Check::parse(body).ok()?.of.flow.source;
            Some(Statement { origin, contents: body.get(size_of::<NodeId>()..)? })
        }
        _ => None,
    }
}

/// Summarises a frame that all file schemes have, of the scheme `name` for traces. Returns `None`
/// for a malformed frame.
#[must_use]
pub fn summary(name: &'static str, kind: u8, body: &[u8]) -> Option<Summary> {
    let (what, flow, generation) = match kind {
        ANNOUNCE => ("announcement", Announcement::parse(body).ok()?.manifest.flow, None),
        ACK => ("acknowledgment", Ack::parse(body).ok()?.1.flow, None),
        CHECK_REQUEST => {
            let of = CheckRequest::parse(body).ok()?.of;
            ("check request", of.flow, Some(of.generation))
        }
        CHECK => {
            let of = Check::parse(body).ok()?.of;
            ("check", of.flow, Some(of.generation))
        }
        _ => return None,
    };
    Some(Summary { flow: Some(flow), generation, ..Summary::new(name, what) })
}
