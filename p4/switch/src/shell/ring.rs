// SPDX-License-Identifier: Apache-2.0

//! Packets from hosts: one packet socket with a memory-mapped ring.

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU32, Ordering};

use libc::{c_int, c_void, sock_filter};

/// Room for a frame and its header in the ring; holds an MTU of 1500.
const FRAME_BYTES: usize = 2048;
/// The ring is made of blocks of contiguous memory.
const BLOCK_BYTES: usize = 32 * FRAME_BYTES;
/// `PACKET_IGNORE_OUTGOING`, which the libc crate lacks: receive nothing that this machine sends.
const PACKET_IGNORE_OUTGOING: c_int = 23;

/// The receiving socket.
#[derive(Debug)]
pub(super) struct Ring {
    socket: OwnedFd,
    memory: *mut u8,
    frames: usize,
    next: usize,
    truncated_packets: u64,
}

// SAFETY: the ring is owned like a buffer and used from one thread at a time.
unsafe impl Send for Ring {}

/// A received packet.
pub(super) struct Packet<'a> {
    pub interface: u32,
    /// Kernel's time of arrival, `CLOCK_REALTIME`.
    pub realtime_ns: i64,
    pub frame: &'a [u8],
}

impl Ring {
    /// Receives what comes in at the interfaces `lowest..=highest`, with room
    /// for at least `frames` packets.
    pub fn open(lowest: u32, highest: u32, frames: usize) -> io::Result<Self> {
        // Without a protocol, nothing arrives until the filter is set. SAFETY: no pointers.
        let fd = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: just opened, owned by nobody else.
        let socket = unsafe { OwnedFd::from_raw_fd(fd) };
        set(fd, libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, &1_i32)?;
        let version = libc::tpacket_versions::TPACKET_V2 as c_int;
        set(fd, libc::SOL_PACKET, libc::PACKET_VERSION, &version)?;
        filter(fd, lowest, highest)?;

        let blocks = frames.div_ceil(BLOCK_BYTES / FRAME_BYTES);
        let frames = blocks * (BLOCK_BYTES / FRAME_BYTES);
        let request = libc::tpacket_req {
            tp_block_size: BLOCK_BYTES as u32,
            tp_block_nr: blocks as u32,
            tp_frame_size: FRAME_BYTES as u32,
            tp_frame_nr: frames as u32,
        };
        set(fd, libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping, which nothing else knows of.
        let memory = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                frames * FRAME_BYTES,
                protection,
                libc::MAP_SHARED | libc::MAP_POPULATE,
                fd,
                0,
            )
        };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let ring = Self {
            socket,
            memory: memory.cast(),
            frames,
            next: 0,
            truncated_packets: 0,
        };
        ring.bind()?;
        Ok(ring)
    }

    pub fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Passes every packet in the ring to `handle`, oldest first.
    pub fn drain(&mut self, mut handle: impl FnMut(Packet<'_>)) {
        // At most one round, so that a flood of packets does not stop time.
        for _ in 0..self.frames {
            // SAFETY: within the mapping, and aligned to FRAME_BYTES.
            let slot = unsafe { self.memory.add(self.next * FRAME_BYTES) };
            let header = slot.cast::<libc::tpacket2_hdr>();
            // SAFETY: a slot starts with this header; kernel and process hand the slot to each
            // other by its status, the first field.
            let status = unsafe { AtomicU32::from_ptr(&raw mut (*header).tp_status) };
            if status.load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
                return;
            }
            // SAFETY: the slot is ours until the status says otherwise; the kernel keeps packet
            // and address within it.
            let (head, address) = unsafe {
                let address = slot.add(align(size_of::<libc::tpacket2_hdr>()));
                (header.read(), address.cast::<libc::sockaddr_ll>().read())
            };
            if head.tp_snaplen < head.tp_len {
                self.truncated_packets += 1;
                if self.truncated_packets.is_power_of_two() {
                    let bytes = head.tp_len;
                    tracing::warn!(bytes, "a packet is too long; is the MTU above 1500?");
                }
            } else {
                // SAFETY: as above.
                let frame = unsafe {
                    let start = slot.add(usize::from(head.tp_mac));
                    std::slice::from_raw_parts(start, head.tp_snaplen as usize)
                };
                handle(Packet {
                    interface: address.sll_ifindex as u32,
                    realtime_ns: i64::from(head.tp_sec) * 1_000_000_000 + i64::from(head.tp_nsec),
                    frame,
                });
            }
            status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
            self.next = (self.next + 1) % self.frames;
        }
    }

    /// Packets that found the ring full since the last call.
    pub fn lost_packets(&self) -> io::Result<u32> {
        // SAFETY: plain numbers.
        let mut statistics: libc::tpacket_stats = unsafe { zeroed() };
        let mut length = size_of::<libc::tpacket_stats>() as libc::socklen_t;
        // SAFETY: both pointers are valid for the length of the call.
        let result = unsafe {
            libc::getsockopt(
                self.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                (&raw mut statistics).cast(),
                &raw mut length,
            )
        };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(statistics.tp_drops)
    }

    fn bind(&self) -> io::Result<()> {
        // SAFETY: plain numbers.
        let mut address: libc::sockaddr_ll = unsafe { zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        // SAFETY: `address` is valid for the length of the call.
        let result = unsafe {
            libc::bind(
                self.as_raw_fd(),
                (&raw const address).cast(),
                size_of::<libc::sockaddr_ll>() as libc::socklen_t,
            )
        };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: our own mapping, unused from here on.
        unsafe { libc::munmap(self.memory.cast(), self.frames * FRAME_BYTES) };
    }
}

/// Lets only packets of these interfaces into the ring; the loopback
/// interface, where P4Runtime is spoken, is never among them.
fn filter(fd: RawFd, lowest: u32, highest: u32) -> io::Result<()> {
    let interface = (libc::SKF_AD_OFF + libc::SKF_AD_IFINDEX) as u32;
    let code = |code: u32, jt: u8, jf: u8, k: u32| sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    };
    let mut program = [
        code(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, interface),
        code(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K, 0, 2, lowest),
        code(libc::BPF_JMP | libc::BPF_JGT | libc::BPF_K, 1, 0, highest),
        code(libc::BPF_RET | libc::BPF_K, 0, 0, u32::from(u16::MAX)),
        code(libc::BPF_RET | libc::BPF_K, 0, 0, 0),
    ];
    let program = libc::sock_fprog {
        len: program.len() as u16,
        filter: program.as_mut_ptr(),
    };
    set(fd, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
}

fn align(bytes: usize) -> usize {
    bytes.next_multiple_of(libc::TPACKET_ALIGNMENT)
}

/// `setsockopt` with a plain value.
pub(super) fn set<T>(fd: RawFd, level: c_int, name: c_int, value: &T) -> io::Result<()> {
    // SAFETY: `value` is valid for its length during the call.
    let result = unsafe {
        libc::setsockopt(
            fd,
            level,
            name,
            std::ptr::from_ref(value).cast::<c_void>(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
