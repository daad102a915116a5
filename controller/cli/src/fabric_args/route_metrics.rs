//! What TCP of all hosts is told, as metrics of their routes: `--initial-window 2`.

use std::collections::BTreeMap;

use clap::Args;

/// The metrics, as flags. What each is to the kernel stands in
/// `topology/weft_topology/route_metrics.py`, by the names that [`Self::by_name`] gives.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Fabric")]
pub struct RouteMetricArgs {
    /// Initial window of every subflow, in packets (RFC 6928) [default: the kernel's, 10]
    #[arg(long, value_name = "PACKETS", value_parser = clap::value_parser!(u32).range(1..=1000))]
    initial_window: Option<u32>,
}

impl RouteMetricArgs {
    /// Those that were given.
    pub fn by_name(&self) -> BTreeMap<String, u32> {
        let metrics = [("initial_window", self.initial_window)];
        let given = metrics.into_iter();
        given
            .filter_map(|(name, value)| Some((name.to_owned(), value?)))
            .collect()
    }
}
