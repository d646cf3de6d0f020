//! From a file's bytes to text: UTF-8 alone, no control characters.

use std::borrow::Cow;

use super::YamlError;

const MARK: &str = "\u{feff}";

/// The text of a file, without the byte order mark that may stand at its start or after a separator.
///
/// Errors name the encoding problem in plain words, with the line where it stands.
pub(crate) fn decode(bytes: &[u8]) -> Result<Cow<'_, str>, YamlError> {
    if matches!(bytes, [0xff, 0xfe, ..] | [0xfe, 0xff, ..]) {
        return Err(YamlError::new(1, 1, "the file is UTF-16 and must be UTF-8"));
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let offset = error.valid_up_to();
        let message = format!("the file must be UTF-8, and the byte at offset {offset} is not");
        at_offset(bytes, offset, message)
    })?;
    match control_character(bytes) {
        Some(offset) => {
            let message = format!(
                "the control character 0x{:02x} at offset {offset} is not allowed; write it escaped in double quotes",
                bytes[offset]
            );
            Err(at_offset(bytes, offset, message))
        }
        None => Ok(without_inner_marks(text)),
    }
}

fn without_inner_marks(text: &str) -> Cow<'_, str> {
    if !text.contains(MARK) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut after_separator = false;
    for line in text.split_inclusive('\n') {
        out.push_str(if after_separator {
            line.trim_start_matches(MARK)
        } else {
            line
        });
        after_separator = line.trim_end() == "---";
    }
    Cow::Owned(out)
}

fn control_character(bytes: &[u8]) -> Option<usize> {
    let is_control = |byte: &u8| (*byte < 0x20 && !matches!(byte, b'\t' | b'\n' | b'\r')) || *byte == 0x7f;
    bytes.iter().position(is_control)
}

fn at_offset(bytes: &[u8], offset: usize, message: String) -> YamlError {
    let before = &bytes[..offset];
    let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let is_char_start = |byte: &&u8| **byte & 0xc0 != 0x80;
    let lines = before.iter().filter(|byte| **byte == b'\n').count();
    let column = before[line_start..].iter().filter(is_char_start).count();
    YamlError::new(small(lines + 1), small(column + 1), message)
}

/// A line or column as it is kept; a file of at most 8 MiB has no larger one.
pub(super) fn small(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
