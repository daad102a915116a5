// SPDX-License-Identifier: Apache-2.0

//! Which writes are valid, and that refused ones change nothing.

use tonic::{Code, Status};
use weft_p4runtime::p4::v1 as p4;
use weft_p4runtime::p4::v1::entity::Entity;
use weft_p4runtime::p4::v1::field_match::{Exact, FieldMatchType};
use weft_p4runtime::p4::v1::set_forwarding_pipeline_config_request::Action;
use weft_p4runtime::p4::v1::update::Type;

use super::client::{Client, SPINE_JSON, Switch, call, codes_of, id, route};

/// Writes one update, and returns its code.
async fn write(client: &mut Client, kind: Type, entry: p4::TableEntry) -> Code {
    code_of(client.write(vec![(kind, Entity::TableEntry(entry))]).await)
}

/// The code of the only update of a batch.
fn code_of(outcome: Result<(), Status>) -> Code {
    outcome.map_or_else(|status| codes_of(&status)[0], |()| Code::Ok)
}

/// All entries of `table`.
async fn entries(client: &mut Client, table: &str) -> Vec<p4::TableEntry> {
    let wanted = Entity::TableEntry(p4::TableEntry {
        table_id: id(table),
        counter_data: Some(p4::CounterData::default()),
        ..Default::default()
    });
    let entity = |entity| match entity {
        Entity::TableEntry(entry) => entry,
        other => panic!("{other:?}"),
    };
    let found = client.read(wanted).await.unwrap();
    found.into_iter().map(entity).collect()
}

fn counted(packets: i64) -> Option<p4::CounterData> {
    Some(p4::CounterData {
        packet_count: packets,
        byte_count: 64 * packets,
    })
}

/// An entry of a table without direct counters.
fn threshold(port: &[u8]) -> p4::TableEntry {
    let value = port.to_vec();
    p4::TableEntry {
        table_id: id("ecn.threshold"),
        r#match: vec![p4::FieldMatch {
            field_id: 1,
            field_match_type: Some(FieldMatchType::Exact(Exact { value })),
        }],
        action: Some(call("ecn.above_packets", &[&[20]])),
        ..Default::default()
    }
}

#[tokio::test]
async fn a_counter_that_the_table_has_not_is_refused_before_anything_changes() {
    let switch = Switch::start().await;
    let mut client = switch.programmed().await;
    let with_counter = |entry: p4::TableEntry| p4::TableEntry {
        counter_data: counted(1),
        ..entry
    };
    let insert = with_counter(threshold(&[1]));
    let code = write(&mut client, Type::Insert, insert.clone()).await;
    assert_eq!(code, Code::InvalidArgument);
    assert_eq!(entries(&mut client, "ecn.threshold").await, []);

    assert_eq!(
        write(&mut client, Type::Insert, threshold(&[1])).await,
        Code::Ok
    );
    let modify = p4::TableEntry {
        action: Some(call("ecn.above_packets", &[&[30]])),
        ..insert
    };
    let code = write(&mut client, Type::Modify, modify).await;
    assert_eq!(code, Code::InvalidArgument);
    let found = entries(&mut client, "ecn.threshold").await;
    assert_eq!(found, [threshold(&[1])]);

    let policy = with_counter(p4::TableEntry {
        table_id: id("routing.path_policy"),
        is_default_action: true,
        action: Some(call("routing.subflow_paths", &[&[4]])),
        ..Default::default()
    });
    let wanted = Entity::TableEntry(p4::TableEntry {
        counter_data: None,
        action: None,
        ..policy.clone()
    });
    let before = client.read(wanted.clone()).await.unwrap();
    let code = write(&mut client, Type::Modify, policy).await;
    assert_eq!(code, Code::InvalidArgument);
    assert_eq!(client.read(wanted).await.unwrap(), before);
}

/// The key of a route and its counter, and no action.
fn counter_only() -> p4::TableEntry {
    p4::TableEntry {
        action: None,
        counter_data: counted(7),
        ..route(2, 2)
    }
}

#[tokio::test]
async fn a_modification_without_an_action_keeps_it() {
    let switch = Switch::start().await;
    let mut client = switch.programmed().await;
    let modify = write(&mut client, Type::Modify, counter_only());
    assert_eq!(modify.await, Code::NotFound);
    let insert = write(&mut client, Type::Insert, counter_only());
    assert_eq!(insert.await, Code::InvalidArgument);
    write(&mut client, Type::Insert, route(2, 2)).await;
    let modify = write(&mut client, Type::Modify, counter_only());
    assert_eq!(modify.await, Code::Ok);
    let expected = p4::TableEntry {
        counter_data: counted(7),
        ..route(2, 2)
    };
    assert_eq!(entries(&mut client, "routing.ipv4_lpm").await, [expected]);
}

