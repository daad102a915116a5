//! Where the fields of headers and metadata are kept.
//!
//! A packet's parsed form is one vector of 64-bit words. A header takes a word for its validity
//! and then its fields in order, each in as many words as its width needs (little-endian limbs,
//! bits beyond the width zero). A `varbit` field has one more word in front, its length in bits. A
//! header stack has a word that counts the elements filled so far (`nextIndex`).

use std::collections::HashMap;

use serde_json::Value;

use super::LoadError;
use super::error::{malformed, unsupported};
use super::json;
use super::pieces::{Piece, pack};
use super::word::{limbs_for, mask64};

/// The most bits a field may have.
const MAX_FIELD_BITS: u32 = 1 << 14;
/// The most words that all headers and metadata together may take.
const MAX_WORDS: usize = 1 << 16;

/// A value in the words of a packet, in action data or in a register cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slot {
    /// The first of its limbs.
    pub word: u32,
    /// Its width.
    pub bits: u32,
    /// Whether expressions read it as two's complement.
    pub signed: bool,
}

impl Slot {
    pub fn start(self) -> usize {
        self.word as usize
    }

    pub fn limbs(self) -> usize {
        limbs_for(self.bits)
    }

    pub fn range(self) -> std::ops::Range<usize> {
        self.start()..self.start() + self.limbs()
    }

    /// Where a slot whose word is relative to a header is, for the header at `base`.
    pub fn at(self, base: u32) -> Slot {
        Slot {
            word: base + self.word,
            ..self
        }
    }

    /// Sets a slot of at most 64 bits to the low bits of `value`.
    #[inline]
    pub fn set(self, words: &mut [u64], value: u64) {
        words[self.start()] = value & mask64(self.bits);
    }

    /// Sets a slot of at most 64 bits to `value` or, if that does not fit, to the most that does.
    #[inline]
    pub fn set_at_most(self, words: &mut [u64], value: u64) {
        words[self.start()] = value.min(mask64(self.bits));
    }

    /// Reads a slot of at most 64 bits.
    #[inline]
    pub fn get(self, words: &[u64]) -> u64 {
        words[self.start()]
    }
}

/// A field of a header; its slot is absolute.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field {
    /// Its value.
    pub slot: Slot,
    /// Whether its length varies: then `slot.bits` is the most it may have, and the word before
    /// the slot holds the length in bits.
    pub variable: bool,
}

impl Field {
    /// The word that holds the length of a variable field.
    pub fn length_word(&self) -> usize {
        self.slot.start() - 1
    }
}

/// A header or metadata instance.
#[derive(Debug, Clone)]
pub(super) struct Header {
    /// The word of its validity; its fields follow.
    pub base: u32,
    /// How many words it takes with that.
    pub words: u32,
    /// Its fields in wire order.
    pub fields: Box<[Field]>,
    /// The same, packed.
    pub pieces: Box<[Piece]>,
    /// The bits on the wire of all fields of fixed length.
    pub fixed_bits: u32,
    /// The most bytes it may take on the wire, if one of its fields varies.
    pub max_bytes: Option<u32>,
    /// Whether it is metadata: always valid, zero when a packet comes in.
    pub metadata: bool,
    /// The place of its type among the header types.
    pub kind: usize,
}

impl Header {
    pub fn range(&self) -> std::ops::Range<usize> {
        self.base as usize..(self.base + self.words) as usize
    }

    pub fn validity(&self) -> Slot {
        Slot {
            word: self.base,
            bits: 1,
            signed: false,
        }
    }

    pub fn is_valid(&self, words: &[u64]) -> bool {
        words[self.base as usize] != 0
    }
}

/// A header stack.
#[derive(Debug, Clone)]
pub(super) struct Stack {
    /// The word that counts the elements filled.
    pub next: u32,
    /// The headers that are its elements, all of one type.
    pub headers: Box<[usize]>,
    /// The bases of those.
    pub bases: Box<[u32]>,
}

