//! Directories in which files are opened without following symbolic links.
//!
//! Others than the daemon's user may write to an inbox or a state directory. They could put a
//! symbolic link, a hard link or a pipe in the place of a file of the daemon, which would then
//! write wherever that leads, with the daemon's rights. A [`Root`] opens plain files of one name
//! only, and only below itself: by `openat2` with `RESOLVE_BENEATH` and `RESOLVE_NO_SYMLINKS`, and
//! component by component with `O_NOFOLLOW` where the kernel (before Linux 5.6) has no such call.
//! A state directory is chosen by the operator and may be a symbolic link. The links on the way to
//! an inbox are followed once, when the operator names it ([`without_links`]), and never again.

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, RenameFlags, ResolveFlags, fstat, linkat, mkdirat,
    openat, openat2, renameat, renameat_with, statat, unlinkat,
};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::{File, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};
use std::time::SystemTime;

/// Mode of new files, less the process's mask.
const FILE_MODE: Mode = Mode::from_raw_mode(0o666);
/// Length of a block as `st_blocks` counts them, bytes.
const BLOCK: u64 = 512;
/// Mode of new directories, less the process's mask.
const DIR_MODE: Mode = Mode::from_raw_mode(0o777);

/// Directory in which files are opened without following symbolic links.
#[derive(Debug)]
pub(crate) struct Root {
    dir: OwnedFd,
    path: PathBuf,
}

