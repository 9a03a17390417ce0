//! Rust source as a list of tokens: all that the rules look at.
//!
//! A real parser would be a large dependency for questions about paths and macro names. Comments vanish, a string is one
//! token, so neither can be mistaken for code.

/// What a token is; only what the rules tell apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    /// An identifier or keyword, raw identifiers without their `r#`.
    Ident(String),
    /// The text between the quotes, escapes as written.
    Str(String),
    /// A number, character or lifetime: present so that its neighbours do not become adjacent.
    Other,
    /// `::`
    PathSep,
    /// Any other punctuation character.
    Punct(char),
}

/// A token and the line it starts on, counted from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) line: usize,
}

impl Token {
    pub(super) fn ident(&self) -> Option<&str> {
        match &self.kind {
            Kind::Ident(name) => Some(name),
            _ => None,
        }
    }

    pub(super) fn is(&self, punct: char) -> bool {
        self.kind == Kind::Punct(punct)
    }
}

struct Cursor<'a> {
    rest: &'a str,
    line: usize,
}

impl<'a> Cursor<'a> {
    /// Takes `bytes` bytes off the front, counting lines; stops at the end of the text.
    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at_checked(bytes).unwrap_or((self.rest, ""));
        self.line += taken.matches('\n').count();
        self.rest = rest;
        taken
    }

    fn take_while(&mut self, keep: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|c| !keep(c)).unwrap_or(self.rest.len());
        self.take(end)
    }

    fn skip_block_comment(&mut self) {
        let mut depth = 0_usize;
        while !self.rest.is_empty() {
            if self.rest.starts_with("/*") {
                depth += 1;
                self.take(2);
            } else if self.rest.starts_with("*/") {
                depth -= 1;
                self.take(2);
                if depth == 0 {
                    return;
                }
            } else {
                let next = self.rest.chars().next().map_or(0, char::len_utf8);
                self.take(next);
            }
        }
    }

    /// Takes a quoted string whose opening quote is next.
    fn quoted(&mut self) -> Kind {
        self.take(1);
        let mut escaped = false;
        let end = self.rest.find(|c| {
            let closes = c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            closes
        });
        let text = self.take(end.unwrap_or(self.rest.len())).to_owned();
        self.take(1);
        Kind::Str(text)
    }

    /// Takes a raw string that starts with `hashes` hashes and a quote.
    fn raw(&mut self, hashes: usize) -> Kind {
        self.take(hashes + 1);
        let close = format!("\"{}", "#".repeat(hashes));
        let end = self.rest.find(&close).unwrap_or(self.rest.len());
        let text = self.take(end).to_owned();
        self.take(close.len());
        Kind::Str(text)
    }

    /// Takes what follows a single quote: a character or a lifetime.
    fn quote(&mut self) {
        let mut chars = self.rest.chars().skip(1);
        let (first, second) = (chars.next(), chars.next());
        if first == Some('\\') {
            // The escaped character may itself be a quote.
            self.take(3);
            self.take_while(|c| c != '\'');
            self.take(1);
        } else if second == Some('\'') {
            let width = first.map_or(0, char::len_utf8);
            self.take(width + 2);
        } else {
            self.take(1);
            self.take_while(is_ident);
        }
    }
}

fn is_ident(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Splits Rust source into tokens; text that is not Rust gives tokens without meaning, never an error.
pub(super) fn tokens(source: &str) -> Vec<Token> {
    let mut cursor = Cursor {
        rest: source,
        line: 1,
    };
    let mut found = Vec::new();
    while let Some(next) = cursor.rest.chars().next() {
        let line = cursor.line;
        let kind = if next.is_whitespace() {
            cursor.take_while(char::is_whitespace);
            continue;
        } else if cursor.rest.starts_with("//") {
            cursor.take_while(|c| c != '\n');
            continue;
        } else if cursor.rest.starts_with("/*") {
            cursor.skip_block_comment();
            continue;
        } else if next == '"' {
            cursor.quoted()
        } else if next == '\'' {
            cursor.quote();
            Kind::Other
        } else if next.is_numeric() {
            cursor.take_while(is_ident);
            Kind::Other
        } else if is_ident(next) {
            let word = cursor.take_while(is_ident);
            let hashes = cursor.rest.len() - cursor.rest.trim_start_matches('#').len();
            let quote_follows = cursor.rest[hashes..].starts_with('"');
            match word {
                "r" | "br" | "cr" if quote_follows => cursor.raw(hashes),
                "b" | "c" if cursor.rest.starts_with('"') => cursor.quoted(),
                "b" if cursor.rest.starts_with('\'') => {
                    cursor.quote();
                    Kind::Other
                }
                "r" if hashes == 1 => {
                    cursor.take(1);
                    Kind::Ident(cursor.take_while(is_ident).to_owned())
                }
                _ => Kind::Ident(word.to_owned()),
            }
        } else if cursor.rest.starts_with("::") {
            cursor.take(2);
            Kind::PathSep
        } else {
            cursor.take(next.len_utf8());
            Kind::Punct(next)
        };
        found.push(Token { kind, line });
    }
    found
}

/// The index just past the bracket that closes the one at `open`, or the end of the tokens.
fn past_closing(tokens: &[Token], open: usize) -> usize {
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate().skip(open) {
        if let Kind::Punct(c) = token.kind {
            if matches!(c, '(' | '[' | '{') {
                depth += 1;
            } else if matches!(c, ')' | ']' | '}') {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return index + 1;
                }
            }
        }
    }
    tokens.len()
}

