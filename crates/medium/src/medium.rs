//! Interface of the medium to its driver: checks arguments, keeps time, queues outputs.
//!
//! Calls and timeouts go to the MAC, which acts on the air and appends [`Output`]s. Time advances
//! in calls, but never past the next event, and not at all while a grant waits for its answer.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::air::Air;
use crate::channel::{Channel, LinkChannel, RadioChannel};
use crate::config::{BIT_RATES, ChannelConfig, MacConfig, MediumConfig};
use crate::error::MediumError;
use crate::mac::{Context, Dcf, Mac, Slotted};
use crate::power::Power;
use crate::reception::SinrModel;
use crate::statistics::{LinkStatistics, Statistics};
use crate::types::{Access, MAX_FRAME_BYTES, Output, RadioId};

/// The last instant of medium time, 292 years, so that sums of times and durations cannot overflow.
const LAST_NS: u64 = u64::MAX / 2;

/// One wireless channel, its radios and their MAC.
///
/// Times passed to calls should not run backwards, and not past the instant that
/// [`poll_timeout`](Self::poll_timeout) returns. A call with another time counts as made at the
/// nearest permitted instant.
pub struct Medium {
    now_ns: u64,
    air: Air,
    mac: Box<dyn Mac + Send>,
    outputs: VecDeque<Output>,
}

/// Settings and state.
/// Counters of a link of one direction.
#[derive(Clone, Copy, Debug)]
pub struct CountedLink {
    /// Radio that sends.
    pub from: RadioId,
    /// Radio that hears it.
    pub to: RadioId,
    /// Frames since the link is counted.
    pub counters: LinkStatistics,
}

impl Medium {
    /// Creates a medium at instant 0 with all radios up and silent.
    ///
    /// # Errors
    /// Any [`MediumError`] about a setting.
    pub fn new(config: MediumConfig) -> Result<Self, MediumError> {
        // MAC, reception and propagation are separate models, which meet in the air.
        config.validate()?;

        let is_slotted = matches!(config.mac, MacConfig::Slotted { .. });
        let mac: Box<dyn Mac + Send> = match config.mac {
            MacConfig::Dcf { rts_threshold_bytes, long_retry_limit } => {
                Box::new(Dcf::new(&config, rts_threshold_bytes, long_retry_limit))
            }
            MacConfig::Slotted { slot_ns, conflict, order } => {
                Box::new(Slotted::new(&config, slot_ns, conflict, order))
            }
        };

        let model = SinrModel::new(&config.reception, config.phy, config.bit_rate_bps);
        let (channel, cs_threshold) = match config.channel {
            ChannelConfig::Links(links) => {
                let links = if is_slotted { links.without_sensing() } else { links };
                (Channel::Links(LinkChannel::new(links, config.seed)), Power::UNIT)
            }
            ChannelConfig::Radio(radio) => {
                let cs_threshold = Power::from_dbm(radio.cs_threshold_dbm);
                (Channel::Radio(RadioChannel::new(&radio, config.seed)), cs_threshold)
            }
        };

        let air = Air::new(channel, model, cs_threshold, config.seed);
        Ok(Self { now_ns: 0, air, mac, outputs: VecDeque::new() })
    }

    /// Returns the number of radios.
    pub fn radios(&self) -> usize {
        self.air.statistics.radios.len()
    }

    /// Returns the instant of the latest event or call, ns.
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Returns the counters since the start.
    pub fn statistics(&self) -> &Statistics {
        &self.air.statistics
    }

    /// Counts what becomes of data frames at each link from now on.
    pub fn count_links(&mut self) {
        self.air.links.get_or_insert_default();
    }

    /// Returns the links that carried anything since [`count_links`](Self::count_links), in the
    /// order of their radios.
    pub fn link_statistics(&self) -> impl Iterator<Item = CountedLink> {
        let links = self.air.links.iter().flatten();
        links.map(|((from, to), counters)| CountedLink {
            from: RadioId(*from),
            to: RadioId(*to),
            counters: *counters,
        })
    }

    /// Returns whether `radio` is switched on. It is false for a radio that does not exist.
    pub fn is_up(&self, radio: RadioId) -> bool {
        radio.0 < self.radios() && self.air.is_up(radio.0)
    }

