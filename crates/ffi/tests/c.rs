//! The header is that of the library; and a C program uses both.

use std::path::{Path, PathBuf};
use std::process::Command;

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Writes the header anew if `NCMESH_WRITE_HEADER` is set, as `make header` does.
#[test]
fn the_header_is_that_of_the_library() {
    let mut header = Vec::new();
    cbindgen::generate(folder()).unwrap().write(&mut header);
    let header = String::from_utf8(header).unwrap();
    let file = folder().join("include/ncmesh.h");
    if std::env::var_os("NCMESH_WRITE_HEADER").is_some() {
        std::fs::write(&file, &header).unwrap();
    }
    let there = std::fs::read_to_string(&file).unwrap();
    assert!(header == there, "include/ncmesh.h is not up to date: make header");
}

/// The static library, which cargo builds with this test.
fn library() -> PathBuf {
    // target/PROFILE/deps/c-...: the library is two folders up, or beside, as cargo likes it.
    let test = std::env::current_exe().expect("this test's path");
    let deps = test.parent().expect("a folder");
    let newest = |folder: &Path, name: &str| {
        let files =
            std::fs::read_dir(folder).expect("a folder").map(|file| file.expect("an entry").path());
        files
            .filter(|file| {
                let text = file.file_name().expect("a name").to_string_lossy().into_owned();
                text.starts_with(name) && text.ends_with(".a")
            })
            .max_by_key(|file| file.metadata().and_then(|m| m.modified()).expect("a time"))
    };
    newest(deps, "libncmesh-").or_else(|| newest(deps, "libncmesh.")).expect("cargo built it")
}

#[test]
fn a_program_in_c_codes_and_misuses() {
    let dir = tempfile::tempdir().unwrap();
    // With sanitizers, if the compiler has them; the plain program in any case.
    for sanitizers in [&[][..], &["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]] {
        let program = dir.path().join("coder");
        let mut compiler = Command::new("cc");
        compiler.args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-g"]).args(sanitizers);
        compiler.arg("-I").arg(folder().join("include")).arg(folder().join("tests/coder.c"));
        compiler.arg(library()).args(["-lpthread", "-ldl", "-lm", "-o"]).arg(&program);
        let compiled = compiler.output().expect("cc is needed");
        let errors = String::from_utf8_lossy(&compiled.stderr);
        assert!(compiled.status.success(), "{errors}");
        let ran = Command::new(&program).output().unwrap();
        let said = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.success() && ran.stdout == b"coder: ok\n", "{sanitizers:?}: {said}");
    }
}
