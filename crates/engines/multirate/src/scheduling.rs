//! Weighted differential backlog, and the queue that a link or radio serves (eqs. 16, 19, 25;
//! MMU-W: V-B).
//!
//! A queue for m receivers counts m times, because each of its packets is replicated into m packets
//! further down the tree. A link serves the stream whose weighted queue exceeds the queues at the
//! link's far end by most. So packets flow from long queues to short ones, and towards receivers
//! that ask for more.

/// Returns m Q, the weight of a queue of `backlog` packets (Q) for `receivers` receivers (m). A
/// node reports the sum over its queues to its parent.
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

/// A queue that may be served next. The candidates of a link are its sessions. The candidates of a
/// radio are all pairs of a link and a session.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<K> {
    /// Name of the queue.
    pub key: K,
    /// Rate of its link.
    pub rate: f64,
    /// Its [`differential_backlog`].
    pub weight: f64,
}

/// Returns the candidate to serve: the one with the largest product of rate and differential
/// backlog, among equals the first. Returns `None` if no product is positive (19).
pub fn max_weight<K>(candidates: impl IntoIterator<Item = Candidate<K>>) -> Option<K> {
    let mut best = None;
    let mut most = 0.0;
    for Candidate { key, rate, weight } in candidates {
        // NaN compares as false, so a candidate without a valid weight is never served.
        if rate * weight > most {
            most = rate * weight;
            best = Some(key);
        }
    }

    best
}
