//! Medium access: when a radio may transmit, and what happens to its frame.
//!
//! [`Dcf`] is CSMA/CA of IEEE 802.11; [`Slotted`] is the idealised access that some papers assume.
//! Both implement [`Mac`]: they receive requests, answers to grants, and the passing of time; they
//! begin and end transmissions on the air, and they queue outputs for the driver.

mod dcf;
mod interface;
mod slotted;

pub(crate) use dcf::Dcf;
pub(crate) use interface::{Context, Mac};
pub(crate) use slotted::Slotted;
