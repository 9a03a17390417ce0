//! A second opinion on spinlock waits: programs of the tests' own, written in BPF
//! instructions, that share no code with what they check.
//!
//! They note which lruvecs `folio_lruvec_lock*` returned, how often each address
//! was waited for, and how many contention events had which flags. Like the
//! programs they check they take no lock: plain arrays, probed and claimed by
//! compare-and-exchange.

use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

use faultscope::host::btf::Btf;

/// Slots of an address table, then one that counts what found none.
const SLOTS: usize = 4096;
/// Slots tried for an address.
const TRIES: usize = 4;

/// What an event says about: how a program gets the address it notes.
#[derive(Clone, Copy)]
enum Address {
    /// Argument 0 of the function.
    Argument,
    /// What the function returned, plus an offset.
    Returned(i32),
    /// Argument 0 of the tracepoint, if argument 1 has this value.
    Flagged(i32),
}

/// An array that programs fill and the test reads in place.
#[derive(Debug)]
struct Map {
    fd: OwnedFd,
    words: *const u64,
    len: usize,
}

/// The programs, attached while it lives.
#[derive(Debug)]
pub(crate) struct Witness {
    learned: Map,
    waited: Map,
    flags: Map,
    _links: Vec<OwnedFd>,
}

impl Witness {
    /// Attaches everything; to be called before the load begins.
    pub(crate) fn new(is_rt: bool) -> Self {
        let image = std::fs::read("/sys/kernel/btf/vmlinux").expect("a kernel with BTF");
        let id = |kind, name: &str| type_id(&image, kind, name);
        let function = |name: &str| id(FUNC, name);
        let btf = Btf::parse(image.clone()).expect("the kernel's BTF");
        let lock = btf
            .member_offset("lruvec", "lru_lock")
            .expect("a lock for each lruvec (5.11)");
        let lock = Address::Returned(i32::try_from(lock).expect("a small offset"));
        let [learned, waited, flags] = [SLOTS + 1, SLOTS + 1, 64].map(Map::new);
        let contention = id(TYPEDEF, "btf_trace_contention_begin").expect("the tracepoint (5.19)");
        let mut links = vec![attach(RAW_TP, contention, &flags_code(&flags))];
        for name in [
            "folio_lruvec_lock",
            "folio_lruvec_lock_irq",
            "folio_lruvec_lock_irqsave",
        ] {
            let function = function(name).expect(name);
            links.push(attach(FEXIT, function, &address_code(lock, &learned)));
        }
        if is_rt {
            // A contended spinlock_t is an rt_mutex there.
            let code = address_code(Address::Flagged(8), &waited);
            links.push(attach(RAW_TP, contention, &code));
        } else {
            for name in [
                "native_queued_spin_lock_slowpath",
                "__pv_queued_spin_lock_slowpath",
            ] {
                if let Some(function) = function(name) {
                    let code = address_code(Address::Argument, &waited);
                    links.push(attach(FENTRY, function, &code));
                }
            }
        }
        Self {
            learned,
            waited,
            flags,
            _links: links,
        }
    }

    /// Addresses of the lru_locks that were returned locked.
    pub(crate) fn learned(&self) -> Vec<u64> {
        assert_eq!(
            self.learned.word(2 * SLOTS + 1),
            0,
            "no lruvec was left out"
        );
        self.learned.entries().map(|(address, _)| address).collect()
    }

    /// Addresses waited for, with the number of waits that began.
    pub(crate) fn waited(&self) -> Vec<(u64, u64)> {
        self.waited.entries().collect()
    }

    /// Waits for addresses that found no slot.
    pub(crate) fn unplaced(&self) -> u64 {
        self.waited.word(2 * SLOTS + 1)
    }

    /// `contention_begin` events with exactly these flags.
    pub(crate) fn events(&self, flags: usize) -> u64 {
        self.flags.word(2 * flags + 1)
    }
}

