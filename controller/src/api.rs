// SPDX-License-Identifier: Apache-2.0

//! The `weft.v1` server.

use std::pin::Pin;
use std::sync::Arc;

use tokio_stream::wrappers::{BroadcastStream, ReceiverStream};
use tokio_stream::{Stream, StreamExt as _};
use tonic::{Request, Response, Status};
use weft_proto::v1;
use weft_proto::v1::weft_server::{Weft, WeftServer};

use crate::hub::{Hub, Refusal};

/// The gRPC service of `hub`.
#[must_use]
pub fn service(hub: Arc<Hub>) -> WeftServer<impl Weft> {
    WeftServer::new(Api { hub })
}

struct Api {
    hub: Arc<Hub>,
}

type Reply<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl Weft for Api {
    type WatchTelemetryStream =
        Pin<Box<dyn Stream<Item = Result<v1::TelemetryEvent, Status>> + Send>>;
    type WatchPatternsStream = ReceiverStream<Result<v1::PatternUpdate, Status>>;

    async fn list_patterns(
        &self,
        _: Request<v1::ListPatternsRequest>,
    ) -> Reply<v1::ListPatternsResponse> {
        Ok(Response::new(v1::ListPatternsResponse {
            patterns: self.hub.list_patterns(),
        }))
    }

    async fn list_paths(&self, _: Request<v1::ListPathsRequest>) -> Reply<v1::ListPathsResponse> {
        Ok(Response::new(v1::ListPathsResponse {
            pairs: self.hub.list_paths(),
        }))
    }

    async fn explain_patterns(
        &self,
        request: Request<v1::ExplainPatternsRequest>,
    ) -> Reply<v1::ExplainPatternsResponse> {
        let v1::ExplainPatternsRequest {
            source_leaf: source,
            destination_leaf: destination,
        } = request.into_inner();
        let pairs = self.hub.explain(source, destination).ok_or_else(|| {
            Status::not_found(format!("no path from leaf{source} to leaf{destination}"))
        })?;
        Ok(Response::new(v1::ExplainPatternsResponse { pairs }))
    }

    async fn explain_classes(
        &self,
        _: Request<v1::ExplainClassesRequest>,
    ) -> Reply<v1::ExplainClassesResponse> {
        Ok(Response::new(self.hub.explain_classes()))
    }

    async fn watch_telemetry(
        &self,
        _: Request<v1::WatchTelemetryRequest>,
    ) -> Reply<Self::WatchTelemetryStream> {
        let events = BroadcastStream::new(self.hub.watch_telemetry());
        // A slow user misses events, as the backlog says.
        let events = events.filter_map(|event| event.ok().map(Ok));
        Ok(Response::new(Box::pin(events)))
    }

    async fn get_topology(
        &self,
        _: Request<v1::GetTopologyRequest>,
    ) -> Reply<v1::GetTopologyResponse> {
        Ok(Response::new(v1::GetTopologyResponse {
            json: self.hub.topology_json().to_owned(),
        }))
    }

    async fn get_role(&self, _: Request<v1::GetRoleRequest>) -> Reply<v1::GetRoleResponse> {
        Ok(Response::new(v1::GetRoleResponse {
            primary: self.hub.is_primary(),
        }))
    }

    async fn watch_patterns(
        &self,
        request: Request<v1::WatchPatternsRequest>,
    ) -> Reply<Self::WatchPatternsStream> {
        let host = request.into_inner().host;
        let updates = self.hub.subscribe(&host).map_err(|refusal| match refusal {
            Refusal::NoHost => no_host(&host),
            Refusal::Standby => {
                Status::unavailable("this controller is not primary for most switches")
            }
        })?;
        Ok(Response::new(ReceiverStream::new(updates)))
    }

    async fn ack_patterns(
        &self,
        request: Request<v1::AckPatternsRequest>,
    ) -> Reply<v1::AckPatternsResponse> {
        let v1::AckPatternsRequest {
            host,
            update,
            applied_ns,
        } = request.into_inner();
        self.hub.acknowledge(&host, update, applied_ns);
        Ok(Response::new(v1::AckPatternsResponse {}))
    }
}

fn no_host(host: &str) -> Status {
    Status::not_found(format!("the topology has no host {host:?}"))
}
