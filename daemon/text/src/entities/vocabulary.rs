//! The words that the rules of entities know. Each list is sorted and in lower case.

/// Kinds of places in and around buildings.
#[rustfmt::skip]
pub(super) const PLACES: &[&str] = &[
    "aisle", "apartment", "area", "atrium", "attic", "balcony", "basement", "bathroom", "bay", "bedroom",
    "bench", "bin", "bridge", "building", "cabinet", "canteen", "cellar", "chapel", "charger", "classroom",
    "clinic", "closet", "conveyor", "corner", "corridor", "courtyard", "cupboard", "desk", "dock", "door",
    "doorway", "drawer", "driveway", "elevator", "entrance", "entry", "exit", "factory", "farm", "field",
    "floor", "foyer", "gallery", "garage", "garden", "gate", "greenhouse", "hall", "hallway", "hangar",
    "hatch", "hospital", "house", "kitchen", "lab", "laboratory", "ladder", "landing", "library", "lift",
    "living-room", "lobby", "lounge", "mezzanine", "office", "orchard", "pantry", "parking", "patio",
    "pharmacy", "pit", "platform", "porch", "rack", "radiology", "ramp", "reception", "restroom", "roof",
    "room", "shed", "shelf", "shower", "sink", "site", "staircase", "stairs", "stairwell", "station",
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
    "added", "agreed", "asked", "asks", "believes", "brought", "called", "cleaned", "confirmed", "decided",
    "explained", "fixed", "gave", "hates", "knows", "likes", "lives", "loves", "mentioned", "owns", "plans",
    "prefers", "promised", "put", "repaired", "requested", "said", "saw", "says", "sent", "showed",
    "suggested", "thinks", "told", "took", "visited", "wanted", "wants", "wrote",
];

/// Small words within a name.
#[rustfmt::skip]
pub(super) const CONNECTORS: &[&str] = &[
    "de", "del", "der", "di", "la", "of", "van", "von",
];

/// Endings of file names.
#[rustfmt::skip]
pub(super) const FILE_ENDINGS: &[&str] = &[
    "action", "avi", "bag", "bat", "bin", "bmp", "c", "cc", "cer", "cert", "cfg", "conf", "cpp", "crt", "csr",
    "css", "csv", "dae", "db", "db3", "deb", "dockerfile", "docx", "elf", "env", "gif", "go", "gz", "h",
    "hex", "hpp", "html", "ini", "ino", "ipynb", "jar", "java", "jks", "jpeg", "jpg", "js", "json", "jsonl",
    "jsx", "key", "kt", "launch", "lock", "lockfile", "log", "lua", "mcap", "md", "mjs", "mkv", "mp3", "mp4",
    "msg", "npy", "npz", "obj", "omir", "omirb", "onnx", "out", "p12", "parquet", "pb", "pcap", "pcd", "pdf",
    "pem", "pfx", "pgm", "php", "plist", "ply", "png", "proto", "ps1", "pt", "py", "pyi", "rb", "rs", "rst",
    "rviz", "scss", "sdf", "service", "sh", "so", "sock", "sql", "srv", "stl", "sv", "svg", "swift", "tar",
    "tex", "tf", "tgz", "tiff", "toml", "ts", "tsv", "tsx", "txt", "urdf", "v", "vhd", "vue", "wasm", "wav",
    "webp", "whl", "world", "xacro", "xlsx", "xml", "xz", "yaml", "yml", "zip", "zst",
];

/// Places and fixtures of which a building or a home has one, so that their kind alone names them.
#[rustfmt::skip]
pub(super) const LANDMARKS: &[&str] = &[
    "atrium", "attic", "balcony", "basement", "bathroom", "canteen", "chapel", "courtyard", "dishwasher",
    "dryer", "foyer", "freezer", "fridge", "gallery", "garage", "greenhouse", "hamper", "hob", "kettle",
    "kitchen", "lab", "laboratory", "living-room", "lobby", "lounge", "mezzanine", "microwave", "orchard",
    "oven", "pantry", "patio", "pharmacy", "porch", "radiology", "reception", "refrigerator", "sideboard",
    "sink", "stockroom", "storeroom", "stove", "terrace", "vestibule", "washer",
];

