// SPDX-License-Identifier: Apache-2.0

//! A session with one switch, from arbitration to the end of its stream, and the task that
//! runs one session after another.
//!
//! ```text
//! connect -> primary? -> pipeline? -> entries? -> digests ... -> lost
//!    ^          |  raise election id, push, write what differs      |
//!    `----------+------------- after a pause ----------------------'
//! ```
//!
//! There is no keep-alive, because its packets would take part in the virtual time of every
//! run. If the network drops everything, a session ends when TCP gives up on what was sent:
//! probes, or acknowledgements of digests.

mod writer;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status, Streaming};
use tracing::{debug, info, warn};
use weft_p4runtime::p4::v1::{
    self as p4, MasterArbitrationUpdate, Uint128, p4_runtime_client, stream_message_request,
    stream_message_response,
};

use self::writer::Writer;
use super::desired::Desired;
use super::desired::policing::Limits;
use super::digest::Decoder;
use super::program::Program;
use super::subscription::DIGEST_WAIT_NS;
use crate::hub::{Hub, Order};
use crate::mastership::Arbitration;
use crate::probe;

type Client = p4_runtime_client::P4RuntimeClient<Channel>;

/// Pause before the next session: at first, and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// Timeout of a connection attempt. Over a network that drops packets, TCP would retry for
/// minutes.
const CONNECT_LIMIT: Duration = Duration::from_secs(1);

/// Attempts to raise the election id in a session; other controllers may raise theirs too.
const ELECTION_ATTEMPTS: u32 = 16;

/// Messages that may wait to be sent to the switch.
const OUTBOX: usize = 64;

/// Pipelines of large programs exceed gRPC's default of 4 MiB.
const MESSAGE_BYTES_MAX: usize = 64 << 20;

