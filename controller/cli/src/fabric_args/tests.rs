// SPDX-License-Identifier: Apache-2.0

//! What the flags mean, and what is refused.

use std::collections::BTreeMap;

use clap::Parser;
use weft_lab::HostsSpec;

use super::*;

#[derive(Debug, Parser)]
struct Cli {
    #[command(flatten)]
    fabric: FabricArgs,
}

fn parse(line: &str) -> Result<FabricArgs, clap::Error> {
    Cli::try_parse_from(std::iter::once("test").chain(line.split_whitespace()))
        .map(|cli| cli.fabric)
}

fn leaf_spine(line: &str) -> LeafSpineSpec {
    match parse(line).unwrap().topology().unwrap() {
        TopologySpec::LeafSpine(spec) => spec,
        other => panic!("{other:?}"),
    }
}

#[test]
fn defaults_are_two_racks_of_four_hosts_at_one_gigabit() {
    let spec = leaf_spine("");
    assert_eq!((spec.leaves, spec.spines), (2, 2));
    assert_eq!(spec.hosts, HostsSpec::Same(4));
    assert_eq!(
        (spec.common.rate_bps, spec.common.host_rate_bps),
        (1_000_000_000, 1_000_000_000)
    );
    assert_eq!(
        (spec.common.delay_ns, spec.common.queue_packets),
        (10_000, 100)
    );
    assert!(spec.spine_delay_ns.is_empty());
}

#[test]
fn slow_spines_are_named_one_by_one() {
    let spec = leaf_spine("--spines 4 --spine-delay 2=40us,4=1ms --spine-delay 1=0ns");
    let expected = BTreeMap::from([(1, 0), (2, 40_000), (4, 1_000_000)]);
    assert_eq!(spec.spine_delay_ns, expected);
    let error = parse("--spine-delay 3=40us")
        .unwrap()
        .topology()
        .unwrap_err();
    assert_eq!(
        error,
        "--spine-delay names spine 3; with --spines 2 there are 1 to 2"
    );
    let twice = parse("--spine-delay 1=1us,1=2us").unwrap().topology();
    assert!(twice.unwrap_err().contains("twice"));
}

#[test]
fn a_spine_may_have_rate_queue_and_loss_of_its_own() {
    let spec = leaf_spine("--spine-rate 2=5mbit --spine-queue 1=50,2=3750 --spine-loss 1=0.5%");
    assert_eq!(spec.spine_rate_bps, BTreeMap::from([(2, 5_000_000)]));
    assert_eq!(
        spec.spine_queue_packets,
        BTreeMap::from([(1, 50), (2, 3_750)])
    );
    assert_eq!(spec.spine_loss_ppm, BTreeMap::from([(1, 5_000)]));
    let far = parse("--spine-loss 3=1%").unwrap().topology().unwrap_err();
    assert_eq!(
        far,
        "--spine-loss names spine 3; with --spines 2 there are 1 to 2"
    );
}

#[test]
fn hosts_may_send_faster_than_they_receive() {
    let spec = leaf_spine("--host-rate 1gbit --sender-rate 2gbit");
    assert_eq!(spec.common.sender_rate_bps, Some(2_000_000_000));
    let same = leaf_spine("--sender-rate 1gbit");
    assert_eq!(same.common.sender_rate_bps, None);
}

#[test]
fn a_fat_tree_has_k_and_nothing_of_a_leaf_spine() {
    let tree = |line: &str| {
        let args = parse(&format!("--topology fat-tree {line}")).unwrap();
        args.topology()
    };
    let TopologySpec::FatTree(spec) = tree("--k 6 --rate 10gbit").unwrap() else {
        panic!("no fat-tree");
    };
    assert_eq!((spec.k, spec.common.rate_bps), (6, 10_000_000_000));
    assert_eq!(tree("").unwrap().paths(), 4);
    for (line, said) in [
        ("--k 5", "--k 5 is odd"),
        (
            "--leaves 2",
            "--leaves is of --topology leaf-spine, not of fat-tree",
        ),
        ("--hosts 2", "not of fat-tree"),
        ("--spine-delay 1=1ms", "--spine-delay is of leaf-spine"),
        ("--change 1s:1:down", "core1"),
        ("--change 1s:core5:down", "core1 to core4"),
        (
            "--change 1s:core1-agg1_1:down",
            "such as edge1-agg1_1 or agg1_1-core1",
        ),
        ("--change 1s:agg5_1:down", "agg4_2"),
        ("--change 1s:spine1:down", "edge1 to edge8"),
    ] {
        let error = tree(line).unwrap_err();
        assert!(error.contains(said), "{line}: {error}");
    }
    let failing = tree("--change 1s:core4:down;1s:agg4_2:up").unwrap();
    assert_eq!(failing.common().changes.len(), 2);
    let error = parse("--k 4").unwrap().topology().unwrap_err();
    assert_eq!(error, "--k is of --topology fat-tree, not of leaf-spine");
}

