//! Questions about what goes with objects, and predictors of room.

use std::time::Duration;

/// Objects of one question about what goes with them: what a person reads before a push, and 10 KiB in a URL.
pub const DEPENDANTS_ASKED_MAX: usize = 50;

/// Objects whose owners are looked at for one question, by their metadata: some 2 KiB each on their way, a page at a
/// time, and 200 bytes each while they are compared.
pub const DEPENDANTS_LOOKED_MAX: usize = 20_000;

/// Names that are told of the objects of one kind; the rest is counted.
pub const DEPENDANTS_NAMED_MAX: usize = 3;

/// Kinds that are told one by one of what goes or stays with one object.
pub const DEPENDANTS_KINDS_MAX: usize = 20;

/// Claims of one question whose volumes are looked up: two requests each.
pub const DEPENDANTS_CLAIMS_MAX: usize = 50;

/// How long a cluster looks for one answer; what it did not get to by then is said.
pub const DEPENDANTS_TIMEOUT: Duration = Duration::from_secs(20);

/// How long the hub waits for that answer: a tunnel and a slow cluster more than the cluster's own limit, and less than
/// an answer of the API may take.
pub const DEPENDANTS_ANSWER_TIMEOUT: Duration = Duration::from_secs(25);

/// Questions that the hub asks at a time, in all clusters.
pub const DEPENDANTS_QUESTIONS_MAX: usize = 8;

/// Questions of people that wait for those: each waits some seconds and holds its request.
pub const DEPENDANTS_QUESTIONS_WAITING_MAX: usize = 32;

/// Of these, of one person: a plan asks four clusters at a time.
pub const DEPENDANTS_QUESTIONS_OF_PERSON_MAX: usize = 8;

/// Requests of one question to an API server at a time: half of what the applier may send, which goes on meanwhile.
pub const DEPENDANTS_CONCURRENCY: usize = 4;

/// Bytes of a predictor's answer: a number, and one for each value of a topology, of which there are some hundred.
pub const PREDICTION_BYTES_MAX: usize = 64 << 10;

/// Predictors that are asked at once: each takes a socket, and has a timeout of its own.
pub const PREDICTIONS_AT_ONCE_MAX: usize = 32;

/// Answers of predictors that are remembered: of a thousand clusters with ten templates each, in 1 MiB.
pub const PREDICTIONS_MAX: usize = 10_000;

/// How long a plan waits for predictors before what is known is decided; who answers later is looked at then.
pub const PREDICTION_PATIENCE: Duration = Duration::from_secs(5);
