// SPDX-License-Identifier: Apache-2.0

//! A switch to test, and a client of it.

use std::time::Duration;

use prost::Message as _;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status, Streaming};
use weft_p4runtime::google::rpc;
use weft_p4runtime::p4::v1 as p4;
use weft_p4runtime::p4::v1::entity::Entity;
use weft_p4runtime::p4::v1::p4_runtime_client::P4RuntimeClient;
use weft_p4runtime::p4::v1::set_forwarding_pipeline_config_request::Action;
use weft_p4runtime::p4::v1::stream_message_request::Update as ToSwitch;
use weft_p4runtime::p4::v1::stream_message_response::Update as FromSwitch;
use weft_p4runtime::p4::v1::update::Type;
use weft_switch::network::{Delivery, TimestampUnit};
use weft_switch::server::{Shared, World, serve};
use weft_testing::packet::{address, udp_of};
use weft_testing::topology::star;

/// The device id of the only switch of a [`star`].
pub const DEVICE: u64 = 257;
/// HTTP/2's own default; tonic's is larger.
const STREAM_WINDOW_BYTES: u32 = 65_535;
pub const SPINE_JSON: &[u8] = include_bytes!("../../../compiled/spine.json");
const SPINE_INFO: &str = include_str!("../../../compiled/spine.p4info.txtpb");

/// A switch with hosts `10.1.1.1` at port 1 and `10.2.1.1` at port 2.
pub struct Switch {
    pub shared: Shared,
    address: String,
}

impl Switch {
    /// Starts its server.
    pub async fn start() -> Self {
        let mut topology = star(2);
        topology.switches[0].grpc = "127.0.0.1:0".into();
        let world = World::new(&topology, TimestampUnit::Nanoseconds, 0, 1).unwrap();
        let shared = Shared::new(world, || {});
        let address = serve(&topology, &shared).await.unwrap()[0];
        Self {
            shared,
            address: format!("http://{address}"),
        }
    }

    /// A client that has sent no arbitration message.
    pub async fn connect(&self) -> Client {
        connect(self.address.clone()).await
    }

    /// A client that is primary by `election`.
    pub async fn primary(&self, election: u64) -> Client {
        let mut client = self.connect().await;
        assert_eq!(client.claim(election).await, tonic::Code::Ok);
        client
    }

    /// A primary client that has pushed the spine's program.
    pub async fn programmed(&self) -> Client {
        let mut client = self.primary(1).await;
        client.push(Action::VerifyAndCommit).await.unwrap();
        client
    }

    /// Sends packets of hosts, and runs until `end_ns`. Returns the frames that reach hosts.
    pub fn run(&self, packets: &[(usize, u64, &[u8])], end_ns: u64) -> Vec<Delivery> {
        let mut world = self.shared.lock();
        for (host, at_ns, frame) in packets {
            world.network.receive(*host, *at_ns, frame);
        }
        let mut deliveries = Vec::new();
        let now_ns = world.network.now_ns();
        world.advance(now_ns, end_ns, &mut deliveries);
        deliveries
    }
}

/// A client of the switch at `address` that has sent no arbitration message.
pub async fn connect(address: String) -> Client {
    // A small window, so that few messages that a test does not read wait on its side.
    let endpoint = Endpoint::from_shared(address).unwrap();
    let endpoint = endpoint.initial_stream_window_size(STREAM_WINDOW_BYTES);
    let mut rpc =
        P4RuntimeClient::new(endpoint.connect().await.unwrap()).max_decoding_message_size(64 << 20);
    let (to_switch, requests) = mpsc::channel(16);
    let responses = rpc.stream_channel(ReceiverStream::new(requests)).await;
    Client {
        rpc,
        to_switch,
        from_switch: responses.unwrap().into_inner(),
        election: None,
    }
}

/// A controller.
pub struct Client {
    pub rpc: P4RuntimeClient<Channel>,
    to_switch: mpsc::Sender<p4::StreamMessageRequest>,
    from_switch: Streaming<p4::StreamMessageResponse>,
    election: Option<u64>,
}

impl Client {
    /// Sends a message on the stream.
    pub async fn say(&self, update: ToSwitch) {
        let update = Some(update);
        let message = p4::StreamMessageRequest { update };
        self.to_switch.send(message).await.unwrap();
    }

    /// The next message on the stream.
    pub async fn hear(&mut self) -> Result<FromSwitch, Status> {
        let message = tokio::time::timeout(Duration::from_secs(10), self.from_switch.message());
        let message = message.await.expect("nothing came for ten seconds")?;
        let message = message.ok_or_else(|| Status::cancelled("the stream ended"))?;
        Ok(message.update.unwrap())
    }

    /// The code of the next message, which must be about who is primary.
    pub async fn verdict(&mut self) -> tonic::Code {
        match self.hear().await.unwrap() {
            FromSwitch::Arbitration(update) => update.status.unwrap().code.into(),
            other => panic!("no arbitration: {other:?}"),
        }
    }

    /// Asks to be primary. Returns the code of the answer.
    pub async fn claim(&mut self, election: u64) -> tonic::Code {
        self.say_claim(election).await;
        self.verdict().await
    }

    /// Asks to be primary, and does not read the answer.
    pub async fn say_claim(&mut self, election: u64) {
        self.election = Some(election);
        self.say(ToSwitch::Arbitration(p4::MasterArbitrationUpdate {
            device_id: DEVICE,
            election_id: self.election_id(),
            ..Default::default()
        }))
        .await;
    }

