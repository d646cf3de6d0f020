//! Two hubs over one remote: what they decide ([`steps`]), who reaches whom by either ([`one_agent`]), who applies ([`push`]),
//! and what becomes of that when one is told to end ([`ending`]).

mod ending;
mod modes;
mod one_agent;
mod pair;
mod push;
mod steps;
