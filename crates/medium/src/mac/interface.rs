//! The interface between the medium and a MAC.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::air::Air;
use crate::channel::Arrival;
use crate::error::MediumError;
use crate::types::{Access, Output, RadioId};

/// A MAC for all radios of a medium. Radios are given by index and exist.
pub(crate) trait Mac {
    /// Requests the medium for one frame of `radio`.
    fn request(&mut self, context: &mut Context<'_>, radio: usize);

    /// Sets the weight of `radio` in the order of slots.
    fn set_weight(&mut self, _radio: usize, _weight: u32) {}

    /// Sets the rate of frames of `radio`, bit/s.
    fn set_rate(&mut self, _radio: usize, _bit_rate_bps: u64) {}

    /// Withdraws the request of `radio`. A grant that was already given remains.
    fn withdraw(&mut self, radio: usize);

    /// Sends `frame` with the grant of `radio`.
    ///
    /// # Errors
    /// [`MediumError::NoGrant`].
    fn supply(
        &mut self,
        context: &mut Context<'_>,
        radio: usize,
        access: Access,
        frame: Arc<[u8]>,
    ) -> Result<(), MediumError>;

    /// Declines the grant of `radio`.
    ///
    /// # Errors
    /// [`MediumError::NoGrant`].
    fn decline(&mut self, context: &mut Context<'_>, radio: usize) -> Result<(), MediumError>;

    /// Drops the request, the grant and the frame of `radio`, without a report.
    fn reset(&mut self, radio: usize);

    /// Tells the MAC that links of the channel have changed.
    fn links_changed(&mut self) {}

    /// Returns whether grants wait for their answers, so that time must not advance.
    fn has_open_grants(&self) -> bool;

    /// Returns the instant of the next event.
    fn next_ns(&self) -> Option<u64>;

    /// Handles the next event that is due at the context's instant, if there is one.
    fn handle_next(&mut self, context: &mut Context<'_>);
}

/// One instant, and the parts of the medium that a MAC acts on.
pub(crate) struct Context<'a> {
    /// The instant, ns.
    pub(crate) now_ns: u64,
    /// Frames in flight and carrier sense.
    pub(crate) air: &'a mut Air,
    /// Outputs for the driver.
    pub(crate) outputs: &'a mut VecDeque<Output>,
}

impl Context<'_> {
    /// Delivers `frame` of `sender` to the radios in `receptions`.
    pub(super) fn deliver(&mut self, sender: usize, frame: &Arc<[u8]>, receptions: &[Arrival]) {
        for arrival in receptions {
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

/// Returns whether `radio` is one of the radios in `receptions`.
pub(super) fn includes(receptions: &[Arrival], radio: usize) -> bool {
    receptions.iter().any(|arrival| arrival.radio() == radio)
}
