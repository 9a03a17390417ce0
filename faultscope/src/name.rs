//! Makes names that other processes chose safe to print.
//!
//! A process can call itself anything with `prctl(PR_SET_NAME)`, rewrite its command line in place, and a
//! cgroup directory may hold every byte but `/` and NUL. Such a name must not move the cursor, reverse the
//! text around it or break a CSV line. Everything that enters the program from `comm`, `cmdline` or a cgroup
//! path passes through here once, at the edge; display code relies on it.
//!
//! Not here: quoting for a given output format, and width in terminal cells.

/// What stands for a character that must not be shown.
pub const REPLACEMENT: char = '\u{FFFD}';

/// Mark appended by [`scrub_capped`] to a name that was cut.
pub const ELLIPSIS: char = '…';

/// Returns `bytes` as text in which every invalid, control or invisible character is U+FFFD.
///
/// Total: any input gives a string. The result holds at most one character per input byte.
#[must_use]
pub fn scrub(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    push_scrubbed(&mut out, bytes, usize::MAX);
    out
}

/// Like [`scrub`], but keeps at most `max_chars` characters, the last one being `…` when something was cut.
#[must_use]
pub fn scrub_capped(bytes: &[u8], max_chars: usize) -> String {
    // Four bytes is the longest UTF-8 character.
    let mut out = String::with_capacity(bytes.len().min(max_chars.saturating_mul(4)));
    push_scrubbed(&mut out, bytes, max_chars);
    out
}

/// Returns true if `character` may not reach a screen, a CSV cell or a JSON string as it is.
///
/// These are the C0 and C1 controls with DEL, the bidirectional controls of Unicode UAX #9, the zero-width
/// characters, the byte order mark, and the line and paragraph separators.
#[must_use]
pub fn is_unsafe(character: char) -> bool {
    matches!(
        character,
        '\u{00}'..='\u{1F}'
            | '\u{7F}'..='\u{9F}'
            | '\u{00AD}' // soft hyphen: zero or one cell wide, as the terminal pleases
            | '\u{061C}'
            | '\u{180E}'
            | '\u{200B}'..='\u{200F}'
            | '\u{2028}'..='\u{202E}'
            | '\u{2060}'..='\u{206F}'
            | '\u{FEFF}'
            | '\u{FFF9}'..='\u{FFFB}'
            | '\u{E0000}'..='\u{E007F}' // tag characters: invisible text
    )
}

fn push_scrubbed(out: &mut String, bytes: &[u8], max_chars: usize) {
    let mut count = 0;
    for chunk in bytes.utf8_chunks() {
        let invalid = (!chunk.invalid().is_empty()).then_some(REPLACEMENT);
        for character in chunk.valid().chars().chain(invalid) {
            if count == max_chars {
                if out.pop().is_some() {
                    out.push(ELLIPSIS);
                }
                return;
            }
            out.push(if is_unsafe(character) {
                REPLACEMENT
            } else {
                character
            });
            count += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ordinary_names_are_unchanged() {
        assert_eq!(scrub(b"kworker/0:1-events"), "kworker/0:1-events");
        assert_eq!(scrub("größe 数据".as_bytes()), "größe 数据");
    }

    #[test]
    fn escape_sequences_and_overrides_lose_their_power() {
        assert_eq!(scrub(b"\x1b[2Jx"), "\u{FFFD}[2Jx");
        assert_eq!(
            scrub("a\u{202E}b\u{2066}c\u{200B}\u{FEFF}".as_bytes()),
            "a\u{FFFD}b\u{FFFD}c\u{FFFD}\u{FFFD}"
        );
        assert_eq!(
            scrub("a\u{2028}b\u{2029}\u{85}\u{7F}\n".as_bytes()),
            "a\u{FFFD}b\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}"
        );
    }

    #[test]
    fn invalid_utf8_is_replaced() {
        assert_eq!(scrub(b"a\xffb\xc3"), "a\u{FFFD}b\u{FFFD}");
    }

    #[test]
    fn cap_counts_characters_and_marks_the_cut() {
        assert_eq!(scrub_capped("äöü".as_bytes(), 3), "äöü");
        assert_eq!(scrub_capped("äöüx".as_bytes(), 3), "äö…");
        assert_eq!(scrub_capped(b"abc", 0), "");
    }

    proptest! {
        #[test]
        fn output_never_holds_an_unsafe_character(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let text = scrub(&bytes);
            prop_assert!(!text.chars().any(is_unsafe), "{text:?}");
            prop_assert!(!text.chars().any(char::is_control), "{text:?}");
            prop_assert!(text.chars().count() <= bytes.len());
        }

        #[test]
        fn text_of_any_characters_is_made_safe(text in any::<String>(), cap in 0usize..20) {
            prop_assert!(!scrub(text.as_bytes()).chars().any(is_unsafe));
            let capped = scrub_capped(text.as_bytes(), cap);
            prop_assert!(capped.chars().count() <= cap);
        }

        #[test]
        fn scrubbing_twice_changes_nothing(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let once = scrub(&bytes);
            prop_assert_eq!(scrub(once.as_bytes()), once);
        }
    }
}
