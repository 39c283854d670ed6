//! A channel of radios with positions: path loss, shadowing, fading.
//!
//! The mean power of each pair of radios is computed once: transmit power less path loss, plus
//! log-normal shadowing that is alike in both directions. Each frame then multiplies it with the
//! fading factor of each receiver. Pairs that are too far apart for a signal above the interference
//! floor are not stored, so memory and time grow with the neighbours of a radio and not with the
//! number of radios.
//!
//! Models: T. S. Rappaport, "Wireless Communications", chapters 4 and 5.

use std::collections::BTreeMap;

use rand_chacha::ChaCha8Rng;
use rand_core::RngCore as _;
use rand_distr::{Distribution, StandardNormal};

use super::fader::Fader;
use super::{Arrival, LinkOutcome};
use crate::config::RadioConfig;
use crate::error::MediumError;
use crate::power::{Power, units_of_dbm};
use crate::random::{Purpose, stream};
use crate::types::RadioId;

/// A pair of radios is ignored if its signal exceeds the floor with less than this probability.
const NEGLIGIBLE_PROBABILITY: f64 = 1e-6;

/// Shadowing is cut off at this many standard deviations.
const SHADOWING_SIGMAS: f64 = 4.0;

/// A radio that a sender's signal may reach.
#[derive(Clone, Copy)]
struct Neighbour {
    radio: u32,
    /// The greatest draw of fading at which the power reaches the floor, if one draw decides.
    last_draw: u32,
    /// Mean power, units.
    mean: f64,
}

/// How the frame that ended last at a radio arrived there.
#[derive(Clone, Copy)]
struct Heard {
    from: usize,
    ended_ns: u64,
    link: LinkOutcome,
    power: Power,
}

/// Radios with positions, and the mean power of each pair.
pub(crate) struct RadioChannel {
    /// The settings, with the present positions.
    config: RadioConfig,
    seed: u64,
    fader: Fader,
    /// Time for which an answer meets the fading of what it answers, ns.
    coherence_ns: u64,
    /// By radio, the frame that ended last there. Empty if fading has no coherence.
    heard: Vec<Option<Heard>>,
    /// Weaker signals are ignored, units.
    floor: f64,
    /// The least power of a frame that is received, units.
    rx_threshold: f64,
    /// The least power that makes the channel busy, units.
    cs_threshold: f64,
    /// By sender, each sorted by radio.
    neighbours: Vec<Vec<Neighbour>>,
    data_draws: Vec<ChaCha8Rng>,
    control_draws: Vec<ChaCha8Rng>,
    /// Scratch space for the random bytes of one frame.
    random_bytes: Vec<u8>,
    /// Scratch space for the neighbours whose power reaches the floor: index, draw.
    reached: Vec<(u32, u32)>,
}

impl RadioChannel {
    /// Creates the channel of a validated `config`.
    pub(crate) fn new(config: &RadioConfig, seed: u64) -> Self {
        let radios = config.positions.len();
        let draws = |purpose| (0..radios).map(|radio| stream(seed, purpose, radio)).collect();

        // A floor of negative infinity ignores no signal.
        let floor = if config.interference_floor_dbm == f64::NEG_INFINITY {
            0.0
        } else {
            units_of_dbm(config.interference_floor_dbm)
        };

        let coherence_ns = config.fading_coherence_ns;
        let mut channel = Self {
            config: config.clone(),
            seed,
            coherence_ns,
            heard: vec![None; if coherence_ns > 0 { radios } else { 0 }],
            floor,
            rx_threshold: units_of_dbm(config.rx_threshold_dbm),
            cs_threshold: units_of_dbm(config.cs_threshold_dbm),
            neighbours: Vec::new(),
            fader: Fader::new(config.fading),
            data_draws: draws(Purpose::Fading),
            control_draws: draws(Purpose::ControlFading),
            random_bytes: Vec::new(),
            reached: Vec::new(),
        };

        channel.meet();
        channel
    }

    /// Computes who reaches whom from the positions.
    fn meet(&mut self) {
        let fader = &self.fader;
        let floor = self.floor;
        let neighbour = |(radio, mean): (u32, f64)| Neighbour {
            radio,
            last_draw: fader.last_draw(floor / mean),
            mean,
        };
        let lists = mean_powers(&self.config, self.seed).into_iter();
        self.neighbours = lists.map(|list| list.into_iter().map(neighbour).collect()).collect();
    }

