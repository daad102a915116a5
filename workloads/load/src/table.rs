//! Plain text tables: first columns to the left, numbers to the right.

use std::fmt;

/// Rows of cells under a header. Columns with an empty header hold words.
#[derive(Debug)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// One with this header and no rows.
    #[must_use]
    pub fn new(header: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            rows: vec![header.into_iter().map(Into::into).collect()],
        }
    }

    /// Adds a row.
    pub fn push(&mut self, row: Vec<String>) {
        self.rows.push(row);
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        // Words stand in the first column, and in every one without a header.
        let is_text = |column: usize| column == 0 || self.rows[0][column].is_empty();
        for row in &self.rows {
            for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
                if column > 0 {
                    write!(f, "  ")?;
                }
                if is_text(column) {
                    write!(f, "{cell:<width$}")?;
                } else {
                    write!(f, "{cell:>width$}")?;
                }
            }
            writeln!(f)?;
        }
        Ok(())
    }
}
