//! The radios of a node, one for each port: what they ask for and tell, in turn.

use crate::config::{NodeConfig, PortEntry, Rate};
use crate::error::NodeError;
use crate::node::{Filled, Heard, Node, PortChange, PortNews};
use crate::radio::{Occupied, Radio, RadioEvent};
use ncmesh_engine::Port;
use std::future::{pending, poll_fn};
use std::io;
use std::task::Poll;

/// Largest number of frames read at once, so that other events have their turn.
const BURST: usize = 32;

/// Mistake of ports of which some are of the lab's emulator.
const MIXED: &str = "kind: it is \"air\" for all ports or for none";

/// All radios of a node.
pub(super) struct Radios<R> {
    all: Vec<Driven<R>>,
    /// Ports whose radios could not be opened after a reload.
    closed: Vec<(Port, PortEntry)>,
    /// Radio that is asked first for its next event, so that none keeps the others waiting.
    first: usize,
    /// The last frame written.
    frame: Vec<u8>,
}

/// The radio of a port.
struct Driven<R> {
    port: Port,
    entry: PortEntry,
    radio: R,
    /// Whether it was asked for the medium and has not granted it yet.
    requested: bool,
    /// Name of an earlier port that sends on the same interface, or on its bridge.
    overlaps: Option<String>,
    /// The last frame heard.
    heard: Vec<u8>,
}

impl<R: Radio> Driven<R> {
    fn new(port: Port, entry: &PortEntry, radio: R) -> Self {
        let entry = entry.clone();
        Self { port, entry, radio, requested: false, overlaps: None, heard: Vec::new() }
    }

    /// Returns what it tells of itself.
    fn news(&self) -> PortNews {
        let mut hints = self.radio.hints();
        hints.extend(self.overlaps.as_ref().map(|other| {
            let name = &self.entry.name;
            format!("nothing is sent on the port {name}: {}", overlap(other))
        }));
        PortNews {
            description: self.radio.describe(),
            hints,
            is_up: self.radio.is_up() && self.overlaps.is_none(),
            channel_mhz: self.radio.channel_mhz(),
            unicast: self.radio.unicast(),
        }
    }

    /// Requests the medium if there is a frame to send.
    async fn request(&mut self, node: &Node) -> io::Result<()> {
        if !self.requested && node.wants_radio(self.port) {
            self.requested = true;
            self.radio.request().await?;
        }
        Ok(())
    }

    /// Handles the frame that was heard.
    fn handle_frame(&mut self, node: &mut Node) {
        // A frame that another port hears too would make two ways of one.
        if self.overlaps.is_some() {
            return;
        }
        let length = self.heard.len();
        match node.handle_datagram(self.port, &self.heard) {
            Heard::Proven(_) => self.radio.vouch(length, true),
            Heard::Unproven => self.radio.vouch(length, false),
            Heard::Dropped => {}
        }
    }
}

/// Returns why a port beside another one cannot send.
fn overlap(other: &str) -> String {
    format!("the port {other} is on the same interface, or one is on the other's bridge")
}

impl<R: Radio> Radios<R> {
    /// Opens the radios of all ports.
    ///
    /// # Errors
    /// [`NodeError`]: why one of them cannot be opened, or not beside another one.
    pub(super) async fn open(config: &NodeConfig) -> Result<Self, NodeError> {
        let mut all: Vec<Driven<R>> = Vec::new();
        let mut taken: Vec<(Occupied, &str)> = Vec::new();
        for (place, entry) in config.ports.iter().enumerate() {
            let Some(port) = Port::new(place) else { break };
            let wrong = |problem: &str| config.blame_port(entry.place, problem).into();
            let settings = R::settings(entry).ok_or_else(|| wrong(MIXED))?;
            // Looked at first: the sockets of an earlier port would be in the way.
            if let Some(own) = R::locate(settings) {
                let other = taken.iter().find(|(other, _)| own.overlaps(*other));
                if let Some((_, other)) = other {
                    return Err(wrong(&format!("interface: {}", overlap(other))));
                }
                taken.push((own, &entry.name));
            }

            let radio = R::open(settings, entry.place).await.map_err(|e| match e {
                e if R::is_setting(&e) => wrong(&e.to_string()),
                e => e.into(),
            })?;
            all.push(Driven::new(port, entry, radio));
        }
        Ok(Self { all, closed: Vec::new(), first: 0, frame: Vec::new() })
    }

    /// Returns the descriptions of all.
    pub(super) fn describe(&self) -> String {
        let all: Vec<String> = self.all.iter().map(|one| one.radio.describe()).collect();
        all.join("; ")
    }

    /// Tells the node what all radios tell of themselves.
    pub(super) fn tell(&mut self, node: &mut Node) {
        self.find_overlaps();
        for one in &self.all {
            node.handle_port_news(one.port, one.news());
        }
    }

