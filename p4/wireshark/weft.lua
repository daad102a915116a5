-- SPDX-License-Identifier: Apache-2.0
--
-- Dissectors for the headers that switches and NICs add to frames:
--
--   int_md     in-band telemetry, INT-MD 2.1 behind its own UDP header, as
--              p4/src/stages/int_md.p4 writes it
--   weft_nic   stamps from NIC to NIC, as p4/src/stages/nic_echo.p4 writes them
--   weft       the class that a host has written into DSCP, as host/kernel/priority.c
--              does: 0 is the most urgent
--
--   tshark -X lua_script:p4/wireshark/weft.lua -r file.pcap -O int_md
--
-- or copy this file to Wireshark's folder of personal plugins.

local INT_PORT = 54321
local NIC_ETHER_TYPE = 0x88b5
local NPT_PROTOCOL = 2
local SHIM_BYTES, MD_BYTES, NIC_BYTES = 4, 12, 18

-- Instructions, one for each bit from the left: length in bytes and name of what a hop adds.
local INSTRUCTIONS = {
    { 4, "switch" }, { 4, "ports" }, { 4, "latency" }, { 4, "queue" },
    { 8, "ingress timestamp" }, { 8, "egress timestamp" }, { 8, "level 2 ports" },
    { 4, "utilisation" }, { 4, "buffer" },
}

local int_md = Proto("int_md", "In-band Network Telemetry, INT-MD 2.1")
local f = {
    type = ProtoField.uint8("int_md.shim.type", "Type", base.DEC, { [1] = "INT-MD" }, 0xf0),
    npt = ProtoField.uint8("int_md.shim.npt", "Next protocol type", base.DEC, nil, 0x0c),
    length = ProtoField.uint8("int_md.shim.length", "Length (words)"),
    protocol = ProtoField.uint8("int_md.shim.protocol", "IP protocol"),
    version = ProtoField.uint8("int_md.version", "Version", base.DEC, nil, 0xf0),
    exceeded = ProtoField.bool("int_md.hops_exceeded", "Hop count exceeded", 8, nil, 0x04),
    mtu = ProtoField.bool("int_md.mtu_exceeded", "MTU exceeded", 8, nil, 0x02),
    hop_words = ProtoField.uint8("int_md.hop_words", "Words per hop", base.DEC, nil, 0x1f),
    hops_left = ProtoField.uint8("int_md.hops_left", "Remaining hop count"),
    instructions = ProtoField.uint16("int_md.instructions", "Instruction bitmap", base.HEX),
    domain = ProtoField.uint16("int_md.domain", "Domain specific id", base.HEX),
    switch = ProtoField.uint32("int_md.hop.switch", "Switch id"),
    ingress = ProtoField.uint16("int_md.hop.ingress_port", "Ingress port"),
    egress = ProtoField.uint16("int_md.hop.egress_port", "Egress port"),
    latency = ProtoField.uint32("int_md.hop.latency", "Hop latency"),
    queue = ProtoField.uint8("int_md.hop.queue", "Queue id"),
    depth = ProtoField.uint24("int_md.hop.depth", "Queue occupancy (packets)"),
    other = ProtoField.bytes("int_md.hop.other", "Other metadata"),
}
int_md.fields = f

local function dissect_hop(hop, bits, tree)
    local at = 0
    for index, instruction in ipairs(INSTRUCTIONS) do
        local length, name = instruction[1], instruction[2]
        if bit.band(bits, bit.rshift(0x8000, index - 1)) ~= 0 then
            if at + length > hop:len() then
                return
            end
            local value = hop(at, length)
            if name == "switch" then
                tree:add(f.switch, value)
            elseif name == "ports" then
                tree:add(f.ingress, value(0, 2))
                tree:add(f.egress, value(2, 2))
            elseif name == "latency" then
                tree:add(f.latency, value)
            elseif name == "queue" then
                tree:add(f.queue, value(0, 1))
                tree:add(f.depth, value(1, 3))
            else
                tree:add(f.other, value):append_text(" (" .. name .. ")")
            end
            at = at + length
        end
    end
end

