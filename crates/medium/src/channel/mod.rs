//! Propagation: whom a frame reaches, how strongly, and in what state.
//!
//! The air asks one thing only: [`Channel::launch`], when a frame begins. Every propagation model answers it.

mod bursts;
mod expected;
mod exponential;
mod fading;
mod field;
mod links;
mod loss;
mod path_loss;

pub use fading::Fading;
pub(crate) use field::Field;
pub use field::LEFT_OUT;
pub(crate) use links::Links;
pub use loss::LossMatrix;
pub use path_loss::PathLoss;

use crate::config::Conflict;
use crate::power::Power;
use crate::{MediumError, RadioId};

/// What the way has done to a frame, interference aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Too weak to be received: energy only.
    Sensed,
    /// Recognised as a frame, but not to be read: the link's loss.
    Lost,
    /// To be read if nothing interferes.
    Whole,
}

/// A frame at one of the radios it reaches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    radio: u32,
    pub(crate) fate: Fate,
    /// Above zero.
    pub(crate) power: Power,
}

impl Arrival {
    /// Where.
    pub(crate) fn radio(&self) -> usize {
        self.radio as usize
    }
}

/// A propagation model with its state.
pub(crate) enum Channel {
    /// Losses of links are given.
    Links(Links),
    /// Radios with positions.
    Field(Field),
}

impl Channel {
    /// The number of radios.
    pub(crate) fn radios(&self) -> usize {
        match self {
            Self::Links(links) => links.radios(),
            Self::Field(field) => field.radios(),
        }
    }

    /// Whether it knows the power of what arrives.
    pub(crate) fn has_power(&self) -> bool {
        matches!(self, Self::Field(_))
    }

    /// Who hears `sender`, sorted: by a link, or where its mean power is sensed.
    fn hearers(&self, sender: usize) -> Vec<usize> {
        match self {
            Self::Links(links) => links.hearers(sender),
            Self::Field(field) => field.hearers(sender),
        }
    }

    /// Who may not send together with `radio`.
    pub(crate) fn conflicts(&self, radio: usize, conflict: Conflict) -> Vec<usize> {
        let hearers = self.hearers(radio);
        let conflicts = |other: &usize| {
            let theirs = self.hearers(*other);
            let audible = hearers.contains(other) || theirs.contains(&radio);
            let shared = || theirs.iter().any(|hearer| hearers.contains(hearer));
            *other != radio && (audible || (conflict == Conflict::SharedHearer && shared()))
        };
        (0..self.radios()).filter(conflicts).collect()
    }

    /// Changes one link.
    ///
    /// # Errors
    /// Those of [`LossMatrix::set`], and [`MediumError::NoLossMatrix`].
    pub(crate) fn set_loss(
        &mut self,
        from: RadioId,
        to: RadioId,
        loss: f64,
    ) -> Result<(), MediumError> {
        match self {
            Self::Links(links) => links.set_loss(from, to, loss),
            Self::Field(_) => Err(MediumError::NoLossMatrix),
        }
    }

    /// Appends whom a frame of `sender` that begins at `now_ns` reaches, by index. Control frames have draws
    /// of their own.
    pub(crate) fn launch(
        &mut self,
        now_ns: u64,
        sender: usize,
        control: bool,
        arrivals: &mut Vec<Arrival>,
    ) {
        match self {
            Self::Links(links) => links.launch(now_ns, sender, control, arrivals),
            Self::Field(field) => field.launch(sender, control, arrivals),
        }
    }
}
