// SPDX-License-Identifier: Apache-2.0
//
// Queue length and queueing delay of every port, as digests.
//
// What a packet has seen in its queue is known in egress, a digest leaves from
// ingress: registers per port lead from one to the other.
//
//   egress, a packet was dequeued on p      ingress, a packet heads for p
//     depth[p]  <- packets left behind ---.
//     delay[p]  <- time it waited      ----+->  depth[p] + joined[p], delay[p]
//     joined[p] <- 0                   ---'         |        joined[p] += 1
//     sent[p]   += bytes, from 0 when               |
//                  the link had been idle -->  sent[p] since busy[p]
//     busy[p]   <- when that was                    v
//                       digest queue_sample_t, when there is something to tell
//
// A packet that has not waited found its link idle; from the first that has not to the
// last that has, the link was never idle. So what it has sent in that time is its rate,
// whatever the lengths of packets, and between two samples with the same `busy_since`
// it is so as well.
//
// There is something to tell about a port
//   - whose queue is QUEUE_STEP_PACKETS or more from what was told last, or has
//     drained since; at most once in `queue_interval`,
//   - that was not told of for `longest_interval`.
// A packet looks at the queue that it is about to join. When there is nothing to
// tell it looks at the one of the port where it came in: a queue that has drained
// may have no packet follow, but the ACKs of what was in it come back there.
//
// `joined` counts a packet that finds the queue full until the next one leaves.

#ifndef STAGES_QUEUE_P4_
#define STAGES_QUEUE_P4_

#include "headers.p4"
#include "metadata.p4"
#include "telemetry.p4"

struct queue_sample_t {
    bit<16> port;
    bit<32> depth_packets;  // that wait now
    bit<48> delay;          // that the packet dequeued last has waited, 0 when
                            // none waits now; in clock units
    bit<48> at;             // now, by the clock of the switch
    bit<48> busy_since;     // since when the link has had something to send whenever it
                            // could, up to the packet dequeued last
    bit<32> sent_bytes;     // dequeued since then, modulo 2^32
}

const bit<32> PORTS = 512;  // every value of port_t
// A change of so many packets is told at once. Queues of a few packets come and
// go with every burst; nobody should be told.
const bit<32> QUEUE_STEP_PACKETS = 8;

@name("queue.depth") @id(0x16000020)
register<bit<32>>(PORTS) queue_depth;
@name("queue.delay") @id(0x16000021)
register<time_t>(PORTS) queue_delay;
// When the port's last sample left, and the depth that it told.
@name("queue.sampled") @id(0x16000022)
register<time_t>(PORTS) queue_sampled;
@name("queue.told") @id(0x16000023)
register<bit<32>>(PORTS) queue_told;
// Packets sent to the queue since one left it.
@name("queue.joined") @id(0x16000024)
register<bit<32>>(PORTS) queue_joined;
// When the link was idle last, and what has been sent since.
@name("queue.busy") @id(0x16000025)
register<time_t>(PORTS) queue_busy;
@name("queue.sent") @id(0x16000026)
register<bit<32>>(PORTS) queue_sent;

// Egress: what the packet leaves behind.
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
        queue_depth.write(port, (bit<32>) standard_metadata.deq_qdepth);
        queue_delay.write(port, (time_t) standard_metadata.deq_timedelta);
        queue_joined.write(port, 0);
    }
}

// Tells of one queue, if there is something to tell.
control TellQueue(inout telemetry_t telemetry,
                  in port_t queue_port,
                  in time_t now) {
    apply {
        bit<32> port = (bit<32>) queue_port;
        bit<32> depth;
        bit<32> joined;
        bit<32> told;
        time_t last;
        queue_depth.read(depth, port);
        queue_joined.read(joined, port);
        queue_told.read(told, port);
        queue_sampled.read(last, port);
        depth = depth + joined;
        bit<32> step = depth |-| told;
        if (told > depth) {
            step = told - depth;
        }
        bool has_changed = step >= QUEUE_STEP_PACKETS ||
                           (depth == 0 && told != 0);
        bool may_be_told = is_due(now, last, telemetry.queue_interval);
        bool is_old = is_due(now, last, telemetry.longest_interval);
        if ((has_changed && may_be_told && telemetry.affordable == 1) ||
            (is_old && telemetry.spare == 1)) {
            telemetry.reported = 1;
            time_t delay = 0;
            if (depth != 0) {
                queue_delay.read(delay, port);
            }
            time_t busy_since;
            bit<32> sent_bytes;
            queue_busy.read(busy_since, port);
            queue_sent.read(sent_bytes, port);
            queue_sampled.write(port, now);
            queue_told.write(port, depth);
            digest<queue_sample_t>(DIGEST_RECEIVER,
                                   { (bit<16>) queue_port, depth, delay, now,
                                     busy_since, sent_bytes });
        }
    }
}

// Ingress, after routing.
control SampleQueue(inout telemetry_t telemetry,
                    in standard_metadata_t standard_metadata) {
    TellQueue() ahead;
    TellQueue() behind;

    apply {
        time_t now = standard_metadata.ingress_global_timestamp;
        if (telemetry.enabled == 1 && telemetry.reported == 0) {
            ahead.apply(telemetry, standard_metadata.egress_spec, now);
        }
        if (telemetry.enabled == 1 && telemetry.reported == 0) {
            behind.apply(telemetry, standard_metadata.ingress_port, now);
        }
        bit<32> port = (bit<32>) standard_metadata.egress_spec;
        bit<32> joined;
        queue_joined.read(joined, port);
        queue_joined.write(port, joined + 1);
    }
}

#endif  // STAGES_QUEUE_P4_
