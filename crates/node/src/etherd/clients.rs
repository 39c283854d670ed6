//! Table of the emulator's radios and the processes attached to them.

use std::collections::BTreeMap;
use std::net::SocketAddr;

/// State of one radio.
#[derive(Clone, Debug)]
struct RadioState {
    address: Option<SocketAddr>,
    /// Whether the lab has switched the radio off, with or without a process.
    killed: bool,
    /// Number of grants in a row that expired.
    expired_grants: u32,
}

/// All radios and their processes.
#[derive(Debug)]
pub(super) struct Clients {
    states: Vec<RadioState>,
    radios: BTreeMap<SocketAddr, usize>,
}

impl Clients {
    /// Returns a table of `radios` without processes.
    pub(super) fn new(radios: usize) -> Self {
        let state = RadioState { address: None, killed: false, expired_grants: 0 };
        Self { states: vec![state; radios], radios: BTreeMap::new() }
    }

    /// Returns the radio of a process.
    pub(super) fn radio_of(&self, address: SocketAddr) -> Option<usize> {
        self.radios.get(&address).copied()
    }

    /// Returns the process of a radio.
    pub(super) fn address_of(&self, radio: usize) -> Option<SocketAddr> {
        self.states[radio].address
    }

    /// Returns the number of radios with a process.
    pub(super) fn attached(&self) -> usize {
        self.radios.len()
    }

    /// Returns whether a radio has a process and is not switched off.
    pub(super) fn is_live(&self, radio: usize) -> bool {
        self.states[radio].address.is_some() && !self.states[radio].killed
    }

    /// Attaches a process and returns the one it replaces. A process that has another radio must be
    /// detached from it first.
    pub(super) fn attach(&mut self, radio: usize, address: SocketAddr) -> Option<SocketAddr> {
        let before = self.detach(radio);
        self.radios.insert(address, radio);
        self.states[radio].address = Some(address);
        self.states[radio].expired_grants = 0;
        before
    }

    /// Detaches the process of a radio and returns it.
    pub(super) fn detach(&mut self, radio: usize) -> Option<SocketAddr> {
        let before = self.states[radio].address.take();
        if let Some(address) = before {
            self.radios.remove(&address);
        }
        before
    }

    /// Switches a radio off or on.
    pub(super) fn set_killed(&mut self, radio: usize, killed: bool) {
        self.states[radio].killed = killed;
    }

    /// Notes that the radio answered a grant, in time or not.
    pub(super) fn note_answer(&mut self, radio: usize) {
        self.states[radio].expired_grants = 0;
    }

    /// Notes that a grant expired. Returns the number of expired grants in a row.
    pub(super) fn note_expiry(&mut self, radio: usize) -> u32 {
        self.states[radio].expired_grants += 1;
        self.states[radio].expired_grants
    }
}
