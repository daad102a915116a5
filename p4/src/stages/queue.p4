// SPDX-License-Identifier: Apache-2.0
//
// Queue length and queueing delay of every port, as digests.
//
// What a packet has seen in its queue is known in egress, a digest leaves from
// ingress: two registers per port lead from one to the other.
//
//   egress, a packet was dequeued on p      ingress, a packet heads for p
//     depth[p] <- packets left behind  ---.   when queue_interval is over:
//     delay[p] <- time it waited       ----+-> digest queue_sample_t
//
// The last packet of a busy period leaves depth 0 behind, so an idle port never
// shows an old queue; its delay is then that of this last packet.

#ifndef STAGES_QUEUE_P4_
#define STAGES_QUEUE_P4_

#include "headers.p4"
#include "metadata.p4"
#include "telemetry.p4"

struct queue_sample_t {
    bit<16> port;
    bit<32> depth_packets;
    bit<48> delay;          // of the packet dequeued last, in clock units
}

const bit<32> PORTS = 512;  // every value of port_t

@name("queue.depth") @id(0x16000020)
register<bit<32>>(PORTS) queue_depth;
@name("queue.delay") @id(0x16000021)
register<time_t>(PORTS) queue_delay;
// When the port's last sample left.
@name("queue.sampled") @id(0x16000022)
register<time_t>(PORTS) queue_sampled;

// Egress: what the packet leaves behind.
control RecordQueue(in standard_metadata_t standard_metadata) {
    apply {
        bit<32> port = (bit<32>) standard_metadata.egress_port;
        queue_depth.write(port, (bit<32>) standard_metadata.deq_qdepth);
        queue_delay.write(port, (time_t) standard_metadata.deq_timedelta);
    }
}

// Ingress, after routing: reports the queue that the packet is about to join.
control SampleQueue(inout telemetry_t telemetry,
                    in standard_metadata_t standard_metadata) {
    apply {
        bit<32> port = (bit<32>) standard_metadata.egress_spec;
        time_t now = standard_metadata.ingress_global_timestamp;
        time_t last;
        queue_sampled.read(last, port);
        bool due = is_due(now, last, telemetry.queue_interval);
        if (telemetry.enabled == 1 && telemetry.reported == 0 && due) {
            telemetry.reported = 1;
            bit<32> depth;
            time_t delay;
            queue_depth.read(depth, port);
            queue_delay.read(delay, port);
            queue_sampled.write(port, now);
            digest<queue_sample_t>(DIGEST_RECEIVER,
                                   { (bit<16>) standard_metadata.egress_spec,
                                     depth, delay });
        }
    }
}

#endif  // STAGES_QUEUE_P4_
