//! The ports of a node: what they tell of themselves, and what was counted on each.

use super::{Heard, Node};
use crate::api::types::{PeerPort, PortState};
use crate::config::{NodeConfig, PortEntry, PortPlace, RadioConfig, Rate};
use ncmesh_console::schema::PortValues;
use ncmesh_engine::Port;
use ncmesh_engine::time::Instant;
use ncmesh_engines::REGISTRY;
use ncmesh_stack::{ConfigError, Stack, StackConfig};
use ncmesh_wire::NodeId;

/// What a radio tells of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortNews {
    /// Description for people.
    pub description: String,
    /// What keeps it from sending, or slows it down, and what to do.
    pub hints: Vec<String>,
    /// Whether frames pass it.
    pub is_up: bool,
}

/// Change that a reload makes to the radios.
#[derive(Clone, Debug)]
pub(crate) enum PortChange {
    /// It sends at this rate at most from now on; as fast as it takes frames if absent.
    Rate(Port, Option<Rate>),
    /// It goes.
    Close(Port),
    /// It comes.
    Open(Port, Box<PortEntry>),
}

/// A port of the stack, and the radio that it has.
#[derive(Debug, Default)]
pub(super) struct Slot {
    /// Name of the port; `None` after it was taken out of the configuration.
    pub(super) name: Option<String>,
    pub(super) news: PortNews,
    /// Frames sent and heard here.
    frames: Frames,
}

/// Frames of a port since the daemon's start.
#[derive(Clone, Copy, Debug, Default)]
struct Frames {
    sent: u64,
    sent_bytes: u64,
    heard: u64,
    heard_bytes: u64,
    dropped: u64,
}

/// All ports of a node, by their places in the stack.
#[derive(Debug, Default)]
pub(super) struct Slots {
    all: Vec<Slot>,
    /// Changes that the radios have not been told.
    pub(super) changes: Vec<PortChange>,
}

impl Slots {
    /// Returns the ports of a configuration, before their radios have told anything.
    pub(super) fn new(config: &NodeConfig) -> Self {
        let slot = |port: &PortEntry| Slot { name: Some(port.name.clone()), ..Slot::default() };
        Self { all: config.ports.iter().map(slot).collect(), changes: Vec::new() }
    }

    /// Returns whether neighbours may be reached by several ports.
    pub(super) fn are_several(&self) -> bool {
        self.all.len() > 1
    }

    /// Returns the ports of the configuration, with their names.
    pub(super) fn named(&self) -> impl Iterator<Item = (Port, &str, &Slot)> {
        let all = self.all.iter().enumerate();
        all.filter_map(|(place, slot)| Some((Port::new(place)?, slot.name.as_deref()?, slot)))
    }

    /// Returns the port of this name.
    pub(super) fn find(&self, name: &str) -> Option<Port> {
        self.named().find(|(_, other, _)| *other == name).map(|(port, ..)| port)
    }

    /// Returns what keeps ports from sending, and what to do.
    pub(super) fn hints(&self) -> impl Iterator<Item = &String> {
        self.named().flat_map(|(_, _, slot)| &slot.news.hints)
    }

    /// Returns the descriptions of all ports as one.
    pub(super) fn description(&self) -> String {
        let all: Vec<&str> =
            self.named().map(|(.., slot)| slot.news.description.as_str()).collect();
        all.join("; ")
    }

    /// Counts a frame that was written for a port.
    pub(super) fn count_sent(&mut self, port: Port, length: usize) {
        if let Some(Slot { frames, .. }) = self.all.get_mut(port.index()) {
            frames.sent += 1;
            frames.sent_bytes += length as u64;
        }
    }

    /// Counts a frame that came on a port.
    pub(super) fn count_heard(&mut self, port: Port, heard: Heard, length: usize) {
        let Some(Slot { frames, .. }) = self.all.get_mut(port.index()) else { return };
        match heard {
            Heard::Proven(_) | Heard::Unproven => {
                frames.heard += 1;
                frames.heard_bytes += length as u64;
            }
            Heard::Dropped => frames.dropped += 1,
        }
    }

    /// Takes the radio from a port.
    fn leave(&mut self, port: Port) {
        if let Some(slot) = self.all.get_mut(port.index()) {
            *slot = Slot::default();
            self.changes.push(PortChange::Close(port));
        }
    }

    /// Gives a port to a new radio: one that has none, or a new one of the stack. `None` if there
    /// are as many as a node may have.
    fn take(&mut self, entry: &PortEntry, stack: &mut Stack, now: Instant) -> Option<Port> {
        let vacant = self.all.iter().position(|slot| slot.name.is_none());
        let port = match vacant {
            Some(place) => Port::new(place)?,
            None => {
                self.all.push(Slot::default());
                stack.add_port(now)?
            }
        };
        self.all[port.index()].name = Some(entry.name.clone());
        self.changes.push(PortChange::Open(port, Box::new(entry.clone())));
        Some(port)
    }
}

