//! Opens a file that a stranger may have made.
//!
//! Nothing in it is run: no trigger, no view, no virtual table, and its schema must be ours
//! letter by letter. What SQLite would write beside the file is avoided where that can be.

use super::{
    codec::{Fault, damaged},
    error::Error,
    schema::{self, APPLICATION_ID, VERSION},
    writer::{STATEMENTS, beside},
};
use crate::name::scrub_capped;
use rusqlite::{
    Connection, ErrorCode, OpenFlags, config::DbConfig, limits::Limit, types::ValueRef,
};
use std::{
    collections::BTreeMap,
    fs::{self, DirBuilder, File},
    io::{self, Read as _},
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

/// Longest text, blob or row, bytes.
const MAX_LENGTH: i32 = 16 << 20;
/// Objects a schema may have.
const MAX_OBJECTS: usize = 1000;
/// Characters of a name in the file that a message quotes.
const MAX_QUOTED: usize = 60;
/// How long a recorder that is just ending is waited for.
const BUSY: Duration = Duration::from_secs(5);

/// An open recording, and the copy it is read from if the file itself cannot be.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) conn: Connection,
    /// Removed after `conn` is closed.
    _copy: Option<Copy>,
}

/// A private directory, removed with all that is in it.
#[derive(Debug)]
struct Copy(PathBuf);

impl Drop for Copy {
    fn drop(&mut self) {
        // Nobody is left to tell; what remains is in the directory for temporary files.
        fs::remove_dir_all(&self.0).unwrap_or_default();
    }
}

/// Opens the recording at `path` for reading.
pub(super) fn open(path: &Path) -> Result<Opened, Error> {
    let is_log = check_header(path)?;
    let wal = beside(path, "-wal");
    let has_wal = wal.metadata().is_ok_and(|meta| meta.len() > 0);
    if beside(path, "-journal")
        .metadata()
        .is_ok_and(|meta| meta.len() > 0)
    {
        return Err(Error::Damaged {
            path: path.to_owned(),
            reason: "a rollback journal lies beside it, which faultscope never leaves; something else wrote to the file"
                .into(),
        });
    }
    if !is_log || !has_wal {
        // Without a log nobody writes to it, and nothing need be made beside it.
        let conn = connect(path, is_log).map_err(|fault| Error::reading(path, "", &fault))?;
        return Ok(Opened { conn, _copy: None });
    }
    match connect(path, false) {
        Ok(conn) => Ok(Opened { conn, _copy: None }),
        Err(Fault::Sql(error)) if wants_to_write(&error) => copied(path, &wal),
        Err(fault) => Err(Error::reading(path, "", &fault)),
    }
}

/// Whether SQLite failed because it may not make the log's index beside the file.
fn wants_to_write(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::PermissionDenied)
    )
}

/// Reads the first bytes: whether the file is in the mode with a log.
fn check_header(path: &Path) -> Result<bool, Error> {
    let failed = |source| Error::Io {
        path: path.to_owned(),
        doing: "read",
        source,
    };
    let not = |reason: &str| Error::NotARecording {
        path: path.to_owned(),
        reason: reason.into(),
    };
    let meta = fs::metadata(path).map_err(failed)?;
    if !meta.is_file() {
        return Err(not("it is no regular file"));
    }
    let mut header = [0_u8; 100];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut header));
    match read {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            return Err(not(if meta.len() == 0 {
                "it is empty"
            } else {
                "it is too short"
            }));
        }
        Err(error) => return Err(failed(error)),
    }
    let word = |at: usize| {
        let bytes = [header[at], header[at + 1], header[at + 2], header[at + 3]];
        i32::from_be_bytes(bytes)
    };
    if !header.starts_with(b"SQLite format 3\0") {
        return Err(not("it is no SQLite file"));
    }
    if word(68) != APPLICATION_ID {
        return Err(not("it is a SQLite file of another application"));
    }
    check_version(path, word(60))?;
    Ok(header[18] == 2 || header[19] == 2)
}

fn check_version(path: &Path, found: i32) -> Result<(), Error> {
    match found {
        VERSION => Ok(()),
        found if found > VERSION => Err(Error::Newer {
            path: path.to_owned(),
            found,
            known: VERSION,
        }),
        found => Err(Error::Damaged {
            path: path.to_owned(),
            reason: format!("its schema version is {found}, which no version of faultscope wrote"),
        }),
    }
}

/// Opens a copy, made where we may write.
fn copied(path: &Path, wal: &Path) -> Result<Opened, Error> {
    let failed = |source| Error::Io {
        path: path.to_owned(),
        doing: "copy to the directory for temporary files, because the log beside it has to be read in a place that can \
                be written,",
        source,
    };
    let directory = private_directory().map_err(failed)?;
    let copy = Copy(directory);
    let target = copy.0.join("copy.fsc");
    fs::copy(path, &target).map_err(failed)?;
    fs::copy(wal, beside(&target, "-wal")).map_err(failed)?;
    let conn = connect(&target, false).map_err(|fault| Error::reading(path, "", &fault))?;
    Ok(Opened {
        conn,
        _copy: Some(copy),
    })
}

