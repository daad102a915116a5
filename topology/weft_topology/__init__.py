# SPDX-License-Identifier: Apache-2.0
"""Weft's topologies: described as Mininet topologies, built by netlink, run by Mininet.

spec       what a user can ask for, checked; fabrics is the part about fabrics
naming     every name, address and number of a fabric
topos      the descriptions, Mininet `Topo`s that only describe: leaf_spine, fat_tree
route_metrics  settings of TCP on all hosts
document   topology.json, which everybody else reads
emulation  Mininet's nodes and links on namespaces and veths
netlink, namespaces, offloads   the system calls under it
processes  the programs of a lab and their command lines: switches, controllers, agent
daemons    how such a process starts, is watched and ends
shell      the Mininet prompt on a terminal that somebody else opened
up         all of it, in order
"""
