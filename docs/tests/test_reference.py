# SPDX-License-Identifier: Apache-2.0
"""Pages of reference say what their sources say, and miss nothing."""

from pathlib import Path

import pytest
from weft_docs import api, files, flags, netlink
from weft_docs.errors import DocsError

HELP = """\
Run flows

Usage: weft run [OPTIONS] --out <DIR>

Commands:
  up    Boot
  help  Print this

Options:
      --out <DIR>
          Where to write

  -h, --help
          Print help

Traffic:
      --traffic <PATTERN>
          Who sends to whom

          Possible values:
          - random: Between all hosts
          - incast: To one

          [default: random]
      --seed <SEED>  Seed [default: 1]
"""


def test_both_layouts_of_a_help_are_read() -> None:
    told = flags.parse(HELP)
    assert told.usage == ["weft run [OPTIONS] --out <DIR>"]
    assert told.commands == {"up": "Boot", "help": "Print this"}
    assert [item.name for item in told.sections["Options"]] == ["--out <DIR>", "-h, --help"]
    pattern, seed = told.sections["Traffic"]
    assert pattern.lines[0] == "Who sends to whom"
    assert "- incast: To one" in pattern.lines
    assert (seed.name, seed.lines) == ("--seed <SEED>", ["Seed [default: 1]"])


def test_calls_and_messages_of_the_api_are_listed(tmp_path: Path) -> None:
    source = tmp_path / "x.proto"
    source.write_text(
        "package x.v1;\n\n// Of it.\nservice X {\n  // Looks.\n"
        "  rpc Look(LookRequest) returns (stream Seen);\n}\n\n"
        "message LookRequest {}\n// What was seen.\nmessage Seen { uint32 what = 1; }\n"
    )
    page = api.page(source)
    assert "| `Look` | `LookRequest` | stream of `Seen` | Looks. |" in page
    assert "// What was seen.\nmessage Seen {\n  uint32 what = 1;\n}" in page


HEADER = """\
/*
 * Family.
 *
 * Generated from x.yaml.
 */
/**
 * enum weft_x - all
 * @X_A: the first,
 *	so far
 * @X_B: last
 */
enum weft_x {
	X_A = 1,
	X_PAD,
	/* private: */
	X_B = 7,
	__X_MAX,
};
"""


def test_values_of_enums_have_their_numbers_and_comments(tmp_path: Path) -> None:
    source = tmp_path / "x.h"
    source.write_text(HEADER)
    page = netlink.page(source)
    assert "| 1 | `X_A` | the first, so far |" in page
    assert "| 7 | `X_B` | last |" in page
    assert "X_PAD" not in page
    assert "Generated" not in page


ROW = """\
/// A row.
#[derive(Serialize)]
pub struct Row {
    /// Number,
    /// from 0.
    pub flow: usize,
    /// Loss.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<u32>,
    /// The rest.
    #[serde(flatten)]
    pub more: More,
}

/// More.
#[derive(Serialize)]
pub struct More {
    /// Scale.
    pub scale: f64,
}
"""


def test_columns_are_the_documented_fields_of_a_row() -> None:
    about, rows = files.fields([ROW], "Row")
    assert about == "A row."
    assert rows == [
        ["`flow`", "Number, from 0."],
        ["`loss`", "Loss. Left out where there is none."],
        ["`scale`", "Scale."],
    ]


def test_a_struct_that_is_gone_is_an_error() -> None:
    with pytest.raises(DocsError, match="0 structs Gone"):
        files.fields([ROW], "Gone")


def test_a_column_that_is_not_explained_is_an_error() -> None:
    sources = ['const COLUMNS: [&str; 2] = ["time_ns", "new"];']
    with pytest.raises(DocsError, match="new"):
        files.columns(sources, r"const COLUMNS: [^=]*= \[(.*?)\];", {"time_ns": "when"})
