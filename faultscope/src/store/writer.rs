//! Writes a recording.

use super::{
    codec::{Caches, Fault, damaged},
    error::{Error, reason},
    rows::{self, Known},
    schema,
};
use crate::{
    sample::{
        Interval,
        run::{End, Run, RunFact, Workload},
    },
    workload::Metric,
};
use rusqlite::{Connection, OpenFlags};
use std::{
    fs::OpenOptions,
    io,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

/// Pages of 4 KiB in the log after which it is copied into the file: 4 MiB.
const CHECKPOINT_PAGES: i64 = 1000;
/// How long a reader of the same file is waited for.
const BUSY: Duration = Duration::from_secs(5);
/// Statements kept prepared: more than there are.
pub(super) const STATEMENTS: usize = 128;

/// A recording that is being written.
///
/// While it is open, what was committed last lies in a log beside the file (`-wal`, with an index
/// `-shm`); [`Writer::finish`] leaves one plain file. A process that dies leaves all three, and
/// every interval whose [`Writer::append`] returned.
#[derive(Debug)]
pub struct Writer {
    path: PathBuf,
    conn: Connection,
    caches: Caches,
    known: Known,
    intervals: i64,
    losses: usize,
}

impl Writer {
    /// Makes the file and writes what is known of the run; only the owner may read it, for it
    /// holds command lines.
    ///
    /// # Errors
    /// [`Error::Exists`] if anything is at `path`; otherwise what the system refused, and there is no file then.
    pub fn create(path: &Path, run: &Run) -> Result<Self, Error> {
        let made = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path);
        match made {
            Ok(file) => drop(file),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(Error::Exists {
                    path: path.to_owned(),
                });
            }
            Err(source) => {
                return Err(Error::Io {
                    path: path.to_owned(),
                    doing: "create",
                    source,
                });
            }
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        let conn = Connection::open_with_flags(path, flags)
            .map_err(|error| not_begun(path, &Fault::Sql(error)))?;
        let mut writer = Self {
            path: path.to_owned(),
            conn,
            caches: Caches::default(),
            known: Known::default(),
            intervals: 0,
            losses: run.losses.len(),
        };
        if let Err(fault) = writer.begin(run) {
            drop(writer);
            return Err(not_begun(path, &fault));
        }
        Ok(writer)
    }

    fn begin(&mut self, run: &Run) -> Result<(), Fault> {
        let conn = &self.conn;
        conn.set_prepared_statement_cache_capacity(STATEMENTS);
        conn.busy_timeout(BUSY)?;
        conn.pragma_update(None, "page_size", 4096)?;
        // No journal of the other kind is ever left beside the file.
        conn.pragma_update(None, "journal_mode", "MEMORY")?;
        conn.pragma_update(None, "journal_mode", "WAL")?;
        // The log is synced when it is copied: a crash of the machine may cost the intervals
        // since, a crash of this process none.
        conn.pragma_update(None, "synchronous", "NORMAL")?;
        conn.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
        let transaction = conn.unchecked_transaction()?;
        conn.execute_batch(&schema::create())?;
        rows::write_run(conn, &mut self.caches, run)?;
        transaction.commit()?;
        // From now on the file alone says what it is.
        self.checkpoint()
    }

    fn checkpoint(&self) -> Result<(), Fault> {
        let is_busy: i64 = self
            .conn
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |row| row.get(0))?;
        if is_busy != 0 {
            return Err(damaged("another process reads it"));
        }
        Ok(())
    }

    /// Adds an interval, in one transaction: all of it is in the file, or nothing.
    ///
    /// # Errors
    /// [`Error::Write`], for instance when the disk is full; what was added before stays.
    pub fn append(&mut self, interval: &Interval) -> Result<(), Error> {
        let losses = interval.delta.losses.len();
        let number = self.intervals;
        let done = if losses > self.losses {
            Err(damaged(format!(
                "an interval has {losses} loss counters and the run's catalogue {}",
                self.losses
            )))
        } else {
            self.transaction(|conn, caches, known| {
                rows::write(conn, caches, known, number, interval)
            })
        };
        done.map_err(|fault| failed(&self.path, &fault))?;
        self.intervals += 1;
        Ok(())
    }

    /// Writes the facts in place of those known at the start, which are part of them: some are
    /// known at the end only.
    ///
    /// # Errors
    /// As [`Writer::append`].
    pub fn set_facts(&mut self, facts: &[RunFact]) -> Result<(), Error> {
        self.transaction(|conn, caches, _| rows::write_facts(conn, caches, facts))
            .map_err(|fault| failed(&self.path, &fault))
    }

    /// Writes the workload in place of what was written of it before.
    ///
    /// # Errors
    /// As [`Writer::append`].
    pub fn set_workload(&mut self, workload: &Workload) -> Result<(), Error> {
        self.transaction(|conn, caches, _| rows::write_workload(conn, caches, workload))
            .map_err(|fault| failed(&self.path, &fault))
    }

    /// Writes the workload's own figures in place of earlier ones.
    ///
    /// # Errors
    /// As [`Writer::append`].
    pub fn set_metrics(&mut self, metrics: &[Metric]) -> Result<(), Error> {
        self.transaction(|conn, caches, _| rows::write_metrics(conn, caches, metrics))
            .map_err(|fault| failed(&self.path, &fault))
    }

    /// Intervals added.
    #[must_use]
    pub fn intervals(&self) -> u64 {
        self.intervals.cast_unsigned()
    }

    /// Bytes of the file and of the log beside it.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let wal = beside(&self.path, "-wal");
        [&self.path, &wal]
            .into_iter()
            .filter_map(|path| path.metadata().ok())
            .map(|meta| meta.len())
            .sum()
    }

    /// Writes how the run ended and leaves one plain file.
    ///
    /// # Errors
    /// [`Error::Write`]; the file and the log beside it then hold what was added.
    pub fn finish(mut self, end: &End) -> Result<(), Error> {
        let done = self
            .transaction(|conn, caches, _| rows::write_end(conn, caches, end))
            .and_then(|()| self.close());
        done.map_err(|fault| failed(&self.path, &fault))
    }

    fn close(&self) -> Result<(), Fault> {
        self.checkpoint()?;
        self.conn.flush_prepared_statement_cache();
        // Out of the log without a journal beside the file, not even for a moment.
        let mode: String = self
            .conn
            .query_row("PRAGMA journal_mode = MEMORY", (), |row| row.get(0))?;
        if mode != "memory" {
            return Err(damaged("another process reads it"));
        }
        Ok(())
    }

    fn transaction(
        &mut self,
        write: impl FnOnce(&Connection, &mut Caches, &mut Known) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let transaction = self.conn.unchecked_transaction()?;
        let done = write(&self.conn, &mut self.caches, &mut self.known)
            .and_then(|()| transaction.commit().map_err(Fault::from));
        match done {
            Ok(()) => self.known.keep(),
            Err(_) => {
                self.caches.forget();
                self.known.forget();
            }
        }
        done
    }
}

/// The name of a file that SQLite keeps beside another.
pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn failed(path: &Path, fault: &Fault) -> Error {
    Error::Write {
        path: path.to_owned(),
        reason: why(fault),
    }
}

/// Removes what was begun, which would be in the way of the next try.
fn not_begun(path: &Path, fault: &Fault) -> Error {
    for file in [path, &beside(path, "-wal"), &beside(path, "-shm")] {
        // Some were never made.
        std::fs::remove_file(file).unwrap_or_default();
    }
    Error::Begin {
        path: path.to_owned(),
        reason: why(fault),
    }
}

fn why(fault: &Fault) -> String {
    match fault {
        Fault::Sql(error) => reason(error),
        Fault::Damaged(what) | Fault::TooMuch(what) => what.clone(),
    }
}
