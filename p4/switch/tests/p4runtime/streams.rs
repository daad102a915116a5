// SPDX-License-Identifier: Apache-2.0

//! Who may write.

use tonic::Code;
use weft_p4runtime::p4::v1 as p4;
use weft_p4runtime::p4::v1::entity::Entity;
use weft_p4runtime::p4::v1::stream_message_request::Update as ToSwitch;
use weft_p4runtime::p4::v1::stream_message_response::Update as FromSwitch;
use weft_p4runtime::p4::v1::update::Type;

use super::client::{DEVICE, Switch, frame, route};

#[tokio::test]
async fn a_higher_election_id_takes_over_and_the_old_primary_may_no_longer_write() {
    let switch = Switch::start().await;
    let mut old = switch.programmed().await;
    let mut new = switch.connect().await;
    assert_eq!(new.claim(2).await, Code::Ok);
    assert_eq!(old.verdict().await, Code::AlreadyExists);
    let entry = || vec![(Type::Insert, Entity::TableEntry(route(2, 2)))];
    let error = old.write(entry()).await.unwrap_err();
    assert_eq!(error.code(), Code::PermissionDenied);
    new.write(entry()).await.unwrap();
}

#[tokio::test]
async fn a_lost_primary_leaves_a_vacancy_that_the_same_id_fills_again() {
    let switch = Switch::start().await;
    let primary = switch.programmed().await;
    let mut backup = switch.connect().await;
    backup.claim(0).await;
    drop(primary);
    assert_eq!(backup.verdict().await, Code::NotFound);
    let mut restarted = switch.connect().await;
    assert_eq!(restarted.claim(1).await, Code::Ok);
    let entries = vec![(Type::Insert, Entity::TableEntry(route(2, 2)))];
    restarted.write(entries).await.unwrap();
}

#[tokio::test]
async fn a_taken_election_id_ends_the_stream() {
    let switch = Switch::start().await;
    let _primary = switch.primary(1).await;
    let mut second = switch.connect().await;
    second
        .say(ToSwitch::Arbitration(p4::MasterArbitrationUpdate {
            device_id: DEVICE,
            election_id: Some(p4::Uint128 { high: 0, low: 1 }),
            ..Default::default()
        }))
        .await;
    let error = second.hear().await.unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
}

#[tokio::test]
async fn another_device_is_not_found_here() {
    let switch = Switch::start().await;
    let mut client = switch.connect().await;
    client
        .say(ToSwitch::Arbitration(p4::MasterArbitrationUpdate {
            device_id: DEVICE + 1,
            ..Default::default()
        }))
        .await;
    assert_eq!(client.hear().await.unwrap_err().code(), Code::NotFound);
}

#[tokio::test]
async fn a_backup_that_sends_a_packet_is_told_on_its_stream() {
    let switch = Switch::start().await;
    let _primary = switch.programmed().await;
    let mut backup = switch.connect().await;
    backup.claim(0).await;
    let packet = p4::PacketOut {
        payload: frame(),
        metadata: Vec::new(),
    };
    backup.say(ToSwitch::Packet(packet.clone())).await;
    match backup.hear().await.unwrap() {
        FromSwitch::Error(error) => {
            assert_eq!(error.canonical_code, Code::PermissionDenied as i32);
            let details = p4::PacketOutError {
                packet_out: Some(packet),
            };
            assert_eq!(
                error.details,
                Some(p4::stream_error::Details::PacketOut(details))
            );
        }
        other => panic!("no error: {other:?}"),
    }
}

#[tokio::test]
async fn a_client_that_does_not_read_loses_its_stream_and_its_election_id() {
    let switch = Switch::start().await;
    let mut client = switch.connect().await;
    // The switch keeps 4096 answers, and the connection a few thousand at most.
    for _ in 0..8192 {
        client.say_claim(1).await;
    }
    let error = loop {
        if let Err(error) = client.hear().await {
            break error;
        }
    };
    assert_eq!(error.code(), Code::ResourceExhausted);
    let mut other = switch.connect().await;
    assert_eq!(other.claim(1).await, Code::Ok);
}
