// SPDX-License-Identifier: Apache-2.0

use super::*;
use crate::ideal_fabric::tests::leaf_spine;

/// Parameters of some run, with this scheduler.
pub(crate) fn info(scheduler: &str) -> RunInfo {
    RunInfo {
        format: FORMAT,
        weft: "0.1.0".into(),
        revision: None,
        kernel: "Linux 6.12".into(),
        workload: Workload {
            traffic: "incast".into(),
            workload: None,
            mean_bytes: None,
            load: None,
            flows: 2,
            bytes: Some(1_000),
            scheduler_options: Vec::new(),
            scheduler: scheduler.into(),
            seed: 1,
            connections: "persistent".into(),
            send_buffer_bytes: None,
            receive_buffer_bytes: None,
            interarrival_ns: None,
            duration_ns: None,
            parallel: None,
            more: More::default(),
            protocol: "mptcp".into(),
            congestion: "cubic".to_owned(),
            stall_timeout_ns: 1,
        },
        topology: TopologySummary::of(&leaf_spine(2, 2, 2, 1_000, 500)),
        lab: None,
        outcome: RunOutcome {
            completed: 1,
            failed: 1,
            duration_ns: 5,
            start_ns: 7,
        },
    }
}

/// A flow that took `fct_ns`, or failed.
pub(crate) fn row(bytes: u64, fct_ns: Option<u64>) -> FlowRow {
    FlowRow {
        flow: 0,
        src: "h1_1".into(),
        dst: "h2_1".into(),
        bytes,
        start_ns: 0,
        fct_ns,
        ideal_fct_ns: 100,
        subflows: 2,
        retransmissions: 3,
        timeouts: 1,
        reinjected_bytes: 1_424,
        error: if fct_ns.is_some() {
            String::new()
        } else {
            "refused".into()
        },
    }
}

const WINDOW: Window = Window {
    start_ns: 0,
    end_ns: 10,
};

#[test]
fn a_folder_reads_back_as_it_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("runs/x");
    fs::write(
        folder.path().join("queues.csv"),
        "time_ns,switch,port,tx_packets,tx_bytes,dropped_packets,lost_packets\n\
         1,a,1,1,1,3,0\n2,a,1,1,1,5,1\n2,b,1,1,1,2,3\n",
    )
    .unwrap();
    let flows = [row(1_000, Some(250)), row(1_000, None)];
    let subflow = SubflowRow {
        flow: 1,
        time_ns: 250,
        source: [10, 1, 1, 2].into(),
        source_port: 400,
        destination: [10, 2, 1, 1].into(),
        destination_port: 5_001,
        srtt_ns: 131_000,
        min_rtt_ns: 118_000,
    };
    let tables = Tables {
        flows: &flows,
        subflows: &[subflow],
        samples: None,
        background: &[BackgroundRow {
            src: "h1_1".to_owned(),
            dst: "h2_1".to_owned(),
            bytes: 125_000_000,
        }],
    };
    write(&out, &info("rb"), tables, folder.path(), WINDOW).unwrap();
    let read = Results::read(&out).unwrap();
    assert_eq!(read.info, info("rb"));
    assert_eq!(read.flows, flows);
    let totals = SwitchTotals {
        dropped_packets: 7,
        lost_packets: 4,
    };
    assert_eq!(read.switches, Some(totals));
    let subflows = fs::read_to_string(out.join("subflows.csv")).unwrap();
    assert_eq!(
        subflows.lines().collect::<Vec<_>>(),
        [
            "flow,time_ns,source,source_port,destination,destination_port,srtt_ns,min_rtt_ns",
            "1,250,10.1.1.2,400,10.2.1.1,5001,131000,118000"
        ]
    );
    let background = fs::read_to_string(out.join("background.csv")).unwrap();
    assert_eq!(background, "src,dst,bytes\nh1_1,h2_1,125000000\n");
    let header = fs::read_to_string(out.join("flows.csv")).unwrap();
    assert!(header.starts_with(
        "flow,src,dst,bytes,start_ns,fct_ns,ideal_fct_ns,subflows,retransmissions,timeouts,reinjected_bytes,error\n"
    ));
}

#[test]
fn nothing_is_left_of_a_folder_that_could_not_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("x");
    fs::write(folder.path().join("queues.csv"), "nonsense\n1\n").unwrap();
    let tables = Tables {
        flows: &[],
        subflows: &[],
        samples: None,
        background: &[],
    };
    assert!(write(&out, &info("rb"), tables, folder.path(), WINDOW).is_err());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn links_are_summed_up_by_their_properties() {
    let summary = TopologySummary::of(&leaf_spine(2, 2, 3, 1_000, 500));
    assert_eq!((summary.hosts, summary.paths), (6, 2));
    assert_eq!(
        (summary.switches["leaf"], summary.switches["spine"]),
        (2, 2)
    );
    let counts: Vec<_> = summary
        .links
        .iter()
        .map(|link| (link.between.as_str(), link.count, link.rate_bps))
        .collect();
    assert_eq!(
        counts,
        [("host-switch", 6, 500), ("switch-switch", 4, 1_000)]
    );
}

#[test]
fn a_folder_of_something_else_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let error = Results::read(folder.path()).unwrap_err().to_string();
    assert!(error.ends_with("not the folder of a run"));
}