impl Map {
    fn new(len: usize) -> Self {
        const ARRAY: u32 = 2;
        const MMAPABLE: u32 = 1 << 10;
        let len_u32 = u32::try_from(len).expect("a small map");
        let attributes = [ARRAY, 4, 16, len_u32, MMAPABLE];
        let fd = bpf(0, &attributes).expect("a map can be made");
        // SAFETY: a new mapping of the map's own values, unmapped with the process.
        let words = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                16 * len,
                libc::PROT_READ,
                libc::MAP_SHARED,
                fd.as_raw_fd(),
                0,
            )
        };
        assert_ne!(words, libc::MAP_FAILED, "mmap of a map");
        let words = words.cast_const().cast();
        Self { fd, words, len }
    }

    fn word(&self, index: usize) -> u64 {
        assert!(index < 2 * self.len);
        // SAFETY: inside the mapping; programs write whole words.
        unsafe { self.words.add(index).read_volatile() }
    }

    /// Addresses with their counts.
    fn entries(&self) -> impl Iterator<Item = (u64, u64)> {
        (0..SLOTS)
            .map(|slot| (self.word(2 * slot), self.word(2 * slot + 1)))
            .filter(|(address, _)| *address != 0)
    }
}

const FUNC: u32 = 12;
const TYPEDEF: u32 = 8;

/// Number of the type of this kind and name (include/uapi/linux/btf.h).
fn type_id(image: &[u8], wanted: u32, name: &str) -> Option<u32> {
    let word = |at: usize| {
        let bytes = image[at..at + 4].try_into().expect("four bytes");
        u32::from_le_bytes(bytes)
    };
    let place = |at: usize| usize::try_from(word(at)).expect("an offset");
    let header = place(4);
    let (types, bytes, strings) = (header + place(8), place(12), header + place(16));
    let (mut at, mut id) = (types, 1);
    while at < types + bytes {
        let (kind, members) = ((word(at + 4) >> 24) & 0x1f, place(at + 4) & 0xffff);
        let text = &image[strings + place(at)..];
        if kind == wanted && text.starts_with(name.as_bytes()) && text[name.len()] == 0 {
            return Some(id);
        }
        at += 12
            + match kind {
                1 | 14 | 17 => 4,
                3 => 12,
                4 | 5 | 15 | 19 => 12 * members,
                6 | 13 => 8 * members,
                _ => 0,
            };
        id += 1;
    }
    None
}

const RAW_TP: u32 = 23;
const FENTRY: u32 = 24;
const FEXIT: u32 = 25;

/// Loads a tracing program for a type of the kernel's BTF and attaches it.
fn attach(kind: u32, btf_id: u32, code: &[u64]) -> OwnedFd {
    const TRACING: u32 = 26;
    let mut log = vec![0_u8; 1 << 16];
    let mut attributes = [0_u32; 29];
    let mut set = |at: usize, value: u64| {
        attributes[at / 4] = value as u32;
        attributes[at / 4 + 1] = (value >> 32) as u32;
    };
    set(0, u64::from(TRACING) | (code.len() as u64) << 32);
    set(8, code.as_ptr() as u64);
    set(16, c"GPL".as_ptr() as u64);
    set(24, 1 | (log.len() as u64) << 32);
    set(32, log.as_mut_ptr() as u64);
    set(68, u64::from(kind));
    set(108, u64::from(btf_id));
    let program = bpf(5, &attributes).unwrap_or_else(|error| {
        let log = String::from_utf8_lossy(&log);
        panic!(
            "the witness is refused: {error}\n{}",
            log.trim_end_matches('\0')
        )
    });
    let fd = u32::try_from(program.as_raw_fd()).expect("a descriptor");
    // BPF_RAW_TRACEPOINT_OPEN without a name attaches to what the program was loaded for.
    bpf(17, &[0, 0, fd, 0]).expect("the witness can be attached")
}

fn bpf(command: i32, attributes: &[u32]) -> io::Result<OwnedFd> {
    // SAFETY: the kernel reads the attributes and what they point at, and writes the log.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command,
            attributes.as_ptr(),
            size_of_val(attributes),
        )
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    let fd = i32::try_from(fd).expect("a descriptor");
    // SAFETY: a new descriptor, owned by nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// One instruction (Documentation/bpf/standardization/instruction-set.rst).
