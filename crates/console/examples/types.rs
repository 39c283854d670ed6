//! Writes the types of the schema in TypeScript to the console's source.

use std::path::Path;

fn main() -> std::io::Result<()> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../console/src/schema/messages.ts");
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory)?;
    }
    std::fs::write(path, ncmesh_console::schema::typescript())
}