impl Stack {
    /// The base of the element extracted last.
    #[inline]
    pub fn last(&self, words: &[u64]) -> Option<u32> {
        let next = words[self.next as usize] as usize;
        self.bases.get(next.checked_sub(1)?).copied()
    }
}

/// All headers, metadata and stacks of a program.
#[derive(Debug, Default)]
pub(super) struct Layout {
    pub headers: Vec<Header>,
    pub stacks: Vec<Stack>,
    /// What the words are when a packet comes in: zero, metadata valid.
    pub initial: Vec<u64>,
    header_names: HashMap<String, usize>,
    stack_names: HashMap<String, usize>,
    field_names: Vec<HashMap<String, usize>>,
}

impl Layout {
    pub fn build(document: &json::Document) -> Result<Layout, LoadError> {
        let mut layout = Layout::default();
        let mut types = HashMap::new();
        for (kind, header_type) in document.header_types.iter().enumerate() {
            let fields = parse_type(header_type)?;
            let names = fields.iter().enumerate();
            let names = names.map(|(index, field)| (field.name.clone(), index));
            layout.field_names.push(names.collect());
            types.insert(header_type.name.as_str(), (kind, fields));
        }
        let mut ids = HashMap::new();
        for header in &document.headers {
            let place = || format!("header {}", header.name);
            let Some((kind, fields)) = types.get(header.header_type.as_str()) else {
                return Err(malformed(
                    place(),
                    format!("no header type {}", header.header_type),
                ));
            };
            let max_length = document.header_types[*kind].max_length;
            let index = layout.headers.len();
            layout.add_header(header.metadata, *kind, fields, max_length);
            if layout.initial.len() > MAX_WORDS {
                return Err(malformed(
                    place(),
                    "headers and metadata take too much room".into(),
                ));
            }
            layout.header_names.insert(header.name.clone(), index);
            ids.insert(header.id, index);
        }
        for stack in &document.header_stacks {
            let place = || format!("header stack {}", stack.name);
            let headers: Option<Box<[usize]>> = stack
                .header_ids
                .iter()
                .map(|id| ids.get(id).copied())
                .collect();
            let headers = headers.ok_or_else(|| malformed(place(), "unknown header id".into()))?;
            let kinds = headers.iter().map(|header| layout.headers[*header].kind);
            if kinds.collect::<std::collections::HashSet<_>>().len() != 1 {
                return Err(malformed(place(), "elements of different types".into()));
            }
            let bases = headers.iter().map(|header| layout.headers[*header].base);
            let bases = bases.collect();
            let index = layout.stacks.len();
            let next = layout.initial.len() as u32;
            layout.initial.push(0);
            layout.stacks.push(Stack {
                next,
                headers,
                bases,
            });
            layout.stack_names.insert(stack.name.clone(), index);
        }
        Ok(layout)
    }

    /// A word of its own that is no field's.
    pub fn spare(&mut self) -> Slot {
        self.initial.push(0);
        Slot {
            word: self.initial.len() as u32 - 1,
            bits: 64,
            signed: false,
        }
    }

    fn add_header(
        &mut self,
        metadata: bool,
        kind: usize,
        fields: &[TypeField],
        max_bytes: Option<u32>,
    ) {
        let base = self.initial.len() as u32;
        self.initial.push(metadata.into());
        let fixed_bits = fields.iter().filter_map(|field| field.bits).sum();
        let mut variable_bits = 0;
        let fields = fields.iter().map(|field| {
            let bits = match field.bits {
                Some(bits) => bits,
                None => {
                    self.initial.push(0);
                    variable_bits = (max_bytes.unwrap_or(0) * 8).saturating_sub(fixed_bits);
                    variable_bits
                }
            };
            let slot = Slot {
                word: self.initial.len() as u32,
                bits,
                signed: field.signed,
            };
            self.initial.resize(self.initial.len() + slot.limbs(), 0);
            Field {
                slot,
                variable: field.bits.is_none(),
            }
        });
        let fields: Box<[Field]> = fields.collect();
        let max_bytes = fields
            .iter()
            .any(|field| field.variable)
            .then_some((fixed_bits + variable_bits) / 8);
        self.headers.push(Header {
            base,
            words: self.initial.len() as u32 - base,
            pieces: pack(&fields),
            fields,
            fixed_bits,
            max_bytes,
            metadata,
            kind,
        });
    }

