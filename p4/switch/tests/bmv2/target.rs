// SPDX-License-Identifier: Apache-2.0

//! A BMv2 of the test's own. Packets go in and come out over gRPC, so it needs no interface.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tokio::net::TcpSocket;
use tokio_stream::StreamExt as _;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status, Streaming};
use tonic_prost::ProstCodec;
use weft_switch::pipeline::PRIORITIES;

/// Its P4Runtime device id.
pub const DEVICE: u64 = 1;

/// What `simple_switch_grpc --cpu-port` gets.
const CPU_PORT: u16 = 510;

/// Maximum number of packets that wait for a port; others are dropped.
const QUEUE_PACKETS: usize = 64;

/// How long it may take to start.
const START_LIMIT: Duration = Duration::from_secs(60);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// A packet into the switch, or out of it (`p4.bm.PacketStreamRequest`, `-Response`).
#[derive(Clone, PartialEq, prost::Message)]
struct Carried {
    /// A packet out of the switch has the id of the packet that it came from.
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(uint64, tag = "2")]
    device_id: u64,
    #[prost(uint32, tag = "3")]
    port: u32,
    #[prost(bytes = "vec", tag = "4")]
    packet: Vec<u8>,
}

/// A frame and the port that it takes.
pub type Frame = (u16, Vec<u8>);

/// A running BMv2, which ends when this is dropped.
pub struct Bmv2 {
    process: Child,
    /// Its P4Runtime server.
    pub control: Channel,
    packets: Channel,
    _ports: [Port; 3],
}

impl Bmv2 {
    /// Starts it with the program in `json`, or without one.
    pub async fn start(program: &Path, json: Option<&str>) -> Self {
        let ports = [(); 3].map(|()| Port::reserve());
        let [control, packets, thrift] = [0, 1, 2].map(|place: usize| ports[place].number());
        let mut command = Command::new(program);
        match json {
            Some(json) => command.arg(json),
            None => command.arg("--no-p4"),
        };
        command.args(["--device-id", &DEVICE.to_string()]);
        command.args(["--thrift-port", &thrift.to_string()]);
        command.args(["--log-console", "--log-level", "off", "--"]);
        command.args(["--grpc-server-addr", &format!("127.0.0.1:{control}")]);
        command.args(["--dp-grpc-server-addr", &format!("127.0.0.1:{packets}")]);
        command.args(["--cpu-port", &CPU_PORT.to_string()]);
        command.args(["--priority-queues", &PRIORITIES.to_string()]);
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        Self {
            process: process.unwrap(),
            control: connected(control).await,
            packets: connected(packets).await,
            _ports: ports,
        }
    }

    /// Sends packets one after another. Returns the packets that came out for each of them.
    pub async fn run(&mut self, packets: &[Frame]) -> Vec<Vec<Frame>> {
        let mut came = Vec::new();
        for some in packets.chunks(QUEUE_PACKETS / 2) {
            came.extend(self.run_some(some).await);
        }
        came
    }

    /// The same for a number of packets that overflows no queue.
    async fn run_some(&mut self, packets: &[Frame]) -> Vec<Vec<Frame>> {
        let carried = packets.iter().zip(1..).map(|((port, packet), id)| Carried {
            id,
            device_id: DEVICE,
            port: u32::from(*port),
            packet: packet.clone(),
        });
        let sent: Vec<Carried> = carried.collect();
        let mut answers = loop {
            match self.stream(sent.clone()).await {
                Ok(answers) => break answers,
                // It listens before it is ready.
                Err(status) if status.code() == tonic::Code::Unavailable => {
                    tokio::time::sleep(LOOK_AGAIN).await;
                }
                Err(status) => panic!("{status}; its process: {:?}", self.process.try_wait()),
            }
        };
        // It ends the stream when it has nothing more in hand.
        let mut came = vec![Vec::new(); packets.len()];
        while let Some(answer) = answers.next().await {
            let answer = answer.unwrap();
            let place = usize::try_from(answer.id).unwrap() - 1;
            came[place].push((u16::try_from(answer.port).unwrap(), answer.packet));
        }
        came
    }

    async fn stream(&self, sent: Vec<Carried>) -> Result<Streaming<Carried>, Status> {
        let mut rpc = Grpc::new(self.packets.clone());
        rpc.ready().await.unwrap();
        let path = PathAndQuery::from_static("/p4.bm.DataplaneInterface/PacketStream");
        let codec = ProstCodec::<Carried, Carried>::default();
        let request = Request::new(tokio_stream::iter(sent));
        Ok(rpc.streaming(request, path, codec).await?.into_inner())
    }
}

impl Drop for Bmv2 {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A port that BMv2 may listen at, and nobody else gets meanwhile.
///
/// BMv2's gRPC sets `SO_REUSEPORT`, so two of them could listen at one port, and each would get
/// connections that are meant for the other. Linux hands out no port to which a socket is bound
/// (`inet_csk_find_open_port()` in `net/ipv4/inet_connection_sock.c`).
struct Port(TcpSocket);

impl Port {
    fn reserve() -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        // For gRPC the one, for Thrift the other.
        socket.set_reuseport(true).unwrap();
        socket.set_reuseaddr(true).unwrap();
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        socket.bind(any).unwrap();
        Self(socket)
    }

    fn number(&self) -> u16 {
        self.0.local_addr().unwrap().port()
    }
}

async fn connected(port: u16) -> Channel {
    let endpoint = Endpoint::from_shared(format!("http://127.0.0.1:{port}")).unwrap();
    let connect = async {
        loop {
            match endpoint.connect().await {
                Ok(channel) => break channel,
                Err(_) => tokio::time::sleep(LOOK_AGAIN).await,
            }
        }
    };
    let limited = tokio::time::timeout(START_LIMIT, connect);
    limited.await.expect("it does not start")
}