    /// Changes the loss of a link for all frames that begin from now on. A loss of 1 removes it.
    ///
    /// # Errors
    /// [`MediumError::UnknownRadio`], [`MediumError::SelfLink`], [`MediumError::BadLoss`], and
    /// [`MediumError::NoLossMatrix`] if radios have positions.
    pub fn set_loss(&mut self, from: RadioId, to: RadioId, loss: f64) -> Result<(), MediumError> {
        self.air.channel_mut().set_loss(from, to, loss)?;
        self.mac.links_changed();
        Ok(())
    }

    /// Moves radios to positions (x, y, z), m. Frames on the air arrive as they began. Each call
    /// computes again who reaches whom, however many radios it moves.
    ///
    /// # Errors
    /// [`MediumError::NoPositions`] if losses are given, [`MediumError::UnknownRadio`], and
    /// [`MediumError::BadPropagation`] if a position is out of range or the radios have shadowing.
    pub fn move_to(&mut self, moves: &[(RadioId, [f64; 3])]) -> Result<(), MediumError> {
        self.air.channel_mut().move_to(moves)?;
        self.mac.links_changed();
        Ok(())
    }

    /// Returns where a radio is: (x, y, z), m. `None` if losses are given, or it does not exist.
    pub fn position(&self, radio: RadioId) -> Option<[f64; 3]> {
        self.air.channel().position(radio)
    }

    /// Switches a radio on or off. Switching it off drops its request, its grant and its frame
    /// without a report. The energy of a frame on the air lasts to the end of the frame, but nobody
    /// can decode it.
    ///
    /// # Errors
    /// [`MediumError::UnknownRadio`].
    pub fn set_up(&mut self, radio: RadioId, up: bool) -> Result<(), MediumError> {
        let index = self.index_of(radio)?;
        if self.air.is_up(index) != up {
            self.air.set_up(index, up);
            self.mac.reset(index);
        }
        Ok(())
    }
}

/// Calls of the radios' hosts.
impl Medium {
    /// Requests the medium for one frame of `radio`. An [`Output::Grant`] follows, unless the
    /// request is withdrawn or the radio is switched off.
    ///
    /// A second request before the grant has no effect. A request after the grant is for the next
    /// frame.
    ///
    /// # Errors
    /// [`MediumError::UnknownRadio`].
    pub fn request(&mut self, now_ns: u64, radio: RadioId) -> Result<(), MediumError> {
        let index = self.index_of(radio)?;
        self.advance(now_ns);
        let (mac, mut context) = self.mac_and_context();
        mac.request(&mut context, index);
        Ok(())
    }

    /// Sets the weight of `radio` for slotted access in the order of weights. It is 0 at first.
    ///
    /// # Errors
    /// [`MediumError::UnknownRadio`].
    pub fn set_weight(&mut self, radio: RadioId, weight: u32) -> Result<(), MediumError> {
        let index = self.index_of(radio)?;
        self.mac.set_weight(index, weight);
        Ok(())
    }

    /// Sets the rate at which `radio` sends frames that it supplies from now on, over links that
    /// have none of their own. At first it is the medium's. Slotted access knows one rate only.
    ///
    /// # Errors
    /// [`MediumError::UnknownRadio`], [`MediumError::BadBitRate`].
    pub fn set_rate(&mut self, radio: RadioId, bit_rate_bps: u64) -> Result<(), MediumError> {
        let index = self.index_of(radio)?;
        if !BIT_RATES.contains(&bit_rate_bps) {
            return Err(MediumError::BadBitRate { bit_rate_bps });
        }
        self.mac.set_rate(index, bit_rate_bps);
        Ok(())
    }

    /// Withdraws the request of `radio`. A grant that was already given must still be answered.
    ///
    /// # Errors
    /// [`MediumError::UnknownRadio`].
    pub fn withdraw(&mut self, now_ns: u64, radio: RadioId) -> Result<(), MediumError> {
        let index = self.index_of(radio)?;
        self.advance(now_ns);
        self.mac.withdraw(index);
        Ok(())
    }

