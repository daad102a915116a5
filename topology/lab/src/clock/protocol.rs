//! The messages of `include/uapi/linux/um_timetravel.h`.

/// Bytes of a message.
pub const MESSAGE_LEN: usize = 16;

/// What a message is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Op {
    /// Answers every other message, with its `seq`.
    Ack = 0,
    /// Kernel: hello. The time is its id, -1 for none.
    Start = 1,
    /// Kernel: wants to run at this time. Replaces its last request.
    Request = 2,
    /// Kernel: does nothing more until told to run.
    Wait = 3,
    /// Kernel: what time is it? The answer carries it.
    Get = 4,
    /// Kernel: it is this time by now.
    Update = 5,
    /// Clock: it is this time, run.
    Run = 6,
    /// Clock: the kernel need not ask before this time.
    FreeUntil = 7,
    /// Kernel: what time of day was it at time 0? The answer carries it.
    GetTod = 8,
    /// To all kernels; unused by a clock with one.
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

/// One message, in either direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message {
    /// What it is about.
    pub op: Op,
    /// Number that its acknowledgement repeats.
    pub seq: u32,
    /// Virtual time in ns; the meaning depends on `op`.
    pub time_ns: u64,
}

/// A message whose operation this clock does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("time-travel message of unknown operation {0}")]
pub struct UnknownOp(pub u32);

impl Message {
    /// Its bytes on the socket, which never leaves the machine.
    pub fn encode(&self) -> [u8; MESSAGE_LEN] {
        let mut bytes = [0; MESSAGE_LEN];
        bytes[0..4].copy_from_slice(&(self.op as u32).to_ne_bytes());
        bytes[4..8].copy_from_slice(&self.seq.to_ne_bytes());
        bytes[8..16].copy_from_slice(&self.time_ns.to_ne_bytes());
        bytes
    }

    /// The message in these bytes.
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
