// SPDX-License-Identifier: Apache-2.0

//! The gRPC side of P4Runtime.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::{Stream, StreamExt as _, stream};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tonic::{Request, Response, Status, Streaming};
use weft_p4runtime::p4::v1 as p4;
use weft_p4runtime::p4::v1::p4_runtime_server::{P4Runtime, P4RuntimeServer};
use weft_p4runtime::p4::v1::stream_message_request::Update;
use weft_p4runtime::p4::v1::write_request::Atomicity;
use weft_topology::Topology;

use super::device::{Outgoing, STREAM_MESSAGES, batch_outcome};
use super::world::Shared;
use super::{pipeline_config, read, write};

/// Entities in one message of a `Read`; far below gRPC's limit of 4 MiB.
const READ_ENTITIES: usize = 2048;
/// Largest request: a compiled program is a few MiB of JSON.
const REQUEST_BYTES: usize = 64 << 20;

/// A controller that is silent for this long gets a keep-alive ping. If it is silent for as long
/// again, its connection is closed, and another controller may become primary.
const CLIENT_SILENCE: Duration = Duration::from_millis(200);

/// Why servers could not start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The topology has an invalid address.
    #[error("{switch}: `{grpc}` is not an address like 127.0.0.1:9559")]
    Address {
        /// The switch.
        switch: String,
        /// What the topology says.
        grpc: String,
    },
    /// The server cannot listen at the address.
    #[error("{switch}: cannot listen at {address}: {source}")]
    Listen {
        /// The switch.
        switch: String,
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
}

/// Listens at the addresses of all devices of `topology`, then serves in the
/// background of the current tokio runtime for as long as it lives.
///
/// Returns the addresses, in the order of [`Topology::devices`]: a port of 0 in the
/// topology stands for any that is free.
///
/// # Errors
/// See [`ServeError`]; nothing is served then.
pub async fn serve(topology: &Topology, shared: &Shared) -> Result<Vec<SocketAddr>, ServeError> {
    let mut listeners = Vec::new();
    for device in topology.devices() {
        let address = device.grpc.parse().map_err(|_| ServeError::Address {
            switch: device.name.to_owned(),
            grpc: device.grpc.to_owned(),
        })?;
        let listener = TcpListener::bind(address).await;
        let local = listener.and_then(|listener| Ok((listener.local_addr()?, listener)));
        listeners.push(local.map_err(|source| ServeError::Listen {
            switch: device.name.to_owned(),
            address,
            source,
        })?);
    }
    let addresses = listeners.iter().map(|(address, _)| *address).collect();
    for (switch, (_, listener)) in listeners.into_iter().enumerate() {
        let service = P4RuntimeServer::new(Service {
            shared: shared.clone(),
            switch,
            next_stream: Arc::default(),
        })
        .max_decoding_message_size(REQUEST_BYTES)
        .max_encoding_message_size(REQUEST_BYTES);
        let incoming = TcpListenerStream::new(listener).map(|stream| {
            stream.inspect(|stream| {
                // A failure only costs latency.
                let _ = stream.set_nodelay(true);
            })
        });
        tokio::spawn(
            tonic::transport::Server::builder()
                .http2_keepalive_interval(Some(CLIENT_SILENCE))
                .http2_keepalive_timeout(Some(CLIENT_SILENCE))
                .add_service(service)
                .serve_with_incoming(incoming),
        );
    }
    Ok(addresses)
}

/// The P4Runtime service of one switch.
#[derive(Clone)]
struct Service {
    shared: Shared,
    switch: usize,
    next_stream: Arc<AtomicU64>,
}

type BoxStream<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

#[tonic::async_trait]
impl P4Runtime for Service {
    type ReadStream = BoxStream<p4::ReadResponse>;
    type StreamChannelStream = BoxStream<p4::StreamMessageResponse>;

    async fn write(
        &self,
        request: Request<p4::WriteRequest>,
    ) -> Result<Response<p4::WriteResponse>, Status> {
        let request = request.into_inner();
        let mut world = self.shared.lock();
        let world = &mut *world;
        let device = &mut world.devices[self.switch];
        device
            .arbiter
            .authorize(request.device_id, &request.role, request.election_id)?;
        if request.atomicity() != Atomicity::ContinueOnError {
            let text = "only CONTINUE_ON_ERROR is implemented by weft-switch";
            return Err(Status::unimplemented(text));
        }
        let (setup, pipeline) = device.addressed(world.network.pipeline_mut(self.switch))?;
        write::write(setup, pipeline, &request.updates)?;
        Ok(Response::new(p4::WriteResponse {}))
    }

    async fn read(
        &self,
        request: Request<p4::ReadRequest>,
    ) -> Result<Response<Self::ReadStream>, Status> {
        let request = request.into_inner();
        let (found, outcomes) = {
            let mut world = self.shared.lock();
            let world = &mut *world;
            let device = &mut world.devices[self.switch];
            device.arbiter.check_device(request.device_id)?;
            let (setup, pipeline) = device.addressed(world.network.pipeline_mut(self.switch))?;
            read::read(setup, pipeline, &request.entities)
        };
        let responses = found.chunks(READ_ENTITIES).map(|entities| {
            Ok(p4::ReadResponse {
                entities: entities.to_vec(),
            })
        });
        // The entities that could be read come first, then the errors.
        let error = batch_outcome(outcomes, "requests").err().map(Err);
        let responses: Vec<_> = responses.chain(error).collect();
        Ok(Response::new(Box::pin(stream::iter(responses))))
    }

