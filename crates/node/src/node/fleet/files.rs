//! Files of roll-outs: their names on the mesh, and the directory of the image. All that touches
//! the disk blocks, so it is called on other threads.

use crate::root::Root;
use crate::state::to_hex;
use ncmesh_fleet::{Image, ReleaseId, Version};
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::Path;

/// Begins the names of files of roll-outs. Other files are not called so.
const PREFIX: &str = "ncmesh-fleet-";
/// Ends the names of manifests.
const MANIFEST: &str = ".manifest";
/// Longest file with a version that is read, bytes.
const LONGEST_VERSION_FILE: u64 = 4096;

/// Returns whether a file is one of a roll-out, by its name.
pub(super) fn is_fleet_name(name: &str) -> bool {
    name.starts_with(PREFIX)
}

/// Returns whether a file of a roll-out is a manifest, by its name.
pub(super) fn is_manifest_name(name: &str) -> bool {
    name.ends_with(MANIFEST)
}

/// Returns the name of a release's manifest.
pub(super) fn manifest_name(release: ReleaseId) -> String {
    format!("{PREFIX}{release}{MANIFEST}")
}

/// Returns the name of an image. Images with one name are one image.
pub(super) fn image_name(image: &Image) -> String {
    format!("{PREFIX}{}", to_hex(&image.digests.blake3))
}

/// Reads the version that runs: the first line of a file.
pub(super) fn read_version(file: &Path) -> io::Result<Version> {
    let mut text = Vec::new();
    io::Read::read_to_end(&mut io::Read::take(File::open(file)?, LONGEST_VERSION_FILE), &mut text)?;
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().next().unwrap_or_default().trim();
    line.parse().map_err(|e| io::Error::new(io::ErrorKind::InvalidData, format!("{e}")))
}

/// Returns whether a file of the directory is the image, and reads it to its end.
pub(super) fn is_image(dir: &Path, image: &Image) -> io::Result<bool> {
    let file = Root::open_strict(dir)?.open_to_read(image_name(image));
    match file {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        file => image.is(file?),
    }
}

/// Returns whether a file with the image's name is there. It may be torn: a check follows.
pub(super) fn is_there(dir: &Path, image: &Image) -> io::Result<bool> {
    Root::make_strict(dir)?.has(image_name(image))
}

/// Copies the image from a file of the operator, whose node it is.
pub(super) fn copy(from: &Path, dir: &Path, image: &Image) -> io::Result<()> {
    let root = Root::make_strict(dir)?;
    let mut copied = root.create(image_name(image))?;
    io::copy(&mut File::open(from)?, &mut copied)?;
    copied.sync_all()
}

/// Reads a manifest that was received, and removes its file.
pub(super) fn take_manifest(dir: &Path, name: &OsStr) -> io::Result<Vec<u8>> {
    let root = Root::open_strict(dir)?;
    // One byte more than allowed is enough for the parser to see that it is too long.
    let bytes = root.read(name, ncmesh_fleet::MAX_BYTES as u64 + 1)?;
    root.remove(name)?;
    Ok(bytes)
}

/// Removes all files of roll-outs from the directory.
pub(super) fn discard(dir: &Path) -> io::Result<()> {
    let root = match Root::open_strict(dir) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        root => root?,
    };
    for name in root.names(".")? {
        if name.to_str().is_some_and(is_fleet_name) {
            root.remove(&name)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ncmesh_fleet::Digests;
    use std::fs;

    #[test]
    fn images_are_found_checked_and_removed() {
        let dir = tempfile::tempdir().unwrap();
        let staged = dir.path().join("staged");
        let source = dir.path().join("image.bin");
        fs::write(&source, "image").unwrap();
        let (size, digests) = Digests::read(&b"image"[..]).unwrap();
        let image = Image { model: "m".into(), file: "image.bin".into(), size, digests };

        assert!(!is_there(&staged, &image).unwrap());
        assert!(!is_image(&staged, &image).unwrap());
        copy(&source, &staged, &image).unwrap();
        fs::write(staged.join("notes"), "mine").unwrap();
        assert!(is_there(&staged, &image).unwrap() && is_image(&staged, &image).unwrap());

        // A power cut left half of it.
        fs::write(staged.join(image_name(&image)), "ima").unwrap();
        assert!(is_there(&staged, &image).unwrap() && !is_image(&staged, &image).unwrap());
        discard(&staged).unwrap();
        assert!(!is_there(&staged, &image).unwrap());
        assert_eq!(fs::read_to_string(staged.join("notes")).unwrap(), "mine");
        assert!(discard(&dir.path().join("nowhere")).is_ok());
    }

    #[test]
    fn the_version_is_the_first_line() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("version");
        fs::write(&file, "2026.11 \nbuilt on a Friday\n").unwrap();
        assert_eq!(read_version(&file).unwrap().as_str(), "2026.11");
        for text in ["", "\n1.0", "a b", "é"] {
            fs::write(&file, text).unwrap();
            assert!(read_version(&file).is_err(), "{text}");
        }
    }
}
