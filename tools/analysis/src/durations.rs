// SPDX-License-Identifier: GPL-2.0

//! Figures of many durations, in memory that does not grow with their number.

use super::text::or_dash;
use ctf::EventLayout;
use hdrhistogram::Histogram;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::ser::{Serialize, SerializeStruct, Serializer};
use std::borrow::Cow;

/// Number of decimal digits of a percentile that are correct.
const DIGITS: u8 = 3;

/// Maximum share of its value by which a percentile is too large.
pub const PERCENTILE_ERROR: f64 = 0.001;

/// Number of correct decimal digits of a percentile of [`Durations::coarse`].
const COARSE_DIGITS: u8 = 1;
/// Maximum share of its value by which a percentile of [`Durations::coarse`] is too large.
pub const COARSE_ERROR: f64 = 0.1;

/// Headings of [`Durations::columns`].
pub const HEADINGS: &str = "    average        50%        95%        99%        max";

/// Returns the line that tells the maximum error of a table's percentiles.
pub fn accuracy(percentile_error: f64) -> String {
    format!(
        "Percentiles are at most {}% too large.",
        percentile_error * 100.0
    )
}

/// Durations in nanoseconds. Their number, sum and maximum are exact. Percentiles are too large by at most
/// [`PERCENTILE_ERROR`], or [`COARSE_ERROR`] if coarse.
#[derive(Clone, Debug)]
pub struct Durations {
    histogram: Histogram<u64>,
    total_ns: u64,
    max_ns: u64,
}

impl Default for Durations {
    fn default() -> Self {
        Self::new()
    }
}

impl Durations {
    /// Creates an empty set.
    pub fn new() -> Self {
        Self::with_digits(DIGITS)
    }

    /// Creates an empty set that needs only some kilobytes, for use in thousands of instances.
    pub fn coarse() -> Self {
        Self::with_digits(COARSE_DIGITS)
    }

    fn with_digits(digits: u8) -> Self {
        Self {
            histogram: Histogram::new(digits).expect("1 to 5 digits"),
            total_ns: 0,
            max_ns: 0,
        }
    }

    /// Adds a duration.
    pub fn add(&mut self, nanoseconds: u64) {
        self.histogram += nanoseconds;
        self.total_ns = self.total_ns.saturating_add(nanoseconds);
        self.max_ns = self.max_ns.max(nanoseconds);
    }

    /// Returns the number of durations.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// Returns the sum.
    pub fn total_ns(&self) -> u64 {
        self.total_ns
    }

    /// Returns the maximum; 0 if there are no durations.
    pub fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// Returns the average; 0 if there are no durations.
    pub fn average_ns(&self) -> u64 {
        self.total_ns.checked_div(self.count()).unwrap_or(0)
    }

    /// Returns the value that `percent` of the durations do not exceed; 0 if there are no durations.
    pub fn percentile_ns(&self, percent: f64) -> u64 {
        let value = self.histogram.value_at_percentile(percent);
        value.min(self.max_ns)
    }

    /// Returns average, percentiles and maximum as columns of a table, each after a space.
    pub fn columns(&self) -> String {
        [
            self.average_ns(),
            self.percentile_ns(50.0),
            self.percentile_ns(95.0),
            self.percentile_ns(99.0),
            self.max_ns,
        ]
        .map(|time| format!(" {:>10}", known(time, self.count())))
        .concat()
    }
}

/// Returns the field with the duration of the call whose return the event is: a probe by `-k 'f -> ret'`
/// records it.
pub fn call_duration(layout: &EventLayout) -> Option<usize> {
    layout.field("duration_ns")
}

/// Formats a duration. Returns a dash if `timed`, the number of timed calls, is 0.
pub fn known(nanoseconds: u64, timed: u64) -> String {
    or_dash((timed > 0).then_some(nanoseconds))
}

/// Fields of [`Durations`] in JSON.
#[derive(JsonSchema)]
#[schemars(rename = "Durations")]
#[expect(
    dead_code,
    reason = "the fields only describe what durations serialise to"
)]
struct Fields {
    /// Number of durations.
    timed: u64,
    /// Sum.
    total_ns: u64,
    average_ns: u64,
    p50_ns: u64,
    p95_ns: u64,
    p99_ns: u64,
    max_ns: u64,
}

impl JsonSchema for Durations {
    fn schema_name() -> Cow<'static, str> {
        Fields::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Fields::json_schema(generator)
    }
}

impl Serialize for Durations {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Durations", 7)?;
        fields.serialize_field("timed", &self.count())?;
        fields.serialize_field("total_ns", &self.total_ns)?;
        fields.serialize_field("average_ns", &self.average_ns())?;
        fields.serialize_field("p50_ns", &self.percentile_ns(50.0))?;
        fields.serialize_field("p95_ns", &self.percentile_ns(95.0))?;
        fields.serialize_field("p99_ns", &self.percentile_ns(99.0))?;
        fields.serialize_field("max_ns", &self.max_ns)?;
        fields.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with the percentiles of the sorted list.
    #[test]
    fn percentiles_are_as_near_as_promised() {
        near(Durations::new(), PERCENTILE_ERROR);
        near(Durations::coarse(), COARSE_ERROR);
    }

    fn near(mut durations: Durations, error: f64) {
        let mut values: Vec<u64> = (0..20_000_u64).map(|n| n * n * n % 7_000_000_003).collect();
        values.iter().for_each(|&value| durations.add(value));
        values.sort_unstable();
        for percent in [0.01, 1.0, 50.0, 95.0, 99.0, 99.99, 100.0] {
            let rank = (values.len() as f64 * percent / 100.0).ceil() as usize;
            let exact = values[rank - 1];
            let found = durations.percentile_ns(percent);
            let most = exact as f64 * (1.0 + error);
            assert!(exact <= found && found as f64 <= most, "{percent}: {found}");
        }
        assert_eq!(durations.total_ns(), values.iter().sum::<u64>());
        assert_eq!(durations.max_ns(), *values.last().unwrap());
        assert_eq!(durations.percentile_ns(100.0), durations.max_ns());
    }

    #[test]
    fn any_duration_is_taken() {
        let mut durations = Durations::new();
        assert_eq!(
            (durations.average_ns(), durations.percentile_ns(50.0)),
            (0, 0)
        );
        for value in [0, u64::MAX, u64::MAX] {
            durations.add(value);
        }
        assert_eq!(durations.count(), 3);
        assert_eq!(durations.max_ns(), u64::MAX);
        assert_eq!(durations.percentile_ns(10.0), 0);
    }
}