impl Root {
    /// Opens the directory `path`. Follows symbolic links on the way there.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = openat(CWD, path, flags, Mode::empty())?;
        Ok(Self { dir, path: path.to_owned() })
    }

    /// Opens the directory `path`, and makes it if it is absent. An error if a symbolic link is on
    /// the way there: somebody may have put it in the place of an inbox.
    pub(crate) fn make_strict(path: &Path) -> io::Result<Self> {
        match Self::open_strict(path) {
            // Opened strictly afterwards, too: a link may have come in between.
            Err(e) if e.kind() == ErrorKind::NotFound => {
                std::fs::create_dir_all(path)?;
                Self::open_strict(path)
            }
            opened => opened,
        }
    }

    /// Opens the directory `path`. An error if a symbolic link is on the way there.
    pub(crate) fn open_strict(path: &Path) -> io::Result<Self> {
        // Opened from `/` or `.`, so that every component below is checked.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let start = Path::new(if path.is_absolute() { "/" } else { "." });
        let below = path.strip_prefix("/").unwrap_or(path);
        let below = if below.as_os_str().is_empty() { Path::new(".") } else { below };

        let start = openat(CWD, start, flags | OFlags::CLOEXEC, Mode::empty())?;
        let dir = open_beneath(start.as_fd(), below, flags, Mode::empty()).map_err(|e| {
            // A link in the place of a directory is either, by the call.
            let is_link = [Errno::LOOP, Errno::NOTDIR].map(|e| Some(e.raw_os_error()));
            if is_link.contains(&e.raw_os_error()) {
                let shown = path.display();
                let problem = format!("{shown} is no directory, or leads through a symbolic link");
                return io::Error::new(ErrorKind::InvalidInput, problem);
            }

            e
        })?;

        Ok(Self { dir, path: path.to_owned() })
    }

    /// Opens the directory `path`. Makes it if it is absent.
    pub(crate) fn make(path: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(path)?;
        Self::open(path)
    }

    /// Returns the path of a file in this directory, for people.
    pub(crate) fn join(&self, file: impl AsRef<Path>) -> PathBuf {
        self.path.join(file)
    }

    /// Makes the directory `dir` unless it exists.
    pub(crate) fn make_dir(&self, dir: impl AsRef<Path>) -> io::Result<()> {
        let (parent, name) = self.parent_of(dir.as_ref())?;
        match mkdirat(&parent, name, DIR_MODE) {
            // It may be a link to a directory elsewhere, which this refuses.
            Err(Errno::EXIST) => {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY;
                open_beneath(self.dir.as_fd(), dir.as_ref(), flags, Mode::empty()).map(drop)
            }
            made => Ok(made?),
        }
    }

    /// Makes the directory `dir`. An error if anything has its name.
    pub(crate) fn make_new_dir(&self, dir: impl AsRef<Path>) -> io::Result<()> {
        let (parent, name) = self.parent_of(dir.as_ref())?;
        Ok(mkdirat(&parent, name, DIR_MODE)?)
    }

    /// Returns whether `dir` is a directory, and no link to one.
    pub(crate) fn has_dir(&self, dir: impl AsRef<Path>) -> io::Result<bool> {
        let (parent, name) = self.parent_of(dir.as_ref())?;
        match statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => Ok(false),
            found => Ok(FileType::from_raw_mode(found?.st_mode) == FileType::Directory),
        }
    }

    /// Sets the mode of the directory `dir`, and the time of its last change if that is given.
    pub(crate) fn set_dir(
        &self,
        dir: impl AsRef<Path>,
        mode: u32,
        modified: Option<SystemTime>,
    ) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let dir = open_beneath(self.dir.as_fd(), dir.as_ref(), flags, Mode::empty())?;
        let dir = File::from(dir);
        dir.set_permissions(Permissions::from_mode(mode))?;
        modified.map_or(Ok(()), |time| dir.set_modified(time))
    }

    /// Opens an existing file for reading.
    pub(crate) fn open_to_read(&self, file: impl AsRef<Path>) -> io::Result<File> {
        self.open_plain(file.as_ref(), OFlags::RDONLY)
    }

    /// Opens a file for reading and writing. Makes it if it is absent, and keeps what is in it.
    pub(crate) fn open_to_write(&self, file: impl AsRef<Path>) -> io::Result<File> {
        self.open_plain(file.as_ref(), OFlags::RDWR | OFlags::CREATE)
    }

    /// Opens a file for reading and appending. Makes it if it is absent.
    pub(crate) fn open_to_append(&self, file: impl AsRef<Path>) -> io::Result<File> {
        self.open_plain(file.as_ref(), OFlags::RDWR | OFlags::APPEND | OFlags::CREATE)
    }

    /// Makes an empty file in the place of whatever has its name, and opens it for writing.
    pub(crate) fn create(&self, file: impl AsRef<Path>) -> io::Result<File> {
        self.remove(&file)?;
        self.open_plain(file.as_ref(), OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL)
    }

    /// Returns the first `limit` bytes of a file, or nothing if the file does not exist.
    pub(crate) fn read(&self, file: impl AsRef<Path>, limit: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        match self.open_to_read(file) {
            Err(e) if e.kind() == ErrorKind::NotFound => {}
            file => drop(file?.take(limit).read_to_end(&mut bytes)?),
        }
        Ok(bytes)
    }

    /// Replaces a file's contents so that a power loss leaves either the old contents or the new:
    /// writes another file, forces it to disk, and renames it.
    pub(crate) fn replace(&self, file: impl AsRef<Path>, contents: &[u8]) -> io::Result<()> {
        let file = file.as_ref();
        let aside = file.with_extension("new");
        let mut written = self.create(&aside)?;
        written.write_all(contents)?;
        written.sync_all()?;
        // Renamed after the contents are on disk: the name must never lead to half a file.
        let (parent, name) = self.parent_of(file)?;
        renameat(&parent, aside.file_name().unwrap_or_default(), &parent, name)?;
        // The directory too, or a power loss could bring the old file back.
        File::from(parent).sync_all()
    }

    /// Removes a file if it exists.
    pub(crate) fn remove(&self, file: impl AsRef<Path>) -> io::Result<()> {
        let (parent, name) = self.parent_of(file.as_ref())?;
        match unlinkat(parent, name, AtFlags::empty()) {
            Err(Errno::NOENT) => Ok(()),
            removed => Ok(removed?),
        }
    }

    /// Removes an empty directory. One that is absent or in use stays as it is.
    pub(crate) fn remove_dir(&self, dir: impl AsRef<Path>) -> io::Result<()> {
        let (parent, name) = self.parent_of(dir.as_ref())?;
        match unlinkat(parent, name, AtFlags::REMOVEDIR) {
            Err(Errno::NOENT | Errno::NOTEMPTY | Errno::EXIST) => Ok(()),
            removed => Ok(removed?),
        }
    }

    /// Renames a file, but never over another one.
    pub(crate) fn rename_to_free(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (from_dir, from) = self.parent_of(from)?;
        let (to_dir, to) = self.parent_of(to)?;
        match renameat_with(&from_dir, from, &to_dir, to, RenameFlags::NOREPLACE) {
            // For file systems without such a call (for instance NFS): add a second name, then
            // remove the first.
            Err(Errno::INVAL | Errno::NOSYS) => {
                linkat(&from_dir, from, &to_dir, to, AtFlags::empty())?;
                Ok(unlinkat(&from_dir, from, AtFlags::empty())?)
            }
            renamed => Ok(renamed?),
        }
    }

    /// Returns whether something has this name, be it a symbolic link that leads nowhere.
    pub(crate) fn has(&self, file: impl AsRef<Path>) -> io::Result<bool> {
        let (parent, name) = self.parent_of(file.as_ref())?;
        match statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => Ok(false),
            found => Ok(found.map(|_| true)?),
        }
    }

    /// Returns the bytes that a plain file takes on the disk; none if it does not exist.
    pub(crate) fn allocated(&self, file: impl AsRef<Path>) -> io::Result<u64> {
        let (parent, name) = self.parent_of(file.as_ref())?;
        match statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
            // Blocks, not length: a part file is sparse.
            Ok(found) if FileType::from_raw_mode(found.st_mode) == FileType::RegularFile => {
                Ok(found.st_blocks as u64 * BLOCK)
            }
            Ok(_) | Err(Errno::NOENT) => Ok(0),
            Err(e) => Err(e.into()),
        }
    }

    /// Returns the names in the directory `dir`.
    pub(crate) fn names(&self, dir: impl AsRef<Path>) -> io::Result<Vec<OsString>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let dir = open_beneath(self.dir.as_fd(), dir.as_ref(), flags, Mode::empty())?;
        let mut names = Vec::new();
        for entry in Dir::new(dir)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name != "." && name != ".." {
                names.push(name.to_owned());
            }
        }

        Ok(names)
    }

    /// Makes it durable that `file` was made, renamed or removed.
    pub(crate) fn sync_parent(&self, file: impl AsRef<Path>) -> io::Result<()> {
        File::from(self.parent_of(file.as_ref())?.0).sync_all()
    }

    /// Opens a file below this directory. An error unless it is a plain file, with no other name if
    /// it is to be written.
    fn open_plain(&self, file: &Path, flags: OFlags) -> io::Result<File> {
        let mode = if flags.contains(OFlags::CREATE) { FILE_MODE } else { Mode::empty() };

        // A pipe in the file's place must not make the daemon wait for its other end.
        let flags = flags | OFlags::NONBLOCK | OFlags::NOCTTY;
        let opened = open_beneath(self.dir.as_fd(), file, flags, mode).map_err(|e| match e {
            e if e.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => {
                self.refused(file, "is or leads through a symbolic link")
            }
            e => e,
        })?;

        let found = fstat(&opened)?;
        if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
            return Err(self.refused(file, "is no plain file"));
        }

        if flags.intersects(OFlags::WRONLY | OFlags::RDWR) && found.st_nlink > 1 {
            return Err(self.refused(file, "has a second name (a hard link)"));
        }
        Ok(File::from(opened))
    }

    fn refused(&self, file: &Path, why: &str) -> io::Error {
        let shown = self.join(file).display().to_string();
        io::Error::new(ErrorKind::InvalidInput, format!("{shown} {why}; remove it"))
    }

    /// Opens the directory that holds `file`. Returns it with the file's name in it.
    fn parent_of<'a>(&self, file: &'a Path) -> io::Result<(OwnedFd, &'a OsStr)> {
        let name = file.file_name().ok_or(ErrorKind::InvalidInput)?;
        let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let parent = parent.unwrap_or(Path::new("."));
        Ok((open_beneath(self.dir.as_fd(), parent, flags, Mode::empty())?, name))
    }
}