    /// Moves radios; frames on the air arrive as they began. Costs as much as a new channel.
    ///
    /// # Errors
    /// [`MediumError::BadPropagation`] if a position is out of range, or with shadowing: it belongs
    /// to a pair of places, and no model here says how it changes on the way.
    pub(super) fn move_to(&mut self, moves: &[(RadioId, [f64; 3])]) -> Result<(), MediumError> {
        if self.config.shadowing_db > 0.0 {
            return Err(MediumError::BadPropagation {
                fault: "radios with `shadowing_db` cannot move: it holds for a pair of places",
            });
        }

        let mut config = self.config.clone();
        let radios = config.positions.len();
        for &(radio, position) in moves {
            let known = config.positions.get_mut(radio.0);
            *known.ok_or(MediumError::UnknownRadio { radio, radios })? = position;
        }

        // All is checked before anything changes: a refused move leaves the channel as it was.
        config.validate()?;
        self.config = config;
        self.meet();
        Ok(())
    }

    /// Returns where a radio is, m.
    pub(super) fn position(&self, radio: RadioId) -> Option<[f64; 3]> {
        self.config.positions.get(radio.0).copied()
    }

    /// Returns the number of radios.
    pub(super) fn radios(&self) -> usize {
        self.neighbours.len()
    }

    /// Returns the radios that sense the mean power of `sender`, sorted.
    pub(super) fn hearers(&self, sender: usize) -> Vec<usize> {
        let near = self.neighbours[sender].iter().filter(|near| near.mean >= self.cs_threshold);
        near.map(|near| near.radio as usize).collect()
    }

    /// Appends the arrivals of a frame of `sender`, sorted by radio. It is addressed to `receiver`,
    /// or to all.
    ///
    /// Makes the same number of draws for every frame, so that runs stay comparable.
    pub(super) fn launch(
        &mut self,
        now_ns: u64,
        sender: usize,
        receiver: Option<usize>,
        control: bool,
        arrivals: &mut Vec<Arrival>,
    ) {
        let draws = if control { &mut self.control_draws } else { &mut self.data_draws };
        let rng = &mut draws[sender];
        let neighbours = &self.neighbours[sender];

        if let Fader::Single(single) = &self.fader {
            // All draws at once, then the selection of those that reach the floor, then their
            // logarithms. No step has a branch to mispredict, and no logarithm is computed for a
            // signal below the floor.
            self.random_bytes.resize(4 * neighbours.len(), 0);
            rng.fill_bytes(&mut self.random_bytes);
            self.reached.resize(neighbours.len(), (0, 0));
            let mut count = 0;
            let words = self.random_bytes.as_chunks().0;
            for (i, (neighbour, word)) in neighbours.iter().zip(words).enumerate() {
                let draw = u32::from_le_bytes(*word);
                self.reached[count] = (i as u32, draw);
                count += usize::from(draw <= neighbour.last_draw);
            }

            arrivals.extend(self.reached[..count].iter().map(|&(i, draw)| {
                let neighbour = &neighbours[i as usize];
                neighbour.arrival(single.of(draw), self.rx_threshold)
            }));
        } else {
            for neighbour in neighbours {
                let factor = self.fader.draw(rng);
                if neighbour.mean * factor >= self.floor {
                    arrivals.push(neighbour.arrival(factor, self.rx_threshold));
                }
            }
        }

        self.repeat_fading(now_ns, sender, receiver, arrivals);
    }

    /// Replaces the arrival at `receiver` if its frame ended at `sender` within the coherence time:
    /// the channel is the same both ways, and mean powers are, so the answer is as strong as what
    /// it answers.
    fn repeat_fading(
        &mut self,
        now_ns: u64,
        sender: usize,
        receiver: Option<usize>,
        arrivals: &mut Vec<Arrival>,
    ) {
        // A radio that has sent no longer knows the channel from before.
        let Some(heard) = self.heard.get_mut(sender).and_then(Option::take) else { return };
        if receiver != Some(heard.from) || now_ns >= heard.ended_ns + self.coherence_ns {
            return;
        }

        let radio = heard.from as u32;
        let link = heard.link;
        let power = heard.power;
        let again = Arrival { radio, link, power };
        match arrivals.binary_search_by_key(&radio, |arrival| arrival.radio) {
            Ok(at) => arrivals[at] = again,
            Err(at) => arrivals.insert(at, again),
        }
    }

