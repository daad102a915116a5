// SPDX-License-Identifier: Apache-2.0

//! Plain text tables.

use std::fmt;

/// Rows of cells under a header. The first columns hold words, and stand to the
/// left; numbers stand to the right.
#[derive(Debug)]
pub struct Table {
    rows: Vec<Vec<String>>,
    words: usize,
}

impl Table {
    /// One with this header and no rows, whose first `words` columns hold words.
    #[must_use]
    pub fn new(words: usize, header: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            words,
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
        for row in &self.rows {
            for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
                if column > 0 {
                    write!(f, "  ")?;
                }
                if column < self.words {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stand_to_the_left_and_numbers_to_the_right() {
        let mut table = Table::new(1, ["name", "count"]);
        table.push(vec!["a".into(), "7".into()]);
        table.push(vec!["longer".into(), "1000000".into()]);
        assert_eq!(
            table.to_string(),
            "name      count\na             7\nlonger  1000000\n"
        );
    }
}
