// SPDX-License-Identifier: Apache-2.0
//
// Gives packets a class whose host claims none, by what their flow has sent.
//
//   data with DSCP 0,    sent by this     up to short_bytes   DSCP of a class that is early
//   from a host      --->    flow ------> up to long_bytes    DSCP of one that is late
//                                         more                DSCP 0: the last class
//
// Hosts without Weft claim no class. If all that they send were in the last class, connections
// that claim one would come before them until these are done, and traffic of others would get
// less than it does without classes. Nobody says how much such a flow has left, so what it has
// sent counts instead, as in PIAS (Bai et al., NSDI 2015): most flows that have sent little have
// little left. PIAS has a threshold for every class; which two are here, and why not all, is in
// by_sent() of controller/src/classes.rs.
//
// A flow that has paused for longer than `idle` begins again: what it sends next is another
// message. Flows that share a slot are one to the switch, which has then sent what both have.
//
// A packet that has lost its class to `policing` gets none here: a host would gain by claiming
// more than it may. Nor does it gain by claiming nothing and opening a new flow all the time: the
// rate of class 1 holds for it too, and what exceeds that is late.

#ifndef STAGES_BY_SENT_P4_
#define STAGES_BY_SENT_P4_

#include "flow.p4"
#include "headers.p4"
#include "metadata.p4"
#include "policing.p4"
#include "telemetry.p4"

// The class of `short_dscp`.
const bit<32> EARLY_CLASS = 1;

// Flows that are told apart: as many as flowlets.
const bit<32> SENT_FLOWS = 0x10000;

// When the last packet of a flow arrived, and the bytes that it has sent since a pause, with
// headers.
@name("by_sent.last") @id(0x16000093)
register<time_t>(SENT_FLOWS) sent_last;
@name("by_sent.bytes") @id(0x16000094)
register<bit<32>>(SENT_FLOWS) sent_bytes;

// Ingress of a leaf, between policing and the choice of a priority.
control ClassifyBySent(inout headers_t hdr,
                       inout ip_t ip,
                       in claim_t claim,
                       in standard_metadata_t standard_metadata) {
    bit<32> short_most = 0;
    bit<32> long_most = 0;
    bit<6> early = 0;
    bit<6> late = 0;
    time_t longest_pause = 0;

    @name(".by_sent.classify") @id(0x01000093)
    action classify(@id(1) bit<32> short_bytes, @id(2) bit<6> short_dscp,
                    @id(3) bit<32> long_bytes, @id(4) bit<6> long_dscp,
                    @id(5) time_t idle) {
        short_most = short_bytes;
        early = short_dscp;
        long_most = long_bytes;
        late = long_dscp;
        longest_pause = idle;
    }

    // Only ports of hosts have entries.
    @name(".by_sent.hosts") @id(0x02000092)
    table hosts {
        key = {
            standard_metadata.ingress_port: exact @id(1);
        }
        actions = {
            classify;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        size = PORTS;
    }

    apply {
        if (claim.made == 0 && ip.dscp == 0 && has_data(hdr, ip) && hosts.apply().hit) {
            bit<16> src_port;
            bit<16> dst_port;
            ports_of(hdr, src_port, dst_port);
            bit<32> slot;
            hash(slot, HashAlgorithm.crc32, 32w0,
                 { ip.src_addr, ip.dst_addr, ip.protocol, src_port, dst_port }, SENT_FLOWS);
            time_t now = standard_metadata.ingress_global_timestamp;
            time_t last;
            bit<32> sent;
            sent_last.read(last, slot);
            sent_bytes.read(sent, slot);
            if (is_due(now, last, longest_pause)) {
                sent = 0;
            }
            sent = sent |+| standard_metadata.packet_length;
            sent_last.write(slot, now);
            sent_bytes.write(slot, sent);
            bit<2> color = METER_RED;
            if (sent <= short_most) {
                bit<32> port = (bit<32>) standard_metadata.ingress_port;
                class_rates.execute_meter(port << 3 | EARLY_CLASS, color);
            }
            if (color != METER_RED) {
                set_dscp(hdr, ip, early);
            } else if (sent <= long_most) {
                set_dscp(hdr, ip, late);
            }
        }
    }
}

#endif  // STAGES_BY_SENT_P4_
