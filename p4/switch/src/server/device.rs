// SPDX-License-Identifier: Apache-2.0

//! The control plane of one switch, without I/O.

use std::collections::BTreeMap;

use tokio::sync::{mpsc, oneshot};
use tonic::Status;
use tracing::warn;
use weft_p4runtime::google::rpc;
use weft_p4runtime::p4::v1 as p4;
use weft_p4runtime::p4::v1::StreamMessageResponse;
use weft_p4runtime::p4::v1::stream_message_response::Update;

use super::arbitration::{Arbiter, Notifications, StreamId};
use super::config::Config;
use super::digest::Digests;
use crate::network::{ControlContent, ControlMessage};
use crate::pipeline::Pipeline;

/// What goes out on a stream; an error ends it.
pub(super) type Outgoing = Result<StreamMessageResponse, Status>;

/// Messages that wait for a client to read them. A client that lets more pile up misses digests and
/// packets. It is disconnected if it would miss a message about who is primary.
pub(super) const STREAM_MESSAGES: usize = 4096;

/// The state of a switch's P4Runtime server, except for the pipeline's.
#[derive(Debug)]
pub(super) struct Device {
    pub name: String,
    pub arbiter: Arbiter,
    /// What runs in the data plane.
    pub running: Option<Setup>,
    /// A configuration that is verified and saved, to be committed later. Until then, clients read
    /// and write it.
    pub saved: Option<Saved>,
    streams: BTreeMap<StreamId, OpenStream>,
    missed_messages: u64,
}

/// A configuration, and what clients have set besides the pipeline's state.
#[derive(Debug)]
pub(super) struct Setup {
    pub config: Config,
    pub digests: Digests,
    pub multicast_groups: BTreeMap<u32, p4::MulticastGroupEntry>,
    pub clone_sessions: BTreeMap<u32, p4::CloneSessionEntry>,
}

impl Setup {
    pub fn new(config: Config) -> Self {
        Self {
            config,
            digests: Digests::default(),
            multicast_groups: BTreeMap::new(),
            clone_sessions: BTreeMap::new(),
        }
    }
}

/// A setup that waits to be committed, with a pipeline that has seen no packet.
#[derive(Debug)]
pub(super) struct Saved {
    pub setup: Setup,
    pub pipeline: Pipeline,
}

/// A client's stream, until it is disconnected.
#[derive(Debug)]
struct OpenStream {
    sender: mpsc::Sender<Outgoing>,
    /// Dropped with the rest, it ends the task that serves the stream.
    _served: oneshot::Sender<()>,
}

impl Device {
    pub fn new(name: String, device_id: u64) -> Self {
        Self {
            name,
            arbiter: Arbiter::new(device_id),
            running: None,
            saved: None,
            streams: BTreeMap::new(),
            missed_messages: 0,
        }
    }

