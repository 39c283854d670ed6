//! The ports of a node: what they tell of themselves, and what was counted on each.

use crate::api::types::{PeerPort, PortState};
use crate::config::{NodeConfig, PortEntry, Rate};
use ncmesh_console::schema::PortValues;
use ncmesh_engine::Port;
use ncmesh_engine::time::Instant;
use ncmesh_engines::registry;
use ncmesh_stack::{ConfigError, Stack, StackConfig, Unicast};
use ncmesh_wire::NodeId;

/// State of a radio, as it tells it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortNews {
    /// Description for people.
    pub description: String,
    /// Reasons why it does not send, or slowly, with what to do.
    pub hints: Vec<String>,
    /// Whether frames pass it.
    pub is_up: bool,
    /// Frequency of its channel, MHz, if it is a radio and the kernel tells.
    pub channel_mhz: Option<u32>,
    /// Neighbours that unicast serves much faster than broadcasts.
    pub unicast: Unicast,
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

    /// Counts a frame that came on a port, authentic or dropped.
    pub(super) fn count_heard(&mut self, port: Port, is_authentic: bool, length: usize) {
        let Some(Slot { frames, .. }) = self.all.get_mut(port.index()) else { return };
        if is_authentic {
            frames.heard += 1;
            frames.heard_bytes += length as u64;
        } else {
            frames.dropped += 1;
        }
    }

    /// Takes what the radio of a port tells of itself. Radios on one frequency share a channel.
    pub(super) fn take_news(&mut self, port: Port, news: PortNews, stack: &mut Stack) {
        if let Some(slot) = self.all.get_mut(port.index()) {
            slot.news = news;
        }
        let channels: Vec<_> = self.all.iter().map(|slot| slot.news.channel_mhz).collect();
        stack.set_channels(&channels);
    }

    /// Returns the ports, for the API.
    pub(super) fn states(&self, stack: &Stack) -> Vec<PortState> {
        let state = |(port, name, slot): (Port, &str, &Slot)| {
            let Frames { sent, sent_bytes, heard, heard_bytes, dropped } = slot.frames;
            PortState {
                name: name.to_owned(),
                radio: slot.news.description.clone(),
                up: slot.news.is_up,
                values: PortValues {
                    neighbors: stack.inbound_on(port).count() as u64,
                    airtime_s: stack.airtime_on(port).as_secs_f64(),
                    sent,
                    sent_bytes,
                    heard,
                    heard_bytes,
                    dropped,
                },
            }
        };
        self.named().map(state).collect()
    }

    /// Returns the ports on which a node is heard, for the API.
    pub(super) fn ways_to(&self, node: NodeId, stack: &Stack) -> Vec<PeerPort> {
        let way = stack.port_to(node);
        let heard = self.named().filter_map(|(port, name, _)| {
            let (_, delivery_from) = stack.inbound_on(port).find(|(other, _)| *other == node)?;
            Some(PeerPort { port: name.to_owned(), delivery_from, way: port == way })
        });
        heard.collect()
    }

    /// Takes the radio from a port.
    pub(super) fn leave(&mut self, port: Port) {
        if let Some(slot) = self.all.get_mut(port.index()) {
            *slot = Slot::default();
            self.changes.push(PortChange::Close(port));
        }
    }

    /// Gives a port to a new radio: one that has none, or a new one of the stack. `None` if there
    /// are as many as a node may have.
    pub(super) fn take(
        &mut self,
        entry: &PortEntry,
        stack: &mut Stack,
        now: Instant,
    ) -> Option<Port> {
        let vacant = self.all.iter().position(|slot| slot.name.is_none());
        let port = match vacant {
            Some(place) => Port::new(place)?,
            None => {
                let port = stack.add_port(now)?;
                self.all.push(Slot::default());
                port
            }
        };
        stack.set_airtime_share(port, entry.radio.airtime_share());
        self.all[port.index()].name = Some(entry.name.clone());
        self.changes.push(PortChange::Open(port, Box::new(entry.clone())));
        Some(port)
    }
}

/// Returns what ports with different lengths of frames cost; nothing where all have the same.
pub(super) fn mtu_hint(ports: &[PortEntry]) -> Option<String> {
    let shortest = ports.iter().min_by_key(|port| port.radio.mtu())?;
    let mtu = shortest.radio.mtu();
    let longer = ports.iter().find(|port| port.radio.mtu() > mtu)?;
    Some(format!(
        "frames have at most {mtu} bytes on all ports, as the port {} takes no longer ones; set \
         mtu = {mtu} on the port {} too. Nodes that hear of it cut files and packets for it",
        shortest.name, longer.name
    ))
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
    let mut stack = Stack::new(settings, registry(), now)?;
    // The stack has the first one from its start.
    for _ in &config.ports[1..] {
        stack.add_port(now);
    }
    let ports: Vec<Port> = stack.ports().collect();
    for (port, entry) in ports.into_iter().zip(&config.ports) {
        stack.set_airtime_share(port, entry.radio.airtime_share());
    }
    Ok(stack)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn ports_with_frames_of_different_lengths_are_named() {
        let hint = |ports: &str| {
            let key = "5a".repeat(32);
            let text = format!("[node]\nid = 1\nkey = \"{key}\"\n{ports}");
            mtu_hint(&NodeConfig::parse(Path::new("node.toml"), &text).unwrap().ports)
        };
        let radio = "[[port]]\ninterface = \"wlan0\"\n";
        let vpn = "[[port]]\nname = \"vpn\"\ninterface = \"wg0\"\nkind = \"udp\"\nmtu = 1392\n";
        assert_eq!(hint(radio), None);
        let both = hint(&format!("{radio}{vpn}")).unwrap();
        assert!(both.contains("at most 1392 bytes") && both.contains("the port vpn"), "{both}");
        assert!(both.contains("mtu = 1392 on the port wlan0"), "{both}");
        let same = radio.replace("wlan0\"", "wlan0\"\nmtu = 1392");
        assert_eq!(hint(&format!("{same}{vpn}")), None);
    }
}
