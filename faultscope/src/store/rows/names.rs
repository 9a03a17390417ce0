//! Names that hold from an interval on: of processes, of cgroups, of call chains.

use super::{Source, lists::NameItem};
use crate::{
    sample::{Delta, delta::CallChain},
    store::{
        codec::{Codec, Encoder, Fault, Record, Text, damaged, each, string},
        digest::{mix, of_bytes},
    },
};
use rusqlite::{OptionalExtension as _, Row};
use std::{collections::HashMap, sync::Arc};

/// Names kept in memory; beyond it they are written or looked up anew.
const MAX_KEPT: usize = 1 << 16;

/// A name from an interval on, `None` unknown.
trait Name: Record {
    fn new(name: Option<Text>) -> Self;
    /// The statement that finds the name of ?1 in the interval ?2.
    const FIND: &'static str;
    /// The statement that finds where the name of ?1 that holds in ?2 ends.
    const UNTIL: &'static str;
}

macro_rules! name {
    ($type:ident, $table:literal, $key:literal, $name:literal) => {
        #[derive(Debug, Default)]
        struct $type(Option<Text>);

        impl Record for $type {
            const TABLE: &'static str = $table;

            fn columns<C: Codec>(&mut self, c: &mut C) -> Result<(), Fault> {
                c.opt_text(&mut self.0)
            }
        }

        impl Name for $type {
            fn new(name: Option<Text>) -> Self {
                Self(name)
            }

            const FIND: &'static str = concat!(
                "SELECT ",
                $name,
                " FROM ",
                $table,
                " WHERE ",
                $key,
                " = ?1 AND since <= ?2 ORDER BY since DESC LIMIT 1"
            );
            const UNTIL: &'static str = concat!(
                "SELECT since FROM ",
                $table,
                " WHERE ",
                $key,
                " = ?1 AND since > ?2 ORDER BY since LIMIT 1"
            );
        }
    };
}

name!(ProcessName, "process_name", "tgid", "name");
name!(CgroupPath, "cgroup_path", "cgroup", "path");

#[derive(Debug, Default)]
struct ChainRow {
    since: i64,
    site: Text,
    frames: Vec<NameItem>,
}

impl Record for ChainRow {
    const TABLE: &'static str = "chain";

    fn columns<C: Codec>(&mut self, c: &mut C) -> Result<(), Fault> {
        c.int(&mut self.since)?;
        c.text(&mut self.site)?;
        c.list(&mut self.frames)
    }
}

/// Checksum of "the number `id` is called so".
fn sum_of(id: i64, name: Option<u64>) -> u64 {
    mix(
        mix(name.unwrap_or_default(), 0x6e61_6d65),
        id.cast_unsigned(),
    )
}

/// What the file says already.
#[derive(Debug, Default)]
pub(in crate::store) struct Known {
    processes: HashMap<i64, Option<Text>>,
    cgroups: HashMap<i64, Option<Text>>,
    chains: HashMap<u32, (Arc<CallChain>, u64)>,
    /// Chains of the transaction that is open.
    new_chains: Vec<u32>,
    /// Names were forgotten that are in the file.
    is_partial: bool,
}

impl Known {
    /// Forgets what may not have been kept.
    pub(in crate::store) fn forget(&mut self) {
        self.processes.clear();
        self.cgroups.clear();
        self.is_partial = true;
        for slot in self.new_chains.drain(..) {
            self.chains.remove(&slot);
        }
    }

    /// Remembers what was kept.
    pub(in crate::store) fn keep(&mut self) {
        self.new_chains.clear();
    }

    /// Writes what is new; the checksum of all names of the interval.
    pub(super) fn write(
        &mut self,
        encoder: &mut Encoder<'_>,
        interval: i64,
        delta: &Delta,
    ) -> Result<u64, Fault> {
        if self.processes.len().max(self.cgroups.len()) > MAX_KEPT {
            self.processes.clear();
            self.cgroups.clear();
            self.is_partial = true;
        }
        let mut sum = 0_u64;
        for tgid in delta.named_processes() {
            let name = delta.names.get(&tgid).map(Text::clone);
            let part = name_of::<ProcessName>(
                encoder,
                (&mut self.processes, self.is_partial),
                (i64::from(tgid), interval),
                name,
            )?;
            sum = sum.wrapping_add(part);
        }
        for id in delta.named_cgroups() {
            let path = delta.cgroup_paths.get(&id).map(Text::clone);
            let part = name_of::<CgroupPath>(
                encoder,
                (&mut self.cgroups, self.is_partial),
                (id.cast_signed(), interval),
                path,
            )?;
            sum = sum.wrapping_add(part);
        }
        for slot in delta.named_chains() {
            if let Some(chain) = delta.chains.get(&slot) {
                sum = sum.wrapping_add(self.chain(encoder, interval, slot, chain)?);
            }
        }
        Ok(sum)
    }

