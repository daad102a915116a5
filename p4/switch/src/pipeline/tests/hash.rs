// SPDX-License-Identifier: Apache-2.0

//! The inputs of `hash`.

use crate::pipeline::compile::json;
use crate::pipeline::compile::symbols::Symbols;
use crate::pipeline::model::hash::Calculation;

#[test]
fn fields_of_an_invalid_header_are_left_out_as_bmv2_does() {
    let document = serde_json::json!({
        "header_types": [{"name": "byte_t", "id": 0, "fields": [["value", 8, false]]}],
        "headers": [
            {"name": "first", "id": 0, "header_type": "byte_t", "metadata": false},
            {"name": "second", "id": 1, "header_type": "byte_t", "metadata": false},
        ],
    });
    let document: json::Document = serde_json::from_value(document).unwrap();
    let symbols = Symbols::build(&document).unwrap();
    let field = |header| serde_json::json!({"type": "field", "value": [header, "value"]});
    let source = json::Calculation {
        name: "calc".into(),
        algo: "identity".into(),
        input: vec![field("first"), field("second")],
    };
    let calculation = Calculation::compile(&source, &symbols).unwrap();

    let mut words = symbols.layout.initial.clone();
    for (header, value) in [("first", 0xaa), ("second", 0xbb)] {
        let slot = symbols.field(header, "value", "").unwrap().slot;
        slot.set(&mut words, value);
    }
    let valid = symbols.field("second", "$valid$", "").unwrap().slot;
    valid.set(&mut words, 1);
    let hash = |words: &[u64]| calculation.compute(&symbols.layout, words, &[], &mut Vec::new());
    assert_eq!(hash(&words), 0xbb);
    let valid = symbols.field("first", "$valid$", "").unwrap().slot;
    valid.set(&mut words, 1);
    assert_eq!(hash(&words), 0xaabb);
}