#[test]
fn leaves_may_differ_in_hosts_and_links_up_carry_a_part_of_what_they_send() {
    let spec = leaf_spine("--hosts 4,8 --spines 20 --oversubscription 2");
    assert_eq!((spec.leaves, spec.spines), (2, 20));
    assert_eq!(spec.hosts, HostsSpec::Each(vec![4, 8]));
    // Eight hosts of 1 Gbit/s, twenty links.
    assert_eq!(spec.common.rate_bps, 200_000_000);
    let tree = parse("--topology fat-tree --oversubscription 4").unwrap();
    assert_eq!(tree.topology().unwrap().common().rate_bps, 250_000_000);
    for (line, said) in [
        ("--hosts 4,8 --leaves 3", "one of each leaf"),
        (
            "--oversubscription 1000 --host-rate 10mbit",
            "1mbit to 1tbit",
        ),
        ("--topology dumbbell --hosts 4,8", "dumbbell takes one"),
    ] {
        let error = parse(line).unwrap().topology().unwrap_err();
        assert!(error.contains(said), "{line}: {error}");
    }
}

#[test]
fn a_connection_uses_as_many_paths_as_there_are_or_as_few_as_subflows_are_asked_for() {
    let paths = |line: &str| parse(line).unwrap().topology().unwrap().paths();
    assert_eq!(paths("--spines 20"), 8);
    assert_eq!(paths("--spines 20 --subflows 2"), 2);
    assert_eq!(paths("--spines 2 --subflows 4"), 2);
    assert_eq!(paths("--topology fat-tree --k 16 --subflows 1"), 1);
    assert_eq!(paths("--topology many-to-one --links 4 --subflows 3"), 3);
    assert!(parse("--subflows 0").is_err());
    assert!(parse("--subflows 9").is_err());
}

#[test]
fn route_metrics_are_those_that_are_given() {
    let metrics = |line: &str| leaf_spine(line).common.route_metrics;
    assert_eq!(metrics(""), BTreeMap::new());
    let two = BTreeMap::from([("initial_window".to_owned(), 2)]);
    assert_eq!(metrics("--initial-window 2"), two);
    assert!(parse("--initial-window 0").is_err());
    let both = BTreeMap::from([
        ("initial_window".to_owned(), 2),
        ("rto_min_ms".to_owned(), 5),
    ]);
    assert_eq!(metrics("--rto-min 5ms --initial-window 2"), both);
    assert_eq!(metrics("--rto-min 120s")["rto_min_ms"], 120_000);
    for wrong in ["0", "0ms", "1500us", "10us", "121s", "200"] {
        let error = parse(&format!("--rto-min {wrong}"))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("whole milliseconds from 1ms to 120s, such as 5ms"),
            "{error}"
        );
    }
}

#[test]
fn queues_have_packets_or_bytes() {
    let bytes = leaf_spine("--queue 150KB").common;
    assert_eq!(
        (bytes.queue_packets, bytes.queue_bytes),
        (100, Some(150_000))
    );
    let packets = leaf_spine("--queue 64").common;
    assert_eq!((packets.queue_packets, packets.queue_bytes), (64, None));
}

#[test]
fn switches_mark_above_packets_or_bytes_that_fit_into_the_queue() {
    let marks = |line: &str| {
        let common = leaf_spine(line).common;
        (common.ecn_packets, common.ecn_bytes)
    };
    assert_eq!(marks(""), (None, None));
    assert_eq!(marks("--ecn 20"), (Some(20), None));
    assert_eq!(marks("--ecn 30KB"), (None, Some(30_000)));
    assert_eq!(marks("--queue 150KB --ecn 99"), (Some(99), None));
    for line in ["--ecn 100", "--ecn 150KB", "--queue 30KB --ecn 30KB"] {
        let error = parse(line).unwrap().topology().unwrap_err();
        assert!(error.contains("less than --queue"), "{line}: {error}");
    }
    assert!(parse("--ecn 0").is_err());
}