function int_md.dissector(buffer, pinfo, root)
    if buffer:len() < SHIM_BYTES + MD_BYTES then
        return 0
    end
    local stack_end = SHIM_BYTES + 4 * buffer(1, 1):uint()
    if stack_end < SHIM_BYTES + MD_BYTES or stack_end > buffer:len() then
        return 0
    end
    local tree = root:add(int_md, buffer(0, stack_end))
    tree:add(f.type, buffer(0, 1))
    tree:add(f.npt, buffer(0, 1))
    tree:add(f.length, buffer(1, 1))
    tree:add(f.protocol, buffer(3, 1))
    local md = buffer(SHIM_BYTES, MD_BYTES)
    tree:add(f.version, md(0, 1))
    tree:add(f.exceeded, md(0, 1))
    tree:add(f.mtu, md(0, 1))
    tree:add(f.hop_words, md(2, 1))
    tree:add(f.hops_left, md(3, 1))
    tree:add(f.instructions, md(4, 2))
    tree:add(f.domain, md(6, 2))
    local hop_bytes = 4 * bit.band(md(2, 1):uint(), 0x1f)
    local at = SHIM_BYTES + MD_BYTES
    while hop_bytes > 0 and at + hop_bytes <= stack_end do
        local hop = buffer(at, hop_bytes)
        dissect_hop(hop, md(4, 2):uint(), tree:add(hop, "Hop"))
        at = at + hop_bytes
    end
    local npt = bit.rshift(bit.band(buffer(0, 1):uint(), 0x0c), 2)
    if npt == NPT_PROTOCOL and stack_end < buffer:len() then
        local next = DissectorTable.get("ip.proto"):get_dissector(buffer(3, 1):uint())
        if next then
            next:call(buffer(stack_end):tvb(), pinfo, root)
        end
    end
    pinfo.cols.info:prepend("[INT-MD] ")
    return buffer:len()
end

DissectorTable.get("udp.port"):add(INT_PORT, int_md)

local nic = Proto("weft_nic", "Weft stamps from NIC to NIC")
local n = {
    ether_type = ProtoField.uint16("weft_nic.ether_type", "EtherType", base.HEX),
    path = ProtoField.uint8("weft_nic.path", "Path"),
    echo_path = ProtoField.uint8("weft_nic.echo_path", "Path of the echoed segment"),
    echo_bytes = ProtoField.uint16("weft_nic.echo_bytes", "IP length of the echoed segment (0: no echo)"),
    echo = ProtoField.uint32("weft_nic.echo", "Departure time of the echoed segment"),
    held = ProtoField.uint32("weft_nic.held", "Time since the echoed segment arrived"),
    sent = ProtoField.uint32("weft_nic.sent", "Departure time"),
}
nic.fields = n

function nic.dissector(buffer, pinfo, root)
    if buffer:len() < NIC_BYTES then
        return 0
    end
    local tree = root:add(nic, buffer(0, NIC_BYTES))
    tree:add(n.ether_type, buffer(0, 2))
    tree:add(n.path, buffer(2, 1))
    tree:add(n.echo_path, buffer(3, 1))
    tree:add(n.echo_bytes, buffer(4, 2))
    tree:add(n.echo, buffer(6, 4))
    tree:add(n.held, buffer(10, 4))
    tree:add(n.sent, buffer(14, 4))
    local next = DissectorTable.get("ethertype"):get_dissector(buffer(0, 2):uint())
    if next then
        next:call(buffer(NIC_BYTES):tvb(), pinfo, root)
    end
    return buffer:len()
end

DissectorTable.get("ethertype"):add(NIC_ETHER_TYPE, nic)

local weft = Proto("weft", "Weft class")
local class = ProtoField.uint8("weft.class", "Class of what is left to send")
weft.fields = { class }
local dscps = { Field.new("ip.dsfield.dscp"), Field.new("ipv6.tclass.dscp") }

-- Class 0 has the greatest of the DSCPs 0ccc11, so that clearing bits makes nothing urgent.
local function class_of(dscp)
    if dscp < 32 and bit.band(dscp, 3) == 3 then
        return 7 - bit.rshift(dscp, 2)
    end
end

function weft.dissector(_, _, root)
    for _, extractor in ipairs(dscps) do
        local field = extractor()
        local number = field and class_of(field.value)
        if number then
            root:add(weft):add(class, number):set_generated()
        end
    end
end

register_postdissector(weft)
