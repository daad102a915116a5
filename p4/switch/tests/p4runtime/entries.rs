// SPDX-License-Identifier: Apache-2.0

//! Tables, counters and replication.

use tonic::Code;
use weft_p4runtime::p4::v1 as p4;
use weft_p4runtime::p4::v1::entity::Entity;
use weft_p4runtime::p4::v1::packet_replication_engine_entry::Type as Replication;
use weft_p4runtime::p4::v1::update::Type;

use super::client::{Switch, call, codes_of, frame, id, route};

fn all_routes() -> Entity {
    Entity::TableEntry(p4::TableEntry {
        table_id: id("routing.ipv4_lpm"),
        ..Default::default()
    })
}

#[tokio::test]
async fn entries_are_read_back_as_they_were_written() {
    let switch = Switch::start().await;
    let mut client = switch.programmed().await;
    let entry = |leaf, port| Entity::TableEntry(route(leaf, port));
    let inserts = vec![(Type::Insert, entry(1, 1)), (Type::Insert, entry(2, 2))];
    client.write(inserts).await.unwrap();
    let found = client.read(all_routes()).await.unwrap();
    assert_eq!(found, [entry(1, 1), entry(2, 2)]);

    let changes = vec![(Type::Modify, entry(1, 7)), (Type::Delete, entry(2, 2))];
    client.write(changes).await.unwrap();
    let found = client.read(all_routes()).await.unwrap();
    assert_eq!(found, [entry(1, 7)]);
    assert_eq!(client.read(entry(1, 0)).await.unwrap(), [entry(1, 7)]);
}

#[tokio::test]
async fn a_batch_does_what_it_can_and_reports_each_failure() {
    let switch = Switch::start().await;
    let mut client = switch.programmed().await;
    let entry = |leaf, port| Entity::TableEntry(route(leaf, port));
    let mut wide = route(3, 1);
    wide.action = Some(call("routing.to_port", &[&[2, 0]]));
    let batch = vec![
        (Type::Insert, entry(1, 1)),
        (Type::Insert, entry(1, 1)),
        (Type::Modify, entry(9, 1)),
        (Type::Insert, Entity::TableEntry(wide)),
        (Type::Insert, entry(2, 2)),
    ];
    let error = client.write(batch).await.unwrap_err();
    assert_eq!(error.code(), Code::Unknown);
    let codes = codes_of(&error);
    let expected = [
        Code::Ok,
        Code::AlreadyExists,
        Code::NotFound,
        Code::InvalidArgument,
        Code::Ok,
    ];
    assert_eq!(codes, expected);
    let found = client.read(all_routes()).await.unwrap();
    assert_eq!(found, [entry(1, 1), entry(2, 2)]);
}

#[tokio::test]
async fn what_can_be_read_comes_before_what_could_not() {
    let switch = Switch::start().await;
    let mut client = switch.programmed().await;
    let entry = Entity::TableEntry(route(2, 2));
    let insert = vec![(Type::Insert, entry.clone())];
    client.write(insert).await.unwrap();
    let nowhere = Entity::TableEntry(p4::TableEntry {
        table_id: 7,
        ..Default::default()
    });
    let registers = Entity::RegisterEntry(p4::RegisterEntry::default());
    let wanted = [all_routes(), nowhere, all_routes(), registers];
    let (found, end) = client.read_all(wanted).await;
    assert_eq!(found, [entry.clone(), entry]);
    let error = end.unwrap_err();
    assert_eq!(error.code(), Code::Unknown);
    let expected = [Code::Ok, Code::NotFound, Code::Ok, Code::Unimplemented];
    assert_eq!(codes_of(&error), expected);
}

#[tokio::test]
async fn a_default_action_is_set_read_and_put_back() {
    let switch = Switch::start().await;
    let mut client = switch.programmed().await;
    let policy = |action| p4::TableEntry {
        table_id: id("telemetry.policy"),
        is_default_action: true,
        action,
        ..Default::default()
    };
    let every = call("telemetry.sample_every", &[&[1], &[2], &[3], &[4]]);
    let entry = Entity::TableEntry(policy(Some(every)));
    client
        .write(vec![(Type::Modify, entry.clone())])
        .await
        .unwrap();
    let wanted = Entity::TableEntry(policy(None));
    assert_eq!(client.read(wanted.clone()).await.unwrap(), [entry]);
    client
        .write(vec![(Type::Modify, wanted.clone())])
        .await
        .unwrap();
    let off = Entity::TableEntry(policy(Some(call("telemetry.off", &[]))));
    assert_eq!(client.read(wanted).await.unwrap(), [off]);
}