    async fn set_forwarding_pipeline_config(
        &self,
        request: Request<p4::SetForwardingPipelineConfigRequest>,
    ) -> Result<Response<p4::SetForwardingPipelineConfigResponse>, Status> {
        let mut request = request.into_inner();
        self.shared.lock().devices[self.switch].arbiter.authorize(
            request.device_id,
            &request.role,
            request.election_id,
        )?;
        let config = pipeline_config::verify(&mut request)?;
        let mut world = self.shared.lock();
        pipeline_config::set(&mut world, self.switch, &request, config)?;
        Ok(Response::new(p4::SetForwardingPipelineConfigResponse {}))
    }

    async fn get_forwarding_pipeline_config(
        &self,
        request: Request<p4::GetForwardingPipelineConfigRequest>,
    ) -> Result<Response<p4::GetForwardingPipelineConfigResponse>, Status> {
        let request = request.into_inner();
        let world = self.shared.lock();
        let device = &world.devices[self.switch];
        device.arbiter.check_device(request.device_id)?;
        pipeline_config::get(device, request.response_type()).map(Response::new)
    }

    async fn stream_channel(
        &self,
        request: Request<Streaming<p4::StreamMessageRequest>>,
    ) -> Result<Response<Self::StreamChannelStream>, Status> {
        let (sender, receiver) = mpsc::channel(STREAM_MESSAGES);
        let id = self.next_stream.fetch_add(1, Ordering::Relaxed);
        let client = Client {
            service: self.clone(),
            id,
        };
        tokio::spawn(client.run(request.into_inner(), sender));
        Ok(Response::new(Box::pin(ReceiverStream::new(receiver))))
    }

    async fn capabilities(
        &self,
        _request: Request<p4::CapabilitiesRequest>,
    ) -> Result<Response<p4::CapabilitiesResponse>, Status> {
        Ok(Response::new(p4::CapabilitiesResponse {
            p4runtime_api_version: weft_p4runtime::API_VERSION.to_owned(),
            ..Default::default()
        }))
    }
}

/// A client's stream.
struct Client {
    service: Service,
    id: u64,
}

impl Client {
    /// Serves the stream until it ends or breaks a rule.
    async fn run(
        self,
        mut requests: Streaming<p4::StreamMessageRequest>,
        to: mpsc::Sender<Outgoing>,
    ) {
        let mut cut_off =
            self.service.shared.lock().devices[self.service.switch].connect(self.id, to.clone());
        let end = loop {
            tokio::select! {
                request = requests.next() => match request {
                    Some(Ok(request)) => {
                        if let Err(status) = self.handle(request) {
                            break Some(status);
                        }
                    }
                    Some(Err(_)) | None => break None,
                },
                () = to.closed() => break None,
                _ = &mut cut_off => {
                    let text = format!(
                        "you did not read your stream: {STREAM_MESSAGES} messages wait there"
                    );
                    break Some(Status::resource_exhausted(text));
                }
            }
        };
        self.service.shared.lock().devices[self.service.switch].disconnect(self.id);
        if let Some(status) = end {
            // The client may already be gone.
            let _ = to.send(Err(status)).await;
        }
    }

    /// Handles a message; an error ends the stream.
    fn handle(&self, request: p4::StreamMessageRequest) -> Result<(), Status> {
        use p4::stream_error::Details;
        let mut world = self.service.shared.lock();
        let device = &mut world.devices[self.service.switch];
        match request.update {
            Some(Update::Arbitration(update)) => device.arbitrate(self.id, &update),
            Some(Update::Packet(packet)) => {
                match device.packet_out(self.id, &packet) {
                    Ok(frame) => {
                        world.packets_out.push((self.service.switch, frame));
                        drop(world);
                        (self.service.shared.wake)();
                    }
                    Err(status) => {
                        let packet_out = Some(packet);
                        let details = Details::PacketOut(p4::PacketOutError { packet_out });
                        device.send_stream_error(self.id, &status, details);
                    }
                }
                Ok(())
            }
            Some(Update::DigestAck(ack)) => {
                if let Err(status) = device.acknowledge(self.id, ack) {
                    let digest_list_ack = Some(ack);
                    let details =
                        Details::DigestListAck(p4::DigestListAckError { digest_list_ack });
                    device.send_stream_error(self.id, &status, details);
                }
                Ok(())
            }
            Some(Update::Other(other)) => {
                let status = Status::unimplemented("weft-switch knows no such message");
                let other = Some(other);
                let details = Details::Other(p4::StreamOtherError { other });
                device.send_stream_error(self.id, &status, details);
                Ok(())
            }
            None => Err(Status::invalid_argument("an empty message")),
        }
    }
}
