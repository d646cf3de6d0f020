//! The hub's one boundary to work that blocks: gix, files, digests.

pub(in crate::hub) use crate::computing::computing as blocking;
