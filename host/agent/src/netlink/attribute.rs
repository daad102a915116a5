// SPDX-License-Identifier: Apache-2.0

//! Typed netlink attributes, for families that have a table of them, such as
//! [`weft::spec`](crate::weft::spec). Each [`Attribute`] has its number, its attribute set,
//! and the type of its value. A [`Writer`] writes them into requests; [`Attributes`] finds
//! them in answers.

use std::borrow::Cow;
use std::marker::PhantomData;
use std::net::Ipv4Addr;

use netlink_bindings::utils::{
    IterableChunks, finalize_nested_header, find_attr, parse_ipv4, parse_u8, parse_u32, parse_u64,
    push_header, push_nested_header,
};

/// An attribute of the set `S` with values of type `T`.
pub struct Attribute<S, T: ?Sized> {
    number: u16,
    of: PhantomData<fn(&S, &T)>,
}

impl<S, T: ?Sized> Attribute<S, T> {
    /// The attribute with this number in its set.
    #[must_use]
    pub const fn new(number: u16) -> Self {
        Self {
            number,
            of: PhantomData,
        }
    }
}

/// How values of a type are encoded in an attribute.
pub trait Type {
    /// The decoded value.
    type Value<'a>;

    /// Decodes a value; `None` if there are too few bytes.
    fn read(bytes: &[u8]) -> Option<Self::Value<'_>>;
}

/// A [`Type`] that can be written into requests.
pub trait Writable: Type {
    /// Encodes a value.
    fn bytes(value: &Self::Value<'_>) -> Vec<u8>;
}

macro_rules! fixed {
    ($($type:ty: $read:ident, $write:ident;)+) => {$(
        impl Type for $type {
            type Value<'a> = Self;

            fn read(bytes: &[u8]) -> Option<Self> {
                $read(bytes)
            }
        }

        impl Writable for $type {
            fn bytes(value: &Self) -> Vec<u8> {
                value.$write().into()
            }
        }
    )+};
}

// Numbers in host byte order, addresses in network byte order.
fixed! {
    u8: parse_u8, to_ne_bytes;
    u32: parse_u32, to_ne_bytes;
    u64: parse_u64, to_ne_bytes;
    Ipv4Addr: parse_ipv4, octets;
}

impl Type for [u8] {
    type Value<'a> = &'a [u8];

    fn read(bytes: &[u8]) -> Option<&[u8]> {
        Some(bytes)
    }
}

impl Writable for [u8] {
    fn bytes(value: &&[u8]) -> Vec<u8> {
        value.to_vec()
    }
}

/// Text up to its NUL.
impl Type for str {
    type Value<'a> = Cow<'a, str>;

    fn read(bytes: &[u8]) -> Option<Cow<'_, str>> {
        let text = bytes.split(|byte| *byte == 0).next()?;
        Some(String::from_utf8_lossy(text))
    }
}

/// Attributes of the set `S`, nested in an attribute.
pub struct Nest<S>(PhantomData<S>);

impl<S> Type for Nest<S> {
    type Value<'a> = Attributes<'a, S>;

    fn read(bytes: &[u8]) -> Option<Attributes<'_, S>> {
        Some(Attributes::new(bytes))
    }
}

/// Writes attributes of the set `S`.
pub struct Writer<'a, S> {
    bytes: &'a mut Vec<u8>,
    of: PhantomData<S>,
}

impl<'a, S> Writer<'a, S> {
    /// A writer that appends to `bytes`.
    pub fn new(bytes: &'a mut Vec<u8>) -> Self {
        Self {
            bytes,
            of: PhantomData,
        }
    }

    /// Writes `attribute` with `value`.
    pub fn put<T: Writable + ?Sized>(
        &mut self,
        attribute: Attribute<S, T>,
        value: T::Value<'_>,
    ) -> &mut Self {
        let value = T::bytes(&value);
        push_header(self.bytes, attribute.number, value.len() as u16);
        self.bytes.extend(value);
        self
    }

    /// Writes `attribute` with the nested attributes that `write` writes.
    pub fn nest<I>(
        &mut self,
        attribute: Attribute<S, Nest<I>>,
        write: impl FnOnce(&mut Writer<'_, I>),
    ) -> &mut Self {
        let header = push_nested_header(self.bytes, attribute.number);
        write(&mut Writer::new(self.bytes));
        finalize_nested_header(self.bytes, header);
        self
    }
}

/// Attributes of the set `S`, in order.
#[derive(Debug)]
pub struct Attributes<'a, S> {
    bytes: &'a [u8],
    of: PhantomData<S>,
}