fn op(code: u8, dst: u8, src: u8, offset: i16, value: i32) -> u64 {
    u64::from(code)
        | u64::from(dst | src << 4) << 8
        | u64::from(offset.cast_unsigned()) << 16
        | u64::from(value.cast_unsigned()) << 32
}

fn mov(dst: u8, src: u8) -> u64 {
    op(0xbf, dst, src, 0, 0)
}

fn set(dst: u8, value: i32) -> u64 {
    op(0xb7, dst, 0, 0, value)
}

fn add(dst: u8, value: i32) -> u64 {
    op(0x07, dst, 0, 0, value)
}

fn call(helper: i32) -> u64 {
    op(0x85, 0, 0, 0, helper)
}

/// `dst = *(u64 *)(src + offset)`.
fn load(dst: u8, src: u8, offset: i16) -> u64 {
    op(0x79, dst, src, offset, 0)
}

/// Exit 0.
fn end() -> [u64; 2] {
    [set(0, 0), op(0x95, 0, 0, 0, 0)]
}

/// r0 = the map's value at index r8; ends the program without one.
fn look_up(map: &Map) -> Vec<u64> {
    vec![
        // *(u32 *)(r10 - 12) = r8
        op(0x63, 10, 8, -12, 0),
        // r1 = the map
        op(0x18, 1, 1, 0, map.fd.as_raw_fd()),
        0,
        mov(2, 10),
        add(2, -12),
        call(1),
        // if r0 != 0 skip the exit
        op(0x55, 0, 0, 2, 0),
        end()[0],
        end()[1],
    ]
}

/// `lock *(u64 *)(dst + 8) += 1`, by r1.
fn count(dst: u8) -> [u64; 2] {
    [set(1, 1), op(0xdb, dst, 1, 8, 0)]
}

/// Counts by the value of argument 1, below 64.
fn flags_code(map: &Map) -> Vec<u64> {
    let mut code = vec![load(8, 1, 8), op(0x57, 8, 0, 0, 63)];
    code.extend(look_up(map));
    code.extend(count(0));
    code.extend(end());
    code
}

/// Finds or claims the slot of an address and counts there.
fn address_code(address: Address, map: &Map) -> Vec<u64> {
    let mut code = match address {
        Address::Argument => vec![
            set(2, 0),
            mov(3, 10),
            add(3, -8),
            call(183), // bpf_get_func_arg
            load(7, 10, -8),
        ],
        Address::Returned(offset) => vec![
            mov(2, 10),
            add(2, -8),
            call(184), // bpf_get_func_ret
            load(7, 10, -8),
            add(7, offset),
        ],
        Address::Flagged(flags) => {
            let [zero, exit] = end();
            vec![
                load(7, 1, 0),
                load(2, 1, 8),
                // if r2 == flags skip the exit
                op(0x15, 2, 0, 2, flags),
                zero,
                exit,
            ]
        }
    };
    // The stack slot that helpers write is read by them as well.
    code.insert(0, op(0x7a, 10, 0, -8, 0));
    // r9 = hash of the address, 12 bits
    code.extend([mov(9, 7), op(0x18, 1, 0, 0, 0x7F4A_7C15), 0x9E37_79B9 << 32]);
    code.extend([op(0x2f, 9, 1, 0, 0), op(0x77, 9, 0, 0, 52)]);
    for _ in 0..TRIES {
        code.push(mov(8, 9));
        code.extend(look_up(map));
        code.extend([
            mov(4, 0),
            set(0, 0),
            // r0 = compare-and-exchange of *(u64 *)r4 from 0 to r7
            op(0xdb, 4, 7, 0, 0xf1),
            // if r0 == 0 or r0 == r7 count and end
            op(0x15, 0, 0, 1, 0),
            op(0x5d, 0, 7, 4, 0),
        ]);
        code.extend(count(4));
        code.extend(end());
        code.extend([add(9, 1), op(0x57, 9, 0, 0, 4095)]);
    }
    code.push(set(8, 4096));
    code.extend(look_up(map));
    code.extend(count(0));
    code.extend(end());
    code
}
