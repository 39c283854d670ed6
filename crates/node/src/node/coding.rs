//! What the node's tunnel schemes code, for people: in the status, and in the log where that
//! changes.

use super::Node;
use crate::api::types::{Coding, Hold, MOSTLY_CODED, Stopped};
use ncmesh_engine::tunnel::{CodingStatus, HoldStatus};
use ncmesh_host::console::coding_values;
use std::collections::BTreeMap;

impl Node {
    /// What each scheme that codes packets which cross did here, for `GET /v1/status`.
    pub(super) fn coding(&self) -> Vec<Coding> {
        self.stack.coding().into_iter().map(|(scheme, status)| self.shown(scheme, status)).collect()
    }

    fn shown(&self, scheme: &str, status: CodingStatus) -> Coding {
        let hold = |hold: &HoldStatus| Hold {
            previous: self.name_of(hold.previous),
            next: self.name_of(hold.next),
            hold_s: hold.hold_s,
        };
        let (gain, relaying) = (status.gain(), status.relaying);
        let values = coding_values(&status);
        let stopped = status.stopped.into_iter();
        Coding {
            scheme: scheme.into(),
            values,
            holds: status.holds.iter().map(hold).collect(),
            stopped: stopped
                .map(|(node, reason)| Stopped { neighbor: self.name_of(node), reason })
                .collect(),
            relay: relaying.relay,
            combines: relaying.coding,
            gain,
            why_not: status.why_not,
        }
    }

    /// Logs for whom coding has stopped, and for whom it goes on, since the last call.
    pub(super) fn note_coding(&mut self) {
        let statuses = self.stack.coding().into_iter();
        let stopped: BTreeMap<_, _> = statuses
            .flat_map(|(scheme, status)| {
                status.stopped.into_iter().map(move |(node, why)| ((scheme, node), why))
            })
            .collect();

        // Only changes are logged.
        for ((scheme, node), why) in &stopped {
            if !self.coding_stopped.contains(&(*scheme, *node)) {
                let name = self.name_of(*node);
                tracing::warn!("{scheme} codes no more for {name} for a while: it {why}");
            }
        }
        for (scheme, node) in &self.coding_stopped {
            if !stopped.contains_key(&(*scheme, *node)) {
                tracing::info!("{scheme} codes for {} again", self.name_of(*node));
            }
        }
        self.coding_stopped = stopped.into_keys().collect();
    }
}

/// What to know of a scheme that codes less than it could.
pub(super) fn hints(coding: &Coding) -> impl Iterator<Item = String> {
    let is_little = coding.values.ratio.is_none_or(|ratio| ratio < MOSTLY_CODED);
    coding.stopped.iter().filter(move |_| is_little).map(|Stopped { neighbor, reason }| {
        let scheme = &coding.scheme;
        format!("{scheme} codes nothing for {neighbor} for now: it {reason}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_codes_most_frames_is_not_said_to_code_too_little() {
        let stopped = Stopped { neighbor: "s1".into(), reason: "knows only 0 %".into() };
        let mut coding = Coding { stopped: vec![stopped], ..Coding::default() };
        coding.values.ratio = Some(0.84);
        assert_eq!(hints(&coding).count(), 0);
        coding.values.ratio = Some(0.1);
        assert_eq!(hints(&coding).count(), 1);
    }
}
