// SPDX-License-Identifier: Apache-2.0

//! The messages of `include/uapi/linux/um_timetravel.h`.

/// Bytes of a message.
pub const MESSAGE_LEN: usize = 16;

/// The operation of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Op {
    /// Answers every other message, with its `seq`.
    Ack = 0,
    /// Kernel: hello. The time is its ID, -1 for none.
    Start = 1,
    /// Kernel: requests to run at this time. Replaces its last request.
    Request = 2,
    /// Kernel: waits until it is told to run.
    Wait = 3,
    /// Kernel: asks for the time, which the answer contains.
    Get = 4,
    /// Kernel: reports the current time.
    Update = 5,
    /// Clock: sets the time and lets the kernel run.
    Run = 6,
    /// Clock: lets the kernel run until this time without asking.
    FreeUntil = 7,
    /// Kernel: asks for the time of day at time 0, which the answer contains.
    GetTod = 8,
    /// To all kernels; not used with one kernel.
    Broadcast = 9,
}

impl Op {
    fn from_u32(value: u32) -> Option<Self> {
        Some(match value {
            0 => Self::Ack,
            1 => Self::Start,
            2 => Self::Request,
            3 => Self::Wait,
            4 => Self::Get,
            5 => Self::Update,
            6 => Self::Run,
            7 => Self::FreeUntil,
            8 => Self::GetTod,
            9 => Self::Broadcast,
            _ => return None,
        })
    }
}

/// A message in either direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message {
    /// Its operation.
    pub op: Op,
    /// Sequence number, repeated by the acknowledgement.
    pub seq: u32,
    /// Virtual time in ns; the meaning depends on `op`.
    pub time_ns: u64,
}

/// A message with an unknown operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("time-travel message of unknown operation {0}")]
pub struct UnknownOp(pub u32);

impl Message {
    /// Encodes the message, in host byte order.
    pub fn encode(&self) -> [u8; MESSAGE_LEN] {
        let mut bytes = [0; MESSAGE_LEN];
        bytes[0..4].copy_from_slice(&(self.op as u32).to_ne_bytes());
        bytes[4..8].copy_from_slice(&self.seq.to_ne_bytes());
        bytes[8..16].copy_from_slice(&self.time_ns.to_ne_bytes());
        bytes
    }

    /// Decodes a message.
    pub fn decode(bytes: &[u8; MESSAGE_LEN]) -> Result<Self, UnknownOp> {
        let [o0, o1, o2, o3, s0, s1, s2, s3, time @ ..] = *bytes;
        let op = u32::from_ne_bytes([o0, o1, o2, o3]);
        Ok(Self {
            op: Op::from_u32(op).ok_or(UnknownOp(op))?,
            seq: u32::from_ne_bytes([s0, s1, s2, s3]),
            time_ns: u64::from_ne_bytes(time),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_survives_its_encoding() {
        let message = Message {
            op: Op::FreeUntil,
            seq: 7,
            time_ns: 1 << 40,
        };
        assert_eq!(Message::decode(&message.encode()), Ok(message));
    }

    #[test]
    fn an_unknown_operation_is_refused() {
        let mut bytes = [0; MESSAGE_LEN];
        bytes[0..4].copy_from_slice(&77u32.to_ne_bytes());
        assert_eq!(Message::decode(&bytes), Err(UnknownOp(77)));
    }
}