    pub fn header(&self, name: &str, place: &str) -> Result<usize, LoadError> {
        let header = self.header_names.get(name).copied();
        header.ok_or_else(|| malformed(place.into(), format!("no header {name}")))
    }

    pub fn stack(&self, name: &str, place: &str) -> Result<usize, LoadError> {
        let stack = self.stack_names.get(name).copied();
        stack.ok_or_else(|| malformed(place.into(), format!("no header stack {name}")))
    }

    /// A field of a header instance. `$valid$` is its validity.
    pub fn field(&self, header: &str, field: &str, place: &str) -> Result<Field, LoadError> {
        let header_index = self.header(header, place)?;
        let instance = &self.headers[header_index];
        if field == "$valid$" {
            return Ok(Field {
                slot: instance.validity(),
                variable: false,
            });
        }
        match self.field_names[instance.kind].get(field) {
            Some(index) => Ok(instance.fields[*index]),
            None => Err(malformed(
                place.into(),
                format!("header {header} has no field {field}"),
            )),
        }
    }

    /// A field of a stack's elements, relative to an element's base.
    pub fn stack_field(&self, stack: usize, field: &str, place: &str) -> Result<Slot, LoadError> {
        let element = &self.headers[self.stacks[stack].headers[0]];
        if field == "$valid$" {
            return Ok(Slot {
                word: 0,
                ..element.validity()
            });
        }
        match self.field_names[element.kind].get(field) {
            Some(index) => Ok(self.stack_field_at(stack, *index)),
            None => Err(malformed(
                place.into(),
                format!("header stack has no field {field}"),
            )),
        }
    }

    /// The field at a place within a stack's elements, if there is one.
    pub fn stack_field_index(&self, stack: usize, index: usize) -> Option<Slot> {
        let element = &self.headers[self.stacks[stack].headers[0]];
        (index < element.fields.len()).then(|| self.stack_field_at(stack, index))
    }

    fn stack_field_at(&self, stack: usize, index: usize) -> Slot {
        let element = &self.headers[self.stacks[stack].headers[0]];
        let slot = element.fields[index].slot;
        Slot {
            word: slot.word - element.base,
            ..slot
        }
    }
}

/// A field of a header type.
#[derive(Debug)]
struct TypeField {
    name: String,
    /// `None` when its length varies.
    bits: Option<u32>,
    signed: bool,
}

fn parse_type(header_type: &json::HeaderType) -> Result<Vec<TypeField>, LoadError> {
    let place = || format!("header type {}", header_type.name);
    let mut fields: Vec<TypeField> = Vec::new();
    for field in &header_type.fields {
        let Some(Value::String(name)) = field.first() else {
            return Err(malformed(place(), "a field without a name".into()));
        };
        let bits = match field.get(1) {
            Some(Value::String(star)) if star == "*" => None,
            Some(Value::Number(bits)) => match bits.as_u64() {
                Some(bits) if (1..=u64::from(MAX_FIELD_BITS)).contains(&bits) => Some(bits as u32),
                _ => return Err(unsupported(place(), format!("{bits} bits in field {name}"))),
            },
            _ => return Err(malformed(place(), format!("field {name} has no width"))),
        };
        fields.push(TypeField {
            name: name.clone(),
            bits,
            signed: field.get(2).and_then(Value::as_bool).unwrap_or(false),
        });
    }
    let variable = fields.iter().filter(|field| field.bits.is_none()).count();
    if variable > 1 {
        return Err(unsupported(place(), "a second varbit field".into()));
    }
    if variable == 1
        && header_type
            .max_length
            .is_none_or(|max| max > MAX_FIELD_BITS / 8)
    {
        return Err(malformed(
            place(),
            "a varbit field without a sensible max_length".into(),
        ));
    }
    Ok(fields)
}
