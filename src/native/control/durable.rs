//! Files that are there as a whole, or as they were before.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use crate::native::clock::unix_secs;

/// Replaces the file at `path`; durable on return. `path` with [`UNFINISHED`] behind it is used on the way.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let unfinished = beside(path, UNFINISHED);
    create(&unfinished, bytes)?;
    rename(&unfinished, path)
}

/// What is behind the name of a file that is being written.
const UNFINISHED: &str = ".unfinished";

/// Makes a file that only its owner can read, in place of what another process has left when it was killed; durable on
/// return.
pub(super) fn create(path: &Path, bytes: &[u8]) -> io::Result<()> {
    remove(path)?;
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    sync_folder(path)
}

/// Gives a file another name, in place of what has that; durable on return.
pub(super) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)?;
    sync_folder(to)
}

/// Gives a file a name that no other has, `why` in it, and gives that back; durable on return.
pub(super) fn move_aside(path: &Path, why: &str) -> io::Result<PathBuf> {
    let names = (0u32..).map(|number| beside(path, &format!(".{why}-{}-{number}", unix_secs())));
    let aside = names.into_iter().find(|aside| !aside.exists()).unwrap_or_else(|| beside(path, why));
    rename(path, &aside)?;
    Ok(aside)
}

/// Removes a file, if there is one.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// What is in a file, if there is one, and if it has no more than `bytes_max` bytes; else `Err(None)` for one that has.
pub(super) fn read(path: &Path, bytes_max: u64) -> Result<Option<Vec<u8>>, Option<io::Error>> {
    let file = match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        result => result.map_err(Some)?,
    };
    let mut bytes = Vec::new();
    file.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes).map_err(Some)?;
    if bytes.len() as u64 > bytes_max { Err(None) } else { Ok(Some(bytes)) }
}

/// `path` with `ending` behind it.
pub(super) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(ending);
    name.into()
}

/// A file has its name for good only once its folder is written, too.
fn sync_folder(path: &Path) -> io::Result<()> {
    #[cfg(test)]
    faults::strike()?;
    if cfg!(unix) {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}

/// Folders that cannot be written, for tests.
#[cfg(test)]
pub(super) mod faults {
    use std::cell::Cell;
    use std::io;

    thread_local! {
        static GOOD: Cell<Option<u32>> = const { Cell::new(None) };
    }

    /// From now on, in this thread, so many writes of folders succeed, and no more; all for `None`.
    pub(in super::super) fn after(good: Option<u32>) {
        GOOD.set(good);
    }

    pub(super) fn strike() -> io::Result<()> {
        match GOOD.get() {
            Some(0) => Err(io::Error::other("the folder cannot be written")),
            good => {
                GOOD.set(good.map(|good| good - 1));
                Ok(())
            }
        }
    }
}
