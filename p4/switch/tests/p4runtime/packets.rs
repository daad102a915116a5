// SPDX-License-Identifier: Apache-2.0

//! Digests and packets between controller and data plane.

use tonic::Code;
use weft_p4runtime::bytestring;
use weft_p4runtime::p4::v1 as p4;
use weft_p4runtime::p4::v1::entity::Entity;
use weft_p4runtime::p4::v1::set_forwarding_pipeline_config_request::Action;
use weft_p4runtime::p4::v1::stream_message_request::Update as ToSwitch;
use weft_p4runtime::p4::v1::stream_message_response::Update as FromSwitch;
use weft_p4runtime::p4::v1::update::Type;

use super::client::{Client, SPINE_JSON, Switch, call, frame, id, route};

const MS: u64 = 1_000_000;

/// A switch that reports its queues at every packet, in lists of `list` messages at most.
async fn reporting(switch: &Switch, list: i32, ack_timeout_ns: i64) -> Client {
    let client = switch.programmed().await;
    reporting_to(client, list, ack_timeout_ns).await
}

/// The same with a client that has pushed a program.
async fn reporting_to(mut client: Client, list: i32, ack_timeout_ns: i64) -> Client {
    let policy = p4::TableEntry {
        table_id: id("telemetry.policy"),
        is_default_action: true,
        action: Some(call("telemetry.sample_every", &[&[1], &[1], &[1], &[0]])),
        ..Default::default()
    };
    let digest = p4::DigestEntry {
        digest_id: id("queue_sample_t"),
        config: Some(p4::digest_entry::Config {
            max_timeout_ns: MS as i64,
            max_list_size: list,
            ack_timeout_ns,
        }),
    };
    let updates = vec![
        (Type::Insert, Entity::TableEntry(route(2, 2))),
        (Type::Modify, Entity::TableEntry(policy)),
        (Type::Insert, Entity::DigestEntry(digest)),
    ];
    client.write(updates).await.unwrap();
    let wanted = Entity::DigestEntry(p4::DigestEntry::default());
    let found = client.read(wanted).await.unwrap();
    assert_eq!(found, [Entity::DigestEntry(digest)]);
    client
}

async fn digest(client: &mut Client) -> p4::DigestList {
    match client.hear().await.unwrap() {
        FromSwitch::Digest(list) => list,
        other => panic!("no digest: {other:?}"),
    }
}

