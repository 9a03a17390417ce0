//! The old tables, as `import` makes runs of them.

use super::*;

/// Runs of a text; of one column, if it is a table of several.
pub(super) fn imported(text: &str, variant: Option<&str>, defaults: &Defaults) -> Vec<Observed> {
    let found = workload::parse(text, defaults).expect("the text is read");
    let unknown = |id: &str, value: Option<String>| RunFact {
        id: id.to_owned(),
        value: value.ok_or_else(|| "the imported text does not tell".to_owned()),
    };
    workload::runs(found.measurements)
        .into_iter()
        .filter(|set| variant.is_none() || set.variant.as_deref() == variant)
        .enumerate()
        .map(|(i, set)| Observed {
            file: format!("{}-{i}", variant.unwrap_or("text")),
            run: Run {
                id: format!("{}-{i}-{}", variant.unwrap_or_default(), text.len()),
                host: set.host.clone().unwrap_or_default(),
                facts: vec![unknown("host_id", set.host)],
                ..Run::default()
            },
            metrics: set.metrics,
            ..Observed::default()
        })
        .collect()
}

#[test]
fn spreads_of_mmtests_are_no_rates() {
    let table = include_str!("../../../tests/data/workload/mmtests-pft.txt");
    let defaults = Defaults::default();
    let sides = ["5.0.0-rc1-vanilla", "5.0.0-rc1-patched"]
        .map(|kernel| imported(table, Some(kernel), &defaults));
    let found = report(sides, Options::default());
    let primary = |role| {
        let rows = found.rows.iter().filter(move |r| r.role == role);
        rows.map(|r| r.cell.as_str()).collect::<Vec<_>>()
    };
    // Two means of one figure are not two measurements.
    assert_eq!(primary(Role::Primary), ["statistic Hmean, clients 4"]);
    for statistic in ["BHmean-95", "Stddev"] {
        assert!(primary(Role::Context).iter().any(|c| c.contains(statistic)));
    }
    assert_eq!(found.sweep, None);
    let change = found.rows[0].comparison.shift.percent().expect("a ratio");
    assert!((change - 4.5).abs() < 0.05, "{change}");
    assert_eq!(found.rows[0].verdict, Some(Verdict::Inconclusive));
    let shown = text(&found);
    assert!(
        words(&shown).contains("figures of mmtests are means, and of how many runs is not printed"),
        "{shown}"
    );
    // In the same style the same statistics of the same figures, and read back the same.
    let again = written(&found, Layout::Mmtests);
    for part in [
        "means of a number of runs that is not known",
        "BHmean-95 faults/sec-4 ",
        "Stddev    faults/sec-4 ",
        "Min       faults/cpu-1 ",
    ] {
        assert!(again.contains(part), "{part} in\n{again}");
    }
    let figures = |text: &str| {
        let read = workload::parse(text, &Defaults::default()).expect("it is read");
        let all = read.measurements.into_iter().flat_map(|m| m.metrics);
        let mut figures: Vec<_> = all
            .map(|m| (m.name, m.keys, m.direction, format!("{:.4}", m.value)))
            .collect();
        figures.sort_by(|a, b| (&a.0, &a.1, &a.3).cmp(&(&b.0, &b.1, &b.3)));
        figures
    };
    assert_eq!(figures(&again), figures(table));
    // The spreads of a figure do not keep its mean from being judged.
    let gated = report(
        ["5.0.0-rc1-vanilla", "5.0.0-rc1-patched"]
            .map(|kernel| imported(table, Some(kernel), &defaults)),
        gate("faults/sec", 5.0),
    );
    assert_eq!(gated.outcome(false), Outcome::Fine);
}

