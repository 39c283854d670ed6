//! A small mesh for tests.

use ncmesh_console::schema::{
    Count, Flow, FlowState, Hop, KEY_S, Key, Layer, Link, LinkTable, Meta, Node, NodeTable, Places,
    Position, Rank, ReceiverState, Rollout, RolloutNodeState, RolloutState, SCHEMA, Source, Stage,
    Stream, StreamReceiverState, StreamState, TICK_S, Transfer, TransferState,
};

/// Returns a mesh of two nodes that send something of everything. The name of one is hostile.
pub(crate) fn meta() -> Meta {
    let position = Some(Position::Earth { latitude: 55.68, longitude: 12.57 });
    Meta {
        schema: SCHEMA,
        source: Source::Simulation,
        version: "0.1.0".into(),
        scenario: Some("pair".into()),
        seed: Some(Count(u64::MAX)),
        schemes: vec!["cascade".into()],
        bit_rate_bps: Some(11e6),
        tick_s: TICK_S,
        key_s: KEY_S,
        observer: None,
        nodes: vec![
            Node { id: 1, name: "<script>alert(1)</script>".into(), position },
            Node { id: 2, name: "b".into(), position: None },
        ],
        links: vec![
            Link { from: 1, to: 2, loss: Some(0.25), ports: vec!["wlan0".into(), "roof".into()] },
            Link { from: 2, to: 1, loss: None, ports: Vec::new() },
        ],
        transfers: vec![Transfer {
            id: "1-00000001".into(),
            name: "file".into(),
            scheme: "cascade".into(),
            from: 1,
            to: vec![2],
            bytes: Count(1 << 60),
            generations: Some(7),
        }],
        flows: vec![Flow {
            from: 1,
            to: 2,
            protocol: Some("udp".into()),
            rate_bps: None,
            packet_bytes: Some(1100),
        }],
        streams: vec![Stream {
            group: "news".into(),
            scheme: "multirate".into(),
            from: 1,
            layers: vec![Layer { name: "base".into(), rate_bps: Some(5e5) }],
            to: vec![2],
        }],
        rollouts: vec![Rollout {
            number: Count(u64::MAX),
            name: "town".into(),
            version: "1.1".into(),
            from: 1,
        }],
    }
}

/// Returns a state of that mesh at `time_s`, in which every counter has one of `numbers`, which are
/// used again and again.
pub(crate) fn state(time_s: f64, numbers: &[u32]) -> Key {
    let mut next = numbers.iter().copied().cycle();
    let mut number = || next.next().unwrap_or(0);
    let mut counts = |rows: usize| (0..rows).map(|_| Count(number().into())).collect::<Vec<_>>();
    // The second node, and the losses of the second link, are not known.
    let mut column = |known: usize| {
        let known = counts(known).into_iter().map(Some);
        known.chain([None, None]).take(2).collect::<Vec<_>>()
    };
    let nodes = NodeTable {
        control: column(1),
        data: column(1),
        coded: column(1),
        control_us: column(1),
        data_us: column(1),
        coded_us: column(1),
        ..NodeTable::default()
    };
    let links = LinkTable {
        heard: column(2),
        channel: column(1),
        collision: column(1),
        innovative: column(2),
        redundant: column(2),
        delivery: vec![],
    };
    let receiver = ReceiverState {
        node: 2,
        bytes: counts(1)[0],
        innovative: Some(counts(1)[0]),
        ..ReceiverState::default()
    };
    let transfer = TransferState { packets: Some(counts(1)[0]), ..TransferState::default() };
    let flow = FlowState {
        offered: Some(counts(1)[0]),
        delivered: Some(counts(1)[0]),
        bits: Some(counts(1)[0]),
        ..FlowState::default()
    };
    let stream_receiver =
        StreamReceiverState { node: 2, packets: counts(1), bits: counts(1), ..Default::default() };
    let stream = StreamState { taken: counts(1), ..StreamState::default() };
    let share = f64::from(number() % 101) / 100.0;
    let generation = number() % 7;
    let is_told = generation > 0;
    let node = RolloutNodeState {
        node: 2,
        running: is_told.then(|| "1.0".into()),
        standing: is_told.then(|| "staged".into()),
        heard_s: is_told.then_some(f64::from(generation)),
        ..RolloutNodeState::default()
    };
    let rollout = RolloutState {
        stage: "pushing".into(),
        batch: is_told.then_some(1),
        nodes: vec![node],
        ..RolloutState::default()
    };
    Key {
        time_s,
        nodes: NodeTable {
            up: vec![number() % 2 == 0, true],
            queue: vec![Some(number() % 3), None],
            ..nodes
        },
        links: LinkTable {
            delivery: vec![(number() % 3 > 0).then_some(share), Some(0.5)],
            ..links
        },
        transfers: vec![TransferState {
            stage: Some(if number() % 2 == 0 { Stage::Open } else { Stage::Complete }),
            forwarders: Some((0..(number() % 3) as u16).collect()),
            receivers: vec![ReceiverState {
                complete: (0..generation).collect(),
                rank: Some(Rank { generation, rank: number() % 33, size: 32 }),
                ..receiver
            }],
            ..transfer
        }],
        flows: vec![FlowState {
            delay_s: Some(share),
            queue: (number() % 4 > 0).then_some(u64::from(number() % 3)),
            scheme: "braid".into(),
            why: if number() % 2 == 0 { "no second flow".into() } else { String::new() },
            coded_share: Some(share),
            rtt_s: (number() % 5 > 0).then_some(share),
            min_rtt_s: Some(0.25),
            ..flow
        }],
        streams: vec![StreamState {
            receivers: vec![stream_receiver],
            tree: vec![Hop { node: 2, parent: 1 }; (number() % 2) as usize],
            ..stream
        }],
        rollouts: vec![rollout],
        places: Some(Places {
            x_dm: vec![(number() % 1000) as i32, -((number() % 9) as i32)],
            y_dm: vec![(number() % 3) as i32, -7],
            z_dm: vec![0, 0],
        }),
    }
}