    /// Answers a grant with the frame to send, 0 to [`MAX_FRAME_BYTES`] bytes. The transmission
    /// begins at the instant of the grant.
    ///
    /// # Errors
    /// [`MediumError::UnknownRadio`] and [`MediumError::NoGrant`] change nothing. With
    /// [`MediumError::FrameTooLong`], and with a unicast destination that is unknown or the sender
    /// itself, the grant counts as declined.
    pub fn supply(
        &mut self,
        now_ns: u64,
        radio: RadioId,
        access: Access,
        frame: Arc<[u8]>,
    ) -> Result<(), MediumError> {
        // A frame that cannot be sent still uses up the grant. Otherwise the radio would block the
        // medium until another answer came.
        let index = self.index_of(radio)?;
        self.advance(now_ns);
        let checked = self.check_frame(radio, access, &frame);
        let (mac, mut context) = self.mac_and_context();
        match checked {
            Ok(()) => mac.supply(&mut context, index, access, frame),
            Err(error) => mac.decline(&mut context, index).and(Err(error)),
        }
    }

    /// Declines a grant. Under DCF the radio then backs off as after a transmission.
    ///
    /// # Errors
    /// [`MediumError::UnknownRadio`], [`MediumError::NoGrant`].
    pub fn decline(&mut self, now_ns: u64, radio: RadioId) -> Result<(), MediumError> {
        let index = self.index_of(radio)?;
        self.advance(now_ns);
        let (mac, mut context) = self.mac_and_context();
        mac.decline(&mut context, index)
    }
}

/// Time and outputs.
impl Medium {
    /// Returns when [`handle_timeout`](Self::handle_timeout) is due next, ns. Returns `None` if no
    /// event is scheduled, or if grants wait for their answers and nothing else is due at this
    /// instant.
    pub fn poll_timeout(&self) -> Option<u64> {
        self.mac.next_ns().filter(|&at_ns| !self.mac.has_open_grants() || at_ns <= self.now_ns)
    }

    /// Handles all events up to `now_ns`, but stops at the first instant with a grant.
    pub fn handle_timeout(&mut self, now_ns: u64) {
        // `poll_timeout` returns nothing later while a grant waits, which ends the loop.
        let until_ns = now_ns.clamp(self.now_ns, LAST_NS.max(self.now_ns));
        while let Some(at_ns) = self.poll_timeout().filter(|&at_ns| at_ns <= until_ns) {
            self.now_ns = self.now_ns.max(at_ns);
            let (mac, mut context) = self.mac_and_context();
            mac.handle_next(&mut context);
        }
        self.advance(until_ns);
    }

    /// Returns the next output, in order of time.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Splits the medium into its MAC and the parts that the MAC acts on.
    fn mac_and_context(&mut self) -> (&mut dyn Mac, Context<'_>) {
        let context =
            Context { now_ns: self.now_ns, air: &mut self.air, outputs: &mut self.outputs };
        (self.mac.as_mut(), context)
    }

    /// Moves time forward to `now_ns`, but not past the next event, and not while grants wait for
    /// their answers.
    fn advance(&mut self, now_ns: u64) {
        if !self.mac.has_open_grants() {
            let due_ns = self.mac.next_ns().unwrap_or(LAST_NS).min(LAST_NS);
            self.now_ns = self.now_ns.max(now_ns.min(due_ns));
        }
    }

    /// Returns the index of `radio`, if it exists.
    fn index_of(&self, radio: RadioId) -> Result<usize, MediumError> {
        let radios = self.radios();
        if radio.0 < radios {
            Ok(radio.0)
        } else {
            Err(MediumError::UnknownRadio { radio, radios })
        }
    }

    /// Checks the length and the destination of a frame of `radio`.
    fn check_frame(&self, radio: RadioId, access: Access, frame: &[u8]) -> Result<(), MediumError> {
        if frame.len() > MAX_FRAME_BYTES {
            return Err(MediumError::FrameTooLong { bytes: frame.len() });
        }
        match access {
            Access::Unicast(to) if to == radio => Err(MediumError::SelfLink { radio }),
            Access::Unicast(to) => self.index_of(to).map(drop),
            Access::Broadcast => Ok(()),
        }
    }
}