#[test]
fn the_page_fault_tables_of_2004_cross_over() {
    let sloppy = include_str!("../../../tests/data/workload/pft-2004-sloppy.txt");
    let tasklist = include_str!("../../../tests/data/workload/pft-2004-tasklist.txt");
    let defaults = Defaults::default();
    let found = report(
        [
            imported(sloppy, None, &defaults),
            imported(tasklist, None, &defaults),
        ],
        Options::default(),
    );
    let sweep = found.sweep.as_ref().expect("many configurations");
    let mean = sweep.geomean.as_ref().expect("all above 0");
    assert_eq!(sweep.metric, "fault/wsec");
    assert_eq!(
        (
            mean.cells,
            sweep.one_sided[0].len(),
            sweep.one_sided[1].len()
        ),
        (64, 0, 2)
    );
    assert_eq!(
        format!("{:.4} {:.2} {:.2}", mean.ratio, mean.worst.1, mean.best.1),
        "1.0043 0.83 1.19"
    );
    let at = |n| {
        let found = sweep.by_count.iter().find(|at| at.count == n);
        found.expect("measured").ratio
    };
    assert!((at(16) - 0.953).abs() < 5e-4, "{}", at(16));
    for n in [32, 64, 128, 256, 512] {
        assert!((1.005..1.065).contains(&at(n)), "{n}: {}", at(n));
    }
    assert_eq!(sweep.crossovers, [(32, true)]);
    let cells: Vec<&str> = found
        .rows
        .iter()
        .filter(|r| r.role == Role::Primary)
        .map(|r| r.cell.as_str())
        .collect();
    assert_eq!(cells[..2], ["gib 1, threads 1", "gib 1, threads 2"]);
    assert!(
        cells.is_sorted_by(|a, b| cell::order(a, b).is_lt()),
        "{cells:?}"
    );
    assert_eq!(
        sweep.one_sided[1],
        ["gib 128, threads 4", "gib 256, threads 4"]
    );
    let shown = text(&found);
    for part in [
        "no single verdict",
        "ahead from 32 threads on",
        "hosts unknown",
        "1.0043",
        "repetitions: 10 -> 3",
    ] {
        assert!(shown.contains(part), "{part} in\n{shown}");
    }
    assert!(
        found
            .rows
            .iter()
            .all(|r| r.verdict != Some(Verdict::Improved) && r.verdict != Some(Verdict::Regressed))
    );
    assert_eq!(found.outcome(true), Outcome::Inconclusive);
}

#[test]
fn the_madvise_table_of_2007_has_one_run() {
    let table = include_str!("../../../tests/data/workload/sysbench-madvise-2007.tsv");
    let defaults = Defaults {
        name: Some("transactions/s".to_owned()),
        unit: Some("1/s".to_owned()),
        direction: Some(workload::Direction::Higher),
    };
    let side = |variant| imported(table, Some(variant), &defaults);
    let found = report(
        [side("vanilla"), side("madv_free_mmap_sem")],
        Options::default(),
    );
    let sweep = found.sweep.as_ref().expect("five thread counts");
    assert_eq!(sweep.gains_from, Some(2));
    let efficiency = &sweep.curves[0].efficiency;
    let shown: Vec<String> = efficiency
        .iter()
        .map(|(n, [a, b])| format!("{n}: {a:.2} {b:.2}"))
        .collect();
    assert_eq!(shown[2], "4: 0.44 0.93");
    assert_eq!(shown[4], "16: 0.08 0.23");
    assert!(
        found
            .rows
            .iter()
            .all(|r| r.verdict == Some(Verdict::Inconclusive))
    );
    let shown = text(&found);
    assert!(
        shown.contains("1 run per side: no noise estimate"),
        "{shown}"
    );
    assert!(
        shown.contains("the gain in transactions/s starts at 2 threads"),
        "{shown}"
    );
    let close = report(
        [side("madv_free"), side("madv_free_mmap_sem")],
        Options::default(),
    );
    assert_eq!(close.sweep.as_ref().and_then(|s| s.gains_from), Some(8));
}

#[test]
fn the_kernel_builds_of_2004_were_idle_on_two_hosts() {
    let table = include_str!("../../../tests/data/workload/kernbench-mark-accessed-2004.tsv");
    let side = |text: &str, variant| imported(text, Some(variant), &Defaults::default());
    let refused = report(
        [side(table, "vanilla"), side(table, "batched")],
        Options::default(),
    );
    assert_eq!(refused.outcome(false), Outcome::NotComparable);
    let shown = text(&refused);
    assert!(
        shown.contains("stp8-003 -> stp8-002") && shown.contains("--vary host"),
        "{shown}"
    );
    let vary = Options {
        vary: vec!["host".to_owned()],
        ..Options::default()
    };
    let found = report([side(table, "vanilla"), side(table, "batched")], vary);
    let shown = text(&found);
    for part in [
        "elapsed time +12.2 %, but CPU time did not follow (user +0.2 %, system +0.4 %)",
        "different hosts (stp8-003 and stp8-002)",
    ] {
        let joined = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(joined.contains(part), "{part} in\n{shown}");
    }
    // Said before any percentage.
    let at = |part: &str| shown.find(part).expect("it is said");
    assert!(at("host DIFFERENT") < at("+12.2"));
    let bare: String = table.lines().skip(1).map(|l| format!("{l}\n")).collect();
    let found = report(
        [side(&bare, "vanilla"), side(&bare, "batched")],
        Options::default(),
    );
    assert!(text(&found).contains("hosts unknown"));
}