    /// The setup and pipeline that reads and writes address. `running` is the pipeline in the data
    /// plane.
    pub fn addressed<'a>(
        &'a mut self,
        running: Option<&'a mut Pipeline>,
    ) -> Result<(&'a mut Setup, &'a mut Pipeline), Status> {
        if let Some(saved) = &mut self.saved {
            return Ok((&mut saved.setup, &mut saved.pipeline));
        }
        match (&mut self.running, running) {
            (Some(setup), Some(pipeline)) => Ok((setup, pipeline)),
            _ => Err(unconfigured(&self.name)),
        }
    }

    /// Adds a client that opened a stream. The result ends when the client is disconnected.
    pub fn connect(
        &mut self,
        stream: StreamId,
        sender: mpsc::Sender<Outgoing>,
    ) -> oneshot::Receiver<()> {
        let (served, cut_off) = oneshot::channel();
        let open = OpenStream {
            sender,
            _served: served,
        };
        self.streams.insert(stream, open);
        cut_off
    }

    /// Removes a client whose stream broke.
    pub fn disconnect(&mut self, stream: StreamId) {
        self.streams.remove(&stream);
        let notifications = self.arbiter.disconnect(stream);
        self.notify(notifications);
    }

    /// Handles a client's arbitration message.
    pub fn arbitrate(
        &mut self,
        stream: StreamId,
        message: &p4::MasterArbitrationUpdate,
    ) -> Result<(), Status> {
        let notifications = self.arbiter.update(stream, message)?;
        self.notify(notifications);
        Ok(())
    }

    /// The frame of a client's packet-out.
    pub fn packet_out(&self, stream: StreamId, message: &p4::PacketOut) -> Result<Vec<u8>, Status> {
        self.check_primary(stream)?;
        let running = self.running.as_ref();
        let setup = running.ok_or_else(|| unconfigured(&self.name))?;
        setup.config.packet_out.encode(message)
    }

    /// Handles a client's acknowledgement of a digest list.
    pub fn acknowledge(&mut self, stream: StreamId, ack: p4::DigestListAck) -> Result<(), Status> {
        self.check_primary(stream)?;
        match &mut self.running {
            Some(setup) if setup.digests.contains(ack.digest_id) => {
                setup.digests.acknowledge(ack.digest_id, ack.list_id);
                Ok(())
            }
            _ => {
                let text = format!("digest {:#010x} is not configured", ack.digest_id);
                Err(Status::invalid_argument(text))
            }
        }
    }

    /// Passes a message of the switch on to the primary client.
    pub fn handle(&mut self, message: ControlMessage) {
        self.send_due_digests(message.at_ns);
        let Some(Setup {
            config, digests, ..
        }) = &mut self.running
        else {
            return;
        };
        match message.content {
            ControlContent::Digest(digest) => {
                let mut ids = config.digests.iter();
                let Some((&id, _)) = ids.find(|(_, places)| places.contains(&digest.digest)) else {
                    return;
                };
                if let Some(list) = digests.add(id, digest.fields, message.at_ns) {
                    self.send_to_primary(Update::Digest(list));
                }
            }
            ControlContent::PacketIn(frame) => {
                if let Some(packet) = config.packet_in.decode(&frame) {
                    self.send_to_primary(Update::Packet(packet));
                }
            }
        }
    }

    /// Sends the digest lists that are due.
    pub fn send_due_digests(&mut self, now_ns: u64) {
        if self.digests_due_ns().is_none_or(|due| due > now_ns) {
            return;
        }
        let running = self.running.as_mut();
        let lists = running.map_or_else(Vec::new, |setup| setup.digests.due(now_ns));
        for list in lists {
            self.send_to_primary(Update::Digest(list));
        }
    }

    /// When the first digest list has waited long enough, in nanoseconds.
    pub fn digests_due_ns(&self) -> Option<u64> {
        self.running.as_ref()?.digests.deadline_ns()
    }

    /// Tells a client that one of its messages was invalid.
    pub fn send_stream_error(
        &mut self,
        stream: StreamId,
        status: &Status,
        details: p4::stream_error::Details,
    ) {
        let error = p4::StreamError {
            canonical_code: status.code() as i32,
            message: status.message().to_owned(),
            details: Some(details),
            ..Default::default()
        };
        self.send(stream, Update::Error(error));
    }

    fn check_primary(&self, stream: StreamId) -> Result<(), Status> {
        if self.arbiter.primary() == Some(stream) {
            return Ok(());
        }
        Err(Status::permission_denied("not the primary client"))
    }

    fn notify(&mut self, notifications: Notifications) {
        for (stream, update) in notifications {
            if !self.send(stream, Update::Arbitration(update)) {
                // The task that serves the stream notices that it ended, and tells the arbiter.
                self.streams.remove(&stream);
            }
        }
    }

    fn send_to_primary(&mut self, update: Update) {
        if let Some(primary) = self.arbiter.primary() {
            self.send(primary, update);
        }
    }

    fn send(&mut self, stream: StreamId, update: Update) -> bool {
        let Some(open) = self.streams.get(&stream) else {
            return false;
        };
        let update = Some(update);
        let sent = open.sender.try_send(Ok(StreamMessageResponse { update }));
        if let Err(mpsc::error::TrySendError::Full(_)) = sent {
            self.missed_messages += 1;
            if self.missed_messages.is_power_of_two() {
                let missed = self.missed_messages;
                warn!(switch = %self.name, missed, "a client does not read its stream");
            }
        }
        sent.is_ok()
    }
}

fn unconfigured(name: &str) -> Status {
    Status::failed_precondition(format!("{name} has no forwarding pipeline yet"))
}

/// The status of a batch of updates or requests. If any of them failed, it has one error for each,
/// with `OK` for those that succeeded.
pub(super) fn batch_outcome(outcomes: Vec<Result<(), Status>>, what: &str) -> Result<(), Status> {
    use prost::Message as _;
    let mut failed = outcomes.iter().filter_map(|outcome| outcome.as_ref().err());
    let Some(first) = failed.next() else {
        return Ok(());
    };
    let message = format!(
        "{} of {} {what} failed: {}",
        1 + failed.count(),
        outcomes.len(),
        first.message()
    );
    let details = outcomes.iter().map(|outcome| {
        let error = match outcome {
            Ok(()) => p4::Error::default(),
            Err(status) => p4::Error {
                canonical_code: status.code() as i32,
                message: status.message().to_owned(),
                ..Default::default()
            },
        };
        let type_url = "type.googleapis.com/p4.v1.Error".to_owned();
        let value = error.encode_to_vec();
        prost_types::Any { type_url, value }
    });
    let status = rpc::Status {
        code: tonic::Code::Unknown as i32,
        message: message.clone(),
        details: details.collect(),
    };
    let details = status.encode_to_vec().into();
    Err(Status::with_details(tonic::Code::Unknown, message, details))
}
