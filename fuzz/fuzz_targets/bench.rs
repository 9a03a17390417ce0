//! The reader of bench results: total, and only finite figures.
#![no_main]

use faultscope::workload::{Defaults, Format, parse_as};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(found) = parse_as(text, Format::Bench, &Defaults::default()) {
        for metric in found.measurements.iter().flat_map(|m| &m.metrics) {
            assert!(metric.value.is_finite() && metric.resolution.is_finite());
        }
    }
});
