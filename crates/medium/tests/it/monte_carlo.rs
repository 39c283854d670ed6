//! A Monte Carlo simulation of DCF in a single collision domain, independent of the medium.
//!
//! It follows only the backoff counter of each station, the next transmission, and the busy periods
//! of the channel. Counters freeze in whole slots and resume after DIFS. Unicast senders that
//! collided resume at the end of the ACK or CTS timeout, if the channel is idle then.

use ncmesh_medium::Phy;
use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};

/// Performance of saturated stations.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Saturation {
    /// Share of the transmissions that collided.
    pub(crate) collided: f64,
    /// Payload of the other transmissions, Mbit/s.
    pub(crate) mbps: f64,
}

/// A collision domain.
pub(crate) struct Cell {
    phy: Phy,
    frame_ns: u64,
    ack_ns: u64,
    /// Airtime of an RTS, if unicast frames are announced. Collisions then cost no more than that.
    rts_ns: Option<u64>,
    /// Attempts of a unicast frame, or `None` for broadcast.
    attempts: Option<u32>,
}

/// One station.
struct Station {
    /// Remaining backoff slots.
    slots: u64,
    /// When the slots begin to count, if the channel is idle.
    from_ns: u64,
    window: u32,
    attempt: u32,
}

impl Cell {
    /// Creates a cell with frames of 1500 bytes and 36 bytes of overhead.
    pub(crate) fn new(phy: Phy, rate_bps: u64, attempts: Option<u32>) -> Self {
        let frame_ns = phy.airtime_ns(1_536, rate_bps);
        let ack_ns = phy.ack_airtime_ns(rate_bps);
        Self { phy, frame_ns, ack_ns, rts_ns: None, attempts }
    }

    /// Announces each frame by RTS and CTS. Control frames have the rate `rate_bps`.
    pub(crate) fn with_rts(self, rate_bps: u64) -> Self {
        Self { rts_ns: Some(self.phy.airtime_ns(20, rate_bps)), ..self }
    }

    /// Simulates `stations` that always have a frame, until `frames` transmissions.
    pub(crate) fn saturate(&self, stations: usize, frames: u64) -> Saturation {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let phy = self.phy;
        let draw = |rng: &mut ChaCha8Rng, window: u32| u64::from(rng.next_u32() % (window + 1));
        let fresh = |rng: &mut ChaCha8Rng| Station {
            slots: draw(rng, phy.cw_min),
            from_ns: phy.difs_ns,
            window: phy.cw_min,
            attempt: 0,
        };
        let mut cell: Vec<Station> = (0..stations).map(|_| fresh(&mut rng)).collect();
        let mut sent = 0;
        let mut good = 0;
        let mut now_ns = 0;
        while sent < frames {
            // The stations whose countdown ends first transmit. A single one succeeds.
            let due_ns = |station: &Station| station.from_ns + station.slots * phy.slot_ns;
            let start_ns = cell.iter().map(due_ns).min().unwrap_or(0);
            let senders = cell.iter().filter(|station| due_ns(station) == start_ns).count() as u64;
            sent += senders;
            good += u64::from(senders == 1);
            // The RTS is sent first, if there is one. A CTS is as long as an ACK.
            let answered = self.attempts.is_some() && senders == 1;
            let announced_ns = self.rts_ns.map_or(0, |_| phy.sifs_ns + self.ack_ns);
            let data_ns = self.rts_ns.map_or(0, |_| phy.sifs_ns + self.frame_ns);
            let answer_ns =
                if answered { announced_ns + data_ns + phy.sifs_ns + self.ack_ns } else { 0 };
            let frame_end_ns = start_ns + self.rts_ns.unwrap_or(self.frame_ns);
            now_ns = frame_end_ns + answer_ns;

            // The senders draw a new backoff, the others keep their remaining whole slots.
            for station in &mut cell {
                let sends = due_ns(station) == start_ns;
                let mut resume_ns = 0;
                if sends {
                    if self.attempts.is_some() && senders > 1 {
                        resume_ns = frame_end_ns + phy.sifs_ns + phy.slot_ns + phy.preamble_ns;
                    }
                    self.advance(station, senders == 1);
                    station.slots = draw(&mut rng, station.window);
                } else if start_ns > station.from_ns {
                    station.slots -= (start_ns - station.from_ns) / phy.slot_ns;
                } else {
                    // The ACK timeout of this station is still running.
                    resume_ns = station.from_ns;
                }
                station.from_ns = resume_ns.max(now_ns + phy.difs_ns);
            }
        }
        Saturation {
            collided: 1.0 - good as f64 / sent as f64,
            mbps: good as f64 * 12_000.0 / (now_ns as f64 / 1e9) / 1e6,
        }
    }

    /// Updates the contention window of a station after an attempt.
    fn advance(&self, station: &mut Station, success: bool) {
        station.attempt += 1;
        let over = success || station.attempt >= self.attempts.unwrap_or(1);
        if over {
            station.attempt = 0;
            station.window = self.phy.cw_min;
        } else {
            station.window = (2 * station.window + 1).min(self.phy.cw_max);
        }
    }
}
