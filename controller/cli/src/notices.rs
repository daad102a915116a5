// SPDX-License-Identifier: Apache-2.0

//! What a user should know before a run: flags that are allowed, and give something else
//! than one might think.

use weft_lab::{LabSpec, TopologySpec};
use weft_load::args::{DEFAULT_LOAD, TrafficKind, WorkloadArgs};
use weft_load::ideal_fabric::Protocol;

/// Who writes no classes into packets, where switches serve by them.
pub fn of_classes(spec: &LabSpec, workload: &WorkloadArgs, scheduler: &str) -> Option<String> {
    spec.topology.as_ref()?.common().priorities?;
    if (workload.protocol, scheduler) != (Protocol::Mptcp, "default") {
        return None;
    }
    let said = "the scheduler default, the kernel's own, writes no classes: with --priorities its \
                data are all in the last one\n";
    Some(said.to_owned())
}

/// A load that the paths between racks do not carry. `--load` is a share of the hosts' links,
/// and the traffic of these kinds is all between racks.
pub fn of_load(topology: Option<&TopologySpec>, workload: &WorkloadArgs) -> Option<String> {
    let (TrafficKind::Random | TrafficKind::Permutation) = workload.kind else {
        return None;
    };
    let Some(TopologySpec::LeafSpine(fabric)) = topology else {
        return None;
    };
    let load = workload.load.unwrap_or(DEFAULT_LOAD);
    let offered_bps = load * f64::from(fabric.hosts.most()) * fabric.common.host_rate_bps as f64;
    let paths_bps: u64 = (1..=fabric.spines)
        .map(|spine| {
            let own = fabric.spine_rate_bps.get(&spine);
            own.copied().unwrap_or(fabric.common.rate_bps)
        })
        .sum();
    let times = offered_bps / paths_bps as f64;
    (times > 1.0).then(|| {
        format!(
            "load {load} of the hosts' links is {times:.2} times what the paths between racks \
             carry: queues and FCTs grow for as long as flows arrive\n"
        )
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::fabric_args::FabricArgs;

    #[derive(Debug, Parser)]
    struct Cli {
        #[command(flatten)]
        fabric: FabricArgs,
        #[command(flatten)]
        workload: WorkloadArgs,
    }

    fn said(line: &str) -> Option<String> {
        let words = std::iter::once("test").chain(line.split_whitespace());
        let cli = Cli::try_parse_from(words).unwrap();
        of_load(Some(&cli.fabric.topology().unwrap()), &cli.workload)
    }

    #[test]
    fn a_load_is_told_that_the_paths_between_racks_do_not_carry() {
        let told = said("--load 0.7").unwrap();
        assert!(
            told.contains("load 0.7 of the hosts' links is 1.40 times"),
            "{told}"
        );
        assert!(
            said("--load 0.6 --spine-rate 2=200mbit")
                .unwrap()
                .contains("2.00 times")
        );
        for carried in [
            "",
            "--load 0.5",
            "--load 1 --spines 4",
            "--load 0.7 --rate 10gbit --host-rate 1gbit",
            "--traffic many-to-one --load 0.9",
            "--traffic incast",
        ] {
            assert_eq!(said(carried), None, "{carried}");
        }
    }
}
