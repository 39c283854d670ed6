//! Frames in flight: what each radio senses, and which receptions come through.
//!
//! Reception model: a radio that neither sends nor receives locks onto a frame whose beginning stands out
//! from noise and other energy. Of frames that begin within the time it takes to recognise one, the strongest
//! is taken. The frame comes through if it can be read all the way against what else arrives, and the radio
//! does not send itself. What arrives later does not move it, unless capture is on.
//! An instant belongs to what begins, not to what ends: a frame may follow another with no gap.

mod ear;

use std::num::NonZeroU32;
use std::sync::Arc;

use rand_chacha::ChaCha8Rng;

use crate::Access;
use crate::channel::{Arrival, Channel, Fate};
use crate::power::Power;
use crate::random::{Purpose, stream, unit};
use crate::reception::Reception;
use crate::statistics::{RadioStatistics, Statistics};
use ear::Ear;

/// Fewer expected errors than this are none.
const NONE: f64 = 1e-9;

/// With more than this no frame is read: exp(-40) is below 10^-17.
const MANY: f64 = 40.0;

/// A frame in flight, by its place in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TxId(NonZeroU32);

impl TxId {
    fn new(place: usize) -> Self {
        Self(NonZeroU32::MIN.saturating_add(place as u32))
    }

    fn place(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// What a station owes the sender of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Answer {
    /// Clear to send.
    Cts,
    /// Acknowledgment.
    Ack,
}

/// What a transmission carries. `attempt` names an attempt to send a frame of ours among all.
#[derive(Clone, Debug)]
pub(crate) enum Payload {
    /// One of our frames.
    Data { access: Access, frame: Arc<[u8]>, attempt: u64 },
    /// Request to send.
    Rts { to: usize, attempt: u64 },
    /// The answer to either.
    Answer { kind: Answer, to: usize, attempt: u64 },
}

impl Payload {
    /// The one radio it is for.
    pub(crate) fn addressee(&self) -> Option<usize> {
        match *self {
            Self::Data { access: Access::Broadcast, .. } => None,
            Self::Data { access: Access::Unicast(to), .. } => Some(to.0),
            Self::Rts { to, .. } | Self::Answer { to, .. } => Some(to),
        }
    }

    fn is_control(&self) -> bool {
        !matches!(self, Self::Data { .. })
    }
}

/// A transmission from its first to its last bit.
#[derive(Clone, Debug)]
pub(crate) struct Transmission {
    /// Who sends.
    pub(crate) sender: usize,
    /// What.
    pub(crate) payload: Payload,
    /// How long it lasts, ns.
    pub(crate) airtime_ns: u64,
    /// For how long after its end it claims the medium (its Duration field), ns.
    pub(crate) claim_ns: u64,
}

/// A place for a transmission; its list of arrivals is used again.
#[derive(Default)]
struct Flight {
    transmission: Option<Transmission>,
    began_ns: u64,
    /// The sender died in the middle: energy still, but no frame.
    aborted: bool,
    arrivals: Vec<Arrival>,
}

/// A transmission that has just ended.
pub(crate) struct Landed {
    pub(crate) transmission: Transmission,
    /// Whether the sender died in the middle.
    pub(crate) aborted: bool,
}

/// Who must know what a radio senses.
pub(crate) trait Listener {
    /// `radio`'s channel turns from idle to busy.
    fn turn_busy(&mut self, radio: usize);
    /// `radio` has received a frame it locked onto: read, or not.
    fn receive(&mut self, radio: usize, transmission: &Transmission, read: bool);
    /// `radio`'s channel turns idle.
    fn turn_idle(&mut self, radio: usize);
}

/// All frames in flight over one channel.
pub(crate) struct Air {
    channel: Channel,
    reception: Reception,
    /// The channel is busy from this power on.
    cs_threshold: Power,
    ears: Vec<Ear>,
    bit_error_draws: Vec<ChaCha8Rng>,
    flights: Vec<Flight>,
    free: Vec<usize>,
    busy_since_ns: u64,
    /// Counters; the MAC adds its own.
    pub(crate) statistics: Statistics,
}

impl Air {
    /// A silent air over `channel`, all radios up.
    pub(crate) fn new(
        channel: Channel,
        reception: Reception,
        cs_threshold: Power,
        seed: u64,
    ) -> Self {
        let radios = channel.radios();
        Self {
            channel,
            reception,
            cs_threshold,
            ears: (0..radios).map(|_| Ear::new()).collect(),
            bit_error_draws: (0..radios)
                .map(|radio| stream(seed, Purpose::BitErrors, radio))
                .collect(),
            flights: Vec::new(),
            free: Vec::new(),
            busy_since_ns: 0,
            statistics: Statistics { radios: vec![Default::default(); radios], busy_ns: 0 },
        }
    }

