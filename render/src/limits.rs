//! Every limit of this crate, with its number and reason.

/// Bytes of one source file. etcd refuses objects above 1.5 MiB, so 8 MiB is many large objects in one
/// file and still parses in about a second.
pub const FILE_BYTES_MAX: usize = 8 << 20;

/// Nesting of one document. Kubernetes' own objects stay below 30 levels; CRD schemas reach 40.
pub const DEPTH_MAX: usize = 64;

/// Documents in one revision, all files together: a fleet of 1,000 units with 100 objects each.
pub const DOCUMENTS_MAX: usize = 100_000;

/// Bytes that the aliases of one file may expand to: no more than the largest file without aliases.
pub const ALIAS_BYTES_MAX: usize = FILE_BYTES_MAX;

/// Operations of one JSON patch, as upstream has it.
pub const PATCH_OPERATIONS_MAX: usize = 10_000;

/// Symlinks followed from one path, as many as Linux follows halved: a fleet repository has one or two.
pub const SYMLINK_HOPS_MAX: usize = 20;

/// Bytes that the `copy` operations of one JSON patch may add, as much as a file may hold: each can double
/// the object, and forty of them would fill any memory.
pub const PATCH_COPIED_BYTES_MAX: usize = FILE_BYTES_MAX;

/// Findings kept for one file: beyond it one more line says how many were left out.
pub const FINDINGS_PER_FILE_MAX: usize = 20;

/// Bytes of one unit on one cluster, as it travels: a delivery carries it whole, in a message of at most 64 MiB.
/// What no agent could be sent is refused while it is planned, and the clusters keep what they have.
pub const UNIT_BYTES_MAX: usize = 60 << 20;

/// Characters of one message, so that a broken file cannot fill a status.
pub const MESSAGE_CHARS_MAX: usize = 1_024;

/// From how many objects on a unit that loses all that it has on a cluster, and stays there, is asked for a word: fewer
/// are renamed by hand every day, and made anew in a moment.
pub const REPLACED_OBJECTS_MIN: usize = 10;

/// Values of a label that a hint names: a person looks for the one that was meant.
pub const LABELS_SHOWN_MAX: usize = 8;

/// Fields that one step is told to have changed: a person reads a screen of them, and a patch may write thousands.
pub const TRACED_FIELDS_MAX: usize = 50;

/// Files of one chart folder: the largest public charts, with their subcharts unpacked, have about 300.
pub const CHART_FILES_MAX: usize = 1_000;

/// Bytes of one chart folder. A release's own Secret, in which Helm keeps the chart, takes 1 MiB packed; text packs to
/// a tenth, and base64 of this still fits into one delivery several times.
pub const CHART_BYTES_MAX: usize = 8 << 20;

/// Bytes of a changed file of a chart that a plan shows: a person reads a screen, and Git shows the rest.
pub const CHART_CHANGE_BYTES_MAX: usize = 2_000;

/// Bytes of a file's name: every file system takes 255, and what marks a shortened one needs room.
pub const FILE_NAME_BYTES_MAX: usize = 200;

/// Characters of an expression of a health check: a person's take one or two lines.
pub const EXPRESSION_CHARS_MAX: usize = 1_024;

/// Nesting of an expression: each level is some frames of a stack.
pub const EXPRESSION_NESTING_MAX: u16 = 32;

/// Parts within each other of an expression that was read: each is a frame or two of a stack of two MiB when it is
/// evaluated.
pub const EXPRESSION_DEPTH_MAX: usize = 64;

/// Loops within each other: one over conditions, and one over what a condition lists.
pub const EXPRESSION_LOOPS_MAX: u32 = 2;

/// Steps of one evaluation: at some hundred nanoseconds each, a fraction of a second at worst.
pub const EXPRESSION_STEPS_MAX: u64 = 2_000_000;

/// Groups of nodes of one report: 1,000 nodes of which no two are alike. Above it the agent puts together those that
/// are alike but for what they have left, and tells the least.
pub const NODE_GROUPS_MAX: usize = 1_000;

/// Nodes of one report: the largest clusters on offer have 100,000, and twice that is believed.
pub const NODES_MAX: u64 = 200_000;

/// Pods that a node of a report may have or take: 2,500 is what the boldest maker supports. Pods are put on nodes one
/// after the other, so that a report of more would cost everybody's plans time, and not its cluster's alone.
pub const PODS_PER_NODE_MAX: u64 = 10_000;

/// Workloads of one report: as many as a large cluster's fleet has, in 1 MiB.
pub const REPORTED_WORKLOADS_MAX: usize = 5_000;

/// How long an answer of a predictor counts, and a failure to get one, in seconds: as long as decisions that no commit
/// causes are apart, so that each has an answer of its own and no more is asked, however often clusters report.
pub const PREDICTION_KEPT_SECONDS: i64 = 60;

/// How long a predictor may take where its cluster's file does not say, in seconds: as Clusternet waits.
pub const PREDICTOR_TIMEOUT_SECONDS: u64 = 20;

/// As long as a cluster's file may let its predictor take, in seconds: its answer is to be there before it is too old.
pub const PREDICTOR_TIMEOUT_SECONDS_MAX: u64 = 60;

/// Characters of a predictor's own words in a reason.
pub const PREDICTOR_WORDS_MAX: usize = 200;

/// Seconds between two decisions on one unit that no source commit caused: replicas that begin, and reports of it, take
/// less, and a cluster that comes and goes moves nothing more often.
pub const MOVES_PAUSE_SECONDS: i64 = 60;

/// Seconds until clusters that may not be moved away from are looked at again: it only ends an alarm, and people take
/// minutes.
pub const LOOK_AGAIN_SECONDS: i64 = 60;

/// Bytes of a token: providers write some hundred groups into one, and an HTTP header of a proxy holds no more.
pub const TOKEN_BYTES_MAX: usize = 16 * 1024;

/// Bytes of a provider's list of keys: 64 keys of 4,096 bits with their certificates.
pub const KEYS_BYTES_MAX: usize = 1024 * 1024;

/// Keys of a provider: one that rotates has a handful. Without a name in the token, each is tried.
pub const KEYS_MAX: usize = 64;

/// Seconds by which the clocks of hub and provider may differ.
pub const TOKEN_SKEW_SECONDS: i64 = 30;
