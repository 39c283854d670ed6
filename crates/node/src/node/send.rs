//! Sending: who is meant, how the file is cut, and handing it to its engine.

use super::Node;
use crate::api::types::{ApiError, ErrorCode, Recipients};
use crate::state::{OutgoingFile, OutgoingJournal};
use ncmesh_engine::file::{Geometry, Outgoing, SendError, merkle};
use ncmesh_engine::topology::Metric;
use ncmesh_engine::wording::did_you_mean;
use ncmesh_wire::NodeId;
use std::collections::BTreeSet;
use std::fs::File;
use std::path::PathBuf;

/// Who is to get a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receivers {
    /// These.
    pub listed: Vec<NodeId>,
    /// And whoever joins.
    pub open: bool,
}

impl Node {
    /// The nodes that are meant.
    ///
    /// # Errors
    /// [`ErrorCode::UnknownReceiver`] and [`ErrorCode::UnreachableReceiver`] name who is known.
    pub fn resolve(&self, to: &Recipients) -> Result<Receivers, ApiError> {
        let names = match to {
            Recipients::All(_) => return self.everyone(),
            Recipients::Named(names) => names,
        };
        let mut listed = Vec::new();
        for name in names {
            let node = self.resolve_name(name)?;
            if !listed.contains(&node) {
                listed.push(node);
            }
        }
        if listed.is_empty() {
            return Err(ApiError::new(ErrorCode::BadRequest, "no receivers given"));
        }
        Ok(Receivers { listed, open: false })
    }

    /// How `scheme` cuts a file of `size` bytes.
    ///
    /// # Errors
    /// [`ErrorCode::BadRequest`] or [`ErrorCode::File`].
    pub fn cut(&mut self, scheme: &str, size: u64) -> Result<Geometry, ApiError> {
        let now = self.clock.now();
        let scheme = self.stack.scheme(scheme).ok_or(SendError::UnknownScheme);
        let mut stack = self.stack.at(now, &mut self.storage);
        scheme.and_then(|scheme| stack.geometry_for(scheme, size)).map_err(|e| refused(&e))
    }

    /// Hands a file to its engine, which announces it at once. Without `contents` and `leaves` (it
    /// vanished or changed since it was announced) the engine withdraws it once a receiver asks for
    /// it.
    ///
    /// # Errors
    /// [`ErrorCode::BadRequest`] or [`ErrorCode::File`].
    pub fn send(
        &mut self,
        file: OutgoingFile,
        contents: Option<File>,
        leaves: Vec<merkle::Hash>,
    ) -> Result<(), ApiError> {
        let flow = file.manifest.flow;
        // A state directory that was copied from another node, or whose node was renumbered.
        if flow.source != self.id() {
            let problem = format!("it was sent by node {}, this is {} now", flow.source, self.id());
            return Err(ApiError::new(ErrorCode::BadRequest, problem));
        }
        tracing::info!("{flow}: sending {}", file.path.display());
        let outgoing = Outgoing {
            manifest: file.manifest.clone(),
            leaves,
            receivers: file.receivers.clone(),
            done: file.done.clone(),
            open: file.open,
        };
        let now = self.clock.now();
        let scheme = self.stack.scheme(&file.scheme).ok_or(SendError::UnknownScheme);
        let mut stack = self.stack.at(now, &mut self.storage);
        let sent = scheme.and_then(|scheme| stack.send_file(scheme, outgoing));
        sent.map_err(|e| refused(&e))?;
        if let Some(contents) = contents {
            self.storage.provide(flow, contents);
        }
        self.files.send(flow);
        self.sending.insert(file);
        Ok(())
    }

    /// The journal of files being sent.
    #[must_use]
    pub fn outgoing_journal(&self) -> OutgoingJournal {
        self.state.outgoing()
    }

    /// Notes entries of the journal that cannot be resumed, so that people hear of them.
    pub fn note_damaged(&mut self, damaged: BTreeSet<PathBuf>) {
        self.sending.damaged = damaged;
    }

    /// This node's id.
    #[must_use]
    pub fn id(&self) -> NodeId {
        self.stack.node()
    }

    fn everyone(&self) -> Result<Receivers, ApiError> {
        let me = self.stack.node();
        let listed: Vec<NodeId> = self.stack.topology().nodes().filter(|n| *n != me).collect();
        if listed.is_empty() {
            return Err(ApiError::new(ErrorCode::UnknownReceiver, self.nobody_known()));
        }
        Ok(Receivers { listed, open: true })
    }

    pub(super) fn resolve_name(&self, name: &str) -> Result<NodeId, ApiError> {
        let topology = self.stack.topology();
        // A name comes first, then an id: a node may be called "7".
        let by_id = || name.parse().ok().map(NodeId).filter(|n| topology.state(*n).is_some());
        let named: Vec<NodeId> = topology.named(name).collect();
        let first = self.stack.node_named(name);
        if named.len() > 1 && first.is_none() {
            let ids: Vec<String> = named.iter().map(NodeId::to_string).collect();
            let problem = format!(
                "{} nodes are named {name:?}; send to one by its id ({}), and give each a name of \
                 its own",
                named.len(),
                ids.join(", ")
            );
            return Err(ApiError::new(ErrorCode::UnknownReceiver, problem));
        }
        let Some(node) = first.or_else(by_id) else {
            let known = self.known_names();
            let problem = if known.is_empty() {
                self.nobody_known()
            } else {
                let question = did_you_mean(name, known.split(", "));
                format!("no node named {name:?} is known; known are: {known}{question}")
            };
            return Err(ApiError::new(ErrorCode::UnknownReceiver, problem));
        };
        if node == self.stack.node() {
            let problem = format!("{name} is this very node; name other nodes");
            return Err(ApiError::new(ErrorCode::BadRequest, problem));
        }
        if !topology.paths_from(self.stack.node(), Metric::Unicast).reaches(node) {
            let problem = format!(
                "{name} is known but cannot be reached now; `ncmesh peers` shows who can; known \
                 are: {}",
                self.known_names()
            );
            return Err(ApiError::new(ErrorCode::UnreachableReceiver, problem));
        }
        Ok(node)
    }

    fn known_names(&self) -> String {
        let topology = self.stack.topology();
        let others = topology.nodes().filter(|node| *node != self.stack.node());
        others.map(|node| self.name_of(node)).collect::<Vec<_>>().join(", ")
    }

    fn nobody_known(&self) -> String {
        let hint = self.hints().into_iter().next();
        let hint = hint.unwrap_or_else(|| {
            "check the radio; a mesh takes some seconds to find its nodes after a start".into()
        });
        format!("no other node is known: {hint}")
    }
}

fn refused(e: &SendError) -> ApiError {
    ApiError::new(ErrorCode::File, e.to_string())
}
