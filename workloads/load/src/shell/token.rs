// SPDX-License-Identifier: Apache-2.0

//! Epoll tokens.

use crate::engine::ConnectionId;

/// What an epoll token identifies: its kind in the low bits, its number above.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token {
    Listener(usize),
    Sender(ConnectionId),
    Receiver(ConnectionId),
    /// An end of a background flow.
    Background(usize),
}

impl Token {
    pub(super) fn encode(self) -> u64 {
        match self {
            Self::Listener(host) => (host as u64) << 2,
            Self::Sender(connection) => ((connection as u64) << 2) | 1,
            Self::Receiver(connection) => ((connection as u64) << 2) | 2,
            Self::Background(end) => ((end as u64) << 2) | 3,
        }
    }

    pub(super) fn decode(token: u64) -> Self {
        let number = (token >> 2) as usize;
        match token & 3 {
            0 => Self::Listener(number),
            1 => Self::Sender(number),
            2 => Self::Receiver(number),
            _ => Self::Background(number),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_keep_what_they_stand_for() {
        for token in [
            Token::Listener(1023),
            Token::Sender(7),
            Token::Receiver(1 << 40),
            Token::Background(3),
        ] {
            assert_eq!(Token::decode(token.encode()), token);
        }
    }
}
