//! Frames in flight: what each radio senses, and which receptions succeed.
//!
//! # Reception model
//! - A radio that neither transmits nor receives locks onto a frame whose preamble it detects over
//!   noise and the other signals.
//! - During the first [`PREAMBLE_DETECTION_NS`](crate::reception::PREAMBLE_DETECTION_NS) of that
//!   frame, a stronger frame that begins replaces it. Later a frame replaces it only with capture.
//! - The frame is decoded if the SINR suffices from its first to its last bit and the radio does
//!   not transmit meanwhile.
//! - A transmission occupies the half-open interval from its start to its end, so a frame may
//!   follow another without a gap.
//!
//! # Cost
//! A frame arrives at many radios, and at most of them it only adds to the sum of the power. One
//! loop without branches adds these powers and collects the few radios where more may happen. Only
//! these are then handled one by one.

mod outcome;
mod receiver;
mod transmission;

use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;

use crate::channel::{Arrival, Channel, LinkOutcome};
use crate::power::Power;
use crate::random::{Purpose, stream};
use crate::reception::SinrModel;
use crate::statistics::{LinkStatistics, Statistics};
use outcome::{Outcome, draw_error_free};
use receiver::Receiver;
use transmission::InFlight;
pub(crate) use transmission::{Ended, Payload, Response, Transmission, TxId};

/// Indications from the physical layer to the MAC (IEEE 802.11-2016, 8.3.5).
pub(crate) trait PhyIndications {
    /// The channel at `radio` turns from idle to busy (PHY-CCA).
    fn cca_busy(&mut self, radio: usize);
    /// A frame that `radio` locked onto ends there, decoded or not (PHY-RXEND).
    fn rx_end(&mut self, radio: usize, transmission: &Transmission, decoded: bool);
    /// The channel at `radio` turns from busy to idle (PHY-CCA).
    fn cca_idle(&mut self, radio: usize);
}

/// All frames in flight over one channel, and the receivers of all radios.
pub(crate) struct Air {
    channel: Channel,
    model: SinrModel,
    /// The channel is busy at this received power or more.
    cs_threshold: Power,
    receivers: Vec<Receiver>,
    bit_error_draws: Vec<ChaCha8Rng>,
    in_flight: Vec<InFlight>,
    /// Unused places of `in_flight`.
    free: Vec<usize>,
    /// Scratch space for the arrivals of one frame that change more than the sum of the power.
    affected: Vec<u32>,
    busy_since_ns: u64,
    /// Counters of the air. The MAC adds its own.
    pub(crate) statistics: Statistics,
    /// Counters of each link (sender, receiver), if they are wanted.
    pub(crate) links: Option<BTreeMap<(usize, usize), LinkStatistics>>,
}

impl Air {
    /// Creates a silent air over `channel` with all radios up.
    pub(crate) fn new(channel: Channel, model: SinrModel, cs_threshold: Power, seed: u64) -> Self {
        let radios = channel.radios();
        Self {
            channel,
            model,
            cs_threshold,
            receivers: (0..radios).map(|_| Receiver::new()).collect(),
            bit_error_draws: (0..radios)
                .map(|radio| stream(seed, Purpose::BitErrors, radio))
                .collect(),
            in_flight: Vec::new(),
            free: Vec::new(),
            affected: Vec::new(),
            busy_since_ns: 0,
            statistics: Statistics { radios: vec![Default::default(); radios], busy_ns: 0 },
            links: None,
        }
    }

    /// Returns the channel.
    pub(crate) fn channel(&self) -> &Channel {
        &self.channel
    }

    /// Returns the channel, to change its links.
    pub(crate) fn channel_mut(&mut self) -> &mut Channel {
        &mut self.channel
    }

    /// Returns whether `radio` is switched on.
    pub(crate) fn is_up(&self, radio: usize) -> bool {
        self.receivers[radio].up
    }

    /// Returns whether `radio` is transmitting.
    pub(crate) fn is_transmitting(&self, radio: usize) -> bool {
        self.receivers[radio].transmissions > 0
    }

    /// Returns whether `radio` is receiving the CTS or ACK that answers its `attempt`.
    pub(crate) fn is_receiving_response(&self, radio: usize, attempt: u64) -> bool {
        let id = self.receivers[radio].reception.frame;
        let frame = id.and_then(|id| self.in_flight[id.place()].transmission.as_ref());
        frame.is_some_and(|frame| match frame.payload {
            Payload::Response { to, attempt: answered, .. } => to == radio && answered == attempt,
            Payload::Data { .. } | Payload::Rts { .. } => false,
        })
    }

