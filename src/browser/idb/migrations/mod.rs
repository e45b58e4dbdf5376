//! The versions of the database, one file a step. A step changes what object stores there are, in the transaction of the
//! upgrade; what is in the records is the business of the store, and of its own format number.

mod v1;

use indexed_db_futures::database::Database;
use indexed_db_futures::error::Error;

/// The newest version.
pub(super) const VERSION: u8 = 1;
/// The object store of all that is read when a store is opened.
pub(super) const INDEX: &str = "index";
/// The object store of packed events.
pub(super) const SEGMENTS: &str = "segments";

/// Brings a database of version `old`, 0 for a new one, to the newest.
pub(super) fn run(old: f64, database: &Database) -> Result<(), Error> {
    if old < 1.0 {
        v1::run(database)?;
    }
    Ok(())
}
