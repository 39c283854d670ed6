//! Frames in flight: what each radio senses, and which receptions come through.
//!
//! Reception model: a radio that neither sends nor receives locks onto a frame whose beginning stands out
//! from noise and other energy. Of frames that begin within the time it takes to recognise one, the strongest
//! is taken. The frame comes through if it can be read all the way against what else arrives, and the radio
//! does not send itself. What arrives later does not move it, unless capture is on.
//! An instant belongs to what begins, not to what ends: a frame may follow another with no gap.

mod ear;
mod flight;
mod outcome;

use rand_chacha::ChaCha8Rng;

use crate::channel::{Arrival, Channel, Fate};
use crate::power::Power;
use crate::random::{Purpose, stream};
use crate::reception::Reception;
use crate::statistics::Statistics;
use ear::Ear;
use flight::Flight;
pub(crate) use flight::{Answer, Landed, Payload, Transmission, TxId};
use outcome::{Outcome, is_clean};

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
    /// Room for the arrivals of one frame that need more than a sum.
    heeded: Vec<u32>,
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
            heeded: Vec::new(),
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
        let id = self.ears[radio].lock.id;
        let frame = id.and_then(|id| self.flights[id.place()].transmission.as_ref());
        frame.is_some_and(|frame| matches!(frame.payload, Payload::Answer { to, attempt: its, .. } if to == radio && its == attempt))
    }

    /// Switches `radio` on or off. Off, it hears nothing, and what it was sending is void.
    pub(crate) fn set_up(&mut self, radio: usize, up: bool) {
        self.ears[radio].up = up;
        if !up {
            self.ears[radio].conclude();
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
        let control = transmission.payload.is_control();
        (flight.control, flight.aborted) = (control, false);
        flight.arrivals.clear();
        self.channel.launch(now_ns, sender, control, &mut flight.arrivals);
        flight.transmission = Some(transmission);
        let own = &mut self.ears[sender];
        own.sending += 1;
        own.conclude();
        self.stir(now_ns, sender, listener);
        let arrivals = std::mem::take(&mut self.flights[id].arrivals);
        let mut heeded = std::mem::take(&mut self.heeded);
        let (ears, reception) = (self.ears.as_mut_slice(), &self.reception);
        let cs_threshold = self.cs_threshold;
        let heeds = |arrival: &Arrival| {
            let ear = &mut ears[arrival.radio()];
            let heeds = ear.heeds_begin(now_ns, arrival, cs_threshold, reception);
            ear.power += if heeds { Power::ZERO } else { arrival.power };
            heeds
        };
        for &i in keep(&arrivals, &mut heeded, heeds) {
            let arrival = arrivals[i as usize];
            self.arrive(now_ns, TxId::new(id), arrival);
            self.stir(now_ns, arrival.radio(), listener);
        }
        self.heeded = heeded;
        self.flights[id].arrivals = arrivals;
        TxId::new(id)
    }

    #[inline(always)]
    fn arrive(&mut self, now_ns: u64, id: TxId, arrival: Arrival) {
        let ear = &mut self.ears[arrival.radio()];
        if let Some(own) = ear.lock.id {
            ear.settle(now_ns, self.flights[own.place()].control, &self.reception);
        }
        ear.hear(now_ns, id, arrival, &self.reception);
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
        let control = transmission.payload.is_control();
        let mut collided = false;
        let mut heeded = std::mem::take(&mut self.heeded);
        let (ears, radios) = (self.ears.as_mut_slice(), self.statistics.radios.as_mut_slice());
        let cs_threshold = self.cs_threshold;
        let heeds = |arrival: &Arrival| {
            let ear = &mut ears[arrival.radio()];
            let heeds = ear.heeds_end(id, arrival, cs_threshold);
            ear.power -= if heeds { Power::ZERO } else { arrival.power };
            let lost = !heeds & ear.up & (arrival.fate != Fate::Sensed);
            radios[arrival.radio()].collisions += u64::from(lost & !control);
            collided |= lost;
            heeds
        };
        for &i in keep(&arrivals, &mut heeded, heeds) {
            let arrival = &arrivals[i as usize];
            let radio = arrival.radio();
            let outcome = self.leave(now_ns, id, *arrival, control);
            if let Some(read) = outcome.locked {
                listener.receive(radio, &transmission, read && !aborted);
            }
            self.rest(now_ns, radio, listener);
            if outcome.read && !aborted {
                heard.push(*arrival);
            }
            collided |= outcome.collided;
        }
        self.heeded = heeded;
        self.flights[id.place()].arrivals = arrivals;
        let counters = &mut self.statistics.radios[transmission.sender];
        counters.frames_collided += u64::from(collided && !control);
        Some(Landed { transmission, aborted })
    }

    /// A frame ends at a radio it had reached.
    #[inline(always)]
    fn leave(&mut self, now_ns: u64, id: TxId, arrival: Arrival, control: bool) -> Outcome {
        let radio = arrival.radio();
        let ear = &mut self.ears[radio];
        let mut locked = false;
        let mut clean = false;
        if let Some(own) = ear.lock.id {
            // It may be receiving another frame, whose conditions now change.
            locked = own == id;
            ear.settle(now_ns, self.flights[own.place()].control, &self.reception);
            if locked {
                clean = is_clean(ear.conclude(), &mut self.bit_error_draws[radio]);
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

/// The places, in `room`, of those `arrivals` that `heeds` says yes to; of the others it has seen to all there
/// is. They are told apart without a branch to guess.
fn keep<'a>(
    arrivals: &[Arrival],
    room: &'a mut Vec<u32>,
    mut heeds: impl FnMut(&Arrival) -> bool,
) -> &'a [u32] {
    room.resize(arrivals.len(), 0);
    let room = &mut room[..arrivals.len()];
    let mut count = 0;
    for (i, arrival) in arrivals.iter().enumerate() {
        room[count] = i as u32;
        count += usize::from(heeds(arrival));
    }
    &room[..count]
}
