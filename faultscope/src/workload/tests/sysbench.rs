//! sysbench of four generations.

use super::*;

const OLTP: &str = "\
sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)

Running the test with following options:
Number of threads: 4
Report intermediate results every 10 second(s)
Initializing random number generator from current time


Initializing worker threads...

Threads started!

[ 10s ] thds: 4 tps: 600.10 qps: 12002.00 (r/w/o: 8401.40/2400.40/1200.20) lat (ms,95%): 9.22 err/s: 0.00 reconn/s: 0.00
SQL statistics:
    queries performed:
        read:                            84000
        write:                           24000
        other:                           12000
        total:                           120000
    transactions:                        6000   (599.88 per sec.)
    queries:                             120000 (11997.60 per sec.)
    ignored errors:                      0      (0.00 per sec.)
    reconnects:                          0      (0.00 per sec.)

General statistics:
    total time:                          10.0012s
    total number of events:              6000

Latency (ms):
         min:                                    4.10
         avg:                                    6.66
         max:                                   31.07
         95th percentile:                        9.22
         sum:                                39958.11

Threads fairness:
    events (avg/stddev):           1500.0000/12.20
    execution time (avg/stddev):   9.9895/0.00

";

macro_rules! data {
    ($name:literal) => {
        include_str!(concat!(
            "../../../tests/data/workload/sysbench-1.0.20-",
            $name,
            ".txt"
        ))
    };
}

#[test]
fn oltp_of_1_0() {
    let oltp = found(OLTP);
    let all = [
        "transactions/s",
        "transactions",
        "queries/s",
        "queries",
        "latency min",
        "latency avg",
        "latency max",
        "latency p95",
        "total time",
    ];
    assert_eq!(names(&oltp.measurements[0]), all);
    let rate = only(&oltp, "transactions/s");
    assert_value(rate, 599.88);
    assert_eq!(
        (rate.unit.as_str(), rate.direction, rate.work),
        ("1/s", Some(Direction::Higher), None)
    );
    assert!((rate.resolution - 0.01).abs() < 1e-12);
    assert_eq!(rate.keys, [("threads".to_owned(), "4".to_owned())]);
    assert_value(only(&oltp, "queries/s"), 11997.6);
    assert_value(only(&oltp, "transactions"), 6000.0);
    let p95 = only(&oltp, "latency p95");
    assert_eq!(
        (p95.value.to_bits(), p95.unit.as_str(), p95.direction),
        (9.22_f64.to_bits(), "ms", Some(Direction::Lower))
    );
    // What ended the run is not said, so its length is no result.
    assert_eq!(only(&oltp, "total time").direction, None);
    assert_eq!(oltp.reasons, [] as [&str; 0]);
}

#[test]
fn mail_does_not_change_it() {
    let whole = found(OLTP);
    for damaged in by_mail(OLTP) {
        assert_eq!(
            found(&damaged).measurements,
            whole.measurements,
            "{damaged}"
        );
    }
}

#[test]
fn errors_make_a_run_no_result() {
    for (name, zero, some) in [
        (
            "ignored errors",
            "ignored errors:                      0 ",
            "ignored errors:                      6 ",
        ),
        (
            "reconnects",
            "reconnects:                          0 ",
            "reconnects:                          1 ",
        ),
    ] {
        let error = refusal(&OLTP.replace(zero, some));
        assert!(
            error.contains(name) && error.contains("a run with errors is no result"),
            "{error}"
        );
    }
    let (metrics, reasons) = results(
        &OLTP.replace("errors:                      0 ", "errors:   6 "),
        &[],
    );
    assert_eq!((metrics.len(), reasons.len()), (0, 1));
    assert!(
        refusal(&format!(
            "{OLTP}FATAL: `thread_run' function failed: oops\n"
        ))
        .contains("gave up")
    );
    let forced = OLTP.replace(
        "General",
        "Number of unfinished transactions on forced shutdown: 3\n\nGeneral",
    );
    assert!(refusal(&forced).contains("by force with 3 transactions unfinished"));
}

