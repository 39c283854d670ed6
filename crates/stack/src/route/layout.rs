//! Description of link-state frames.

use super::LINK_STATE;
use ncmesh_engine::layout::{
    Charset, Count, FlowOf, Layout, Part, VERSION, field, node, scaled, text, u16,
};

/// Layouts of the frames of this service.
pub const LAYOUTS: &[Layout] = &[Layout {
    kind: LINK_STATE,
    name: "link_state",
    variant: None,
    info: "of {link_state.origin+}",
    flow: FlowOf::None,
    batch: None,
    parts: &[Part::Repeat(Count::ToEnd(0, usize::MAX), &[STATE])],
}];

const STATE: Part = Part::Group {
    name: "link_state",
    label: "Link state",
    text: "Link state of {link_state.origin} ({link_state.name})",
    parts: &[
        field(node("link_state.origin", "Origin", "the node that the state is of")),
        VERSION,
        field(text("link_state.name", Charset::Any, "Name", "of the origin, see below")),
        field(u16("link_state.count", "Neighbours", "how many follow")),
        Part::Repeat(Count::Field("link_state.count"), &[NEIGHBOUR]),
    ],
};

const NEIGHBOUR: Part = Part::Group {
    name: "neighbour",
    label: "Neighbour",
    text: "Neighbour {neighbour.node}: {neighbour.delivery}",
    parts: &[
        field(node("neighbour.node", "Node", "a node that the origin hears")),
        field(scaled(
            "neighbour.delivery",
            (1, 255),
            "Delivery",
            "share of its probes that arrives at the origin",
        )),
    ],
};
