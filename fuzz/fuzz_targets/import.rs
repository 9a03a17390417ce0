//! Any text as `import` takes it: the format is found, and nothing is lost on the way to runs.
#![no_main]

use faultscope::workload::{Defaults, parse, results, runs};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(found) = parse(text, &Defaults::default()) {
        let count: usize = found.measurements.iter().map(|m| m.metrics.len()).sum();
        let runs = runs(found.measurements);
        assert!(count > 0 && runs.iter().map(|r| r.metrics.len()).sum::<usize>() == count);
    }
    let _ = results(text, &[]);
});