#[test]
fn a_report_that_is_cut_short_or_missing_is_refused() {
    let cut = |at: &str| &OLTP[..OLTP.find(at).expect("is in it")];
    assert!(refusal(cut("SQL statistics")).contains("its report is missing"));
    assert!(refusal(cut("General statistics")).contains("cut short"));
    assert!(refusal(cut("    total number of events")).contains("cut short"));
    assert!(refusal(cut("         max:")).contains("cut short"));
    // Latencies are missing then, and what is there is right.
    assert_eq!(found(cut("Latency (ms)")).measurements[0].metrics.len(), 5);
    let error = refusal(&OLTP.replace("6000   (599.88", "6000   (x"));
    assert!(error.contains("line 20: \"transactions\""), "{error}");
}

#[test]
fn prepare_has_no_result_and_is_no_fault() {
    let prepare = "sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)\n\nCreating table 'sbtest1'...\nInserting 1000 records into 'sbtest1'\n";
    assert_eq!(auto(prepare), Err(Refusal::NotThis(Format::Sysbench)));
    assert_eq!(results(prepare, &[]), (vec![], vec![]));
    assert_eq!(found(&format!("{prepare}{OLTP}")).measurements.len(), 1);
}

#[test]
fn runs_at_several_thread_counts_stand_apart_and_repeated_ones_are_repetitions() {
    let eight = OLTP.replace("threads: 4\n", "threads: 8\n");
    let (metrics, reasons) = results(&format!("{OLTP}{eight}"), &[]);
    assert_eq!((metrics.len(), reasons.len()), (18, 0));
    let all = runs(found(&format!("{OLTP}{eight}{OLTP}")).measurements);
    assert_eq!(
        all.iter().map(|r| r.metrics.len()).collect::<Vec<_>>(),
        [18, 9]
    );
    // Without the first lines nothing tells the reports apart.
    let bare = &OLTP[OLTP.find("SQL").expect("is in it")..];
    assert_eq!(found(bare).measurements.len(), 1);
    assert!(refusal(&format!("{bare}{bare}")).contains("2 reports follow each other"));
}

#[test]
fn checkpoints_leave_the_last_report_and_its_rates() {
    let cpu = found(data!("cpu-checkpoints"));
    // 1007 events in 3.0075 s are not 999.76 per second: the count starts anew at a checkpoint.
    assert_value(only(&cpu, "events/s"), 999.76);
    assert_value(only(&cpu, "latency p99"), 9.06);
    let [measurement] = cpu.measurements.as_slice() else {
        panic!("one result");
    };
    assert_eq!(
        names(measurement),
        [
            "events/s",
            "latency min",
            "latency avg",
            "latency max",
            "latency p99"
        ]
    );
    assert!(
        cpu.reasons[0].contains("since the last one"),
        "{:?}",
        cpu.reasons
    );
    let text = data!("cpu-checkpoints");
    let cut = &text[..text.find("Latency histogram").expect("is in it")];
    assert!(refusal(cut).contains("ends after a checkpoint"));
    // A test without a printed rate has none after a checkpoint.
    let threads = data!("threads").replace("General", "[ 1s ] Checkpoint report:\nGeneral");
    let twice = format!(
        "{threads}{}",
        &threads[threads.find("General").expect("is in it")..]
    );
    assert!(refusal(&twice).contains("do not belong together"));
}

#[test]
fn a_disabled_percentile_and_another_one() {
    let cpu = found(data!("cpu-nopct"));
    assert!(
        !cpu.measurements[0]
            .metrics
            .iter()
            .any(|m| m.name.starts_with("latency p"))
    );
    let many = OLTP.replace(
        "         95th percentile:                        9.22\n",
        "         99th percentile:                       27.17\n        999th percentile:                      816.63\n",
    );
    assert_value(only(&found(&many), "latency p999"), 816.63);
}

#[test]
fn memory_tells_what_was_kept_constant() {
    let fixed = found(data!("memory"));
    assert_value(only(&fixed, "operations/s"), 2_955_951.56);
    let moved = only(&fixed, "transferred");
    assert_value(moved, 2886.67);
    assert_eq!(
        (moved.unit.as_str(), moved.work),
        ("MiB/s", Some(Work::Fixed))
    );
    assert_eq!(only(&fixed, "total time").direction, Some(Direction::Lower));
    let setting = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert!(
        moved.keys.contains(&setting("block size", "1KiB"))
            && moved.keys.contains(&setting("operation", "write"))
    );
    let timed = found(data!("memory-timed"));
    assert_eq!(only(&timed, "transferred").work, Some(Work::Timed));
}