#[test]
fn a_flowlet_timeout_is_of_flowlets() {
    let common = leaf_spine("--routing flowlet --flowlet-timeout 200us").common;
    assert_eq!(common.routing, RoutingSpec::Flowlet);
    assert_eq!(common.flowlet_timeout_ns, Some(200_000));
    let common = leaf_spine("--routing spray").common;
    assert_eq!(common.routing, RoutingSpec::Spray);
    assert_eq!(common.flowlet_timeout_ns, None);
    for line in ["", "--routing ecmp", "--routing spray"] {
        let line = format!("{line} --flowlet-timeout 200us");
        let error = parse(&line).unwrap().topology().unwrap_err();
        assert_eq!(error, "--flowlet-timeout: only with --routing flowlet");
    }
}

#[test]
fn there_are_two_to_eight_classes_or_none() {
    assert_eq!(leaf_spine("").common.priorities, None);
    assert_eq!(leaf_spine("--priorities 8").common.priorities, Some(8));
    assert!(parse("--priorities 8 --class-thresholds guessed").is_err());
    let who = "--first-come hosts,spine2 --clear-classes h1_1,h2_4";
    let common = leaf_spine(&format!("--priorities 8 {who}")).common;
    assert_eq!(common.first_come, ["hosts", "spine2"]);
    assert_eq!(common.clear_classes, ["h1_1", "h2_4"]);
    for (line, said) in [
        (who, "--first-come: there are no classes"),
        (
            "--priorities 8 --first-come spine3",
            "there are hosts, switches, and leaf1",
        ),
        ("--priorities 8 --clear-classes spine1", "names spine1"),
    ] {
        let refused = parse(line).unwrap().topology().unwrap_err();
        assert!(refused.contains(said), "{refused}");
    }
    for refused in ["0", "1", "9", "all"] {
        assert!(parse(&format!("--priorities {refused}")).is_err());
    }
}

#[test]
fn testbeds_have_hosts_links_and_kinds_of_paths() {
    let topology = |line: &str| parse(line).unwrap().topology();
    let TopologySpec::TwoPath(paths) = topology("--topology two-path").unwrap() else {
        panic!("no two-path");
    };
    assert_eq!(paths.profiles, ["wlan", "3g"]);
    let own = topology("--topology dumbbell --profile wifi,lte,20mbit/50ms/30/1%").unwrap();
    assert_eq!(own.paths(), 3);
    let star = topology("--topology many-to-one --hosts 5 --links 3").unwrap();
    assert_eq!(star.paths(), 3);
    for (line, said) in [
        ("--topology two-path --profile wlan", "names 1 paths"),
        ("--topology two-path --hosts 2", "not of two-path"),
        ("--topology two-path --spine-loss 1=1%", "is of leaf-spine"),
        ("--topology many-to-one --hosts 1", "at least 2"),
        ("--profile wlan,3g", "of --topology two-path and dumbbell"),
    ] {
        let error = topology(line).unwrap_err();
        assert!(error.contains(said), "{line}: {error}");
    }
    for line in [
        "--profile wlna",
        "--profile 20mbit",
        "--profile 20mbit/50ms/0",
    ] {
        assert!(parse(line).is_err(), "{line}");
    }
}

#[test]
fn values_out_of_range_are_refused() {
    for line in [
        "--leaves 0",
        "--spines 251",
        "--oversubscription 0",
        "--oversubscription 2 --rate 1gbit",
        "--links 9",
        "--queue 2GB",
        "--queue 1KB",
        "--hosts 300",
        "--rate 1",
        "--rate 1kbit",
        "--delay 11s",
        "--queue 0",
        "--spine-delay 40us",
        "--spine-delay 0=40us",
        "--spine-rate 1=1kbit",
        "--spine-rate 5mbit",
        "--spine-queue 1=0",
        "--spine-loss 1=1",
        "--spine-loss 1=101%",
        "--sender-rate 1kbit",
        "--change 1s:1:rate=1kbit",
        "--pattern-ttl 1us",
        "--pattern-ttl 61s",
        "--pattern-input queue",
        "--control-delay 2s",
        "--host-jitter 2s",
        "--controllers 0",
        "--routing random",
        "--routing flowlet --flowlet-timeout 999ns",
        "--routing flowlet --flowlet-timeout 11s",
        "--topology ring",
        "--k 2",
        "--k 18",
        "--path-manager userspace",
        "--path-manager fixed:9",
    ] {
        assert!(parse(line).is_err(), "{line}");
    }
}