/// Opens what is in memory, through a file that has no name any more on return.
pub(super) fn open_bytes(name: &Path, bytes: &[u8]) -> Result<Opened, Error> {
    let failed = |source| Error::Io {
        path: name.to_owned(),
        doing: "unpack to the directory for temporary files",
        source,
    };
    let copy = Copy(private_directory().map_err(failed)?);
    let file = copy.0.join("copy.fsc");
    fs::write(&file, bytes).map_err(failed)?;
    // SQLite has it open; the directory goes with `copy`.
    open(&file)
}

fn private_directory() -> io::Result<PathBuf> {
    let base = std::env::temp_dir();
    for n in 0..100 {
        let path = base.join(format!("faultscope-{}-{n}", std::process::id()));
        match DirBuilder::new().mode(0o700).create(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|()| path),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// The path as SQLite's URI wants it.
fn uri(path: &Path, is_immutable: bool) -> io::Result<String> {
    use std::os::unix::ffi::OsStrExt as _;
    let path = std::path::absolute(path)?;
    let mut uri = String::from("file:");
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'/' | b'-' | b'_' | b'.' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => {
                uri.push(char::from(*byte));
            }
            byte => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri.push_str("?mode=ro");
    if is_immutable {
        uri.push_str("&immutable=1");
    }
    Ok(uri)
}

fn connect(path: &Path, is_immutable: bool) -> Result<Connection, Fault> {
    let uri = uri(path, is_immutable).map_err(|error| damaged(error.to_string()))?;
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(uri, flags)?;
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false)?;
    for (limit, value) in [
        (Limit::SQLITE_LIMIT_LENGTH, MAX_LENGTH),
        (Limit::SQLITE_LIMIT_SQL_LENGTH, 1 << 16),
        (Limit::SQLITE_LIMIT_COLUMN, 200),
        (Limit::SQLITE_LIMIT_EXPR_DEPTH, 50),
        (Limit::SQLITE_LIMIT_ATTACHED, 0),
        (Limit::SQLITE_LIMIT_WORKER_THREADS, 0),
    ] {
        conn.set_limit(limit, value)?;
    }
    conn.set_prepared_statement_cache_capacity(STATEMENTS);
    conn.busy_timeout(BUSY)?;
    conn.pragma_update(None, "cell_size_check", true)?;
    conn.pragma_update(None, "mmap_size", 0)?;
    conn.pragma_update(None, "query_only", true)?;
    check_schema(&conn)?;
    Ok(conn)
}

/// Refuses whatever is not a plain table, and our tables if they are not ours.
fn check_schema(conn: &Connection) -> Result<(), Fault> {
    let mut wanted: BTreeMap<&str, String> = schema::tables().map(|t| (t.name, t.ddl())).collect();
    let mut statement = conn.prepare("SELECT type, name, rootpage, sql FROM main.sqlite_schema")?;
    let mut rows = statement.query(())?;
    let mut objects = 0;
    while let Some(row) = rows.next()? {
        objects += 1;
        if objects > MAX_OBJECTS {
            return Err(Fault::TooMuch("its schema has too many objects".into()));
        }
        let text = |column| match row.get_ref(column) {
            Ok(ValueRef::Text(bytes)) => bytes,
            _ => b"",
        };
        let (kind, name, sql) = (text(0), text(1), text(3));
        let quoted = || scrub_capped(name, MAX_QUOTED);
        let is_stored = matches!(row.get_ref(2), Ok(ValueRef::Integer(page)) if page > 0);
        if kind != b"table" || !is_stored {
            return Err(damaged(format!(
                "its schema has {} called \"{}\"; a recording has nothing but plain tables",
                match kind {
                    b"view" => "a view".into(),
                    b"trigger" => "a trigger".into(),
                    b"index" => "an index".into(),
                    b"table" => "a virtual table".into(),
                    other => format!("an object of type \"{}\"", scrub_capped(other, MAX_QUOTED)),
                },
                quoted()
            )));
        }
        let known = std::str::from_utf8(name)
            .ok()
            .and_then(|n| wanted.remove(n));
        if known.is_some_and(|known| known.as_bytes() != sql) {
            return Err(damaged(format!(
                "its table \"{}\" is not made as a recording's",
                quoted()
            )));
        }
    }
    wanted.retain(|name, _| !schema::LATER.contains(name));
    match wanted.first_key_value() {
        None => Ok(()),
        Some((name, _)) => Err(damaged(format!("it has no table \"{name}\""))),
    }
}
