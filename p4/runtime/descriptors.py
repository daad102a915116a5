# SPDX-License-Identifier: Apache-2.0
"""Writes the FileDescriptorSet of P4Runtime's services and messages to stdout.

The descriptors come from the `p4runtime` package on PyPI, so that the repository needs no copy
of the .proto files.
"""

import sys

from google.protobuf.descriptor import FileDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from p4.config.v1 import p4info_pb2
from p4.v1 import p4runtime_pb2


def add(file: FileDescriptor, found: FileDescriptorSet, seen: set[str]) -> None:
    """Appends `file` after everything it imports, each file once."""
    if file.name in seen:
        return
    seen.add(file.name)
    for dependency in file.dependencies:
        add(dependency, found, seen)
    file.CopyToProto(found.file.add())


def main() -> None:
    """Entry point."""
    found = FileDescriptorSet()
    seen: set[str] = set()
    add(p4info_pb2.DESCRIPTOR, found, seen)
    add(p4runtime_pb2.DESCRIPTOR, found, seen)
    sys.stdout.buffer.write(found.SerializeToString(deterministic=True))


main()
