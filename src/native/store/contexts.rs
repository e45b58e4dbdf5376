//! Who brought events. Events of one batch that one peer has brought follow each other, so a row holds for many of them.

use redb::WriteTransaction;

use super::error::StoreFault;
use super::layout;
use crate::store::RequestContext;
use crate::store::entry::Sequence;

pub(super) fn write(
    transaction: &WriteTransaction,
    contexts: &[(Sequence, Sequence, RequestContext)],
) -> Result<(), StoreFault> {
    if contexts.is_empty() {
        return Ok(());
    }
    let mut table = transaction.open_table(layout::CONTEXTS)?;
    for (first, last, context) in contexts {
        let mut row = last.to_le_bytes().to_vec();
        serde_json::to_writer(&mut row, context).expect("a context has only strings and numbers");
        table.insert(first, row.as_slice())?;
    }
    Ok(())
}

pub(super) fn find(tables: &layout::Tables, sequence: Sequence) -> Result<Option<RequestContext>, StoreFault> {
    let Some(table) = &tables.contexts else { return Ok(None) };
    let Some(row) = table.range(..=sequence)?.next_back() else { return Ok(None) };
    let (first, row) = row?;
    let damaged = || StoreFault::Damaged(format!("the context of event number {}", first.value()));
    let (last, json) = row.value().split_first_chunk().ok_or_else(damaged)?;
    if sequence > Sequence::from_le_bytes(*last) {
        return Ok(None);
    }
    serde_json::from_slice(json).map(Some).map_err(|_| damaged())
}
