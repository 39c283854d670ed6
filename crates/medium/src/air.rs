//! Frames in flight: what each radio senses, and which receptions come through.
//!
//! Reception model: a radio locks onto a frame that begins while it neither senses another nor sends. The
//! frame comes through if nothing else it senses begins before the end and it does not send itself: no
//! capture. An instant belongs to what begins, not to what ends: a frame may follow another with no gap.

use std::sync::Arc;

use crate::Access;
use crate::channel::{Channel, Neighbour};
use crate::statistics::Statistics;

/// A frame in flight, by its place in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TxId(usize);

/// What a transmission carries.
#[derive(Clone, Debug)]
pub(crate) enum Payload {
    /// One of our frames.
    Data {
        /// To whom.
        access: Access,
        /// The bytes.
        frame: Arc<[u8]>,
        /// Names this transmission among all.
        attempt: u64,
    },
    /// The acknowledgment of `attempt` to the radio that made it.
    Ack {
        /// The data frame's sender.
        to: usize,
        /// Which transmission of it.
        attempt: u64,
    },
}

/// A transmission from its first to its last bit.
#[derive(Debug)]
pub(crate) struct Transmission {
    /// Who sends.
    pub(crate) sender: usize,
    /// What.
    pub(crate) payload: Payload,
    /// The sender died in the middle: energy still, but no frame.
    aborted: bool,
    neighbours: Arc<[Neighbour]>,
}

/// A transmission that has just ended.
pub(crate) struct Landed {
    /// Who sent.
    pub(crate) sender: usize,
    /// What.
    pub(crate) payload: Payload,
    /// Whether the sender died in the middle.
    pub(crate) aborted: bool,
}

/// A radio's view of the air.
#[derive(Clone, Debug)]
struct Ear {
    up: bool,
    /// Transmissions of others that it senses now.
    sensed: u32,
    /// Transmissions of its own.
    sending: u32,
    /// The one it is receiving so far without disturbance.
    locked: Option<TxId>,
    busy_since_ns: u64,
}

impl Ear {
    fn busy(&self) -> bool {
        self.sensed + self.sending > 0
    }
}

/// All frames in flight over one channel.
pub(crate) struct Air {
    channel: Channel,
    ears: Vec<Ear>,
    flying: Vec<Option<Transmission>>,
    free: Vec<usize>,
    busy_since_ns: u64,
    /// Counters; the MAC adds its own.
    pub(crate) statistics: Statistics,
}

impl Air {
    /// A silent air over `channel`, all radios up.
    pub(crate) fn new(channel: Channel) -> Self {
        let radios = channel.radios();
        let ear = Ear { up: true, sensed: 0, sending: 0, locked: None, busy_since_ns: 0 };
        Self {
            channel,
            ears: vec![ear; radios],
            flying: Vec::new(),
            free: Vec::new(),
            busy_since_ns: 0,
            statistics: Statistics { radios: vec![Default::default(); radios], busy_ns: 0 },
        }
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

    /// Whether `radio` is receiving, so far undisturbed, the acknowledgment of its `attempt`.
    pub(crate) fn is_receiving_ack(&self, radio: usize, attempt: u64) -> bool {
        let frame = self.ears[radio].locked.and_then(|id| self.flying[id.0].as_ref());
        frame.is_some_and(|frame| matches!(frame.payload, Payload::Ack { to, attempt: its } if to == radio && its == attempt))
    }

    /// Switches `radio` on or off. Off, it hears nothing, and what it was sending is void.
    pub(crate) fn set_up(&mut self, radio: usize, up: bool) {
        self.ears[radio].up = up;
        if !up {
            self.ears[radio].locked = None;
            let own = self.flying.iter_mut().flatten().filter(|frame| frame.sender == radio);
            own.for_each(|frame| frame.aborted = true);
        }
    }

    /// Begins a transmission of `airtime_ns`; `now_busy` is called for every radio, the sender first, whose
    /// channel turns from idle to busy.
    pub(crate) fn begin(
        &mut self,
        now_ns: u64,
        sender: usize,
        payload: Payload,
        airtime_ns: u64,
        mut now_busy: impl FnMut(usize),
    ) -> TxId {
        self.statistics.radios[sender].airtime_ns += airtime_ns;
        if self.free.len() == self.flying.len() {
            self.busy_since_ns = now_ns;
        }
        let neighbours = self.channel.neighbours(sender);
        let id = self.place(Transmission {
            sender,
            payload,
            aborted: false,
            neighbours: Arc::clone(&neighbours),
        });
        let own = &mut self.ears[sender];
        if !own.busy() {
            own.busy_since_ns = now_ns;
            now_busy(sender);
        }
        own.sending += 1;
        own.locked = None;
        for neighbour in neighbours.iter() {
            let ear = &mut self.ears[neighbour.radio];
            if ear.busy() {
                ear.locked = None;
            } else {
                ear.busy_since_ns = now_ns;
                ear.locked = ear.up.then_some(id);
                now_busy(neighbour.radio);
            }
            ear.sensed += 1;
        }
        id
    }

    fn place(&mut self, transmission: Transmission) -> TxId {
        if let Some(at) = self.free.pop() {
            self.flying[at] = Some(transmission);
            return TxId(at);
        }
        self.flying.push(Some(transmission));
        TxId(self.flying.len() - 1)
    }

    /// Ends a transmission. `heard` receives the indices of those whom the frame reached whole; `now_idle`
    /// is called for every radio, the sender first, whose channel turns idle.
    /// None if `id` is not in flight.
    pub(crate) fn land(
        &mut self,
        now_ns: u64,
        id: TxId,
        heard: &mut Vec<usize>,
        mut now_idle: impl FnMut(usize),
    ) -> Option<Landed> {
        let Transmission { sender, payload, aborted, neighbours } =
            self.flying.get_mut(id.0)?.take()?;
        self.free.push(id.0);
        if self.free.len() == self.flying.len() {
            self.statistics.busy_ns += now_ns - self.busy_since_ns;
        }
        self.ears[sender].sending -= 1;
        self.rest(now_ns, sender, &mut now_idle);
        let is_ack = matches!(payload, Payload::Ack { .. });
        let mut collided = false;
        for &neighbour in neighbours.iter() {
            self.ears[neighbour.radio].sensed -= 1;
            let locked =
                self.ears[neighbour.radio].locked.take_if(|locked| *locked == id).is_some();
            self.rest(now_ns, neighbour.radio, &mut now_idle);
            if neighbour.hears() {
                let survives = self.channel.survives(sender, neighbour, is_ack);
                let missed = !locked && self.ears[neighbour.radio].up;
                collided |= missed;
                if !is_ack {
                    self.count_reception(neighbour.radio, locked, survives);
                }
                if locked && survives && !aborted {
                    heard.push(neighbour.radio);
                }
            }
        }
        self.statistics.radios[sender].frames_collided += u64::from(collided && !is_ack);
        Some(Landed { sender, payload, aborted })
    }

    fn rest(&mut self, now_ns: u64, radio: usize, now_idle: &mut impl FnMut(usize)) {
        let ear = &self.ears[radio];
        if !ear.busy() {
            self.statistics.radios[radio].busy_ns += now_ns - ear.busy_since_ns;
            now_idle(radio);
        }
    }

    fn count_reception(&mut self, radio: usize, locked: bool, survives: bool) {
        let counters = &mut self.statistics.radios[radio];
        if !locked {
            counters.collisions += u64::from(self.ears[radio].up);
        } else if !survives {
            counters.losses += 1;
        }
    }
}
