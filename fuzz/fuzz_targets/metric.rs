//! `--metric`: the first line is the rule, the rest the output.
#![no_main]

use faultscope::workload::MetricRule;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let (rule, output) = text.split_once('\n').unwrap_or((text, ""));
    if let Ok(rule) = rule.parse::<MetricRule>()
        && let Ok(metric) = rule.apply(output)
    {
        assert!(metric.value.is_finite() && metric.name == rule.name());
    }
});
