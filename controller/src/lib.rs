//! P4Runtime client, telemetry, pattern engine, query API, and the CLI weft
