//! What exceptions of IndexedDB mean.

use indexed_db_futures::error::{DomException, Error, OpenDbError};

use crate::store::packed::BackingError;

/// Something failed, by its own fault or since the quota is used up.
pub(super) fn failed(error: Error) -> BackingError {
    match &error {
        Error::DomException(exception) => match named(exception).as_str() {
            "QuotaExceededError" => BackingError::Quota(exception.message()),
            "InvalidStateError" | "AbortError" | "TransactionInactiveError" => BackingError::Lost(exception.message()),
            name => BackingError::Failed(format!("{name}: {}", exception.message())),
        },
        _ => BackingError::Failed(error.to_string()),
    }
}

/// The same where whatever fails is the connection.
pub(super) fn lost(error: Error) -> BackingError {
    match failed(error) {
        BackingError::Failed(detail) => BackingError::Lost(detail),
        other => other,
    }
}

/// The database cannot be opened.
pub(super) fn not_opened(error: OpenDbError) -> BackingError {
    match error {
        OpenDbError::Base(Error::DomException(exception)) if named(&exception) == "VersionError" => {
            BackingError::NewerFormat
        }
        OpenDbError::Base(error) => failed(error),
        OpenDbError::UnsupportedEnvironment | OpenDbError::NullFactory => {
            BackingError::Failed("there is no IndexedDB here: use storage in memory".to_owned())
        }
        OpenDbError::VersionZero => BackingError::Failed(error.to_string()),
    }
}

fn named(exception: &DomException) -> String {
    web_sys::DomException::from(exception.clone()).name()
}
