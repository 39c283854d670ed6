//! Weighted differential backlog and whom a link or radio serves (eqs. 16, 19, 25; MMU-W: V-B).

/// What a queue of `backlog` packets for `receivers` receivers (m) weighs: its part of what its node tells the
/// nodes before it.
#[must_use]
pub fn pressure(receivers: u32, backlog: u32) -> f64 {
    f64::from(receivers) * f64::from(backlog)
}

/// W: `own` is the [`pressure`] of the link's queue, `downstream` the sum of those of the queues at its far end,
/// with the virtual pressure Y if a receiver is there.
#[must_use]
pub fn differential_backlog(own: f64, downstream: f64) -> f64 {
    own - downstream
}

/// Which of `candidates`, each with the rate it would have and its differential backlog, is served: the largest
/// product of the two, if its backlog is positive; of equals the first. For a link these are its sessions, for a
/// radio all pairs of a link and a session.
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