/// Splits the tokens into those that every build compiles and the items under `#[cfg(test)]`.
pub(super) fn split_tests(tokens: &[Token]) -> (Vec<Token>, Vec<Vec<Token>>) {
    let (mut product, mut tests) = (Vec::new(), Vec::new());
    let mut at = 0;
    while at < tokens.len() {
        let rest = &tokens[at..];
        let is_cfg = matches!(rest, [hash, open, cfg, ..]
            if hash.is('#') && open.is('[') && cfg.ident() == Some("cfg"));
        let attribute_end = if is_cfg {
            past_closing(tokens, at + 1)
        } else {
            at
        };
        let words = || tokens[at..attribute_end].iter().filter_map(Token::ident);
        if words().any(|w| w == "test") && words().all(|w| w != "not" && w != "any") {
            let end = item_end(tokens, attribute_end);
            tests.push(tokens[at..end].to_vec());
            at = end;
        } else {
            product.push(tokens[at].clone());
            at += 1;
        }
    }
    (product, tests)
}

/// The index past the item that starts at `start`: its semicolon or its closing brace.
fn item_end(tokens: &[Token], start: usize) -> usize {
    let mut at = start;
    let is_use = |t: &Token| matches!(t.ident(), Some("use"));
    let mut braces_belong_to_use = false;
    while let Some(token) = tokens.get(at) {
        braces_belong_to_use |= is_use(token);
        if token.is(';') {
            return at + 1;
        }
        if matches!(token.kind, Kind::Punct('(' | '[')) || (token.is('{') && braces_belong_to_use) {
            at = past_closing(tokens, at);
        } else if token.is('{') {
            return past_closing(tokens, at);
        } else {
            at += 1;
        }
    }
    tokens.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn idents(source: &str) -> Vec<String> {
        tokens(source)
            .iter()
            .filter_map(|t| t.ident().map(str::to_owned))
            .collect()
    }

    #[test]
    fn comments_strings_and_characters_are_not_code() {
        let source = r##"
            // aya in a comment
            /* aya /* nested */ aya */
            let a = "aya \" aya"; let b = r#"aya " aya"#; let c = '"'; let d = b'\''; let e: &'static str = 'x';
        "##;
        assert_eq!(
            idents(source),
            [
                "let", "a", "let", "b", "let", "c", "let", "d", "let", "e", "str"
            ]
        );
    }

    #[test]
    fn lines_count_from_one_across_comments_and_strings() {
        let found = tokens("/*\n*/ a \"\n\" b");
        let lines: Vec<_> = found.iter().map(|t| t.line).collect();
        assert_eq!(lines, [2, 2, 3]);
    }

    #[test]
    fn test_items_are_split_off_whole() {
        let source = "use a; #[cfg(test)] use b::{c, d}; fn e() {} #[cfg(test)] #[x] mod t { fn f() { g } } fn h() {}";
        let (product, tests) = split_tests(&tokens(source));
        let names = |list: &[Token]| {
            list.iter()
                .filter_map(|t| t.ident().map(str::to_owned))
                .collect::<Vec<_>>()
        };
        assert_eq!(names(&product), ["use", "a", "fn", "e", "fn", "h"]);
        let [import, module] = tests.as_slice() else {
            panic!("two test items expected, got {tests:?}")
        };
        assert!(names(import).contains(&"d".to_owned()));
        assert!(names(module).contains(&"g".to_owned()));
    }

    #[test]
    fn code_for_everything_but_tests_is_product_code() {
        let (product, tests) = split_tests(&tokens("#[cfg(not(test))] fn a() {}"));
        assert!(tests.is_empty());
        assert!(product.iter().any(|t| t.ident() == Some("a")));
    }
}
