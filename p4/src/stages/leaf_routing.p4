// SPDX-License-Identifier: Apache-2.0
//
// Routing on a leaf: to one of its own hosts, or up, over one of the paths to the leaf of
// the destination.
//
//   ipv4_lpm --- to_host ------------------> port, MAC of the host
//        `------ to_fabric(leaf) -> ChooseUplink -> uplink

#ifndef STAGES_LEAF_ROUTING_P4_
#define STAGES_LEAF_ROUTING_P4_

#include "headers.p4"
#include "metadata.p4"
#include "drop.p4"
#include "uplink.p4"

const bit<32> LEAF_ROUTES = 1024;

control LeafRouting(inout headers_t hdr,
                    in ip_t ip,
                    inout route_t route,
                    inout standard_metadata_t standard_metadata) {
    ChooseUplink() choose_uplink;
    DecrementTtl() decrement_ttl;

    @name(".routing.routed") @id(0x13000001)
    direct_counter(CounterType.packets_and_bytes) routed;

    // The sender addressed the frame to its own leaf, and spines keep that address. It
    // becomes the source address for the receiving host.
    @name(".routing.to_host") @id(0x01000001)
    action to_host(@id(1) port_t port, @id(2) mac_addr_t dst_mac) {
        route.next_hop = next_hop_t.HOST;
        standard_metadata.egress_spec = port;
        hdr.ethernet.src_addr = hdr.ethernet.dst_addr;
        hdr.ethernet.dst_addr = dst_mac;
    }

    // Leaves are counted from 1.
    @name(".routing.to_fabric") @id(0x01000002)
    @action_restriction("leaf != 0")
    action to_fabric(@id(1) @refers_to(paths, leaf) bit<8> leaf) {
        route.next_hop = next_hop_t.FABRIC;
        route.leaf = leaf;
    }

    @name(".routing.to_controller") @id(0x01000008)
    action to_controller() {
        route.next_hop = next_hop_t.CONTROLLER;
        standard_metadata.egress_spec = CPU_PORT;
    }

    @name(".routing.drop") @id(0x01000003)
    action drop() {
        route.drop_reason = drop_reason_t.NO_ROUTE;
    }

    @name(".routing.ipv4_lpm") @id(0x02000001)
    table ipv4_lpm {
        key = {
            ip.dst_addr: lpm @id(1) @name("dst_addr");
        }
        actions = {
            to_host;
            to_fabric;
            to_controller;
            drop;
        }
        const default_action = drop();
        counters = routed;
        size = LEAF_ROUTES;
    }

    apply {
        ipv4_lpm.apply();
        if (route.next_hop == next_hop_t.FABRIC || route.next_hop == next_hop_t.HOST) {
            decrement_ttl.apply(hdr);
        }
        if (route.next_hop == next_hop_t.FABRIC) {
            choose_uplink.apply(hdr, ip, route, standard_metadata);
            // The receiver's NIC reports RTTs by path.
            if (hdr.nic.isValid()) {
                hdr.nic.path = route.path;
            }
        }
    }
}

#endif  // STAGES_LEAF_ROUTING_P4_
