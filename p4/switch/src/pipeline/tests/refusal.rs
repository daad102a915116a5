// SPDX-License-Identifier: Apache-2.0

//! Programs that are refused, by the name of what is wrong with them.

use serde_json::{Value, json};

use super::*;

fn refusal(json: &[u8]) -> String {
    Program::load(json).unwrap_err().to_string()
}

#[test]
fn constructs_that_are_not_implemented_are_refused_by_name() {
    let meter = include_bytes!("../../../tests/fixtures/refused_direct_meter.json");
    let selector = include_bytes!("../../../tests/fixtures/refused_selector.json");
    let timeout = include_bytes!("../../../tests/fixtures/refused_timeout.json");
    let union = include_bytes!("../../../tests/fixtures/refused_union.json");
    let value_set = include_bytes!("../../../tests/fixtures/refused_value_set.json");
    let random_hash = include_bytes!("../../../tests/fixtures/refused_random_hash.json");
    let refused: [(&[u8], &str); 6] = [
        (meter, "meter IngressImpl.rate: a direct meter"),
        (
            selector,
            "control ingress: action profile or selector action_profile_0",
        ),
        (timeout, "table IngressImpl.next_hops: support_timeout"),
        (union, "program: header_union_types (either_t)"),
        (value_set, "program: parse_vsets (ParserImpl.values)"),
        (random_hash, "calculation calc: hash algorithm random"),
    ];
    for (json, construct) in refused {
        let expected = format!("{construct} is not implemented by weft-switch");
        assert_eq!(refusal(json), expected);
    }
}

/// The arithmetic program with a change.
fn changed(change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let json = include_bytes!("../../../tests/fixtures/arithmetic.json");
    let mut document: Value = serde_json::from_slice(json).unwrap();
    change(&mut document);
    serde_json::to_vec(&document).unwrap()
}

#[test]
fn unknown_primitives_and_operations_are_named_with_their_place() {
    let json = changed(|document| {
        document["actions"][0]["name"] = json!("leap");
        document["actions"][0]["primitives"][0]["op"] = json!("teleport");
    });
    let expected = "action leap, primitive teleport: the primitive teleport \
                    is not implemented by weft-switch";
    assert_eq!(refusal(&json), expected);
    let json = changed(|document| {
        document["actions"][0]["name"] = json!("leap");
        document["actions"][0]["primitives"][0] = json!({"op": "assign", "parameters": [
            {"type": "field", "value": ["given", "a"]},
            {"type": "expression", "value": {"type": "expression", "value": {
                "op": "**",
                "left": {"type": "hexstr", "value": "0x2"},
                "right": {"type": "field", "value": ["given", "b"]}}}}]});
    });
    let expected = "action leap, primitive assign: the operation ** \
                    is not implemented by weft-switch";
    assert_eq!(refusal(&json), expected);
}

#[test]
fn references_to_nothing_are_refused() {
    let json = changed(|document| document["pipelines"][0]["init_table"] = json!("nowhere"));
    assert_eq!(refusal(&json), "control ingress: no table nowhere");
    let json = changed(|document| document["parsers"][0]["init_state"] = json!("nowhere"));
    assert_eq!(refusal(&json), "parser: no parser state nowhere");
    let json = changed(|document| document["deparsers"][0]["order"][0] = json!("nowhere"));
    assert_eq!(refusal(&json), "deparser: no header nowhere");
}

#[test]
fn a_control_that_goes_in_circles_is_refused() {
    let json = changed(|document| {
        let table = &mut document["pipelines"][0]["tables"][0];
        let name = table["name"].clone();
        let all_next = table["next_tables"].as_object_mut().unwrap();
        assert!(!all_next.is_empty());
        for (_, next) in all_next {
            *next = name.clone();
        }
    });
    assert_eq!(refusal(&json), "control ingress: its graph has a cycle");
}

#[test]
fn what_is_no_program_is_no_json_of_bmv2() {
    assert!(refusal(b"{").starts_with("not a BMv2 JSON program: "));
    assert_eq!(refusal(b"{}"), "standard_metadata: no field ingress_port");
}
