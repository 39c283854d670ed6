//! Lists the built files of the console, which are in `dist`, for the binary.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

fn main() -> std::io::Result<()> {
    println!("cargo::rerun-if-changed=dist");
    let root = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default());
    let mut files = Vec::new();
    list(&root.join("dist"), &mut files)?;
    files.sort();

    let mut code = String::from("&[\n");
    for file in files {
        let name = file.strip_prefix(root.join("dist")).unwrap_or(&file).display().to_string();
        let _ = writeln!(code, "    ({name:?}, include_bytes!({file:?})),");
    }
    code.push_str("]\n");
    let out = PathBuf::from(std::env::var("OUT_DIR").unwrap_or_default());
    fs::write(out.join("files.rs"), code)
}

/// Appends the files of a folder and of those in it.
fn list(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            list(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}