#[tokio::test]
async fn a_new_controller_finds_what_the_old_one_left() {
    let switch = Switch::start().await;
    let mut old = switch.programmed().await;
    let entry = Entity::TableEntry(route(2, 2));
    old.write(vec![(Type::Insert, entry.clone())])
        .await
        .unwrap();
    drop(old);
    let mut new = switch.primary(2).await;
    assert_eq!(new.read(all_routes()).await.unwrap(), [entry]);
}

#[tokio::test]
async fn packets_count_and_counters_can_be_cleared() {
    let switch = Switch::start().await;
    let mut client = switch.programmed().await;
    let entry = Entity::TableEntry(route(2, 2));
    client.write(vec![(Type::Insert, entry)]).await.unwrap();
    let frame = frame();
    let delivered = switch.run(&[(0, 0, &frame), (0, 0, &frame)], 1_000_000);
    assert_eq!(delivered.len(), 2);

    let wanted = p4::DirectCounterEntry {
        table_entry: Some(p4::TableEntry {
            action: None,
            ..route(2, 2)
        }),
        data: None,
    };
    let found = client
        .read(Entity::DirectCounterEntry(wanted.clone()))
        .await
        .unwrap();
    let data = p4::CounterData {
        packet_count: 2,
        byte_count: 120,
    };
    let counted = Entity::DirectCounterEntry(p4::DirectCounterEntry {
        data: Some(data),
        ..wanted.clone()
    });
    assert_eq!(found, [counted]);
    let clear = Entity::DirectCounterEntry(p4::DirectCounterEntry {
        data: Some(p4::CounterData::default()),
        ..wanted
    });
    client.write(vec![(Type::Modify, clear)]).await.unwrap();
    let with_counters = Entity::TableEntry(p4::TableEntry {
        table_id: id("routing.ipv4_lpm"),
        counter_data: Some(p4::CounterData::default()),
        ..Default::default()
    });
    match &client.read(with_counters).await.unwrap()[..] {
        [Entity::TableEntry(entry)] => {
            assert_eq!(entry.counter_data, Some(p4::CounterData::default()));
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn dropped_packets_are_counted_by_reason() {
    let switch = Switch::start().await;
    let mut client = switch.programmed().await;
    switch.run(&[(0, 0, &frame())], 1_000_000);
    let drops = Entity::CounterEntry(p4::CounterEntry {
        counter_id: id("routing.drops"),
        ..Default::default()
    });
    let cells = client.read(drops).await.unwrap();
    let packets: i64 = cells
        .iter()
        .map(|cell| match cell {
            Entity::CounterEntry(cell) => cell.data.unwrap().packet_count,
            other => panic!("{other:?}"),
        })
        .sum();
    assert_eq!(packets, 1);
}

#[tokio::test]
async fn multicast_groups_are_kept_as_they_were_written() {
    let switch = Switch::start().await;
    let mut client = switch.programmed().await;
    let group = |replicas: &[u8]| {
        let replica = |port: &u8| p4::Replica {
            instance: 1,
            port_kind: Some(p4::replica::PortKind::Port(vec![*port])),
            ..Default::default()
        };
        Entity::PacketReplicationEngineEntry(p4::PacketReplicationEngineEntry {
            r#type: Some(Replication::MulticastGroupEntry(p4::MulticastGroupEntry {
                multicast_group_id: 5,
                replicas: replicas.iter().map(replica).collect(),
                ..Default::default()
            })),
        })
    };
    let insert = vec![(Type::Insert, group(&[1, 2]))];
    client.write(insert.clone()).await.unwrap();
    assert!(client.write(insert).await.is_err());
    assert_eq!(client.read(group(&[])).await.unwrap(), [group(&[1, 2])]);
    client
        .write(vec![(Type::Delete, group(&[]))])
        .await
        .unwrap();
    assert!(client.read(group(&[])).await.unwrap().is_empty());
}
