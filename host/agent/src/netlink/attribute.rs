//! Netlink attributes: [`Attribute`] in requests, [`Attributes`] in answers.

use std::net::{Ipv4Addr, Ipv6Addr};

use netlink_packet_core::{
    DecodeError, DefaultNla, Emitable, NLA_F_NESTED, NLA_TYPE_MASK, Nla, NlaBuffer, NlasIterator,
    Parseable,
};

/// One attribute of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attribute(DefaultNla);

impl Attribute {
    /// `value` as it is.
    #[must_use]
    pub fn new(kind: u16, value: Vec<u8>) -> Self {
        Self(DefaultNla::new(kind, value))
    }

    /// A byte.
    #[must_use]
    pub fn u8(kind: u16, value: u8) -> Self {
        Self::new(kind, vec![value])
    }

    /// 16 bits in the machine's byte order.
    #[must_use]
    pub fn u16(kind: u16, value: u16) -> Self {
        Self::new(kind, value.to_ne_bytes().into())
    }

    /// 32 bits in the machine's byte order.
    #[must_use]
    pub fn u32(kind: u16, value: u32) -> Self {
        Self::new(kind, value.to_ne_bytes().into())
    }

    /// 64 bits in the machine's byte order.
    #[must_use]
    pub fn u64(kind: u16, value: u64) -> Self {
        Self::new(kind, value.to_ne_bytes().into())
    }

    /// An address in network byte order.
    #[must_use]
    pub fn ipv4(kind: u16, value: Ipv4Addr) -> Self {
        Self::new(kind, value.octets().into())
    }

    /// An address in network byte order.
    #[must_use]
    pub fn ipv6(kind: u16, value: Ipv6Addr) -> Self {
        Self::new(kind, value.octets().into())
    }

    /// Attributes inside an attribute.
    #[must_use]
    pub fn nest(kind: u16, attributes: &[Self]) -> Self {
        let mut value = vec![0; attributes.buffer_len()];
        attributes.emit(&mut value);
        Self::new(kind | NLA_F_NESTED, value)
    }
}

impl Nla for Attribute {
    fn value_len(&self) -> usize {
        self.0.value_len()
    }

    fn kind(&self) -> u16 {
        self.0.kind()
    }

    fn emit_value(&self, buffer: &mut [u8]) {
        self.0.emit_value(buffer);
    }
}

/// The attributes of an answer, in their order. A look-up of one that is
/// missing or too short gives `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Attributes(Vec<(u16, Vec<u8>)>);

impl Attributes {
    /// Takes `bytes` apart.
    ///
    /// # Errors
    /// A length that runs over the end.
    pub fn parse(bytes: &[u8]) -> Result<Self, DecodeError> {
        parse(bytes).map(Self::from)
    }

    /// A byte.
    #[must_use]
    pub fn u8(&self, kind: u16) -> Option<u8> {
        self.number(kind).map(u8::from_ne_bytes)
    }

    /// 16 bits in the machine's byte order.
    #[must_use]
    pub fn u16(&self, kind: u16) -> Option<u16> {
        self.number(kind).map(u16::from_ne_bytes)
    }

    /// 32 bits in the machine's byte order.
    #[must_use]
    pub fn u32(&self, kind: u16) -> Option<u32> {
        self.number(kind).map(u32::from_ne_bytes)
    }

    /// 64 bits in the machine's byte order.
    #[must_use]
    pub fn u64(&self, kind: u16) -> Option<u64> {
        self.number(kind).map(u64::from_ne_bytes)
    }

    /// An address in network byte order.
    #[must_use]
    pub fn ipv4(&self, kind: u16) -> Option<Ipv4Addr> {
        self.number::<4>(kind).map(Ipv4Addr::from)
    }

    /// An address in network byte order.
    #[must_use]
    pub fn ipv6(&self, kind: u16) -> Option<Ipv6Addr> {
        self.number::<16>(kind).map(Ipv6Addr::from)
    }

    /// Text up to its NUL.
    #[must_use]
    pub fn text(&self, kind: u16) -> Option<String> {
        let bytes = self.bytes(kind)?.split(|byte| *byte == 0).next()?;
        Some(String::from_utf8_lossy(bytes).into_owned())
    }

    /// The value as it is.
    #[must_use]
    pub fn bytes(&self, kind: u16) -> Option<&[u8]> {
        self.0
            .iter()
            .find(|(found, _)| *found == kind)
            .map(|(_, value)| value.as_slice())
    }

    /// The members called `member` of the nest `kind`; none where it is not
    /// there.
    ///
    /// # Errors
    /// A nest that is cut short.
    pub fn nested(&self, kind: u16, member: u16) -> Result<Vec<Self>, DecodeError> {
        let nest = Self::parse(self.bytes(kind).unwrap_or_default())?;
        nest.0
            .iter()
            .filter(|(found, _)| *found == member)
            .map(|(_, value)| Self::parse(value))
            .collect()
    }

    /// All members of the nest `kind`, whatever their own kinds; none where it
    /// is not there.
    ///
    /// # Errors
    /// A nest that is cut short.
    pub fn members(&self, kind: u16) -> Result<Vec<Self>, DecodeError> {
        let nest = Self::parse(self.bytes(kind).unwrap_or_default())?;
        nest.0.iter().map(|(_, value)| Self::parse(value)).collect()
    }

    fn number<const N: usize>(&self, kind: u16) -> Option<[u8; N]> {
        self.bytes(kind)?.get(..N)?.try_into().ok()
    }
}

impl From<Vec<Attribute>> for Attributes {
    fn from(attributes: Vec<Attribute>) -> Self {
        let pair = |attribute: &Attribute| {
            let mut value = vec![0; attribute.value_len()];
            attribute.emit_value(&mut value);
            (attribute.kind() & NLA_TYPE_MASK, value)
        };
        Self(attributes.iter().map(pair).collect())
    }
}

/// The attributes that stand in `bytes`.
pub(super) fn parse(bytes: &[u8]) -> Result<Vec<Attribute>, DecodeError> {
    NlasIterator::new(bytes)
        .map(|attribute| {
            attribute.and_then(|buffer: NlaBuffer<&[u8]>| DefaultNla::parse(&buffer).map(Attribute))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nests_give_back_what_went_in() {
        let path = |gap| Attribute::nest(7, &[Attribute::u32(2, gap), Attribute::u64(3, 1 << 40)]);
        let read = Attributes::from(vec![
            Attribute::u8(2, 24),
            Attribute::nest(6, &[path(4), path(1)]),
        ]);
        let paths = read.nested(6, 7).unwrap();
        assert_eq!(read.u8(2), Some(24));
        assert_eq!(
            paths.iter().map(|path| path.u32(2)).collect::<Vec<_>>(),
            [Some(4), Some(1)]
        );
        assert_eq!(paths[0].u64(3), Some(1 << 40));
        assert!(read.nested(99, 7).unwrap().is_empty());
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            if let Ok(read) = Attributes::parse(&bytes) {
                for kind in 0..8 {
                    let _ = (read.u8(kind), read.u64(kind), read.text(kind), read.nested(kind, 1).is_ok());
                }
            }
        }
    }
}
