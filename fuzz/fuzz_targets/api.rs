//! Arbitrary bytes to a connection of the API of a whole node: every answer is HTTP, every error
//! has its code, and the node still answers afterwards.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ncmesh_node::NodeConfig;
use ncmesh_node::api::serve_connection;
use ncmesh_node::node::{Command, FleetStart, Handle, Node, Parts, Start};
use ncmesh_node::state::StateDir;
use ncmesh_node::stream::Ports;
use ncmesh_stack::trust::TrustConfig;
use ncmesh_wire::Salt;
use serde_json::Value;
use std::cell::RefCell;
use std::path::Path;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::UnboundedReceiver;

const CONFIG: &str = "[node]\nid = 3\n\
                      key = \"000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\"\n\
                      [radio]\nkind = \"udp\"\ninterface = \"lo\"\n";

/// A node and what it runs in. One serves all inputs, so that they meet what earlier ones left.
struct World {
    runtime: Runtime,
    node: Node,
    handle: Handle,
    calls: UnboundedReceiver<Command>,
    _state: TempDir,
}

thread_local! {
    static WORLD: RefCell<World> = RefCell::new(World::new());
}

fuzz_target!(|bytes: &[u8]| {
    // An inbox is made where a request says, and the fuzzer must not make directories anywhere.
    if bytes.windows(3).all(|word| word != b"dir") {
        WORLD.with_borrow_mut(|world| {
            world.exchange(bytes);
            let body = world.exchange(b"GET /v1/status HTTP/1.1\r\nconnection: close\r\n\r\n");
            assert!(body.starts_with("HTTP/1.1 200"), "{body}");
        });
    }
});

impl World {
    fn new() -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let state = tempfile::tempdir().unwrap();
        let config = NodeConfig::parse(Path::new("node.toml"), CONFIG.into()).unwrap();
        let (handle, calls) = Handle::new();
        let dir = StateDir::open(state.path()).unwrap();
        let parts = Parts {
            start: Start { salt: Salt([1; 16]), epoch: 1, seed: 1 },
            delivered: dir.delivered().unwrap(),
            fleet: FleetStart::default(),
            handle: handle.clone(),
            ports: Ports::new().0,
            set_log: Box::new(|_| ()),
            trust: TrustConfig::Key,
            state: dir,
        };
        let node = {
            let _inside = runtime.enter();
            Node::new(&config, parts).unwrap()
        };
        Self { runtime, node, handle, calls, _state: state }
    }

    /// Sends bytes over a connection, closes it, and returns everything that was answered.
    fn exchange(&mut self, bytes: &[u8]) -> String {
        let Self { runtime, node, handle, calls, .. } = self;
        let (server, mut client) = duplex(16 << 20);
        let answer = runtime.block_on(async {
            client.write_all(bytes).await.unwrap();
            client.shutdown().await.unwrap();
            let serving = serve_connection(server, handle.clone());
            tokio::pin!(serving);
            loop {
                tokio::select! {
                    () = &mut serving => break,
                    Some(call) = calls.recv() => {
                        call(node);
                        node.handle_events();
                    }
                }
            }
            let mut answer = Vec::new();
            client.read_to_end(&mut answer).await.unwrap();
            String::from_utf8(answer).expect("answers are text")
        });
        check(&answer);
        answer
    }
}

/// Checks the first answer of a connection.
fn check(answer: &str) {
    assert!(answer.is_empty() || answer.starts_with("HTTP/1."), "{answer}");
    let Some((head, body)) = answer.split_once("\r\n\r\n") else { return };
    let is_alone = !body.contains("HTTP/1.");
    let is_json = head.contains("application/json");
    if is_alone && is_json && !body.is_empty() {
        let body: Value = serde_json::from_str(body).expect("a body is whole");
        let is_error = head.split(' ').nth(1).is_some_and(|code| code >= "400");
        assert!(!is_error || (body["error"].is_string() && body["code"].is_string()), "{answer}");
    }
}
