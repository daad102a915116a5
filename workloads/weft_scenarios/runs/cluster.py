# SPDX-License-Identifier: Apache-2.0
"""Runs labs on a Dask cluster, with Dask's own scheduler and workers.

`.venv/bin/dask worker ADDRESS --nthreads N` in a built checkout of Weft starts a worker that runs
N labs in parallel. Worker and experiment share no file system: a worker runs the lab in its own
folder, and sends the results back as an archive. If a worker is lost, Dask gives its run to
another one.
"""

import asyncio
import contextlib
import io
import shutil
import threading
import uuid
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import distributed
from distributed.scheduler import KilledWorker

from weft_scenarios.runs import inputs, installation
from weft_scenarios.errors import ScenarioError
from weft_scenarios.runs.installation import Installation
from weft_scenarios.runs.labs import Cost, LocalLabs, RunError
from weft_scenarios.runs.run import Run

_CONNECT_S = 10.0


@dataclass(frozen=True)
class Reply:
    """What a worker returns."""

    archive: bytes
    """`results/` and, if the run failed, `lab/`."""
    why: str = ""
    """Why the run failed, if it did."""
    said: str = ""
    """Its complete output then."""
    cost: Cost = field(default_factory=lambda: Cost(0.0))
    """What it cost the worker."""


class Cluster:
    """The workers of a Dask scheduler."""

    def __init__(self, client: Any, address: str, digest: str) -> None:
        """Use `connect`."""
        self._client = client
        self._address = address
        self._digest = digest
        self._token = uuid.uuid4().hex

    @classmethod
    async def connect(cls, address: str, installed: Installation) -> "Cluster":
        """Connect to the scheduler; refuse workers with another build of Weft."""
        try:
            client = await distributed.Client(address, asynchronous=True, timeout=_CONNECT_S)
        except (OSError, ValueError, TimeoutError) as error:
            raise ScenarioError(
                f"--cluster {address}: no Dask scheduler there ({error}); start one with "
                "`dask scheduler` and give the address it prints"
            ) from None
        try:
            digests = await client.run(_digest)
            if not digests:
                raise ScenarioError(
                    f"--cluster {address}: it has no workers; start some with "
                    f"`.venv/bin/dask worker {address}`"
                )
            for worker, found in digests.items():
                _require(found, installed.digest, worker)
        except ScenarioError:
            await client.close()
            raise
        return cls(client, address, installed.digest)

    def slots(self, waiting: int) -> int:
        """Give all runs to Dask, which knows the capacity of its workers."""
        return waiting

    async def do(self, run: Run, key: str, working: Path) -> Cost:
        """Run it on some worker and fetch its folder; gives its cost there."""
        future = self._client.submit(
            _on_worker,
            run,
            key,
            self._digest,
            self._token,
            key=f"weft-{key}-{self._token}",
            priority=run.seconds,
            pure=False,
        )
        try:
            reply: Reply = await future
        except KilledWorker:
            why = "the workers that did this run were killed, one after the other"
            raise RunError(why, f"{self._address}: {why}\n") from None
        except (distributed.CancelledError, OSError) as error:
            why = f"{self._address}: lost: {error}"
            raise RunError(why, f"{why}\n") from None
        finally:
            future.release()
        _unpack(reply.archive, working)
        if reply.why:
            raise RunError(reply.why, reply.said)
        return reply.cost

    async def close(self) -> None:
        """Stop labs whose results nobody needs any more."""
        # If the cluster is gone, so are its labs.
        with contextlib.suppress(OSError, TimeoutError):
            await asyncio.wait_for(self._client.run(_interrupt, self._token), _CONNECT_S)
        await self._client.close()


# Workers run what follows.

_running: dict[str, list[LocalLabs]] = {}
"""Labs of each experiment, by its token."""
_guard = threading.Lock()


def _digest() -> str:
    try:
        return installation.find().digest
    except ScenarioError as error:
        return f"none: {error}"


def _require(found: str, wanted: str, worker: str) -> None:
    if found.startswith("none: "):
        raise ScenarioError(f"worker {worker}: {found.removeprefix('none: ')}")
    if found != wanted:
        raise ScenarioError(
            f"worker {worker}: what is built there differs from what is built here; check out "
            "and build the same revision on both"
        )


def _interrupt(token: str) -> None:
    with _guard:
        labs = list(_running.get(token, ()))
    for lab in labs:
        lab.interrupt()


def _on_worker(run: Run, key: str, digest: str, token: str) -> Reply:
    worker = distributed.get_worker()
    folder = Path(worker.local_directory) / "weft"
    folder.mkdir(parents=True, exist_ok=True)
    working = folder / f"{key}-{uuid.uuid4().hex[:8]}"
    try:
        installed = installation.find()
        _require(installed.digest, digest, worker.address)
        if inputs.digests(run.flags) != run.inputs:
            raise ScenarioError(
                f"worker {worker.address}: the files that the run reads are not the same there as "
                "here; put them into the same folder on both"
            )
        labs = LocalLabs(installed, 1)
        with _guard:
            _running.setdefault(token, []).append(labs)
        try:
            cost = asyncio.run(labs.do(run, key, working))
        finally:
            with _guard:
                _running[token].remove(labs)
        return Reply(_pack(working), cost=cost)
    except ScenarioError as error:
        said = error.said if isinstance(error, RunError) else f"{error}\n"
        return Reply(_pack(working), str(error), f"on worker {worker.address}\n{said}")
    finally:
        for path in folder.glob(f"*{working.name}*"):
            shutil.rmtree(path, ignore_errors=True)


def _pack(working: Path) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for top, name in ((working, "results"), (_lab(working), "lab")):
            for path in top.rglob("*"):
                if path.is_file():  # Not a socket.
                    archive.write(path, Path(name) / path.relative_to(top))
    return buffer.getvalue()


def _unpack(packed: bytes, working: Path) -> None:
    box = working.with_name(f".{working.name}.received")
    try:
        with zipfile.ZipFile(io.BytesIO(packed)) as archive:
            archive.extractall(box)
        for name, target in (("results", working), ("lab", _lab(working))):
            if (box / name).exists():
                (box / name).rename(target)
    finally:
        shutil.rmtree(box, ignore_errors=True)


def _lab(working: Path) -> Path:
    """Give the folder where `weft run` keeps what the lab writes, beside its results."""
    return working.with_name(f".{working.name}.lab")
