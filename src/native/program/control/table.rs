//! Lines whose columns stand below each other.

use crate::native::program::status::printable;

/// Rows, one a line; the last column is as long as it is.
pub(super) fn table<const COLUMNS: usize>(rows: impl IntoIterator<Item = [String; COLUMNS]>) -> String {
    let rows: Vec<[String; COLUMNS]> = rows.into_iter().map(|row| row.map(|cell| printable(&cell))).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let widths: [usize; COLUMNS] = std::array::from_fn(width);
    let mut text = String::new();
    for row in &rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(widths) {
            line.push_str(&format!("{cell:width$}  "));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}
