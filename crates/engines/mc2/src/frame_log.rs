//! Data frames that a node sent lately, and which next hops received them.
//!
//! Credits change hands only with packets that arrived, so a node has to find out who received
//! what: the MAC reports it (slotted access), or next hops acknowledge the frames in their own data
//! and reports. The log turns both into [`Reception`]s. A frame goes through two states:
//!
//! ```text
//!   sent --> in flight --MAC report or acknowledgment timeout--> settled
//! ```
//!
//! While it is in flight it counts as received with the probability that it will be. A settled
//! frame may still be acknowledged late, until it leaves the log.

use crate::credits::{Announcement, Credits};
use crate::frame::Acknowledgment;
use crate::hops::{HopSet, MAX_HOPS};
use crate::ledger::{PendingFrame, Reception};
use ncmesh_engine::time::{Duration, Instant};
use std::collections::VecDeque;

/// Frames that the log keeps. An acknowledgment covers the latest 33 that a hop received.
const CAPACITY: usize = 64;
/// Frames before the latest that an acknowledgment covers.
const ACK_WINDOW: u32 = 32;

/// Data frames of one flow.
#[derive(Debug, Default)]
pub(crate) struct FrameLog {
    frames: VecDeque<SentFrame>,
    next_serial: u16,
    /// Frames in a row that timed out without any hop known to have received them.
    timed_out: u32,
    /// Frames since the latest acknowledgment of any hop.
    since_ack: u32,
}

#[derive(Debug)]
struct SentFrame {
    serial: u16,
    generation: u32,
    /// Credits of the generation that this node had received when it sent the frame.
    total_when_sent: u32,
    announcement: Announcement,
    /// Hops that are known to have received it.
    receivers: HopSet,
    /// Hops of which it is known whether they received it.
    resolved: HopSet,
    sent_at: Instant,
    in_flight: bool,
}

impl FrameLog {
    /// Returns the serial number of the next frame.
    pub(crate) fn next_serial(&self) -> u16 {
        self.next_serial
    }

    /// Returns how many frames in a row timed out without any hop known to have received them.
    pub(crate) fn timed_out(&self) -> u32 {
        self.timed_out
    }

    /// Returns the number of frames since the latest acknowledgment of any hop.
    pub(crate) fn since_ack(&self) -> u32 {
        self.since_ack
    }

    /// Returns when the latest frame was sent.
    pub(crate) fn latest_at(&self) -> Option<Instant> {
        self.frames.back().map(|frame| frame.sent_at)
    }

    /// Counts by hop the frames in flight that assign it a credit of `generation`.
    pub(crate) fn assigned_in_flight(&self, generation: u32) -> [u16; MAX_HOPS] {
        let mut assigned = [0; MAX_HOPS];
        let frames = self.frames.iter();
        for frame in frames.filter(|frame| frame.in_flight && frame.generation == generation) {
            match frame.announcement.assigned_hop {
                Some(hop) if !frame.resolved.contains(hop) => assigned[hop] += 1,
                _ => {}
            }
        }

        assigned
    }

    /// Notes a frame that was handed to the MAC.
    pub(crate) fn push(
        &mut self,
        generation: u32,
        total_when_sent: u32,
        announcement: Announcement,
        sent_at: Instant,
    ) {
        self.frames.push_back(SentFrame {
            serial: self.next_serial,
            generation,
            total_when_sent,
            announcement,
            receivers: HopSet::default(),
            resolved: HopSet::default(),
            sent_at,
            in_flight: true,
        });

        self.next_serial = self.next_serial.wrapping_add(1);
        self.since_ack += 1;
    }

    /// Handles the MAC's report on which of the `hops` received the latest frame.
    pub(crate) fn handle_mac_report(
        &mut self,
        receivers: HopSet,
        hops: usize,
        credits: &mut Credits,
    ) {
        if let Some(frame) = self.frames.back_mut() {
            frame.add_receivers(receivers, credits);

            // The report is final: hops that it does not name did not receive the frame.
            (0..hops).for_each(|hop| frame.resolve(hop, credits));
            frame.in_flight = false;
        }

        self.update_pending(credits, None);
        credits.announce_backed();
    }

