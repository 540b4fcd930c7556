//! The words that the rules of entities know. Each list is sorted and in lower case.

/// Kinds of places in and around buildings.
#[rustfmt::skip]
pub(super) const PLACES: &[&str] = &[
    "aisle", "apartment", "attic", "balcony", "basement", "bathroom", "bay", "bedroom", "bench", "bin",
    "bridge", "building", "cabinet", "canteen", "cellar", "charger", "classroom", "clinic", "closet",
    "conveyor", "corner", "corridor", "courtyard", "dock", "door", "doorway", "driveway", "elevator",
    "entrance", "entry", "exit", "factory", "farm", "field", "floor", "garage", "garden", "gate",
    "greenhouse", "hall", "hallway", "hangar", "hospital", "house", "kitchen", "lab", "laboratory", "ladder",
    "landing", "library", "lift", "living-room", "lobby", "lounge", "mezzanine", "office", "orchard",
    "pantry", "parking", "patio", "pharmacy", "platform", "porch", "rack", "ramp", "reception", "restroom",
    "roof", "room", "shed", "shelf", "shower", "sink", "site", "staircase", "stairs", "stairwell", "station",
    "stockroom", "storage", "storeroom", "street", "studio", "terrace", "toilet", "tunnel", "unit",
    "vestibule", "ward", "warehouse", "waypoint", "window", "workbench", "workshop", "workstation", "yard",
    "zone",
];

/// Weekdays and months. `May` is left out: it is a verb too.
#[rustfmt::skip]
pub(super) const TIMES: &[&str] = &[
    "april", "august", "december", "dezember", "dienstag", "donnerstag", "februar", "february", "freitag",
    "friday", "januar", "january", "juli", "july", "june", "juni", "march", "mittwoch", "monday", "montag",
    "märz", "november", "october", "oktober", "samstag", "saturday", "september", "sonntag", "sunday",
    "thursday", "tuesday", "wednesday",
];

/// Words that begin sentences and are no names: commands, and what reports begin with.
#[rustfmt::skip]
pub(super) const OPENERS: &[&str] = &[
    "add", "adjust", "after", "all", "allow", "always", "any", "apply", "arm", "ask", "assume", "avoid",
    "battery", "before", "begin", "both", "bring", "build", "call", "cannot", "change", "charge", "check",
    "clean", "clear", "click", "close", "collect", "configure", "confirm", "connect", "continue", "copy",
    "create", "cycle", "deadline", "decide", "define", "delete", "deploy", "detected", "disable",
    "disconnect", "done", "door", "drive", "drop", "each", "enable", "ensure", "enter", "error", "every",
    "everything", "expect", "export", "fail", "failed", "fetch", "fill", "finally", "find", "first", "fix",
    "follow", "found", "get", "give", "go", "goal", "grasp", "handle", "hold", "however", "import", "inspect",
    "install", "instead", "invoke", "keep", "lastly", "later", "lift", "limit", "load", "log", "look",
    "lower", "make", "mark", "maybe", "meanwhile", "measure", "merge", "mount", "move", "navigate", "never",
    "next", "no", "nobody", "none", "not", "note", "nothing", "notify", "now", "observe", "often", "once",
    "only", "open", "order", "pause", "pick", "place", "plan", "please", "power", "press", "prevent", "print",
    "proceed", "pull", "push", "put", "query", "raise", "read", "reboot", "received", "record", "reduce",
    "refer", "reject", "release", "remember", "remove", "repair", "repeat", "replace", "report", "request",
    "require", "reset", "restart", "result", "resume", "retry", "return", "review", "robot", "rotate",
    "route", "run", "save", "saw", "scan", "search", "see", "select", "send", "sensor", "set", "should",
    "show", "skip", "someone", "something", "sometimes", "soon", "start", "started", "status", "stay", "step",
    "stop", "store", "summary", "support", "switch", "system", "take", "task", "tell", "test", "then",
    "therefore", "thus", "today", "tomorrow", "track", "try", "turn", "unlock", "unplug", "update", "upload",
    "use", "used", "using", "verify", "wait", "walk", "warning", "watch", "when", "which", "while", "why",
    "wifi", "write", "yes", "yesterday",
];

/// Words behind the name of a person.
#[rustfmt::skip]
pub(super) const ACTS_OF_PEOPLE: &[&str] = &[
    "added", "agreed", "and", "asked", "asks", "believes", "broke", "brought", "called", "came", "cleaned",
    "closed", "confirmed", "decided", "delivered", "explained", "fixed", "found", "gave", "got", "has",
    "hates", "installed", "knows", "left", "likes", "lives", "locked", "loves", "made", "mentioned", "moved",
    "needs", "opened", "owns", "placed", "plans", "prefers", "promised", "put", "repaired", "replaced",
    "reported", "requested", "requires", "returned", "said", "saw", "says", "sent", "showed", "started",
    "stopped", "suggested", "thinks", "told", "took", "turned", "uses", "visited", "wanted", "wants", "was",
    "went", "will", "works", "wrote",
];

/// Small words within a name.
#[rustfmt::skip]
pub(super) const CONNECTORS: &[&str] = &[
    "de", "del", "der", "di", "la", "of", "van", "von",
];

/// Endings of file names.
#[rustfmt::skip]
pub(super) const FILE_ENDINGS: &[&str] = &[
    "action", "avi", "bag", "bin", "bmp", "c", "cc", "cfg", "conf", "cpp", "css", "csv", "dae", "db", "db3",
    "deb", "dockerfile", "docx", "elf", "env", "gif", "go", "gz", "h", "hex", "hpp", "html", "ini", "ipynb",
    "jar", "java", "jpeg", "jpg", "js", "json", "jsonl", "launch", "lock", "log", "lua", "mcap", "md", "mkv",
    "mp3", "mp4", "msg", "npy", "npz", "obj", "omir", "omirb", "onnx", "out", "parquet", "pb", "pcap", "pcd",
    "pdf", "pgm", "ply", "png", "proto", "ps1", "pt", "py", "rs", "rst", "rviz", "sdf", "service", "sh", "so",
    "sock", "sql", "srv", "stl", "sv", "svg", "swift", "tar", "tex", "tgz", "tiff", "toml", "ts", "tsv",
    "txt", "urdf", "v", "vhd", "wasm", "wav", "webp", "whl", "world", "xacro", "xlsx", "xml", "xz", "yaml",
    "yml", "zip", "zst",
];
