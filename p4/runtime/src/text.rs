// SPDX-License-Identifier: Apache-2.0

//! P4Info in protobuf's text format, as p4c writes it.

use prost_reflect::{DescriptorPool, DynamicMessage};

use crate::p4::config::v1::P4Info;

/// The descriptors that `build.rs` generated this crate from.
static DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/p4runtime.bin"));

/// Why a text is not a P4Info.
#[derive(Debug, thiserror::Error)]
pub enum TextError {
    /// It does not follow the text format, or names an unknown field.
    #[error("not a P4Info in text format: {0}")]
    Parse(String),
    /// The crate's own descriptors and messages disagree; a defect of the build.
    #[error("P4Info descriptors do not match the generated messages: {0}")]
    Descriptors(String),
}

/// Parses `text`, the contents of a `.p4info.txtpb` file.
///
/// # Errors
/// See [`TextError`]; its text names line and column.
pub fn p4info_from_text(text: &str) -> Result<P4Info, TextError> {
    let descriptors = |error: &dyn std::fmt::Display| TextError::Descriptors(error.to_string());
    let pool = DescriptorPool::decode(DESCRIPTORS).map_err(|error| descriptors(&error))?;
    let message = pool
        .get_message_by_name("p4.config.v1.P4Info")
        .ok_or_else(|| descriptors(&"no p4.config.v1.P4Info"))?;
    DynamicMessage::parse_text_format(message, text)
        .map_err(|error| TextError::Parse(error.to_string()))?
        .transcode_to()
        .map_err(|error| descriptors(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_p4c_writes_is_read() {
        let info = p4info_from_text(
            r#"
            pkg_info { arch: "v1model" }
            tables {
              preamble { id: 37375156 name: "routing.ipv4_lpm" alias: "ipv4_lpm" }
              match_fields { id: 1 name: "dst_addr" bitwidth: 32 match_type: LPM }
              size: 1024
            }
            "#,
        )
        .unwrap();
        assert_eq!(info.pkg_info.unwrap().arch, "v1model");
        let table = &info.tables[0];
        assert_eq!(table.preamble.as_ref().unwrap().name, "routing.ipv4_lpm");
        assert_eq!(table.match_fields[0].bitwidth, 32);
    }

    #[test]
    fn an_unknown_field_is_refused_by_name() {
        let error = p4info_from_text("tables { colour: 3 }").unwrap_err();
        assert!(error.to_string().contains("colour"), "{error}");
    }
}