#[test]
fn tests_without_a_rate_have_events_by_time() {
    let threads = found(data!("threads"));
    let rate = only(&threads, "events/s");
    assert_value(rate, 1771.0 / 1.0020);
    assert!(
        rate.resolution > 0.1 && rate.resolution < 0.2,
        "{}",
        rate.resolution
    );
    assert_eq!(rate.work, None);
    // One event for each thread: all of its work.
    let mutex = found(data!("mutex"));
    assert_eq!(only(&mutex, "total time").direction, Some(Direction::Lower));
    assert_eq!(only(&mutex, "total time").work, Some(Work::Fixed));
    assert_value(only(&mutex, "total time"), 0.0439);
    // "Throughput:" of the file test is another one than that after 1.0.20.
    assert_value(
        only(&found(data!("fileio")), "events/s"),
        416_783.0 / 1.0001,
    );
}

#[test]
fn after_1_0_20() {
    let text = "\
sysbench 1.1.0-bbee5d5 (using bundled LuaJIT 2.1.0-beta3)

Running the test with following options:
Number of threads: 2

Threads started!

Throughput:
    events/s (eps):                      281.3040
    time elapsed:                        10.0000s
    total number of events:              2813

Latency (ms):
         avg:                                    7.11
         95th percentile:                        9.22
";
    let all = found(text);
    assert_value(only(&all, "events/s"), 281.304);
    assert!((only(&all, "events/s").resolution - 0.0001).abs() < 1e-12);
    assert_value(only(&all, "total time"), 10.0);
    let oltp = OLTP.replace(
        "General statistics:\n    total time:                          10.0012s",
        "Throughput:\n    events/s (eps):                      599.8800\n    time elapsed:                        10.0012s",
    );
    assert_eq!(found(&oltp).measurements, found(OLTP).measurements);
}

#[test]
fn oltp_of_0_5() {
    let text = "\
sysbench 0.5:  multi-threaded system evaluation benchmark

Running the test with following options:
Number of threads: 16

Threads started!

[  10s] threads: 16, tps: 6480.50, reads: 90725.46, writes: 0.00, response time: 3.05ms (95%), errors: 0.00, reconnects:  0.00
OLTP test statistics:
    queries performed:
        read:                            5413576
        write:                           0
        other:                           773368
        total:                           6186944
    transactions:                        386684 (6338.86 per sec.)
    read/write requests:                 5413576 (88744.10 per sec.)
    other operations:                    773368 (12677.73 per sec.)
    ignored errors:                      0      (0.00 per sec.)
    reconnects:                          0      (0.00 per sec.)

General statistics:
    total time:                          61.0021s
    total number of events:              386684
    total time taken by event execution: 975.4663s
    response time:
         min:                                  1.90ms
         avg:                                  2.52ms
         max:                                 53.33ms
         approx.  95 percentile:               3.22ms

Threads fairness:
    events (avg/stddev):           24167.7500/904.94
";
    let oltp = found(text);
    assert_value(only(&oltp, "transactions/s"), 6338.86);
    assert_value(only(&oltp, "latency p95"), 3.22);
    assert_value(only(&oltp, "total time"), 61.0021);
    assert!(
        refusal(&text.replace(
            "ignored errors:                      0",
            "ignored errors:  2"
        ))
        .contains("errors")
    );
}

