// SPDX-License-Identifier: Apache-2.0

//! Packets from outside: none makes a pipeline panic.

use std::sync::LazyLock;

use proptest::prelude::*;

use super::*;

static PROGRAMS: LazyLock<Vec<Arc<Program>>> = LazyLock::new(|| {
    let programs: [&[u8]; 7] = [
        include_bytes!("../../../../compiled/leaf.json"),
        include_bytes!("../../../../compiled/spine.json"),
        include_bytes!("../../../tests/fixtures/arithmetic.json"),
        include_bytes!("../../../tests/fixtures/externs.json"),
        include_bytes!("../../../tests/fixtures/matching.json"),
        include_bytes!("../../../tests/fixtures/parsing.json"),
        include_bytes!("../../../tests/fixtures/replication.json"),
    ];
    let programs = programs
        .iter()
        .map(|json| Arc::new(Program::load(json).unwrap()));
    programs.collect()
});

/// Arbitrary bytes, often with a beginning that programs parse.
fn packet() -> impl Strategy<Value = Vec<u8>> {
    let start = prop_oneof![
        Just(vec![]),
        (0u8..0x40).prop_map(|what| vec![what]),
        Just(vec![2, 0, 0, 0xff, 0, 1, 2, 0, 0, 0, 1, 1, 8, 0, 0x45]),
    ];
    (start, proptest::collection::vec(any::<u8>(), 0..120))
        .prop_map(|(start, rest)| [start, rest].concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn no_packet_makes_a_pipeline_panic(
        program in 0..PROGRAMS.len(),
        mut packets in proptest::collection::vec((0u16..512, packet(), any::<u64>()), 1..8),
        depths in any::<[u32; 2]>(),
    ) {
        let mut pipeline = Pipeline::new(PROGRAMS[program].clone(), 1);
        let replica = Replica { port: 6, instance: 3 };
        let session = CloneSession { replicas: vec![replica], length_bytes: 9 };
        pipeline.set_clone_session(9, Some(session)).unwrap();
        pipeline.set_multicast_group(5, vec![replica, replica]).unwrap();
        let mut effects = Effects::default();
        let mut frame = Vec::new();
        for (port, packet, now) in &mut packets {
            pipeline.ingress(*port, packet, *now, &mut effects);
            for _ in 0..16 {
                let Some(output) = effects.outputs.pop() else { break };
                let queue = QueueMetadata {
                    enq_timestamp: *now,
                    enq_qdepth: depths[0],
                    deq_timedelta: now.wrapping_mul(3),
                    deq_qdepth: depths[1],
                };
                pipeline.egress(output.packet, queue, *now, &mut frame, &mut effects);
            }
        }
    }
}
