//! Making inputs: a stored one with a few edits, all of them chosen by one seed.
//!
//! The edits know nothing of the target but its tokens. They aim at what readers get wrong: cut characters, numbers at
//! the edge, nesting, repetition, things in the wrong place.

use std::ops::Range;

use fastrand::Rng;

use super::Target;
use super::corpus::Entry;

/// Longer inputs are cut. The large ones that a reader must bear are a test of their own.
pub const INPUT_BYTES_MAX: usize = 16 * 1024;

const EDITS_MAX: usize = 8;

/// The input that a seed stands for, given the stored ones.
pub fn input(target: &Target, corpus: &[Entry], seed: u64) -> Vec<u8> {
    let mut rng = Rng::with_seed(seed ^ name_hash(target.name));
    let mut bytes = pick(&mut rng, corpus).to_vec();
    // Few edits keep an input deep inside the reader, many show it something new.
    let n_edits = 1 + rng.usize(..EDITS_MAX).min(rng.usize(..EDITS_MAX)).min(rng.usize(..EDITS_MAX));
    for _ in 0..n_edits {
        edit(&mut bytes, target, corpus, &mut rng);
        bytes.truncate(INPUT_BYTES_MAX);
    }
    bytes
}

/// Targets with the same seed shall not all make the same choices.
fn name_hash(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

fn pick<'a>(rng: &mut Rng, corpus: &'a [Entry]) -> &'a [u8] {
    rng.choice(corpus).map_or(&[], |entry| &entry.bytes)
}

fn edit(bytes: &mut Vec<u8>, target: &Target, corpus: &[Entry], rng: &mut Rng) {
    match rng.u8(..16) {
        0 => flip(bytes, rng),
        1 | 2 => insert(bytes, token(target, rng).as_bytes(), rng),
        3 | 4 => overwrite(bytes, token(target, rng).as_bytes(), rng),
        5 => drop(bytes.drain(range(bytes, rng))),
        6 => duplicate(bytes, rng),
        7 => move_range(bytes, rng),
        8 => splice_with(bytes, pick(rng, corpus), rng),
        9 => replace_number(bytes, rng),
        10 => insert(bytes, rng.choice(ODD).expect("there are some"), rng),
        11 => nest(bytes, rng),
        12 => repeat(bytes, rng),
        13 => move_line(bytes, rng),
        14 => swap_words(bytes, rng),
        _ => replace_word(bytes, token(target, rng).as_bytes(), rng),
    }
}

/// Bytes that some reader somewhere takes for something else.
const ODD: &[&[u8]] = &[
    b"\0",
    b"\x1b[31m",
    b"\x1b]0;x\x07",
    b"\r",
    b"\r\n",
    b"\n",
    b"\t",
    b"\x7f",
    // Characters cut short, too long, and of no kind.
    b"\xc3",
    b"\xe2\x82",
    b"\xf0\x9f\x92",
    b"\xc0\x80",
    b"\xed\xa0\x80",
    b"\xff\xfe",
    "\u{feff}".as_bytes(),
    "\u{202e}".as_bytes(),
    "\u{2066}".as_bytes(),
    "\u{85}".as_bytes(),
    "\u{2028}".as_bytes(),
    "\u{a0}".as_bytes(),
    "\u{200b}".as_bytes(),
    "e\u{301}".as_bytes(),
    "\u{130}".as_bytes(),
    "\u{1f525}".as_bytes(),
    b"\\u0000",
    b"\\ud800",
    b"\\",
    b"\"",
    b"'''",
    b"\"\"\"",
];

/// Numbers at the edge of what fits somewhere.
const NUMBERS: &[&str] = &[
    "0",
    "-0",
    "-1",
    "00",
    "1e999",
    "0.1",
    "255",
    "256",
    "32768",
    "2147483647",
    "2147483648",
    "4294967295",
    "4294967296",
    "9007199254740993",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "-9223372036854775809",
    "18446744073709551615",
    "18446744073709551616",
    "99999999999999999999999999999999999999999",
    "0x7fffffffffffffff",
    "1_000",
    "NaN",
    "\u{661}\u{662}",
];

fn token(target: &Target, rng: &mut Rng) -> &'static str {
    rng.choice(target.tokens).copied().unwrap_or("a")
}

/// Some part of the bytes, short more often than long.
fn range(bytes: &[u8], rng: &mut Rng) -> Range<usize> {
    let start = rng.usize(..=bytes.len());
    let longest = bytes.len() - start;
    let limit = if rng.bool() { longest.min(8) } else { longest };
    start..start + rng.usize(..=limit)
}