/// Kinds of devices and parts of robots, which a word before them tells apart.
#[rustfmt::skip]
pub(super) const DEVICES: &[&str] = &[
    "actuator", "antenna", "battery", "bumper", "camera", "charger", "compressor", "controller", "encoder",
    "extinguisher", "fan", "gateway", "gripper", "heater", "hub", "imu", "joint", "laser", "lidar", "mask",
    "microphone", "modem", "monitor", "motor", "printer", "projector", "pump", "radar", "robot", "router",
    "scanner", "screen", "sensor", "server", "speaker", "switch", "tag", "tank", "thermostat", "transceiver",
    "trolley", "truck", "valve", "vehicle", "wheel",
];

/// Words before a kind that tell a state, an order or a judgement, and so make no name: `the next door`, `the empty shelf`.
#[rustfmt::skip]
pub(super) const DESCRIPTIONS: &[&str] = &[
    "bad", "bare", "big", "blocked", "broken", "busy", "clean", "clear", "closed", "cold", "correct",
    "current", "dark", "dead", "deep", "dirty", "dry", "empty", "entire", "far", "few", "final", "first",
    "following", "former", "free", "full", "good", "heavy", "high", "hot", "last", "left-hand", "long",
    "loose", "low", "main", "missing", "narrow", "near", "nearest", "new", "next", "old", "only", "open",
    "opposite", "other", "own", "previous", "quiet", "real", "right-hand", "safe", "same", "second", "short",
    "single", "slow", "small", "spare", "third", "unused", "usual", "very", "warm", "wet", "whole", "wide",
    "wrong",
];

/// Words whose number is a reading and no part of a name: `confidence 0.9`, `code 105`.
#[rustfmt::skip]
pub(super) const READINGS: &[&str] = &[
    "accuracy", "age", "altitude", "ambient", "angle", "attempts", "average", "barcode", "bearing", "behind",
    "beside", "budget", "code", "confidence", "cost", "count", "cpu", "current", "deadline", "delay", "depth",
    "distance", "duration", "err", "error", "errors", "factor", "force", "forward", "fps", "gain", "head",
    "heading", "height", "humidity", "index", "inlet", "interval", "latency", "length", "level", "limit",
    "load", "loss", "maximum", "mean", "median", "memory", "minimum", "near", "offset", "onto", "outlet",
    "past", "per", "perhaps", "pitch", "plus", "port", "position", "power", "precision", "pressure",
    "priority", "probability", "progress", "radius", "range", "rate", "ratio", "recall", "recovery", "roll",
    "score", "size", "speed", "spin", "spread", "status", "sum", "tail", "temperature", "threshold", "till",
    "time", "timeout", "tolerance", "top", "torque", "total", "toward", "towards", "usage", "value",
    "velocity", "version", "via", "voltage", "volume", "weight", "width", "x", "y", "yaw", "yet", "z",
];

/// Abbreviations of kinds of things, keywords and levels in capitals: no name of one thing.
#[rustfmt::skip]
pub(super) const ABBREVIATIONS: &[&str] = &[
    "ac", "adc", "ai", "alert", "api", "apis", "ascii", "bios", "can", "cd", "ci", "cli", "cpu", "cpus",
    "crc", "critical", "csv", "dac", "dc", "debug", "delete", "dhcp", "dma", "dns", "done", "drop", "ecc",
    "ecdsa", "eof", "err", "error", "eta", "fail", "failed", "false", "fifo", "fixme", "get", "gmt", "gnss",
    "gps", "gpu", "gpus", "gui", "html", "http", "https", "i2c", "id", "ide", "imu", "info", "insert", "io",
    "ip", "iso", "isr", "issue", "it", "jpeg", "json", "lan", "led", "lidar", "mac", "mcu", "md", "ml", "mr",
    "nan", "no", "none", "not", "note", "notice", "null", "ok", "or", "os", "pager", "pass", "pc", "pcb",
    "pdf", "pin", "pip", "plc", "png", "post", "pr", "prs", "pull", "put", "pwm", "qa", "qr", "ram", "readme",
    "rest", "rfid", "rgb", "rom", "ros", "rpc", "rpm", "rsa", "rtc", "rtos", "rx", "sd", "sdk", "select",
    "sla", "spi", "sql", "ssd", "ssh", "ssl", "start", "stop", "success", "tcp", "tls", "todo", "trace",
    "true", "tx", "txt", "uart", "udp", "ui", "uid", "update", "uri", "url", "urls", "usb", "utc", "utf",
    "ux", "vm", "vms", "vpn", "warn", "warning", "wifi", "wip", "wlan", "xml", "yaml", "yes",
];

