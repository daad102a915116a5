// SPDX-License-Identifier: Apache-2.0

//! `digests.csv`: the digests that switches sent to their controllers, and when.
//!
//! The members of a digest are in the order of its struct in the P4 program, as decimal numbers
//! with spaces between them. This module does not know their names.

use std::io::Write as _;

use crate::server::DigestRecord;

pub(super) const HEADER: &str = "time_ns,switch,digest,fields\n";

/// Appends a row to `file`.
pub(super) fn encode(switch: &str, record: &DigestRecord, file: &mut Vec<u8>) {
    let number = |field: &Vec<u8>| {
        let value = num_bigint::BigUint::from_bytes_be(field);
        value.to_string()
    };
    let fields: Vec<String> = record.fields.iter().map(number).collect();
    // Writing to memory cannot fail.
    let _ = writeln!(
        file,
        "{},{switch},{},{}",
        record.at_ns,
        record.digest,
        fields.join(" ")
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_the_members_as_numbers() {
        let record = DigestRecord {
            at_ns: 1_480,
            switch: 0,
            digest: "queue_sample_t".into(),
            fields: vec![vec![2], vec![0], vec![], vec![1, 0]],
        };
        let mut file = Vec::new();
        encode("leaf1", &record, &mut file);
        assert_eq!(file, b"1480,leaf1,queue_sample_t,2 0 0 256\n");
    }
}
