//! A channel of which only the loss of each link is known.

use rand_chacha::ChaCha8Rng;
use rand_core::RngCore;

use super::bursts::Burstiness;
use super::{Arrival, Fate};
use crate::config::{LinkPower, LinksConfig, Sense};
use crate::power::Power;
use crate::random::{Purpose, stream};
use crate::{LossMatrix, MediumError, RadioId};

/// Certainty, as a bound on 32-bit draws.
const CERTAIN: f64 = 4_294_967_296.0;

/// The power a frame needs, units: so far above that of a radio merely sensed that the latter disturbs nothing.
const NEEDED: f64 = 1_048_576.0;

/// Of the power needed a frame has at most so much.
const STRONGEST: f64 = 1e4;

/// One radio in reach of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Neighbour {
    radio: usize,
    /// A frame survives when a 32-bit draw is below this: 2^32 is certainty, 0 means sensed, never heard.
    threshold: u64,
}

/// The loss matrix with its random streams, and the neighbour lists made from it.
pub(crate) struct Links {
    loss: LossMatrix,
    sense: Sense,
    /// By sender, each sorted by radio.
    neighbours: Vec<Vec<Neighbour>>,
    data_draws: Vec<ChaCha8Rng>,
    control_draws: Vec<ChaCha8Rng>,
    bursts: Option<Burstiness>,
    power: LinkPower,
}

impl Links {
    /// A channel over validated settings.
    pub(crate) fn new(config: LinksConfig, seed: u64) -> Self {
        let LinksConfig { loss, sense, bursts, power } = config;
        let radios = loss.radios();
        let draws = |purpose| (0..radios).map(|radio| stream(seed, purpose, radio)).collect();
        Self {
            neighbours: all_neighbours(&loss, &sense),
            data_draws: draws(Purpose::Loss),
            control_draws: draws(Purpose::ControlLoss),
            bursts: bursts.map(|bursts| Burstiness::new(bursts, radios, seed)),
            loss,
            sense,
            power,
        }
    }

    /// The number of radios.
    pub(super) fn radios(&self) -> usize {
        self.neighbours.len()
    }

    /// Who can hear `sender`, sorted.
    pub(super) fn hearers(&self, sender: usize) -> Vec<usize> {
        self.loss.row(sender).iter().map(|link| link.0).collect()
    }

    /// Appends whom a frame of `sender` reaches. A draw is made for each neighbour that hears and each
    /// frame, whatever else befalls it: then the fate of a sender's n-th frame depends on nothing but the
    /// seed, and protocols can be compared on the same luck.
    pub(super) fn launch(
        &mut self,
        now_ns: u64,
        sender: usize,
        control: bool,
        arrivals: &mut Vec<Arrival>,
    ) {
        let draws = if control { &mut self.control_draws } else { &mut self.data_draws };
        let draws = &mut draws[sender];
        for neighbour in &self.neighbours[sender] {
            let radio = neighbour.radio as u32;
            let mut arrival = Arrival { radio, fate: Fate::Sensed, power: Power::UNIT };
            if neighbour.threshold > 0 {
                let mut threshold = neighbour.threshold;
                if let Some(bursts) = &mut self.bursts {
                    let loss = self.loss.loss(RadioId(sender), RadioId(neighbour.radio));
                    threshold =
                        delivered_below(bursts.loss_now(now_ns, sender, neighbour.radio, loss));
                }
                let draw = draws.next_u32();
                let whole = u64::from(draw) < threshold;
                (arrival.fate, arrival.power) = match self.power {
                    LinkPower::Equal if whole => (Fate::Whole, Power::UNIT),
                    LinkPower::Equal => (Fate::Lost, Power::UNIT),
                    LinkPower::Rayleigh if whole => (Fate::Whole, faded(draw, threshold)),
                    LinkPower::Rayleigh => (Fate::Sensed, faded(draw, threshold)),
                };
            }
            arrivals.push(arrival);
        }
    }

    /// Changes one link; frames already in flight keep their fate.
    pub(super) fn set_loss(
        &mut self,
        from: RadioId,
        to: RadioId,
        loss: f64,
    ) -> Result<(), MediumError> {
        self.loss.set(from, to, loss)?;
        // Sensing is mutual by default, so both lists may change.
        for (sender, listener) in [(from.0, to.0), (to.0, from.0)] {
            let senses = match &self.sense {
                Sense::Audible => {
                    self.delivers(sender, listener) || self.delivers(listener, sender)
                }
                Sense::Everyone => true,
                Sense::Listeners(lists) => {
                    lists[sender].contains(&RadioId(listener)) || self.delivers(sender, listener)
                }
            };
            self.renew(sender, listener, senses);
        }
        Ok(())
    }