    /// The channel.
    pub(crate) fn channel(&self) -> &Channel {
        &self.channel
    }

    /// The channel, to change its links.
    pub(crate) fn channel_mut(&mut self) -> &mut Channel {
        &mut self.channel
    }

    /// Whether `radio` is switched on.
    pub(crate) fn is_up(&self, radio: usize) -> bool {
        self.ears[radio].up
    }

    /// Whether `radio` is sending now.
    pub(crate) fn is_sending(&self, radio: usize) -> bool {
        self.ears[radio].sending > 0
    }

    /// Whether `radio` is receiving an answer to its `attempt`.
    pub(crate) fn is_receiving_answer(&self, radio: usize, attempt: u64) -> bool {
        let lock = self.ears[radio].lock.as_ref();
        let frame = lock.and_then(|lock| self.flights[lock.id.place()].transmission.as_ref());
        frame.is_some_and(|frame| matches!(frame.payload, Payload::Answer { to, attempt: its, .. } if to == radio && its == attempt))
    }

    /// Switches `radio` on or off. Off, it hears nothing, and what it was sending is void.
    pub(crate) fn set_up(&mut self, radio: usize, up: bool) {
        self.ears[radio].up = up;
        if !up {
            self.ears[radio].lock = None;
            for flight in &mut self.flights {
                flight.aborted |= flight.transmission.as_ref().is_some_and(|t| t.sender == radio);
            }
        }
    }

    /// Begins a transmission.
    pub(crate) fn begin(
        &mut self,
        now_ns: u64,
        transmission: Transmission,
        listener: &mut impl Listener,
    ) -> TxId {
        let sender = transmission.sender;
        self.statistics.radios[sender].airtime_ns += transmission.airtime_ns;
        if self.free.len() == self.flights.len() {
            self.busy_since_ns = now_ns;
        }
        let id = self.free.pop().unwrap_or_else(|| {
            self.flights.push(Flight::default());
            self.flights.len() - 1
        });
        let flight = &mut self.flights[id];
        (flight.began_ns, flight.aborted) = (now_ns, false);
        let control = transmission.payload.is_control();
        flight.arrivals.clear();
        self.channel.launch(now_ns, sender, control, &mut flight.arrivals);
        flight.transmission = Some(transmission);
        let own = &mut self.ears[sender];
        own.sending += 1;
        own.lock = None;
        self.stir(now_ns, sender, listener);
        let arrivals = std::mem::take(&mut self.flights[id].arrivals);
        for arrival in &arrivals {
            self.arrive(now_ns, (TxId::new(id), control), *arrival);
            self.stir(now_ns, arrival.radio(), listener);
        }
        self.flights[id].arrivals = arrivals;
        TxId::new(id)
    }

    fn arrive(&mut self, now_ns: u64, id: (TxId, bool), arrival: Arrival) {
        let ear = &mut self.ears[arrival.radio()];
        let mut lock_began_ns = now_ns;
        if let Some(lock) = &ear.lock {
            let flight = &self.flights[lock.id.place()];
            lock_began_ns = flight.began_ns;
            ear.settle(now_ns, lock_began_ns, &self.reception);
        }
        ear.hear(now_ns, id, arrival, lock_began_ns, &self.reception);
    }

