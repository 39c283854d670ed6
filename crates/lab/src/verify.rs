//! Compares received files with sent ones.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

/// Returns whether two files have the same contents, byte for byte.
///
/// # Errors
/// One of the files cannot be read.
pub async fn same_contents(a: &Path, b: &Path) -> io::Result<bool> {
    let (a, b): (PathBuf, PathBuf) = (a.into(), b.into());
    tokio::task::spawn_blocking(move || same(&a, &b)).await.map_err(io::Error::other)?
}

/// Compares two files without reading either into memory as a whole.
fn same(a: &Path, b: &Path) -> io::Result<bool> {
    let a = File::open(a)?;
    let b = File::open(b)?;
    if a.metadata()?.len() != b.metadata()?.len() {
        return Ok(false);
    }
    let mut a = BufReader::new(a);
    let mut b = BufReader::new(b);
    let mut of_a = vec![0; 1 << 16];
    let mut of_b = vec![0; 1 << 16];
    loop {
        let read = a.read(&mut of_a)?;
        if read == 0 {
            return Ok(b.read(&mut of_b)? == 0);
        }
        match b.read_exact(&mut of_b[..read]) {
            Ok(()) if of_a[..read] == of_b[..read] => {}
            Ok(()) => return Ok(false),
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
            Err(e) => return Err(e),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on stops there")]

    use super::same;
    use std::fs;

    #[test]
    fn only_equal_files_are_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, contents: &[u8]| {
            fs::write(dir.path().join(name), contents).unwrap();
            dir.path().join(name)
        };
        let long = vec![7; 200_000];
        let mut other = long.clone();
        other[150_000] = 8;
        let a = write("a", &long);
        let b = write("b", &long);
        assert!(same(&a, &b).unwrap());
        assert!(!same(&a, &write("c", &other)).unwrap());
        assert!(!same(&a, &write("d", &long[1..])).unwrap());
        assert!(same(&write("e", b""), &write("f", b"")).unwrap());
    }
}
