// SPDX-License-Identifier: Apache-2.0
//
// A spine, or the core of a fat-tree, has one port down to every leaf. The aggregation of
// a fat-tree has one to every leaf of its pod, and sends packets for other leaves up, over
// one of the paths.
//
//   ipv4_lpm --- to_port ------------> port
//        `------ up -> ChooseUplink -> uplink
//
// MAC addresses do not change: fabric links are point to point, and leaves route every
// packet that comes in, whatever its MAC address.

#ifndef STAGES_SPINE_ROUTING_P4_
#define STAGES_SPINE_ROUTING_P4_

#include "headers.p4"
#include "metadata.p4"
#include "drop.p4"
#include "uplink.p4"

const bit<32> SPINE_ROUTES = 1024;

control SpineRouting(inout headers_t hdr,
                     in ip_t ip,
                     inout route_t route,
                     inout standard_metadata_t standard_metadata) {
    ChooseUplink() choose_uplink;
    DecrementTtl() decrement_ttl;
    bit<1> goes_up = 0;

    @name(".routing.routed") @id(0x13000001)
    direct_counter(CounterType.packets_and_bytes) routed;

    @name(".routing.to_port") @id(0x01000010)
    action to_port(@id(1) port_t port) {
        route.next_hop = next_hop_t.FABRIC;
        standard_metadata.egress_spec = port;
    }

    @name(".routing.up") @id(0x01000013)
    action up() {
        route.next_hop = next_hop_t.FABRIC;
        goes_up = 1;
    }

    @name(".routing.to_controller") @id(0x01000011)
    action to_controller() {
        route.next_hop = next_hop_t.CONTROLLER;
        standard_metadata.egress_spec = CPU_PORT;
    }

    @name(".routing.drop") @id(0x01000012)
    action drop() {
        route.drop_reason = drop_reason_t.NO_ROUTE;
    }

    @name(".routing.ipv4_lpm") @id(0x02000010)
    table ipv4_lpm {
        key = {
            ip.dst_addr: lpm @id(1) @name("dst_addr");
        }
        actions = {
            to_port;
            up;
            to_controller;
            drop;
        }
        const default_action = drop();
        counters = routed;
        size = SPINE_ROUTES;
    }

    apply {
        ipv4_lpm.apply();
        if (route.next_hop == next_hop_t.FABRIC) {
            decrement_ttl.apply(hdr);
        }
        if (goes_up == 1) {
            choose_uplink.apply(hdr, ip, route, standard_metadata);
        }
    }
}

#endif  // STAGES_SPINE_ROUTING_P4_
