//! A session's tree in the slotted model: each link with its parent, and with the number of
//! receivers that are reached over it (m).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Display;

/// A link of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hop {
    /// Its index among the network's links.
    pub link: usize,
    /// Index in the tree of the link before it (p(l)); none at the source.
    pub parent: Option<usize>,
    /// Receivers that are reached over it (m).
    pub receivers: u32,
    /// Index of the receiver at its far end, if one is there.
    pub receiver: Option<usize>,
}

/// The links of a session, each after its parent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    /// The links by distance from the source.
    pub hops: Vec<Hop>,
    /// Index of the link into each receiver, in the receivers' order.
    pub last: Vec<usize>,
}

/// Why links are not a tree from a source to its receivers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TreeError {
    /// An index exceeds the network's links.
    #[error("tree: there is no link {link}: allowed is 0 to {last}")]
    NoSuchLink {
        /// The index.
        link: usize,
        /// The largest.
        last: usize,
    },
    /// A node has two parents, or the source has one.
    #[error("tree: link {link} leads to {node}, which is {what}")]
    SecondWay {
        /// The link.
        link: usize,
        /// Where it leads.
        node: String,
        /// Why it must not.
        what: &'static str,
    },
    /// The source does not reach a link.
    #[error("tree: link {link} begins at {node}, which the tree does not reach from {source_node}")]
    Detached {
        /// The link.
        link: usize,
        /// Where it begins.
        node: String,
        /// The source.
        source_node: String,
    },
    /// There are no receivers.
    #[error("receivers: name one at least")]
    NoReceivers,
    /// A receiver is the source, or is named twice.
    #[error("receiver {node}: must not be the source, nor named twice")]
    BadReceiver {
        /// Its name.
        node: String,
    },
    /// No link of the tree leads to a receiver.
    #[error("receiver {node} is not reached by the tree")]
    Unreachable {
        /// Its name.
        node: String,
    },
}

impl Tree {
    /// Returns the tree from `source` to `receivers` whose links have the indices `tree` among
    /// `links`, each given as (from, to). Links that lead to no receiver are allowed; their m is 0.
    ///
    /// # Errors
    /// [`TreeError`] if it is no tree, or does not reach a receiver.
    pub fn new<N: Copy + Ord + Display>(
        links: &[(N, N)],
        tree: &[usize],
        source: N,
        receivers: &[N],
    ) -> Result<Self, TreeError> {
        // Exactly one link of a tree enters each node, so that link's place identifies the node.
        let order = ordered(links, tree, source)?;
        let places: BTreeMap<N, usize> =
            order.iter().enumerate().map(|(place, link)| (links[*link].1, place)).collect();
        let last = last_links(&places, source, receivers)?;

        // A link's parent is the link that enters the node where it begins.
        let hop = |link: usize| Hop {
            link,
            parent: places.get(&links[link].0).copied(),
            receivers: 0,
            receiver: None,
        };

        let mut hops: Vec<Hop> = order.into_iter().map(hop).collect();

        // A link's m is the number of receivers whose path uses it, so each receiver adds one to
        // every link from itself up to the source.
        for (receiver, place) in last.iter().enumerate() {
            hops[*place].receiver = Some(receiver);
            let mut at = Some(*place);
            while let Some(place) = at {
                hops[place].receivers += 1;
                at = hops[place].parent;
            }
        }

        Ok(Self { hops, last })
    }
}

/// Returns the tree's links, each after its parent.
fn ordered<N: Copy + Ord + Display>(
    links: &[(N, N)],
    tree: &[usize],
    source: N,
) -> Result<Vec<usize>, TreeError> {
    // One link of a tree enters each node, and none enters the source. A second one would be a
    // second way, on which packets arrive twice.
    let mut leaving: BTreeMap<N, Vec<usize>> = BTreeMap::new();
    let mut entered = BTreeSet::new();
    for link in tree.iter().copied() {
        let no_such = TreeError::NoSuchLink { link, last: links.len().saturating_sub(1) };
        let (from, to) = *links.get(link).ok_or(no_such)?;
        let second = |what| TreeError::SecondWay { link, node: to.to_string(), what };
        if to == source {
            return Err(second("the source"));
        }
        if !entered.insert(to) {
            return Err(second("reached by another link of it"));
        }
        leaving.entry(from).or_default().push(link);
    }

    // Breadth-first walk from the source, so that each link comes after its parent. Links that are
    // left over are not connected to the source.
    let mut order = Vec::with_capacity(tree.len());
    let mut nodes = VecDeque::from([source]);
    while let Some(node) = nodes.pop_front() {
        let onward = leaving.remove(&node).unwrap_or_default();
        nodes.extend(onward.iter().map(|link| links[*link].1));
        order.extend(onward);
    }

    match leaving.into_iter().next() {
        None => Ok(order),
        Some((node, cut)) => Err(TreeError::Detached {
            link: cut[0],
            node: node.to_string(),
            source_node: source.to_string(),
        }),
    }
}

/// Returns the index of the link into each receiver.
fn last_links<N: Copy + Ord + Display>(
    places: &BTreeMap<N, usize>,
    source: N,
    receivers: &[N],
) -> Result<Vec<usize>, TreeError> {
    if receivers.is_empty() {
        return Err(TreeError::NoReceivers);
    }

    // The source counts as named from the start, because it cannot be its own receiver.
    let mut named = BTreeSet::from([source]);
    let place = |receiver: &N| {
        let node = receiver.to_string();
        if !named.insert(*receiver) {
            return Err(TreeError::BadReceiver { node });
        }
        places.get(receiver).copied().ok_or(TreeError::Unreachable { node })
    };

    receivers.iter().map(place).collect()
}