    pub fn election_id(&self) -> Option<p4::Uint128> {
        self.election.map(|low| p4::Uint128 { high: 0, low })
    }

    /// The configuration of the spine.
    pub fn spine() -> p4::ForwardingPipelineConfig {
        p4::ForwardingPipelineConfig {
            p4info: Some(weft_p4runtime::p4info_from_text(SPINE_INFO).unwrap()),
            p4_device_config: SPINE_JSON.to_vec(),
            cookie: Some(p4::forwarding_pipeline_config::Cookie { cookie: 42 }),
        }
    }

    /// Pushes the spine's program.
    pub async fn push(&mut self, action: Action) -> Result<(), Status> {
        self.push_config(action, Some(Self::spine())).await
    }

    pub async fn push_config(
        &mut self,
        action: Action,
        config: Option<p4::ForwardingPipelineConfig>,
    ) -> Result<(), Status> {
        let request = p4::SetForwardingPipelineConfigRequest {
            device_id: DEVICE,
            election_id: self.election_id(),
            action: action.into(),
            config,
            ..Default::default()
        };
        let answer = self.rpc.set_forwarding_pipeline_config(request).await;
        answer.map(|_| ())
    }

    /// Writes `updates`.
    pub async fn write(&mut self, updates: Vec<(Type, Entity)>) -> Result<(), Status> {
        let update = |(kind, entity): (Type, Entity)| p4::Update {
            r#type: kind.into(),
            entity: Some(p4::Entity {
                entity: Some(entity),
            }),
        };
        let request = p4::WriteRequest {
            device_id: DEVICE,
            election_id: self.election_id(),
            updates: updates.into_iter().map(update).collect(),
            ..Default::default()
        };
        self.rpc.write(request).await.map(|_| ())
    }

    /// Reads the entities that `wanted` selects.
    pub async fn read(&mut self, wanted: Entity) -> Result<Vec<Entity>, Status> {
        let (found, end) = self.read_all([wanted]).await;
        end.map(|()| found)
    }

    /// Reads the entities that all of `wanted` select, up to the end of the answer.
    pub async fn read_all(
        &mut self,
        wanted: impl IntoIterator<Item = Entity>,
    ) -> (Vec<Entity>, Result<(), Status>) {
        let entity = |entity| p4::Entity {
            entity: Some(entity),
        };
        let request = p4::ReadRequest {
            device_id: DEVICE,
            entities: wanted.into_iter().map(entity).collect(),
            ..Default::default()
        };
        let mut found = Vec::new();
        let mut answers = match self.rpc.read(request).await {
            Ok(answers) => answers.into_inner(),
            Err(status) => return (found, Err(status)),
        };
        loop {
            match answers.message().await {
                Ok(Some(answer)) => {
                    found.extend(answer.entities.into_iter().filter_map(|e| e.entity));
                }
                Ok(None) => return (found, Ok(())),
                Err(status) => return (found, Err(status)),
            }
        }
    }
}

/// The P4Info id of a table, action, counter or digest of the spine.
pub fn id(name: &str) -> u32 {
    let info = weft_p4runtime::p4info_from_text(SPINE_INFO).unwrap();
    let tables = info.tables.into_iter().filter_map(|t| t.preamble);
    let actions = info.actions.into_iter().filter_map(|a| a.preamble);
    let counters = info.counters.into_iter().filter_map(|c| c.preamble);
    let digests = info.digests.into_iter().filter_map(|d| d.preamble);
    tables
        .chain(actions)
        .chain(counters)
        .chain(digests)
        .find(|preamble| preamble.name == name)
        .unwrap()
        .id
}

/// An action call with arguments 1, 2, ...
pub fn call(name: &str, args: &[&[u8]]) -> p4::TableAction {
    let params = (1..).zip(args).map(|(param_id, value)| p4::action::Param {
        param_id,
        value: value.to_vec(),
    });
    p4::TableAction {
        r#type: Some(p4::table_action::Type::Action(p4::Action {
            action_id: id(name),
            params: params.collect(),
        })),
    }
}

/// Routes `10.leaf.0.0/16` to `port`.
pub fn route(leaf: u8, port: u8) -> p4::TableEntry {
    let lpm = p4::field_match::Lpm {
        value: vec![10, leaf, 0, 0],
        prefix_len: 16,
    };
    p4::TableEntry {
        table_id: id("routing.ipv4_lpm"),
        r#match: vec![p4::FieldMatch {
            field_id: 1,
            field_match_type: Some(p4::field_match::FieldMatchType::Lpm(lpm)),
        }],
        action: Some(call("routing.to_port", &[&[port]])),
        ..Default::default()
    }
}

/// A UDP packet of 60 bytes from 10.1.1.1 to 10.2.1.1.
pub fn frame() -> Vec<u8> {
    udp_of(address(1, 1, 1), address(2, 1, 1), 60, 0)
}

/// The code of each update of a batch.
pub fn codes_of(error: &Status) -> Vec<Code> {
    let status = rpc::Status::decode(error.details()).unwrap();
    let errors = status
        .details
        .iter()
        .map(|detail| p4::Error::decode(detail.value.as_slice()).unwrap());
    errors
        .map(|error| Code::from(error.canonical_code))
        .collect()
}