#[tokio::test]
async fn a_digest_reaches_the_primary_when_its_list_is_full() {
    let switch = Switch::start().await;
    let mut client = reporting(&switch, 2, 0).await;
    let frame = frame();
    switch.run(&[(0, 100, &frame), (0, 5_000, &frame)], 20_000);
    let list = digest(&mut client).await;
    assert_eq!(list.digest_id, id("queue_sample_t"));
    assert_eq!(list.list_id, 1);
    assert_eq!(list.timestamp, 15_000);
    let members = |data: &p4::P4Data| match &data.data {
        Some(p4::p4_data::Data::Struct(fields)) => fields
            .members
            .iter()
            .map(|member| match &member.data {
                Some(p4::p4_data::Data::Bitstring(bits)) => bytestring::decode(bits, 48).unwrap(),
                other => panic!("{other:?}"),
            })
            .collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    let messages: Vec<_> = list.data.iter().map(members).collect();
    let length = frame.len() as u128;
    // Nothing waits, in none of the priorities.
    let sample = |of_port: [u128; 6]| [&of_port[..], &[0; 16]].concat();
    let first = sample([2, 0, 0, 10_100, 0, 0]);
    assert_eq!(messages, [first, sample([2, 0, 0, 15_000, 10_100, length])]);
}

/// The compiler makes a list of every call of `digest` in the source, all of the same name.
#[tokio::test]
async fn a_digest_that_a_program_sends_in_several_places_comes_from_all_of_them() {
    let mut json: serde_json::Value = serde_json::from_slice(SPINE_JSON).unwrap();
    let lists = json["learn_lists"].as_array_mut().unwrap();
    let mut second = lists.last().unwrap().clone();
    assert_eq!(second["name"], "queue_sample_t");
    let first_id = format!("{:#x}", second["id"].as_u64().unwrap());
    let second_id = lists.len() + 1;
    second["id"] = second_id.into();
    lists.push(second);
    let mut primitives = json["actions"]
        .as_array_mut()
        .unwrap()
        .iter_mut()
        .flat_map(|action| action["primitives"].as_array_mut().unwrap());
    let call = primitives.find(|primitive| {
        primitive["op"] == "generate_digest"
            && primitive["parameters"][1]["value"] == first_id.as_str()
    });
    call.unwrap()["parameters"][1]["value"] = format!("{second_id:#x}").into();
    let switch = Switch::start().await;
    let mut client = switch.primary(1).await;
    let config = p4::ForwardingPipelineConfig {
        p4_device_config: json.to_string().into_bytes(),
        ..Client::spine()
    };
    let pushed = client.push_config(Action::VerifyAndCommit, Some(config));
    pushed.await.unwrap();
    let mut client = reporting_to(client, 1, 0).await;
    switch.run(&[(0, 0, &frame())], MS);
    assert_eq!(digest(&mut client).await.digest_id, id("queue_sample_t"));
}

#[tokio::test]
async fn a_digest_reaches_the_primary_when_it_is_old_enough() {
    let switch = Switch::start().await;
    let mut client = reporting(&switch, 100, 0).await;
    switch.run(&[(0, 0, &frame())], 10_001);
    let due_ns = switch.shared.lock().digests_due_ns();
    assert_eq!(due_ns, Some(10_000 + MS));
    switch.run(&[], 2 * MS);
    let list = digest(&mut client).await;
    assert_eq!(list.timestamp, (10_000 + MS) as i64);
}

#[tokio::test]
async fn lists_are_acknowledged_by_their_ids_and_a_wrong_acknowledgement_is_told() {
    let switch = Switch::start().await;
    let mut client = reporting(&switch, 1, i64::MAX).await;
    let frame = frame();
    // At the same time, because a digest contains its time. The second packet reports the port
    // where both came in, and the third has nothing to report.
    switch.run(&[(0, 0, &frame), (0, 0, &frame), (0, 0, &frame)], 2 * MS);
    for list_id in [1, 2] {
        let list = digest(&mut client).await;
        assert_eq!((list.list_id, list.data.len()), (list_id, 1));
        client
            .say(ToSwitch::DigestAck(p4::DigestListAck {
                digest_id: list.digest_id,
                list_id,
            }))
            .await;
    }
    // An acknowledgement has no answer. A wrong one has, and shows that the first has arrived.
    client
        .say(ToSwitch::DigestAck(p4::DigestListAck::default()))
        .await;
    match client.hear().await.unwrap() {
        FromSwitch::Error(error) => {
            assert_eq!(error.canonical_code, Code::InvalidArgument as i32);
        }
        other => panic!("no error: {other:?}"),
    }
    switch.run(&[(0, 3 * MS, &frame)], 5 * MS);
    assert_eq!(digest(&mut client).await.list_id, 3);
}

#[tokio::test]
async fn a_packet_goes_to_the_controller_with_its_ingress_port() {
    let switch = Switch::start().await;
    let mut client = switch.programmed().await;
    let mut entry = route(2, 2);
    entry.action = Some(call("routing.to_controller", &[]));
    let updates = vec![(Type::Insert, Entity::TableEntry(entry))];
    client.write(updates).await.unwrap();
    switch.run(&[(0, 0, &frame())], MS);
    match client.hear().await.unwrap() {
        FromSwitch::Packet(packet) => {
            assert_eq!(packet.metadata[0].value, [1]);
            assert_eq!(packet.payload.len(), frame().len());
        }
        other => panic!("no packet: {other:?}"),
    }
}

#[tokio::test]
async fn a_packet_from_the_controller_leaves_at_the_port_it_names() {
    let switch = Switch::start().await;
    let mut client = switch.programmed().await;
    let metadata = |metadata_id, value| p4::PacketMetadata {
        metadata_id,
        value: vec![value],
    };
    let packet = p4::PacketOut {
        payload: frame(),
        metadata: vec![metadata(1, 2)],
    };
    client.say(ToSwitch::Packet(packet)).await;
    let wrong = p4::PacketOut {
        payload: frame(),
        metadata: vec![metadata(9, 2)],
    };
    client.say(ToSwitch::Packet(wrong)).await;
    match client.hear().await.unwrap() {
        FromSwitch::Error(error) => {
            assert_eq!(error.canonical_code, Code::InvalidArgument as i32);
        }
        other => panic!("no error: {other:?}"),
    }
    let delivered = switch.run(&[], MS);
    assert_eq!(delivered.len(), 1);
    assert_eq!(delivered[0].host_port, 1);
    assert_eq!(delivered[0].frame, frame());
}
