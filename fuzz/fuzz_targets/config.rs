//! Arbitrary `node.toml`: it is read, or refused with one line that says what is wrong. With a key
//! before it, the rest of a configuration is reached more often.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ncmesh_node::NodeConfig;
use std::path::Path;

const HEAD: &str = "[node]\nid = 3\nkey = \"000102030405060708090a0b0c0d0e0f101112131415161718191a\
                    1b1c1d1e1f\"\n[radio]\nkind = \"udp\"\ninterface = \"lo\"\n";

fuzz_target!(|text: &str| {
    // The fuzzer must not open files of this machine.
    if !text.contains("key_file") {
        check(text);
        check(&format!("{HEAD}{text}"));
    }
});

fn check(text: &str) {
    match NodeConfig::parse(Path::new("node.toml"), text) {
        Ok(config) => {
            // A node can name itself, and an error found later finds its place in the file.
            assert!(!config.name.is_empty());
            assert!(!config.blame("tunnel", "no").to_string().is_empty());
        }
        Err(e) => {
            let message = e.to_string();
            assert!(message.starts_with("node.toml"), "{message}");
        }
    }
}
