// SPDX-License-Identifier: Apache-2.0

//! Tests of the closed loop with real switches. weft-switch runs the compiled programs on
//! virtual time, gRPC is real, and the tests make the packets.

use std::cell::Cell;
use std::net::Ipv4Addr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::{JoinHandle, LocalSet, spawn_local};
use tokio_stream::wrappers::TcpListenerStream;
use weft_proto::v1;
use weft_proto::v1::weft_client::WeftClient;
use weft_switch::server::{Shared, World, serve};
use weft_testing::packet::{ACK, SYN, Tcp};
use weft_topology::Topology;

use crate::api;
use crate::engine::{Config, Engine};
use crate::fabric::RoutedFabric;
use crate::hub::{Hub, Refusal};
use crate::p4::desired::desired;
use crate::p4::desired::policing::Limits;
use crate::p4::digest::Decoder;
use crate::p4::session::{Target, run};
use crate::p4::timestamps::TimestampUnit;
use crate::testing::{leaf_spine, links_of, program};

const MS: u64 = 1_000_000;
const TIMEOUT: Duration = Duration::from_secs(20);

/// All switches of a fabric, on a clock that the test controls.
struct Switches {
    shared: Shared,
    topology: Topology,
    now_ns: u64,
}

impl Switches {
    async fn start(mut topology: Topology) -> Self {
        for switch in &mut topology.switches {
            switch.grpc = "127.0.0.1:0".into();
        }
        let unit = weft_switch::network::TimestampUnit::Nanoseconds;
        let world = World::new(&topology, unit, 0, 1).unwrap();
        let shared = Shared::new(world, || {});
        let addresses = serve(&topology, &shared).await.unwrap();
        for (switch, address) in topology.switches.iter_mut().zip(addresses) {
            switch.grpc = address.to_string();
        }
        Self {
            shared,
            topology,
            now_ns: 10 * MS,
        }
    }

    /// Sends a packet and lets 5 ms pass. Returns when it arrived.
    fn send(&mut self, packet: &Tcp) -> u64 {
        self.send_at(self.now_ns, packet)
    }

    fn send_at(&mut self, at_ns: u64, packet: &Tcp) -> u64 {
        let host = &self.topology.host_of(packet.src).unwrap().name;
        let mut world = self.shared.lock();
        let ports = world.network.host_ports();
        let port = ports.iter().position(|port| port.host == *host).unwrap();
        world.network.receive(port, at_ns, &packet.frame());
        let mut deliveries = Vec::new();
        // No further than the packet itself, or its answer would be late.
        while deliveries.is_empty() {
            self.now_ns = world.network.next_event_ns().expect("the packet is lost") + 1;
            world.advance(self.now_ns, self.now_ns, &mut deliveries);
        }
        deliveries[0].at_ns
    }

    /// Lets time pass so that digests are sent.
    fn rest(&mut self) {
        self.now_ns += 5 * MS;
        let mut world = self.shared.lock();
        world.advance(self.now_ns, self.now_ns, &mut Vec::new());
    }
}

/// A SYN that is long enough to carry MPTCP's options.
fn syn(source: Ipv4Addr, destination: Ipv4Addr) -> Tcp {
    Tcp {
        dst_port: 80,
        option_bytes: 24,
        ..Tcp::subflow(source, destination).syn(1000)
    }
}

/// The SYN/ACK that answers a SYN.
fn answer(syn: &Tcp) -> Tcp {
    Tcp {
        seq: 5000,
        flags: SYN | ACK,
        option_bytes: 24,
        ..syn.ack_of(syn.seq + 1)
    }
}

/// A controller, without its own process.
struct Controller {
    hub: Arc<Hub>,
    sessions: Vec<JoinHandle<()>>,
}

impl Controller {
    /// Starts a controller and waits until every switch is programmed.
    async fn start(topology: &Topology) -> Self {
        let (controller, all_ready) = Self::launch(topology);
        let ready = tokio::time::timeout(TIMEOUT, all_ready.notified()).await;
        ready.expect("not every switch was programmed");
        controller
    }

