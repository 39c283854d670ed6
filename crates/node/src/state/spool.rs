//! Contents that a client hands over instead of the path of a file: standard input, a pipe, files
//! of `/proc`, whose length no file system knows. They are kept here until they are sent.

use crate::config::SpaceLimits;
use crate::root::Root;
use crate::store::space;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Directory in the state directory.
const DIR: &str = "spool";
/// Age from which contents are removed that no transfer sends: their client is gone.
const ABANDONED: Duration = Duration::from_secs(3600);

/// The directory of contents.
#[derive(Clone, Debug)]
pub struct Spool {
    state: Arc<Root>,
}

/// Contents that are being written.
#[derive(Debug)]
pub struct Contents {
    /// Their path, as a transfer names it.
    pub path: PathBuf,
    file: File,
    limits: SpaceLimits,
}

impl Contents {
    /// Appends bytes. The file system keeps the reserve that it keeps beside an inbox: standard
    /// input may have no end.
    ///
    /// # Errors
    /// They cannot be written, or there is no space.
    pub fn append(&mut self, data: &[u8]) -> io::Result<()> {
        space::check(&self.file, 0, data.len() as u64, &self.limits)?;
        self.file.write_all(data)
    }
}

impl Spool {
    pub(super) fn open(state: Arc<Root>) -> io::Result<Self> {
        state.make_dir(DIR)?;
        Ok(Self { state })
    }

    /// Makes an empty file for contents.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn create(&self) -> io::Result<Contents> {
        let name = Path::new(DIR).join(format!("{:016x}", getrandom::u64()?));
        let path = std::path::absolute(self.state.join(&name))?;
        let limits = SpaceLimits { max_bytes: None, reserve: None };
        Ok(Contents { path, file: self.state.create(&name)?, limits })
    }

    /// Removes contents that were sent, or will not be. Paths of other files are left alone.
    ///
    /// # Errors
    /// They cannot be removed.
    pub fn remove(&self, path: &Path) -> io::Result<()> {
        match self.name_of(path) {
            Some(name) => self.state.remove(name),
            None => Ok(()),
        }
    }

    /// Removes contents that no transfer sends, and that nothing was written to for an hour.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn collect(&self, sent: &BTreeSet<PathBuf>, now: SystemTime) -> io::Result<()> {
        for name in self.state.names(DIR)? {
            let name = Path::new(DIR).join(name);
            let path = std::path::absolute(self.state.join(&name))?;
            let changed = self.state.open_to_read(&name).and_then(|f| f.metadata()?.modified());

            let age = changed.map(|changed| now.duration_since(changed).unwrap_or_default());
            // A request may still be writing, so only what is old goes.
            if !sent.contains(&path) && age.is_ok_and(|age| age >= ABANDONED) {
                self.state.remove(&name)?;
            }
        }

        Ok(())
    }

    /// Returns the name of contents below the state directory; `None` for any other path.
    fn name_of(&self, path: &Path) -> Option<PathBuf> {
        let name = Path::new(DIR).join(path.file_name()?);
        (std::path::absolute(self.state.join(&name)).ok()? == path).then_some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::ErrorKind;

    #[test]
    fn contents_stay_until_they_are_sent_or_abandoned() {
        let dir = tempfile::tempdir().unwrap();
        let spool = Spool::open(Arc::new(Root::make(dir.path()).unwrap())).unwrap();
        let write = || {
            let mut contents = spool.create().unwrap();
            contents.append(b"text").unwrap();
            contents.path
        };
        let sent = write();
        let left = write();
        assert!(sent.is_absolute() && sent != left);
        let under_way = BTreeSet::from([sent.clone()]);
        spool.collect(&under_way, SystemTime::now()).unwrap();
        assert!(sent.exists() && left.exists(), "they are new");
        spool.collect(&under_way, SystemTime::now() + ABANDONED + ABANDONED).unwrap();
        assert!(sent.exists() && !left.exists());
        spool.remove(&sent).unwrap();
        assert!(!sent.exists());

        let mut contents = spool.create().unwrap();
        contents.limits.reserve = Some(u64::MAX);
        let error = contents.append(b"text").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StorageFull);

        // The files of users are theirs.
        let own = dir.path().join("own");
        std::fs::write(&own, "mine").unwrap();
        spool.remove(&own).unwrap();
        assert!(own.exists());
    }
}
