//! Reports to the parents of all trees: membership and backlogs in one frame (V-A).
//!
//! Reports are sent periodically, and soon after this node's place in a tree has changed. If one
//! frame has no room for all streams, the report in the next slot continues where it ended.

use super::Multirate;
use crate::frame::{REPORT, ReportEntry};
use ncmesh_engine::rng::unit;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::{Context, Filled};
use ncmesh_wire::FlowId;

/// Longest time for which a change in a tree waits to be reported. Several changes share a report
/// then, and neighbours that see the same change do not all send at once.
const NEWS_DELAY: Duration = Duration::from_millis(20);

/// Time of the next report, and the stream that it begins with.
#[derive(Debug, Default)]
pub(super) struct ReportSchedule {
    next_at: Option<Instant>,
    sent_at: Instant,
    /// Stream after which the next report begins, if the last one had no room for all.
    resume_after: Option<FlowId>,
}

impl ReportSchedule {
    /// Returns when the next report is due.
    pub(super) fn next_at(&self) -> Option<Instant> {
        self.next_at
    }
}

impl Multirate {
    /// Plans a report soon, after this node's place in a tree has changed. There is at most one
    /// report in a slot.
    pub(super) fn report_soon(&mut self, cx: &mut Context<'_>) {
        // The random delay keeps neighbours from colliding. The pause of a slot bounds the airtime
        // of reports when much changes.
        let soon = cx.now + NEWS_DELAY.mul_f64(unit(cx.rng));
        let at = soon.max(self.reports.sent_at + self.config.slot());
        self.reports.next_at = Some(self.reports.next_at.map_or(at, |planned| planned.min(at)));
    }

    /// Returns whether a report is due and would have an entry.
    pub(super) fn is_report_due(&self, now: Instant) -> bool {
        let mut sessions = self.sessions.known.values();
        self.reports.next_at.is_some_and(|at| at <= now)
            && sessions.any(|session| session.parent.is_some() && session.has_report())
    }

    /// Writes a report if one is due, and plans the next.
    pub(super) fn fill_report(&mut self, cx: &Context<'_>, out: &mut Vec<u8>) -> Option<Filled> {
        self.reports.next_at.take_if(|at| *at <= cx.now)?;
        let start = out.len();
        let max_entries = cx.mtu / ReportEntry::LEN;

        // Begin after the stream where the last report ended, and wrap around. So every stream gets
        // its turn, however many there are.
        let after = self.reports.resume_after.take();
        let (first, second): (Vec<FlowId>, Vec<FlowId>) =
            self.sessions.known.keys().partition(|flow| after.is_none_or(|after| **flow > after));
        let mut entries = 0;
        for flow in first.into_iter().chain(second) {
            let Some(session) = self.sessions.known.get_mut(&flow) else { continue };
            let Some(parent) = session.parent.filter(|_| session.has_report()) else { continue };
            if entries == max_entries {
                break;
            }

            // No receivers: this is one of the notices that the node leaves the tree.
            let receivers = session.part.receivers();
            if receivers == 0 {
                session.part.leave_notices = session.part.leave_notices.saturating_sub(1);
            }

            // Membership and pressure go together, since the parent needs both for W (25).
            let pressures = session.pressures();
            let entry = ReportEntry {
                flow,
                parent,
                receivers: u16::try_from(receivers).unwrap_or(u16::MAX),
                backlog: pressures.backlog as f32,
                pressure: pressures.virtual_pressure as f32,
            };

            entry.write(out);
            entries += 1;
            self.reports.resume_after = Some(flow);
        }

        // A full frame may have left out streams.
        let is_full = entries == max_entries;
        if !is_full {
            self.reports.resume_after = None;
        }

        // Plan the next report. It follows in the next slot if streams were left out or leave
        // notices remain, otherwise after the period.
        self.reports.sent_at = cx.now;
        let is_leaving = self.sessions.known.values().any(|session| session.part.leave_notices > 0);
        let pause =
            if is_full || is_leaving { self.config.slot() } else { self.config.report_period() };
        let has_more = self.sessions.known.values().any(crate::session::Session::has_report);
        self.reports.next_at = has_more.then_some(cx.now + pause);
        (out.len() > start).then_some(Filled { kind: REPORT, to: None })
    }
}