impl<'a, S> Attributes<'a, S> {
    /// The attributes in `bytes`.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            of: PhantomData,
        }
    }

    /// The value of `attribute`; `None` if it is missing or too short.
    #[must_use]
    pub fn get<T: Type + ?Sized>(&self, attribute: Attribute<S, T>) -> Option<T::Value<'a>> {
        T::read(find_attr(self.bytes, attribute.number)?)
    }

    /// The values of all occurrences of `attribute`; `None` for a truncated one.
    pub fn all<T: Type + ?Sized>(
        &self,
        attribute: Attribute<S, T>,
    ) -> impl Iterator<Item = Option<T::Value<'a>>> + use<'a, S, T> {
        let mut rest = IterableChunks::new(self.bytes);
        std::iter::from_fn(move || {
            loop {
                match rest.next() {
                    Some((header, value)) if header.r#type == attribute.number => {
                        return Some(T::read(value));
                    }
                    Some(_) => {}
                    None if rest.is_empty() => return None,
                    None => {
                        rest = IterableChunks::default();
                        return Some(None);
                    }
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    enum Outer {}
    enum Inner {}
    const PREFIX_LEN: Attribute<Outer, u8> = Attribute::new(2);
    const PATHS: Attribute<Outer, Nest<Outer>> = Attribute::new(6);
    const PATH: Attribute<Outer, Nest<Inner>> = Attribute::new(7);
    const NAME: Attribute<Outer, str> = Attribute::new(8);
    const GAP: Attribute<Inner, u32> = Attribute::new(2);
    const RTT: Attribute<Inner, u64> = Attribute::new(3);
    const SEQUENCE: Attribute<Inner, [u8]> = Attribute::new(4);

    fn written() -> Vec<u8> {
        let mut bytes = Vec::new();
        Writer::new(&mut bytes)
            .put(PREFIX_LEN, 24)
            .nest(PATHS, |paths| {
                for gap in [4, 1] {
                    paths.nest(PATH, |path| {
                        path.put(GAP, gap)
                            .put(SEQUENCE, &[1, 2, 3])
                            .put(RTT, 1 << 40);
                    });
                }
            });
        bytes
    }

    #[test]
    fn attributes_are_aligned_and_nests_are_marked() {
        let mut bytes = Vec::new();
        Writer::new(&mut bytes)
            .put(PREFIX_LEN, 24)
            .nest(PATH, |path| {
                path.put(GAP, 5);
            });
        let expected: &[u8] = &[
            5, 0, 2, 0, 24, 0, 0, 0, // u8, padded
            12, 0, 7, 0x80, // NLA_F_NESTED
            8, 0, 2, 0, 5, 0, 0, 0,
        ];
        assert_eq!(bytes, expected);
    }

    #[test]
    fn nests_give_back_what_went_in() {
        let bytes = written();
        let read = Attributes::<Outer>::new(&bytes);
        let paths: Vec<_> = read
            .get(PATHS)
            .unwrap()
            .all(PATH)
            .collect::<Option<_>>()
            .unwrap();
        assert_eq!(read.get(PREFIX_LEN), Some(24));
        assert_eq!(
            paths.iter().map(|path| path.get(GAP)).collect::<Vec<_>>(),
            [Some(4), Some(1)]
        );
        assert_eq!(paths[0].get(RTT), Some(1 << 40));
        assert_eq!(paths[1].get(SEQUENCE), Some(&[1, 2, 3][..]));
        assert!(read.get(NAME).is_none());
        assert_eq!(read.all(PATH).count(), 0);
    }

    #[test]
    fn a_list_that_is_cut_short_is_not_taken_for_a_shorter_one() {
        let bytes = written();
        let read = Attributes::<Outer>::new(&bytes[..bytes.len() - 4]);
        assert!(read.get(PATHS).is_none());
        let list = Attributes::<Outer>::new(&bytes[12..bytes.len() - 4]);
        let paths: Vec<_> = list.all(PATH).map(|path| path.is_some()).collect();
        assert_eq!(paths, [true, false]);
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let read = Attributes::<Outer>::new(&bytes);
            let _ = (read.get(PREFIX_LEN), read.get(NAME));
            let lists = read.all(PATHS).flatten();
            for path in lists.flat_map(|paths| paths.all(PATH)).flatten() {
                let _ = (path.get(GAP), path.get(RTT), path.get(SEQUENCE));
            }
        }
    }
}
