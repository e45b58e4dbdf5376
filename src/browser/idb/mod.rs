//! IndexedDB as what a [packed store](crate::store::packed) is kept in.
//!
//! A database has two object stores of plain bytes under names: all records of the index are read when a store is opened,
//! of the segments the names alone. A transaction of IndexedDB commits by itself as soon as somebody waits for something
//! else, so all that a write does is queued at once, and then its end is awaited. The first request of a write reads the
//! epoch; if it is another's, the transaction is aborted.
//!
//! When another page wants to change or delete the database, or the browser closes it, the connection is let go: what was
//! begun comes to its end, and what comes next opens it again, once. A database that is deleted meanwhile comes back empty,
//! and the store that had it is deposed.

mod connection;
mod estimate;
mod failure;
mod migrations;

pub use estimate::{Estimate, estimate};

use bytes::Bytes;
use indexed_db_futures::error::Error;
use indexed_db_futures::object_store::ObjectStore;
use indexed_db_futures::prelude::*;
use indexed_db_futures::transaction::{
    Transaction, TransactionDurability, TransactionFinishKind, TransactionMode, TransactionOptions,
};
use wasm_bindgen::{JsCast, JsValue};

use self::connection::Connection;
use self::failure::{failed, lost};
use self::migrations::{INDEX, SEGMENTS};
use crate::store::packed::backing::{Backing, BackingError, Contents, Durability, EPOCH, Name, Shelf, Write, epoch_of};

/// A database of the browser. Clones share one connection.
#[derive(Debug, Clone)]
pub struct IndexedDb {
    connection: Connection,
}

impl IndexedDb {
    /// Opens the database `name`, which is made if there is none.
    ///
    /// # Errors
    /// There is no IndexedDB here, it is not allowed, or a later version has made the database.
    pub async fn open(name: &str) -> Result<Self, BackingError> {
        Ok(Self { connection: Connection::open(name).await? })
    }

    /// Deletes the database `name`. Connections to it are closed first; those of other programs may keep this waiting.
    ///
    /// # Errors
    /// It cannot be deleted.
    pub async fn delete(name: &str) -> Result<(), BackingError> {
        let deleting = indexed_db_futures::database::Database::delete_by_name(name);
        let deleting = deleting.map_err(|error| BackingError::Failed(error.to_string()))?;
        deleting.await.map_err(|error| BackingError::Failed(error.to_string()))
    }

    /// Lets go of the database. What comes next opens it again.
    pub fn close(&self) {
        self.connection.close();
    }
}

impl Backing for IndexedDb {
    fn name(&self) -> &str {
        self.connection.name()
    }

    async fn load(&self) -> Result<Contents, BackingError> {
        let database = self.connection.usable().await?;
        let transaction = database.transaction([INDEX, SEGMENTS]).build().map_err(lost)?;
        let index = transaction.object_store(INDEX).map_err(failed)?;
        let names = index.get_all_keys::<String>().primitive().map_err(failed)?;
        let values = index.get_all::<JsValue>().primitive().map_err(failed)?;
        let segments = transaction.object_store(SEGMENTS).map_err(failed)?;
        let segments = segments.get_all_keys::<String>().primitive().map_err(failed)?;
        let names: Vec<String> = names.await.map_err(lost)?.collect::<Result<_, Error>>().map_err(failed)?;
        let values: Vec<JsValue> = values.await.map_err(lost)?.collect::<Result<_, Error>>().map_err(failed)?;
        let index = names.into_iter().zip(values).map(|(name, value)| Ok((name, bytes_of(value)?)));
        Ok(Contents {
            index: index.collect::<Result<_, BackingError>>()?,
            segments: segments.await.map_err(lost)?.collect::<Result<_, Error>>().map_err(failed)?,
        })
    }

    async fn read(&self, names: Vec<String>) -> Result<Vec<Option<Bytes>>, BackingError> {
        let database = self.connection.usable().await?;
        let transaction = database.transaction([SEGMENTS]).build().map_err(lost)?;
        let store = transaction.object_store(SEGMENTS).map_err(failed)?;
        let mut requests = Vec::with_capacity(names.len());
        for name in names {
            requests.push(store.get::<JsValue, String, String>(name).primitive().map_err(failed)?);
        }
        let mut records = Vec::with_capacity(requests.len());
        for request in requests {
            records.push(request.await.map_err(lost)?.map(bytes_of).transpose()?);
        }
        Ok(records)
    }

    async fn write(&self, write: Write) -> Result<(), BackingError> {
        let database = self.connection.usable().await?;
        let durability = match write.durability {
            Durability::Relaxed => TransactionDurability::Relaxed,
            Durability::Strict => TransactionDurability::Strict,
        };
        let mut options = TransactionOptions::new();
        options.set_durability(durability);
        let transaction = database.transaction([INDEX, SEGMENTS]).with_mode(TransactionMode::Readwrite);
        let transaction = transaction.with_options(options).build().map_err(lost)?;
        let (index, segments) = stores(&transaction)?;
        let epoch = index.get::<JsValue, String, String>(EPOCH.to_owned()).primitive().map_err(failed)?;
        let mut done = transaction.on_done().map_err(failed)?;
        let store_of = |name: &Name| if name.shelf == Shelf::Index { &index } else { &segments };
        for name in &write.deletes {
            store_of(name).delete(name.name.clone()).primitive().map_err(failed)?;
        }
        let mut puts = Vec::with_capacity(write.puts.len());
        for (name, bytes) in &write.puts {
            let value = JsValue::from(js_sys::Uint8Array::from(&bytes[..]));
            puts.push(store_of(name).put(value).with_key(name.name.clone()).primitive().map_err(failed)?);
        }
        let found = epoch.await.map_err(lost)?.map(bytes_of).transpose()?;
        if epoch_of(found.as_deref()) != write.epoch {
            transaction.abort().await.map_err(failed)?;
            return Err(BackingError::Deposed);
        }
        let mut kind = (&mut done).await;
        if kind == TransactionFinishKind::Err {
            // The request that failed says why; the abortion that follows says no more.
            for put in puts {
                put.await.map_err(failed)?;
            }
            kind = TransactionFinishKind::Abort;
        }
        match (kind, transaction.error()) {
            (TransactionFinishKind::Ok, _) => Ok(()),
            (_, Some(error)) => Err(failed(error)),
            (_, None) => Err(BackingError::Lost("a transaction was aborted".to_owned())),
        }
    }
}

fn stores<'t>(transaction: &'t Transaction<'_>) -> Result<(ObjectStore<'t>, ObjectStore<'t>), BackingError> {
    let store = |name| transaction.object_store(name).map_err(failed);
    Ok((store(INDEX)?, store(SEGMENTS)?))
}

fn bytes_of(value: JsValue) -> Result<Bytes, BackingError> {
    match value.dyn_into::<js_sys::Uint8Array>() {
        Ok(array) => Ok(array.to_vec().into()),
        Err(_) => Err(BackingError::Failed("a record of the database is no bytes".to_owned())),
    }
}