/// Returns the stack of a node with its ports.
///
/// # Errors
/// A setting that cannot be.
pub(super) fn stack(
    config: &NodeConfig,
    settings: StackConfig,
    now: Instant,
) -> Result<Stack, ConfigError> {
    let mut stack = Stack::new(settings, REGISTRY, now)?;
    // The stack has the first one from its start.
    for _ in &config.ports[1..] {
        stack.add_port(now);
    }
    Ok(stack)
}

/// Returns whether an entry of the new configuration is about a port of the old one.
fn is_same(old: &PortEntry, new: &PortEntry) -> bool {
    old.name == new.name || (old.place, new.place) == (PortPlace::Radio, PortPlace::Radio)
}

/// Returns whether all ports stand in `[[port]]`.
fn is_list(config: &NodeConfig) -> bool {
    config.ports.iter().all(|port| matches!(port.place, PortPlace::Port(_)))
}

impl Node {
    /// Changes the ports to those of another configuration, and `running` with them: always their
    /// rates, and all else where they are in `[[port]]` and keep the length of the largest frame.
    /// Returns the names of what has changed.
    pub(super) fn reload_ports(
        &mut self,
        running: &mut NodeConfig,
        new: &NodeConfig,
    ) -> Vec<String> {
        let mut changed = Vec::new();
        for old in &mut running.ports {
            let new = new.ports.iter().find(|new| is_same(old, new)).map(|new| &new.radio);
            let (RadioConfig::Port(radio), Some(RadioConfig::Port(new))) = (&mut old.radio, new)
            else {
                continue;
            };
            if radio.rate != new.rate {
                radio.rate = new.rate;
                let port = self.ports.find(&old.name).unwrap_or_default();
                self.ports.changes.push(PortChange::Rate(port, new.rate));
                changed.push(format!("{} rate", old.place));
            }
        }

        if !is_list(running) || !is_list(new) || running.mtu() != new.mtu() {
            return changed;
        }
        // Ports go before others come: these may need what those hold.
        let stays = |old: &PortEntry| {
            new.ports.iter().any(|new| is_same(old, new) && old.radio == new.radio)
        };
        for old in running.ports.iter().filter(|old| !stays(old)) {
            if let Some(port) = self.ports.find(&old.name) {
                self.handle_port_news(port, PortNews::default());
                self.ports.leave(port);
                changed.push(format!("[[port]] {}", old.name));
            }
        }
        for entry in &new.ports {
            if self.ports.find(&entry.name).is_none()
                && self.ports.take(entry, &mut self.stack, self.clock.now()).is_some()
                && !changed.iter().any(|name| *name == format!("[[port]] {}", entry.name))
            {
                changed.push(format!("[[port]] {}", entry.name));
            }
        }
        running.ports.clone_from(&new.ports);
        changed
    }

    /// Takes what the radio of a port tells of itself.
    pub fn handle_port_news(&mut self, port: Port, news: PortNews) {
        let now = self.clock.now();
        // With one port there is no other way: its neighbours stay known while it is down.
        if self.ports.are_several() {
            self.stack.at(now, &mut self.storage).set_port_up(port, news.is_up);
        }
        if let Some(slot) = self.ports.all.get_mut(port.index()) {
            slot.news = news;
        }
    }

    /// Returns the changes that the radios are to make, once each.
    pub(crate) fn take_port_changes(&mut self) -> Vec<PortChange> {
        core::mem::take(&mut self.ports.changes)
    }

    /// Returns the ports, for the API.
    pub(super) fn port_states(&self) -> Vec<PortState> {
        let state = |(port, name, slot): (Port, &str, &Slot)| PortState {
            name: name.to_owned(),
            radio: slot.news.description.clone(),
            up: slot.news.is_up,
            values: self.port_values(port, slot),
        };
        self.ports.named().map(state).collect()
    }

    /// Returns the ports on which a node is heard, for the API.
    pub(super) fn ways_to(&self, node: NodeId) -> Vec<PeerPort> {
        let way = self.stack.port_to(node);
        let heard = self.ports.named().filter_map(|(port, name, _)| {
            let (_, delivery) = self.stack.inbound_on(port).find(|(other, _)| *other == node)?;
            Some(PeerPort { port: name.to_owned(), delivery_from: delivery, way: port == way })
        });
        heard.collect()
    }

    /// Returns the values of a port.
    fn port_values(&self, port: Port, slot: &Slot) -> PortValues {
        let Frames { sent, sent_bytes, heard, heard_bytes, dropped } = slot.frames;
        PortValues {
            neighbors: self.stack.inbound_on(port).count() as u64,
            airtime_s: self.stack.airtime_on(port).as_secs_f64(),
            sent,
            sent_bytes,
            heard,
            heard_bytes,
            dropped,
        }
    }
}
