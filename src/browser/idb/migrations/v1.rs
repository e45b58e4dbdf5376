//! Version 1: two object stores of bytes, under names that are given with them.

use indexed_db_futures::database::Database;
use indexed_db_futures::error::Error;
use indexed_db_futures::prelude::*;

use super::{INDEX, SEGMENTS};

pub(super) fn run(database: &Database) -> Result<(), Error> {
    for name in [INDEX, SEGMENTS] {
        database.create_object_store(name).build()?;
    }
    Ok(())
}