    /// Switches `radio` on or off. A radio that is off receives nothing. The frame that it was
    /// transmitting becomes undecodable, but its energy lasts to its end.
    pub(crate) fn set_up(&mut self, radio: usize, up: bool) {
        self.receivers[radio].up = up;
        if !up {
            self.receivers[radio].end_reception();
            for flight in &mut self.in_flight {
                flight.aborted |= flight.transmission.as_ref().is_some_and(|t| t.sender == radio);
            }
        }
    }

    /// Begins a transmission and returns its id, for [`Air::end_transmission`].
    pub(crate) fn begin_transmission(
        &mut self,
        now_ns: u64,
        transmission: Transmission,
        mac: &mut impl PhyIndications,
    ) -> TxId {
        // Statistics. The medium is busy from the first frame in flight to the last.
        let sender = transmission.sender;
        self.statistics.radios[sender].airtime_ns += transmission.airtime_ns;
        if self.free.len() == self.in_flight.len() {
            self.busy_since_ns = now_ns;
        }

        // Take a free place in the table, and let the channel decide which radios the frame
        // reaches.
        let place = self.free.pop().unwrap_or_else(|| {
            self.in_flight.push(InFlight::default());
            self.in_flight.len() - 1
        });
        let id = TxId::new(place);

        let flight = &mut self.in_flight[place];
        let control = transmission.payload.is_control();
        flight.control = control;
        flight.aborted = false;
        flight.arrivals.clear();

        let receiver = transmission.payload.receiver();
        self.channel.launch(now_ns, sender, receiver, control, &mut flight.arrivals);
        flight.transmission = Some(transmission);

        // Radios are half-duplex: the sender loses the frame that it was receiving.
        let own = &mut self.receivers[sender];
        own.transmissions += 1;
        own.end_reception();
        self.indicate_busy(now_ns, sender, mac);

        // At most radios the frame only adds its power.
        let arrivals = std::mem::take(&mut self.in_flight[place].arrivals);
        let mut affected = std::mem::take(&mut self.affected);
        let receivers = self.receivers.as_mut_slice();
        let model = &self.model;
        let cs_threshold = self.cs_threshold;
        let select = |arrival: &Arrival| {
            let receiver = &mut receivers[arrival.radio()];
            let affected = receiver.is_affected_by_begin(now_ns, arrival, cs_threshold, model);
            receiver.power += if affected { Power::ZERO } else { arrival.power };
            affected
        };

        // At the others a reception may begin or suffer, or the channel may turn busy.
        for &i in select_affected(&arrivals, &mut affected, select) {
            let arrival = arrivals[i as usize];
            let receiver = &mut self.receivers[arrival.radio()];
            if let Some(own) = receiver.reception.frame {
                let control = self.in_flight[own.place()].control;
                receiver.account_errors(now_ns, control, &self.model);
            }
            receiver.begin_arrival(now_ns, id, arrival, &self.model);
            self.indicate_busy(now_ns, arrival.radio(), mac);
        }

        self.affected = affected;
        self.in_flight[place].arrivals = arrivals;
        id
    }

    /// Ends a transmission. Appends the arrivals at all radios that decoded the frame to `decoded`.
    /// Returns `None` if `id` is not in flight.
    pub(crate) fn end_transmission(
        &mut self,
        now_ns: u64,
        id: TxId,
        decoded: &mut Vec<Arrival>,
        mac: &mut impl PhyIndications,
    ) -> Option<Ended> {
        // Remove the frame from the table. Its arrivals are those of its beginning, so exactly the
        // power that was added is taken away.
        let flight = self.in_flight.get_mut(id.place())?;
        let transmission = flight.transmission.take()?;
        let aborted = flight.aborted;
        let arrivals = std::mem::take(&mut flight.arrivals);
        self.free.push(id.place());
        if self.free.len() == self.in_flight.len() {
            self.statistics.busy_ns += now_ns - self.busy_since_ns;
        }

        // The sender no longer transmits, and may find its channel idle.
        self.receivers[transmission.sender].transmissions -= 1;
        self.indicate_idle(now_ns, transmission.sender, mac);

        // At most radios the frame only takes its power away. A radio in reach that was not
        // receiving the frame has lost it.
        let control = transmission.payload.is_control();
        if !control && !aborted {
            self.count_missed(id, transmission.sender, &arrivals);
        }

        let mut collided = false;
        let mut affected = std::mem::take(&mut self.affected);
        let receivers = self.receivers.as_mut_slice();
        let counters = self.statistics.radios.as_mut_slice();
        let cs_threshold = self.cs_threshold;
        let select = |arrival: &Arrival| {
            let receiver = &mut receivers[arrival.radio()];
            let affected = receiver.is_affected_by_end(id, arrival, cs_threshold);
            receiver.power -= if affected { Power::ZERO } else { arrival.power };
            let missed = !affected & receiver.up & (arrival.link != LinkOutcome::EnergyOnly);
            counters[arrival.radio()].collisions += u64::from(missed & !control);
            collided |= missed;
            affected
        };

        // At the others a reception ends or gets better conditions, or the channel turns idle.
        for &i in select_affected(&arrivals, &mut affected, select) {
            let arrival = arrivals[i as usize];
            let radio = arrival.radio();
            let outcome = self.end_arrival(now_ns, id, arrival);

            // The MAC hears of the end of the frame before it hears that the channel is idle, since
            // the frame decides between DIFS and EIFS.
            if !control {
                outcome.count(&mut self.statistics.radios[radio]);
                if let Some(links) = self.links.as_mut().filter(|_| !aborted) {
                    let link = links.entry((transmission.sender, radio)).or_default();
                    outcome.count_at_link(link);
                }
            }
            if let Some(is_decoded) = outcome.rx_end() {
                mac.rx_end(radio, &transmission, is_decoded && !aborted);
            }
            self.indicate_idle(now_ns, radio, mac);
            if matches!(outcome, Outcome::Decoded) && !aborted {
                decoded.push(arrival);
            }
            collided |= matches!(outcome, Outcome::Corrupted { .. });
        }

        self.affected = affected;
        self.channel.note_end(now_ns, transmission.sender, &arrivals);
        self.in_flight[id.place()].arrivals = arrivals;

        // A sender counts as collided if the frame was lost anywhere, not at its destination alone.
        let counters = &mut self.statistics.radios[transmission.sender];
        counters.frames_collided += u64::from(collided && !control);
        Some(Ended { transmission, aborted })
    }

