//! A driver for tests: a virtual clock, and hosts that answer grants as a test says.

use ncmesh_medium::{Access, LossMatrix, Medium, Output, RadioId};

use crate::traffic::{Queues, Tally};

/// Returns a loss matrix of `n` radios with the links (from, to, loss) in both directions.
pub(crate) fn links(n: usize, links: &[(usize, usize, f64)]) -> LossMatrix {
    let mut matrix = LossMatrix::new(n);
    for &(a, b, loss) in links {
        matrix.set(RadioId(a), RadioId(b), loss).unwrap();
        matrix.set(RadioId(b), RadioId(a), loss).unwrap();
    }
    matrix
}

/// Runs `medium` until `until_ns` or until nothing is due. `answer` returns the frame for each
/// grant, or `None` to decline. Returns all outputs in order.
pub(crate) fn run(
    medium: &mut Medium,
    until_ns: u64,
    mut answer: impl FnMut(&mut Medium, RadioId, u64) -> Option<(Access, Vec<u8>)>,
) -> Vec<Output> {
    let mut trace = Vec::new();
    while let Some(at_ns) = medium.poll_timeout().filter(|&at_ns| at_ns <= until_ns) {
        medium.handle_timeout(at_ns);
        while let Some(output) = medium.poll_output() {
            if let Output::Grant { radio, at_ns } = output {
                match answer(medium, radio, at_ns) {
                    Some((access, frame)) => {
                        medium.supply(at_ns, radio, access, frame.into()).unwrap();
                    }
                    None => medium.decline(at_ns, radio).unwrap(),
                }
            }
            trace.push(output);
        }
    }
    trace
}

/// Runs `medium` with saturated `senders`: each always has a frame of `bytes` for `access`.
pub(crate) fn saturate(
    medium: &mut Medium,
    until_ns: u64,
    senders: std::ops::Range<usize>,
    access: impl Fn(RadioId) -> Access,
    bytes: usize,
) -> Vec<Output> {
    senders.for_each(|radio| medium.request(0, RadioId(radio)).unwrap());
    run(medium, until_ns, |medium, radio, at_ns| {
        medium.request(at_ns, radio).unwrap();
        Some((access(radio), vec![0; bytes]))
    })
}

/// Broadcasts `frames` of `bytes` from `radio`. No other radio sends.
pub(crate) fn broadcast_from(
    medium: &mut Medium,
    radio: RadioId,
    bytes: usize,
    frames: u64,
) -> Tally {
    let mut waiting = vec![0; medium.radios()];
    waiting[radio.0] = frames;
    Queues::new(waiting, bytes, 0.0, 0).run(medium, u64::MAX)
}
