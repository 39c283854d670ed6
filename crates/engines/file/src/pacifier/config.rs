//! Settings of Pacifier.

use ncmesh_engine::topology::Metric;

ncmesh_engine::choices! {
    /// Building blocks of the paper that are in use (Table I).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum Variant {
        /// Tree-based opportunistic routing alone: TREE.
        Tree = "tree",
        /// With source rate limiting: TREE+RL.
        TreeRl = "tree_rl",
        /// With round-robin batching too: TREE+RL+RRB, the whole of Pacifier.
        #[default]
        TreeRlRrb = "tree_rl_rrb",
        /// Round-robin batching without source rate limiting. For radios that do not share a
        /// channel, where the wait for a child's transmission only costs time. Not in the paper.
        TreeRrb = "tree_rrb",
    }
}

ncmesh_engine::settings! {
    /// `[pacifier]` in configuration files.
    #[derive(Clone, Debug, PartialEq)]
    pub struct PacifierConfig {
        /// Building blocks in use (Table I of the paper).
        pub variant: Variant = Variant::TreeRlRrb;
        /// Transmissions of a node, from the fewest (0) to the most (1) that any of its children
        /// needs (III-C.2), equation (3). The paper's figures use 0 in IV-B.4 and 1 from IV-B.5 on.
        pub knob: f64 = 1.0, within 0..=1;
        /// Packets of a generation (k). Larger generations cost more header and more work per
        /// packet.
        pub generation: u8 = 32, within 1..=255, unit "packets";
        /// Payload of a packet.
        pub symbol_size: Option<u16> = None, absent "as large as fits", within 64..=65_535,
            unit "bytes";
        /// Time that the source waits to overhear a child, in packet times for each packet its
        /// children owe (III-B). The paper uses 8, which is best where all nodes hear each other.
        /// Wide meshes with fading are two to three times as fast with 1.
        pub timeout_factor: f64 = 8.0, within 0..=1000, unit "packet times";
        /// Whether the source learns how long its children take (mean and mean deviation) and waits
        /// no longer than that, at most for `timeout_factor`. Not in the paper.
        pub learned_wait: bool = false;
        /// ETX of the tree and its order: 1/d_f, or 1/(d_f d_r). Acknowledgments always use the
        /// latter. The paper leaves it open (see ERRATA.md).
        pub metric: Metric = Metric::Broadcast;
    }
}