/// Titles before the name of a person.
#[rustfmt::skip]
pub(super) const TITLES: &[&str] = &[
    "captain", "doctor", "dr", "frau", "herr", "miss", "mr", "mrs", "ms", "nurse", "prof", "professor",
    "sister",
];

/// Programs that developers and operators call by these names, and that are no other words.
#[rustfmt::skip]
pub(super) const PROGRAMS: &[&str] = &[
    "alertmanager", "amcl", "ansible", "apt", "bash", "bazel", "btrfs", "cargo", "clang", "clippy", "cmake",
    "colcon", "cron", "cronjob", "curl", "cyclonedds", "dmesg", "docker", "eslint", "ffmpeg", "gazebo", "gcc",
    "gdb", "git", "github", "gitlab", "grafana", "grep", "gzip", "helm", "htop", "istio", "java",
    "javascript", "jenkins", "journalctl", "jq", "kafka", "keytool", "kubectl", "kubernetes", "linux", "lldb",
    "mariadb", "moveit", "mypy", "mysql", "nginx", "ninja", "npm", "numpy", "nvcc", "openssl", "pandas",
    "pip", "pnpm", "podman", "postgres", "postgresql", "prometheus", "psql", "pytest", "pytorch", "rabbitmq",
    "redis", "rosbag", "rsync", "ruff", "rustc", "rustfmt", "rviz", "sed", "slurm", "sqlite", "strace",
    "systemctl", "systemd", "tcpdump", "tensorflow", "terraform", "tmux", "tzdata", "ubuntu", "valgrind",
    "vim", "vite", "webpack", "wget", "wireshark", "yarn", "zenoh", "zsh",
];

/// Last parts of hyphenated names of services, programs and libraries: `mail-gateway`, `image-api`.
#[rustfmt::skip]
pub(super) const SERVICES: &[&str] = &[
    "agent", "api", "app", "backend", "bot", "bridge", "broker", "bundle", "ca", "cli", "client", "cluster",
    "collector", "config", "configs", "consumer", "cron", "daemon", "dashboard", "db", "dev", "dispatcher",
    "exporter", "flags", "frontend", "gateway", "gw", "hook", "importer", "indexer", "ingress", "js", "lib",
    "listener", "loader", "logger", "mailer", "manager", "monitor", "node", "operator", "parser", "pipeline",
    "planner", "prod", "producer", "proxy", "py", "queue", "registry", "relay", "rs", "runner", "scheduler",
    "sdk", "server", "service", "shim", "sidecar", "sink", "spy", "ssh", "staging", "stub", "svc", "sync",
    "tls", "tracker", "ui", "watcher", "web", "webhook", "worker",
];

/// First parts that make a word of a service an ordinary one: `co-worker`, `multi-agent`.
#[rustfmt::skip]
pub(super) const PREFIXES: &[&str] = &[
    "anti", "co", "cross", "double", "ex", "full", "half", "in", "inter", "multi", "non", "off", "on", "one",
    "open", "pre", "re", "self", "semi", "single", "sub", "three", "two", "un", "well",
];

/// Usual folders of projects and machines.
#[rustfmt::skip]
pub(super) const FOLDERS: &[&str] = &[
    "app", "apps", "assets", "bin", "cmd", "conf", "config", "configs", "data", "dist", "doc", "docs", "etc",
    "examples", "fixtures", "include", "internal", "lib", "libs", "log", "logs", "maps", "migrations",
    "models", "modules", "opt", "packages", "pkg", "resources", "scripts", "spec", "src", "static", "target",
    "templates", "test", "tests", "tmp", "tools", "usr", "utils", "var", "vendor",
];