    /// Ends a transmission. `heard` receives the arrivals at those who read the frame.
    /// None if `id` is not in flight.
    pub(crate) fn land(
        &mut self,
        now_ns: u64,
        id: TxId,
        heard: &mut Vec<Arrival>,
        listener: &mut impl Listener,
    ) -> Option<Landed> {
        let flight = self.flights.get_mut(id.place())?;
        let transmission = flight.transmission.take()?;
        let aborted = flight.aborted;
        let arrivals = std::mem::take(&mut flight.arrivals);
        self.free.push(id.place());
        if self.free.len() == self.flights.len() {
            self.statistics.busy_ns += now_ns - self.busy_since_ns;
        }
        self.ears[transmission.sender].sending -= 1;
        self.rest(now_ns, transmission.sender, listener);
        let mut collided = false;
        for arrival in &arrivals {
            let radio = arrival.radio();
            let outcome = self.leave(now_ns, id, *arrival, transmission.payload.is_control());
            if let Some(read) = outcome.locked {
                listener.receive(radio, &transmission, read && !aborted);
            }
            self.rest(now_ns, radio, listener);
            if outcome.read && !aborted {
                heard.push(*arrival);
            }
            collided |= outcome.collided;
        }
        self.flights[id.place()].arrivals = arrivals;
        let data = !transmission.payload.is_control();
        self.statistics.radios[transmission.sender].frames_collided += u64::from(collided && data);
        Some(Landed { transmission, aborted })
    }

    /// A frame ends at a radio it had reached.
    fn leave(&mut self, now_ns: u64, id: TxId, arrival: Arrival, control: bool) -> Outcome {
        let radio = arrival.radio();
        let ear = &mut self.ears[radio];
        let mut locked = false;
        let mut clean = false;
        if let Some(lock) = &ear.lock {
            // It may be receiving another frame, whose conditions now change.
            locked = lock.id == id;
            ear.settle(now_ns, self.flights[lock.id.place()].began_ns, &self.reception);
            if locked {
                let errors = ear.conclude();
                clean = errors < NONE
                    || (errors < MANY
                        && unit(&mut self.bit_error_draws[radio]) < libm::exp(-errors));
            }
        }
        ear.power -= arrival.power;
        let outcome = Outcome::new(arrival.fate, locked, clean, ear.up);
        if !control {
            outcome.count(&mut self.statistics.radios[radio]);
        }
        outcome
    }

    fn stir(&mut self, now_ns: u64, radio: usize, listener: &mut impl Listener) {
        let ear = &mut self.ears[radio];
        if !ear.busy && ear.is_busy(self.cs_threshold) {
            ear.busy = true;
            ear.busy_since_ns = now_ns;
            listener.turn_busy(radio);
        }
    }

    fn rest(&mut self, now_ns: u64, radio: usize, listener: &mut impl Listener) {
        let ear = &mut self.ears[radio];
        if ear.busy && !ear.is_busy(self.cs_threshold) {
            ear.busy = false;
            self.statistics.radios[radio].busy_ns += now_ns - ear.busy_since_ns;
            listener.turn_idle(radio);
        }
    }
}

/// What became of a frame at one radio.
struct Outcome {
    /// Whether it was read, if the radio was receiving it to its end; a frame that its link lost was not
    /// recognised as broken, and is left out.
    locked: Option<bool>,
    read: bool,
    lost: bool,
    collided: bool,
}

impl Outcome {
    fn new(fate: Fate, locked: bool, clean: bool, up: bool) -> Self {
        Self {
            locked: (locked && fate != Fate::Lost).then_some(clean),
            read: fate == Fate::Whole && clean,
            lost: fate == Fate::Lost && clean,
            collided: fate != Fate::Sensed && !clean && up,
        }
    }

    fn count(&self, counters: &mut RadioStatistics) {
        counters.losses += u64::from(self.lost);
        counters.collisions += u64::from(self.collided);
    }
}
