//! Arbitrary sequences of authenticated frames at a node that sends and receives files: malformed
//! hellos with link states, comparisons, announcements, data and acknowledgments.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ncmesh_engine::Event;
use ncmesh_engine::file::{Allowance, FileLimits, GenerationSet, Manifest, Outgoing, merkle};
use ncmesh_engine::registry::{Scheme, ServiceKind};
use ncmesh_engine::storage::MemoryStorage;
use ncmesh_engine::time::Instant;
use ncmesh_engines::registry;
use ncmesh_stack::{Stack, StackConfig};
use ncmesh_wire::{Cipher, FlowId, NodeId, Salt, Sealer, ServiceId, Versions};

/// Control, and the services of all engines.
const SERVICES: [u8; 13] = [0, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27];

fn stack(storage: &mut MemoryStorage) -> Stack {
    let config = StackConfig {
        node: NodeId(1),
        name: "n1".into(),
        profile: Default::default(),
        salt: Salt([1; 16]),
        epoch: 1,
        seed: 1,
        mtu: 1500,
        versions: Versions::OWN,
        cipher: Cipher::Null,
        trust: Default::default(),
        link: Default::default(),
        route: Default::default(),
        share: Default::default(),
        engines: toml::Table::new(),
        file: FileLimits { kept: 4, memory: 1 << 20 },
    };
    let mut stack = Stack::new(config, registry(), Instant::default()).expect("defaults are valid");
    stack.trust_all();
    for (i, entry) in registry().of(ServiceKind::File).enumerate() {
        let scheme = registry().scheme(entry.name).expect("it is of the registry");
        send(&mut stack, scheme, i as u32 + 1, storage);
    }
    stack
}

/// Sends a file to node 2 by `scheme`.
fn send(stack: &mut Stack, scheme: Scheme, serial: u32, storage: &mut MemoryStorage) {
    let contents = vec![7; 5000];
    let geometry = stack.at(Instant::default(), storage).geometry_for(scheme, 5000).unwrap();
    let digest = merkle::digest(contents.as_slice(), &geometry).unwrap();
    let root = merkle::MerkleTree::new(digest.leaves.clone(), geometry.depth()).root();
    let flow = FlowId { source: NodeId(1), serial };
    storage.provide(flow, contents);
    let manifest = Manifest { flow, name: "f".into(), geometry, root, hash: digest.whole };
    let receivers = vec![NodeId(2)];
    let outgoing = Outgoing {
        manifest,
        leaves: digest.leaves,
        receivers,
        done: Default::default(),
        open: true,
        allowance: Allowance::default(),
    };
    stack.at(Instant::default(), storage).send_file(scheme, outgoing).unwrap();
}

fn settle(stack: &mut Stack, storage: &mut MemoryStorage, now: Instant) {
    while let Some(event) = stack.poll_event() {
        match event {
            // Large files are refused, as a real inbox would find no space for them.
            Event::Announced(m) if m.geometry.generations() < 4096 => {
                let none = GenerationSet::none(m.geometry.generations());
                stack.at(now, storage).accept(m.flow, &none);
            }
            Event::Assembled(flow) => stack.at(now, storage).delivered(flow),
            _ => {}
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let mut storage = MemoryStorage::default();
    let mut stack = stack(&mut storage);
    let mut senders: Vec<Sealer> =
        (2..5).map(|id| Sealer::new(Cipher::Null, NodeId(id), Salt([2; 16]))).collect();
    let mut rest = data;
    let mut out = Vec::new();
    let mut now = 0u64;
    // Each input frame: sender, service, kind, milliseconds since the last, length, body.
    while let [sender, service, kind, wait, len, body @ ..] = rest {
        now += u64::from(*wait) * 1_000_000;
        let at = Instant::from_nanos(now);
        // Short bodies in steps of a byte, and long ones up to more than a frame.
        let len = usize::from(*len);
        let len = if len < 128 { len } else { (len - 128) * 12 };
        let (body, behind) = body.split_at(len.min(body.len()));
        rest = behind;
        Sealer::begin(
            &mut out,
            ServiceId(SERVICES[usize::from(*service) % SERVICES.len()]),
            *kind % 5,
        );
        out.extend_from_slice(body);
        senders[usize::from(*sender) % 3].seal(&mut out, Versions::OWN.newest);
        stack.at(at, &mut storage).handle_datagram(&out);
        settle(&mut stack, &mut storage, at);
        stack.at(at, &mut storage).handle_timeout();
        for tunnel in registry().of(ServiceKind::Tunnel) {
            let Some(scheme) = stack.scheme(tunnel.name) else { continue };
            let _ = stack.at(at, &mut storage).send_packet(scheme, NodeId(2), &[7; 40]);
        }
        for _ in 0..4 {
            if stack.at(at, &mut storage).fill(&mut out).is_none() {
                break;
            }
            assert!(out.len() <= 1500);
        }
        settle(&mut stack, &mut storage, at);
    }
    let _ = stack.transfers();
});
