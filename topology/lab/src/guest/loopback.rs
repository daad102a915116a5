// SPDX-License-Identifier: Apache-2.0

//! The loopback interface of the lab.

use std::io;
use std::mem;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;

use nix::libc::{IFF_UP, SIOCGIFFLAGS, SIOCSIFFLAGS, c_char, ifreq};

nix::ioctl_readwrite_bad!(get_interface_flags, SIOCGIFFLAGS, ifreq);
nix::ioctl_write_ptr_bad!(set_interface_flags, SIOCSIFFLAGS, ifreq);

/// Brings it up.
pub fn up() -> io::Result<()> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    // SAFETY: an all-zero request is valid.
    let mut request: ifreq = unsafe { mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = *from as c_char;
    }
    // SAFETY: both calls get a request with a terminated name, and use the flags in its union.
    unsafe {
        get_interface_flags(socket.as_raw_fd(), &mut request)?;
        request.ifr_ifru.ifru_flags |= IFF_UP as i16;
        set_interface_flags(socket.as_raw_fd(), &request)?;
    }
    Ok(())
}
