//! Charts, with the real `helm` as judge: what values come to, and what is predicted.

mod predicted;
mod values;
