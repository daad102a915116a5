// SPDX-License-Identifier: Apache-2.0
//
// The pipeline of a leaf: hosts below, spines above.
//
//   parser
//     |
//     +-- from the controller --------> PacketOut ------------------------------.
//     |                                                                         |
//   CountBlock -> CheckHeaders -> IngressFilter -> LeafRouting -.               |
//                      |                |               |       |               |
//                      '----------------+---> Drop <----'       |               |
//                                                               |               |
//     .---------------------------------------------------------'               |
//     |                                                                         |
//   PoliceClasses -> ClassifyBySent -> ChoosePriority                           |
//     |                                                                         |
//   Telemetry -> Int.. -> Rtt -> SampleLoss -> SampleQueue -> SampleClasses     |
//                  |       |         |           |     ^         |  |           |
//                  |       |         |           |     |         |  AccountDigest
//                  v       v         v           v     |         v  '-----------+
//                  d   i   g   e   s   t   s     registers   digests            v
//                                                      ^                     queues
//                                                      '----------------- RecordQueue
//                                                                               |
//   deparser <- checksum <- PacketIn <- MarkBlock <- IntHop <- AddAckDelay <- MarkCongestion
//                              |
//                       to the controller
//
// Tables, their keys, and what they decide:
//
//   routing.ipv4_lpm      destination   -> next hop; port and MAC, or leaf
//   routing.path_policy   (none)        -> route.path      (next hop FABRIC only)
//   routing.path_select   route.path    -> port, or route.uplink
//   routing.uplink_select route.uplink  -> port
//   policing.claims       port, DSCP    -> class that a host claims; its rate is a meter
//   by_sent.hosts         ingress port  -> classes of flows that claim none, by what they sent
//   priority.classes      DSCP          -> priority in queues
//   telemetry.policy      (none)        -> intervals of digests
//   rtt.host_port         ingress port  -> a host is there; does the leaf measure RTTs?
//   rtt.paths             route         -> possible RTTs
//   int.source            (none)        -> how often a packet carries telemetry
//   int.node              (none)        -> id of this switch in telemetry
//   ecn.threshold         egress port   -> queue above which packets are CE-marked
//   ack_delay.ports       ingress port  -> ACKs carry their wait in queues
//   loss.links            egress port   -> packets are coloured, to count losses
//
// Digests: rtt_sample_t, queue_sample_t, loss_sample_t, int_sample_t, class_sample_t.
// Counters: routing.drops by drop_reason_t, routing.routed by route, routing.path_traffic by
// path, ecn.marks by port, policing.demoted by port. Meters: policing.rates by port and class.
//
// Ids are part of the contract with controllers: an id is never reused for another object.

#ifndef PIPELINES_LEAF_P4_
#define PIPELINES_LEAF_P4_

#include <core.p4>
#include <v1model.p4>

#include "../stages/headers.p4"
#include "../stages/metadata.p4"
#include "../stages/parser.p4"
#include "../stages/checksum.p4"
#include "../stages/controller_io.p4"
#include "../stages/drop.p4"
#include "../stages/ingress_filter.p4"
#include "../stages/leaf_routing.p4"
#include "../stages/policing.p4"
#include "../stages/by_sent.p4"
#include "../stages/priority.p4"
#include "../stages/telemetry.p4"
#include "../stages/rtt.p4"
#include "../stages/queue.p4"
#include "../stages/ecn.p4"
#include "../stages/ack_delay.p4"
#include "../stages/loss.p4"
#include "../stages/int_md.p4"
#include "../stages/int_ends.p4"

control LeafIngress(inout headers_t hdr,
                    inout metadata_t meta,
                    inout standard_metadata_t standard_metadata) {
    PacketOut() from_controller;
    CheckHeaders() check_headers;
    IngressFilter() ingress_filter;
    LeafRouting() routing;
    PoliceClasses() police_classes;
    ClassifyBySent() classify_by_sent;
    ChoosePriority() choose_priority;
    Telemetry() telemetry;
    Rtt() rtt;
    IntSource() int_source;
    IntReport() int_report;
    CountBlock() count_block;
    SampleLoss() sample_loss;
    SampleQueue() sample_queue;
    SampleClasses() sample_classes;
    AccountDigest() account_digest;
    Drop() drop;

    apply {
        if (hdr.packet_out.isValid()) {
            from_controller.apply(hdr, standard_metadata);
        } else {
            count_block.apply(hdr, meta.loss, standard_metadata);
            check_headers.apply(hdr, standard_metadata, meta.route);
            if (meta.route.drop_reason == drop_reason_t.NOT_DROPPED) {
                ingress_filter.apply(hdr, meta.ip, meta.route, standard_metadata);
            }
            if (meta.route.drop_reason == drop_reason_t.NOT_DROPPED) {
                routing.apply(hdr, meta.ip, meta.route, standard_metadata);
            }
            if (meta.route.drop_reason == drop_reason_t.NOT_DROPPED) {
                time_t now = standard_metadata.ingress_global_timestamp;
                bool is_sink = hdr.int_md.isValid() &&
                               meta.route.next_hop == next_hop_t.HOST;
                police_classes.apply(hdr, meta.ip, meta.claim, standard_metadata);
                classify_by_sent.apply(hdr, meta.ip, meta.claim, standard_metadata);
                choose_priority.apply(hdr, meta.ip, standard_metadata);
                telemetry.apply(meta.telemetry);
                if (is_sink) {
                    int_report.apply(hdr, meta.ip, meta.telemetry, now);
                } else {
                    int_source.apply(hdr, meta.route, meta.int_state, now);
                }
                rtt.apply(hdr, meta.ip, meta.route, meta.telemetry, standard_metadata);
                sample_loss.apply(meta.loss, meta.telemetry, standard_metadata);
                sample_queue.apply(meta.telemetry, standard_metadata);
                sample_classes.apply(meta.telemetry, meta.claim, standard_metadata);
                account_digest.apply(meta.telemetry, standard_metadata);
            } else {
                drop.apply(meta.route, standard_metadata);
            }
        }
    }
}

control LeafEgress(inout headers_t hdr,
                   inout metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    RecordQueue() record_queue;
    MarkCongestion() mark_congestion;
    AddAckDelay() add_ack_delay;
    IntHop() int_hop;
    MarkBlock() mark_block;
    PacketIn() to_controller;

    apply {
        record_queue.apply(standard_metadata);
        mark_congestion.apply(hdr, standard_metadata);
        add_ack_delay.apply(hdr, meta.ip, standard_metadata);
        int_hop.apply(hdr, meta.int_state, standard_metadata);
        mark_block.apply(hdr, standard_metadata);
        to_controller.apply(hdr, standard_metadata);
    }
}

#endif  // PIPELINES_LEAF_P4_
