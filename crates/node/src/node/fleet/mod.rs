//! Roll-outs of router images: this node as one that takes part in them, and as one that leads
//! some. [`ncmesh_fleet::rollout`] decides; this module carries its messages, files and hooks.
//!
//! Orders and reports are packets of the scheme that carries IP packets, as measurements are: it
//! reaches each node over several hops, and repairs losses. Manifests and images are files, sent by
//! the scheme that files are sent by to the nodes that said that they lack them.

mod files;
mod member;
mod operator;
mod status;

use super::{Moment, Node};
use crate::config::FleetConfig;
use crate::identity::secret;
use crate::state::StateDir;
use files::{is_fleet_name, read_version};
use member::MemberSide;
use ncmesh_engine::counters::DropReason;
use ncmesh_engine::file::Manifest;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::topology::Metric;
use ncmesh_fleet::Version;
use ncmesh_fleet::rollout::Packet;
use ncmesh_host::files::Known;
use ncmesh_host::gateway::Mesh;
use ncmesh_wire::NodeId;
use ncmesh_wire::identity::SecretKey;
use operator::OperatorSide;
pub(crate) use operator::{Push, Source, not_applied};
use serde::de::DeserializeOwned;
pub(crate) use status::FleetNodes;

/// Longest state that is read, bytes: a roll-out over some thousand nodes with its manifest.
const LONGEST_STATE: u64 = 16 << 20;

/// Returns the time as roll-outs see it.
fn since_start(now: Instant) -> Duration {
    now.since(Instant::default())
}

/// What a node needs to take part in roll-outs, read before it starts.
#[derive(Default)]
pub struct FleetStart {
    /// Version that runs.
    running: Option<Version>,
    member: member::Saved,
    /// Key of the operator whose node this is.
    key: Option<SecretKey>,
    operator: operator::Saved,
}

impl FleetStart {
    /// Reads the version that runs, the operator's key, and what is left of earlier starts.
    ///
    /// # Errors
    /// A file that a setting names cannot be used, in words.
    pub fn read(config: Option<&FleetConfig>, state: &StateDir) -> Result<Self, String> {
        let Some(FleetConfig { member, operator_key }) = config else { return Ok(Self::default()) };
        let mut start = Self::default();
        if let Some(member) = member {
            let file = &member.version_file;
            let failed = |e| format!("version_file: {} has no version: {e}", file.display());
            start.running = Some(read_version(file).map_err(failed)?);
            start.member = saved(state, member::STATE);
        }
        if let Some(file) = operator_key {
            start.key = Some(secret(file).map_err(|e| format!("operator_key: {e}"))?);
            start.operator = saved(state, operator::STATE);
        }
        Ok(start)
    }
}

/// Returns what an earlier start saved. A file that is damaged is as one that is not there: the
/// mesh tells again what goes on.
fn saved<T: DeserializeOwned + Default>(state: &StateDir, name: &str) -> T {
    let text = state.read(name, LONGEST_STATE);
    if text.is_empty() {
        return T::default();
    }
    serde_json::from_slice(&text).unwrap_or_else(|e| {
        tracing::warn!("{name} in the state directory is damaged: {e}");
        T::default()
    })
}

/// Roll-outs at this node.
#[derive(Default)]
pub(super) struct Fleet {
    member: Option<MemberSide>,
    operator: Option<OperatorSide>,
}

impl Fleet {
    pub(super) fn new(
        now: Instant,
        node: NodeId,
        config: Option<&FleetConfig>,
        start: FleetStart,
    ) -> Self {
        let config = config.and_then(|config| config.member.clone());
        let member = config
            .zip(start.running)
            .map(|(config, running)| MemberSide::new(now, node, config, running, start.member));
        let operator = start.key.map(|key| OperatorSide::new(now, key, start.operator));
        Self { member, operator }
    }

    /// Returns when [`Node::drive_fleet`] has something to do.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let member = self.member.as_ref().and_then(MemberSide::poll_timeout);
        let operator = self.operator.as_ref().and_then(OperatorSide::poll_timeout);
        member.into_iter().chain(operator).min()
    }
}

impl Node {
    /// Goes on with roll-outs: what is due, and what could not be done before.
    pub(super) fn drive_fleet(&mut self) {
        let now = self.clock.now();
        self.drive_member(now);
        self.drive_operator(now);
    }

    /// Takes a packet of a roll-out that came through the mesh.
    pub(super) fn handle_fleet_packet(&mut self, from: NodeId, packet: &[u8]) {
        let handled = match Packet::parse(packet) {
            Err(_) => Err(DropReason::Malformed),
            Ok(Packet::Order(order)) => self.handle_fleet_order(from, &order),
            // A report is believed of the node alone that it is about.
            Ok(Packet::Report { report, .. }) if report.node.0 != from.0 => {
                Err(DropReason::Untrusted)
            }
            Ok(Packet::Report { report, model }) => self.handle_fleet_report(&report, model),
        };
        if let Err(why) = handled {
            self.stack.at(self.clock.now(), &mut self.storage).note_drop(why);
        }
    }

    /// Sends a packet of a roll-out. Returns whether there was a way to the node and room for it.
    fn send_fleet(&mut self, to: NodeId, packet: &Packet) -> bool {
        if to == self.id() {
            // The operator's own node takes part as others do.
            self.handle_fleet_packet(to, &packet.to_bytes());
            return true;
        }
        let paths = self.stack.topology().paths_from(self.id(), Metric::Unicast);
        if !paths.reaches(to) {
            return false;
        }
        let scheme = self.packet_scheme().map(|choice| choice.scheme);
        let mut moment = Moment::now(&self.clock, &mut self.stack, &mut self.storage);
        moment.mesh(scheme).send(to, &packet.to_bytes()).is_ok()
    }

    /// Returns what is known of an announced file, and makes place for it if it is one of a
    /// roll-out that this node waits for.
    pub(super) fn known(&mut self, file: &Manifest) -> Option<Known> {
        if !is_fleet_name(&file.name) {
            return self.inbox.known(&self.stack, file);
        }
        // Whoever may send files here, an image of the roll-out counts by its hash.
        let Some(place) = self.fleet.place(file) else { return Some(Known::Unwelcome) };
        self.files.expect(file.flow, place);
        self.inbox.was_delivered(file).then_some(Known::Delivered)
    }

    /// Returns whether a received file is one of a roll-out.
    pub(super) fn is_fleet_file(file: &Manifest) -> bool {
        is_fleet_name(&file.name)
    }
}
