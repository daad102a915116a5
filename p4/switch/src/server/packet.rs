// SPDX-License-Identifier: Apache-2.0

//! The headers of packets to and from the controller.

use tonic::Status;
use weft_p4runtime::bytestring;
use weft_p4runtime::p4::config::v1::P4Info;
use weft_p4runtime::p4::v1::{PacketIn, PacketMetadata, PacketOut};

/// A `@controller_header`: fields of some bits each, in front of the packet. It is empty if the
/// program has none.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Header {
    fields: Vec<Field>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Field {
    id: u32,
    name: String,
    bits: u32,
}

impl Header {
    /// The header called `name` in `p4info`.
    pub fn of(p4info: &P4Info, name: &str) -> Result<Self, Status> {
        let mut headers = p4info.controller_packet_metadata.iter();
        let Some(header) = headers.find(|header| {
            let preamble = header.preamble.as_ref();
            preamble.is_some_and(|preamble| preamble.name == name)
        }) else {
            return Ok(Self::default());
        };
        let mut fields = Vec::new();
        for field in &header.metadata {
            let bits = u32::try_from(field.bitwidth).unwrap_or(0);
            if bits == 0 || bits > 128 {
                return Err(Status::invalid_argument(format!(
                    "P4Info: {name}.{} has {} bits; 1 to 128 are possible",
                    field.name, field.bitwidth
                )));
            }
            fields.push(Field {
                id: field.id,
                name: field.name.clone(),
                bits,
            });
        }
        let bits: u32 = fields.iter().map(|field| field.bits).sum();
        if bits % 8 != 0 {
            return Err(Status::invalid_argument(format!(
                "P4Info: {name} has {bits} bits, which is not a whole number of bytes"
            )));
        }
        Ok(Self { fields })
    }

    /// The frame that the data plane gets for `message`.
    pub fn encode(&self, message: &PacketOut) -> Result<Vec<u8>, Status> {
        let mut frame = Vec::new();
        let mut bits = Vec::new();
        for field in &self.fields {
            let mut given = message.metadata.iter();
            let value = given
                .find(|metadata| metadata.metadata_id == field.id)
                .map(|metadata| bytestring::decode(&metadata.value, field.bits))
                .transpose()
                .map_err(|error| {
                    Status::invalid_argument(format!("packet_out.{}: {error}", field.name))
                })?;
            // A client may leave out padding, which is zero.
            let value = value.unwrap_or(0);
            bits.extend((0..field.bits).rev().map(|bit| (value >> bit & 1) as u8));
        }
        let known = |metadata: &PacketMetadata| {
            let mut fields = self.fields.iter();
            fields.any(|field| field.id == metadata.metadata_id)
        };
        if let Some(unknown) = message.metadata.iter().find(|metadata| !known(metadata)) {
            return Err(Status::invalid_argument(format!(
                "packet_out has no metadata {}",
                unknown.metadata_id
            )));
        }
        frame.extend(
            bits.chunks(8)
                .map(|byte| byte.iter().fold(0, |value, bit| (value << 1) | bit)),
        );
        frame.extend_from_slice(&message.payload);
        Ok(frame)
    }

    /// The message for a frame from the data plane; `None` if the frame is too short for the
    /// header.
    pub fn decode(&self, frame: &[u8]) -> Option<PacketIn> {
        let bits: u32 = self.fields.iter().map(|field| field.bits).sum();
        let (header, payload) = frame.split_at_checked(bits as usize / 8)?;
        let mut bits = header
            .iter()
            .flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1));
        let metadata = self.fields.iter().map(|field| {
            let value = (0..field.bits).fold(0, |value, _| {
                value << 1 | u128::from(bits.next().unwrap_or(0))
            });
            PacketMetadata {
                metadata_id: field.id,
                value: bytestring::encode(value),
            }
        });
        Some(PacketIn {
            metadata: metadata.collect(),
            payload: payload.to_vec(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Header {
        let field = |id, name: &str, bits| Field {
            id,
            name: name.to_owned(),
            bits,
        };
        Header {
            fields: vec![field(1, "port", 9), field(2, "pad", 7)],
        }
    }

    fn metadata(metadata_id: u32, value: &[u8]) -> PacketMetadata {
        PacketMetadata {
            metadata_id,
            value: value.to_vec(),
        }
    }

    #[test]
    fn a_packet_out_carries_its_header_in_front() {
        let message = PacketOut {
            payload: vec![0xaa],
            metadata: vec![metadata(1, &[1, 2])],
        };
        assert_eq!(header().encode(&message).unwrap(), [0x81, 0x00, 0xaa]);
    }

    #[test]
    fn a_packet_in_gives_its_header_back_as_metadata() {
        let message = header().decode(&[0x81, 0x00, 0xaa]).unwrap();
        assert_eq!(message.payload, [0xaa]);
        assert_eq!(message.metadata, [metadata(1, &[1, 2]), metadata(2, &[0])]);
        assert_eq!(header().decode(&[0x81]), None);
    }

    #[test]
    fn wrong_metadata_is_refused_by_name() {
        for (given, part) in [
            (metadata(1, &[2, 0]), "packet_out.port"),
            (metadata(7, &[1]), "no metadata 7"),
        ] {
            let message = PacketOut {
                payload: Vec::new(),
                metadata: vec![given],
            };
            let error = header().encode(&message).unwrap_err();
            assert!(error.message().contains(part), "{error}");
        }
    }
}
