//! Propagation: which radios a frame reaches, with what power, and whether the link erases it.
//!
//! The air asks one question, [`Channel::launch`], when a frame begins. Two models answer it:
//! [`LinkChannel`], where the loss of each link is given, and [`RadioChannel`], where radios have
//! positions and power follows from path loss, shadowing and fading. Interference is not part of
//! propagation; see [`air`](crate::air).

mod expected_loss;
mod exponential;
mod fader;
mod gilbert_elliott;
mod links;
mod radio;

pub(crate) use links::LinkChannel;
pub(crate) use radio::RadioChannel;

use crate::config::Conflict;
use crate::error::MediumError;
use crate::power::Power;
use crate::types::RadioId;

/// Effect of propagation on a frame, apart from interference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkOutcome {
    /// The frame is too weak to be received. It is only energy.
    EnergyOnly,
    /// The radio detects the frame, but the link's loss erases it.
    Erased,
    /// The frame can be decoded unless something interferes.
    Intact,
}

/// A frame at one of the radios that it reaches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    radio: u32,
    pub(crate) link: LinkOutcome,
    /// Received power, above zero.
    pub(crate) power: Power,
}

impl Arrival {
    /// Returns the radio that the frame reaches.
    pub(crate) fn radio(&self) -> usize {
        self.radio as usize
    }
}

/// A propagation model with its state.
pub(crate) enum Channel {
    /// The loss of each link is given.
    Links(LinkChannel),
    /// Radios have positions.
    Radio(RadioChannel),
}

impl Channel {
    /// Returns the number of radios.
    pub(crate) fn radios(&self) -> usize {
        match self {
            Self::Links(links) => links.radios(),
            Self::Radio(radio) => radio.radios(),
        }
    }

    /// Returns whether the power of arrivals is physical, so that hosts may see it.
    pub(crate) fn has_power(&self) -> bool {
        matches!(self, Self::Radio(_))
    }

    /// Returns the radios that hear `sender`, sorted: those with a link from it, or those that
    /// sense its mean power.
    fn hearers(&self, sender: usize) -> Vec<usize> {
        match self {
            Self::Links(links) => links.hearers(sender),
            Self::Radio(radio) => radio.hearers(sender),
        }
    }

    /// Returns the radios that must not send in the same slot as `radio`.
    pub(crate) fn conflicts(&self, radio: usize, conflict: Conflict) -> Vec<usize> {
        // Radios in reach of each other always conflict, since each would miss the other's frame.
        // With `SharedHearer` so do those whose frames would collide at a third radio.
        let hearers = self.hearers(radio);
        let conflicts = |other: &usize| {
            let theirs = self.hearers(*other);
            let audible = hearers.contains(other) || theirs.contains(&radio);
            let shared = || theirs.iter().any(|hearer| hearers.contains(hearer));
            *other != radio && (audible || (conflict == Conflict::SharedHearer && shared()))
        };
        (0..self.radios()).filter(conflicts).collect()
    }

    /// Changes the loss of one link.
    ///
    /// # Errors
    /// Errors of [`LossMatrix::set`](crate::LossMatrix::set), and [`MediumError::NoLossMatrix`].
    pub(crate) fn set_loss(
        &mut self,
        from: RadioId,
        to: RadioId,
        loss: f64,
    ) -> Result<(), MediumError> {
        match self {
            Self::Links(links) => links.set_loss(from, to, loss),
            Self::Radio(_) => Err(MediumError::NoLossMatrix),
        }
    }

    /// Moves radios.
    ///
    /// # Errors
    /// Errors of [`RadioChannel::move_to`], and [`MediumError::NoPositions`].
    pub(crate) fn move_to(&mut self, moves: &[(RadioId, [f64; 3])]) -> Result<(), MediumError> {
        match self {
            Self::Links(_) => Err(MediumError::NoPositions),
            Self::Radio(radio) => radio.move_to(moves),
        }
    }

    /// Returns where a radio is, m.
    pub(crate) fn position(&self, radio: RadioId) -> Option<[f64; 3]> {
        match self {
            Self::Links(_) => None,
            Self::Radio(channel) => channel.position(radio),
        }
    }

    /// Appends the arrivals of a frame of `sender` that begins at `now_ns`, sorted by radio. It is
    /// addressed to `receiver`, or to all.
    ///
    /// Control frames have random streams of their own, so that the losses of data frames do not
    /// depend on the MAC.
    pub(crate) fn launch(
        &mut self,
        now_ns: u64,
        sender: usize,
        receiver: Option<usize>,
        control: bool,
        arrivals: &mut Vec<Arrival>,
    ) {
        match self {
            Self::Links(links) => links.launch(now_ns, sender, control, arrivals),
            Self::Radio(radio) => radio.launch(now_ns, sender, receiver, control, arrivals),
        }
    }

    /// Notes how a frame of `sender`, which ends at `now_ns`, arrived.
    pub(crate) fn note_end(&mut self, now_ns: u64, sender: usize, arrivals: &[Arrival]) {
        if let Self::Radio(radio) = self {
            radio.note_end(now_ns, sender, arrivals);
        }
    }
}
