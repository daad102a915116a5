// SPDX-License-Identifier: Apache-2.0

//! Words for the fields of headers and metadata, and their names.

use std::collections::HashMap;

use serde_json::Value;

use super::error::{LoadError, malformed, unsupported};
use super::json;
use super::wire::group_fields;
use crate::pipeline::model::layout::{Header, Layout, Stack};
use crate::pipeline::model::slot::{Field, Slot};

/// Maximum width of a field, in bits.
const MAX_FIELD_BITS: u32 = 1 << 14;

/// Maximum number of words of all headers and metadata together.
const MAX_WORDS: usize = 1 << 16;

/// The symbol table of a program's headers, metadata, stacks and fields.
#[derive(Debug, Default)]
pub struct Symbols {
    /// Where the named fields are.
    pub layout: Layout,
    header_names: HashMap<String, usize>,
    stack_names: HashMap<String, usize>,
    field_names: Vec<HashMap<String, usize>>,
}

impl Symbols {
    pub fn build(document: &json::Document) -> Result<Symbols, LoadError> {
        let mut symbols = Symbols::default();
        let mut types = HashMap::new();
        for (kind, header_type) in document.header_types.iter().enumerate() {
            let fields = parse_type(header_type)?;
            let names = fields.iter().enumerate();
            let names = names.map(|(index, field)| (field.name.clone(), index));
            symbols.field_names.push(names.collect());
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
            let index = symbols.layout.headers.len();
            symbols.add_header(header.metadata, *kind, fields, max_length);
            if symbols.layout.initial.len() > MAX_WORDS {
                return Err(malformed(
                    place(),
                    "headers and metadata take too much room".into(),
                ));
            }
            symbols.header_names.insert(header.name.clone(), index);
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
            let kinds = headers
                .iter()
                .map(|header| symbols.layout.headers[*header].kind);
            if kinds.collect::<std::collections::HashSet<_>>().len() != 1 {
                return Err(malformed(place(), "elements of different types".into()));
            }
            let bases = headers
                .iter()
                .map(|header| symbols.layout.headers[*header].base);
            let bases = bases.collect();
            let layout = &mut symbols.layout;
            let index = layout.stacks.len();
            let next = layout.initial.len() as u32;
            layout.initial.push(0);
            layout.stacks.push(Stack {
                next,
                headers,
                bases,
            });
            symbols.stack_names.insert(stack.name.clone(), index);
        }
        Ok(symbols)
    }

    /// A new word that no field uses.
    pub fn spare(&mut self) -> Slot {
        self.layout.initial.push(0);
        Slot {
            word: self.layout.initial.len() as u32 - 1,
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
        let base = self.layout.initial.len() as u32;
        self.layout.initial.push(metadata.into());
        let fixed_bits = fields.iter().filter_map(|field| field.bits).sum();
        let mut variable_bits = 0;
        let fields = fields.iter().map(|field| {
            let bits = match field.bits {
                Some(bits) => bits,
                None => {
                    self.layout.initial.push(0);
                    variable_bits = (max_bytes.unwrap_or(0) * 8).saturating_sub(fixed_bits);
                    variable_bits
                }
            };
            let slot = Slot {
                word: self.layout.initial.len() as u32,
                bits,
                signed: field.signed,
            };
            self.layout
                .initial
                .resize(self.layout.initial.len() + slot.limbs(), 0);
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
        self.layout.headers.push(Header {
            base,
            words: self.layout.initial.len() as u32 - base,
            groups: group_fields(&fields),
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
        let instance = &self.layout.headers[header_index];
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
        let element = &self.layout.headers[self.layout.stacks[stack].headers[0]];
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
        let element = &self.layout.headers[self.layout.stacks[stack].headers[0]];
        (index < element.fields.len()).then(|| self.stack_field_at(stack, index))
    }

    fn stack_field_at(&self, stack: usize, index: usize) -> Slot {
        let element = &self.layout.headers[self.layout.stacks[stack].headers[0]];
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