#[test]
fn oltp_and_others_of_0_4() {
    let text = "\
sysbench 0.4.12:  multi-threaded system evaluation benchmark

Running the test with following options:
Number of threads: 8

Doing OLTP test.
Running mixed OLTP test
Maximum number of requests for OLTP test is limited to 10000
Threads started!
Done.

OLTP test statistics:
    queries performed:
        read:                            140000
        write:                           50000
        other:                           20000
        total:                           210000
    transactions:                        10000  (250.27 per sec.)
    deadlocks:                           0      (0.00 per sec.)
    read/write requests:                 190000 (4755.13 per sec.)
    other operations:                    20000  (500.54 per sec.)

Test execution summary:
    total time:                          39.9581s
    total number of events:              10000
    total time taken by event execution: 319.5133
    per-request statistics:
         min:                                  4.10ms
         avg:                                  6.66ms
         max:                                 31.07ms
         approx.  95 percentile:               9.22ms

Threads fairness:
    events (avg/stddev):           1250.0000/2.00
    execution time (avg/stddev):   39.9392/0.01
";
    let oltp = found(text);
    assert_value(only(&oltp, "transactions/s"), 250.27);
    assert_value(only(&oltp, "latency avg"), 6.66);
    assert_eq!(only(&oltp, "transactions/s").work, Some(Work::Fixed));
    assert_eq!(only(&oltp, "total time").direction, Some(Direction::Lower));
    assert!(
        refusal(&text.replace("deadlocks:                           0", "deadlocks:  7"))
            .contains("deadlocks: 7")
    );
    let timed = found(&text.replace("Maximum number of requests for OLTP test is limited to 10000\n", "").replace(
        "Threads started!\n",
        "Threads started!\nTime limit exceeded, exiting...\n(last message repeated 7 times)\n",
    ));
    assert_eq!(only(&timed, "transactions/s").work, Some(Work::Timed));
    let memory = "\
sysbench 0.4.12:  multi-threaded system evaluation benchmark

Running the test with following options:
Number of threads: 1

Threads started!
Done.

Operations performed: 1048576 (1234567.89 ops/sec)

1024.00 MB transferred (1205.63 MB/sec)

Test execution summary:
    total time:                          0.8494s
    total number of events:              1048576
";
    let memory = found(memory);
    assert_value(only(&memory, "operations/s"), 1_234_567.89);
    assert_eq!(only(&memory, "transferred").unit, "MB/s");
    let files = "\
sysbench 0.4.12:  multi-threaded system evaluation benchmark

Number of threads: 1
Threads started!
Operations performed:  6000 Read, 4000 Write, 12800 Other = 22800 Total
Test execution summary:
    total time:                          2.0000s
    total number of events:              10000
";
    assert_value(only(&found(files), "events/s"), 5000.0);
}

#[test]
fn the_command_line_tells_what_ended_the_run() {
    let settle = |line: &str, text: &str| {
        let argv: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let (mut metrics, _) = results(text, &[]);
        settle_work(&argv, &mut metrics);
        let named = |name: &str| {
            metrics
                .iter()
                .find(|m| m.name == name)
                .expect("is there")
                .clone()
        };
        (named("transactions/s").work, named("total time").direction)
    };
    for (line, work) in [
        ("sysbench oltp_read_write --time=10 run", Some(Work::Timed)),
        (
            "/usr/bin/sysbench oltp_read_write --time=10 --events=0 run",
            Some(Work::Timed),
        ),
        (
            "sysbench --max-time=60 --max-requests=0 run",
            Some(Work::Timed),
        ),
        (
            "sysbench oltp_read_write --time=0 --events=6000 run",
            Some(Work::Fixed),
        ),
        (
            "sysbench oltp_read_write --time=60 --events=6000 run",
            Some(Work::Fixed),
        ),
        (
            "sysbench oltp_read_write --time=10 --events=9000 run",
            Some(Work::Timed),
        ),
        (
            "sysbench --time=10 --time=0 --events=6000 run",
            Some(Work::Fixed),
        ),
        ("sysbench oltp_read_write run", None),
        ("sysbench --time=0 run", None),
        ("sh -c sysbench --time=10 run", None),
        ("", None),
    ] {
        let (found, direction) = settle(line, OLTP);
        assert_eq!(found, work, "{line}");
        assert_eq!(
            direction,
            (work == Some(Work::Fixed)).then_some(Direction::Lower),
            "{line}"
        );
    }
}

#[test]
fn a_time_that_gives_no_finite_rate_is_refused() {
    let text = include_str!("../../../tests/data/workload/sysbench-1.0.20-threads.txt");
    let line = text
        .lines()
        .find(|l| l.contains("total time:"))
        .expect("a report");
    let error = refusal(&text.replace(line, "    total time:                          1e-307s"));
    assert!(error.contains("too short for a rate"), "{error}");
}
