// SPDX-License-Identifier: Apache-2.0
//
// The ends of in-band telemetry, on leaves: which packets carry it, and what happens to the
// data that they collected. int_md.p4 explains how it works.

#ifndef STAGES_INT_ENDS_P4_
#define STAGES_INT_ENDS_P4_

#include "headers.p4"
#include "metadata.p4"
#include "telemetry.p4"

// What a packet met in the queues of its path. The first hop is the switch that it left
// last. Unused hops are zero.
struct int_sample_t {
    bit<8>  hops;
    bit<32> switch_0;
    bit<16> port_0;
    bit<32> depth_0;
    bit<32> delay_0;
    bit<32> switch_1;
    bit<16> port_1;
    bit<32> depth_1;
    bit<32> delay_1;
    bit<32> switch_2;
    bit<16> port_2;
    bit<32> depth_2;
    bit<32> delay_2;
    bit<32> switch_3;
    bit<16> port_3;
    bit<32> depth_3;
    bit<32> delay_3;
    bit<48> at;  // now, by the clock of the switch
}

const bit<32> INT_ROUTES = 0x10000;  // every remote leaf and path

// When a packet to a remote leaf and path was last chosen.
@name("int.started") @id(0x16000050)
register<time_t>(INT_ROUTES) int_started;

// Ingress, after routing: decides whether this packet carries telemetry.
control IntSource(in headers_t hdr,
                  in route_t route,
                  inout int_state_t state,
                  in time_t now) {
    time_t interval = 0;
    bool is_on = false;

    @name(".int.start_every") @id(0x01000051)
    action start_every(@id(1) time_t between) {
        interval = between;
        is_on = true;
    }

    // No key: the controller sets the default action.
    @name(".int.source") @id(0x02000051)
    table source {
        actions = {
            start_every;
            NoAction;
        }
        default_action = NoAction();
        size = 1;
    }

    apply {
        if (hdr.ipv4.isValid() && hdr.tcp.isValid() && !hdr.int_md.isValid() &&
            route.next_hop == next_hop_t.FABRIC) {
            source.apply();
            bit<32> index = (bit<32>) (route.leaf ++ route.path);
            time_t last;
            int_started.read(last, index);
            if (is_on && is_due(now, last, interval)) {
                int_started.write(index, now);
                state.starts = 1;
            }
        }
    }
}

// Ingress, for a packet to a host. What this packet has collected can only be reported
// now. So it takes precedence over digests that report registers, which wait for the next
// packet.
control IntReport(inout headers_t hdr,
                  in ip_t ip,
                  inout telemetry_t telemetry,
                  in time_t now) {
    apply {
        hdr.ipv4.total_len = ip.total_bytes;
        hdr.ipv4.protocol = ip.protocol;
        if (telemetry.enabled == 1 && telemetry.affordable == 1) {
            int_sample_t sample;
            sample = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, now };
            if (hdr.int_hops[0].isValid()) {
                sample.hops = 1;
                sample.switch_0 = hdr.int_hops[0].switch_id;
                sample.port_0 = hdr.int_hops[0].egress_port;
                sample.depth_0 = (bit<32>) hdr.int_hops[0].depth_packets;
                sample.delay_0 = hdr.int_hops[0].latency;
            }
            if (hdr.int_hops[1].isValid()) {
                sample.hops = 2;
                sample.switch_1 = hdr.int_hops[1].switch_id;
                sample.port_1 = hdr.int_hops[1].egress_port;
                sample.depth_1 = (bit<32>) hdr.int_hops[1].depth_packets;
                sample.delay_1 = hdr.int_hops[1].latency;
            }
            if (hdr.int_hops[2].isValid()) {
                sample.hops = 3;
                sample.switch_2 = hdr.int_hops[2].switch_id;
                sample.port_2 = hdr.int_hops[2].egress_port;
                sample.depth_2 = (bit<32>) hdr.int_hops[2].depth_packets;
                sample.delay_2 = hdr.int_hops[2].latency;
            }
            if (hdr.int_hops[3].isValid()) {
                sample.hops = 4;
                sample.switch_3 = hdr.int_hops[3].switch_id;
                sample.port_3 = hdr.int_hops[3].egress_port;
                sample.depth_3 = (bit<32>) hdr.int_hops[3].depth_packets;
                sample.delay_3 = hdr.int_hops[3].latency;
            }
            telemetry.reported = 1;
            digest<int_sample_t>(DIGEST_RECEIVER, sample);
        }
        hdr.int_udp.setInvalid();
        hdr.int_shim.setInvalid();
        hdr.int_md.setInvalid();
        hdr.int_hops.pop_front(INT_HOPS);
    }
}

#endif  // STAGES_INT_ENDS_P4_
