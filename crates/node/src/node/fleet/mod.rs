//! Roll-outs of router images: this node as one that takes part in them, and as one that leads
//! some. [`ncmesh_fleet::rollout`] decides; this module carries its messages, files and hooks.
//!
//! Orders and reports are packets of the scheme that carries IP packets, as measurements are: it
//! reaches each node over several hops, and repairs losses. Manifests and images are files, sent by
//! the scheme that files are sent by to the nodes that said that they lack them.

mod clock;
mod events;
mod files;
mod leading;
mod member;
mod operator;
mod search;
mod serve;
mod status;
mod taking;
#[cfg(test)]
mod tests;
mod words;

use crate::config::FleetConfig;
use crate::identity::secret;
use crate::state::StateDir;
use files::{image_name, read_version};
use member::MemberSide;
use ncmesh_engine::file;
use ncmesh_engine::time::Instant;
use ncmesh_fleet::{Image, Trust, Version};
use ncmesh_wire::identity::SecretKey;
use ncmesh_wire::{FlowId, NodeId};
use operator::OperatorSide;
pub(crate) use operator::{Push, Source, not_applied};
use serde::de::DeserializeOwned;
pub(crate) use status::FleetNodes;
use std::path::{Path, PathBuf};

/// Most files that are remembered as arriving. Only a member that lies announces more of one name.
const MAX_ARRIVING: usize = 64;
/// Longest state that is read, bytes: a roll-out over some thousand nodes with its manifest.
const LONGEST_STATE: u64 = 16 << 20;

/// Parts of a node that takes part in roll-outs or leads them, read before it starts.
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
    /// Announced file that the node does not wait for, until its refusal is logged.
    unwanted: Option<FlowId>,
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
        Self { member, operator, unwanted: None }
    }

    /// Returns whether a file is refused because no roll-out here waits for it.
    pub(super) fn is_unwanted(&self, flow: FlowId) -> bool {
        self.unwanted == Some(flow)
    }

    /// Returns when [`Node::drive_fleet`] has something to do.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let member = self.member.as_ref().and_then(MemberSide::poll_timeout);
        let operator = self.operator.as_ref().and_then(OperatorSide::poll_timeout);
        member.into_iter().chain(operator).min()
    }

    /// Says whether a file of a roll-out is received, and where. `None` if the node does not wait
    /// for it.
    pub(super) fn place(&mut self, file: &file::Manifest) -> Option<PathBuf> {
        let side = self.member.as_mut()?;
        if !side.wants(file) {
            return None;
        }

        if side.arriving.len() < MAX_ARRIVING {
            side.arriving.insert(file.flow);
        }
        Some(side.config.dir.clone())
    }

    /// Returns the keys that releases are checked with, if this node takes part in roll-outs.
    fn trust(&self) -> Option<&Trust> {
        self.member.as_ref().map(|side| &side.config.trust)
    }

    /// Returns whether a directory is that of images.
    pub(super) fn is_place(&self, dir: &Path) -> bool {
        self.member.as_ref().is_some_and(|side| side.config.dir == dir)
    }

    /// Returns the file of an image, if this node leads its roll-out.
    fn own_image(&self, image: &Image) -> Option<PathBuf> {
        self.operator.as_ref()?.lead.as_ref()?.file(&image_name(image))
    }
}
