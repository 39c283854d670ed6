//! Writes the types of the HTTP API that the console uses in TypeScript to the console's source.

use std::path::Path;

fn main() -> std::io::Result<()> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../console/src/schema/api.ts");
    std::fs::write(path, ncmesh_node::api::typescript())
}
