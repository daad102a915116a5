// SPDX-License-Identifier: Apache-2.0

//! Copies, recirculated and resubmitted packets, and the metadata of egress.

use super::*;

const PROGRAM: &[u8] = include_bytes!("../../../tests/fixtures/replication.json");

const REPORT_BYTES: usize = 35;

/// The report of egress: instance type, port, replica, the metadata that is kept, and that which is
/// not; and the packet.
fn report(frame: &[u8]) -> (u8, u16, u16, u8, u8, Vec<u8>) {
    let port = u16::from_be_bytes([frame[1], frame[2]]);
    let replica = u16::from_be_bytes([frame[3], frame[4]]);
    let packet = frame[REPORT_BYTES..].to_vec();
    (frame[0], port, replica, frame[5], frame[6], packet)
}

fn run(pipeline: &mut Pipeline, packet: &[u8]) -> Vec<(u8, u16, u16, u8, u8, Vec<u8>)> {
    let (frames, _) = send(pipeline, 4, packet, 0);
    let reports = frames.iter().map(|(port, frame)| {
        let report = report(frame);
        assert_eq!(report.1, *port);
        report
    });
    reports.collect()
}

fn replicas() -> Vec<Replica> {
    let replica = |port, instance| Replica { port, instance };
    vec![replica(2, 1), replica(3, 1), replica(3, 2)]
}

#[test]
fn a_unicast_packet_keeps_its_metadata() {
    let mut pipeline = pipeline(PROGRAM);
    let reports = run(&mut pipeline, &[0x00, 0x77, 9]);
    assert_eq!(reports, [(0, 4, 0, 0x77, 0x77, vec![0x00, 0x77, 9])]);
}

#[test]
fn a_multicast_packet_leaves_once_for_each_replica() {
    let mut pipeline = pipeline(PROGRAM);
    let packet = [0x01, 0x77, 9];
    assert_eq!(run(&mut pipeline, &packet), []);
    pipeline.set_multicast_group(5, replicas()).unwrap();
    let expected = [(2, 1), (3, 1), (3, 2)];
    let expected = expected.map(|(port, rid)| (5, port, rid, 0x77, 0x77, packet.to_vec()));
    assert_eq!(run(&mut pipeline, &packet), expected);
    assert_eq!(pipeline.multicast_group(5), Some(replicas().as_slice()));
    pipeline.set_multicast_group(5, vec![]).unwrap();
    assert_eq!(run(&mut pipeline, &packet), []);
    assert!(pipeline.set_multicast_group(0, replicas()).is_err());
}

#[test]
fn an_ingress_clone_is_the_packet_as_it_came_in() {
    let mut pipeline = pipeline(PROGRAM);
    let session = CloneSession {
        replicas: vec![Replica {
            port: 6,
            instance: 3,
        }],
        length_bytes: 0,
    };
    pipeline.set_clone_session(9, Some(session)).unwrap();
    let reports = run(&mut pipeline, &[0x02, 0x77, 9]);
    let clone = (1, 6, 3, 0x77, 0, vec![0x02, 0x77, 9]);
    let original = (0, 4, 0, 0x77, 0x77, vec![0xff, 0x77, 9]);
    assert_eq!(reports, [clone, original]);
    pipeline.set_clone_session(9, None).unwrap();
    assert_eq!(run(&mut pipeline, &[0x02, 0x77, 9]).len(), 1);
}

#[test]
fn an_egress_clone_survives_its_original() {
    let mut pipeline = pipeline(PROGRAM);
    let session = CloneSession {
        replicas: vec![Replica {
            port: 6,
            instance: 3,
        }],
        length_bytes: REPORT_BYTES + 2,
    };
    pipeline.set_clone_session(9, Some(session)).unwrap();
    let reports = run(&mut pipeline, &[0x03, 0x77, 9]);
    assert_eq!(
        reports,
        [(2, 6, 3, 0x77, 0, vec![0x03, 0x77])],
        "cut as the session says"
    );
}

#[test]
fn a_resubmitted_packet_starts_over_with_the_fields_it_keeps() {
    let mut pipeline = pipeline(PROGRAM);
    let reports = run(&mut pipeline, &[0x04, 0x77, 9]);
    assert_eq!(reports, [(0, 7, 0, 0x77, 0, vec![0x04, 0x77, 9])]);
}

#[test]
fn a_recirculated_packet_comes_back_as_it_left() {
    let mut pipeline = pipeline(PROGRAM);
    let reports = run(&mut pipeline, &[0x05, 0x77, 9]);
    assert_eq!(reports, [(0, 7, 0, 0x77, 0, vec![0x55, 0x77, 9])]);
}

#[test]
fn a_packet_that_is_resubmitted_for_ever_is_dropped() {
    let mut pipeline = pipeline(PROGRAM);
    assert_eq!(run(&mut pipeline, &[0x06, 0x77, 9]), []);
}

#[test]
fn egress_is_told_what_the_queue_did() {
    let mut pipeline = pipeline(PROGRAM);
    let mut effects = Effects::default();
    pipeline.ingress(
        4,
        &mut vec![0, 1, 2, 3, 4],
        0x1_2345_6789_abcd,
        &mut effects,
    );
    let output = effects.outputs.pop().unwrap();
    assert_eq!(output.packet.length_bytes(), 5);
    let queue = QueueMetadata {
        enq_timestamp: 0x1_0000_0001,
        enq_qdepth: 7,
        deq_timedelta: 0x50,
        deq_qdepth: 3,
    };
    let mut frame = Vec::new();
    assert!(pipeline.egress(output.packet, queue, 0x99, &mut frame, &mut effects));
    let expected = [
        &[0, 0, 0, 5][..], // packet_length
        &[0, 0, 0, 1],     // enq_timestamp has 32 bits
        &[0, 0, 0, 0x50],
        &[0, 7, 0, 3],
        &[0x23, 0x45, 0x67, 0x89, 0xab, 0xcd], // timestamps have 48
        &[0, 0, 0, 0, 0, 0x99],
    ];
    assert_eq!(frame[7..REPORT_BYTES], expected.concat());
}
