// SPDX-License-Identifier: Apache-2.0

//! `weft-agent`: see the library's documentation.

mod queries;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use clap::{Args, Parser, Subcommand};
use futures::FutureExt;
use futures::future::join_all;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;
use tonic::transport::{Channel, Endpoint};
use tracing::info;
use tracing_subscriber::EnvFilter;
use weft_agent::path_manager::{Manager, PathManager};
use weft_agent::weft::Weft;
use weft_agent::{mptcp_pm, subscription};
use weft_text::usage::plain;
use weft_topology::{Host, Topology};

use crate::queries::Query;

/// A controller connection is probed after this silence, and closed after as much again without
/// an answer. It equals the usual time to live of patterns.
const KEEP_ALIVE: Duration = Duration::from_millis(200);

/// Applies the controller's allocation patterns in the kernels of hosts, and manages the
/// number of subflows of their connections.
#[derive(Debug, Parser)]
#[command(
    version,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true
)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    serve: Option<Serve>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Print the MPTCP connections that one of Weft's schedulers serves
    Flows(Query),
    /// Print the kernel's measurements of each subflow of the connections that hosts have
    /// opened, by path, for any scheduler
    Subflows(Query),
    /// Print the patterns that kernels hold
    Patterns(Query),
    /// Print the thresholds between classes that kernels hold
    Thresholds(Query),
}

#[derive(Debug, Args)]
struct Serve {
    // Not `Hosts`: clap does not see an optional group inside which another one is flattened.
    /// topology.json
    #[arg(long, value_name = "FILE")]
    topology: PathBuf,
    /// A host to serve; repeat for more [default: all]
    #[arg(long = "host", value_name = "NAME")]
    names: Vec<String>,
    /// The controller's weft.v1 server; repeat for others that may take over
    #[arg(long = "controller", value_name = "URL", required = true)]
    controllers: Vec<Endpoint>,
    /// What opens subflows: the kernel, one per path (kernel); the agent, N per path (fixed:N);
    /// or the agent, as many per path as increase throughput (adaptive, which is short for
    /// adaptive:interval=100ms,max=4,gain=10%)
    #[arg(long, value_name = "HOW", default_value = "kernel")]
    path_manager: PathManager,
    /// Subscribe to no controller: for kernels without the netlink family mptcp_pattern
    #[arg(long)]
    no_patterns: bool,
    /// File to create once every host has subscribed
    #[arg(long, value_name = "FILE")]
    ready_file: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct Hosts {
    /// topology.json
    #[arg(long, value_name = "FILE")]
    topology: PathBuf,
    /// A host to query; repeat for more [default: all]
    #[arg(long = "host", value_name = "NAME")]
    names: Vec<String>,
}

impl Hosts {
    fn read(&self) -> Result<Vec<Host>> {
        hosts(&Topology::read(&self.topology)?, &self.names)
    }
}

/// The hosts with these names, or all hosts.
fn hosts(topology: &Topology, names: &[String]) -> Result<Vec<Host>> {
    if names.is_empty() {
        return Ok(topology.hosts.clone());
    }
    let find = |name: &String| {
        topology.host(name).cloned().ok_or_else(|| {
            let known: Vec<_> = topology
                .hosts
                .iter()
                .map(|host| host.name.as_str())
                .collect();
            anyhow!(
                "no host {name:?} in the topology; it has {}",
                known.join(", ")
            )
        })
    };
    names.iter().map(find).collect()
}

fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_env_filter(
            EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info")),
        )
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .init();
    let cli = Cli::parse();
    let result = match (cli.command, cli.serve) {
        (Some(Command::Flows(query)), _) => query.print_flows(),
        (Some(Command::Subflows(query)), _) => query.print_subflows(),
        (Some(Command::Patterns(query)), _) => query.print_patterns(),
        (Some(Command::Thresholds(query)), _) => query.print_thresholds(),
        (None, Some(serve)) => run(&serve),
        (None, None) => unreachable!("clap requires the arguments of one of them"),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("weft-agent: {}", plain(error));
            ExitCode::FAILURE
        }
    }
}