    /// Starts a controller, with a signal for when every switch is programmed.
    fn launch(topology: &Topology) -> (Self, Rc<Notify>) {
        let fabric = RoutedFabric::new(topology.clone()).unwrap();
        let unit = TimestampUnit::Nanoseconds;
        let targets: Vec<Target> = topology
            .switches
            .iter()
            .map(|switch| {
                let program = program(switch.role);
                Target {
                    name: switch.name.clone(),
                    device_id: switch.device_id,
                    grpc: switch.grpc.clone(),
                    desired: desired(&fabric, switch, &program, unit).unwrap(),
                    limits: Limits::of(topology, switch, &program).unwrap(),
                    decoder: Decoder::new(&program, switch.role, unit).unwrap(),
                    program: Arc::new(program),
                }
            })
            .collect();
        let time_to_live = Duration::from_millis(200);
        let hub = Hub::new(
            Engine::new(fabric, Config::default()),
            time_to_live,
            unit.wait_ns(),
            None,
            String::new(),
        );
        let hub = Arc::new(hub);
        let waiting = Rc::new(Cell::new(targets.len()));
        let all_ready = Rc::new(Notify::new());
        let mut sessions = Vec::new();
        for target in targets {
            let (waiting, all_ready) = (Rc::clone(&waiting), Rc::clone(&all_ready));
            let ready = move || {
                // Called again for each later session.
                waiting.set(waiting.get().saturating_sub(1));
                if waiting.get() == 0 {
                    all_ready.notify_one();
                }
            };
            sessions.push(spawn_local(run(target, Arc::clone(&hub), ready)));
        }
        let timer = Arc::clone(&hub);
        sessions.push(spawn_local(async move { timer.keep_time().await.unwrap() }));
        (Self { hub, sessions }, all_ready)
    }

    /// Ends it abruptly, as kill -9 would.
    async fn kill(self) {
        for session in self.sessions {
            session.abort();
            let _ = session.await;
        }
    }

