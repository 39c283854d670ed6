//! Broadcast traffic over radios with positions, for tests and measurements. Each host has a queue.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use ncmesh_medium::{
    Access, Fading, Medium, MediumConfig, Output, PathLoss, Phy, Power, RadioConfig, RadioId,
    ReceptionModel,
};
use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};

/// The least power of a strong frame, the mean power at 250 m, dBm.
const STRONG_DBM: f64 = -64.37;

/// Counters of a run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    /// Transmissions of all radios.
    pub(crate) sent: u64,
    /// Receptions of all radios.
    pub(crate) received: u64,
    /// Receptions of strong frames.
    pub(crate) strong: u64,
}

/// Parses lines of `x,y` in metres.
pub(crate) fn positions(text: &str) -> Result<Vec<[f64; 3]>, std::num::ParseFloatError> {
    let line = |line: &str| {
        let (x, y) = line.split_once(',').unwrap_or((line, "0"));
        Ok([x.trim().parse()?, y.trim().parse()?, 0.0])
    };
    text.lines().map(line).collect()
}

/// Returns the network of the comparison with ns-3. Every signal that is sensed may be received,
/// depending on its bit errors.
pub(crate) fn mesh(positions: Vec<[f64; 3]>, seed: u64) -> MediumConfig {
    let two_ray = PathLoss::TwoRay { frequency_hz: 2.4e9, antenna_height_m: 1.5 };
    let radios = RadioConfig::with_ranges(positions, two_ray, Fading::Rayleigh, 460.0, 460.0);
    let mut config = MediumConfig::with_radios(Phy::DOT11B, radios, 2_000_000);
    config.reception.model = ReceptionModel::BitErrors;
    config.seed = seed;
    config
}

/// Broadcasts frames of 1500 bytes for `seconds`. Frames arrive at each radio as a Poisson process
/// of `rate` per second and queue without limit. With `rate` 0 every radio is saturated.
pub(crate) fn broadcast(medium: &mut Medium, seconds: f64, rate: f64, seed: u64) -> Tally {
    let waiting = if rate == 0.0 { u64::MAX } else { 0 };
    let mut queues = Queues::new(vec![waiting; medium.radios()], 1_500, rate, seed);
    queues.run(medium, (seconds * 1e9) as u64)
}

/// The queues of all radios, and Poisson arrivals of frames.
pub(crate) struct Queues {
    frame: Arc<[u8]>,
    strong: Power,
    /// Number of frames in each queue.
    waiting: Vec<u64>,
    rate: f64,
    /// The next arrival at each radio: instant in ns, radio.
    arrivals: BinaryHeap<Reverse<(u64, usize)>>,
    rng: ChaCha8Rng,
}

impl Queues {
    /// Creates queues of `waiting` frames of `bytes`, and arrivals at `rate` per second and radio.
    pub(crate) fn new(waiting: Vec<u64>, bytes: usize, rate: f64, seed: u64) -> Self {
        let radios = waiting.len();
        let mut queues = Self {
            frame: vec![0; bytes].into(),
            strong: Power::from_dbm(STRONG_DBM),
            waiting,
            rate,
            arrivals: BinaryHeap::new(),
            rng: ChaCha8Rng::seed_from_u64(seed),
        };
        if rate > 0.0 {
            queues.arrivals = (0..radios).map(|radio| Reverse((queues.wait_ns(), radio))).collect();
        }
        queues
    }

    /// Broadcasts frames until `until_ns`, or until all queues are empty and no frame arrives.
    pub(crate) fn run(&mut self, medium: &mut Medium, until_ns: u64) -> Tally {
        let mut tally = Tally::default();
        for (radio, _) in self.waiting.iter().enumerate().filter(|(_, frames)| **frames > 0) {
            let _ = medium.request(0, RadioId(radio));
        }
        loop {
            let arrival_ns = self.arrivals.peek().map(|Reverse((at_ns, _))| *at_ns);
            let Some(now_ns) = medium.poll_timeout().into_iter().chain(arrival_ns).min() else {
                return tally;
            };
            if now_ns > until_ns {
                return tally;
            }
            if arrival_ns == Some(now_ns) {
                self.arrive(medium);
            } else {
                medium.handle_timeout(now_ns);
            }
            while let Some(output) = medium.poll_output() {
                self.handle(medium, &output, &mut tally);
            }
        }
    }

    /// Counts an output, and answers a grant with the next frame.
    fn handle(&mut self, medium: &mut Medium, output: &Output, tally: &mut Tally) {
        match *output {
            Output::Grant { radio, at_ns } => {
                tally.sent += 1;
                let _ = medium.supply(at_ns, radio, Access::Broadcast, Arc::clone(&self.frame));
                self.waiting[radio.0] -= 1;
                if self.waiting[radio.0] > 0 {
                    let _ = medium.request(at_ns, radio);
                }
            }
            Output::Deliver { power, .. } => {
                tally.received += 1;
                tally.strong += u64::from(power >= Some(self.strong));
            }
            Output::Report { .. } => {}
        }
    }

    /// Draws the time to the next arrival, ns.
    fn wait_ns(&mut self) -> u64 {
        let uniform = (f64::from(self.rng.next_u32()) + 0.5) / 4_294_967_296.0;
        (-libm::log(uniform) / self.rate * 1e9) as u64
    }

    /// Handles the arrival that is due: queues the frame and requests the medium.
    fn arrive(&mut self, medium: &mut Medium) {
        let wait_ns = self.wait_ns();
        let Some(mut first) = self.arrivals.peek_mut() else { return };
        let Reverse((at_ns, radio)) = *first;
        *first = Reverse((at_ns + wait_ns, radio));
        self.waiting[radio] += 1;
        let _ = medium.request(at_ns, RadioId(radio));
    }
}