    /// Notes which radios send where an earlier one does.
    fn find_overlaps(&mut self) {
        for place in 1..self.all.len() {
            let (earlier, rest) = self.all.split_at_mut(place);
            let own = rest[0].radio.occupied();
            let other = earlier.iter().find(|other| {
                let both = own.zip(other.radio.occupied());
                both.is_some_and(|(own, other)| own.overlaps(other))
            });
            rest[0].overlaps = other.map(|other| other.entry.name.clone());
        }
    }

    /// Requests the medium on each port for which there is a frame to send.
    pub(super) async fn request(&mut self, node: &Node) -> io::Result<()> {
        for one in &mut self.all {
            one.request(node).await?;
        }
        Ok(())
    }

    /// Waits for the next event of any radio. Returns the radio's place with it. Cancel-safe.
    pub(super) async fn event(&mut self) -> io::Result<(usize, RadioEvent)> {
        let count = self.all.len();
        if count == 0 {
            return pending().await;
        }

        self.first = (self.first + 1) % count;
        let first = self.first;
        let wait = |one| {
            let Driven { radio, heard, .. }: &mut Driven<R> = one;
            Box::pin(radio.event(heard))
        };
        let mut waits: Vec<_> = self.all.iter_mut().map(wait).collect();
        poll_fn(|cx| {
            for place in (first..count).chain(0..first) {
                if let Poll::Ready(event) = waits[place].as_mut().poll(cx) {
                    return Poll::Ready(event.map(|event| (place, event)));
                }
            }
            Poll::Pending
        })
        .await
    }

    /// Handles an event of the radio at this place.
    pub(super) async fn handle_event(
        &mut self,
        place: usize,
        event: RadioEvent,
        node: &mut Node,
    ) -> io::Result<()> {
        let one = &mut self.all[place];
        match event {
            RadioEvent::Received => {
                // A flooder of the radio costs little more than reading its frames: what is
                // done after each event is done once for all frames that have come.
                one.handle_frame(node);
                for _ in 1..BURST {
                    if !one.radio.try_receive(&mut one.heard) {
                        break;
                    }
                    one.handle_frame(node);
                }
            }
            RadioEvent::Grant => {
                one.requested = false;
                // The address may have changed with the interface since the last frame.
                node.set_address(one.port, one.radio.address());
                one.radio.look(|| node.deliveries(one.port));
                match node.fill(one.port, &mut self.frame) {
                    Some(Filled { to }) => {
                        // Requested first, so that the next frame takes part in the next backoff.
                        one.request(node).await?;
                        one.radio.transmit(&self.frame, to).await?;
                    }
                    // The grant is given back, or the medium would wait for a frame that does not
                    // come.
                    None => one.radio.decline().await?,
                }
            }
            RadioEvent::Report(report) => node.handle_tx_report(one.port, report),
            // Whether it sends where another one does may have changed, too.
            RadioEvent::Changed => self.tell(node),
        }

        Ok(())
    }

    /// Makes the changes that a reload asks for.
    pub(super) async fn change(&mut self, node: &mut Node) {
        for change in node.take_port_changes() {
            match change {
                PortChange::Rate(port, rate) => self.set_rate(port, rate),
                PortChange::Close(port) => {
                    self.all.retain(|one| one.port != port);
                    self.closed.retain(|(closed, _)| *closed != port);
                }
                PortChange::Open(port, entry) => self.closed.push((port, *entry)),
            }
        }
        self.open_closed(node).await;
    }

    /// Opens the radios that are closed, as far as that is possible now.
    pub(super) async fn open_closed(&mut self, node: &mut Node) {
        for (port, entry) in core::mem::take(&mut self.closed) {
            let name = &entry.name;
            let opened = match R::settings(&entry) {
                Some(settings) => R::open(settings, entry.place).await.map_err(|e| e.to_string()),
                None => Err(MIXED.to_owned()),
            };

            match opened {
                Ok(radio) => {
                    self.all.push(Driven::new(port, &entry, radio));
                    self.tell(node);
                }
                Err(e) => {
                    let description = format!("closed, {name}");
                    let hints = vec![format!("the port {name} is closed, and tried again: {e}")];
                    node.handle_port_news(
                        port,
                        PortNews { description, hints, ..PortNews::default() },
                    );
                    self.closed.push((port, entry));
                }
            }
        }
    }

    /// Tells the node how busy the channels are, where drivers tell.
    pub(super) fn look_at_carriers(&self, node: &mut Node) {
        for one in &self.all {
            if let Some(carrier) = one.radio.carrier() {
                node.handle_carrier(one.port, carrier);
            }
        }
    }

    fn set_rate(&mut self, port: Port, rate: Option<Rate>) {
        if let Some(one) = self.all.iter_mut().find(|one| one.port == port) {
            one.radio.set_rate(rate);
        }
    }
}
