//! Medium access: when a radio may send, and what becomes of the frame.
//!
//! A MAC is told of requests and answers and of time, begins and ends transmissions on the air, and queues
//! [`Output`]s. It gets both, and the time, as a `Turn`.

pub(crate) mod dcf;
pub(crate) mod slotted;

use std::collections::VecDeque;
use std::sync::Arc;

use crate::air::Air;
use crate::channel::Arrival;
use crate::{MediumError, Output, RadioId};

/// The longest frame taken, bytes: the MSDU limit of IEEE 802.11-2016, 9.2.4.7.1.
pub const MAX_FRAME_BYTES: usize = 2_304;

/// To whom a frame is sent at the MAC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// To all in reach, once, without acknowledgment.
    Broadcast,
    /// To one radio, acknowledged and repeated.
    Unicast(RadioId),
}

/// What became of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TxResult {
    /// Broadcast: sent, nothing more is known.
    Sent,
    /// Unicast: acknowledged.
    Acked,
    /// Unicast: not acknowledged in any attempt. It may have arrived even so.
    Failed,
}

/// Medium access. Radios are named by index and exist; time is the turn's.
pub(crate) trait Mac {
    /// `radio` wants to send one frame.
    fn request(&mut self, turn: &mut Turn<'_>, radio: usize);

    /// How much `radio` has to gain by sending, against others.
    fn weigh(&mut self, _radio: usize, _weight: u32) {}

    /// `radio` wants so no more. A grant already given stands.
    fn withdraw(&mut self, radio: usize);

    /// Sends `frame` on the grant of `radio`.
    ///
    /// # Errors
    /// [`MediumError::NoGrant`].
    fn supply(
        &mut self,
        turn: &mut Turn<'_>,
        radio: usize,
        access: Access,
        frame: Arc<[u8]>,
    ) -> Result<(), MediumError>;

    /// Sends nothing on the grant of `radio`.
    ///
    /// # Errors
    /// [`MediumError::NoGrant`].
    fn decline(&mut self, turn: &mut Turn<'_>, radio: usize) -> Result<(), MediumError>;

    /// Forgets what `radio` wanted, was granted or was sending, without a report.
    fn reset(&mut self, radio: usize);

    /// Links of the channel are others now.
    fn links_changed(&mut self) {}

    /// Whether grants wait for an answer, so that time must not advance.
    fn is_waiting(&self) -> bool;

    /// When something next happens.
    fn next_ns(&self) -> Option<u64>;

    /// Does the next thing due at the turn's instant, if there is one.
    fn step(&mut self, turn: &mut Turn<'_>);
}

/// One instant, and what a MAC may act on in it.
pub(crate) struct Turn<'a> {
    /// The instant, ns.
    pub(crate) now_ns: u64,
    /// Frames in flight and carrier sense.
    pub(crate) air: &'a mut Air,
    /// Where to put what the drivers must learn.
    pub(crate) outputs: &'a mut VecDeque<Output>,
}

impl Turn<'_> {
    /// Delivers `frame` of `sender` to those who heard it.
    pub(crate) fn deliver(&mut self, sender: usize, frame: &Arc<[u8]>, heard: &[Arrival]) {
        for arrival in heard {
            self.air.statistics.radios[arrival.radio()].deliveries += 1;
            self.outputs.push_back(Output::Deliver {
                to: RadioId(arrival.radio()),
                from: RadioId(sender),
                frame: Arc::clone(frame),
                power: self.air.channel().has_power().then_some(arrival.power),
                at_ns: self.now_ns,
            });
        }
    }
}

/// Whether `radio` is among those who heard.
pub(crate) fn is_heard_by(radio: usize, heard: &[Arrival]) -> bool {
    heard.iter().any(|arrival| arrival.radio() == radio)
}
