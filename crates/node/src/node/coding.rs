//! Coding counters of the node's tunnel schemes, for people.

use super::names::name_of;
use crate::api::types::{Coding, Hold, MOSTLY_CODED, Stopped};
use ncmesh_engine::tunnel::{CodingStatus, HoldStatus};
use ncmesh_host::console::coding_values;
use ncmesh_stack::Stack;

/// Returns the coding counters of each tunnel scheme, for `GET /v1/status`.
pub(super) fn coding(stack: &Stack) -> Vec<Coding> {
    stack.coding().into_iter().map(|(scheme, status)| shown(stack, scheme, status)).collect()
}

fn shown(stack: &Stack, scheme: &str, status: CodingStatus) -> Coding {
    let hold = |hold: &HoldStatus| Hold {
        previous: name_of(stack, hold.previous),
        next: name_of(stack, hold.next),
        hold_s: hold.hold_s,
    };

    let gain = status.gain();
    let relaying = status.relaying;
    let values = coding_values(&status);
    let stopped = status.stopped.into_iter();
    Coding {
        scheme: scheme.into(),
        values,
        holds: status.holds.iter().map(hold).collect(),
        stopped: stopped
            .map(|(node, reason)| Stopped { neighbor: name_of(stack, node), reason })
            .collect(),
        relay: relaying.relay,
        combines: relaying.coding,
        gain,
        why_not: status.why_not,
    }
}

/// Hints about a scheme that codes less than it could.
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
