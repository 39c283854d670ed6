//! Weighted differential backlog, and the queue that a link or radio serves (eqs. 16, 19, 25;
//! MMU-W: V-B).
//!
//! A queue for m receivers counts m times, since each of its packets will be m packets further on.
//! A link serves the stream for which this exceeds the queues at its far end by most: packets flow
//! from long queues to short ones, and towards receivers that ask for more.

/// Returns m Q, the weight of a queue of `backlog` packets (Q) for `receivers` receivers (m). A
/// node reports the sum of it over its queues to its parent.
#[must_use]
pub fn pressure(receivers: u32, backlog: u32) -> f64 {
    f64::from(receivers) * f64::from(backlog)
}

/// Returns W, the weighted differential backlog. `own` is the [`pressure`] of the link's queue.
/// `downstream` is the sum of those at its far end, with the virtual pressure Y if a receiver is
/// there.
#[must_use]
pub fn differential_backlog(own: f64, downstream: f64) -> f64 {
    own - downstream
}

/// Returns which of `candidates` is served, each given with its rate and its differential backlog:
/// the one with the largest product of the two, if that is positive; among equals the first. The
/// candidates of a link are its sessions, those of a radio all pairs of a link and a session.
pub fn most_pressing<K>(candidates: impl IntoIterator<Item = (K, f64, f64)>) -> Option<K> {
    let mut best = None;
    let mut most = 0.0;
    for (who, rate, weight) in candidates {
        if rate * weight > most {
            most = rate * weight;
            best = Some(who);
        }
    }
    best
}