/// Returns `path` with the symbolic links on the way there resolved, as far as it exists.
pub(crate) fn without_links(path: &Path) -> PathBuf {
    for existing in path.ancestors() {
        if let Ok(real) = existing.canonicalize() {
            return match path.strip_prefix(existing) {
                Ok(rest) if rest.as_os_str().is_empty() => real,
                Ok(rest) => real.join(rest),
                Err(_) => path.to_owned(),
            };
        }
    }

    path.to_owned()
}

/// Opens `path` below `dir` without following symbolic links.
fn open_beneath(
    dir: BorrowedFd<'_>,
    path: &Path,
    flags: OFlags,
    mode: Mode,
) -> io::Result<OwnedFd> {
    let flags = flags | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    match openat2(dir, path, flags, mode, resolve) {
        // Filters of system calls in containers answer EPERM for those they do not know.
        Err(Errno::NOSYS | Errno::PERM) => open_by_components(dir, path, flags, mode),
        opened => Ok(opened?),
    }
}

/// Like [`open_beneath`], by a descriptor for each directory on the way.
fn open_by_components(
    dir: BorrowedFd<'_>,
    path: &Path,
    flags: OFlags,
    mode: Mode,
) -> io::Result<OwnedFd> {
    let mut at = dir.try_clone_to_owned()?;
    let mut components = path.components().peekable();
    while let Some(component) = components.next() {
        // A parent directory (`..`) would lead out of this one.
        if !matches!(component, Component::Normal(_) | Component::CurDir) {
            return Err(ErrorKind::InvalidInput.into());
        }

        let through = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let is_last = components.peek().is_none();
        let (flags, mode) = if is_last { (flags, mode) } else { (through, Mode::empty()) };
        at = openat(&at, component.as_os_str(), flags | OFlags::NOFOLLOW, mode)?;
    }

    Ok(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    /// A directory with a victim beside it, which nothing below the root may touch.
    struct Fixture {
        _dir: tempfile::TempDir,
        root: Root,
        victim: PathBuf,
    }

    impl Fixture {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let victim = dir.path().join("victim");
            fs::write(&victim, "untouched").unwrap();
            let root = Root::make(&dir.path().join("root")).unwrap();
            fs::create_dir(dir.path().join("elsewhere")).unwrap();
            fs::write(dir.path().join("elsewhere/file"), "untouched").unwrap();
            symlink(&victim, root.join("link")).unwrap();
            symlink("nowhere", root.join("dangling")).unwrap();
            symlink("../elsewhere", root.join("dir")).unwrap();
            fs::hard_link(&victim, root.join("hard")).unwrap();
            Self { _dir: dir, root, victim }
        }

        fn check(&self) {
            assert_eq!(fs::read(&self.victim).unwrap(), b"untouched");
            let elsewhere = self.victim.with_file_name("elsewhere/file");
            assert_eq!(fs::read(elsewhere).unwrap(), b"untouched");
            assert!(!self.root.join("nowhere").exists());
        }
    }

    #[test]
    fn an_inbox_that_became_a_link_is_not_opened() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        let inbox = dir.join("home/inbox");
        let elsewhere = dir.join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        // The operator may choose a link. It is followed then.
        symlink(&elsewhere, dir.join("chosen")).unwrap();
        assert_eq!(without_links(&dir.join("chosen/new/inbox")), elsewhere.join("new/inbox"));
        assert_eq!(without_links(&inbox), inbox);
        assert_eq!(without_links(Path::new("nowhere/inbox")), Path::new("nowhere/inbox"));

        Root::make_strict(&inbox).unwrap();
        for swapped in [inbox.as_path(), inbox.parent().unwrap()] {
            let aside = dir.join("aside");
            fs::rename(swapped, &aside).unwrap();
            symlink(&elsewhere, swapped).unwrap();
            for opened in [Root::open_strict(&inbox), Root::make_strict(&inbox)] {
                assert!(opened.unwrap_err().to_string().contains("symbolic link"));
            }
            fs::remove_file(swapped).unwrap();
            fs::rename(&aside, swapped).unwrap();
        }
        Root::open_strict(&inbox).unwrap();
        assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
    }

    #[test]
    fn nothing_is_opened_through_a_link() {
        let fixture = Fixture::new();
        let root = &fixture.root;
        for file in ["link", "dangling", "dir/file", "dir/new", "../victim"] {
            assert!(root.open_to_read(file).is_err(), "{file}");
            assert!(root.open_to_write(file).is_err(), "{file}");
            assert!(root.open_to_append(file).is_err(), "{file}");
            assert!(root.read(file, 100).is_err(), "{file}");
        }
        assert!(root.open_to_write("hard").is_err());
        assert!(root.make_dir("dir").is_err());
        assert!(root.make_dir("link").is_err());
        assert!(root.names("dir").is_err());
        let problem = root.open_to_write("link").unwrap_err().to_string();
        assert!(problem.contains("root/link") && problem.contains("symbolic link"), "{problem}");
        fixture.check();
    }

    #[test]
    fn what_replaces_or_removes_a_link_leaves_its_target() {
        let fixture = Fixture::new();
        let root = &fixture.root;
        symlink(&fixture.victim, root.join("file.new")).unwrap();
        root.replace("file", b"new").unwrap();
        root.replace("link", b"new").unwrap();
        root.replace("hard", b"new").unwrap();
        root.create("dangling").unwrap();
        for file in ["file", "link", "hard"] {
            assert_eq!(fs::read(root.join(file)).unwrap(), b"new", "{file}");
        }
        root.remove("link").unwrap();
        assert!(!root.has("link").unwrap());
        assert!(root.remove("dir/file").is_err());
        assert!(root.rename_to_free(Path::new("hard"), Path::new("dir/x")).is_err());
        fixture.check();
    }

    #[test]
    fn a_pipe_in_a_files_place_is_refused_at_once() {
        let fixture = Fixture::new();
        let pipe = fixture.root.join("pipe");
        rustix::fs::mknodat(CWD, &pipe, FileType::Fifo, FILE_MODE, 0).unwrap();
        assert!(fixture.root.open_to_read("pipe").is_err());
        assert!(fixture.root.open_to_write("pipe").is_err());
    }

    #[test]
    fn kernels_without_openat2_follow_no_links_either() {
        let fixture = Fixture::new();
        let root = &fixture.root;
        fs::create_dir(root.join("plain")).unwrap();
        fs::write(root.join("plain/file"), "mine").unwrap();
        let open = |file: &str, flags| {
            let mode = if flags == OFlags::RDONLY { Mode::empty() } else { FILE_MODE };
            open_by_components(root.dir.as_fd(), Path::new(file), flags, mode)
        };
        for file in ["link", "dangling", "dir/file", "../victim", "/etc/passwd"] {
            assert!(open(file, OFlags::RDONLY).is_err(), "{file}");
            assert!(open(file, OFlags::RDWR | OFlags::CREATE).is_err(), "{file}");
        }
        let mut read = String::new();
        let file = open("./plain/file", OFlags::RDONLY).unwrap();
        File::from(file).read_to_string(&mut read).unwrap();
        assert_eq!(read, "mine");
        assert!(open("plain", OFlags::RDONLY | OFlags::DIRECTORY).is_ok());
        fixture.check();
    }
}
