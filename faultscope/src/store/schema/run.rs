//! Tables of the run: what is said once.

use super::{Column, Table, columns};

const POSITION: &[Column] = columns! {
    Int "position" "its place, from 0";
};

pub(super) const TABLES: &[Table] = &[
    Table {
        name: "run",
        doc: "The run; one row.",
        key: 1,
        place: 1,
        groups: &[
            POSITION,
            columns! {
                Text "id" "identity, drawn at the start";
                Text "tool_version" "version of faultscope that recorded it";
                Text "host" "node name";
                Text "kernel" "kernel release";
                Text "mglru" "state of multi-generational LRU at the start";
                Int "start_real_ns" "first reading, ns since the Unix epoch";
                Int "start_mono_ns" "first reading on the monotonic clock, ns";
                Int "interval_ns" "interval asked for, ns";
                Text "filter" "filters in force, as the user wrote them";
                OptText "series" "identity that runs made together share, NULL if it is none of several";
                OptInt "round" "number of its round, from 1";
                OptText "side" "A or B of alternating runs, empty for repeated ones";
            },
        ],
    },
    Table {
        name: "run_end",
        doc: "How the run ended; no row if the recorder was killed or still runs.",
        key: 1,
        place: 1,
        groups: &[
            POSITION,
            columns! {
                Int "mono_ns" "last reading on the monotonic clock, ns";
                Text "reason" "why it ended, a clause";
            },
        ],
    },
    Table {
        name: "label",
        doc: "What the user said of the run with --label.",
        key: 1,
        place: 1,
        groups: &[
            POSITION,
            columns! { Text "name" "key"; Text "value" "value"; },
        ],
    },
    Table {
        name: "fact",
        doc: "A fact about the host and its kernel at the start.",
        key: 1,
        place: 1,
        groups: &[
            POSITION,
            columns! {
                Text "id" "catalogue id";
                Int "is_known" "1 if known";
                Text "value" "its value in words, or why it is not known";
            },
        ],
    },
    Table {
        name: "kernel_config",
        doc: "A build option of the kernel.",
        key: 1,
        place: 1,
        groups: &[
            POSITION,
            columns! { Text "name" "option"; Text "value" "value"; },
        ],
    },
    Table {
        name: "probe",
        doc: "A program of the catalogue and what became of it at the start.",
        key: 1,
        place: 1,
        groups: &[
            POSITION,
            columns! {
                Text "program" "the program";
                Text "signal" "its signal";
                Int "is_attached" "1 if attached";
                Text "place" "its hook, or why it is not attached";
                OptText "substitutes" "program of the first choice whose place it took";
            },
        ],
    },
    Table {
        name: "loss_kind",
        doc: "A way to lose events.",
        key: 1,
        place: 1,
        groups: &[
            POSITION,
            columns! { Text "id" "catalogue id"; Text "description" "what is lost, a sentence"; },
        ],
    },
    Table {
        name: "part",
        doc: "The name of a number in `budget_part.part`; for queries, readers do not need it.",
        key: 1,
        place: 1,
        groups: &[
            POSITION,
            columns! { Text "name" "what the kernel was doing"; },
        ],
    },
    Table {
        name: "workload",
        doc: "The command that was recorded; no row if there is none.",
        key: 1,
        place: 1,
        groups: &[
            POSITION,
            columns! {
                Text "directory" "working directory";
                Int "tgid" "process id";
                Int "start_mono_ns" "start on the monotonic clock, ns";
                Text "output" "what it wrote to standard output and standard error, as far as kept";
                Int "dropped_bytes" "bytes of output left out in the middle";
                OptInt "end_mono_ns" "end on the monotonic clock, ns; NULL if it was not seen";
                OptInt "code" "exit status, if it exited";
                OptInt "signal" "signal that ended it, if one did";
                Int "user_ns" "user CPU time of it and its waited-for descendants, ns";
                Int "system_ns" "system CPU time, ns";
                Int "max_rss_bytes" "peak resident memory, bytes";
                Int "minor_faults" "minor faults by getrusage(2)";
                Int "major_faults" "major faults by getrusage(2)";
                Int "voluntary_switches" "voluntary context switches";
                Int "involuntary_switches" "involuntary context switches";
            },
        ],
    },
    Table {
        name: "workload_argument",
        doc: "An argument of the command, the program first.",
        key: 1,
        place: 1,
        groups: &[POSITION, columns! { Text "value" "the argument"; }],
    },
    Table {
        name: "workload_variable",
        doc: "An environment variable set for the command.",
        key: 1,
        place: 1,
        groups: &[
            POSITION,
            columns! { Text "name" "name"; Text "value" "value"; },
        ],
    },
    Table {
        name: "metric",
        doc: "A figure that the workload reported about itself.",
        key: 1,
        place: 1,
        groups: &[
            POSITION,
            columns! {
                Text "name" "name";
                Real "value" "value";
                Text "unit" "unit";
                OptText "direction" "higher or lower is better, NULL: no verdict is possible";
                OptText "work" "fixed or timed: what the workload keeps constant, NULL unknown";
                Real "resolution" "smallest difference the output can show, 0 unknown";
                Text "format" "format that gave it";
            },
        ],
    },
    Table {
        name: "metric_key",
        doc: "What sets a metric apart from others of its name.",
        key: 1,
        place: 1,
        groups: &[
            POSITION,
            columns! { Int "metric" "`metric.position`"; Text "name" "name"; Text "value" "value"; },
        ],
    },
    Table {
        name: "result_refused",
        doc: "A result that was printed, or asked for with --metric, and could not be taken; early files lack the table.",
        key: 1,
        place: 1,
        groups: &[POSITION, columns! { Text "reason" "why, a sentence"; }],
    },
    Table {
        name: "checksum",
        doc: "Checksum of a table of the run.",
        key: 1,
        place: 1,
        groups: &[
            columns! { Int "id" "the table's own number" ; Text "name" "the table"; Int "digest" "checksum of its rows"; },
        ],
    },
];
