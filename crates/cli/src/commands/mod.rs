//! Subcommands, one module for each.

pub(crate) mod bandwidth;
pub(crate) mod cancel;
#[cfg(feature = "lab")]
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod doctor_radio;
pub(crate) mod fleet;
#[cfg(feature = "lab")]
pub(crate) mod flows;
#[cfg(feature = "manual")]
pub(crate) mod generate;
pub(crate) mod keygen;
#[cfg(feature = "lab")]
pub(crate) mod lab;
pub(crate) mod network;
pub(crate) mod node;
pub(crate) mod peers;
pub(crate) mod receive;
pub(crate) mod reload;
#[cfg(feature = "lab")]
pub(crate) mod replay;
pub(crate) mod rollout;
pub(crate) mod schemes;
pub(crate) mod send;
#[cfg(feature = "lab")]
pub(crate) mod simulate;
pub(crate) mod status;
pub(crate) mod stream;
mod stream_watch;
#[cfg(feature = "top")]
pub(crate) mod top;
pub(crate) mod traceroute;
pub(crate) mod transfers;
pub(crate) mod tunnel;
