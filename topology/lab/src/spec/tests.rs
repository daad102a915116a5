// SPDX-License-Identifier: Apache-2.0

use super::*;
use std::collections::BTreeMap;

/// With every field.
fn whole() -> LabSpec {
    LabSpec {
        topology: Some(TopologySpec::LeafSpine(LeafSpineSpec {
            leaves: 2,
            spines: 2,
            hosts: HostsSpec::Each(vec![4, 8]),
            common: CommonSpec {
                rate_bps: 1_000_000_000,
                host_rate_bps: 1_000_000_000,
                sender_rate_bps: Some(2_000_000_000),
                delay_ns: 10_000,
                queue_packets: 100,
                queue_bytes: Some(150_000),
                ecn_packets: None,
                ecn_bytes: Some(30_000),
                subflows: 4,
                route_metrics: BTreeMap::from([("initial_window".to_owned(), 2)]),
                routing: RoutingSpec::Flowlet,
                flowlet_timeout_ns: Some(500_000),
                priorities: Some(8),
                lowest_share_ppm: Some(250_000),
                first_come: vec!["hosts".to_owned()],
                clear_classes: vec!["h1_1".to_owned()],
                ip: 6,
                changes: vec![ChangeSpec {
                    at_ns: 5_000_000,
                    target: "spine1".to_owned(),
                    up: Some(false),
                    ..ChangeSpec::default()
                }],
                host_jitter_ns: 500_000,
                nic: NicSpec::P4,
                in_band: InBandSpec::Md,
            },
            spine_delay_ns: BTreeMap::from([(2, 40_000)]),
            spine_rate_bps: BTreeMap::from([(1, 5_000_000)]),
            spine_queue_packets: BTreeMap::from([(1, 3_750)]),
            spine_loss_ppm: BTreeMap::from([(2, 10_000)]),
        })),
        pattern_ttl_ns: 200_000_000,
        pattern_input: "rtt+queue".to_owned(),
        gray_loss_ppm: 20_000,
        class_thresholds: "built-in".to_owned(),
        controllers: 2,
        control_delay_ns: 20_000,
        path_manager: "fixed:2".to_owned(),
        seed: 1,
        clock: ClockMode::Paced,
        capture: Some(CaptureSpec {
            hosts: vec!["h1_1".into()],
            arrivals: ArrivalsSpec::All,
        }),
        bmv2: Some("/usr/bin/simple_switch_grpc".into()),
        paths: Paths {
            repo: "/weft".into(),
            bin: "/weft/bin".into(),
            python: "/weft/python".into(),
            kernel: "/weft/linux".into(),
            modules: vec!["/weft/weft.ko".into(), "/weft/weft_coupled.ko".into()],
            programs: vec!["/weft/p4".into()],
            linked: Vec::new(),
        },
        batch: None,
        kernel_arguments: vec!["slab_debug=FZPU".into()],
    }
}

#[test]
fn a_lab_has_memory_for_its_hosts() {
    let mut spec = whole();
    let mib = |spec: &LabSpec| spec.memory_bytes() >> 20;
    assert_eq!(spec.topology.as_ref().unwrap().hosts(), 12);
    assert_eq!(mib(&spec), 2048);
    let common = spec.topology.as_ref().unwrap().common().clone();
    let fat_tree = |k| {
        TopologySpec::FatTree(FatTreeSpec {
            k,
            common: common.clone(),
        })
    };
    for (k, hosts, needed_mib) in [(4, 16, 2048), (12, 432, 2592), (16, 1024, 6144)] {
        spec.topology = Some(fat_tree(k));
        assert_eq!(spec.topology.as_ref().unwrap().hosts(), hosts);
        assert_eq!(mib(&spec), needed_mib);
    }
    spec.topology = None;
    assert_eq!(mib(&spec), 2048);
}

#[test]
fn a_description_survives_its_json() {
    let spec = whole();
    let json = serde_json::to_string(&spec).unwrap();
    assert!(json.contains(r#""kind":"leaf-spine""#), "{json}");
    assert_eq!(serde_json::from_str::<LabSpec>(&json).unwrap(), spec);
}