#[tokio::test]
async fn a_deletion_looks_at_nothing_but_the_key() {
    let switch = Switch::start().await;
    let mut client = switch.programmed().await;
    write(&mut client, Type::Insert, route(2, 2)).await;
    let nonsense = p4::TableEntry {
        action: Some(call("telemetry.off", &[&[1], &[2]])),
        metadata: vec![1],
        idle_timeout_ns: -1,
        meter_config: Some(p4::MeterConfig::default()),
        counter_data: counted(-1),
        ..route(2, 2)
    };
    let delete = write(&mut client, Type::Delete, nonsense);
    assert_eq!(delete.await, Code::Ok);
    assert_eq!(entries(&mut client, "routing.ipv4_lpm").await, []);
}

#[tokio::test]
async fn an_empty_value_is_not_zero() {
    let switch = Switch::start().await;
    let mut client = switch.programmed().await;
    let without_key = write(&mut client, Type::Insert, threshold(&[]));
    assert_eq!(without_key.await, Code::InvalidArgument);
    let without_argument = p4::TableEntry {
        action: Some(call("routing.to_port", &[&[]])),
        ..route(2, 2)
    };
    let without_argument = write(&mut client, Type::Insert, without_argument);
    assert_eq!(without_argument.await, Code::InvalidArgument);
}

#[tokio::test]
async fn an_action_in_the_wrong_place_is_not_permitted() {
    let switch = Switch::start().await;
    let mut client = switch.programmed().await;
    let default_only = p4::TableEntry {
        action: Some(call("ecn.never", &[])),
        ..threshold(&[1])
    };
    let insert = write(&mut client, Type::Insert, default_only);
    assert_eq!(insert.await, Code::PermissionDenied);
}

#[tokio::test]
async fn what_is_const_is_not_for_the_client_to_say() {
    let switch = Switch::start().await;
    let mut client = switch.programmed().await;
    for kind in [Type::Insert, Type::Modify, Type::Delete] {
        let entry = p4::TableEntry {
            is_const: true,
            ..route(2, 2)
        };
        let refused = write(&mut client, kind, entry);
        assert_eq!(refused.await, Code::InvalidArgument, "{kind:?}");
    }
}

/// The spine with a route that the program has fixed.
fn with_const_route() -> p4::ForwardingPipelineConfig {
    let mut json: serde_json::Value = serde_json::from_slice(SPINE_JSON).unwrap();
    let mut tables = json["pipelines"][0]["tables"]
        .as_array_mut()
        .unwrap()
        .iter_mut();
    let table = tables.find(|table| table["name"] == "routing.ipv4_lpm");
    let table = table.unwrap();
    table["entries"] = serde_json::json!([{
        "match_key": [{"match_type": "lpm", "key": "0x0a020000", "prefix_length": 16}],
        "action_entry": {"action_id": table["action_ids"][0], "action_data": ["0x2"]},
        "priority": 1,
    }]);
    p4::ForwardingPipelineConfig {
        p4_device_config: json.to_string().into_bytes(),
        ..Client::spine()
    }
}

#[tokio::test]
async fn of_a_const_entry_only_the_counter_can_be_written() {
    let switch = Switch::start().await;
    let mut client = switch.primary(1).await;
    let config = Some(with_const_route());
    client
        .push_config(Action::VerifyAndCommit, config)
        .await
        .unwrap();
    for (kind, entry) in [
        (Type::Insert, route(3, 1)),
        (Type::Modify, route(2, 2)),
        (Type::Delete, route(2, 2)),
    ] {
        let refused = write(&mut client, kind, entry);
        assert_eq!(refused.await, Code::PermissionDenied, "{kind:?}");
    }
    let modify = write(&mut client, Type::Modify, counter_only());
    assert_eq!(modify.await, Code::Ok);
    let expected = p4::TableEntry {
        counter_data: counted(7),
        is_const: true,
        ..route(2, 2)
    };
    assert_eq!(entries(&mut client, "routing.ipv4_lpm").await, [expected]);
}

#[tokio::test]
async fn a_counter_is_written_where_there_is_a_cell_and_data() {
    let switch = Switch::start().await;
    let mut client = switch.programmed().await;
    let cell = |index, data| {
        Entity::CounterEntry(p4::CounterEntry {
            counter_id: id("routing.drops"),
            index: Some(p4::Index { index }),
            data,
        })
    };
    for (index, data, expected) in [
        (-1, counted(1), Code::InvalidArgument),
        (1000, counted(1), Code::OutOfRange),
        (1, counted(5), Code::Ok),
        (1, None, Code::Ok),
    ] {
        let outcome = client.write(vec![(Type::Modify, cell(index, data))]).await;
        assert_eq!(code_of(outcome), expected);
    }
    let found = client.read(cell(1, None)).await.unwrap();
    assert_eq!(found, [cell(1, counted(5))]);
}
