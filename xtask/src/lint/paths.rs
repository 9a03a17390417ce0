//! The paths a file uses, resolved as far as the layer rules need.
//!
//! `use` trees are unfolded and `crate`, `self` and `super` replaced by where the file stands, inline modules included.
//! Macro-made paths are out of sight.

use super::token::{Kind, Token};

/// A path as the code means it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Path {
    /// Whether `segments` start at the root of the crate the file belongs to.
    pub(super) is_ours: bool,
    /// The names from the root on; `*` for a glob. Empty for the crate root itself.
    pub(super) segments: Vec<String>,
    /// The line of the path's first name, counted from 1.
    pub(super) line: usize,
}

/// Finds every path of two or more names, and every name a `use` brings in, in a file standing at `module`.
pub(super) fn paths(tokens: &[Token], module: &[String]) -> Vec<Path> {
    let mut walk = Walk {
        tokens,
        at: 0,
        inline: Vec::new(),
        depth: 0,
        module: module.to_vec(),
        found: Vec::new(),
    };
    walk.run();
    walk.found
}

struct Walk<'a> {
    tokens: &'a [Token],
    at: usize,
    /// Brace depths at which the inline modules around this place were opened.
    inline: Vec<usize>,
    depth: usize,
    /// Where this place stands: the file's module and the inline modules around it.
    module: Vec<String>,
    found: Vec<Path>,
}

