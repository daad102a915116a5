// SPDX-License-Identifier: Apache-2.0

//! Pipelines come and go.

use tonic::Code;
use weft_p4runtime::p4::v1 as p4;
use weft_p4runtime::p4::v1::entity::Entity;
use weft_p4runtime::p4::v1::get_forwarding_pipeline_config_request::ResponseType;
use weft_p4runtime::p4::v1::set_forwarding_pipeline_config_request::Action;
use weft_p4runtime::p4::v1::update::Type;

use super::client::{Client, DEVICE, SPINE_JSON, Switch, frame, route};

async fn get(
    client: &mut Client,
    response_type: ResponseType,
) -> Option<p4::ForwardingPipelineConfig> {
    let request = p4::GetForwardingPipelineConfigRequest {
        device_id: DEVICE,
        response_type: response_type.into(),
    };
    let answer = client.rpc.get_forwarding_pipeline_config(request).await;
    answer.unwrap().into_inner().config
}

async fn entries(client: &mut Client) -> usize {
    let all = Entity::TableEntry(p4::TableEntry::default());
    client.read(all).await.unwrap().len()
}

#[tokio::test]
async fn what_was_pushed_is_read_back_in_the_parts_asked_for() {
    let switch = Switch::start().await;
    let mut client = switch.primary(1).await;
    assert_eq!(get(&mut client, ResponseType::All).await, None);
    client.push(Action::VerifyAndCommit).await.unwrap();
    assert_eq!(
        get(&mut client, ResponseType::All).await,
        Some(Client::spine())
    );
    let cookie = get(&mut client, ResponseType::CookieOnly).await.unwrap();
    assert_eq!(cookie.cookie, Client::spine().cookie);
    assert!(cookie.p4info.is_none() && cookie.p4_device_config.is_empty());
}

#[tokio::test]
async fn without_a_pipeline_there_is_nothing_to_write() {
    let switch = Switch::start().await;
    let mut client = switch.primary(1).await;
    let update = vec![(Type::Insert, Entity::TableEntry(route(2, 2)))];
    let error = client.write(update).await.unwrap_err();
    assert_eq!(error.code(), Code::FailedPrecondition);
}

#[tokio::test]
async fn verifying_changes_nothing_and_saving_waits_for_the_commit() {
    let switch = Switch::start().await;
    let mut client = switch.primary(1).await;
    let error = client.push_config(Action::Commit, None).await.unwrap_err();
    assert_eq!(error.code(), Code::NotFound);
    client.push(Action::Verify).await.unwrap();
    client.push(Action::VerifyAndSave).await.unwrap();
    assert_eq!(get(&mut client, ResponseType::All).await, None);
    client.push_config(Action::Commit, None).await.unwrap();
    assert!(get(&mut client, ResponseType::All).await.is_some());
}

#[tokio::test]
async fn what_is_written_after_saving_is_there_after_the_commit() {
    let switch = Switch::start().await;
    let mut client = switch.programmed().await;
    let insert = |leaf| vec![(Type::Insert, Entity::TableEntry(route(leaf, leaf)))];
    client.write(insert(1)).await.unwrap();
    client.push(Action::VerifyAndSave).await.unwrap();
    assert_eq!(entries(&mut client).await, 0);
    client.write(insert(2)).await.unwrap();
    // Packets meet the old program until then.
    let delivered = |end_ns| {
        switch
            .run(&[(0, end_ns - 1_000_000, &frame())], end_ns)
            .len()
    };
    assert_eq!(delivered(1_000_000), 0);
    client.push_config(Action::Commit, None).await.unwrap();
    assert_eq!(entries(&mut client).await, 1);
    assert_eq!(delivered(2_000_000), 1);
}

#[tokio::test]
async fn committing_again_empties_the_tables_and_reconciling_keeps_them() {
    let switch = Switch::start().await;
    let mut client = switch.programmed().await;
    let route = || vec![(Type::Insert, Entity::TableEntry(route(2, 2)))];
    client.write(route()).await.unwrap();
    client.push(Action::ReconcileAndCommit).await.unwrap();
    assert_eq!(entries(&mut client).await, 1);
    client.push(Action::VerifyAndCommit).await.unwrap();
    assert_eq!(entries(&mut client).await, 0);
}

#[tokio::test]
async fn what_the_switch_does_not_implement_is_refused_by_name() {
    let switch = Switch::start().await;
    let mut client = switch.primary(1).await;
    let text = String::from_utf8(SPINE_JSON.to_vec()).unwrap();
    let mut json: serde_json::Value = serde_json::from_str(&text).unwrap();
    json["meter_arrays"] = serde_json::json!([
        {"name": "m", "id": 0, "is_direct": true, "rate_count": 2, "type": "bytes"}
    ]);
    let mut config = Client::spine();
    config.p4_device_config = json.to_string().into_bytes();
    let refused = client.push_config(Action::VerifyAndCommit, Some(config));
    let error = refused.await.unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
    assert!(error.message().contains("a direct meter"), "{error}");
}

#[tokio::test]
async fn names_that_the_program_lacks_are_refused() {
    let switch = Switch::start().await;
    let mut client = switch.primary(1).await;
    let mut config = Client::spine();
    let info = config.p4info.as_mut().unwrap();
    info.tables[0].preamble.as_mut().unwrap().name = "routing.nowhere".to_owned();
    let refused = client.push_config(Action::VerifyAndCommit, Some(config));
    let error = refused.await.unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
    assert!(error.message().contains("routing.nowhere"), "{error}");
}
