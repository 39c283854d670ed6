//! Writes what is generated from the declarations of frames: the tables of the Wireshark dissector
//! and of the wire format, and seeds for fuzzing.
//!
//! ```console
//! cargo run -p ncmesh-tests --example frames
//! ```

use ncmesh_tests::frames::{DISSECTOR, SEEDS, TABLES, dissector, document, root, seeds};
use std::fs;

fn main() -> std::io::Result<()> {
    fs::write(root().join(DISSECTOR), dissector())?;
    fs::write(root().join(TABLES), document())?;
    fs::create_dir_all(root().join(SEEDS))?;
    for (name, bytes) in seeds() {
        fs::write(root().join(SEEDS).join(name), bytes)?;
    }
    Ok(())
}
