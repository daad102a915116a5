// SPDX-License-Identifier: Apache-2.0

//! Real packets between network namespaces, through the program. Only root can make them;
//! for others the test is ignored.

#![allow(clippy::unwrap_used, missing_docs)]

#[path = "p4runtime/client.rs"]
#[allow(dead_code)]
mod client;

use std::path::Path;
use std::process::{Child, Command, ExitCode};
use std::time::{Duration, Instant};

use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use weft_p4runtime::p4::v1::entity::Entity;
use weft_p4runtime::p4::v1::set_forwarding_pipeline_config_request::Action;
use weft_p4runtime::p4::v1::update::Type;
use weft_testing::tools::{ROOT, run as run_tests};
use weft_testing::topology::star;

const DELAY_MS: u64 = 5;

/// A child that ends with its owner.
struct Guard(Child);

impl Drop for Guard {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn run(command: &str) -> String {
    let mut words = command.split_whitespace();
    let output = Command::new(words.next().unwrap())
        .args(words)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// A host: a network namespace that lives as long as a sleeping process.
fn host(number: u8) -> Guard {
    let child = Command::new("unshare")
        .args(["--net", "sleep", "300"])
        .spawn()
        .unwrap();
    let pid = child.id();
    // The namespace is there when the process has become `sleep`.
    wait_for(|| {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm"));
        name.is_ok_and(|name| name.trim() == "sleep")
    });
    // A spine leaves Ethernet addresses alone: the gateway's is that of the other host.
    let (own, gateway) = (number, 3 - number);
    let inside = format!("nsenter --target {pid} --net");
    for command in [
        format!("ip link add spine1-eth{number} type veth peer name eth0 netns {pid}"),
        format!("ip link set spine1-eth{number} up"),
        format!("{inside} ip link set eth0 address 02:00:00:00:00:0{own}"),
        format!("{inside} ip link set eth0 up"),
        format!("{inside} ip addr add 10.{number}.1.1/24 dev eth0"),
        format!(
            "{inside} ip neigh add 10.{number}.1.254 lladdr 02:00:00:00:00:0{gateway} dev eth0"
        ),
        format!("{inside} ip route add default via 10.{number}.1.254"),
    ] {
        run(&command);
    }
    Guard(child)
}

fn wait_for(mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(20), "timed out");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn start(folder: &Path) -> Guard {
    let mut topology = star(2);
    for link in &mut topology.links {
        link.delay_ns = DELAY_MS * 1_000_000;
    }
    let topology = serde_json::to_string(&topology).unwrap();
    std::fs::write(folder.join("topology.json"), topology).unwrap();
    let child = Command::new(env!("CARGO_BIN_EXE_weft-switch"))
        .args(["--topology", "topology.json", "--stats-dir", "."])
        .args(["--ready-file", "ready"])
        .current_dir(folder)
        .spawn()
        .unwrap();
    wait_for(|| folder.join("ready").exists());
    Guard(child)
}

/// Round-trip times of a ping from the first host to the second, in milliseconds.
fn ping(from: &Guard) -> Vec<f64> {
    let pid = from.0.id();
    let text = run(&format!(
        "nsenter --target {pid} --net ping -c 5 -i 0.1 -W 5 10.2.1.1"
    ));
    text.lines()
        .filter_map(|line| line.split_once("time=")?.1.split(' ').next()?.parse().ok())
        .collect()
}

fn main() -> ExitCode {
    run_tests(weft_testing::tests![
        ROOT;
        hosts_ping_each_other_with_the_delay_of_the_topology,
    ])
}

#[tokio::main(flavor = "current_thread")]
async fn hosts_ping_each_other_with_the_delay_of_the_topology(_ip: &Path) {
    unshare(CloneFlags::CLONE_NEWNET).unwrap();
    run("ip link set lo up");
    let hosts = [host(1), host(2)];
    let folder = tempfile::tempdir().unwrap();
    let mut switch = start(folder.path());

    let mut client = client::connect("http://127.0.0.1:9559".to_owned()).await;
    assert_eq!(client.claim(1).await, tonic::Code::Ok);
    client.push(Action::VerifyAndCommit).await.unwrap();
    let routes = [1, 2].map(|leaf| (Type::Insert, Entity::TableEntry(client::route(leaf, leaf))));
    client.write(routes.to_vec()).await.unwrap();

    let times_ms = ping(&hosts[0]);
    assert_eq!(times_ms.len(), 5);
    let least = times_ms.iter().copied().fold(f64::INFINITY, f64::min);
    // Four links there and back. On a busy machine packets may be late, but never early.
    let delay_ms = 4.0 * DELAY_MS as f64;
    assert!(
        times_ms.iter().all(|time| *time >= delay_ms),
        "{times_ms:?}"
    );
    assert!(least < 2.0 * delay_ms, "{times_ms:?}");

    let pid = i32::try_from(switch.0.id()).unwrap();
    kill(Pid::from_raw(pid), Signal::SIGTERM).unwrap();
    assert!(switch.0.wait().unwrap().success());
    let log = std::fs::read_to_string(folder.path().join("queues.csv")).unwrap();
    let mut rows = log.lines().filter(|line| line.contains(",spine1,2,h2_1,"));
    let last = rows.next_back();
    // 98 bytes each: 84 of IP and the Ethernet header.
    assert!(last.unwrap().ends_with(",5,490,0,0,0"), "{log}");
}