    fn delivers(&self, from: usize, to: usize) -> bool {
        self.loss.loss(RadioId(from), RadioId(to)) < 1.0
    }

    fn renew(&mut self, sender: usize, listener: usize, senses: bool) {
        let threshold = delivered_below(self.loss.loss(RadioId(sender), RadioId(listener)));
        let list = &mut self.neighbours[sender];
        let at = list.partition_point(|neighbour| neighbour.radio < listener);
        if list.get(at).is_some_and(|neighbour| neighbour.radio == listener) {
            list.remove(at);
        }
        if senses {
            list.insert(at, Neighbour { radio: listener, threshold });
        }
    }
}

fn delivered_below(loss: f64) -> u64 {
    ((1.0 - loss) * CERTAIN).round() as u64
}

/// The power of which `draw` says, by its logarithm, whether it is what is needed: of a link that delivers draws
/// below `threshold`.
fn faded(draw: u32, threshold: u64) -> Power {
    let needed = -libm::log(threshold as f64 / CERTAIN);
    let drawn = -libm::log((f64::from(draw) + 0.5) / CERTAIN);
    Power::from_units((NEEDED * (drawn / needed).min(STRONGEST)).max(1.0))
}

fn all_neighbours(loss: &LossMatrix, sense: &Sense) -> Vec<Vec<Neighbour>> {
    let radios = loss.radios();
    let mut listeners: Vec<Vec<usize>> = match sense {
        Sense::Audible => vec![Vec::new(); radios],
        Sense::Everyone => {
            (0..radios).map(|me| (0..radios).filter(|&other| other != me).collect()).collect()
        }
        Sense::Listeners(lists) => {
            lists.iter().map(|list| list.iter().map(|radio| radio.0).collect()).collect()
        }
    };
    for (from, to, _) in loss.links() {
        listeners[from.0].push(to.0);
        if matches!(sense, Sense::Audible) {
            listeners[to.0].push(from.0);
        }
    }
    listeners
        .into_iter()
        .enumerate()
        .map(|(sender, list)| neighbour_list(loss, sender, list))
        .collect()
}

fn neighbour_list(loss: &LossMatrix, sender: usize, mut listeners: Vec<usize>) -> Vec<Neighbour> {
    listeners.sort_unstable();
    listeners.dedup();
    let mut links = loss.row(sender).iter().peekable();
    let neighbour = |radio| {
        let link = links.next_if(|link| link.0 == radio);
        Neighbour { radio, threshold: link.map_or(0, |link| delivered_below(link.1)) }
    };
    listeners.into_iter().map(neighbour).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(channel: &Links, sender: usize) -> Vec<(usize, bool)> {
        channel.neighbours[sender].iter().map(|n| (n.radio, n.threshold > 0)).collect()
    }

    #[test]
    fn a_one_way_link_is_sensed_both_ways_by_default() {
        let mut loss = LossMatrix::new(3);
        loss.set(RadioId(0), RadioId(1), 0.4).unwrap();
        let links = |sense| LinksConfig {
            loss: loss.clone(),
            sense,
            bursts: None,
            power: LinkPower::Equal,
        };
        let mut channel = Links::new(links(Sense::Audible), 1);
        assert_eq!(ids(&channel, 0), [(1, true)]);
        assert_eq!(ids(&channel, 1), [(0, false)]);
        assert_eq!(ids(&channel, 2), []);
        channel.set_loss(RadioId(0), RadioId(1), 1.0).unwrap();
        channel.set_loss(RadioId(2), RadioId(0), 0.0).unwrap();
        assert_eq!(ids(&channel, 0), [(2, false)]);
        assert_eq!(ids(&channel, 1), []);
        assert_eq!(ids(&channel, 2), [(0, true)]);

        let explicit = Sense::Listeners(vec![vec![RadioId(2)], vec![], vec![]]);
        let channel = Links::new(links(explicit), 1);
        assert_eq!(ids(&channel, 0), [(1, true), (2, false)]);
        assert_eq!(ids(&channel, 1), []);
        let channel = Links::new(links(Sense::Everyone), 1);
        assert_eq!(ids(&channel, 2), [(0, false), (1, false)]);
    }
}