    /// Waits until path `path` from leaf 1 to leaf 2 has a sample.
    async fn path(&self, path: usize) -> v1::PathState {
        let found = tokio::time::timeout(TIMEOUT, async {
            loop {
                let pairs = self.hub.list_paths();
                let pair = pairs.into_iter().find(|pair| pair.source_leaf == 1);
                let state = pair.unwrap().paths.swap_remove(path);
                if state.samples > 0 {
                    return state;
                }
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        });
        found.await.expect("no RTT sample came")
    }
}

const REMOTE: Ipv4Addr = Ipv4Addr::new(10, 2, 1, 1);

/// The addresses of h1_1 whose subflows to h2_1 take path 0 and 1.
fn locals(topology: &Topology) -> [Ipv4Addr; 2] {
    let fabric = RoutedFabric::new(topology.clone()).unwrap();
    let topology = fabric.topology();
    let (host, peer) = (
        topology.host("h1_1").unwrap(),
        topology.host("h2_1").unwrap(),
    );
    [0, 1].map(|path| fabric.local_address(host, peer, path).unwrap())
}

fn block_on(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    LocalSet::new().block_on(&runtime, test);
}

#[test]
fn rtts_that_switches_measure_become_patterns_that_agents_get() {
    block_on(async {
        let mut topology = leaf_spine(2, 2, 2);
        for link in links_of(&mut topology, "spine2") {
            link.delay_ns = 40_000;
        }
        let mut switches = Switches::start(topology).await;
        let controller = Controller::start(&switches.topology).await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        spawn_local(
            tonic::transport::Server::builder()
                .add_service(api::service(Arc::clone(&controller.hub)))
                .serve_with_incoming(TcpListenerStream::new(listener)),
        );
        let mut client = WeftClient::connect(url).await.unwrap();
        let host = "h1_1".to_owned();
        let request = v1::WatchPatternsRequest { host: host.clone() };
        let mut updates = client.watch_patterns(request).await.unwrap().into_inner();
        let peers = updates.message().await.unwrap().unwrap().peers;
        // Both hosts of leaf 2, in order.
        assert_eq!(peers.len(), 2);
        let from = peers[0].local_addresses.iter();
        let from: Vec<_> = from.map(|&address| Ipv4Addr::from(address)).collect();

        let locals = locals(&switches.topology);
        assert_eq!(from, locals);
        for (path, local) in locals.into_iter().enumerate() {
            let syn = syn(local, REMOTE);
            let arrived_ns = switches.send(&syn);
            switches.send_at(arrived_ns, &answer(&syn));
            switches.rest();
            let state = controller.path(path).await;
            assert!(
                state.rtt_ns.abs_diff(state.rtt_configured_ns) < 100,
                "path {path}: measured {} ns, configured {} ns",
                state.rtt_ns,
                state.rtt_configured_ns
            );
        }

        let update = tokio::time::timeout(TIMEOUT, updates.message()).await;
        let update = update.expect("no pattern came").unwrap().unwrap();
        // 117.6 us to 237.6 us.
        assert_eq!(update.patterns.len(), 1);
        assert_eq!(update.patterns[0].sequence, [0, 0, 1]);

        let mut update = update.update;
        loop {
            let ack = v1::AckPatternsRequest {
                host: host.clone(),
                update,
                applied_ns: 0,
            };
            client.ack_patterns(ack).await.unwrap();
            let patterns = client.list_patterns(v1::ListPatternsRequest {}).await;
            let patterns = patterns.unwrap().into_inner().patterns;
            assert_eq!(patterns.len(), 1);
            if patterns[0].acknowledged_by == ["h1_1"] {
                break;
            }
            // On a slow machine paths die meanwhile, because the switches' clock stands still.
            let next = tokio::time::timeout(TIMEOUT, updates.message()).await;
            update = next.expect("no newer one").unwrap().unwrap().update;
        }

        let unknown = v1::WatchPatternsRequest {
            host: "h9_9".into(),
        };
        let error = client.watch_patterns(unknown).await.unwrap_err();
        assert_eq!(error.code(), tonic::Code::NotFound);
    });
}

#[test]
fn probes_cross_the_switches_and_bring_a_dead_path_back() {
    block_on(async {
        let mut switches = Switches::start(leaf_spine(2, 2, 1)).await;
        let controller = Controller::start(&switches.topology).await;
        let syn = syn(locals(&switches.topology)[0], REMOTE);
        let arrived_ns = switches.send(&syn);
        switches.send_at(arrived_ns, &answer(&syn));
        switches.rest();
        controller.path(0).await;
        let mut until = async |is_dead: bool| {
            let reached = tokio::time::timeout(TIMEOUT, async {
                while controller.path(0).await.dead != is_dead {
                    if !is_dead {
                        switches.rest();
                    }
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            });
            reached.await.is_ok()
        };
        assert!(until(true).await, "no probe comes while their clock stands");
        assert!(until(false).await, "probes do not arrive");
    });
}

#[test]
fn a_restarted_controller_leaves_running_programs_alone() {
    block_on(async {
        let mut switches = Switches::start(leaf_spine(2, 2, 1)).await;
        let controller = Controller::start(&switches.topology).await;
        let syn = syn(locals(&switches.topology)[0], REMOTE);
        let arrived_ns = switches.send(&syn);
        controller.kill().await;
        let controller = Controller::start(&switches.topology).await;
        // The leaf still knows when the packet passed, and this controller gets its digests.
        switches.send_at(arrived_ns, &answer(&syn));
        switches.rest();
        let state = controller.path(0).await;
        assert!(state.rtt_ns.abs_diff(state.rtt_configured_ns) < 100);
    });
}

#[test]
fn a_second_controller_outbids_one_that_still_lives() {
    block_on(async {
        let mut switches = Switches::start(leaf_spine(2, 2, 1)).await;
        let first = Controller::start(&switches.topology).await;
        let second = Controller::start(&switches.topology).await;
        let syn = syn(locals(&switches.topology)[0], REMOTE);
        let arrived_ns = switches.send(&syn);
        switches.send_at(arrived_ns, &answer(&syn));
        switches.rest();
        second.path(0).await;
        // The first controller has waited for this, and measures again.
        second.kill().await;
        while first.hub.is_standby() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let samples = |controller: &Controller| controller.hub.list_paths()[0].paths[0].samples;
        for attempt in 1..=1500 {
            assert!(attempt < 1500, "the first controller did not come back");
            // A new flow each time: equal samples are reported once, and seldom.
            let syn = Tcp {
                src_port: syn.src_port + attempt,
                ..syn
            };
            let arrived_ns = switches.send(&syn);
            switches.send_at(arrived_ns, &answer(&syn));
            switches.rest();
            tokio::time::sleep(Duration::from_millis(20)).await;
            if samples(&first) > 0 {
                break;
            }
        }
    });
}

#[test]
fn agents_of_a_controller_that_is_outbid_are_sent_to_the_other_and_come_back() {
    block_on(async {
        let switches = Switches::start(leaf_spine(2, 2, 1)).await;
        let first = Controller::start(&switches.topology).await;
        let mut stream = first.hub.subscribe("h1_1").unwrap();
        let second = Controller::start(&switches.topology).await;
        let ended = tokio::time::timeout(TIMEOUT, async { while stream.recv().await.is_some() {} });
        ended.await.expect("the first controller keeps its agents");
        assert_eq!(first.hub.subscribe("h1_1").err(), Some(Refusal::Standby));
        assert!(second.hub.subscribe("h1_1").is_ok());
        assert_eq!(second.hub.subscribe("h9_9").err(), Some(Refusal::NoHost));
        second.kill().await;
        let back = tokio::time::timeout(TIMEOUT, async {
            while first.hub.is_standby() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
        back.await.expect("the first controller does not take over");
        assert!(first.hub.subscribe("h1_1").is_ok());
    });
}

#[test]
fn a_controller_that_reaches_no_switch_refuses_agents() {
    block_on(async {
        let mut topology = leaf_spine(2, 2, 1);
        for switch in &mut topology.switches {
            // The discard port (RFC 863), where nobody listens.
            switch.grpc = "127.0.0.1:9".into();
        }
        let (controller, _) = Controller::launch(&topology);
        let sent_away = tokio::time::timeout(TIMEOUT, async {
            while !controller.hub.is_standby() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
        sent_away.await.expect("it still serves agents");
        assert!(!controller.hub.is_primary());
        assert_eq!(
            controller.hub.subscribe("h1_1").err(),
            Some(Refusal::Standby)
        );
    });
}
