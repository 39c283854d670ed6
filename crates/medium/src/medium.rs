//! The medium as its drivers see it.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::air::Air;
use crate::channel::{Channel, Field, Links};
use crate::config::{ChannelConfig, MacConfig};
use crate::mac::dcf::Dcf;
use crate::mac::slotted::Slotted;
use crate::mac::{Mac, Turn};
use crate::power::Power;
use crate::reception::Reception;
use crate::{Access, MAX_FRAME_BYTES, MediumConfig, MediumError, RadioId, Statistics, TxResult};

/// Times are held below this, so that adding durations cannot overflow: 292 years.
const LAST_NS: u64 = u64::MAX / 2;

/// What the medium has to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// `radio` may send now. To be answered, at this instant, by supply or decline.
    Grant {
        /// The radio.
        radio: RadioId,
        /// The instant at which its transmission begins, ns.
        at_ns: u64,
    },
    /// A frame arrived.
    Deliver {
        /// Where.
        to: RadioId,
        /// From whom.
        from: RadioId,
        /// Its bytes, shared by all who hear it.
        frame: Arc<[u8]>,
        /// The power it arrived with, where radios have positions.
        power: Option<Power>,
        /// When it ended, ns.
        at_ns: u64,
    },
    /// What became of a frame.
    Report {
        /// Its sender.
        radio: RadioId,
        /// The outcome.
        result: TxResult,
        /// How many times it was sent.
        attempts: u32,
        /// Its time on the air in all attempts, acknowledgments not counted, ns.
        airtime_ns: u64,
        /// Who read it, where the MAC learns that: in slotted access.
        heard_by: Option<Vec<RadioId>>,
        /// When this was known, ns.
        at_ns: u64,
    },
}

/// The ether: one channel, its radios and their MAC.
///
/// Times passed in should not run backwards, nor past what [`poll_timeout`](Self::poll_timeout) announces;
/// a call that does so is taken as made at the nearest instant it could have been.
pub struct Medium {
    now_ns: u64,
    air: Air,
    mac: Box<dyn Mac + Send>,
    outputs: VecDeque<Output>,
}

/// Settings, state.
impl Medium {
    /// A medium at instant 0 with all radios up and silent.
    ///
    /// # Errors
    /// Any [`MediumError`] about a setting.
    pub fn new(config: MediumConfig) -> Result<Self, MediumError> {
        config.validate()?;
        let is_slotted = matches!(config.mac, MacConfig::Slotted { .. });
        let mac: Box<dyn Mac + Send> = match config.mac {
            MacConfig::Dcf { rts_threshold_bytes } => {
                Box::new(Dcf::new(&config, rts_threshold_bytes))
            }
            MacConfig::Slotted { slot_ns, conflict, order } => {
                Box::new(Slotted::new(&config, slot_ns, conflict, order))
            }
        };
        let reception = Reception::new(&config.reception, config.phy, config.bit_rate_bps);
        let (channel, cs_threshold) = match config.channel {
            ChannelConfig::Links(links) => {
                let links = if is_slotted { links.without_sensing() } else { links };
                (Channel::Links(Links::new(links, config.seed)), Power::UNIT)
            }
            ChannelConfig::Radio(radio) => {
                let cs_threshold = Power::from_dbm(radio.cs_threshold_dbm);
                (Channel::Field(Field::new(&radio, config.seed)), cs_threshold)
            }
        };
        let air = Air::new(channel, reception, cs_threshold, config.seed);
        Ok(Self { now_ns: 0, air, mac, outputs: VecDeque::new() })
    }

    /// The number of radios.
    pub fn radios(&self) -> usize {
        self.air.statistics.radios.len()
    }

    /// The instant of the latest event or call, ns.
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Counters since the start.
    pub fn statistics(&self) -> &Statistics {
        &self.air.statistics
    }

    /// Whether `radio` is switched on; false for one that does not exist.
    pub fn is_up(&self, radio: RadioId) -> bool {
        radio.0 < self.radios() && self.air.is_up(radio.0)
    }

    /// Changes the loss of a link, at once but for frames already in the air. 1 removes it.
    ///
    /// # Errors
    /// [`MediumError::UnknownRadio`], [`MediumError::SelfLink`], [`MediumError::BadLoss`], and
    /// [`MediumError::NoLossMatrix`] where radios have positions.
    pub fn set_loss(&mut self, from: RadioId, to: RadioId, loss: f64) -> Result<(), MediumError> {
        self.air.channel_mut().set_loss(from, to, loss)?;
        self.mac.links_changed();
        Ok(())
    }

    /// Switches a radio off or on. Off, it hears nothing; its request, grant and frame vanish without a
    /// report, and the energy of a frame in the air goes on to its end.
    ///
    /// # Errors
    /// [`MediumError::UnknownRadio`].
    pub fn set_up(&mut self, radio: RadioId, up: bool) -> Result<(), MediumError> {
        let index = self.known(radio)?;
        if self.air.is_up(index) != up {
            self.air.set_up(index, up);
            self.mac.reset(index);
        }
        Ok(())
    }
}

