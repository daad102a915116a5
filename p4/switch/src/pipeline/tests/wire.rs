// SPDX-License-Identifier: Apache-2.0

//! Fields to the wire and back.

use proptest::prelude::*;

use crate::pipeline::compile::wire::group_fields;
use crate::pipeline::model::slot::{Field, Slot};
use crate::pipeline::model::word::mask_limbs;
use crate::pipeline::run::bits::BitWriter;
use crate::pipeline::run::wire::{read_fields, write_fields};

fn fields(widths: &[u32]) -> Vec<Field> {
    let mut word = 0;
    let fields = widths.iter().map(|bits| {
        let slot = Slot {
            word,
            bits: *bits,
            signed: false,
        };
        word += slot.limbs() as u32;
        Field {
            slot,
            variable: false,
        }
    });
    fields.collect()
}

#[test]
fn an_ipv4_header_is_three_groups() {
    let groups = group_fields(&fields(&[4, 4, 8, 16, 16, 3, 13, 8, 8, 16, 32, 32]));
    assert_eq!(groups.len(), 3);
}

proptest! {
    #[test]
    fn packed_fields_come_back(widths in proptest::collection::vec(1u32..150, 1..20), seed: u64) {
        let fields = fields(&widths);
        let groups = group_fields(&fields);
        let size = fields.iter().map(|field| field.slot.limbs()).sum();
        let mut words = vec![0u64; size];
        for (index, field) in fields.iter().enumerate() {
            let limbs = &mut words[field.slot.range()];
            limbs.fill(seed.rotate_left(index as u32));
            mask_limbs(limbs, field.slot.bits);
        }
        let mut bytes = Vec::new();
        let mut writer = BitWriter::new(&mut bytes);
        write_fields(&groups, &words, &mut writer);
        writer.finish();
        prop_assert_eq!(bytes.len() as u32, widths.iter().sum::<u32>().div_ceil(8));
        let mut read = vec![0u64; size];
        read_fields(&groups, &bytes, 0, &mut read);
        prop_assert_eq!(read, words);
    }
}