    /// Handles a hop's acknowledgment of the frames that it received.
    pub(crate) fn handle_ack(&mut self, hop: usize, ack: Acknowledgment, credits: &mut Credits) {
        self.since_ack = 0;
        for frame in &mut self.frames {
            // It says nothing of later frames, which wrap around here, nor of those before its
            // window.
            let age = u32::from(ack.latest.wrapping_sub(frame.serial));
            if age > ACK_WINDOW {
                continue;
            }
            if age == 0 || ack.before >> (age - 1) & 1 == 1 {
                frame.add_receivers(HopSet::single(hop), credits);
                self.timed_out = 0;
            }

            frame.resolve(hop, credits);
        }

        self.update_pending(credits, None);
        credits.announce_backed();
    }

    /// Settles frames that were sent `timeout` ago or before. Hops that said nothing of a frame
    /// that leaves the log have not received it.
    pub(crate) fn expire(
        &mut self,
        timeout: Duration,
        hops: usize,
        now: Instant,
        credits: &mut Credits,
    ) {
        for frame in self.frames.iter_mut().filter(|frame| frame.in_flight) {
            if frame.sent_at + timeout <= now {
                frame.in_flight = false;
                self.timed_out += u32::from(frame.receivers.is_empty());
            }
        }

        // The share that a hop receives is measured only now, since its acknowledgment may be late.
        while self.frames.len() > CAPACITY {
            let oldest = self.frames.pop_front();
            oldest.into_iter().for_each(|mut frame| {
                (0..hops).for_each(|hop| frame.resolve(hop, credits));
            });
        }

        self.update_pending(credits, None);
    }

    /// Returns when the oldest frame in flight times out.
    pub(crate) fn expires_at(&self, timeout: Duration) -> Option<Instant> {
        self.frames.iter().find(|frame| frame.in_flight).map(|frame| frame.sent_at + timeout)
    }

    /// Forgets all frames: the hops have changed, and would acknowledge them by other numbers.
    pub(crate) fn clear(&mut self) {
        self.frames.clear();
    }

    /// Tells the credits which frames are pending; `next` is the generation of one that is about to
    /// be sent.
    pub(crate) fn update_pending(&self, credits: &mut Credits, next: Option<u32>) {
        let next = next.map(|generation| PendingFrame {
            generation,
            serial: self.next_serial,
            assigned_hop: None,
            in_flight: true,
            receivers: HopSet::default(),
            resolved: HopSet::default(),
            announced: &[],
        });

        credits.set_pending(self.frames.iter().map(SentFrame::pending).chain(next));
    }
}

impl SentFrame {
    fn pending(&self) -> PendingFrame<'_> {
        PendingFrame {
            generation: self.generation,
            serial: self.serial,
            assigned_hop: self.announcement.assigned_hop,
            in_flight: self.in_flight,
            receivers: self.receivers,
            resolved: self.resolved,
            announced: self.announcement.credits.first().map_or(&[][..], |own| &own.by_hop),
        }
    }

    /// Notes that `hops` received the frame. Those that are new know its announcement now.
    fn add_receivers(&mut self, hops: HopSet, credits: &mut Credits) {
        let new = hops.without(self.receivers);
        if new.is_empty() {
            return;
        }
        credits.handle_reception(&Reception {
            generation: self.generation,
            serial: self.serial,
            already: self.receivers,
            new,
            total_when_sent: self.total_when_sent,
            assigned_hop: self.announcement.assigned_hop,
        });

        for hop in new.iter() {
            credits.acknowledge(hop, &self.announcement.credits);
        }
        self.receivers = self.receivers.union(new);
    }

    /// Counts the outcome of the frame at a hop, once.
    fn resolve(&mut self, hop: usize, credits: &mut Credits) {
        if !self.resolved.contains(hop) {
            self.resolved = self.resolved.union(HopSet::single(hop));
            credits.note_outcome(hop, self.receivers.contains(hop));
        }
    }
}
