# SPDX-License-Identifier: Apache-2.0
"""The report of an experiment: its content, and that a browser shows it."""

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import needs
import pytest
from experiment_driver import HEALTHY, conduct, install
from small_scenario import SMALL
from weft_scenarios.errors import ScenarioError
from weft_scenarios.report import html_report

COUNTS_IMAGES = """
<script>
onload = () => {
  const drawn = [...document.images].filter((i) => i.complete && i.naturalWidth > 0);
  document.title = `${drawn.length} of ${document.images.length} images`;
};
</script>
"""
FIGURES = 6
"""Figures of the small scenario: its plot, CDF, tails, size classes, heat map, queue."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the results of an experiment, with its report."""
    folder = tmp_path_factory.mktemp("page")
    # Two sizes of flows, and schedulers that differ.
    varied = HEALTHY.replace("4000000,2", '%d,2" % (3000000 + 1000000 * ("rb" in sys.argv)) + "')
    install(folder, varied.replace("h2_1,1000,1000000", "h2_1,20000,1000000"))
    status, said = conduct(folder, folder)
    assert status == 0, said
    html_report.write(folder / "out")
    return folder / "out"


class Seen(HTMLParser):
    """The content of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.sources: list[str] = []
        self.links: list[str] = []
        self.ids: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Record sources and links."""
        for name, value in attrs:
            {"src": self.sources, "href": self.links, "id": self.ids}.get(name, []).append(
                value or ""
            )

    def handle_data(self, data: str) -> None:
        """Record text."""
        self.text += data


@pytest.fixture(scope="module")
def seen(folder: Path) -> Seen:
    """Parse the report."""
    seen = Seen()
    seen.feed((folder / html_report.FILE).read_text())
    return seen


def test_the_page_loads_nothing_and_links_to_data_that_is_there(folder: Path, seen: Seen) -> None:
    assert len(seen.sources) == FIGURES
    assert all(source.startswith("data:image/svg+xml;base64,") for source in seen.sources)
    assert "flows.parquet" in seen.links
    assert all((folder / link).exists() for link in seen.links)


def test_the_page_has_claims_verdicts_parameters_and_versions(seen: Seen) -> None:
    assert "It is faster." in seen.text
    # All seeds of this fake give the same run.
    assert "not decided at 2 of 2 points" in seen.text
    assert "12 of 12 runs" in seen.text
    for parameter in ("one: --traffic", "incast", "one: seeds", "Linux 7", "polars"):
        assert parameter in seen.text
    assert {"one-cdf", "one-tails", "one-sizes", "one-heat", "one-queue_packets"} <= set(seen.ids)


def test_the_page_of_a_quick_or_full_set_has_its_parameters(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    full = '[experiment.full]\nseeds = 7\nseconds = 60.0\nflags = { traffic = "mixed" }\n'
    text = SMALL.replace("[experiment.quick]", f"{full}[experiment.quick]")
    (tmp_path / "scenario.toml").write_text(text)

    def rows(**extent: bool) -> str:
        about = json.loads((folder / "about.json").read_text()) | extent
        (tmp_path / "about.json").write_text(json.dumps(about))
        seen = Seen()
        seen.feed(html_report.write(tmp_path).read_text())
        return seen.text

    assert "one: --trafficincast" in rows()
    assert "one: Flows1, 16" in rows()
    whole = rows(full=True)
    assert "one: --trafficmixed" in whole
    assert "at the scale of the paper" in whole
    assert "one: Flows16" in rows(quick=True)


def test_every_figure_is_there_for_print_and_slides_too(folder: Path) -> None:
    assert len(list((folder / "report").glob("*.png"))) == FIGURES
    pdf = (folder / "report.pdf").read_bytes()
    assert pdf.startswith(b"%PDF")
    assert len(re.findall(rb"/Type /Page\b", pdf)) == FIGURES + 1


def test_a_browser_draws_every_figure(folder: Path, tmp_path: Path) -> None:
    needs.require("chromium")
    counted = tmp_path / "page.html"
    counted.write_text((folder / html_report.FILE).read_text() + COUNTS_IMAGES)
    command = [str(needs.chromium()), "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
    command += ["--no-first-run", "--disable-background-networking", "--disable-component-update"]
    command += ["--disable-sync", "--disable-quic", f"--user-data-dir={tmp_path / 'profile'}"]
    done = subprocess.run(
        [*command, counted.as_uri()], capture_output=True, text=True, timeout=120, cwd=tmp_path
    )
    assert f"<title>{FIGURES} of {FIGURES} images</title>" in done.stdout, done.stderr


def test_a_folder_without_results_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="no results of an experiment"):
        html_report.write(tmp_path)
