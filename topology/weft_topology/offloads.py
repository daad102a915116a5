# SPDX-License-Identifier: Apache-2.0
"""Offloads of an interface, switched off: a packet in the lab is a packet on the wire.

With segmentation offload a "packet" between namespaces is up to 64 KB, and nothing that
is measured about bursts, queues or interleaving is true.
"""

import ctypes
import fcntl
import socket
import struct

_SIOCETHTOOL = 0x8946
# ethtool's commands (include/uapi/linux/ethtool.h), in an order that the kernel takes:
# what needs checksums first.
_SET_TSO, _SET_GSO, _SET_GRO, _SET_SG, _SET_TX_CSUM, _SET_RX_CSUM, _SET_FLAGS = (
    0x1F,
    0x24,
    0x2C,
    0x19,
    0x17,
    0x15,
    0x26,
)
_OFF = (_SET_TSO, _SET_GSO, _SET_GRO, _SET_SG, _SET_TX_CSUM, _SET_RX_CSUM, _SET_FLAGS)
"""Flags are LRO and its like; all are off for a veth that has none."""


def disable(control: socket.socket, interface: str) -> None:
    """Switch off all offloads of an interface in `control`'s network namespace."""
    for command in _OFF:
        value = ctypes.create_string_buffer(struct.pack("=II", command, 0), 8)
        request = struct.pack("16sP16x", interface.encode(), ctypes.addressof(value))
        fcntl.ioctl(control, _SIOCETHTOOL, request)