/// Single-threaded: in the lab a second thread would cost a wake-up per message.
#[tokio::main(flavor = "current_thread")]
async fn run(serve: &Serve) -> Result<()> {
    let topology = Topology::read(&serve.topology)?;
    let hosts = hosts(&topology, &serve.names)?;
    let controllers: Vec<_> = serve.controllers.iter().map(channel).collect();
    let mut subscribing = Vec::new();
    let mut working = Vec::new();
    for host in hosts {
        let manager = manage_subflows(&host, &serve.path_manager, topology.ipv6)
            .with_context(|| format!("{}: MPTCP path manager", host.name))?;
        working.extend(manager.map(|manager| manager.run().boxed_local()));
        if serve.no_patterns {
            continue;
        }
        let kernel = Weft::open(&host.netns).with_context(|| host.name.clone())?;
        let (subscribed, first) = oneshot::channel();
        subscribing.push(first);
        let controllers = controllers.clone();
        let subscription =
            async move { subscription::run(&host.name, kernel, controllers, subscribed).await };
        working.push(subscription.boxed_local());
    }
    if serve.no_patterns {
        info!("managing subflows only, without patterns");
        working.push(std::future::pending().boxed_local());
    }
    let ready = async {
        join_all(subscribing).await;
        report_ready(serve.ready_file.as_deref())?;
        std::future::pending::<Result<()>>().await
    };
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        _ = join_all(working) => Ok(()),
        result = ready => result,
        _ = terminate.recv() => Ok(()),
        _ = tokio::signal::ctrl_c() => Ok(()),
    }
}

/// A channel to a controller. It is closed when the controller stops answering: after a
/// network partition, hosts must be free to subscribe to another one.
fn channel(controller: &Endpoint) -> Channel {
    controller
        .clone()
        .connect_timeout(KEEP_ALIVE)
        .http2_keep_alive_interval(KEEP_ALIVE)
        .keep_alive_timeout(KEEP_ALIVE)
        .keep_alive_while_idle(true)
        .connect_lazy()
}

/// Sets up how connections of `host` get their subflows: by the kernel, or by the manager
/// that this returns.
fn manage_subflows(host: &Host, path_manager: &PathManager, ipv6: bool) -> Result<Option<Manager>> {
    path_manager
        .check(host.addresses.len())
        .map_err(|error| anyhow!(error))?;
    match path_manager.policy() {
        None => {
            mptcp_pm::select(&host.netns, mptcp_pm::PathManager::Kernel)?;
            mptcp_pm::use_addresses(&host.netns, &host.addresses, ipv6)?;
            Ok(None)
        }
        Some(policy) => {
            // Listen first: new connections of this path manager need a listener.
            let manager = Manager::open(host, policy, ipv6)?;
            mptcp_pm::select(&host.netns, mptcp_pm::PathManager::Userspace)?;
            Ok(Some(manager))
        }
    }
}

fn report_ready(ready_file: Option<&Path>) -> Result<()> {
    info!("every host subscribed to the controller");
    match ready_file {
        Some(file) => std::fs::write(file, "").with_context(|| file.display().to_string()),
        None => Ok(()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_daemon_and_its_queries_are_told_apart() {
        let daemon = [
            "weft-agent",
            "--topology",
            "t.json",
            "--controller",
            "http://127.0.0.1:9339",
        ];
        let cli = Cli::try_parse_from(daemon).unwrap();
        assert!(cli.command.is_none() && cli.serve.is_some());
        let managed = [&daemon[..], &["--path-manager", "fixed:9"]].concat();
        assert!(Cli::try_parse_from(managed).is_err());
        let query = ["weft-agent", "flows", "--topology", "t.json"];
        let cli = Cli::try_parse_from(query).unwrap();
        assert!(matches!(cli.command, Some(Command::Flows(_))));
        assert!(Cli::try_parse_from(["weft-agent"]).is_err());
    }
}
