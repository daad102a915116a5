// SPDX-License-Identifier: Apache-2.0
//
// Subflows: their key, the register slots that hold their state, and the sequence numbers
// and data of their segments.

#ifndef STAGES_FLOW_P4_
#define STAGES_FLOW_P4_

#include "headers.p4"
#include "metadata.p4"

// A subflow, in the direction of its data.
struct flow_t {
    bit<1>      is_ipv6;
    ipv4_addr_t src_addr;
    ipv4_addr_t dst_addr;
    bit<16>     src_port;
    bit<16>     dst_port;
}

// The register slot of a key, and the signature that tells the key from others with the
// same slot.
struct place_t {
    bit<32> index;
    bit<32> signature;
}

// Slots in a register: one for each value of half a crc32.
const bit<32> PLACES = 0x10000;

// Marks an empty slot. A key with this signature is not measured.
const bit<32> NO_SIGNATURE = 0;

// The index is the lower half of a crc32. A crc16 is a bad index: consecutive addresses
// and ports differ in few bits, which lie 32 bits apart, and of 10 000 subflows between
// neighbours 97 % share their crc16 with another. The signature is the upper half of the
// crc32, which the crc16 extends to 32 bits. A subflow over IPv6 has the inverted signature
// of the IPv4 subflow with the same addresses and ports.
void place_of(in bit<1> is_ipv6, in bit<32> crc32, in bit<16> crc16, out place_t place) {
    place.index = (bit<32>) crc32[15:0];
    place.signature = crc32[31:16] ++ crc16;
    if (is_ipv6 == 1) {
        place.signature = ~place.signature;
    }
}

void flow_place(in flow_t flow, out place_t place) {
    bit<32> crc32;
    bit<16> crc16;
    hash(crc32, HashAlgorithm.crc32, 32w0,
         { flow.src_addr, flow.dst_addr, flow.src_port, flow.dst_port },
         33w0x100000000);
    hash(crc16, HashAlgorithm.crc16, 16w0,
         { flow.src_addr, flow.dst_addr, flow.src_port, flow.dst_port },
         32w0x10000);
    place_of(flow.is_ipv6, crc32, crc16, place);
}

// The ports of a packet; 0 if its protocol is neither TCP nor UDP.
void ports_of(in headers_t hdr, out bit<16> src_port, out bit<16> dst_port) {
    src_port = 0;
    dst_port = 0;
    if (hdr.tcp.isValid()) {
        src_port = hdr.tcp.src_port;
        dst_port = hdr.tcp.dst_port;
    } else if (hdr.udp.isValid()) {
        src_port = hdr.udp.src_port;
        dst_port = hdr.udp.dst_port;
    }
}

// a > b, for sequence numbers less than 2^31 apart.
bool is_after(in bit<32> a, in bit<32> b) {
    return a != b && (a - b)[31:31] == 0;
}

// Whether a packet has data behind its TCP header. Other protocols always count as such.
bool has_data(in headers_t hdr, in ip_t ip) {
    return !hdr.tcp.isValid() ||
           ip.payload_bytes != (bit<16>) hdr.tcp.data_offset << 2;
}

// How many sequence numbers a segment occupies: its payload, and one each for SYN and FIN.
void sequence_space(in bit<16> ip_payload_bytes,
                    in bit<4> data_offset,
                    in bit<1> syn,
                    in bit<1> fin,
                    out bit<32> space) {
    bit<16> header_bytes = (bit<16>) data_offset << 2;
    space = (bit<32>) (ip_payload_bytes |-| header_bytes) +
            (bit<32>) syn + (bit<32>) fin;
}

#endif  // STAGES_FLOW_P4_