    /// Counts the frame `id`, which ends, at the links to all radios in reach that were not
    /// receiving it.
    fn count_missed(&mut self, id: TxId, sender: usize, arrivals: &[Arrival]) {
        let Some(links) = &mut self.links else { return };
        for arrival in arrivals.iter().filter(|a| a.link != LinkOutcome::EnergyOnly) {
            let receiver = &self.receivers[arrival.radio()];
            if receiver.up && !receiver.is_affected_by_end(id, arrival, self.cs_threshold) {
                links.entry((sender, arrival.radio())).or_default().corrupted += 1;
            }
        }
    }

    /// Ends the frame `id` at one radio that it reached.
    #[inline(always)]
    fn end_arrival(&mut self, now_ns: u64, id: TxId, arrival: Arrival) -> Outcome {
        let radio = arrival.radio();
        let receiver = &mut self.receivers[radio];
        let mut locked = false;
        let mut error_free = false;
        if let Some(own) = receiver.reception.frame {
            // The radio may be receiving another frame, which now has less interference.
            locked = own == id;
            let control = self.in_flight[own.place()].control;
            receiver.account_errors(now_ns, control, &self.model);
            if locked {
                let errors = receiver.end_reception();
                error_free = draw_error_free(errors, &mut self.bit_error_draws[radio]);
            }
        }

        receiver.power -= arrival.power;
        Outcome::new(arrival.link, locked, error_free, receiver.up)
    }

    /// Tells the MAC of `radio` if its channel has turned busy.
    fn indicate_busy(&mut self, now_ns: u64, radio: usize, mac: &mut impl PhyIndications) {
        let receiver = &mut self.receivers[radio];
        if !receiver.cca_busy && receiver.senses_busy(self.cs_threshold) {
            receiver.cca_busy = true;
            receiver.cca_busy_since_ns = now_ns;
            mac.cca_busy(radio);
        }
    }

    /// Tells the MAC of `radio` if its channel has turned idle.
    fn indicate_idle(&mut self, now_ns: u64, radio: usize, mac: &mut impl PhyIndications) {
        let receiver = &mut self.receivers[radio];
        if receiver.cca_busy && !receiver.senses_busy(self.cs_threshold) {
            receiver.cca_busy = false;
            self.statistics.radios[radio].busy_ns += now_ns - receiver.cca_busy_since_ns;
            mac.cca_idle(radio);
        }
    }
}

/// Returns the indices of those `arrivals` for which `is_affected` returns true, in `scratch`.
///
/// Writes every index and advances only past the selected ones, so that the loop has no branch to
/// mispredict.
fn select_affected<'a>(
    arrivals: &[Arrival],
    scratch: &'a mut Vec<u32>,
    mut is_affected: impl FnMut(&Arrival) -> bool,
) -> &'a [u32] {
    scratch.resize(arrivals.len(), 0);
    let scratch = &mut scratch[..arrivals.len()];
    let mut count = 0;
    for (i, arrival) in arrivals.iter().enumerate() {
        scratch[count] = i as u32;
        count += usize::from(is_affected(arrival));
    }
    &scratch[..count]
}
