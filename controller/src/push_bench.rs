// SPDX-License-Identifier: Apache-2.0

//! Measures how fast a change reaches agents in real time, over gRPC on loopback. Run it with
//! `cargo test --release -p weft-controller --lib push_bench -- --ignored --nocapture`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use tokio::net::TcpListener;
use tonic::transport::server::TcpIncoming;
use weft_proto::TIME_TO_LIVE_MAX_NS;
use weft_proto::v1::WatchPatternsRequest;
use weft_proto::v1::weft_client::WeftClient;

use crate::api;
use crate::clock::now_ns;
use crate::cost::Input;
use crate::engine::{Config, Engine};
use crate::fabric::RoutedFabric;
use crate::hub::Hub;
use crate::pacing::Limits;
use crate::telemetry::{RttSample, Sample};
use crate::testing::{leaf_spine, rtt_sample};

const LEAVES: u8 = 50;
const HOSTS: u8 = 20;
/// Pause between changes, so that each is measured alone.
const PAUSE: Duration = Duration::from_millis(50);
const CHANGES: usize = 100;
/// Bound on the 99th percentile, in real time.
const BOUND_NS: u64 = 2_000_000;

/// A controller with 1000 subscribed hosts.
struct Bench {
    hub: Arc<Hub>,
    fabric: RoutedFabric,
    /// When each update has arrived.
    arrivals: mpsc::Receiver<u64>,
}

impl Bench {
    fn start() -> Self {
        let fabric = || RoutedFabric::new(leaf_spine(LEAVES, 2, HOSTS)).unwrap();
        let config = Config {
            input: Input::Rtt,
            limits: Limits {
                shortest_ns: 0,
                longest_ns: 0,
            },
            ..Config::default()
        };
        let engine = Engine::new(fabric(), config);
        let time_to_live = Duration::from_nanos(TIME_TO_LIVE_MAX_NS);
        let hub = Arc::new(Hub::new(engine, time_to_live, 0, None, String::new()));
        let (address, server) = mpsc::channel();
        let served = Arc::clone(&hub);
        std::thread::spawn(move || {
            block_on(async {
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                address.send(listener.local_addr().unwrap()).unwrap();
                tonic::transport::Server::builder()
                    .add_service(api::service(served))
                    .serve_with_incoming(TcpIncoming::from(listener).with_nodelay(Some(true)))
                    .await
                    .unwrap();
            });
        });
        let url = format!("http://{}", server.recv().unwrap());
        let (arrived, arrivals) = mpsc::channel();
        let subscribed = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&subscribed);
        std::thread::spawn(move || block_on(subscribe(url, arrived, count)));
        while subscribed.load(Ordering::Relaxed) < u64::from(LEAVES) * u64::from(HOSTS) {
            std::thread::sleep(PAUSE);
        }
        Self {
            hub,
            fabric: fabric(),
            arrivals,
        }
    }

    /// Feeds RTTs of every path from `leaves` to leaf 2; path 1 has this queueing delay.
    fn measure(&self, leaves: &[u8], queueing_ns: u64) {
        let samples = leaves.iter().flat_map(|&leaf| {
            [(0, 0), (1, queueing_ns)].map(|(path, queueing_ns)| self.rtt(leaf, path, queueing_ns))
        });
        self.hub
            .record("leaf", now_ns(), &samples.collect::<Vec<_>>());
    }

    fn rtt(&self, leaf: u8, path: u8, queueing_ns: u64) -> Sample {
        let sample = rtt_sample(&self.fabric, leaf, path, queueing_ns);
        Sample::Rtt(RttSample {
            min_ns: sample.rtt_ns - queueing_ns,
            at_ns: now_ns(),
            ..sample
        })
    }

    /// Waits for `count` updates. Returns how long after `start_ns` each arrived.
    fn delays_ns(&self, start_ns: u64, count: usize) -> Vec<u64> {
        let arrival = || self.arrivals.recv_timeout(Duration::from_secs(20)).unwrap();
        (0..count)
            .map(|_| arrival().saturating_sub(start_ns))
            .collect()
    }

    /// Changes the RTT from `leaves` to leaf 2 back and forth. Returns the sorted delays of the
    /// updates to their hosts.
    fn change(&self, leaves: &[u8]) -> Vec<u64> {
        let mut delays = Vec::new();
        for change in 0..CHANGES {
            std::thread::sleep(PAUSE);
            let start_ns = now_ns();
            self.measure(leaves, if change % 2 == 0 { 3_000_000 } else { 0 });
            delays.extend(self.delays_ns(start_ns, leaves.len() * usize::from(HOSTS)));
        }
        delays.sort_unstable();
        delays
    }
}

/// Opens one stream per host, ten to a connection.
async fn subscribe(url: String, arrived: mpsc::Sender<u64>, subscribed: Arc<AtomicU64>) {
    let hosts = leaf_spine(LEAVES, 2, HOSTS).hosts;
    let mut tasks = tokio::task::JoinSet::new();
    for hosts in hosts.chunks(10) {
        let client = WeftClient::connect(url.clone()).await.unwrap();
        for host in hosts {
            let (mut client, arrived) = (client.clone(), arrived.clone());
            let request = WatchPatternsRequest {
                host: host.name.clone(),
            };
            let mut stream = client.watch_patterns(request).await.unwrap().into_inner();
            subscribed.fetch_add(1, Ordering::Relaxed);
            tasks.spawn(async move {
                while let Ok(Some(update)) = stream.message().await {
                    if !update.patterns.is_empty() && arrived.send(now_ns()).is_err() {
                        return;
                    }
                }
            });
        }
    }
    while tasks.join_next().await.is_some() {}
}

fn block_on(future: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(future);
}

fn percentile(sorted: &[u64], percent: usize) -> u64 {
    sorted[(sorted.len() - 1) * percent / 100]
}

#[test]
#[ignore = "measures real time"]
fn a_change_reaches_the_hosts_it_concerns_within_2_ms() {
    let bench = Bench::start();
    let others: Vec<u8> = (1..=LEAVES).filter(|&leaf| leaf != 2).collect();
    bench.measure(&others, 0);
    // The first patterns, to all hosts except those of leaf 2.
    bench.delays_ns(0, others.len() * usize::from(HOSTS));
    let rack = bench.change(&others[..1]);
    let all = bench.change(&others);
    for (what, delays) in [("one rack", &rack), ("all racks", &all)] {
        println!(
            "{what}: {} of 1000 hosts get updates, median {:.2} ms, p99 {:.2} ms, worst {:.2} ms",
            delays.len() / CHANGES,
            percentile(delays, 50) as f64 / 1e6,
            percentile(delays, 99) as f64 / 1e6,
            percentile(delays, 100) as f64 / 1e6,
        );
    }
    assert!(percentile(&rack, 99) <= BOUND_NS);
}