/// Calls of the radios' hosts.
impl Medium {
    /// `radio` wants to send one frame: a [`Output::Grant`] will follow, unless it is withdrawn or the radio
    /// switched off. Asking again before the grant changes nothing; asking after it asks for the next frame.
    ///
    /// # Errors
    /// [`MediumError::UnknownRadio`].
    pub fn request(&mut self, now_ns: u64, radio: RadioId) -> Result<(), MediumError> {
        let index = self.known(radio)?;
        self.advance(now_ns);
        let (mac, mut turn) = self.turn();
        mac.request(&mut turn, index);
        Ok(())
    }

    /// How much `radio` has to gain by sending, against others: who is asked first in slots ordered by weight. 0 until
    /// it says so.
    ///
    /// # Errors
    /// [`MediumError::UnknownRadio`].
    pub fn weigh(&mut self, radio: RadioId, weight: u32) -> Result<(), MediumError> {
        let index = self.known(radio)?;
        self.mac.weigh(index, weight);
        Ok(())
    }

    /// `radio` no longer wants to send. A grant already given must be answered even so.
    ///
    /// # Errors
    /// [`MediumError::UnknownRadio`].
    pub fn withdraw(&mut self, now_ns: u64, radio: RadioId) -> Result<(), MediumError> {
        let index = self.known(radio)?;
        self.advance(now_ns);
        self.mac.withdraw(index);
        Ok(())
    }

    /// Answers a grant with the frame to send, 0 to [`MAX_FRAME_BYTES`] bytes. It is on the air from the
    /// instant of the grant.
    ///
    /// # Errors
    /// [`MediumError::UnknownRadio`] and [`MediumError::NoGrant`] change nothing. With
    /// [`MediumError::FrameTooLong`], or a unicast destination that is unknown or the sender itself, the
    /// grant counts as declined.
    pub fn supply(
        &mut self,
        now_ns: u64,
        radio: RadioId,
        access: Access,
        frame: Arc<[u8]>,
    ) -> Result<(), MediumError> {
        let index = self.known(radio)?;
        self.advance(now_ns);
        let checked = self.check_frame(radio, access, &frame);
        let (mac, mut turn) = self.turn();
        match checked {
            Ok(()) => mac.supply(&mut turn, index, access, frame),
            Err(error) => mac.decline(&mut turn, index).and(Err(error)),
        }
    }

    /// Answers a grant with nothing. The radio backs off as if it had sent.
    ///
    /// # Errors
    /// [`MediumError::UnknownRadio`], [`MediumError::NoGrant`].
    pub fn decline(&mut self, now_ns: u64, radio: RadioId) -> Result<(), MediumError> {
        let index = self.known(radio)?;
        self.advance(now_ns);
        let (mac, mut turn) = self.turn();
        mac.decline(&mut turn, index)
    }
}

/// Time and outputs.
impl Medium {
    /// When [`handle_timeout`](Self::handle_timeout) is next due, ns. None while nothing is under way, and
    /// while grants wait for an answer and nothing else is due at their instant.
    pub fn poll_timeout(&self) -> Option<u64> {
        self.mac.next_ns().filter(|&at_ns| !self.mac.is_waiting() || at_ns <= self.now_ns)
    }

    /// Lets everything happen that is due up to `now_ns`, but stops at the first instant with a grant.
    pub fn handle_timeout(&mut self, now_ns: u64) {
        let until_ns = now_ns.clamp(self.now_ns, LAST_NS.max(self.now_ns));
        while let Some(at_ns) = self.poll_timeout().filter(|&at_ns| at_ns <= until_ns) {
            self.now_ns = self.now_ns.max(at_ns);
            let (mac, mut turn) = self.turn();
            mac.step(&mut turn);
        }
        self.advance(until_ns);
    }

    /// The next output, in order of time.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    fn turn(&mut self) -> (&mut dyn Mac, Turn<'_>) {
        let turn = Turn { now_ns: self.now_ns, air: &mut self.air, outputs: &mut self.outputs };
        (self.mac.as_mut(), turn)
    }

    /// Moves time forward to `now_ns`, but not past what is due or waits for an answer.
    fn advance(&mut self, now_ns: u64) {
        if !self.mac.is_waiting() {
            let due_ns = self.mac.next_ns().unwrap_or(LAST_NS).min(LAST_NS);
            self.now_ns = self.now_ns.max(now_ns.min(due_ns));
        }
    }

    fn known(&self, radio: RadioId) -> Result<usize, MediumError> {
        let radios = self.radios();
        if radio.0 < radios {
            Ok(radio.0)
        } else {
            Err(MediumError::UnknownRadio { radio, radios })
        }
    }

    fn check_frame(&self, radio: RadioId, access: Access, frame: &[u8]) -> Result<(), MediumError> {
        if frame.len() > MAX_FRAME_BYTES {
            return Err(MediumError::FrameTooLong { bytes: frame.len() });
        }
        match access {
            Access::Unicast(to) if to == radio => Err(MediumError::SelfLink { radio }),
            Access::Unicast(to) => self.known(to).map(drop),
            Access::Broadcast => Ok(()),
        }
    }
}
