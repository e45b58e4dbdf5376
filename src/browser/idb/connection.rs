//! The connection to a database: made when it is needed, let go when others want it.

use std::cell::RefCell;
use std::rc::{Rc, Weak};

use indexed_db_futures::database::{Database, VersionChangeListener};
use indexed_db_futures::prelude::*;

use super::failure::{failed, not_opened};
use super::migrations::{self, VERSION};
use crate::store::packed::BackingError;

/// A connection that may have been lost. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct Connection {
    inner: Rc<Inner>,
}

#[derive(Debug)]
struct Inner {
    name: String,
    database: RefCell<Option<Database>>,
}

impl Connection {
    pub(super) async fn open(name: &str) -> Result<Self, BackingError> {
        let inner = Inner { name: name.to_owned(), database: RefCell::default() };
        let connection = Self { inner: Rc::new(inner) };
        connection.usable().await?;
        Ok(connection)
    }

    pub(super) fn name(&self) -> &str {
        &self.inner.name
    }

    /// A database on which a transaction can begin: the one that there is, or one that is opened again.
    pub(super) async fn usable(&self) -> Result<Database, BackingError> {
        if let Some(database) = self.inner.database.borrow().clone().filter(is_open) {
            return Ok(database);
        }
        let opening = Database::open(self.inner.name.clone()).with_version(VERSION);
        let opening = opening.with_on_upgrade_needed(|event, database| migrations::run(event.old_version(), &database));
        let database = opening.await.map_err(not_opened)?;
        let changes = database.version_changes().map_err(failed)?;
        *self.inner.database.borrow_mut() = Some(database.clone());
        wasm_bindgen_futures::spawn_local(yield_to(changes, database.clone(), Rc::downgrade(&self.inner)));
        Ok(database)
    }

    pub(super) fn close(&self) {
        if let Some(database) = self.inner.database.take() {
            database.close();
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(database) = self.database.take() {
            database.close();
        }
    }
}

/// Can a transaction begin? What comes to nothing in it does not matter.
fn is_open(database: &Database) -> bool {
    database.transaction([migrations::INDEX]).build().is_ok()
}

/// Lets go of the database as soon as somebody wants to change or delete it. Transactions that have begun come to their
/// end first.
async fn yield_to(mut changes: VersionChangeListener, database: Database, owner: Weak<Inner>) {
    // Nothing comes once the browser has closed it.
    let _ = changes.recv().await;
    if let Some(owner) = owner.upgrade() {
        owner.database.take();
    }
    database.close();
}
