//! Broadcast traffic over radios with positions, for tests and measurements: hosts with a queue each.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use ncmesh_medium::{
    Access, Fading, Medium, MediumConfig, Output, PathLoss, Phy, Power, RadioConfig, RadioId,
    ReceptionModel,
};
use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};

/// A frame received with this power or more is strong, dBm: the mean at 250 m.
const STRONG_DBM: f64 = -64.37;

/// What happened.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    /// Frames sent.
    pub(crate) sent: u64,
    /// Frames received, by all.
    pub(crate) received: u64,
    /// Of these the strong ones.
    pub(crate) strong: u64,
}

/// Lines of `x,y` in metres.
pub(crate) fn positions(text: &str) -> Result<Vec<[f64; 3]>, std::num::ParseFloatError> {
    let line = |line: &str| {
        let (x, y) = line.split_once(',').unwrap_or((line, "0"));
        Ok([x.trim().parse()?, y.trim().parse()?, 0.0])
    };
    text.lines().map(line).collect()
}

/// The network of the comparison with ns-3: what is sensed can be received, bit by bit.
pub(crate) fn mesh(positions: Vec<[f64; 3]>, seed: u64) -> MediumConfig {
    let two_ray = PathLoss::TwoRay { frequency_hz: 2.4e9, antenna_height_m: 1.5 };
    let radios = RadioConfig::with_ranges(positions, two_ray, Fading::Rayleigh, 460.0, 460.0);
    let mut config = MediumConfig::with_radios(Phy::DOT11B, radios, 2_000_000);
    config.reception.model = ReceptionModel::BitErrors;
    config.seed = seed;
    config
}

/// Broadcasts frames of 1500 bytes for `seconds`: Poisson arrivals at `rate` per second and radio, queued
/// without limit, or always one more if `rate` is 0.
pub(crate) fn broadcast(medium: &mut Medium, seconds: f64, rate: f64, seed: u64) -> Tally {
    let waiting = if rate == 0.0 { u64::MAX } else { 0 };
    let mut queues = Queues::new(vec![waiting; medium.radios()], 1_500, rate, seed);
    queues.run(medium, (seconds * 1e9) as u64)
}

/// Frames that wait, and Poisson arrivals of more.
pub(crate) struct Queues {
    frame: Arc<[u8]>,
    strong: Power,
    waiting: Vec<u64>,
    rate: f64,
    due: BinaryHeap<Reverse<(u64, usize)>>,
    rng: ChaCha8Rng,
}

impl Queues {
    /// Of each radio so many frames of `bytes`, and more of them at `rate` per second.
    pub(crate) fn new(waiting: Vec<u64>, bytes: usize, rate: f64, seed: u64) -> Self {
        let radios = waiting.len();
        let mut queues = Self {
            frame: vec![0; bytes].into(),
            strong: Power::from_dbm(STRONG_DBM),
            waiting,
            rate,
            due: BinaryHeap::new(),
            rng: ChaCha8Rng::seed_from_u64(seed),
        };
        if rate > 0.0 {
            queues.due = (0..radios).map(|radio| Reverse((queues.wait_ns(), radio))).collect();
        }
        queues
    }

    /// Broadcasts them until `until_ns`, or until none is left and none comes.
    pub(crate) fn run(&mut self, medium: &mut Medium, until_ns: u64) -> Tally {
        let mut tally = Tally::default();
        for (radio, _) in self.waiting.iter().enumerate().filter(|(_, frames)| **frames > 0) {
            let _ = medium.request(0, RadioId(radio));
        }
        loop {
            let arrival_ns = self.due.peek().map(|Reverse((at_ns, _))| *at_ns);
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

    fn wait_ns(&mut self) -> u64 {
        let uniform = (f64::from(self.rng.next_u32()) + 0.5) / 4_294_967_296.0;
        (-uniform.ln() / self.rate * 1e9) as u64
    }

    fn arrive(&mut self, medium: &mut Medium) {
        let wait_ns = self.wait_ns();
        let Some(mut first) = self.due.peek_mut() else { return };
        let Reverse((at_ns, radio)) = *first;
        *first = Reverse((at_ns + wait_ns, radio));
        self.waiting[radio] += 1;
        let _ = medium.request(at_ns, RadioId(radio));
    }
}
