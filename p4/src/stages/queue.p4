// SPDX-License-Identifier: Apache-2.0
//
// Reports queue length and queueing delay of every port, as digests.
//
// Egress knows what a packet met in its queue, but only ingress can send a digest.
// Registers per port carry the values from egress to ingress.
//
//   egress, a packet was dequeued on p      ingress, a packet heads for p
//     depth[p]  <- packets left behind ---+->  depth[p], delay[p], also by priority
//     delay[p]  <- time it waited      ---'         |        depth[p] += 1
//     sent[p]   += bytes, from 0 when               |
//                  the link had been idle -->  sent[p] since busy[p]
//     busy[p]   <- end of the idle time             v
//                       digest queue_sample_t, when a report is due
//
// A packet that did not wait found its link idle. It starts a busy period, which lasts
// until the last packet that had to wait. The link is never idle in a busy period, so the
// bytes sent in that time give the link's rate, whatever the packet lengths. The same holds
// between two samples with the same `busy_since`.
//
// A report is due for a port
//   - whose queue has moved by QUEUE_STEP_PACKETS or more since the last report, or has
//     drained since; at most once per `queue_interval`,
//   - that was not reported for `longest_interval`.
// A packet checks the queue that it is about to join. If no report is due for it, the packet
// checks the queue of the port where it came in: after a queue has drained, no packet may
// follow, but the ACKs of its packets come back by that port.
//
// Egress knows only how many packets of the same priority are left behind. So there is a
// depth for each priority, and depth[p] is their sum. It also counts a packet that finds the
// queue full, until the next packet of its priority leaves.

#ifndef STAGES_QUEUE_P4_
#define STAGES_QUEUE_P4_

#include "headers.p4"
#include "metadata.p4"
#include "telemetry.p4"

struct queue_sample_t {
    bit<16> port;
    bit<32> depth_packets;  // packets that wait now
    bit<48> delay;          // wait of the packet dequeued last, 0 if none waits now; in
                            // clock units
    bit<48> at;             // now, by the clock of the switch
    bit<48> busy_since;     // start of the busy period of the packet dequeued last
    bit<32> sent_bytes;     // dequeued since then, modulo 2^32
    // The same depths and delays by priority. That of a delay is the packet of this priority
    // that was dequeued last.
    bit<32> depth_0;
    bit<32> depth_1;
    bit<32> depth_2;
    bit<32> depth_3;
    bit<32> depth_4;
    bit<32> depth_5;
    bit<32> depth_6;
    bit<32> depth_7;
    bit<48> delay_0;
    bit<48> delay_1;
    bit<48> delay_2;
    bit<48> delay_3;
    bit<48> delay_4;
    bit<48> delay_5;
    bit<48> delay_6;
    bit<48> delay_7;
}

const bit<32> PORTS = 512;  // every value of port_t
// A change by this many packets is reported at once. Queues of a few packets come and go
// with every burst, and are not worth a report.
const bit<32> QUEUE_STEP_PACKETS = 8;

@name("queue.depth") @id(0x16000020)
register<bit<32>>(PORTS) queue_depth;
// The same by port and priority.
@name("queue.depth_by_priority") @id(0x16000027)
register<bit<32>>(PORTS * 8) queue_depth_by_priority;
@name("queue.delay") @id(0x16000021)
register<time_t>(PORTS) queue_delay;
@name("queue.delay_by_priority") @id(0x16000028)
register<time_t>(PORTS * 8) queue_delay_by_priority;
// Time of the port's last sample, and the depth that it reported.
@name("queue.sampled") @id(0x16000022)
register<time_t>(PORTS) queue_sampled;
@name("queue.told") @id(0x16000023)
register<bit<32>>(PORTS) queue_told;
// When the link was last idle, and the bytes sent since then.
@name("queue.busy") @id(0x16000025)
register<time_t>(PORTS) queue_busy;
@name("queue.sent") @id(0x16000026)
register<bit<32>>(PORTS) queue_sent;

