//! Paths and globs of feeds: which files they select.

use std::ops::Bound;

use globset::{GlobBuilder, GlobMatcher};

/// What a path feed selects.
#[derive(Clone, Debug)]
pub(super) struct Selection {
    pub(super) pattern: Pattern,
    pub(super) excluded: Vec<Pattern>,
}

impl Selection {
    /// Whether the feed selects this path, whatever stands there.
    pub(super) fn matches(&self, path: &str) -> bool {
        self.pattern.matches(path) && !self.excludes(path) && !self.pattern.hides(path)
    }

    fn excludes(&self, path: &str) -> bool {
        self.excluded.iter().any(|pattern| pattern.matches(path))
    }
}

/// A path or glob from the root of the repository.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    /// What every match starts with.
    literal: String,
    form: Form,
}

#[derive(Clone, Debug)]
enum Form {
    /// The file of this path, or every file below this folder.
    Path,
    /// Every file below the folder `literal`, which ends with a slash or is empty.
    Below,
    Glob(Box<GlobMatcher>),
}

/// Why a path is none of a feed's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum PatternError {
    #[error("a path starts at the root of the repository, without a slash, and cannot leave it")]
    Outside,
    #[error("a path has / between its parts and no empty part")]
    Form,
    #[error("the glob cannot be read: {0}")]
    Glob(String),
}

impl PatternError {
    pub(super) fn reason(&self) -> &'static str {
        match self {
            PatternError::Outside => "PathOutside",
            PatternError::Form | PatternError::Glob(_) => "FieldInvalid",
        }
    }
}

impl Pattern {
    pub(super) fn parse(text: &str) -> Result<Self, PatternError> {
        let text = text.strip_prefix("./").unwrap_or(text);
        let path = text.strip_suffix('/').unwrap_or(text);
        if text.starts_with(['/', '~']) || path.split('/').any(|part| part == "..") || path.contains(":/") {
            return Err(PatternError::Outside);
        }
        if matches!(path, "." | "**") {
            return Ok(Self::below(""));
        }
        if path.contains('\\') || path.split('/').any(|part| part.is_empty() || part == ".") {
            return Err(PatternError::Form);
        }
        let Some(first) = path.find(['*', '?', '[', '{', '!']) else {
            let literal = path.to_owned();
            return Ok(Self {
                literal,
                form: Form::Path,
            });
        };
        if let Some(folder) = path.strip_suffix("**")
            && folder.len() == first
            && folder.ends_with('/')
        {
            return Ok(Self::below(folder));
        }
        let glob = GlobBuilder::new(path)
            .literal_separator(true)
            .empty_alternates(true)
            .build()
            .map_err(|error| PatternError::Glob(error.kind().to_string()))?;
        let literal = path[..first].rfind('/').map_or("", |end| &path[..=end]).to_owned();
        let form = Form::Glob(Box::new(glob.compile_matcher()));
        Ok(Self { literal, form })
    }

    fn below(folder: &str) -> Self {
        Self {
            literal: folder.to_owned(),
            form: Form::Below,
        }
    }

    /// Whether it names one file or folder.
    pub(super) fn is_path(&self) -> bool {
        matches!(self.form, Form::Path)
    }

    pub(super) fn matches(&self, path: &str) -> bool {
        let Some(rest) = path.strip_prefix(&self.literal) else {
            return false;
        };
        match &self.form {
            Form::Path => rest.is_empty() || rest.starts_with('/'),
            Form::Below => true,
            Form::Glob(glob) => glob.is_match(path),
        }
    }

    /// Where matches may stand in a sorted list of paths.
    pub(super) fn start(&self) -> Bound<&str> {
        Bound::Included(&self.literal)
    }

    /// Whether a path in order can still be followed by a match.
    pub(super) fn reaches(&self, path: &str) -> bool {
        path.starts_with(&self.literal)
    }

    /// Whether the path runs through a hidden folder or file that the pattern does not name itself.
    fn hides(&self, path: &str) -> bool {
        let rest = path.strip_prefix(&self.literal).unwrap_or(path);
        is_hidden(rest) && !is_hidden_glob(&self.form)
    }

    /// Whether it names a hidden folder or file, which nothing else reads.
    pub(super) fn names_hidden(&self) -> bool {
        is_hidden(&self.literal) || is_hidden_glob(&self.form)
    }
}

fn is_hidden_glob(form: &Form) -> bool {
    matches!(form, Form::Glob(glob) if is_hidden(glob.glob().glob()))
}

/// Whether a part of the path starts with a dot.
pub(super) fn is_hidden(path: &str) -> bool {
    path.split('/').any(|part| part.starts_with('.'))
}
