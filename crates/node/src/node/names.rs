//! Names of nodes: which node a name means, and what a node is called.

use crate::api::types::{ApiError, ErrorCode, Recipients};
use ncmesh_engine::topology::Metric;
use ncmesh_engine::wording::did_you_mean;
use ncmesh_stack::Stack;
use ncmesh_wire::NodeId;

/// The nodes that are to get a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receivers {
    /// These.
    pub listed: Vec<NodeId>,
    /// And every node that joins.
    pub open: bool,
}

/// Returns a node's name; its id while its name is unknown.
pub(super) fn name_of(stack: &Stack, node: NodeId) -> String {
    if node == stack.node() {
        return stack.name().into();
    }
    let state = stack.topology().state(node);
    state.map_or_else(|| node.to_string(), |state| state.name.clone())
}

/// Returns the nodes that are meant. `hint` says why no other node may be known.
///
/// # Errors
/// [`ErrorCode::UnknownReceiver`] and [`ErrorCode::UnreachableReceiver`] name the nodes that are
/// known.
pub(super) fn resolve(
    stack: &Stack,
    to: &Recipients,
    hint: impl Fn() -> Option<String>,
) -> Result<Receivers, ApiError> {
    let names = match to {
        Recipients::All(_) => return everyone(stack, hint),
        Recipients::Named(names) => names,
    };

    // A node that is named twice, by name and by id, is one receiver.
    let mut listed = Vec::new();
    for name in names {
        let node = resolve_name(stack, name, &hint)?;
        if !listed.contains(&node) {
            listed.push(node);
        }
    }

    if listed.is_empty() {
        return Err(ApiError::new(ErrorCode::BadRequest, "no receivers given"));
    }
    Ok(Receivers { listed, open: false })
}

fn everyone(stack: &Stack, hint: impl Fn() -> Option<String>) -> Result<Receivers, ApiError> {
    let me = stack.node();
    let listed: Vec<NodeId> = stack.topology().nodes().filter(|n| *n != me).collect();
    if listed.is_empty() {
        return Err(ApiError::new(ErrorCode::UnknownReceiver, nobody_known(hint())));
    }
    Ok(Receivers { listed, open: true })
}

/// Returns the node of this name or id, which can be reached.
///
/// # Errors
/// As of [`resolve`].
pub(super) fn resolve_name(
    stack: &Stack,
    name: &str,
    hint: impl Fn() -> Option<String>,
) -> Result<NodeId, ApiError> {
    let topology = stack.topology();

    // A name comes first, then an id: a node may be called "7".
    let by_id = || name.parse().ok().map(NodeId).filter(|n| topology.state(*n).is_some());
    let named: Vec<NodeId> = topology.named(name).collect();
    let first = stack.node_named(name);
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
        let known = known_names(stack);
        let problem = if known.is_empty() {
            nobody_known(hint())
        } else {
            let question = did_you_mean(name, known.split(", "));
            format!("no node named {name:?} is known; known are: {known}{question}")
        };

        return Err(ApiError::new(ErrorCode::UnknownReceiver, problem));
    };

    if node == stack.node() {
        let problem = format!("{name} is this very node; name other nodes");
        return Err(ApiError::new(ErrorCode::BadRequest, problem));
    }

    if !topology.paths_from(stack.node(), Metric::Unicast).reaches(node) {
        let problem = format!(
            "{name} is known but cannot be reached now; `ncmesh peers` shows who can; known \
             are: {}",
            known_names(stack)
        );
        return Err(ApiError::new(ErrorCode::UnreachableReceiver, problem));
    }

    Ok(node)
}

fn known_names(stack: &Stack) -> String {
    let topology = stack.topology();
    let others = topology.nodes().filter(|node| *node != stack.node());
    others.map(|node| name_of(stack, node)).collect::<Vec<_>>().join(", ")
}

fn nobody_known(hint: Option<String>) -> String {
    let hint = hint.unwrap_or_else(|| {
        "check the radio; a mesh takes some seconds to find its nodes after a start".into()
    });
    format!("no other node is known: {hint}")
}