// Egress: records the queue that the packet leaves behind.
control RecordQueue(in standard_metadata_t standard_metadata) {
    apply {
        bit<32> port = (bit<32>) standard_metadata.egress_port;
        bit<32> sent = 0;
        if (standard_metadata.deq_timedelta == 0) {
            queue_busy.write(port, standard_metadata.egress_global_timestamp);
        } else {
            queue_sent.read(sent, port);
        }
        queue_sent.write(port, sent + standard_metadata.packet_length);
        bit<32> queue = port << 3 | (bit<32>) standard_metadata.priority;
        bit<32> left = (bit<32>) standard_metadata.deq_qdepth;
        bit<32> before;
        bit<32> depth;
        queue_depth_by_priority.read(before, queue);
        queue_depth_by_priority.write(queue, left);
        queue_depth.read(depth, port);
        queue_depth.write(port, depth + left - before);
        time_t delay = (time_t) standard_metadata.deq_timedelta;
        queue_delay.write(port, delay);
        queue_delay_by_priority.write(queue, delay);
    }
}

// What waits in one priority of a queue.
control ReadPriority(in bit<32> queue, out bit<32> depth, out time_t delay) {
    apply {
        delay = 0;
        queue_depth_by_priority.read(depth, queue);
        if (depth != 0) {
            queue_delay_by_priority.read(delay, queue);
        }
    }
}

// Whether a report about a queue is due.
control FindDue(in telemetry_t telemetry,
                in port_t queue_port,
                in time_t now,
                out bool is_due_now) {
    apply {
        bit<32> port = (bit<32>) queue_port;
        bit<32> depth;
        bit<32> reported;
        time_t last;
        queue_depth.read(depth, port);
        queue_told.read(reported, port);
        queue_sampled.read(last, port);
        bit<32> step = depth |-| reported;
        if (reported > depth) {
            step = reported - depth;
        }
        bool has_changed = step >= QUEUE_STEP_PACKETS ||
                           (depth == 0 && reported != 0);
        bool may_report = is_due(now, last, telemetry.queue_interval);
        bool is_old = is_due(now, last, telemetry.longest_interval);
        is_due_now = (has_changed && may_report && telemetry.affordable == 1) ||
                     (is_old && telemetry.spare == 1);
    }
}

// Reports one queue.
control ReportQueue(in port_t queue_port, in time_t now) {
    ReadPriority() read;

    apply {
        bit<32> port = (bit<32>) queue_port;
        queue_sample_t sample;
        sample.port = (bit<16>) queue_port;
        sample.at = now;
        queue_depth.read(sample.depth_packets, port);
        sample.delay = 0;
        if (sample.depth_packets != 0) {
            queue_delay.read(sample.delay, port);
        }
        queue_busy.read(sample.busy_since, port);
        queue_sent.read(sample.sent_bytes, port);
        bit<32> queue = port << 3;
        read.apply(queue, sample.depth_0, sample.delay_0);
        read.apply(queue + 1, sample.depth_1, sample.delay_1);
        read.apply(queue + 2, sample.depth_2, sample.delay_2);
        read.apply(queue + 3, sample.depth_3, sample.delay_3);
        read.apply(queue + 4, sample.depth_4, sample.delay_4);
        read.apply(queue + 5, sample.depth_5, sample.delay_5);
        read.apply(queue + 6, sample.depth_6, sample.delay_6);
        read.apply(queue + 7, sample.depth_7, sample.delay_7);
        queue_sampled.write(port, now);
        queue_told.write(port, sample.depth_packets);
        digest<queue_sample_t>(DIGEST_RECEIVER, sample);
    }
}

// Ingress, after routing.
control SampleQueue(inout telemetry_t telemetry,
                    in standard_metadata_t standard_metadata) {
    FindDue() find_due;
    ReportQueue() report;

    apply {
        time_t now = standard_metadata.ingress_global_timestamp;
        if (telemetry.enabled == 1 && telemetry.reported == 0) {
            port_t due_port = standard_metadata.egress_spec;
            bool is_due_now;
            find_due.apply(telemetry, due_port, now, is_due_now);
            if (!is_due_now) {
                due_port = standard_metadata.ingress_port;
                find_due.apply(telemetry, due_port, now, is_due_now);
            }
            if (is_due_now) {
                telemetry.reported = 1;
                report.apply(due_port, now);
            }
        }
        bit<32> port = (bit<32>) standard_metadata.egress_spec;
        bit<32> queue = port << 3 | (bit<32>) standard_metadata.priority;
        bit<32> depth;
        queue_depth.read(depth, port);
        queue_depth.write(port, depth + 1);
        queue_depth_by_priority.read(depth, queue);
        queue_depth_by_priority.write(queue, depth + 1);
    }
}

#endif  // STAGES_QUEUE_P4_
