//! The algorithms of `hash` and of checksums, as BMv2 computes them, and their input.

use serde_json::Value;

use super::LoadError;
use super::bits::BitWriter;
use super::compile_expr::{Names, parse_hex};
use super::error::{malformed, unsupported};
use super::json;
use super::layout::{Field, Layout, Slot};
use super::pieces::{Piece, pack, write_pieces};
use super::word::bytes_to_limbs;

/// A hash algorithm of v1model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Algorithm {
    /// CRC-16/ARC.
    Crc16,
    /// CRC-32 of Ethernet.
    Crc32,
    /// The Internet checksum (RFC 1071).
    Csum16,
    /// The exclusive or of all 16-bit words.
    Xor16,
    /// The first eight bytes.
    Identity,
}

impl Algorithm {
    /// The algorithm of that name; the `_custom` ones have BMv2's initial parameters, which only
    /// its own command line could change.
    fn parse(name: &str) -> Option<Algorithm> {
        Some(match name {
            "crc16" | "crc16_custom" => Algorithm::Crc16,
            "crc32" | "crc32_custom" => Algorithm::Crc32,
            "csum16" | "cksum16" => Algorithm::Csum16,
            "xor16" => Algorithm::Xor16,
            "identity" => Algorithm::Identity,
            _ => return None,
        })
    }

    /// The hash of `bytes`.
    pub fn compute(self, bytes: &[u8]) -> u64 {
        match self {
            Algorithm::Crc16 => crc16(bytes).into(),
            Algorithm::Crc32 => crc32(bytes).into(),
            Algorithm::Csum16 => (!ones_complement_sum(bytes)).into(),
            Algorithm::Xor16 => words16(bytes).fold(0, |sum, word| sum ^ word).into(),
            Algorithm::Identity => bytes
                .iter()
                .take(8)
                .fold(0, |value, byte| value << 8 | u64::from(*byte)),
        }
    }
}

/// Big-endian 16-bit words, the last filled up with zero.
fn words16(bytes: &[u8]) -> impl Iterator<Item = u16> + '_ {
    bytes.chunks(2).map(|word| {
        let low = word.get(1).copied().unwrap_or(0);
        u16::from_be_bytes([word[0], low])
    })
}

fn ones_complement_sum(bytes: &[u8]) -> u16 {
    let mut sum: u64 = words16(bytes).map(u64::from).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// Remainders of all bytes for a reflected CRC polynomial.
const fn reflected_table(polynomial: u32) -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut remainder = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            remainder = remainder >> 1 ^ if remainder & 1 == 1 { polynomial } else { 0 };
            bit += 1;
        }
        table[byte] = remainder;
        byte += 1;
    }
    table
}

/// x^16 + x^15 + x^2 + 1, reflected.
static CRC16_TABLE: [u32; 256] = reflected_table(0xa001);
/// The polynomial of IEEE 802.3, reflected.
static CRC32_TABLE: [u32; 256] = reflected_table(0xedb8_8320);

fn crc(table: &[u32; 256], start: u32, bytes: &[u8]) -> u32 {
    bytes.iter().fold(start, |crc, byte| {
        crc >> 8 ^ table[usize::from(crc as u8 ^ *byte)]
    })
}

fn crc16(bytes: &[u8]) -> u16 {
    crc(&CRC16_TABLE, 0, bytes) as u16
}

fn crc32(bytes: &[u8]) -> u32 {
    !crc(&CRC32_TABLE, u32::MAX, bytes)
}

/// A hash of a list of fields.
#[derive(Debug)]
pub(super) struct Calculation {
    pub algorithm: Algorithm,
    inputs: Box<[Input]>,
}

/// A part of what is hashed.
#[derive(Debug)]
enum Input {
    /// Fields of one header or of metadata; of a header only while that is valid.
    Fields {
        pieces: Box<[Piece]>,
        valid: Option<Slot>,
    },
    Const {
        limbs: Box<[u64]>,
        bits: u32,
    },
    /// All fields of a header, if it is valid.
    Header(usize),
    /// What follows the parsed headers.
    Payload,
}

impl Calculation {
    pub fn compile(source: &json::Calculation, layout: &Layout) -> Result<Self, LoadError> {
        let place = format!("calculation {}", source.name);
        let names = Names {
            layout,
            params: &[],
            place: &place,
        };
        let Some(algorithm) = Algorithm::parse(&source.algo) else {
            return Err(unsupported(
                place,
                format!("hash algorithm {}", source.algo),
            ));
        };
        let mut inputs = Vec::new();
        let mut fields: Vec<(Field, Option<Slot>)> = Vec::new();
        for input in &source.input {
            let next = match input["type"].as_str() {
                Some("field") => Some(field_input(input, &names)?),
                _ => None,
            };
            let goes_on = match (next, fields.last()) {
                (Some((_, valid)), Some((_, last))) => valid == *last,
                _ => false,
            };
            if !goes_on {
                close_fields(&mut fields, &mut inputs);
            }
            match next {
                Some(field) => fields.push(field),
                None => inputs.push(compile_input(input, &names)?),
            }
        }
        close_fields(&mut fields, &mut inputs);
        Ok(Calculation {
            algorithm,
            inputs: inputs.into(),
        })
    }