    /// Notes how a frame of `sender`, which ends now, arrived.
    pub(super) fn note_end(&mut self, now_ns: u64, sender: usize, arrivals: &[Arrival]) {
        if self.heard.is_empty() {
            return;
        }
        for &Arrival { radio, link, power } in arrivals {
            let heard = Heard { from: sender, ended_ns: now_ns, link, power };
            self.heard[radio as usize] = Some(heard);
        }
    }
}

impl Neighbour {
    /// Returns the arrival of a frame with the fading `factor`.
    fn arrival(&self, factor: f64, rx_threshold: f64) -> Arrival {
        let units = self.mean * factor;
        let received = units >= rx_threshold;
        let link = if received { LinkOutcome::Intact } else { LinkOutcome::EnergyOnly };
        Arrival { radio: self.radio, link, power: Power::from_units(units) }
    }
}

/// Returns, for each sender, the radios in reach with their mean power in units, sorted by radio.
///
/// A radio is in reach if the signal exceeds the interference floor with a probability of
/// [`NEGLIGIBLE_PROBABILITY`] or more.
pub(super) fn mean_powers(config: &RadioConfig, seed: u64) -> Vec<Vec<(u32, f64)>> {
    // The weakest mean power that is kept, and the distance that it reaches with the luckiest
    // shadowing.
    let fade = config.fading.exceeded_with(NEGLIGIBLE_PROBABILITY);
    let weakest_dbm = config.interference_floor_dbm - 10.0 * libm::log10(fade);
    let spread_db = SHADOWING_SIGMAS * config.shadowing_db;
    let reach_m = config.path_loss.reach_m(config.tx_power_dbm + spread_db - weakest_dbm);
    let cells = Cells::new(&config.positions, reach_m);

    // Shadowing is drawn for each pair in reach, from the stream of its lower radio and in order of
    // the higher one.
    let mut lists = vec![Vec::new(); config.positions.len()];
    for a in 0..config.positions.len() {
        let mut shadows = stream(seed, Purpose::Shadowing, a);
        let mut near = cells.near(a);
        near.retain(|&b| b > a);
        near.sort_unstable();
        for b in near {
            let shadow_db: f64 = if config.shadowing_db > 0.0 {
                let normal: f64 = StandardNormal.sample(&mut shadows);
                config.shadowing_db * normal.clamp(-SHADOWING_SIGMAS, SHADOWING_SIGMAS)
            } else {
                0.0
            };

            let distance_m = distance(config.positions[a], config.positions[b]);
            let dbm = config.tx_power_dbm - config.path_loss.db(distance_m) + shadow_db;
            if dbm >= weakest_dbm {
                let mean = units_of_dbm(dbm);
                lists[a].push((b as u32, mean));
                lists[b].push((a as u32, mean));
            }
        }
    }

    lists.iter_mut().for_each(|list| list.sort_unstable_by_key(|entry| entry.0));
    lists
}

/// Returns the distance of two points, m.
fn distance(a: [f64; 3], b: [f64; 3]) -> f64 {
    libm::sqrt((0..3).map(|axis| (a[axis] - b[axis]) * (a[axis] - b[axis])).sum())
}

/// Radios by square cell of the plane, so that only radios in adjacent cells need be compared.
struct Cells {
    side_m: f64,
    /// The cell of each radio.
    places: Vec<(i64, i64)>,
    /// The radios of each cell.
    cells: BTreeMap<(i64, i64), Vec<usize>>,
}

impl Cells {
    /// Sorts radios into cells with sides of `side_m`, or into one cell if that is infinite.
    fn new(positions: &[[f64; 3]], side_m: f64) -> Self {
        // Heights are left out: two radios within reach are within it on the plane as well.
        let place = |position: &[f64; 3]| {
            let along = |axis: usize| libm::floor(position[axis] / side_m) as i64;
            if side_m.is_finite() { (along(0), along(1)) } else { (0, 0) }
        };

        let places: Vec<_> = positions.iter().map(place).collect();
        let mut cells: BTreeMap<_, Vec<usize>> = BTreeMap::new();
        for (radio, place) in places.iter().enumerate() {
            cells.entry(*place).or_default().push(radio);
        }

        Self { side_m, places, cells }
    }

    /// Returns all radios in the cell of `radio` and the eight around it, which include all radios
    /// within one side.
    fn near(&self, radio: usize) -> Vec<usize> {
        debug_assert!(self.side_m > 0.0);
        let (x, y) = self.places[radio];
        let around = (x - 1..=x + 1).flat_map(|x| (y - 1..=y + 1).map(move |y| (x, y)));
        around.filter_map(|place| self.cells.get(&place)).flatten().copied().collect()
    }
}
