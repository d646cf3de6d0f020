//! What fuzzers call with bytes: the targets in `tunnel/fuzz`, and tests with the corpus. Not in any other build.

pub use crate::handshake::fuzz::hello;
pub use crate::mux::fuzz::mux;

/// Bytes as messages: each follows its length, two bytes in network order. The last one may be cut off.
pub(crate) fn messages(mut input: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    std::iter::from_fn(move || {
        let (length, rest) = input.split_first_chunk::<2>()?;
        let (message, rest) = rest.split_at(usize::from(u16::from_be_bytes(*length)).min(rest.len()));
        input = rest;
        Some(message.to_vec())
    })
}

/// The same, the other way round.
#[cfg(test)]
pub(crate) fn input_of(messages: &[Vec<u8>]) -> Vec<u8> {
    let one = |message: &Vec<u8>| [&(message.len() as u16).to_be_bytes()[..], message].concat();
    messages.iter().flat_map(one).collect()
}