    fn chain(
        &mut self,
        encoder: &mut Encoder<'_>,
        interval: i64,
        slot: u32,
        chain: &Arc<CallChain>,
    ) -> Result<u64, Fault> {
        if let Some((known, sum)) = self.chains.get(&slot) {
            if Arc::ptr_eq(known, chain) || known == chain {
                return Ok(*sum);
            }
            return Err(damaged(format!(
                "the call chain of slot {slot} became another one"
            )));
        }
        let mut row = ChainRow {
            since: interval,
            site: chain.site.as_str().into(),
            frames: chain
                .chain
                .iter()
                .map(|name| NameItem {
                    name: name.as_str().into(),
                })
                .collect(),
        };
        let sum = encoder.put(&[i64::from(slot)], &mut row)?;
        let sum = sum_of(i64::from(slot), Some(sum));
        self.new_chains.push(slot);
        self.chains.insert(slot, (Arc::clone(chain), sum));
        Ok(sum)
    }
}

fn name_of<N: Name>(
    encoder: &mut Encoder<'_>,
    (known, is_partial): (&mut HashMap<i64, Option<Text>>, bool),
    (id, interval): (i64, i64),
    name: Option<Text>,
) -> Result<u64, Fault> {
    let is_new = match known.get(&id) {
        Some(before) => *before != name,
        None => is_partial || name.is_some(),
    };
    let sum = sum_of(id, name.as_ref().map(|name| of_bytes(name.as_bytes())));
    if is_new {
        encoder.put(&[id, interval], &mut N::new(name.clone()))?;
        known.insert(id, name);
    }
    Ok(sum)
}

/// A name, its checksum, and the intervals for which it holds.
#[derive(Debug, Clone)]
struct Valid {
    since: i64,
    until: i64,
    name: Option<(Text, u64)>,
}

/// Names looked up so far.
#[derive(Debug, Default)]
pub(in crate::store) struct Named {
    processes: HashMap<i64, Valid>,
    cgroups: HashMap<i64, Valid>,
    chains: HashMap<u32, Option<(i64, Arc<CallChain>, u64)>>,
}

impl Named {
    /// Names everything that has a row in `delta`.
    pub(super) fn read(&mut self, source: &mut Source<'_>, delta: &mut Delta) -> Result<(), Fault> {
        for tgid in delta.named_processes() {
            if let Some(name) =
                look_up::<ProcessName>(source, &mut self.processes, i64::from(tgid))?
            {
                delta.names.insert(tgid, name);
            }
        }
        for id in delta.named_cgroups() {
            if let Some(path) = look_up::<CgroupPath>(source, &mut self.cgroups, id.cast_signed())?
            {
                delta.cgroup_paths.insert(id, path);
            }
        }
        let mut chains = HashMap::new();
        for slot in delta.named_chains() {
            if let Some((since, chain, sum)) = self.chain(source, slot)?
                && since <= source.interval
            {
                source.sum = source.sum.wrapping_add(sum);
                chains.insert(slot, chain);
            }
        }
        delta.chains = Arc::new(chains);
        Ok(())
    }

    fn chain(
        &mut self,
        source: &mut Source<'_>,
        slot: u32,
    ) -> Result<Option<(i64, Arc<CallChain>, u64)>, Fault> {
        if let Some(known) = self.chains.get(&slot) {
            return Ok(known.clone());
        }
        let mut found = None;
        let place = Some(i64::from(slot));
        each::<ChainRow>(
            source.conn,
            source.caches,
            source.left,
            place,
            |row, sum| {
                let chain = CallChain {
                    site: row.site.to_string(),
                    chain: row.frames.iter().map(|f| f.name.to_string()).collect(),
                };
                let sum = sum_of(i64::from(slot), Some(sum));
                found = Some((row.since, Arc::new(chain), sum));
                Ok(())
            },
        )?;
        if self.chains.len() >= MAX_KEPT {
            self.chains.clear();
        }
        self.chains.insert(slot, found.clone());
        Ok(found)
    }
}

fn look_up<N: Name>(
    source: &mut Source<'_>,
    kept: &mut HashMap<i64, Valid>,
    id: i64,
) -> Result<Option<Text>, Fault> {
    let at = source.interval;
    let known = kept.get(&id);
    let valid = match known.filter(|valid| (valid.since..valid.until).contains(&at)) {
        Some(valid) => valid.clone(),
        None => {
            let valid = find::<N>(source, id)?;
            if kept.len() >= MAX_KEPT {
                kept.clear();
            }
            kept.insert(id, valid.clone());
            valid
        }
    };
    let sum = sum_of(id, valid.name.as_ref().map(|(_, sum)| *sum));
    source.sum = source.sum.wrapping_add(sum);
    Ok(valid.name.map(|(name, _)| name))
}

fn find<N: Name>(source: &mut Source<'_>, id: i64) -> Result<Valid, Fault> {
    let at = source.interval;
    let number = |row: &Row<'_>| row.get::<_, Option<i64>>(0);
    let name = source
        .conn
        .prepare_cached(N::FIND)?
        .query_row((id, at), number)
        .optional()?
        .flatten();
    let until = source
        .conn
        .prepare_cached(N::UNTIL)?
        .query_row((id, at), number)
        .optional()?
        .flatten();
    let name = name
        .map(|name| string(source.conn, source.caches, name))
        .transpose()?;
    Ok(Valid {
        // Reading goes forward; what is before is looked up again.
        since: at,
        until: until.unwrap_or(i64::MAX),
        name,
    })
}
