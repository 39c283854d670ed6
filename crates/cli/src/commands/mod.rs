//! Subcommands, one module for each.

pub(crate) mod cancel;
pub(crate) mod demo;
pub(crate) mod flows;
pub(crate) mod generate;
pub(crate) mod keygen;
pub(crate) mod lab;
pub(crate) mod node;
pub(crate) mod peers;
pub(crate) mod receive;
pub(crate) mod replay;
pub(crate) mod send;
pub(crate) mod simulate;
pub(crate) mod status;
pub(crate) mod stream;
pub(crate) mod transfers;
pub(crate) mod tunnel;