/// Why a session ended.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("no connection: {}", root(.0))]
    Connect(#[from] tonic::transport::Error),
    #[error("no connection within {CONNECT_LIMIT:?}")]
    NoAnswer,
    #[error("{what}: {}", status.message())]
    Call {
        what: &'static str,
        status: Box<Status>,
    },
    #[error(transparent)]
    Program(#[from] super::program::Error),
    #[error("the switch closed the stream")]
    Closed,
    #[error("another controller stays primary (election id {0})")]
    NotElected(u128),
    #[error("another controller is primary now (election id {0})")]
    Replaced(u128),
}

impl Error {
    /// Whether the switch knows our election id from another stream.
    fn is_taken_id(&self) -> bool {
        matches!(self, Self::Call { status, .. } if status.code() == Code::InvalidArgument)
    }
}

/// The innermost cause; tonic's own text is only "transport error".
fn root(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

/// A switch, and what it should run.
#[derive(Debug)]
pub struct Target {
    /// Its name in the topology.
    pub name: String,
    /// Its P4Runtime device id.
    pub device_id: u64,
    /// Where its P4Runtime server listens, `address:port`.
    pub grpc: String,
    /// The program to run.
    pub program: Arc<Program>,
    /// The desired state of its tables.
    pub desired: Desired,
    /// The writes that limit what its hosts send in each class, by shares of their links; none
    /// where there are no hosts.
    pub limits: Limits,
    /// Decodes its digests.
    pub decoder: Decoder,
}

/// Runs sessions with `target` forever, and feeds its samples to `hub`. Calls `ready` each
/// time the switch has reached its desired state.
pub async fn run(target: Target, hub: Arc<Hub>, ready: impl Fn()) {
    let mut election_id = 1;
    let mut pause = FIRST_PAUSE;
    let mut last_logged = String::new();
    loop {
        let mut session_ready = false;
        let end = session(&target, &hub, &mut election_id, || {
            session_ready = true;
            ready();
        })
        .await;
        if session_ready {
            pause = FIRST_PAUSE;
        }
        if let Err(error) = end {
            // Log each error once, however often it repeats.
            let text = error.to_string();
            if session_ready || text != last_logged {
                warn!(switch = target.name, "{text}; trying again");
                last_logged = text;
            }
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

async fn session(
    target: &Target,
    hub: &Hub,
    election_id: &mut u128,
    ready: impl FnOnce(),
) -> Result<(), Error> {
    let (client, mut stream) = match elect(target, hub, election_id).await {
        Err(error) if error.is_taken_id() => {
            // A stream that is still open uses this id; the next session raises it.
            *election_id += 1;
            return Err(error);
        }
        Err(error) => {
            hub.arbitrated(&target.name, Arbitration::Unreachable);
            return Err(error);
        }
        Ok(elected) => elected,
    };
    let writer = Writer {
        target,
        client,
        election_id: *election_id,
    };
    hub.arbitrated(&target.name, Arbitration::Primary);
    writer.clone().configure().await?;
    ready();
    stream.follow(writer, hub).await
}

/// Connects, opens the stream and becomes primary.
async fn elect(
    target: &Target,
    hub: &Hub,
    election_id: &mut u128,
) -> Result<(Client, Stream), Error> {
    let endpoint = Endpoint::from_shared(format!("http://{}", target.grpc))?;
    let channel = tokio::time::timeout(CONNECT_LIMIT, endpoint.connect()).await;
    let channel = channel.map_err(|_| Error::NoAnswer)??;
    let mut client = Client::new(channel)
        .max_decoding_message_size(MESSAGE_BYTES_MAX)
        .max_encoding_message_size(MESSAGE_BYTES_MAX);
    let mut stream = Stream::open(target, &mut client, *election_id).await?;
    stream.become_primary(target, hub, election_id).await?;
    Ok((client, stream))
}

/// The two directions of a StreamChannel.
struct Stream {
    outbox: mpsc::Sender<p4::StreamMessageRequest>,
    inbox: Streaming<p4::StreamMessageResponse>,
}

impl Stream {
    /// Opens the channel and sends a first arbitration request. Some servers don't answer
    /// before it.
    async fn open(target: &Target, client: &mut Client, election_id: u128) -> Result<Self, Error> {
        let (outbox, requests) = mpsc::channel(OUTBOX);
        let stream = Self::arbitration_request(target, election_id);
        outbox.send(stream).await.map_err(|_| Error::Closed)?;
        let inbox = client
            .stream_channel(ReceiverStream::new(requests))
            .await
            .map_err(call("opening the stream"))?
            .into_inner();
        Ok(Self { outbox, inbox })
    }

    fn arbitration_request(target: &Target, election_id: u128) -> p4::StreamMessageRequest {
        request(stream_message_request::Update::Arbitration(
            MasterArbitrationUpdate {
                device_id: target.device_id,
                role: None,
                election_id: Some(uint128(election_id)),
                status: None,
            },
        ))
    }

    /// Raises the election id until the switch makes us primary. Ids grow with every
    /// controller that the switch has seen, so nobody has to store them. A controller that is
    /// backup at most switches doesn't raise its id at the others.
    async fn become_primary(
        &mut self,
        target: &Target,
        hub: &Hub,
        election_id: &mut u128,
    ) -> Result<(), Error> {
        let mut highest = *election_id;
        for _ in 0..ELECTION_ATTEMPTS {
            let answer = loop {
                let message = self.inbox.message().await.map_err(call("arbitration"))?;
                let update = message.ok_or(Error::Closed)?.update;
                if let Some(stream_message_response::Update::Arbitration(answer)) = update {
                    break answer;
                }
            };
            if is_primary(&answer) {
                info!(switch = target.name, election_id, "primary");
                return Ok(());
            }
            highest = highest.max(elected(&answer));
            if hub.is_backup() && !is_vacant(&answer) {
                return self.stand_by(target, hub, highest).await;
            }
            *election_id = highest + 1;
            debug!(switch = target.name, election_id, "raising the election id");
            self.send(Self::arbitration_request(target, *election_id))
                .await?;
        }
        Err(Error::NotElected(highest))
    }

    /// Processes digests until the stream ends or another controller becomes primary. In
    /// that case waits until the other is gone.
    async fn follow(&mut self, mut writer: Writer<'_>, hub: &Hub) -> Result<(), Error> {
        let target = writer.target;
        let mut orders = hub.open_orders(&target.name);
        loop {
            let message = tokio::select! {
                message = self.inbox.message() => message.map_err(call("stream"))?,
                Some(order) = orders.recv() => {
                    match order {
                        Order::Send(probe) => {
                            let packet = target.program.packet_out(probe.port, probe.frame);
                            self.send(request(stream_message_request::Update::Packet(packet)))
                                .await?;
                        }
                        Order::Limit(rates) => writer.limit(&rates).await?,
                        Order::Classify(most_bytes) => writer.classify(&most_bytes).await?,
                    }
                    continue;
                }
            };
            match message.ok_or(Error::Closed)?.update {
                Some(stream_message_response::Update::Packet(packet)) => {
                    let port = target.program.ingress_port(&packet);
                    if let Some((port, probe)) = port.zip(probe::decode(&packet.payload)) {
                        hub.probed(&target.name, port, probe);
                    }
                }
                Some(stream_message_response::Update::Digest(list)) => {
                    let sent_ns = u64::try_from(list.timestamp).unwrap_or(0);
                    let sampled_ns = sent_ns.saturating_sub(DIGEST_WAIT_NS);
                    if let Some(hops) = target.decoder.hops(&list) {
                        hub.record_hops(sampled_ns, &hops);
                    } else {
                        let (samples, unread) = target.decoder.samples(&list);
                        if unread > 0 {
                            warn!(switch = target.name, unread, "cannot decode digests");
                        }
                        hub.record(&target.name, sampled_ns, &samples);
                    }
                    let ack = p4::DigestListAck {
                        digest_id: list.digest_id,
                        list_id: list.list_id,
                    };
                    self.send(request(stream_message_request::Update::DigestAck(ack)))
                        .await?;
                }
                Some(stream_message_response::Update::Arbitration(answer))
                    if !is_primary(&answer) =>
                {
                    return self.stand_by(target, hub, elected(&answer)).await;
                }
                Some(stream_message_response::Update::Error(error)) => {
                    warn!(switch = target.name, error.message, "stream error");
                }
                _ => {}
            }
        }
    }

    /// Waits until the controller with election id `other` is gone.
    async fn stand_by(&mut self, target: &Target, hub: &Hub, other: u128) -> Result<(), Error> {
        let error = Error::Replaced(other);
        warn!(switch = target.name, "{error}; waiting until it is gone");
        hub.arbitrated(&target.name, Arbitration::Backup);
        self.wait_for_vacancy().await?;
        Err(error)
    }

    async fn wait_for_vacancy(&mut self) -> Result<(), Error> {
        loop {
            let message = self.inbox.message().await.map_err(call("stream"))?;
            if let Some(stream_message_response::Update::Arbitration(answer)) =
                message.ok_or(Error::Closed)?.update
            {
                if is_primary(&answer) || is_vacant(&answer) {
                    return Ok(());
                }
            }
        }
    }

    async fn send(&self, request: p4::StreamMessageRequest) -> Result<(), Error> {
        self.outbox.send(request).await.map_err(|_| Error::Closed)
    }
}

fn request(update: stream_message_request::Update) -> p4::StreamMessageRequest {
    p4::StreamMessageRequest {
        update: Some(update),
    }
}

fn is_primary(answer: &MasterArbitrationUpdate) -> bool {
    answer.status.as_ref().is_none_or(|status| status.code == 0)
}

/// Whether the switch has no primary.
fn is_vacant(answer: &MasterArbitrationUpdate) -> bool {
    let code = answer.status.as_ref().map(|status| status.code);
    code == Some(Code::NotFound as i32)
}

/// The primary's election id, 0 if the switch gives none.
fn elected(answer: &MasterArbitrationUpdate) -> u128 {
    answer
        .election_id
        .as_ref()
        .map_or(0, |id| (u128::from(id.high) << 64) | u128::from(id.low))
}

fn uint128(value: u128) -> Uint128 {
    Uint128 {
        high: (value >> 64) as u64,
        low: value as u64,
    }
}

fn call(what: &'static str) -> impl Fn(Status) -> Error {
    move |status| Error::Call {
        what,
        status: Box::new(status),
    }
}
