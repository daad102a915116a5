// SPDX-License-Identifier: Apache-2.0
//
// Routing of a leaf: to one of its own hosts, or over one of the paths to the
// leaf of the destination.
//
//   ipv4_lpm --- to_host --------------------------------> port, MAC of the host
//        `------ to_fabric(leaf) -> path_policy -> path_select -> uplink
//                                   which path?    which port?
//
// path_policy (no key, the controller sets its default action) is either
//
//   weft_paths  (P(src) + P(dst) + crc16(net(src) ^ net(dst))) mod paths, with
//               P the last byte of an address and net its first three. Nothing
//               in it changes when source and destination change places: data
//               and ACKs of a subflow meet the same spine. A host's addresses
//               differ in P only: subflows between different addresses take
//               different paths. The hash makes pairs of hosts start on
//               different ones.
//   ecmp_paths  crc32 of the 5-tuple, as most fabrics do it. The two directions
//               of a flow are independent, and subflows may meet.

#ifndef STAGES_LEAF_ROUTING_P4_
#define STAGES_LEAF_ROUTING_P4_

#include "headers.p4"
#include "metadata.p4"

const bit<32> LEAF_ROUTES = 1024;
const bit<32> LEAF_PATHS  = 256;  // every value of route.path

// value mod divisor. BMv2 has no `%` outside of hash, which with the identity as
// algorithm is just that.
void modulo(out bit<8> result, in bit<32> value, in bit<8> divisor) {
    hash(result, HashAlgorithm.identity, 8w0, { value }, divisor);
}

control ChoosePath(in headers_t hdr,
                   inout route_t route,
                   inout standard_metadata_t standard_metadata) {
    bit<16> src_port = 0;
    bit<16> dst_port = 0;

    // `paths` is at least 1.
    @name(".routing.weft_paths") @id(0x01000004)
    action weft_paths(@id(1) bit<8> paths) {
        bit<16> pair;
        hash(pair, HashAlgorithm.crc16, 16w0,
             { hdr.ipv4.src_addr[31:8] ^ hdr.ipv4.dst_addr[31:8] }, 32w0x10000);
        bit<32> sum = (bit<32>) hdr.ipv4.src_addr[7:0] +
                      (bit<32>) hdr.ipv4.dst_addr[7:0] +
                      (bit<32>) pair;
        modulo(route.path, sum, paths);
    }

    @name(".routing.ecmp_paths") @id(0x01000005)
    action ecmp_paths(@id(1) bit<8> paths) {
        hash(route.path, HashAlgorithm.crc32, 8w0,
             { hdr.ipv4.src_addr, hdr.ipv4.dst_addr, hdr.ipv4.protocol,
               src_port, dst_port }, paths);
    }

    @name(".routing.path_policy") @id(0x02000002)
    table path_policy {
        actions = {
            weft_paths;
            ecmp_paths;
        }
        default_action = weft_paths(1);
        size = 1;
    }

    @name(".routing.set_uplink") @id(0x01000006)
    action set_uplink(@id(1) port_t port) {
        standard_metadata.egress_spec = port;
    }

    @name(".routing.no_uplink") @id(0x01000007)
    action no_uplink() {
        route.drop_reason = drop_reason_t.NO_UPLINK;
    }

    @name(".routing.path_traffic") @id(0x13000002)
    direct_counter(CounterType.packets_and_bytes) path_traffic;

    @name(".routing.path_select") @id(0x02000003)
    table path_select {
        key = {
            route.path: exact @id(1) @name("meta.path");
        }
        actions = {
            set_uplink;
            @defaultonly no_uplink;
        }
        const default_action = no_uplink();
        counters = path_traffic;
        size = LEAF_PATHS;
    }

    apply {
        if (hdr.tcp.isValid()) {
            src_port = hdr.tcp.src_port;
            dst_port = hdr.tcp.dst_port;
        } else if (hdr.udp.isValid()) {
            src_port = hdr.udp.src_port;
            dst_port = hdr.udp.dst_port;
        }
        path_policy.apply();
        path_select.apply();
    }
}

control LeafRouting(inout headers_t hdr,
                    inout route_t route,
                    inout standard_metadata_t standard_metadata) {
    ChoosePath() choose_path;

    @name(".routing.routed") @id(0x13000001)
    direct_counter(CounterType.packets_and_bytes) routed;

    // The frame was addressed to the first leaf on its way, and spines keep it
    // so: that address is the source for the host.
    @name(".routing.to_host") @id(0x01000001)
    action to_host(@id(1) port_t port, @id(2) mac_addr_t dst_mac) {
        route.next_hop = next_hop_t.HOST;
        standard_metadata.egress_spec = port;
        hdr.ethernet.src_addr = hdr.ethernet.dst_addr;
        hdr.ethernet.dst_addr = dst_mac;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
    }

    @name(".routing.to_fabric") @id(0x01000002)
    action to_fabric(@id(1) bit<8> leaf) {
        route.next_hop = next_hop_t.FABRIC;
        route.leaf = leaf;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
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
            hdr.ipv4.dst_addr: lpm @id(1);
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
        if (route.next_hop == next_hop_t.FABRIC) {
            choose_path.apply(hdr, route, standard_metadata);
            // The receiver's card will want to know.
            if (hdr.nic.isValid()) {
                hdr.nic.path = route.path;
            }
        }
    }
}

#endif  // STAGES_LEAF_ROUTING_P4_
