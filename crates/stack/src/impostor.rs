//! Frames that another machine writes under the id and the present start of this node, and what it
//! tells others in the name of this node.
//!
//! Only a member can do so, or a machine with a copy of this node's memory. Neighbours forget such
//! frames with the start, so this node begins another. The member can then forge frames of that
//! one. The pauses between starts grow, so that it cannot make the node begin start after start.

use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::toolkit::backoff::Backoff;

/// Pauses between two starts.
const PAUSES: Backoff = Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(8) };
/// Time without forged frames after which pauses begin again with the first. The status names
/// forged frames for as long.
const KEPT: Duration = Duration::from_secs(300);

/// Forged frames of this node's start.
#[derive(Debug, Default)]
pub(crate) struct Impostor {
    heard_at: Option<Instant>,
    /// Whether no start was begun since.
    is_open: bool,
    /// Starts begun, and when the next one may begin.
    renewals: u32,
    next: Instant,
}

impl Impostor {
    /// Notes a frame of this node's present start that it has not sent.
    pub(crate) fn note(&mut self, now: Instant) {
        if !self.is_known(now) {
            self.renewals = 0;
        }
        self.heard_at = Some(now);
        self.is_open = true;
    }

    /// Notes something that others were told in the name of this node, by frames of any start. A
    /// new start is no answer to it.
    pub(crate) fn note_told(&mut self, now: Instant) {
        self.heard_at = Some(now);
    }

    /// Returns whether this node should begin another start now. It must do so then.
    pub(crate) fn may_renew(&mut self, now: Instant) -> bool {
        let is_due = self.is_open && now >= self.next;
        if is_due {
            self.is_open = false;
            self.next = now + PAUSES.pause(self.renewals);
            self.renewals += 1;
        }
        is_due
    }

    /// Returns whether a forged frame was heard recently.
    pub(crate) fn is_known(&self, now: Instant) -> bool {
        self.heard_at.is_some_and(|at| now.since(at) < KEPT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(s: u64) -> Instant {
        Instant::from_nanos(s * 1_000_000_000)
    }

    #[test]
    fn a_start_is_renewed_at_once_and_then_after_growing_pauses() {
        let mut impostor = Impostor::default();
        assert!(!impostor.may_renew(at(0)) && !impostor.is_known(at(0)));
        let mut renewals = Vec::new();
        for second in 10..70 {
            impostor.note(at(second));
            if impostor.may_renew(at(second)) {
                renewals.push(second);
            }
        }
        assert_eq!(renewals, [10, 11, 13, 17, 25, 33, 41, 49, 57, 65]);
        assert!(impostor.may_renew(at(80)), "the last frame was not answered yet");
        assert!(!impostor.may_renew(at(100)), "no frame came since");
        assert!(impostor.is_known(at(300)) && !impostor.is_known(at(400)));
        impostor.note(at(500));
        assert!(impostor.may_renew(at(500)));
        impostor.note(at(501));
        assert!(impostor.may_renew(at(501)), "the pauses begin again");
    }
}
