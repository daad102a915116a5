// SPDX-License-Identifier: Apache-2.0
//
// A spine: leaves on every port. With the way up also the aggregation and the core
// of a fat-tree.
//
//   parser
//     |
//     +-- from the controller --------> PacketOut ----------------------.
//     |                                                                 |
//   CountBlock -> Check -> SpineRouting -> Telemetry -> TellLoss -.     |
//                   |           |                          |      |     |
//                   '-> Drop <--'                          v      |     |
//                                                      digests    |     |
//                                                          ^      |     |
//                                                         SampleQueue --+
//                                                              ^        v
//                                                          registers  queues
//                                                              |        |
//   deparser <- checksum <- PacketIn <- Mark... <- CarryWait... <- Record..
//                           (to the controller)
//
// Tables, and who reads what they write:
//
//   routing.ipv4_lpm      destination   -> port towards its leaf, or up
//   routing.path_policy   (none)        -> route.path            (up only)
//   routing.path_select   route.path    -> port, or route.uplink
//   routing.uplink_select route.uplink  -> port
//   telemetry.policy      (none)        -> interval of the digest
//   int.node              (none)        -> name of this switch in telemetry
//   ecn.threshold         egress port   -> queue above which packets are marked
//   waits.ports           ingress port  -> ACKs tell how long they have waited
//   loss.links            egress port   -> packets are marked
//
// Digests: queue_sample_t, loss_sample_t. Counters: routing.drops by drop_reason_t,
// routing.routed by route, routing.path_traffic by path, ecn.marks by port.
//
// Ids are part of the contract with controllers: an id is never given to
// something else.

#include <core.p4>
#include <v1model.p4>

#include "stages/headers.p4"
#include "stages/metadata.p4"
#include "stages/parser.p4"
#include "stages/checksum.p4"
#include "stages/controller_io.p4"
#include "stages/drop.p4"
#include "stages/spine_routing.p4"
#include "stages/telemetry.p4"
#include "stages/queue.p4"
#include "stages/ecn.p4"
#include "stages/waits.p4"
#include "stages/loss.p4"
#include "stages/int_md.p4"

control SpineIngress(inout headers_t hdr,
                     inout metadata_t meta,
                     inout standard_metadata_t standard_metadata) {
    PacketOut() from_controller;
    Check() check;
    SpineRouting() routing;
    Telemetry() telemetry;
    CountBlock() count_block;
    TellLoss() tell_loss;
    SampleQueue() sample_queue;
    AccountDigest() account_digest;
    Drop() drop;

    apply {
        if (hdr.packet_out.isValid()) {
            from_controller.apply(hdr, standard_metadata);
        } else {
            count_block.apply(hdr, meta.loss, standard_metadata);
            check.apply(hdr, standard_metadata, meta.route);
            if (meta.route.drop_reason == drop_reason_t.NOT_DROPPED) {
                routing.apply(hdr, meta.ip, meta.route, standard_metadata);
            }
            if (meta.route.drop_reason == drop_reason_t.NOT_DROPPED) {
                telemetry.apply(meta.telemetry);
                tell_loss.apply(meta.loss, meta.telemetry, standard_metadata);
                sample_queue.apply(meta.telemetry, standard_metadata);
                account_digest.apply(meta.telemetry, standard_metadata);
            } else {
                drop.apply(meta.route, standard_metadata);
            }
        }
    }
}

control SpineEgress(inout headers_t hdr,
                    inout metadata_t meta,
                    inout standard_metadata_t standard_metadata) {
    RecordQueue() record_queue;
    MarkCongestion() mark_congestion;
    CarryWait() carry_wait;
    IntHop() int_hop;
    MarkBlock() mark_block;
    PacketIn() to_controller;

    apply {
        record_queue.apply(standard_metadata);
        mark_congestion.apply(hdr, standard_metadata);
        carry_wait.apply(hdr, meta.ip, standard_metadata);
        int_hop.apply(hdr, meta.int_state, standard_metadata);
        mark_block.apply(hdr, standard_metadata);
        to_controller.apply(hdr, standard_metadata);
    }
}

V1Switch(PacketParser(),
         VerifyIpv4Checksum(),
         SpineIngress(),
         SpineEgress(),
         ComputeIpv4Checksum(),
         PacketDeparser()) main;