impl Walk<'_> {
    fn peek(&self, ahead: usize) -> Option<&Token> {
        self.tokens.get(self.at + ahead)
    }

    fn run(&mut self) {
        while let Some(token) = self.peek(0) {
            match token.ident() {
                Some("use") => {
                    self.at += 1;
                    self.tree(&[]);
                }
                Some("mod") if self.peek(2).is_some_and(|t| t.is('{')) => {
                    let name = self
                        .peek(1)
                        .and_then(Token::ident)
                        .unwrap_or_default()
                        .to_owned();
                    self.depth += 1;
                    self.inline.push(self.depth);
                    self.module.push(name);
                    self.at += 3;
                }
                Some("extern") if self.peek(1).is_some_and(|t| t.ident() == Some("crate")) => {
                    let line = token.line;
                    let name = self
                        .peek(2)
                        .and_then(Token::ident)
                        .unwrap_or_default()
                        .to_owned();
                    self.resolve(&[name], line);
                    self.at += 3;
                }
                Some(_) => self.expression(),
                None => {
                    if token.is('{') {
                        self.depth += 1;
                    } else if token.is('}') {
                        if self.inline.last() == Some(&self.depth) {
                            self.inline.pop();
                            self.module.pop();
                        }
                        self.depth = self.depth.saturating_sub(1);
                    }
                    self.at += 1;
                }
            }
        }
    }

    /// Takes names joined by `::`.
    fn names(&mut self) -> Vec<String> {
        let mut names = Vec::new();
        while let Some(name) = self.peek(0).and_then(Token::ident).filter(|n| *n != "as") {
            names.push(name.to_owned());
            self.at += 1;
            let goes_on = self.peek(0).is_some_and(|t| t.kind == Kind::PathSep);
            if !goes_on || self.peek(1).and_then(Token::ident).is_none() {
                break;
            }
            self.at += 1;
        }
        names
    }

    fn expression(&mut self) {
        // `T::name` after `<…>` or a variable is no path from a root: only its first name counts, so look back.
        let continues = self.at > 0
            && self
                .tokens
                .get(self.at - 1)
                .is_some_and(|t| t.kind == Kind::PathSep)
            && self.at > 1
            && self
                .tokens
                .get(self.at - 2)
                .is_some_and(|t| t.ident().is_some() || t.is('>'));
        let line = self.peek(0).map_or(0, |t| t.line);
        let names = self.names();
        if names.is_empty() {
            self.at += 1;
        } else if names.len() > 1 && !continues {
            self.resolve(&names, line);
        }
    }

    /// Takes one `use` tree, all of whose paths start with `prefix`.
    fn tree(&mut self, prefix: &[String]) {
        if self.peek(0).is_some_and(|t| t.kind == Kind::PathSep) {
            self.at += 1;
        }
        let line = self.peek(0).map_or(0, |t| t.line);
        let mut path = prefix.to_vec();
        path.extend(self.names());
        if self.peek(0).is_some_and(|t| t.kind == Kind::PathSep) {
            self.at += 1;
        }
        match self.peek(0) {
            Some(t) if t.is('*') => {
                self.at += 1;
                path.push("*".to_owned());
                self.resolve(&path, line);
            }
            Some(t) if t.is('{') => {
                self.at += 1;
                while self.peek(0).is_some_and(|t| !t.is('}')) {
                    let before = self.at;
                    self.tree(&path);
                    // A comma, or something that is no `use` tree at all.
                    if self.at == before || self.peek(0).is_some_and(|t| t.is(',')) {
                        self.at += 1;
                    }
                }
                self.at += 1;
            }
            _ => {
                if path.len() > 1 && path.last().is_some_and(|n| n == "self") {
                    path.pop();
                }
                self.resolve(&path, line);
                if self.peek(0).and_then(Token::ident) == Some("as") {
                    self.at += 2;
                }
            }
        }
    }

    fn resolve(&mut self, names: &[String], line: usize) {
        let Some(first) = names.first() else { return };
        let (is_ours, segments) = match first.as_str() {
            "crate" | "faultscope" => (true, names[1..].to_vec()),
            "self" | "super" => {
                let ups = names.iter().take_while(|n| *n == "super" || *n == "self");
                let (rise, skip) = ups.fold((0, 0), |(rise, skip), n| {
                    (rise + usize::from(n == "super"), skip + 1)
                });
                let mut absolute = self.module.clone();
                absolute.truncate(absolute.len().saturating_sub(rise));
                absolute.extend_from_slice(&names[skip..]);
                (true, absolute)
            }
            _ => (false, names.to_vec()),
        };
        self.found.push(Path {
            is_ours,
            segments,
            line,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::token::tokens;
    use super::*;

    fn found(source: &str, module: &[&str]) -> Vec<String> {
        let module: Vec<String> = module.iter().map(|s| (*s).to_owned()).collect();
        paths(&tokens(source), &module)
            .into_iter()
            .map(|p| {
                format!(
                    "{}{}",
                    if p.is_ours { "crate::" } else { "" },
                    p.segments.join("::")
                )
            })
            .collect()
    }

    #[test]
    fn use_trees_unfold() {
        assert_eq!(
            found(
                "use crate::{a::{b, c as d}, e::*, f::{self, g}}; pub use ::std::fs;",
                &[]
            ),
            [
                "crate::a::b",
                "crate::a::c",
                "crate::e::*",
                "crate::f",
                "crate::f::g",
                "std::fs"
            ]
        );
    }

    #[test]
    fn super_and_self_stand_where_the_file_stands() {
        let source = "use super::x; use self::y; mod t { use super::super::z; fn f() { super::w::v() } } use super::u;";
        assert_eq!(
            found(source, &["host", "btf"]),
            [
                "crate::host::x",
                "crate::host::btf::y",
                "crate::host::z",
                "crate::host::btf::w::v",
                "crate::host::u"
            ]
        );
    }

    #[test]
    fn paths_inside_expressions_types_and_attributes_count() {
        let source = "#[derive(clap::Parser)] struct A(aya::Ebpf); fn f() { let x = crate::tui::run::<u8>(a.b); y::<T>::new() }";
        assert_eq!(
            found(source, &[]),
            ["clap::Parser", "aya::Ebpf", "crate::tui::run"]
        );
    }

    #[test]
    fn our_own_name_from_the_binary_is_the_crate() {
        assert_eq!(
            found("fn main() { faultscope::cli::run() }", &[]),
            ["crate::cli::run"]
        );
    }
}
