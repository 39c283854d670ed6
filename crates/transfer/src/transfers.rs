//! The transfers of one node: files that it sends and receives, and what it passes on of others.

use crate::acks::AckCache;
use crate::admission::Admission;
use crate::announcements::Announcements;
use crate::checks::Checks;
use crate::frame::{Ack, Version};
use crate::pace::{Bounds, Pace, Packet};
use crate::sink::{FileSink, SinkOutcome, SinkPhase};
use crate::source::FileSource;
use ncmesh_engine::counters::DropReason;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::{Background, Context, Event};
use ncmesh_wire::FlowId;
use std::collections::BTreeMap;

/// The transfers of one node.
#[derive(Debug, Default)]
pub struct Transfers {
    /// Files that this node sends.
    pub sources: BTreeMap<FlowId, FileSource>,
    /// Files that it receives.
    pub sinks: BTreeMap<FlowId, FileSink>,
    /// Acknowledgments on their way.
    pub acks: AckCache,
    /// Counts this node's own acknowledgments, so that each is newer than those before.
    acks_written: u32,
    /// Announcements on their way.
    pub announcements: Announcements,
    /// Checks of generations on their way.
    pub checks: Checks,
    /// Bounds on the airtime of files in the background, and on what sources send.
    pub(crate) pace: Pace,
}

impl Transfers {
    /// Returns whether a transfer gives way to all else, and its bound on airtime.
    #[must_use]
    pub fn background(&self, flow: FlowId) -> Option<Background> {
        match self.sources.get(&flow) {
            Some(source) => source.allowance.background,
            None => self.announcements.background(flow),
        }
    }

    /// Returns whether the bounds on a transfer let data go now.
    #[must_use]
    pub fn is_within_bound(&self, flow: FlowId, now: Instant) -> bool {
        self.pace.is_open(flow, now)
    }

    /// Notes a data packet that this node heard, whose body has `len` bytes.
    pub fn note_heard(&mut self, flow: FlowId, len: usize, now: Instant) {
        if let Some(bound) = self.bound(flow) {
            self.pace.note_heard(Packet { flow, len }, bound, now);
        }
    }

    /// Notes a data packet that this node sent.
    pub(crate) fn note_sent(&mut self, packet: Packet, airtime: Duration, now: Instant) {
        // Airtime is bounded at each node on the way, the rate at the source alone.
        let bounds = Bounds {
            airtime: self.bound(packet.flow),
            bps: self.sources.get(&packet.flow).and_then(|source| source.allowance.limit_bps),
        };
        self.pace.note_sent(packet, bounds, airtime, now);
    }

    /// Returns the bound on a transfer's airtime, if it has one.
    fn bound(&self, flow: FlowId) -> Option<Background> {
        self.background(flow).filter(|background| background.percent() < 100)
    }

    /// Notes what became of a generation. Returns whether it was written.
    pub fn note_outcome(
        &mut self,
        cx: &mut Context<'_>,
        flow: FlowId,
        outcome: SinkOutcome,
    ) -> bool {
        match outcome {
            SinkOutcome::Quiet => {}
            SinkOutcome::Malformed | SinkOutcome::GenerationForged => {
                cx.counters.drop(DropReason::Malformed);
            }
            SinkOutcome::WriteFailed => {
                self.acknowledge(cx, flow);
                cx.events.push_back(Event::Unwritable(flow));
            }
            SinkOutcome::GenerationWritten => return true,
        }

        false
    }

    /// Acknowledges what is complete by now, and tells the driver if that is the whole file.
    pub fn acknowledge_progress(&mut self, cx: &mut Context<'_>, flow: FlowId) {
        self.acknowledge(cx, flow);
        if self.sinks.get(&flow).is_some_and(|sink| sink.phase == SinkPhase::Verifying) {
            cx.events.push_back(Event::Assembled(flow));
        }
    }

    /// Acknowledges to the source what this receiver has.
    pub(crate) fn acknowledge(&mut self, cx: &mut Context<'_>, flow: FlowId) {
        let version = self.next_ack_version(cx);
        let Some(sink) = self.sinks.get_mut(&flow) else { return };

        // It holds all that this node has, as far as the frame has room.
        let ack = sink.ack(cx.me, version, cx.mtu.saturating_sub(Ack::HEADER));
        sink.acknowledged_at = Some(cx.now);
        self.pass_on(cx, ack);
    }

    /// Returns the version of this node's next acknowledgment.
    pub(crate) fn next_ack_version(&mut self, cx: &Context<'_>) -> Version {
        self.acks_written += 1;
        Version { epoch: cx.epoch, number: self.acks_written }
    }

    /// Puts an acknowledgment, this node's or another's, on its way to the source. Returns whether
    /// there is room for it.
    pub(crate) fn pass_on(&mut self, cx: &mut Context<'_>, ack: Ack) -> bool {
        let has_room = self.acks.admit(ack, cx.now) != Admission::Full;
        if !has_room {
            cx.counters.drop(DropReason::Full);
        }
        has_room
    }
}