fn flip(bytes: &mut [u8], rng: &mut Rng) {
    if let Some(at) = (!bytes.is_empty()).then(|| rng.usize(..bytes.len())) {
        bytes[at] = if rng.bool() { bytes[at] ^ (1 << rng.u8(..8)) } else { rng.u8(..) };
    }
}

fn insert(bytes: &mut Vec<u8>, new: &[u8], rng: &mut Rng) {
    let at = rng.usize(..=bytes.len());
    bytes.splice(at..at, new.iter().copied());
}

fn overwrite(bytes: &mut Vec<u8>, new: &[u8], rng: &mut Rng) {
    let at = rng.usize(..=bytes.len());
    let end = (at + new.len()).min(bytes.len());
    bytes.splice(at..end, new.iter().copied());
}

fn duplicate(bytes: &mut Vec<u8>, rng: &mut Rng) {
    let copy = bytes[range(bytes, rng)].to_vec();
    insert(bytes, &copy, rng);
}

fn move_range(bytes: &mut Vec<u8>, rng: &mut Rng) {
    let taken: Vec<u8> = bytes.drain(range(bytes, rng)).collect();
    insert(bytes, &taken, rng);
}

fn splice_with(bytes: &mut Vec<u8>, other: &[u8], rng: &mut Rng) {
    let part = other[range(other, rng)].to_vec();
    bytes.splice(range(bytes, rng), part);
}

fn replace_number(bytes: &mut Vec<u8>, rng: &mut Rng) {
    let number = rng.choice(NUMBERS).expect("there are some").as_bytes();
    let place = choose(&runs_of(bytes, u8::is_ascii_digit), rng).unwrap_or_else(|| range(bytes, rng));
    bytes.splice(place, number.iter().copied());
}

fn replace_word(bytes: &mut Vec<u8>, new: &[u8], rng: &mut Rng) {
    let place = choose(&words(bytes), rng).unwrap_or_else(|| range(bytes, rng));
    bytes.splice(place, new.iter().copied());
}

/// Exchanges two words: an id where a status was, a key where a value was.
fn swap_words(bytes: &mut Vec<u8>, rng: &mut Rng) {
    let words = words(bytes);
    let (Some(one), Some(other)) = (choose(&words, rng), choose(&words, rng)) else { return };
    let (first, second) = if one.start <= other.start { (one, other) } else { (other, one) };
    if first.end <= second.start {
        let (early, late) = (bytes[first.clone()].to_vec(), bytes[second.clone()].to_vec());
        bytes.splice(second, early);
        bytes.splice(first, late);
    }
}

fn move_line(bytes: &mut Vec<u8>, rng: &mut Rng) {
    let mut lines: Vec<Vec<u8>> = bytes.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    let (from, to) = (rng.usize(..lines.len()), rng.usize(..lines.len()));
    let line = if rng.bool() { lines[from].clone() } else { lines.remove(from) };
    lines.insert(to.min(lines.len()), line);
    *bytes = lines.join(&b'\n');
}

/// Wraps a part into many brackets, closed or not.
fn nest(bytes: &mut Vec<u8>, rng: &mut Rng) {
    let forms: [(&[u8], &[u8]); 5] = [(b"[", b"]"), (b"{\"a\":", b"}"), (b"{a=", b"}"), (b"(", b")"), (b"a.", b"")];
    let (open, close) = forms[rng.usize(..forms.len())];
    let depth = rng.choice([2, 16, 130, 1_000]).expect("there are some");
    let close = if rng.u8(..4) > 0 { close } else { b"" };
    let place = choose(&words(bytes), rng).unwrap_or_else(|| range(bytes, rng));
    let nested = [&open.repeat(depth), &bytes[place.clone()], &close.repeat(depth)].concat();
    bytes.splice(place, nested);
}

/// Says a part again and again: very long lines, very many fields.
fn repeat(bytes: &mut Vec<u8>, rng: &mut Rng) {
    let place = range(bytes, rng);
    let times = rng.choice([2, 8, 100, 3_000]).expect("there are some");
    let times = times.min(INPUT_BYTES_MAX / place.len().max(1)).max(1);
    let many = bytes[place.clone()].repeat(times);
    bytes.splice(place, many);
}

fn words(bytes: &[u8]) -> Vec<Range<usize>> {
    runs_of(bytes, |byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
}

/// The longest runs of bytes of a kind.
fn runs_of(bytes: &[u8], is_kind: impl Fn(&u8) -> bool) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for (at, _) in bytes.iter().enumerate().filter(|(_, byte)| is_kind(byte)) {
        match runs.last_mut() {
            Some(run) if run.end == at => run.end = at + 1,
            _ => runs.push(at..at + 1),
        }
    }
    runs
}

fn choose(ranges: &[Range<usize>], rng: &mut Rng) -> Option<Range<usize>> {
    rng.choice(ranges).cloned()
}