    /// The hash for a packet. `scratch` is overwritten.
    pub fn compute(
        &self,
        layout: &Layout,
        words: &[u64],
        payload: &[u8],
        scratch: &mut Vec<u8>,
    ) -> u64 {
        scratch.clear();
        let mut writer = BitWriter::new(scratch);
        for input in &self.inputs {
            match input {
                Input::Fields { pieces, valid } => {
                    if valid.is_none_or(|valid| valid.get(words) == 1) {
                        write_pieces(pieces, words, &mut writer);
                    }
                }
                Input::Const { limbs, bits } => writer.push_limbs(limbs, *bits),
                Input::Header(header) => {
                    let header = &layout.headers[*header];
                    if header.is_valid(words) {
                        write_pieces(&header.pieces, words, &mut writer);
                    }
                }
                Input::Payload => {
                    // p4c puts the payload last, behind whole bytes.
                    writer.finish();
                    scratch.extend_from_slice(payload);
                    return self.algorithm.compute(scratch);
                }
            }
        }
        writer.finish();
        self.algorithm.compute(scratch)
    }
}

/// Makes one input of the fields collected.
fn close_fields(fields: &mut Vec<(Field, Option<Slot>)>, inputs: &mut Vec<Input>) {
    if let Some((_, valid)) = fields.first().copied() {
        let fields: Vec<Field> = fields.drain(..).map(|(field, _)| field).collect();
        let pieces = pack(&fields);
        inputs.push(Input::Fields { pieces, valid });
    }
}

/// A field, and the validity of its header if it is not metadata's.
fn field_input(input: &Value, names: &Names) -> Result<(Field, Option<Slot>), LoadError> {
    let value = &input["value"];
    match (value[0].as_str(), value[1].as_str()) {
        (Some(header), Some(field)) => {
            let field = names.layout.field(header, field, names.place)?;
            let header = names.layout.header(header, names.place)?;
            let header = &names.layout.headers[header];
            Ok((field, (!header.metadata).then(|| header.validity())))
        }
        _ => names.malformed(format!("{value} does not name a field")),
    }
}

/// Anything but a field.
fn compile_input(input: &Value, names: &Names) -> Result<Input, LoadError> {
    match input["type"].as_str() {
        Some("header") => {
            let header = names.name(Some(input), "header")?;
            Ok(Input::Header(names.layout.header(header, names.place)?))
        }
        Some("hexstr") => constant_input(input, names),
        Some("payload") => Ok(Input::Payload),
        Some(kind) => names.unsupported(format!("a {kind} as hash input")),
        None => names.malformed("a hash input without a type"),
    }
}

fn constant_input(input: &Value, names: &Names) -> Result<Input, LoadError> {
    let text = input["value"].as_str().unwrap_or_default();
    let bits = input["bitwidth"].as_u64().unwrap_or(0);
    if !(1..=0x4000).contains(&bits) {
        return names.malformed(format!("the constant {text} has no width"));
    }
    let bits = bits as u32;
    let bytes = parse_hex(text).and_then(|value| value.to_biguint());
    match bytes.and_then(|value| bytes_to_limbs(&value.to_bytes_be(), bits)) {
        Some(limbs) => Ok(Input::Const {
            limbs: limbs.into(),
            bits,
        }),
        None => Err(malformed(
            names.place.into(),
            format!("{text} is no constant of {bits} bits"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHECK: &[u8] = b"123456789";

    #[test]
    fn crcs_give_their_published_check_values() {
        assert_eq!(Algorithm::Crc16.compute(CHECK), 0xbb3d); // CRC-16/ARC
        assert_eq!(Algorithm::Crc32.compute(CHECK), 0xcbf4_3926); // CRC-32/ISO-HDLC
    }

    #[test]
    fn internet_checksum_is_that_of_a_known_ipv4_header() {
        let header = [
            0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0, 0, 0xc0, 0xa8, 0x00,
            0x01, 0xc0, 0xa8, 0x00, 0xc7,
        ];
        assert_eq!(Algorithm::Csum16.compute(&header), 0xb861);
        assert_eq!(Algorithm::Csum16.compute(&[0xff]), 0x00ff);
    }

    #[test]
    fn identity_takes_the_first_eight_bytes() {
        assert_eq!(Algorithm::Identity.compute(&[1, 2]), 0x0102);
        assert_eq!(
            Algorithm::Identity.compute(CHECK),
            u64::from_be_bytes(*b"12345678")
        );
    }

    #[test]
    fn fields_of_an_invalid_header_are_left_out_as_bmv2_does() {
        let document = serde_json::json!({
            "header_types": [{"name": "byte_t", "id": 0, "fields": [["value", 8, false]]}],
            "headers": [
                {"name": "first", "id": 0, "header_type": "byte_t", "metadata": false},
                {"name": "second", "id": 1, "header_type": "byte_t", "metadata": false},
            ],
        });
        let document: json::Document = serde_json::from_value(document).unwrap();
        let layout = Layout::build(&document).unwrap();
        let field = |header| serde_json::json!({"type": "field", "value": [header, "value"]});
        let source = json::Calculation {
            name: "calc".into(),
            algo: "identity".into(),
            input: vec![field("first"), field("second")],
        };
        let calculation = Calculation::compile(&source, &layout).unwrap();

        let mut words = layout.initial.clone();
        for (header, value) in [("first", 0xaa), ("second", 0xbb)] {
            let slot = layout.field(header, "value", "").unwrap().slot;
            slot.set(&mut words, value);
        }
        let valid = layout.field("second", "$valid$", "").unwrap().slot;
        valid.set(&mut words, 1);
        let hash = |words: &[u64]| calculation.compute(&layout, words, &[], &mut Vec::new());
        assert_eq!(hash(&words), 0xbb);
        let valid = layout.field("first", "$valid$", "").unwrap().slot;
        valid.set(&mut words, 1);
        assert_eq!(hash(&words), 0xaabb);
    }

    #[test]
    fn xor16_fills_an_odd_end_with_zero() {
        assert_eq!(Algorithm::Xor16.compute(&[0x12, 0x34, 0x56]), 0x4434);
    }
}
