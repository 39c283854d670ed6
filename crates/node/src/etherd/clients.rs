//! Which process is which radio.

use std::collections::BTreeMap;
use std::net::SocketAddr;

/// A radio's place in the lab.
#[derive(Clone, Debug)]
struct Seat {
    address: Option<SocketAddr>,
    /// Switched off by the lab, whoever is attached.
    killed: bool,
    /// Grants in a row that it let expire.
    silences: u32,
}

/// All radios, and who sits there.
#[derive(Debug)]
pub(super) struct Clients {
    seats: Vec<Seat>,
    radios: BTreeMap<SocketAddr, usize>,
}

impl Clients {
    /// `radios` with nobody attached.
    pub(super) fn new(radios: usize) -> Self {
        let seat = Seat { address: None, killed: false, silences: 0 };
        Self { seats: vec![seat; radios], radios: BTreeMap::new() }
    }

    /// The radio of a process.
    pub(super) fn radio_of(&self, address: SocketAddr) -> Option<usize> {
        self.radios.get(&address).copied()
    }

    /// The process of a radio.
    pub(super) fn address_of(&self, radio: usize) -> Option<SocketAddr> {
        self.seats[radio].address
    }

    /// How many radios have a process.
    pub(super) fn attached(&self) -> usize {
        self.radios.len()
    }

    /// Whether a radio has a process and is not killed.
    pub(super) fn is_live(&self, radio: usize) -> bool {
        self.seats[radio].address.is_some() && !self.seats[radio].killed
    }

    /// Seats a process, and returns the one that sat there before. A process that had another radio leaves it
    /// first: the caller sees to that.
    pub(super) fn attach(&mut self, radio: usize, address: SocketAddr) -> Option<SocketAddr> {
        let before = self.detach(radio);
        self.radios.insert(address, radio);
        self.seats[radio].address = Some(address);
        self.seats[radio].silences = 0;
        before
    }

    /// Empties a seat, and returns who sat there.
    pub(super) fn detach(&mut self, radio: usize) -> Option<SocketAddr> {
        let before = self.seats[radio].address.take();
        if let Some(address) = before {
            self.radios.remove(&address);
        }
        before
    }

    /// Switches a radio off, or on again.
    pub(super) fn set_killed(&mut self, radio: usize, killed: bool) {
        self.seats[radio].killed = killed;
    }

    /// The radio answered a grant, in time or not.
    pub(super) fn answered(&mut self, radio: usize) {
        self.seats[radio].silences = 0;
    }

    /// The radio let a grant expire. Returns how many in a row.
    pub(super) fn missed(&mut self, radio: usize) -> u32 {
        self.seats[radio].silences += 1;
        self.seats[radio].silences
    }
}
